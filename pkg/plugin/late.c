/*
 * The device plugin of a pool that binds late: its devices are slots, Allocate promises,
 * PreStartContainer binds (docs/design/kubelet.md §3.2). pkg/latebind makes the decisions.
 */
#include "plugin/plugin-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pending.h"
#include "base/str.h"
#include "config/config.h"
#include "kubeclient/podres.h"
#include "kubeclient/runtime.h"
#include "kubemsg/messages.h"
#include "latebind/latebind.h"
#include "plugin/record-internal.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "render/cdi.h"

/* The kubelet gives PreStartContainer 30 s, and repeats a call that fails earlier. */
#define BIND_TIMEOUT_MS	 10000
#define PROBE_TIMEOUT_MS 1000
#define PROBE_AGAIN_MS	 200
#define PROBES_QUIET_MS	 2000  /* a runtime that starts is silent for a while; then a warning */
#define REFUSED_AGAIN_MS 10000 /* a runtime without CDI may be replaced meanwhile */
#define WAITS_A_MINUTE	 10
/* Kubernetes 1.29, the first one that passes CDI devices on, has grpc-go 1.58; 1.28 had 1.54. */
#define GRPC_GO		"grpc-go/1."
#define GRPC_GO_CDI_MIN 58

/* Can this node bind late? The answer is kept: no restarted kubelet has to wait for it. */
struct late {
	struct plugin *plugin;
	struct pending *asked; /* the kubelet, then the runtime */
	bool ready, refused;
	const char *why; /* why it is not ready; NULL: no answer yet */
	int64_t since_ms, runtime_since_ms;
	struct rpc_timer *timer;
};

bool plugin_is_late(const struct plugin *p)
{
	const struct pool *pool = plugin_pool(p);

	return pool && pool->cfg->binding == BINDING_LATE;
}

/* --- can this node bind late? --- */

static void ready(struct late *l)
{
	l->ready = true;
	plugin_kick(l->plugin);
}

static void ask_runtime(struct late *l);

static void ask_runtime_again(void *arg)
{
	struct late *l = arg;

	l->timer = NULL;
	ask_runtime(l);
}

static void refuse_runtime(struct late *l, const char *what)
{
	if (!l->refused)
		log_error(
			"kubelet",
			"the resource is not registered: the pool binds late and needs CDI, which this runtime lacks resource=%s reason=%s",
			l->plugin->resource, what);
	l->refused = true;
	l->why = "binds late and needs CDI, which this container runtime lacks";
	l->timer = rpc_after(l->plugin->env->endpoint.rpc, REFUSED_AGAIN_MS, ask_runtime_again, l);
}

static void runtime_answered(void *arg, const struct runtime_answer *answer)
{
	struct late *l = pending_end(arg);

	if (!l)
		return;
	if (answer->cdi == RUNTIME_CDI) {
		ready(l);
	} else if (answer->cdi == RUNTIME_NO_CDI) {
		refuse_runtime(l, answer->sentence);
	} else if (answer->cdi == RUNTIME_SILENT &&
		   clock_mono_ms() - l->runtime_since_ms < PROBES_QUIET_MS) {
		l->timer = rpc_after(l->plugin->env->endpoint.rpc, PROBE_AGAIN_MS,
				     ask_runtime_again, l);
	} else {
		log_warn(
			"kubelet",
			"the pool binds late, and it is not known whether the container runtime supports CDI resource=%s reason=%s",
			l->plugin->resource, answer->sentence);
		ready(l);
	}
}

/* After the kubelet has answered. */
static void ask_runtime(struct late *l)
{
	const struct plugin_env *env = l->plugin->env;

	if (env->cdi == CDI_ON || !env->runtime) {
		ready(l);
		return;
	}
	if (!l->runtime_since_ms)
		l->runtime_since_ms = clock_mono_ms();
	kubeclient_runtime_ask(env->runtime, PROBE_TIMEOUT_MS, runtime_answered,
			       pending_new(l, &l->asked));
}

static void probe(struct late *l);

static void probe_again(void *arg)
{
	struct late *l = arg;

	l->timer = NULL;
	probe(l);
}

static void probed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct late *l = pending_end(arg);
	struct plugin *p;

	if (!l)
		return;
	p = l->plugin;
	if (kubeclient_podres_state(p->env->podres).support == PODRES_NOTHING) {
		l->why = "binds late, which needs kubelet 1.27 or later";
		log_error(
			"kubelet",
			"the resource is not registered: the pool binds late, which needs kubelet 1.27 or later resource=%s",
			p->resource);
	} else if (kubeclient_podres_state(p->env->podres).support == PODRES_UNKNOWN) {
		if (clock_mono_ms() - l->since_ms >= PROBES_QUIET_MS)
			plugin_warn(
				p, WARN_LATE,
				"the resource is not registered yet: the pool binds late, and PodResources does not answer reason=%s",
				why);
		l->why = "binds late, and PodResources does not answer";
		l->timer = rpc_after(p->env->endpoint.rpc, PROBE_AGAIN_MS, probe_again, l);
	} else {
		ask_runtime(l);
	}
}

