#include "plugin/plugin-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "choice/choice.h"
#include "endpoint/endpoint.h"
#include "grant/grant.h"
#include "holds/holds.h"
#include "plugin/record-internal.h"
#include "pods/holders.h"
#include "pool/node.h"
#include "status/stats.h"
#include "tracker/tracker.h"

/* Each is a pod that failed, unless a client other than the kubelet calls. */
#define REFUSALS_A_MINUTE 10

const struct pool *plugin_pool(const struct plugin *p)
{
	if (p->shared)
		return p->node ? node_shared(p->node, p->resource) : NULL;
	return p->node ? node_pool(p->node, p->resource) : NULL;
}

void plugin_warn(struct plugin *p, enum warning kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_warn_rated(&p->warned[kind], kind == WARN_REFUSED ? REFUSALS_A_MINUTE : 1, "kubelet",
		       p->resource, fmt, ap);
	va_end(ap);
}

void plugin_warn_reset(struct plugin *p, enum warning kind)
{
	p->warned[kind] = (struct log_rate) { 0 };
}

/* --- the calls of the kubelet --- */

static struct plugin_options options_of(bool shared)
{
	return (struct plugin_options) { .preferred_allocation = !shared,
					 .pre_start_required = !shared };
}

void plugin_refuse(struct rpc_call *call, const struct err *err)
{
	rpc_reply(call, rpc_status_of(err->code), err->msg, (struct bytes) { NULL, 0 });
}

static void get_options(void *ctx, struct rpc_call *call, struct bytes request)
{
	const struct plugin *p = endpoint_ctx(ctx);
	const struct plugin_options options = options_of(p->shared);
	struct err err = { 0 };

	if (plugin_late_check_kubelet(p, rpc_call_user_agent(call), &err) < 0) {
		plugin_refuse(call, &err);
		return;
	}
	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_options, &options, rpc_call_arena(call)));
}

static struct device_list list_of(void *ctx, struct arena *a)
{
	const struct plugin *p = ctx;
	const struct pool *pool = plugin_pool(p);
	struct device_list list;

	if (!pool)
		return (struct device_list) { NULL, 0 };
	if (plugin_is_late(p))
		return plugin_late_list(p, a);
	list = choice_list(pool, a);
	for (size_t i = 0; i < list.n && p->env->tracker && !p->shared; i++)
		list.v[i].healthy =
			tracker_judge(p->env->tracker, pool, &pool->devs[i], false, a).offered;
	return list;
}

static int allocate_one(struct plugin *p, const struct pool *pool, const struct ids *ids,
			struct arena *a, struct grants *grants, struct edits *ret, struct err *err)
{
	struct choice *choice = choice_recent_take(p->recent, clock_mono_ms(), ids);
	struct given *given = &grants->v[grants->n++];
	int r;

	given->gpus = choice_known_gpus(choice, p->node->inv, grants->arena);
	plugin_record_begin(&given->record, p, choice, ids, grants->arena);
	r = grant_of_ids(p->node, pool, ids, p->env->root, given->gpus, grants->arena,
			 &given->grant, err);
	if (r == 0)
		r = plugin_files_allocate(p, &given->grant, a, ret, err);
	if (r == 0)
		plugin_record_answer(&given->record, ret, grants->arena);
	return r;
}

static int allocate_shared(struct plugin *p, const struct pool *pool, const struct id_lists *lists,
			   struct arena *a, struct bytes *ret, struct err *err)
{
	struct edits *edits = arena_array(a, lists->n, sizeof(*edits));
	struct grant grant;

	for (size_t i = 0; i < lists->n; i++) {
		int r = grant_of_ids(p->node, pool, &lists->v[i], p->env->root,
				     (struct gpu_set) { 0 }, a, &grant, err);

		if (r == 0)
			r = render_grant(&grant, a, &edits[i], err);
		if (r < 0)
			return r;
		for (size_t k = 0; k < edits[i].n_devs; k++)
			edits[i].devs[k].permissions = "rwm"; /* as the peer gives them */
	}
	*ret = kubemsg_encode(&kubemsg_allocate_reply, &(struct edits_list) { edits, lists->n }, a);
	return 0;
}

