/*
 * GetPreferredAllocation, with a look at pod specs and PodResources in between: which container is
 * it, and which GPUs has it got? Nothing that goes wrong there is an error for the kubelet (it
 * would fail the pod): the answer then does without.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pending.h"
#include "base/str.h"
#include "choice/choice.h"
#include "kubeclient/podres.h"
#include "plugin/preferred_call.h"
#include "plugin/recent_answers.h"
#include "pods/holders.h"
#include "pool/node.h"
#include "tracker/tracker.h"

#define SPECS_DISTRUST_MS 10000 /* a source that failed is left alone */
#define OVERTAKING_MS	  200

const struct ledger *plugin_ledger(const struct plugin *p)
{
	return p->env->tracker ? tracker_ledger(p->env->tracker) : NULL;
}

/* --- answers --- */

static struct ids choose(struct plugin *p, const struct preferred_container *req,
			 const struct identified *who, struct arena *a, struct choice *ret)
{
	const struct pool *pool = plugin_pool(p);

	*ret = (struct choice) { .node = NULL };
	if (!pool)
		return (struct ids) { NULL, 0 };
	return choice_decide(p->node, pool, req, who, plugin_ledger(p), a, ret);
}

static void reply(struct plugin *p, struct rpc_call *call, const struct preferred_request *request,
		  const struct identified *who, enum ledger_gpus known, const char *source)
{
	struct arena *a = rpc_call_arena(call);
	struct id_lists lists = { arena_array(a, request->n, sizeof(*lists.v)), request->n };
	struct choice choice;

	for (size_t i = 0; i < request->n; i++) {
		lists.v[i] = choose(p, &request->v[i], who, a, &choice);
		if (!choice.node)
			continue;
		choice.known = known;
		choice.source = source;
		if (who && who->found)
			choice.owner = (struct ledger_owner) { who->ns, who->pod, who->uid,
							       who->container };
		plugin_recent_add(p->recent, clock_mono_ms(), &lists.v[i], &choice);
	}
	if (known == LEDGER_GPUS_KNOWN)
		p->stats.preferred_with_gpus++;
	else
		p->stats.preferred_without_gpus++;
	p->stats.preferred_predicted += known == LEDGER_GPUS_PREDICTED;
	plugin_note_admission(p);
	rpc_reply(call, RPC_OK, NULL, kubemsg_encode_preferred_reply(&lists, a));
}

static void look_end(struct preferred_call *look)
{
	LIST_REMOVE(look, link);
	pending_cancel(&look->specs_asked);
	pending_cancel(&look->pods_asked);
	pending_cancel(&look->gpus_asked);
	free(look);
}

void plugin_preferred_answer(struct preferred_call *look, enum ledger_gpus known,
			     const char *source)
{
	const struct preferred_container *c = &look->request.v[0];

	log_debug("kubelet",
		  "the kubelet asks which VFs are preferred"
		  " resource=%s devices=%d free=%zu source=%s",
		  look->plugin->resource, c->size, c->available.n, source);
	reply(look->plugin, look->call, &look->request, &look->who, known, source);
	look_end(look);
}

static unsigned time_left(const struct preferred_call *look)
{
	int64_t left = look->until_ms - clock_mono_ms();

	return left < 1 ? 1 : (unsigned)left;
}

unsigned plugin_preferred_half_time(const struct preferred_call *look)
{
	return (time_left(look) + 1) / 2;
}

/* --- who it is --- */

/* The names live in what PodResources said; the look goes on. */
static void keep_names(struct preferred_call *look)
{
	struct identified *who = &look->who;

	if (!who->found)
		return;
	who->ns = arena_strdup(look->arena, who->ns);
	who->pod = arena_strdup(look->arena, who->pod);
	who->container = arena_strdup(look->arena, who->container);
}

static void know(struct preferred_call *look, const char *source)
{
	keep_names(look);
	log_debug("kubelet", "the container that asks was looked for resource=%s reason=%s",
		  look->plugin->resource, look->who.why);
	if (look->who.found && look->who.n_gpus)
		plugin_preferred_answer(look, LEDGER_GPUS_KNOWN, source);
	else
		plugin_preferred_predict(look, look->who.why);
}

static void ask_list(struct preferred_call *look);

/* --- Get, one candidate after the other --- */

static bool was_asked_for(const struct preferred_call *look, const struct spec_pod *pod,
			  bool *ret_got)
{
	for (size_t i = 0; i < look->n_gets; i++) {
		if (look->gets[i] == pod) {
			*ret_got = look->got[i];
			return true;
		}
	}
	return false;
}