static void probe(struct late *l)
{
	kubeclient_podres_ask(l->plugin->env->podres,
			      &(struct podres_question) { .kind = PODRES_ASK_GET,
							  .ns = "",
							  .name = "",
							  .timeout_ms = PROBE_TIMEOUT_MS },
			      probed, pending_new(l, &l->asked));
}

/* The setting to change; NULL: none. */
static const char *obstacle(const struct plugin *p)
{
	if (p->env->cdi == CDI_OFF)
		return "needs CDI, which --cdi=off says this node has not: set binding to early in the configuration";
	if (p->env->cdi_dir_missing)
		return "needs the CDI directory, which is not a folder of the host: mount it (deploy/components/late), or set binding to early in the configuration";
	if (!p->env->podres || !p->env->latebind)
		return "needs PodResources, which --pod-resources=off forbids: set that to auto, or binding to early in the configuration";
	return NULL;
}

const char *plugin_late_problem(const struct plugin *p)
{
	if (!plugin_is_late(p) || (p->late && p->late->ready))
		return NULL;
	return p->late ? p->late->why : obstacle(p);
}

bool plugin_late_is_ready(struct plugin *p)
{
	const char *why;

	if (!plugin_is_late(p) || (p->late && p->late->ready))
		return true;
	why = obstacle(p);
	if (why) {
		plugin_warn(p, WARN_LATE,
			    "the resource is not registered: the pool binds late reason=%s", why);
		return false;
	}
	if (p->late)
		return false;
	p->late = xcalloc(1, sizeof(*p->late));
	p->late->plugin = p;
	p->late->since_ms = clock_mono_ms();
	probe(p->late);
	return false;
}

void plugin_late_done(struct plugin *p)
{
	struct late *l = STEAL(p->late);

	if (!l)
		return;
	rpc_timer_cancel(l->timer);
	pending_cancel(&l->asked);
	free(l);
}

int plugin_late_check_kubelet(const struct plugin *p, const char *user_agent, struct err *err)
{
	const char *version = strstr(user_agent, GRPC_GO);
	char digits[8] = "";
	uint64_t minor;
	size_t n;

	if (!version || p->env->cdi == CDI_ON || !plugin_is_late(p))
		return 0;
	version += strlen(GRPC_GO);
	n = strspn(version, "0123456789");
	if (n >= sizeof(digits))
		return 0;
	memcpy(digits, version, n);
	if (str_to_u64(digits, 10, 1000, &minor) < 0 || minor >= GRPC_GO_CDI_MIN)
		return 0;
	return err_set(
		err, EIO,
		"%s binds late and needs CDI, which kubelets pass on from 1.29: this one is older; set binding to early in the configuration, or --cdi=on if its gate DevicePluginCDIDevices is on",
		p->resource);
}

/* --- the list --- */

struct device_list plugin_late_list(const struct plugin *p, struct arena *a)
{
	const struct pool *pool = plugin_pool(p);
	struct slot_list slots = latebind_slots(p->env->latebind, pool, a);
	struct device_list list = { arena_array(a, slots.n, sizeof(*list.v)), slots.n };
	int64_t *nodes = arena_array(a, slots.n, sizeof(*nodes));

	for (size_t i = 0; i < slots.n; i++) {
		list.v[i] = (struct device) { .id = slots.v[i].id, .healthy = slots.v[i].healthy };
		if (slots.v[i].numa < 0)
			continue;
		nodes[i] = slots.v[i].numa;
		list.v[i].nodes = &nodes[i];
		list.v[i].n_nodes = 1;
	}
	return list;
}

/* --- GetPreferredAllocation: the free slots of a class are alike --- */

struct pick {
	const struct slot_list *slots;
	struct ids available, must; /* sorted */
	size_t want;
	struct ids out;
};

static bool is_choice(const struct pick *p, const struct slot *s, bool held)
{
	return s->held == held && list_has_sorted(p->available.v, p->available.n, s->id) &&
	       !list_has_sorted(p->must.v, p->must.n, s->id);
}

/* The class with the fewest free slots that are enough; -2: none. */
static int tightest_class(const struct pick *p)
{
	size_t left = p->want - p->out.n, best = SIZE_MAX;
	int class = -2;

	for (size_t i = 0; i < p->slots->n; i++) {
		int numa = p->slots->v[i].numa;
		size_t n = 0;

		if (i && p->slots->v[i - 1].numa == numa)
			continue;
		for (size_t k = 0; k < p->slots->n; k++)
			n += p->slots->v[k].numa == numa && is_choice(p, &p->slots->v[k], false);
		if (n < left || n >= best)
			continue;
		best = n;
		class = numa;
	}
	return class;
}

static void take(struct pick *p, bool held, int class)
{
	for (size_t i = 0; i < p->slots->n && p->out.n < p->want; i++) {
		const struct slot *s = &p->slots->v[i];

		if ((class == -2 || s->numa == class) && is_choice(p, s, held))
			p->out.v[p->out.n++] = s->id;
	}
}

