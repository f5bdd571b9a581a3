/*
 * GetPreferredAllocation, with a look at pod specs and PodResources in between: which container
 * asks, and which GPUs does it have? A failed look is no error for the kubelet (it would fail the
 * pod): the VFs are then chosen without GPUs.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pending.h"
#include "choice/choice.h"
#include "kubeclient/podres.h"
#include "plugin/preferred_call-internal.h"
#include "pods/holders.h"
#include "pool/node.h"
#include "tracker/tracker.h"

#define SPECS_DISTRUST_MS 10000 /* a failed source is not asked for so long */
#define OVERTAKING_MS	  200

const struct ledger *plugin_ledger(const struct plugin *p)
{
	return p->env->tracker ? tracker_ledger(p->env->tracker) : NULL;
}

/* --- answers --- */

const bool *plugin_free_vfs(const struct plugin *p, const struct pool *pool, struct arena *a)
{
	bool *free = arena_array(a, pool->n_devs, sizeof(*free));

	if (!p->env->tracker)
		return NULL;
	for (size_t i = 0; i < pool->n_devs; i++)
		free[i] = tracker_judge(p->env->tracker, pool, &pool->devs[i], false, a).state ==
			  HOLDS_IS_FREE;
	return free;
}

static void reply(struct plugin *p, struct rpc_call *call, const struct preferred_request *request,
		  const struct identified *who, enum ledger_gpus known, const char *source)
{
	struct arena *a = rpc_call_arena(call);
	struct id_lists lists = { arena_array(a, request->n, sizeof(*lists.v)), request->n };
	const struct pool *pool = plugin_pool(p);
	const bool *free = pool ? plugin_free_vfs(p, pool, a) : NULL;

	for (size_t i = 0; i < request->n; i++) {
		struct choice choice = { .in.node = NULL };

		lists.v[i] =
			pool ? choice_decide(p->node, pool, &request->v[i], who, free, a, &choice)
			     : (struct ids) { NULL, 0 };
		if (!choice.in.node)
			continue;
		choice.known = known;
		choice.source = source;
		if (who)
			choice.owner = who->owner;
		choice_recent_add(p->recent, clock_mono_ms(), &lists.v[i], &choice);
	}
	plugin_note_admission(p);
	rpc_reply(call, RPC_OK, NULL, kubemsg_encode(&kubemsg_preferred_reply, &lists, a));
}

static void end_call(struct preferred_call *pc)
{
	LIST_REMOVE(pc, link);
	pending_cancel(&pc->specs_asked);
	pending_cancel(&pc->pods_asked);
	pending_cancel(&pc->gpus_asked);
	free(pc);
}

void plugin_preferred_answer(struct preferred_call *pc, enum ledger_gpus known, const char *source)
{
	const struct preferred_container *c = &pc->request.v[0];

	log_debug(
		"kubelet",
		"the kubelet asks which VFs are preferred resource=%s devices=%d free=%zu source=%s",
		pc->plugin->resource, c->size, c->available.n, source);
	reply(pc->plugin, pc->call, &pc->request, &pc->who, known, source);
	end_call(pc);
}

static unsigned time_left(const struct preferred_call *pc)
{
	int64_t left = pc->until_ms - clock_mono_ms();

	return left < 1 ? 1 : (unsigned)left;
}

unsigned plugin_preferred_half_time(const struct preferred_call *pc)
{
	return (time_left(pc) + 1) / 2;
}

/* --- the container that asks --- */

static void know(struct preferred_call *pc, const char *source)
{
	struct identified *who = &pc->who;

	/* The names live in the answer of PodResources; the call goes on. */
	who->owner = ledger_copy_owner(&who->owner, pc->arena);
	log_debug("kubelet",
		  "the container of a GetPreferredAllocation was looked for resource=%s reason=%s",
		  pc->plugin->resource, who->why);
	if (who->found && who->gpus.n)
		plugin_preferred_answer(pc, LEDGER_GPUS_KNOWN, source);
	else
		plugin_preferred_predict(pc, who->why);
}

static void ask_list(struct preferred_call *pc);

/* --- Get, one candidate after the other --- */

static bool was_asked_for(const struct preferred_call *pc, const struct spec_pod *pod,
			  bool *ret_got)
{
	for (size_t i = 0; i < pc->n_gets; i++) {
		if (pc->gets[i] == pod) {
			*ret_got = pc->got[i];
			return true;
		}
	}
	return false;
}

/* Without candidates whose pods the kubelet does not know yet. */
static struct spec_candidates candidates_now(struct preferred_call *pc)
{
	const struct preferred_container *c = &pc->request.v[0];
	struct plugin *p = pc->plugin;
	const struct pods_question q = { .resource = p->resource,
					 .want = (size_t)c->size,
					 .must = c->must };
	struct spec_candidates all = pods_candidates(
		&pc->specs, pods_holders_view(p->env->holders, NULL), &q, p->seen, pc->arena);
	size_t out = 0;
	bool got;