/* Those whose pods the kubelet does not know yet are out. */
static struct spec_candidates candidates_now(struct preferred_call *look)
{
	const struct preferred_container *c = &look->request.v[0];
	struct plugin *p = look->plugin;
	struct spec_candidates all =
		identify_candidates(&look->specs, holders_view(p->env->holders), false, p->resource,
				    (size_t)c->size, c->must.n > 0, p->seen_specs, look->arena);
	size_t out = 0;
	bool got;

	for (size_t i = 0; i < all.n; i++) {
		if (!was_asked_for(look, all.v[i].pod, &got) || got)
			all.v[out++] = all.v[i];
	}
	all.n = out;
	return all;
}

static void ask_get(struct preferred_call *look);

static void got_pod(void *arg, enum podres_result result, const struct pod_list *pods,
		    const char *why)
{
	struct preferred_call *look = pending_end(arg);

	(void)pods;
	(void)why;
	if (!look)
		return;
	if (result == PODRES_FAILED) {
		ask_list(look);
		return;
	}
	look->got[look->n_gets - 1] = result == PODRES_OK;
	ask_get(look);
}

static void ask_get(struct preferred_call *look)
{
	struct plugin *p = look->plugin;
	struct spec_candidates c = candidates_now(look);
	bool got;

	if (c.n && was_asked_for(look, c.v[0].pod, &got)) {
		look->who = identify_by_specs(&c, holders_view(p->env->holders), p->resource,
					      p->node->inv, p->seen_specs, look->arena);
		know(look, "PodResources Get");
	} else if (!c.n || look->n_gets == LOOK_GETS_MAX) {
		ask_list(look);
	} else {
		look->gets[look->n_gets++] = c.v[0].pod;
		podres_get(p->env->podres, c.v[0].pod->ns, c.v[0].pod->name, time_left(look),
			   got_pod, pending_new(look, &look->pods_asked));
	}
}

/* --- List --- */

/* Our first List and the kubelet's calls are on two connections: its answer may show who asks now.
 */
static bool may_be_overtaken(const struct plugin *p)
{
	unsigned ms = p->env->overtaking_ms ? p->env->overtaking_ms : OVERTAKING_MS;

	return p->admission_ms - p->primed_ms < ms;
}

static void identify(struct preferred_call *look)
{
	const struct preferred_container *c = &look->request.v[0];
	struct plugin *p = look->plugin;
	const struct pod_list *pods = holders_view(p->env->holders);
	const struct hw_inventory *inv = p->node->inv;
	struct spec_candidates found = { NULL, 0 };

	if (look->has_specs)
		found = identify_candidates(&look->specs, pods, true, p->resource, (size_t)c->size,
					    false, p->seen_specs, look->arena);
	/* A source of specs may lag behind the kubelet: nobody in it is not nobody. */
	if (!found.n) {
		if (may_be_overtaken(p))
			seen_pods_doubt(p->seen);
		look->who = identify_container(pods, p->resource, (size_t)c->size, &c->must, inv,
					       p->seen, look->arena);
		return;
	}
	look->who = identify_by_specs(&found, pods, p->resource, inv, p->seen_specs, look->arena);
	seen_pods_note(p->seen, pods, p->resource, inv);
}

static void give_up(struct preferred_call *look, const char *why)
{
	struct plugin *p = look->plugin;

	if (podres_support(p->env->podres) == PODRES_NOTHING) {
		plugin_pods_tell_old(p);
	} else {
		p->stats.pod_list_failures++;
		plugin_warn(p, WARN_PODS, "GPUs of the container are not known reason=%s", why);
	}
	plugin_preferred_answer(look, LEDGER_GPUS_UNKNOWN, arena_strdup(look->arena, why));
}

/* The kubelet offers these, and waits for us meanwhile: what it has just not shown is of pods that
 * were rejected after their Allocate, or lived for a moment. */
static void note_offered(struct preferred_call *look)
{
	const struct ids *offered = &look->request.v[0].available;
	struct tracker *k = look->plugin->env->tracker;

	if (!k)
		return;
	holds_offered(tracker_holds(k), offered->v, offered->n, tracker_now());
	tracker_save(k, NULL, NULL);
}

static void know_by_list(struct preferred_call *look)
{
	identify(look);
	know(look, "PodResources List");
}

static void listed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct preferred_call *look = pending_end(arg);

	(void)pods;
	if (!look)
		return;
	if (result != PODRES_OK) {
		give_up(look, why);
		return;
	}
	plugin_warn_reset(look->plugin, WARN_PODS);
	note_offered(look);
	look->listed = true;
	if (!look->specs_asked)
		know_by_list(look);
}

/*
 * With devices set aside already (must) the kubelet has not recorded them, and a List could make it
 * forget them (docs/design/kubelet.md §2.2): then we do without.
 */
