#include "dra/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeclient/registry.h"
#include "rpc/listen.h"
#include "rpc/rpc.h"

#define RETRY_MS 1000
/* 1.34 takes health for unknown after 30 s, and has no timeouts of devices. */
#define AGAIN_MS  10000
#define SETTLE_MS 5000

struct watcher {
	LIST_ENTRY(watcher) link;
	struct rpc_stream *stream;
	bool modern; /* the kubelet's, of the version that 1.37 brought */
};

struct draserver {
	struct draserver_env env;
	bool dying;
	char *dir, *path, *registry_path;
	struct rpc_server *server, *registry; /* NULL: not opened yet */
	unsigned servers;		      /* open, or closing */
	struct rpc_timer *timer;
	char *error; /* why a socket is not open; NULL: both are */
	bool registered;
	struct socket_id kubelet; /* that has registered it */
	int64_t registered_ms;	  /* 0: that kubelet's age has been looked at */
	LIST_HEAD(, watcher) watchers;
	struct arena *known; /* of the newest message; NULL: there is none */
	struct bytes health;
};

/* --- claims --- */

struct draserver_call {
	struct rpc_call *call;
	const struct kubemsg_type *reply;
	struct dra_claim_refs refs;
};

/* NULL: it is refused. */
static struct draserver_call *call_from(struct rpc_call *call, struct bytes request,
					const struct kubemsg_type *reply)
{
	struct arena *a = rpc_call_arena(call);
	struct draserver_call *c = arena_alloc(a, sizeof(*c));
	struct err err = { 0 };

	*c = (struct draserver_call) { .call = call, .reply = reply };
	if (kubemsg_decode(&kubemsg_dra_claims, request, a, &c->refs, &err) == 0)
		return c;
	rpc_reply(call, rpc_status_of(err.code), err.msg, (struct bytes) { NULL, 0 });
	return NULL;
}

static void prepare(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct draserver_call *c = call_from(call, request, &kubemsg_dra_prepare_reply);
	struct draserver *s = ctx;

	if (c)
		s->env.prepare(s->env.ctx, c, &c->refs);
}

static void unprepare(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct draserver_call *c = call_from(call, request, &kubemsg_dra_unprepare_reply);
	struct draserver *s = ctx;

	if (c)
		s->env.unprepare(s->env.ctx, c, &c->refs);
}

void draserver_reply(struct draserver_call *c, const struct dra_results *results)
{
	rpc_reply(c->call, RPC_OK, NULL,
		  kubemsg_encode(c->reply, results, rpc_call_arena(c->call)));
}

/* --- health --- */

static void send_health(struct draserver *s, struct watcher *w)
{
	if (s->known)
		rpc_stream_send(w->stream, s->health);
}

static void send_health_to_all(struct draserver *s)
{
	struct watcher *w;

	LIST_FOREACH (w, &s->watchers, link)
		send_health(s, w);
}

static struct watcher *watch(struct draserver *s, struct rpc_stream *stream, enum rpc_kin kin)
{
	struct watcher *w = xcalloc(1, sizeof(*w));

	w->stream = stream;
	rpc_stream_set_data(stream, w);
	LIST_INSERT_HEAD(&s->watchers, w, link);
	if (kin == RPC_PEER_SAME)
		rpc_stream_keep(stream);
	send_health(s, w);
	return w;
}

static void watch_opened(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	struct draserver *s = ctx;

	watch(s, stream, kubeclient_registry_kin(s->env.plugin_dir, rpc_stream_peer(stream)));
}

static void modern_watch_opened(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	struct draserver *s = ctx;
	enum rpc_kin kin = kubeclient_registry_kin(s->env.plugin_dir, rpc_stream_peer(stream));

	watch(s, stream, kin)->modern = kin != RPC_PEER_OTHER;
}

static bool is_watched_as_by_1_37(const struct draserver *s)
{
	const struct watcher *w;

	LIST_FOREACH (w, &s->watchers, link)
		if (w->modern)
			return true;
	return false;
}

static void watch_closed(void *ctx, struct rpc_stream *stream)
{
	struct watcher *w = rpc_stream_data(stream);

	LIST_REMOVE(w, link);
	free(w);
}

void draserver_health(struct draserver *s, const struct dra_health_list *list)
{
	_cleanup_arena_ struct arena *before = s->known;
	struct bytes was = s->health;

	s->known = arena_new(4096);
	s->health = kubemsg_encode(&kubemsg_dra_health, list, s->known);
	if (!before || was.len != s->health.len || memcmp(was.data, s->health.data, was.len))
		send_health_to_all(s);
}

/* --- registration --- */

static void get_info(void *ctx, struct rpc_call *call, struct bytes request)
{
	/* The kubelet takes the first of the first kind that it knows, and the newest of the
	 * second. */
	static const char *versions[] = { "v1.DRAPlugin", "v1beta1.DRAPlugin",
					  "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth" };
	struct draserver *s = ctx;
	const struct plugin_info info = {
		"DRAPlugin", s->env.driver, s->path, { versions, ARRAY_LEN(versions) }
	};
	struct rpc_peer kubelet;

	/* It connects to the other socket next. */
	if (kubeclient_registry_tell(call, s->env.plugin_dir, &info) && s->server &&
	    kubeclient_registry_find(s->env.plugin_dir, &kubelet))
		rpc_server_trust(s->server, &kubelet);
}

