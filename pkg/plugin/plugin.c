#include "plugin/plugin-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "choice/choice.h"
#include "grant/grant.h"
#include "holds/holds.h"
#include "choice/recent.h"
#include "plugin/record-internal.h"
#include "pods/holders.h"
#include "pool/node.h"
#include "stats/stats.h"
#include "tracker/tracker.h"

#define SERVE_RETRY_MS 1000
/* Each is a pod that failed, unless a client other than the kubelet calls. */
#define REFUSALS_A_MINUTE 10

unsigned plugin_jitter(struct plugin *p, unsigned ms)
{
	return ms - ms / 4 + (unsigned)rand_r(&p->random) % (ms / 2 + 1);
}

struct plugin_options plugin_options(const struct plugin *p)
{
	return (struct plugin_options) { .preferred_allocation = !p->shared,
					 .pre_start_required = !p->shared };
}

const struct pool *plugin_pool(const struct plugin *p)
{
	if (p->shared)
		return p->node ? node_shared(p->node, p->resource) : NULL;
	return p->node ? node_pool(p->node, p->resource) : NULL;
}

void plugin_warn(struct plugin *p, enum warning kind, const char *fmt, ...)
{
	unsigned most = kind == WARN_REFUSED ? REFUSALS_A_MINUTE : 1;
	char event[EVENT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	event_compose(event, sizeof(event), fmt, ap);
	va_end(ap);
	event_extend(event, sizeof(event), " resource=%s", p->resource);
	log_event(log_rate_count(&p->warned[kind]) <= most ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
		  "kubelet", event);
}

void plugin_warn_reset(struct plugin *p, enum warning kind)
{
	p->warned[kind] = (struct log_rate) { 0 };
}

/* --- the five calls of the kubelet --- */

void plugin_refuse(struct rpc_call *call, const struct err *err)
{
	rpc_reply(call, rpc_status_of(err->code), err->msg, (struct bytes) { NULL, 0 });
}

static void get_options(void *ctx, struct rpc_call *call, struct bytes request)
{
	const struct plugin_options options = plugin_options(ctx);
	struct err err = { 0 };

	(void)request;
	if (plugin_late_check_kubelet(ctx, rpc_call_user_agent(call), &err) < 0) {
		plugin_refuse(call, &err);
		return;
	}
	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_options, &options, rpc_call_arena(call)));
}

/* Unless it is the same again: the kubelet writes its checkpoint with every list. */
static void send_list(struct plugin *p, struct listener *l, struct arena *a)
{
	const struct pool *pool = plugin_pool(p);
	struct device_list list = { NULL, 0 };
	struct bytes body;
	uint64_t hash;

	if (pool)
		list = plugin_is_late(p) ? plugin_late_list(p, a) : choice_list(pool, a);
	for (size_t i = 0; i < list.n && p->env->tracker && !p->shared && !plugin_is_late(p); i++)
		list.v[i].healthy =
			tracker_judge(p->env->tracker, pool, &pool->devs[i], false, a).offered;
	body = kubemsg_encode(&kubemsg_device_list, &list, a);
	hash = str_checksum(body.data, body.len);
	if (l->sent == hash || (l->sent && !l->stranger && plugin_offered_first(p->offered)))
		return;
	l->sent = hash;
	rpc_stream_send(l->stream, body);
	if (!l->stranger)
		plugin_offered_listed(p->offered, &list);
}

/* Every client that asks for the list gets it. Only the kubelet's stream says that we are
 * registered. */
static void list_opened(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	const struct rpc_peer *peer = rpc_stream_peer(stream);
	struct plugin *p = ctx;
	struct listener *l = xcalloc(1, sizeof(*l));

	(void)request;
	l->stream = stream;
	rpc_stream_set_data(stream, l);
	LIST_INSERT_HEAD(&p->listeners, l, link);
	if (p->dying)
		return;
	l->stranger = !(p->watched ? plugin_watch_is_kubelet(p, peer)
				   : plugin_register_is_kubelet(p, peer));
	send_list(p, l, a);
	if (l->stranger) {
		log_debug("kubelet",
			  "a client that is not the kubelet watches the list resource=%s",
			  p->resource);
		return;
	}
	rpc_stream_keep(stream);
	if (p->watched)
		plugin_watch_opened(p);
	else
		plugin_register_event(p, REG_EV_OPENED);
}