static int allocate_all(struct plugin *p, struct bytes request, struct arena *a,
			struct grants *grants, struct bytes *ret, struct err *err)
{
	const struct pool *pool = plugin_pool(p);
	struct id_lists lists;
	struct edits *edits;
	int r;

	r = kubemsg_decode(&kubemsg_allocate, request, a, &lists, err);
	if (r < 0)
		return r;
	if (!pool)
		return err_set(err, EAGAIN, "%s is not known on this node yet", p->resource);
	if (p->shared)
		return allocate_shared(p, pool, &lists, a, ret, err);
	edits = arena_array(a, lists.n, sizeof(*edits));
	grants->v = arena_array(grants->arena, lists.n, sizeof(*grants->v));
	for (size_t i = 0; i < lists.n; i++) {
		r = plugin_is_late(p)
			    ? plugin_late_allocate(p, &lists.v[i], a, &edits[i], err)
			    : allocate_one(p, pool, &lists.v[i], a, grants, &edits[i], err);
		if (r < 0)
			return r;
	}
	*ret = kubemsg_encode(&kubemsg_allocate_reply, &(struct edits_list) { edits, lists.n }, a);
	return 0;
}

static void allocate(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct grants *grants = plugin_grants_new();
	struct plugin *p = endpoint_ctx(ctx);
	struct err err = { 0 };
	struct bytes body;

	if (allocate_all(p, request, rpc_call_arena(call), grants, &body, &err) == 0) {
		rpc_reply(call, RPC_OK, NULL, body);
		/* The kubelet does not wait for what follows. */
		for (size_t i = 0; i < grants->n; i++) {
			struct record *r = &grants->v[i].record;

			plugin_record_commit(r, p);
			if (p->devinfo)
				plugin_devinfo_ensure(p->devinfo, r->devs, r->n_devs);
		}
		plugin_files_later(p, grants);
	} else {
		plugin_warn(p, WARN_REFUSED, "Allocate refused error=%s", err.msg);
		plugin_refuse(call, &err);
		plugin_grants_free(grants);
	}
	if (!p->shared)
		p->admission_ms = clock_mono_ms();
}

/* The options say that neither call is wanted; an empty answer is right for both all the same. */
static bool nothing_to_do(const struct plugin *p, struct rpc_call *call)
{
	if (p->shared)
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { NULL, 0 });
	return p->shared;
}

static void preferred(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct plugin *p = endpoint_ctx(ctx);

	if (!nothing_to_do(p, call))
		plugin_preferred(p, call, request);
}

static void pre_start(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct plugin *p = endpoint_ctx(ctx);

	if (nothing_to_do(p, call))
		return;
	if (plugin_is_late(p))
		plugin_late_pre_start(p, call, request);
	else
		plugin_start(p, call, request);
}

static void count_call(void *ctx, const struct rpc_method *method, enum rpc_status status,
		       int64_t ns)
{
	static const char *const paths[STATS_CALL_MAX] = {
		[STATS_OPTIONS] = PATH_OPTIONS,
		[STATS_PREFERRED] = PATH_PREFERRED,
		[STATS_ALLOCATE] = PATH_ALLOCATE,
		[STATS_PRE_START] = PATH_PRE_START,
	};
	struct plugin *p = endpoint_ctx(ctx);

	for (int i = 0; i < STATS_CALL_MAX; i++) {
		if (!strcmp(method->path, paths[i]))
			stats_count_call(p->counts, (enum stats_call)i, (unsigned)status, ns);
	}
	if (status != RPC_OK && !strcmp(method->path, PATH_ALLOCATE))
		p->refused_ms = clock_mono_ms();
}

static const struct rpc_method calls[] = {
	{ .path = PATH_OPTIONS, .unary = get_options, .answered = count_call },
	{ .path = PATH_PREFERRED, .unary = preferred, .answered = count_call },
	{ .path = PATH_ALLOCATE, .unary = allocate, .answered = count_call },
	{ .path = PATH_PRE_START, .unary = pre_start, .answered = count_call },
};
static_assert(ARRAY_LEN(calls) <= ENDPOINT_CALLS_MAX, "the endpoint has no room for these");

