/* `wait RESOURCE COUNT`: answers when that many devices are allocatable. */
#include "kubelet.h"

#include <stdlib.h>

#include "base/mem.h"

struct waiter {
	struct waiter *next;
	struct kubelet *k;
	struct command *cmd;
	struct rpc_timer *timer;
	char *resource;
	size_t count;
	bool exactly;
};

static size_t allocatable_now(struct kubelet *k, const char *resource, bool *ret_known)
{
	const struct resource *r = resource_find(k, resource);

	*ret_known = r && r->known;
	return r ? resource_allocatable(r) : 0;
}

static bool is_met(const struct waiter *w)
{
	bool known;
	size_t n = allocatable_now(w->k, w->resource, &known);

	return known && (w->exactly ? n == w->count : n >= w->count);
}

static void finish(struct waiter *w, const char *event)
{
	struct waiter **at = &w->k->waiters;
	struct report r;
	struct json *j;
	bool known;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	j = report_answer(&r, w->cmd, event);
	json_kv_string(j, "resource", w->resource);
	json_kv_int(j, "allocatable", (int64_t)allocatable_now(w->k, w->resource, &known));
	report_end(&r);
	command_done(w->cmd);
	free(w->resource);
	free(w);
}

static void on_timeout(void *arg)
{
	finish(arg, "timeout");
}

void wait_for(struct command *cmd, const char *resource, size_t count, bool exactly,
	      unsigned timeout_ms)
{
	struct waiter *w = xcalloc(1, sizeof(*w));

	*w = (struct waiter) {
		.next = cmd->k->waiters,
		.k = cmd->k,
		.cmd = cmd,
		.resource = xstrdup(resource),
		.count = count,
		.exactly = exactly,
		.timer = rpc_after(cmd->k->rpc, timeout_ms, on_timeout, w),
	};
	cmd->k->waiters = w;
	wait_check(cmd->k);
}

void wait_check(struct kubelet *k)
{
	for (struct waiter *w = k->waiters, *next; w; w = next) {
		next = w->next;
		if (!is_met(w))
			continue;
		rpc_timer_cancel(w->timer);
		finish(w, "reached");
	}
}

void wait_cancel_all(struct kubelet *k)
{
	while (k->waiters) {
		rpc_timer_cancel(k->waiters->timer);
		finish(k->waiters, "timeout");
	}
}