static void ask_list(struct preferred_call *look)
{
	struct plugin *p = look->plugin;

	if (look->request.v[0].must.n) {
		plugin_preferred_answer(
			look, LEDGER_GPUS_UNKNOWN,
			"the kubelet has set devices aside, and a List could make it forget them");
		return;
	}
	p->stats.pod_lists++;
	podres_list(p->env->podres, time_left(look), listed, pending_new(look, &look->pods_asked));
}

/* --- which of them --- */

/* A VF on offer that the ledger says is held: its pod may be gone, only a List tells. */
static bool offers_held(const struct preferred_call *look)
{
	const struct ledger *l = plugin_ledger(look->plugin);
	const struct ids *offered = &look->request.v[0].available;

	for (size_t i = 0; l && ledger_holds(l) && i < offered->n; i++) {
		if (ledger_find(l, offered->v[i]))
			return true;
	}
	return false;
}

/* Whatever the specs say. */
static bool needs_list(const struct preferred_call *look)
{
	return !look->request.v[0].must.n &&
	       (podres_support(look->plugin->env->podres) != PODRES_GET || offers_held(look));
}

static bool get_is_enough(struct preferred_call *look)
{
	struct plugin *p = look->plugin;
	struct spec_candidates c;

	if (!look->has_specs || needs_list(look) || podres_support(p->env->podres) != PODRES_GET)
		return false;
	if (look->request.v[0].must.n)
		return true;
	c = candidates_now(look);
	return holders_complete(p->env->holders, &look->specs, &c);
}

static void ask_pods(struct preferred_call *look)
{
	if (look->has_specs && !look->listed)
		holders_keep(look->plugin->env->holders, &look->specs);
	if (look->listed)
		know_by_list(look);
	else if (get_is_enough(look))
		ask_get(look);
	else
		ask_list(look);
}

/* --- specs --- */

static void got_specs(void *arg, const struct spec_list *specs, const char *why)
{
	struct preferred_call *look = pending_end(arg);
	struct plugin *p;

	if (!look)
		return;
	p = look->plugin;
	if (specs) {
		look->specs = identify_copy_specs(specs, look->arena);
		look->has_specs = true;
	} else {
		p->specs_distrust_until_ms = clock_mono_ms() + SPECS_DISTRUST_MS;
		/* The daemon warns of a source that fails, once. */
		log_debug("kubelet",
			  "containers are identified without pod specs resource=%s reason=%s",
			  p->resource, why);
	}
	if (!look->pods_asked)
		ask_pods(look);
}

static void begin(struct plugin *p, struct rpc_call *call, const struct preferred_request *request)
{
	struct preferred_call *look = xcalloc(1, sizeof(*look));

	look->plugin = p;
	look->call = call;
	look->arena = rpc_call_arena(call);
	look->request = *request;
	look->until_ms = clock_mono_ms() + p->env->pod_resources_timeout_ms;
	LIST_INSERT_HEAD(&p->looks, look, link);
	if (!p->env->specs || clock_mono_ms() < p->specs_distrust_until_ms) {
		ask_pods(look);
		return;
	}
	p->env->specs->fetch(p->env->specs->ctx, plugin_preferred_half_time(look), got_specs,
			     pending_new(look, &look->specs_asked));
	if (needs_list(look))
		ask_list(look);
}

static bool worth_a_look(const struct plugin *p, const struct preferred_request *request)
{
	return p->env->podres && podres_support(p->env->podres) != PODRES_NOTHING &&
	       plugin_pool(p) && request->n == 1 && request->v[0].size > 0;
}

void plugin_preferred(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct plugin *p = ctx;
	struct preferred_request r;
	struct err err = { 0 };

	p->stats.preferred++;
	p->admission_ms = clock_mono_ms();
	if (!plugin_is_late(p))
		plugin_note_admission(p);
	if (kubemsg_decode_preferred(request, rpc_call_arena(call), &r, &err) < 0)
		rpc_reply(call, rpc_status_of(err.code), err.msg, (struct bytes) { NULL, 0 });
	else if (plugin_is_late(p))
		plugin_late_preferred(p, call, &r);
	else if (p->dying || !worth_a_look(p, &r))
		reply(p, call, &r, NULL, LEDGER_GPUS_UNKNOWN, "PodResources is not asked");
	else
		begin(p, call, &r);
}

void plugin_preferred_done(struct plugin *p)
{
	struct preferred_call *look;

	while ((look = LIST_FIRST(&p->looks))) {
		rpc_reply(look->call, RPC_UNAVAILABLE, "the device plugin is stopping",
			  (struct bytes) { NULL, 0 });
		look_end(look);
	}
}
