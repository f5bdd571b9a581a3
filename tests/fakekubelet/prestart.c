/* `prestart POD`: PreStartContainer of every container for every resource whose plugin asked for
 * it. */
#include "kubelet.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "kubepeer/kubepeer.h"

#define PRE_START_TIMEOUT_MS 30000

struct prestarting {
	struct kubelet *k;
	struct command *cmd;
	struct pod_entry *pod;
	size_t c, h; /* the next allocation to look at */
	const struct allocation *asked;
	const char *container;
	int64_t call_us;
	struct report report;
};

static void ask_next(struct prestarting *p);

static void on_done(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct prestarting *p = arg;
	struct json *j = &p->report.json;

	(void)body;
	json_begin_object(j);
	json_kv_string(j, "container", p->container);
	json_kv_string(j, "resource", p->asked->resource);
	json_kv_string(j, "status", status_name(status));
	json_kv_string(j, "message", message);
	json_kv_int(j, "us", now_us() - p->call_us);
	json_end_object(j);
	ask_next(p);
}

static const struct allocation *next_allocation(struct prestarting *p)
{
	for (; p->c < p->pod->n_containers; p->c++, p->h = 0) {
		const struct fake_container *c = &p->pod->containers[p->c];

		if (p->h < c->n_held) {
			p->container = c->name;
			return &c->held[p->h++];
		}
	}
	return NULL;
}

static struct client *wants_it(struct kubelet *k, const struct allocation *a)
{
	const struct resource *r = resource_find(k, a->resource);

	if (!r || r->stopped || !r->endpoint || !r->endpoint->channel)
		return NULL;
	return r->endpoint->options.pre_start_required ? r->endpoint : NULL;
}

static void finish(struct prestarting *p)
{
	json_end_array(&p->report.json);
	report_end(&p->report);
	p->pod->admitting = false;
	command_done(p->cmd);
	free(p);
}

static void ask_next(struct prestarting *p)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct client *e = NULL;

	do {
		p->asked = next_allocation(p);
		e = p->asked ? wants_it(p->k, p->asked) : NULL;
	} while (p->asked && !e);
	if (!p->asked) {
		finish(p);
		return;
	}
	p->call_us = now_us();
	rpc_call_unary(e->channel, PATH_PRE_START, peer_encode_pre_start(&p->asked->ids, a),
		       PRE_START_TIMEOUT_MS, on_done, p);
}

void prestart(struct command *cmd, struct pod_entry *pod)
{
	struct prestarting *p = xcalloc(1, sizeof(*p));
	struct json *j = report_answer(&p->report, cmd, "prestarted");

	p->k = cmd->k;
	p->cmd = cmd;
	p->pod = pod;
	pod->admitting = true; /* its records must outlive the calls */
	pod->prepared = true;
	json_kv_string(j, "pod", pod->name);
	json_key(j, "calls");
	json_begin_array(j);
	ask_next(p);
}