	for (size_t i = 0; i < all.n; i++) {
		if (!was_asked_for(pc, all.v[i].pod, &got) || got)
			all.v[out++] = all.v[i];
	}
	all.n = out;
	return all;
}

static void ask_get(struct preferred_call *pc);

static void got_pod(void *arg, enum podres_result result, const struct pod_list *pods,
		    const char *why)
{
	struct preferred_call *pc = pending_end(arg);

	if (!pc)
		return;
	if (result == PODRES_FAILED) {
		ask_list(pc);
		return;
	}
	pc->got[pc->n_gets - 1] = result == PODRES_OK;
	ask_get(pc);
}

static void ask_get(struct preferred_call *pc)
{
	struct plugin *p = pc->plugin;
	struct spec_candidates c = candidates_now(pc);
	const struct pods_question q = { .resource = p->resource,
					 .want = (size_t)pc->request.v[0].size,
					 .candidates = c };
	bool got;

	if (c.n && was_asked_for(pc, c.v[0].pod, &got)) {
		pc->who = pods_identify(pods_holders_view(p->env->holders, NULL), &q, p->node->inv,
					&p->seen, pc->arena);
		know(pc, "PodResources Get");
	} else if (!c.n || pc->n_gets == PREFERRED_GETS_MAX) {
		ask_list(pc);
	} else {
		pc->gets[pc->n_gets++] = c.v[0].pod;
		kubeclient_podres_ask(p->env->podres,
				      &(struct podres_question) { .kind = PODRES_ASK_GET,
								  .ns = c.v[0].pod->ns,
								  .name = c.v[0].pod->name,
								  .timeout_ms = time_left(pc) },
				      got_pod, pending_new(pc, &pc->pods_asked));
	}
}

/* --- List --- */

static void know_by_list(struct preferred_call *pc)
{
	const struct preferred_container *c = &pc->request.v[0];
	struct plugin *p = pc->plugin;
	const struct pod_list *pods = pods_holders_view(p->env->holders, NULL);
	unsigned ms = p->env->overtaking_ms ? p->env->overtaking_ms : OVERTAKING_MS;
	/* Our first List and the kubelet's calls are on two connections: the List's answer may show
	 * the container of this call. */
	struct pods_question q = { .resource = p->resource,
				   .want = (size_t)c->size,
				   .must = c->must,
				   .listed = true,
				   .doubted = p->admission_ms - p->primed_ms < ms };

	/* A source of specs may lag behind the kubelet: no candidate is no proof. */
	if (pc->has_specs)
		q.candidates = pods_candidates(&pc->specs, pods, &q, p->seen, pc->arena);
	pc->who = pods_identify(pods, &q, p->node->inv, &p->seen, pc->arena);
	know(pc, "PodResources List");
}

static void give_up(struct preferred_call *pc, const char *why)
{
	struct plugin *p = pc->plugin;

	if (kubeclient_podres_state(p->env->podres).support == PODRES_NOTHING) {
		plugin_pods_warn_old(p);
	} else {
		p->pod_list_failures++;
		plugin_warn(p, WARN_PODS, "GPUs of the container are not known reason=%s", why);
	}
	plugin_preferred_answer(pc, LEDGER_GPUS_UNKNOWN, arena_strdup(pc->arena, why));
}

static void listed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct preferred_call *pc = pending_end(arg);
	const struct ids *offered;
	struct tracker *k;

	if (!pc)
		return;
	if (result != PODRES_OK) {
		give_up(pc, why);
		return;
	}
	plugin_warn_reset(pc->plugin, WARN_PODS);
	/* The kubelet offers these VFs, and waits meanwhile: a hold of one that the List lacks is
	 * of a pod that was rejected after its Allocate, or lived for a moment. */
	offered = &pc->request.v[0].available;
	k = pc->plugin->env->tracker;
	if (k) {
		holds_event(tracker_holds(k),
			    &(struct holds_event) {
				    .kind = HOLDS_OFFERED, .vfs = offered->v, .n = offered->n },
			    tracker_now());
		tracker_save(k, NULL, NULL);
	}
	pc->listed = true;
	if (!pc->specs_asked)
		know_by_list(pc);
}

/*
 * Devices set aside already (must) are not recorded by the kubelet, and a List could make it forget
 * them (docs/design/kubelet.md §2.2): then no List is asked for.
 */
