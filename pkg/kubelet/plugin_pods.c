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
#include "kubelet/recent.h"
#include "pool/node.h"

#define LIST_BYTES_MAX (16u << 20) /* what Kubernetes' own callers take */

/* A question to PodResources under way. Outlives the plugin if that goes first. */
struct ask {
	LIST_ENTRY(ask) link;
	struct plugin *plugin;		  /* NULL: gone, and the call has been answered */
	struct rpc_call *call;		  /* the kubelet's; NULL: we ask on our own account (priming) */
	struct preferred_request request; /* in the arena of the call */
	int64_t until_ms;
	bool retried;
	uint64_t preferred_before; /* priming: calls so far */
	struct rpc_timer *timer;
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

static void ask_free(struct ask *ask)
{
	if (ask->plugin)
		LIST_REMOVE(ask, link);
	free(ask);
}

static void give_up(struct ask *ask, const char *why)
{
	struct plugin *p = ask->plugin;

	if (p && ask->call) {
		log_debug("kubelet", "%s: GPUs of the container are not known: %s", p->resource, why);
		answer(p, ask->call, &ask->request, NULL);
	}
	ask_free(ask);
}

/* --- List --- */

static void learn(struct ask *ask, const struct pod_list *pods)
{
	struct plugin *p = ask->plugin;
	struct preferred_container *c;
	struct identified who;

	if (!ask->call) {
		/* A container may be under admission by now: then it must not pass for old. */
		if (p->stats.preferred == ask->preferred_before)
			seen_pods_note(p->seen, pods, p->resource, p->node->inv);
		p->primed = true;
		return;
	}
	c = &ask->request.v[0];
	who = identify_container(pods, p->resource, (size_t)c->size, &c->must, p->node->inv, p->seen,
				 rpc_call_arena(ask->call));
	log_debug("kubelet", "%s: %d of %zu devices asked for: %s", p->resource, c->size, c->available.n,
		  who.why);
	answer(p, ask->call, &ask->request, &who);
}

static void list_again(void *arg);

static void listed(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct ask *ask = arg;
	struct plugin *p = ask->plugin;
	struct pod_list pods;
	struct err err = { 0 };

	if (!p) {
		ask_free(ask);
		return;
	}
	if (status == RPC_OK && msg_decode_pod_list(body, a, &pods, &err) == 0) {
		plugin_warn_reset(p, WARN_PODS);
		learn(ask, &pods);
		ask_free(ask);
		return;
	}
	if (status == RPC_RESOURCE_EXHAUSTED && !ask->retried) {
		ask->retried = true;
		ask->timer = rpc_after(p->env->rpc, plugin_jitter(p, 20) + 5, list_again, ask);
		return;
	}
	p->stats.pod_list_failures++;
	plugin_warn(p, WARN_PODS, "%s: %s", p->env->pod_resources, status == RPC_OK ? err.msg : message);
	give_up(ask, "PodResources did not answer");
}

static struct rpc_channel *channel(struct plugin *p)
{
	if (!p->pods)
		p->pods = rpc_channel_open(p->env->rpc, p->env->pod_resources, LIST_BYTES_MAX);
	return p->pods;
}

static bool time_left(const struct ask *ask, unsigned *ret_ms)
{
	int64_t left = ask->until_ms - plugin_now_ms();

	*ret_ms = left > 0 ? (unsigned)left : 0;
	return left > 0;
}

static void list(struct ask *ask)
{
	struct plugin *p = ask->plugin;
	unsigned ms;

	if (!time_left(ask, &ms)) {
		give_up(ask, "PodResources took too long");
		return;
	}
	p->stats.pod_lists++;
	rpc_call_unary(channel(p), PATH_POD_LIST, (struct bytes) { NULL, 0 }, ms, listed, ask);
}

static void list_again(void *arg)
{
	struct ask *ask = arg;

	ask->timer = NULL;
	list(ask);
}

/* --- which kubelet is it? --- */

/*
 * Get came with 1.27 (and says so even where it is switched off). A List at the wrong moment could bring
 * kubelets of that time down (issue #119560, fixed in 1.30): older ones are never asked.
 */
static void probed(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct ask *ask = arg;
	struct plugin *p = ask->plugin;

	(void)message;
	(void)body;
	if (!p) {
		ask_free(ask);
	} else if (status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED || status == RPC_CANCELLED) {
		give_up(ask, "PodResources is not there");
	} else if (status == RPC_UNIMPLEMENTED) {
		log_info("kubelet",
			 "%s: this kubelet is older than 1.27: VFs are chosen without knowing the GPUs",
			 p->resource);
		p->pods_support = PODS_NEVER;
		give_up(ask, "the kubelet is too old");
	} else {
		p->pods_support = PODS_USABLE;
		if (ask->call || !p->primed)
			list(ask);
		else
			ask_free(ask);
	}
}

static void probe(struct ask *ask)
{
	_cleanup_arena_ struct arena *a = arena_new(64);
	struct plugin *p = ask->plugin;
	unsigned ms;

	time_left(ask, &ms);
	rpc_call_unary(channel(p), PATH_POD_GET, msg_encode_pod_get_request("", "", a), ms, probed, ask);
}

static struct ask *ask_new(struct plugin *p, struct rpc_call *call)
{
	struct ask *ask = xcalloc(1, sizeof(*ask));

	ask->plugin = p;
	ask->call = call;
	ask->until_ms = plugin_now_ms() + p->env->pod_resources_timeout_ms;
	ask->preferred_before = p->stats.preferred;
	LIST_INSERT_HEAD(&p->asks, ask, link);
	return ask;
}

static void ask_begin(struct ask *ask)
{
	if (ask->plugin->pods_support == PODS_UNKNOWN)
		probe(ask);
	else
		list(ask);
}

/*
 * With devices set aside already (must) the kubelet has not recorded them, and a List could make it forget
 * them (reference kubelet.md §0.4): then we do without.
 */
static bool worth_asking(const struct plugin *p, const struct preferred_request *request)
{
	return p->env->pod_resources && p->pods_support != PODS_NEVER && plugin_pool(p) && request->n == 1 &&
	       !request->v[0].must.n && request->v[0].size > 0;
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
	ask_begin(ask);
}

void plugin_pods_reset(struct plugin *p)
{
	p->pods_support = PODS_UNKNOWN;
}

/* Find out in advance what kubelet this is, and, once, who has GPUs without ever asking for ours. */
void plugin_pods_prime(struct plugin *p)
{
	if (p->env->pod_resources && p->pods_support == PODS_UNKNOWN)
		ask_begin(ask_new(p, NULL));
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
		if (ask->timer) {
			rpc_timer_cancel(ask->timer);
			free(ask);
		}
	}
	rpc_channel_close(STEAL(p->pods));
}
