/*
 * The socket of a resource and the streams on it. No path of a socket is used twice, neither by one
 * process nor by the next one. Every client that asks for the list gets it; only the kubelet's
 * stream stands for a registration.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint-internal.h"

#define SERVE_RETRY_MS 1000
#define PATH_MOST      107 /* sun_path */
#define TAIL_MOST      24  /* ".01234567.4294967295.sock" */

/* One open ListAndWatch. */
struct listener {
	LIST_ENTRY(listener) link;
	struct rpc_stream *stream;
	uint64_t sent; /* a hash of the list that it knows; 0: none */
	bool ending;   /* we have ended it; the kubelet has not seen that yet */
	/* Not of the kubelet that we are registered with, about which it has nothing */
	bool stranger;
};

unsigned endpoint_jitter(struct endpoint *e, unsigned ms)
{
	return ms - ms / 4 + (unsigned)rand_r(&e->random) % (ms / 2 + 1);
}

void endpoint_warn(struct endpoint *e, enum endpoint_warning kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_warn_rated(&e->warned[kind], 1, "kubelet", e->plugin.resource, fmt, ap);
	va_end(ap);
}

void endpoint_warn_reset(struct endpoint *e, enum endpoint_warning kind)
{
	e->warned[kind] = (struct log_rate) { 0 };
}

/* --- the list --- */

/* Unless it is the same again: the kubelet writes its checkpoint with every list. */
static void send_list(struct endpoint *e, struct listener *l, struct arena *a)
{
	struct device_list list = e->plugin.list(e->plugin.ctx, a);
	struct bytes body = kubemsg_encode(&kubemsg_device_list, &list, a);
	uint64_t hash = str_checksum(body.data, body.len);

	if (l->sent == hash || (l->sent && !l->stranger && endpoint_offered_first(e->offered)))
		return;
	l->sent = hash;
	e->n_listed = list.n;
	rpc_stream_send(l->stream, body);
	if (!l->stranger)
		endpoint_offered_listed(e->offered, &list);
}

static void list_opened(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	const struct rpc_peer *peer = rpc_stream_peer(stream);
	struct endpoint *e = ctx;
	struct listener *l = xcalloc(1, sizeof(*l));

	l->stream = stream;
	rpc_stream_set_data(stream, l);
	LIST_INSERT_HEAD(&e->listeners, l, link);
	if (e->dying)
		return;
	l->stranger = !(e->watched ? endpoint_watch_is_kubelet(e, peer)
				   : endpoint_register_is_kubelet(e, peer));
	send_list(e, l, a);
	if (l->stranger) {
		log_debug("kubelet",
			  "a client that is not the kubelet watches the list resource=%s",
			  e->plugin.resource);
		return;
	}
	rpc_stream_keep(stream);
	if (e->watched)
		endpoint_watch_opened(e);
	else
		endpoint_register_event(e, REG_EV_OPENED);
}

static void list_closed(void *ctx, struct rpc_stream *stream)
{
	struct endpoint *e = ctx;
	struct listener *l = rpc_stream_data(stream);
	bool last;

	LIST_REMOVE(l, link);
	/* One that we ended counts until it is gone, but does not stand for a registration
	 * meanwhile. */
	last = !l->stranger && !(l->ending ? endpoint_has_stream(e) : endpoint_is_registered(e));
	free(l);
	if (e->dying || !last)
		return;
	if (e->watched)
		endpoint_watch_closed(e);
	else
		endpoint_register_event(e, REG_EV_CLOSED);
}

void endpoint_relist(struct endpoint *e)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct listener *l;

	for (l = LIST_FIRST(&e->listeners); l; l = LIST_NEXT(l, link))
		send_list(e, l, a);
}

void endpoint_list_again(struct endpoint *e)
{
	struct listener *l;

	for (l = LIST_FIRST(&e->listeners); l; l = LIST_NEXT(l, link))
		l->sent = 0;
	endpoint_relist(e);
}

void endpoint_end_streams(struct endpoint *e)
{
	struct listener *l;

	for (l = LIST_FIRST(&e->listeners); l; l = LIST_NEXT(l, link)) {
		if (l->stranger)
			continue;
		l->ending = true;
		rpc_stream_end(l->stream, RPC_UNAVAILABLE, "railmated registers anew");
	}
}

bool endpoint_is_registered(const struct endpoint *e)
{
	const struct listener *l;

	for (l = LIST_FIRST(&e->listeners); l; l = LIST_NEXT(l, link)) {
		if (!l->ending && !l->stranger)
			return true;
	}
	return false;
}

bool endpoint_has_stream(const struct endpoint *e)
{
	const struct listener *l;

	for (l = LIST_FIRST(&e->listeners); l; l = LIST_NEXT(l, link)) {
		if (!l->stranger)
			return true;
	}
	return false;
}

/* --- the path --- */

/* A name that the address cannot hold gives way to its checksum. */
static void name_paths(struct endpoint *e, const char *dir)
{
	free(e->dir);
	free(e->name);
	e->dir = xstrdup(dir);
	e->name = xstrdup(e->plugin.resource);
	for (char *c = e->name; *c; c++) {
		if (*c == '/')
			*c = '_';
	}
	if (strlen(dir) + strlen(e->name) > PATH_MOST - TAIL_MOST - 1) {
		uint64_t sum = str_checksum(e->name, strlen(e->name));

		free(e->name);
		e->name = xasprintf("%08x", (unsigned)(sum ^ sum >> 32));
	}
	e->instance = (uint32_t)clock_wall_ms() ^ (uint32_t)getpid() << 16;
	e->number = 0;
}