static void list_closed(void *ctx, struct rpc_stream *stream)
{
	struct plugin *p = ctx;
	struct listener *l = rpc_stream_data(stream);
	bool last;

	LIST_REMOVE(l, link);
	/* One that we ended counts until it is gone, but does not stand for a registration
	 * meanwhile. */
	last = !l->stranger && !(l->ending ? plugin_has_stream(p) : plugin_is_registered(p));
	free(l);
	if (p->dying || !last)
		return;
	if (p->watched)
		plugin_watch_closed(p);
	else
		plugin_register_event(p, REG_EV_CLOSED);
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
	struct plugin *p = ctx;
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
	if (!nothing_to_do(ctx, call))
		plugin_preferred(ctx, call, request);
}

static void pre_start(void *ctx, struct rpc_call *call, struct bytes request)
{
	if (nothing_to_do(ctx, call))
		return;
	if (plugin_is_late(ctx))
		plugin_late_pre_start(ctx, call, request);
	else
		plugin_start(ctx, call, request);
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
	const struct plugin *p = ctx;

	for (int i = 0; i < STATS_CALL_MAX; i++) {
		if (!strcmp(method->path, paths[i]))
			stats_count_call(p->counts, (enum stats_call)i, (unsigned)status, ns);
	}
}

/* --- serving --- */

static const struct rpc_method methods[] = {
	{ .path = PATH_OPTIONS, .unary = get_options, .answered = count_call },
	{ .path = PATH_LIST_AND_WATCH, .opened = list_opened, .closed = list_closed },
	{ .path = PATH_PREFERRED, .unary = preferred, .answered = count_call },
	{ .path = PATH_ALLOCATE, .unary = allocate, .answered = count_call },
	{ .path = PATH_PRE_START, .unary = pre_start, .answered = count_call },
	/* in the plugin registry only */
	{ .path = PATH_GET_INFO, .unary = plugin_get_info },
	{ .path = PATH_NOTIFY_STATUS, .unary = plugin_notify_status },
};
#define METHODS_CLASSIC (ARRAY_LEN(methods) - 2)

/* A path that another process has taken gives way to the next one. */
static int open_server(struct plugin *p, bool registry, struct err *err)
{
	const char *dir = registry ? p->env->registry_dir : p->env->plugin_dir;
	size_t n = registry ? ARRAY_LEN(methods) : METHODS_CLASSIC;
	int r;

	plugin_endpoint_done(&p->endpoint);
	plugin_endpoint_init(&p->endpoint, dir, p->resource);
	plugin_endpoint_sweep(&p->endpoint);
	do {
		plugin_endpoint_next(&p->endpoint);
		r = rpc_server_open_guarded(p->env->rpc, p->endpoint.path, methods, n, p,
					    &p->server, err);
	} while (r == -EADDRINUSE);
	if (r < 0)
		return r;
	p->servers++;
	p->watched = registry;
	return 0;
}

int plugin_move(struct plugin *p, struct err *err)
{
	int r;

	plugin_endpoint_next(&p->endpoint);
	r = rpc_server_move(p->server, p->endpoint.path, err);
	p->endpoint.known = r < 0; /* the next try has another one */
	return r;
}

static void serve_again(void *arg)
{
	struct plugin *p = arg;

	p->serve_timer = NULL;
	plugin_kick(p);
}

static void serve_later(struct plugin *p, const struct err *err)
{
	plugin_warn(p, WARN_SERVE, "the resource is not served error=%s", err->msg);
	if (!p->serve_timer)
		p->serve_timer = rpc_after(p->env->rpc, SERVE_RETRY_MS, serve_again, p);
}

static void serve_first(struct plugin *p)
{
	bool registry = p->env->registration == REGISTER_WATCHER;
	struct err err = { 0 };

	if (p->env->registration == REGISTER_AUTO)
		registry = !p->fell_back && access(p->env->registry_dir, F_OK) == 0;
	if (open_server(p, registry, &err) < 0) {
		serve_later(p, &err);
		return;
	}
	plugin_warn_reset(p, WARN_SERVE);
	if (registry)
		plugin_watch_started(p);
	else
		plugin_register_event(p, REG_EV_SERVING);
}

void plugin_serve(struct plugin *p)
{
	struct err err = { 0 };

	if (!p->server && !plugin_late_is_ready(p))
		return; /* it kicks us when it is */
	if (!p->server)
		serve_first(p);
	else if (rpc_server_relisten(p->server, &err) < 0)
		serve_later(p, &err);
	else
		plugin_warn_reset(p, WARN_SERVE);
}

static void destroy(struct plugin *p)
{
	node_unref(p->node);
	pods_holders_free(p->allocatable);
	pods_seen_free(p->seen);
	choice_recent_free(p->recent);
	plugin_endpoint_done(&p->endpoint);
	free(p->resource);
	free(p);
}