static void ask_list(struct preferred_call *pc)
{
	struct plugin *p = pc->plugin;

	if (pc->request.v[0].must.n) {
		plugin_preferred_answer(
			pc, LEDGER_GPUS_UNKNOWN,
			"the kubelet has set devices aside, and a List could make it forget them");
		return;
	}
	kubeclient_podres_ask(
		p->env->podres,
		&(struct podres_question) { .kind = PODRES_ASK_LIST, .timeout_ms = time_left(pc) },
		listed, pending_new(pc, &pc->pods_asked));
}

/* --- Get or List --- */

/* Is a List needed with any specs? */
static bool needs_list(const struct preferred_call *pc)
{
	const struct ledger *l = plugin_ledger(pc->plugin);
	const struct ids *offered = &pc->request.v[0].available;

	if (pc->request.v[0].must.n)
		return false;
	if (kubeclient_podres_state(pc->plugin->env->podres).support != PODRES_GET)
		return true;
	/* The pod of an offered VF that the ledger holds may be gone: only a List shows that. */
	for (size_t i = 0; l && ledger_holds(l) && i < offered->n; i++) {
		if (ledger_find(l, offered->v[i]))
			return true;
	}
	return false;
}

static bool get_is_enough(struct preferred_call *pc)
{
	struct plugin *p = pc->plugin;
	struct spec_candidates c;

	if (!pc->has_specs || needs_list(pc) ||
	    kubeclient_podres_state(p->env->podres).support != PODRES_GET)
		return false;
	if (pc->request.v[0].must.n)
		return true;
	c = candidates_now(pc);
	return pods_holders_complete(p->env->holders, &pc->specs, &c);
}

static void ask_pods(struct preferred_call *pc)
{
	/* Drops the holds of pods that the specs lack. */
	if (pc->has_specs && !pc->listed)
		pods_holders_view(pc->plugin->env->holders, &pc->specs);
	if (pc->listed)
		know_by_list(pc);
	else if (get_is_enough(pc))
		ask_get(pc);
	else
		ask_list(pc);
}

/* --- specs --- */

static void got_specs(void *arg, const struct spec_list *specs, const char *why)
{
	struct preferred_call *pc = pending_end(arg);
	struct plugin *p;

	if (!pc)
		return;
	p = pc->plugin;
	if (specs) {
		pc->specs = kubemsg_podspec_copy(specs, pc->arena);
		pc->has_specs = true;
	} else {
		p->specs_distrust_until_ms = clock_mono_ms() + SPECS_DISTRUST_MS;
		/* The daemon warns of a source that fails, once. */
		log_debug("kubelet",
			  "containers are identified without pod specs resource=%s reason=%s",
			  p->resource, why);
	}
	if (!pc->pods_asked)
		ask_pods(pc);
}

static void begin(struct plugin *p, struct rpc_call *call, const struct preferred_request *request)
{
	struct preferred_call *pc = xcalloc(1, sizeof(*pc));

	pc->plugin = p;
	pc->call = call;
	pc->arena = rpc_call_arena(call);
	pc->request = *request;
	pc->until_ms = clock_mono_ms() + p->env->pod_resources_timeout_ms;
	LIST_INSERT_HEAD(&p->looks, pc, link);
	if (!p->env->specs || clock_mono_ms() < p->specs_distrust_until_ms) {
		ask_pods(pc);
		return;
	}
	p->env->specs->fetch(p->env->specs->ctx, plugin_preferred_half_time(pc), got_specs,
			     pending_new(pc, &pc->specs_asked));
	if (needs_list(pc))
		ask_list(pc);
}

static bool can_be_asked(const struct plugin *p, const struct preferred_request *request)
{
	return p->env->podres &&
	       kubeclient_podres_state(p->env->podres).support != PODRES_NOTHING &&
	       plugin_pool(p) && request->n == 1 && request->v[0].size > 0;
}

void plugin_preferred(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct plugin *p = ctx;
	struct preferred_request r;
	struct err err = { 0 };

	p->preferred++;
	p->admission_ms = clock_mono_ms();
	if (!plugin_is_late(p))
		plugin_note_admission(p);
	if (kubemsg_decode(&kubemsg_preferred, request, rpc_call_arena(call), &r, &err) < 0)
		rpc_reply(call, rpc_status_of(err.code), err.msg, (struct bytes) { NULL, 0 });
	else if (plugin_is_late(p))
		plugin_late_preferred(p, call, &r);
	else if (p->dying || !can_be_asked(p, &r))
		reply(p, call, &r, NULL, LEDGER_GPUS_UNKNOWN, "PodResources is not asked");
	else
		begin(p, call, &r);
}

void plugin_preferred_done(struct plugin *p)
{
	struct preferred_call *pc;

	while ((pc = LIST_FIRST(&p->looks))) {
		rpc_reply(pc->call, RPC_UNAVAILABLE, "the device plugin is stopping",
			  (struct bytes) { NULL, 0 });
		end_call(pc);
	}
}