static struct ids prefer(const struct slot_list *slots, const struct preferred_container *c,
			 struct arena *a)
{
	struct pick p = { .slots = slots,
			  .available = plugin_sorted(&c->available, a),
			  .must = plugin_sorted(&c->must, a) };
	int class;

	p.want = c->size < 0 ? 0 : (size_t)c->size;
	if (p.want > p.available.n + p.must.n)
		p.want = p.available.n + p.must.n;
	if (p.want < p.must.n)
		p.want = p.must.n;
	p.out.v = arena_array(a, p.want, sizeof(*p.out.v));
	for (size_t i = 0; i < p.must.n; i++)
		p.out.v[p.out.n++] = p.must.v[i];
	class = tightest_class(&p);
	take(&p, false, class);
	take(&p, true, -2);
	return p.out;
}

void plugin_late_preferred(struct plugin *p, struct rpc_call *call,
			   const struct preferred_request *request)
{
	struct arena *a = rpc_call_arena(call);
	struct id_lists lists = { arena_array(a, request->n, sizeof(*lists.v)), request->n };
	struct slot_list slots = latebind_slots(p->env->latebind, plugin_pool(p), a);

	for (size_t i = 0; i < request->n; i++)
		lists.v[i] = prefer(&slots, &request->v[i], a);
	rpc_reply(call, RPC_OK, NULL, kubemsg_encode(&kubemsg_preferred_reply, &lists, a));
}

/* --- Allocate --- */

static int check_slots(const struct plugin *p, const struct ids *ids, struct err *err)
{
	unsigned number;
	int numa;

	if (!ids->n)
		return err_set(err, EINVAL, "the request for %s names no device", p->resource);
	for (size_t i = 0; i < ids->n; i++) {
		if (!pool_slot_parse(p->resource, ids->v[i], &numa, &number))
			return err_set(
				err, ENOENT,
				"device '%.64s' is not a slot of %s, which binds late: was the configuration changed?",
				ids->v[i], p->resource);
	}
	return 0;
}

int plugin_late_allocate(struct plugin *p, const struct ids *ids, struct arena *a,
			 struct edits *ret, struct err *err)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;
	struct ids slots = plugin_sorted(ids, a);
	struct edits edits = { .envs = arena_array(a, 1, sizeof(*edits.envs)), .n_envs = 1 };
	char *env = arena_strdup(a, render_env_name("RAILMATE", p->resource, "SLOTS", a));
	int r = check_slots(p, ids, err);

	if (r < 0)
		return r;
	for (char *c = env; *c; c++) {
		if (*c == '-')
			*c = '_';
	}
	edits.cdi = arena_array(a, slots.n, sizeof(*edits.cdi));
	edits.n_cdi = slots.n;
	for (size_t i = 0; i < slots.n; i++) {
		edits.cdi[i] = cdi_device(slots.v[i], a);
		strbuf_printf(&names, "%s%s", i ? "," : "", slots.v[i]);
	}
	edits.envs[0] = (struct kv) { env, arena_strdup(a, strbuf_str(&names)) };
	latebind_allocated(p->env->latebind, &slots);
	*ret = edits;
	return 0;
}

/* --- PreStartContainer --- */

/* In the arena of the call, which may outlive the plugin. */
struct starting {
	struct rpc_call *call;
	const char *resource;
};

static void bound(void *arg, const struct err *err, const struct bound *v, size_t n)
{
	/* One limit for all plugins, as the plugin of the call may be gone by now. The kubelet
	 * repeats calls, and other clients may call, too. */
	static struct log_rate waits;
	const struct starting *s = arg;

	if (!err) {
		for (size_t i = 0; i < n; i++)
			log_debug("kubelet", "the slot has a VF resource=%s slot=%s vf=%s",
				  v[i].resource, v[i].slot, v[i].vf);
		rpc_reply(s->call, RPC_OK, NULL, (struct bytes) { NULL, 0 });
		return;
	}
	if (log_rate_count(&waits) <= WAITS_A_MINUTE)
		log_warn("kubelet", "a container waits resource=%s reason=%s", s->resource,
			 err->msg);
	else
		log_debug("kubelet", "a container waits resource=%s reason=%s", s->resource,
			  err->msg);
	plugin_refuse(s->call, err);
}

void plugin_late_pre_start(struct plugin *p, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct starting *s = arena_alloc(a, sizeof(*s));
	struct err err = { 0 };
	struct ids ids;

	*s = (struct starting) { call, arena_strdup(a, p->resource) };
	if (kubemsg_decode(&kubemsg_pre_start, request, a, &ids, &err) < 0 ||
	    check_slots(p, &ids, &err) < 0)
		plugin_refuse(call, &err);
	else
		latebind_bind(p->env->latebind, &ids, NULL, BIND_TIMEOUT_MS, bound, s);
}