static void server_gone(void *arg)
{
	struct plugin *p = arg;

	if (--p->servers == 0 && p->dying)
		destroy(p);
}

void plugin_stop_serving(struct plugin *p)
{
	struct rpc_server *server = STEAL(p->server);

	if (server)
		rpc_server_close(server, server_gone, p);
}

/* --- for the daemon --- */

static struct plugin *new (const struct plugin_env *env, const char *resource)
{
	struct plugin *p = xcalloc(1, sizeof(*p));

	p->env = env;
	p->resource = xstrdup(resource);
	p->counts = stats_of(env->stats, resource);
	p->random = (unsigned)clock_mono_ns() ^ (unsigned)getpid();
	p->allocatable = pods_holders_new();
	p->recent = choice_recent_new();
	LIST_INIT(&p->listeners);
	LIST_INIT(&p->looks);
	LIST_INIT(&p->starts);
	TAILQ_INIT(&p->given);
	p->offered = plugin_offered_new(p);
	return p;
}

struct plugin *plugin_new(const struct plugin_env *env, const char *resource)
{
	struct plugin *p = new (env, resource);

	if (env->devinfo_dir)
		p->devinfo = plugin_devinfo_new(p);
	return p;
}

struct plugin *plugin_new_shared(const struct plugin_env *env, const char *resource)
{
	struct plugin *p = new (env, resource);

	p->shared = true;
	return p;
}

void plugin_relist(struct plugin *p)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct listener *l;

	for (l = LIST_FIRST(&p->listeners); l; l = LIST_NEXT(l, link))
		send_list(p, l, a);
}

void plugin_list_again(struct plugin *p)
{
	struct listener *l;

	for (l = LIST_FIRST(&p->listeners); l; l = LIST_NEXT(l, link))
		l->sent = 0;
	plugin_relist(p);
}

void plugin_end_streams(struct plugin *p)
{
	struct listener *l;

	for (l = LIST_FIRST(&p->listeners); l; l = LIST_NEXT(l, link)) {
		if (l->stranger)
			continue;
		l->ending = true;
		rpc_stream_end(l->stream, RPC_UNAVAILABLE, "railmated registers anew");
	}
}

void plugin_update(struct plugin *p, struct node *node)
{
	struct node *before = p->node;
	const struct pool *pool;

	p->node = node_ref(node);
	pool = plugin_pool(p);
	if (!p->shared)
		plugin_files_update(p);
	if (!p->server && pool && pool->n_devs)
		plugin_serve(p);
	else
		plugin_relist(p); /* nothing is sent if it is the same */
	node_unref(before);
	if (p->devinfo && !plugin_is_late(p))
		plugin_devinfo_update(p->devinfo);
}

void plugin_kick(struct plugin *p)
{
	const struct pool *pool = plugin_pool(p);

	if (p->server || (pool && pool->n_devs))
		plugin_serve(p);
	if (p->server && !p->watched)
		plugin_register_check(p);
}

bool plugin_is_registered(const struct plugin *p)
{
	const struct listener *l;

	for (l = LIST_FIRST(&p->listeners); l; l = LIST_NEXT(l, link)) {
		if (!l->ending && !l->stranger)
			return true;
	}
	return false;
}

const char *plugin_problem(const struct plugin *p)
{
	const char *late = plugin_late_problem(p);

	if (plugin_is_registered(p))
		return plugin_offered_problem(p->offered);
	return late ? late : "the kubelet does not watch its devices";
}

bool plugin_has_stream(const struct plugin *p)
{
	const struct listener *l;

	for (l = LIST_FIRST(&p->listeners); l; l = LIST_NEXT(l, link)) {
		if (!l->stranger)
			return true;
	}
	return false;
}

bool plugin_is_served(const struct plugin *p)
{
	const struct pool *pool = plugin_pool(p);

	return p->server || (pool && pool->n_devs);
}

const struct plugin_stats *plugin_stats(const struct plugin *p)
{
	return &p->stats;
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
	rpc_timer_cancel(STEAL(p->serve_timer));
	plugin_register_done(p);
	plugin_watch_done(p);
	plugin_pods_done(p);
	plugin_preferred_done(p);
	plugin_start_done(p);
	plugin_files_done(p);
	plugin_late_done(p);
	plugin_devinfo_free(STEAL(p->devinfo));
	plugin_offered_free(STEAL(p->offered));
	if (p->servers)
		plugin_stop_serving(p);
	else
		destroy(p);
}