static void next_path(struct endpoint *e)
{
	free(e->path);
	e->path = xasprintf("%s/%s.%08x.%u.sock", e->dir, e->name, (unsigned)e->instance,
			    (unsigned)e->number++);
	e->known = false;
}

static bool is_ours(const struct endpoint *e, const char *file)
{
	size_t len = strlen(e->name);
	unsigned instance, number;
	int end = 0;

	return !strncmp(file, e->name, len) &&
	       sscanf(file + len, ".%8x.%u.sock%n", &instance, &number, &end) == 2 && end &&
	       !file[len + (size_t)end];
}

/* Sockets that killed instances left. */
static void sweep(const struct endpoint *e)
{
	DIR *d = opendir(e->dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		_cleanup_free_ char *path = xasprintf("%s/%s", e->dir, entry->d_name);
		struct rpc_peer peer;
		struct socket_id id;

		if (is_ours(e, entry->d_name) && rpc_socket_id(path, &id) &&
		    !rpc_socket_accepts(path, &peer))
			unlink(path);
	}
	if (d)
		closedir(d);
}

/* --- serving --- */

/* A path that another process has taken gives way to the next one. */
static int open_server(struct endpoint *e, bool registry, struct err *err)
{
	/* GetInfo and NotifyRegistrationStatus are the last two. */
	size_t n = e->plugin.n_methods + (registry ? 3 : 1);
	int r;

	name_paths(e, registry ? e->env->registry_dir : e->env->plugin_dir);
	sweep(e);
	do {
		next_path(e);
		r = rpc_server_open_guarded(e->env->rpc, e->path, e->methods, n, e, &e->server,
					    err);
	} while (r == -EADDRINUSE);
	if (r < 0)
		return r;
	e->servers++;
	e->watched = registry;
	return 0;
}

int endpoint_move(struct endpoint *e, struct err *err)
{
	int r;

	next_path(e);
	r = rpc_server_move(e->server, e->path, err);
	e->known = r < 0; /* the next try has another one */
	return r;
}

static void serve_again(void *arg)
{
	struct endpoint *e = arg;

	e->serve_timer = NULL;
	endpoint_serve(e);
	endpoint_check(e);
}

static void serve_later(struct endpoint *e, const struct err *err)
{
	endpoint_warn(e, WARN_SERVE, "the resource is not served error=%s", err->msg);
	if (!e->serve_timer)
		e->serve_timer = rpc_after(e->env->rpc, SERVE_RETRY_MS, serve_again, e);
}

static void serve_first(struct endpoint *e)
{
	bool registry = e->env->registration == REGISTER_WATCHER;
	struct err err = { 0 };

	if (e->env->registration == REGISTER_AUTO)
		registry = !e->fell_back && access(e->env->registry_dir, F_OK) == 0;
	if (open_server(e, registry, &err) < 0) {
		serve_later(e, &err);
		return;
	}
	endpoint_warn_reset(e, WARN_SERVE);
	if (registry)
		endpoint_watch_started(e);
	else
		endpoint_register_event(e, REG_EV_SERVING);
}

void endpoint_serve(struct endpoint *e)
{
	struct err err = { 0 };

	if (!e->server && !e->plugin.is_ready(e->plugin.ctx))
		return;
	if (!e->server)
		serve_first(e);
	else if (rpc_server_relisten(e->server, &err) < 0)
		serve_later(e, &err);
	else
		endpoint_warn_reset(e, WARN_SERVE);
}

/* --- for the plugin --- */

struct endpoint *endpoint_new(const struct endpoint_env *env, const struct endpoint_plugin *plugin)
{
	struct endpoint *e = xcalloc(1, sizeof(*e));
	size_t n = plugin->n_methods;

	e->env = env;
	e->plugin = *plugin;
	e->random = (unsigned)clock_mono_ns() ^ (unsigned)getpid();
	for (size_t i = 0; i < n; i++)
		e->methods[i] = plugin->methods[i];
	e->methods[n++] = (struct rpc_method) { .path = PATH_LIST_AND_WATCH,
						.opened = list_opened,
						.closed = list_closed };
	e->methods[n++] = (struct rpc_method) { .path = PATH_GET_INFO, .unary = endpoint_get_info };
	e->methods[n] =
		(struct rpc_method) { .path = PATH_NOTIFY_STATUS, .unary = endpoint_notify_status };
	LIST_INIT(&e->listeners);
	e->offered = endpoint_offered_new(e);
	return e;
}

void *endpoint_ctx(void *endpoint)
{
	return ((struct endpoint *)endpoint)->plugin.ctx;
}

bool endpoint_is_open(const struct endpoint *e)
{
	return e->server;
}

const char *endpoint_problem(const struct endpoint *e)
{
	return endpoint_offered_problem(e->offered);
}

struct endpoint_stats endpoint_stats(const struct endpoint *e)
{
	return e->stats;
}

static void destroy(struct endpoint *e)
{
	e->plugin.closed(e->plugin.ctx);
	free(e->dir);
	free(e->name);
	free(e->path);
	free(e);
}

static void server_gone(void *arg)
{
	struct endpoint *e = arg;

	if (--e->servers == 0 && e->dying)
		destroy(e);
}

void endpoint_stop(struct endpoint *e)
{
	struct rpc_server *server = STEAL(e->server);

	if (server)
		rpc_server_close(server, server_gone, e);
}

void endpoint_close(struct endpoint *e)
{
	e->dying = true;
	rpc_timer_cancel(STEAL(e->serve_timer));
	endpoint_register_done(e);
	endpoint_watch_done(e);
	endpoint_offered_free(STEAL(e->offered));
	if (e->servers)
		endpoint_stop(e);
	else
		destroy(e);
}
