/*
 * GetPreferredAllocation, with a look at PodResources in between: which container is it, and which GPUs has
 * it got? Nothing that goes wrong there is an error for the kubelet (it would fail the pod): the answer then
 * does without.
 */
#include "kubelet/plugin-internal.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubelet/answer.h"
#include "kubelet/podres.h"
#include "kubelet/recent.h"
#include "pool/node.h"

/* A question to PodResources under way. Outlives the plugin if that goes first. */
struct ask {
	LIST_ENTRY(ask) link;
	struct plugin *plugin;		  /* NULL: gone, and the call has been answered */
	struct rpc_call *call;		  /* the kubelet's; NULL: we ask on our own account (priming) */
	struct preferred_request request; /* in the arena of the call */
	uint64_t preferred_before;	  /* priming: calls so far */
};

static void answer(struct plugin *p, struct rpc_call *call, const struct preferred_request *request,
		   const struct identified *who)
{
	struct arena *a = rpc_call_arena(call);
	const struct pool *pool = plugin_pool(p);
	struct id_lists lists = { arena_array(a, request->n, sizeof(*lists.v)), request->n };
	bool known = who && who->found;

	for (size_t i = 0; pool && i < request->n; i++)
		lists.v[i] = answer_preferred(p->node, pool, &request->v[i], who, a);
	if (known && request->n)
		recent_add(p->recent, plugin_now_ms(), &lists.v[0], who->gpus, who->n_gpus, p->node->inv);
	if (known)
		p->stats.preferred_with_gpus++;
	else
		p->stats.preferred_without_gpus++;
	rpc_reply(call, RPC_OK, NULL, msg_encode_preferred_reply(&lists, a));
}

static struct ask *ask_new(struct plugin *p, struct rpc_call *call)
{
	struct ask *ask = xcalloc(1, sizeof(*ask));

	ask->plugin = p;
	ask->call = call;
	ask->preferred_before = p->stats.preferred;
	LIST_INSERT_HEAD(&p->asks, ask, link);
	return ask;
}

static void ask_free(struct ask *ask)
{
	if (ask->plugin)
		LIST_REMOVE(ask, link);
	free(ask);
}

static void prime(struct ask *ask, const struct pod_list *pods)
{
	struct plugin *p = ask->plugin;

	/* A container may be under admission by now: then it must not pass for old. */
	if (p->stats.preferred == ask->preferred_before)
		seen_pods_note(p->seen, pods, p->resource, p->node->inv);
	p->primed = true;
}

static void learn(struct ask *ask, const struct pod_list *pods)
{
	const struct preferred_container *c = &ask->request.v[0];
	struct plugin *p = ask->plugin;
	struct identified who = identify_container(pods, p->resource, (size_t)c->size, &c->must, p->node->inv,
						   p->seen, rpc_call_arena(ask->call));

	log_debug("kubelet", "%s: %d of %zu devices asked for: %s", p->resource, c->size, c->available.n,
		  who.why);
	answer(p, ask->call, &ask->request, &who);
}

static void tell_old(struct plugin *p)
{
	if (p->told_old)
		return;
	p->told_old = true;
	log_info("kubelet", "%s: this kubelet is older than 1.27: VFs are chosen without knowing the GPUs",
		 p->resource);
}

static void give_up(struct ask *ask, const char *why)
{
	struct plugin *p = ask->plugin;

	if (podres_support(p->env->podres) == PODRES_NOTHING) {
		tell_old(p);
	} else if (ask->call) {
		p->stats.pod_list_failures++;
		plugin_warn(p, WARN_PODS, "GPUs of the container are not known: %s", why);
	}
	if (ask->call)
		answer(p, ask->call, &ask->request, NULL);
}

static void listed(void *arg, enum podres_result result, const struct pod_list *pods, const char *why)
{
	struct ask *ask = arg;
	struct plugin *p = ask->plugin;

	if (p && result != PODRES_OK) {
		give_up(ask, why);
	} else if (p) {
		plugin_warn_reset(p, WARN_PODS);
		if (ask->call)
			learn(ask, pods);
		else
			prime(ask, pods);
	}
	ask_free(ask);
}

static void ask_list(struct ask *ask)
{
	struct plugin *p = ask->plugin;

	p->stats.pod_lists++;
	podres_list(p->env->podres, p->env->pod_resources_timeout_ms, listed, ask);
}

/*
 * With devices set aside already (must) the kubelet has not recorded them, and a List could make it forget
 * them (reference kubelet.md §0.4): then we do without.
 */
static bool worth_asking(const struct plugin *p, const struct preferred_request *request)
{
	return p->env->podres && podres_support(p->env->podres) != PODRES_NOTHING && plugin_pool(p) &&
	       request->n == 1 && !request->v[0].must.n && request->v[0].size > 0;
}

void plugin_preferred(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct plugin *p = ctx;
	struct preferred_request r;
	struct err err = { 0 };
	struct ask *ask;

	p->stats.preferred++;
	if (msg_decode_preferred(request, rpc_call_arena(call), &r, &err) < 0) {
		rpc_reply(call, rpc_status_of(err.code), err.msg, (struct bytes) { NULL, 0 });
		return;
	}
	if (p->dying || !worth_asking(p, &r)) {
		answer(p, call, &r, NULL);
		return;
	}
	ask = ask_new(p, call);
	ask->request = r;
	ask_list(ask);
}

void plugin_pods_reset(struct plugin *p)
{
	p->told_old = false;
	if (p->env->podres)
		podres_reset(p->env->podres);
}

static void probed(void *arg, enum podres_result result, const struct pod_list *pods, const char *why)
{
	struct ask *ask = arg;

	(void)result;
	(void)pods;
	(void)why;
	if (ask->plugin && podres_support(ask->plugin->env->podres) == PODRES_NOTHING)
		tell_old(ask->plugin);
	ask_free(ask);
}

/* Find out in advance what kubelet this is, and, once, who has GPUs without ever asking for ours. */
void plugin_pods_prime(struct plugin *p)
{
	struct podres *pods = p->env->podres;

	if (!pods)
		return;
	if (!p->primed)
		ask_list(ask_new(p, NULL));
	else if (podres_support(pods) == PODRES_UNKNOWN)
		podres_get(pods, "", "", p->env->pod_resources_timeout_ms, probed, ask_new(p, NULL));
}

void plugin_pods_done(struct plugin *p)
{
	struct ask *ask;

	while ((ask = LIST_FIRST(&p->asks))) {
		if (ask->call)
			rpc_reply(ask->call, RPC_UNAVAILABLE, "the device plugin is stopping",
				  (struct bytes) { NULL, 0 });
		LIST_REMOVE(ask, link);
		ask->plugin = NULL;
	}
}