static bool is_ready(void *ctx)
{
	return plugin_late_is_ready(ctx); /* plugin_kick() when it is */
}

static void kubelet_came(void *ctx)
{
	plugin_pods_reset(ctx);
}

static void registered(void *ctx)
{
	const struct plugin *p = ctx;

	if (!p->shared)
		plugin_pods_prime(ctx);
}

static void closed(void *ctx)
{
	struct plugin *p = ctx;

	node_unref(p->node);
	pods_holders_free(p->allocatable);
	pods_seen_free(p->seen);
	choice_recent_free(p->recent);
	free(p->resource);
	free(p);
}

/* --- for the daemon --- */

static struct plugin *new (const struct plugin_env *env, const char *resource, bool shared)
{
	struct plugin *p = xcalloc(1, sizeof(*p));

	p->env = env;
	p->resource = xstrdup(resource);
	p->shared = shared;
	p->counts = stats_of(env->stats, resource);
	p->allocatable = pods_holders_new();
	p->recent = choice_recent_new();
	LIST_INIT(&p->looks);
	LIST_INIT(&p->starts);
	TAILQ_INIT(&p->given);
	p->endpoint = endpoint_new(&env->endpoint,
				   &(struct endpoint_plugin) { .ctx = p,
							       .resource = p->resource,
							       .options = options_of(shared),
							       .counts = p->counts,
							       .methods = calls,
							       .n_methods = ARRAY_LEN(calls),
							       .is_ready = is_ready,
							       .list = list_of,
							       .kubelet_came = kubelet_came,
							       .registered = registered,
							       .closed = closed });
	return p;
}

struct plugin *plugin_new(const struct plugin_env *env, const char *resource)
{
	struct plugin *p = new (env, resource, false);

	if (env->devinfo_dir)
		p->devinfo = plugin_devinfo_new(p);
	return p;
}

struct plugin *plugin_new_shared(const struct plugin_env *env, const char *resource)
{
	return new (env, resource, true);
}

void plugin_relist(struct plugin *p)
{
	endpoint_relist(p->endpoint);
}

void plugin_update(struct plugin *p, struct node *node)
{
	struct node *before = p->node;
	const struct pool *pool;

	p->node = node_ref(node);
	pool = plugin_pool(p);
	if (!p->shared)
		plugin_files_update(p);
	if (!endpoint_is_open(p->endpoint) && pool && pool->n_devs)
		endpoint_serve(p->endpoint);
	else
		plugin_relist(p); /* nothing is sent if it is the same */
	node_unref(before);
	if (p->devinfo && !plugin_is_late(p))
		plugin_devinfo_update(p->devinfo);
}

void plugin_kick(struct plugin *p)
{
	if (plugin_is_served(p))
		endpoint_serve(p->endpoint);
	endpoint_check(p->endpoint);
}

bool plugin_is_registered(const struct plugin *p)
{
	return endpoint_is_registered(p->endpoint);
}

const char *plugin_problem(const struct plugin *p)
{
	const char *late = plugin_late_problem(p);

	if (plugin_is_registered(p))
		return endpoint_problem(p->endpoint);
	return late ? late : "the kubelet does not watch its devices";
}

bool plugin_is_served(const struct plugin *p)
{
	const struct pool *pool = plugin_pool(p);

	return endpoint_is_open(p->endpoint) || (pool && pool->n_devs);
}

struct plugin_stats plugin_stats(const struct plugin *p)
{
	return (struct plugin_stats) { endpoint_stats(p->endpoint), p->pod_list_failures,
				       p->refused_ms };
}

/* What is under way ends later, and then the memory goes. */
void plugin_end(struct plugin *p)
{
	plugin_devinfo_remove(p->devinfo);
	plugin_free(p);
}

void plugin_free(struct plugin *p)
{
	p->dying = true;
	plugin_pods_done(p);
	plugin_preferred_done(p);
	plugin_start_done(p);
	plugin_files_done(p);
	plugin_late_done(p);
	plugin_devinfo_free(STEAL(p->devinfo));
	endpoint_close(p->endpoint);
}