static struct socket_id kubelet_now(const struct draserver *s)
{
	_cleanup_free_ char *path = xasprintf("%s/kubelet.sock", s->env.plugin_dir);
	struct socket_id id = { 0 };

	rpc_socket_id(path, &id);
	return id;
}

static void heard(void *ctx, const struct registration_status *status)
{
	struct draserver *s = ctx;

	s->registered = status->registered;
	s->registered_ms = status->registered ? clock_mono_ms() : 0;
	s->kubelet = kubelet_now(s);
	if (!s->dying)
		s->env.registered(s->env.ctx, status->registered,
				  status->registered ? NULL : status->error);
}

static void notify_status(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct draserver *s = ctx;

	kubeclient_registry_hear(call, s->env.plugin_dir, request, heard, s);
}

/* A kubelet that starts makes its socket, and then registers what it finds. */
bool draserver_is_registered(const struct draserver *s)
{
	struct socket_id now = kubelet_now(s);

	return s->registered && rpc_socket_same(&now, &s->kubelet);
}

/* --- the sockets --- */

static const struct rpc_method methods[] = {
	{ .path = PATH_DRA_PREPARE, .unary = prepare },
	{ .path = PATH_DRA_UNPREPARE, .unary = unprepare },
	{ .path = PATH_DRA_PREPARE_V1BETA1, .unary = prepare },
	{ .path = PATH_DRA_UNPREPARE_V1BETA1, .unary = unprepare },
	{ .path = PATH_DRA_HEALTH, .opened = modern_watch_opened, .closed = watch_closed },
	{ .path = PATH_DRA_HEALTH_V1ALPHA1, .opened = watch_opened, .closed = watch_closed },
};

static const struct rpc_method registry_methods[] = {
	{ .path = PATH_GET_INFO, .unary = get_info },
	{ .path = PATH_NOTIFY_STATUS, .unary = notify_status },
};

static int open_one(struct draserver *s, struct rpc_server **server, const char *path,
		    const struct rpc_method *v, size_t n, struct err *err)
{
	int r;

	if (*server)
		return rpc_server_relisten(*server, err);
	r = rpc_server_open_guarded(s->env.rpc, path, v, n, s, server, err);
	s->servers += r == 0;
	return r;
}

/* The kubelet that finds the one in the registry connects to the other one. */
static int open_both(struct draserver *s, struct err *err)
{
	int r;

	if (mkdir(s->dir, 0750) < 0 && errno != EEXIST)
		return err_sys(err, "create %s", s->dir);
	r = open_one(s, &s->server, s->path, methods, ARRAY_LEN(methods), err);
	return r < 0 ? r
		     : open_one(s, &s->registry, s->registry_path, registry_methods,
				ARRAY_LEN(registry_methods), err);
}

/* It watches at once, if it does. */
static void look_at_age(struct draserver *s)
{
	unsigned settle_ms = s->env.settle_ms ? s->env.settle_ms : SETTLE_MS;

	if (!s->registered_ms || clock_mono_ms() - s->registered_ms < settle_ms)
		return;
	s->registered_ms = 0;
	if (!is_watched_as_by_1_37(s))
		s->env.old(s->env.ctx);
}

void draserver_check(struct draserver *s)
{
	struct err err = { 0 };
	bool known;

	look_at_age(s);
	if (open_both(s, &err) == 0) {
		free(STEAL(s->error));
		return;
	}
	known = str_eq(s->error, err.msg);
	free(s->error);
	s->error = xstrdup(err.msg);
	if (!known)
		s->env.registered(s->env.ctx, false, s->error);
}

static void check_again(void *arg)
{
	struct draserver *s = arg;

	draserver_check(s);
	send_health_to_all(s);
	s->timer = rpc_after(s->env.rpc, s->error ? RETRY_MS : AGAIN_MS, check_again, s);
}

struct draserver *draserver_open(const struct draserver_env *env)
{
	struct draserver *s = xcalloc(1, sizeof(*s));

	s->env = *env;
	s->dir = xasprintf("%s/plugins/%s", env->kubelet_root, env->driver);
	s->path = xasprintf("%s/dra.sock", s->dir);
	s->registry_path =
		xasprintf("%s/plugins_registry/%s-reg.sock", env->kubelet_root, env->driver);
	LIST_INIT(&s->watchers);
	s->timer = rpc_after(env->rpc, 0, check_again, s); /* no callback before the return */
	return s;
}

static void destroy(struct draserver *s)
{
	arena_free(s->known);
	free(s->error);
	free(s->registry_path);
	free(s->path);
	free(s->dir);
	free(s);
}

static void server_gone(void *arg)
{
	struct draserver *s = arg;

	if (!--s->servers)
		destroy(s);
}

void draserver_close(struct draserver *s)
{
	if (!s)
		return;
	s->dying = true;
	rpc_timer_cancel(STEAL(s->timer));
	if (s->registry)
		rpc_server_close(STEAL(s->registry), server_gone, s);
	if (s->server)
		rpc_server_close(STEAL(s->server), server_gone, s);
	if (!s->servers)
		destroy(s);
}
