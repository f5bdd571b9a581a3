/*
 * The plugin server and the device manager's side of it: Register, the dial-back, ListAndWatch
 * streams and what their end does, in the steps of the real ones (docs/design/kubelet.md §5.2).
 * When a stream ends, 1.36 looks a connection up by resource name, and 1.37 by name and path, and
 * closes whatever it finds there; 1.20 touches only its own. The steps of an end can be held, for
 * what comes in between.
 */
#include "kubelet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubepeer/kubepeer.h"

#define DIAL_TIMEOUT_MS	  10000
#define OPTIONS_MAX_BYTES (4u << 20)

static const char *const api_version = "v1beta1";

struct registering {
	struct rpc_call *call;
	char *resource;
};

static void report_connection(const char *event, const char *resource, const char *text)
{
	struct report r;
	struct json *j = report_begin(&r, event);

	json_kv_string(j, "resource", resource);
	if (text)
		json_kv_string(j, "message", text);
	report_end(&r);
}

/* --- connections --- */

static bool is_used(const struct client *c)
{
	return c->in_flight || c->listed || c->stored || c->res->endpoint == c;
}

void plugin_sweep(struct kubelet *k)
{
	for (struct client **at = &k->clients; *at;) {
		struct client *c = *at;

		if (is_used(c)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		rpc_channel_close(c->channel);
		free(c->socket);
		free(c);
	}
}

static void close_connection(struct client *c)
{
	struct rpc_channel *channel = STEAL(c->channel);

	rpc_channel_close(channel);
}

static void tell_connected(struct client *c, const char *error)
{
	void (*connected)(void *arg, const char *error) = STEAL(c->connected);

	if (connected)
		connected(c->connected_arg, error);
}

static void endpoint_stopped(struct kubelet *k, struct resource *r)
{
	r->stopped = true;
	resource_mark_unhealthy(r);
	wait_check(k);
}

static bool is_at(const struct kubelet *k, const struct client *c, const struct resource *r,
		  const char *path)
{
	return c->res == r && (!k->opt.by_path || !strcmp(c->socket, path));
}

/* getClient(): the oldest of them. */
static struct client *get_client(struct kubelet *k, const struct resource *r, const char *path)
{
	struct client *found = NULL;

	for (struct client *c = k->clients; c; c = c->next) {
		if (c->listed && is_at(k, c, r, path))
			found = c;
	}
	return found;
}

/* deregisterClient(): all of them. */
static void deregister(struct kubelet *k, const struct resource *r, const char *path)
{
	for (struct client *c = k->clients; c; c = c->next)
		c->listed &= !is_at(k, c, r, path);
}

/* registerClient(): 1.36 has one for each name. */
static void enlist(struct client *c)
{
	if (!c->k->opt.by_path)
		deregister(c->k, c->res, c->socket);
	c->listed = true;
}

static struct client *stored_at(struct kubelet *k, const struct resource *r, const char *path)
{
	struct client *c = k->clients;

	while (c && !(c->stored && c->res == r && (!path || !strcmp(c->socket, path))))
		c = c->next;
	return c;
}

/* PluginDisconnected(): the resource keeps its capacity, all of it unhealthy; where 1.37 has
 * another endpoint, that one is called from now on. */
static void endpoint_disconnected(struct kubelet *k, struct resource *r, const char *path)
{
	struct client *c = stored_at(k, r, path);

	if (!k->opt.by_path) {
		if (r->endpoint)
			endpoint_stopped(k, r);
		return;
	}
	if (!c)
		return;
	c->stored = false;
	c = stored_at(k, r, NULL);
	if (c) {
		r->endpoint = c;
		r->stopped = false;
	} else {
		endpoint_stopped(k, r);
	}
}

/* disconnectClient() */
static void disconnect_client(struct kubelet *k, struct resource *r, struct client *c)
{
	deregister(k, r, c->socket);
	close_connection(c);
	endpoint_disconnected(k, r, c->socket);
}

void plugin_disconnect(struct kubelet *k, struct resource *r, const char *path)
{
	struct client *c = get_client(k, r, path);

	if (c)
		disconnect_client(k, r, c);
}

void plugin_forget_all(struct kubelet *k)
{
	for (struct resource *r = k->resources; r; r = r->next) {
		r->endpoint = NULL;
		r->stopped = false;
	}
	for (struct client *c = k->clients; c; c = c->next) {
		c->forgotten = true;
		c->listed = c->stored = false;
		close_connection(c);
	}
}

static void report_stream_end(const struct client *c, enum rpc_status status, const char *message,
			      bool race)
{
	struct report r;
	struct json *j = report_begin(&r, "stream-end");

	json_kv_string(j, "resource", c->res->name);
	json_kv_string(j, "status", status_name(status));
	json_kv_string(j, "message", message);
	json_kv_bool(j, "kills_newer", race);
	report_end(&r);
}

/* runClient() after the stream, in two steps. */
static void end_first(struct client *c)
{
	c->found = get_client(c->k, c->res, c->socket);
	if (c->found)
		c->found->in_flight++;
}

static void end_second(struct client *c)
{
	struct client *found = STEAL(c->found);

	if (!found)
		return;
	found->in_flight--;
	if (!found->forgotten)
		disconnect_client(c->k, c->res, found);
}

static void end_own(struct client *c)
{
	struct resource *r = c->res;

	close_connection(c);
	c->listed = false;
	if (r->endpoint == c)
		endpoint_stopped(c->k, r);
}

static void stream_ended(struct client *c, enum rpc_status status, const char *message)
{
	struct kubelet *k = c->k;
	const struct client *newer = get_client(k, c->res, c->socket);

	report_stream_end(c, status, message, !k->opt.old && newer && newer != c);
	if (k->opt.old) {
		end_own(c);
		return;
	}
	if (k->hold_ends != HOLD_BEFORE)
		end_first(c);
	if (k->hold_ends == HOLD_NOTHING) {
		end_second(c);
		return;
	}
	c->held = k->hold_ends;
	c->in_flight++;
}

void plugin_release_ends(struct kubelet *k)
{
	k->hold_ends = HOLD_NOTHING;
	for (struct client *c = k->clients; c; c = c->next) {
		if (!c->held)
			continue;
		if (c->held == HOLD_BEFORE && !c->forgotten)
			end_first(c);
		c->held = HOLD_NOTHING;
		c->in_flight--;
		end_second(c);
	}
	plugin_sweep(k);
}

static void on_stream_done(void *arg, enum rpc_status status, const char *message,
			   struct bytes body)
{
	struct client *c = arg;
	struct kubelet *k = c->k;
	struct command *disconnecting = STEAL(c->disconnecting);

	(void)body;
	c->in_flight--;
	c->stream = NULL;
	if (!c->forgotten)
		stream_ended(c, status, message);
	if (disconnecting)
		answer_simple(disconnecting, "ok", NULL, NULL);
	plugin_sweep(k);
}

static void report_list(const struct resource *r)
{
	struct report rep;
	struct json *j = report_begin(&rep, "list");

	json_kv_string(j, "resource", r->name);
	json_kv_int(j, "capacity", (int64_t)r->devices.n);
	json_kv_int(j, "allocatable", (int64_t)resource_allocatable(r));
	report_end(&rep);
}

static void on_list(void *arg, struct bytes body)
{
	struct arena *arena = arena_new(body.len * 4 + 1024);
	struct client *c = arg;
	struct device_list list;
	struct err err = { 0 };

	if (c->k->lose_lists) {
		c->k->lose_lists--;
		report_connection("lost-list", c->res->name, NULL);
		arena_free(arena);
		return;
	}
	if (peer_decode_device_list(body, arena, &list, &err) < 0) {
		report_connection("bad-list", c->res->name, err.msg);
		arena_free(arena);
		rpc_subscription_cancel(c->stream);
		return;
	}
	arena_free(c->res->arena);
	c->res->arena = arena;
	c->res->devices = list;
	c->res->known = true;
	kubelet_list_came(c->k, c->res);
	report_list(c->res);
	wait_check(c->k);
	checkpoint_write(c->k);
}

/* PluginConnected, and the goroutine that runs the stream. */
static void start_stream(struct client *c)
{
	c->res->endpoint = c;
	c->stored = c->k->opt.by_path;
	c->res->stopped = false;
	c->in_flight++;
	c->stream = rpc_call_stream(c->channel, PATH_LIST_AND_WATCH, (struct bytes) { 0 }, on_list,
				    on_stream_done, c);
}

static void connection_failed(struct client *c, const char *why)
{
	deregister(c->k, c->res, c->socket);
	close_connection(c);
	tell_connected(c, why);
}

static void on_options(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	_cleanup_arena_ struct arena *arena = arena_new(1024);
	struct client *c = arg;
	struct kubelet *k = c->k;
	struct err err = { 0 };

	c->in_flight--;
	if (status != RPC_OK)
		connection_failed(
			c,
			arena_printf(
				arena,
				"failed to get device plugin options: rpc error: code = %s desc = %s",
				status_name(status), message));
	else if (kubemsg_decode(&kubemsg_options, body, arena, &c->options, &err) < 0)
		connection_failed(c, err.msg);
	else if (!c->channel)
		connection_failed(c, "the connection was closed");
	else if (k->opt.by_path && stored_at(k, c->res, c->socket))
		connection_failed(
			c, arena_printf(arena, "device plugin already connected: %s", c->socket));
	else if (sim_random_below(&k->random,
				  2)) { /* ListAndWatch races with the answer to Register */
		start_stream(c);
		tell_connected(c, NULL);
	} else {
		tell_connected(c, NULL);
		start_stream(c);
	}
	plugin_sweep(k);
}

void plugin_connect(struct kubelet *k, const char *resource, const char *socket,
		    const struct plugin_options *options,
		    void (*connected)(void *arg, const char *error), void *arg)
{
	struct client *c = xcalloc(1, sizeof(*c));

	*c = (struct client) {
		.k = k,
		.res = resource_get(k, resource),
		.next = k->clients,
		.socket = xstrdup(socket),
		.channel = rpc_channel_open(k->rpc, socket, OPTIONS_MAX_BYTES),
		.connected = connected,
		.connected_arg = arg,
	};
	k->clients = c;
	enlist(c);
	if (options) {
		c->options = *options;
		tell_connected(c, NULL);
		start_stream(c);
		return;
	}
	c->in_flight++;
	rpc_call_unary(c->channel, PATH_OPTIONS, (struct bytes) { 0 }, DIAL_TIMEOUT_MS, on_options,
		       c);
}

/* --- Register --- */

static void on_connected(void *arg, const char *error)
{
	struct registering *reg = arg;

	report_connection(error ? "register-failed" : "registered", reg->resource, error);
	if (error)
		rpc_reply(reg->call, RPC_UNKNOWN, error, (struct bytes) { 0 });
	else
		rpc_reply(reg->call, RPC_OK, NULL, (struct bytes) { 0 });
	free(reg->resource);
	free(reg);
}

/* 1.20 answers first and dials afterwards; what comes of it, the plugin never learns. */
static void on_connected_old(void *arg, const char *error)
{
	struct registering *reg = arg;

	report_connection(error ? "register-failed" : "registered", reg->resource, error);
	free(reg->resource);
	free(reg);
}

static bool valid_resource_name(const char *name)
{
	const char *slash = strchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	return slash && slash != name && slash[1] && !strchr(slash + 1, '/') &&
	       strlen(name) < 244 && !str_starts(name, "requests.") &&
	       !(n >= 13 && !strncmp(slash - 13, "kubernetes.io", 13));
}

static bool refuse_request(struct rpc_call *call, const struct register_request *req)
{
	struct arena *a = rpc_call_arena(call);
	const char *why = NULL;

	if (!str_eq(req->version, api_version))
		why = arena_printf(
			a,
			"requested API version \"%s\" is not supported by kubelet. Supported version is \"%s\"",
			req->version, api_version);
	else if (!valid_resource_name(req->resource))
		why = arena_printf(a, "the ResourceName \"%s\" is invalid", req->resource);
	else if (!req->endpoint[0] || strchr(req->endpoint, '/'))
		why = arena_printf(a, "the endpoint \"%s\" is not a file name", req->endpoint);
	if (!why)
		return false;
	report_connection("register-failed", req->resource, why);
	rpc_reply(call, RPC_UNKNOWN, why, (struct bytes) { 0 });
	return true;
}

static void hold_call(struct kubelet *k, struct rpc_call *call)
{
	k->held_calls = xgrow(k->held_calls, &k->cap_held_calls, k->n_held_calls + 1,
			      sizeof(struct rpc_call *));
	k->held_calls[k->n_held_calls++] = call;
}

void registration_release_calls(struct kubelet *k)
{
	for (size_t i = 0; i < k->n_held_calls; i++)
		rpc_reply(k->held_calls[i], RPC_UNAVAILABLE, "the kubelet is going away",
			  (struct bytes) { 0 });
	k->n_held_calls = 0;
}

/* The misbehaviours a script can ask for. */
static bool misbehave(struct kubelet *k, struct rpc_call *call, const struct register_request *req)
{
	if (k->refuse) {
		report_connection("register-refused", req->resource, NULL);
		rpc_reply(call, RPC_UNKNOWN, "the fake kubelet refuses every registration",
			  (struct bytes) { 0 });
		return true;
	}
	if (k->hang || k->die_in_register) {
		report_connection("register-held", req->resource, NULL);
		hold_call(k, call);
		if (k->die_in_register)
			kubelet_down(k, NULL);
		k->die_in_register = false;
		return true;
	}
	return false;
}

static void on_register(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct register_request req;
	struct registering *reg;
	struct kubelet *k = ctx;
	struct err err = { 0 };
	const char *socket;

	if (peer_decode_register(request, a, &req, &err) < 0) {
		rpc_reply(call, RPC_INTERNAL, err.msg, (struct bytes) { 0 });
		return;
	}
	if (misbehave(k, call, &req) || refuse_request(call, &req))
		return;
	reg = xcalloc(1, sizeof(*reg));
	*reg = (struct registering) { .call = call, .resource = xstrdup(req.resource) };
	socket = arena_printf(a, "%s/%s", k->opt.dir, req.endpoint);
	if (!k->opt.old) {
		plugin_connect(k, req.resource, socket, NULL, on_connected, reg);
		return;
	}
	plugin_connect(k, req.resource, socket, &req.options, on_connected_old, reg);
	rpc_reply(call, RPC_OK, NULL, (struct bytes) { 0 });
}

int registration_open(struct kubelet *k, struct err *err)
{
	static const struct rpc_method methods[] = { { .path = PATH_REGISTER,
						       .unary = on_register } };
	_cleanup_free_ char *path = xasprintf("%s/kubelet.sock", k->opt.dir);

	return rpc_server_open(k->rpc, path, methods, ARRAY_LEN(methods), k, &k->registration, err);
}
