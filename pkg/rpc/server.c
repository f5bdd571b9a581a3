/*
 * A server of ours and its connections, from the accepted descriptor to the order in which they
 * end. accept.c hands descriptors in, call.c has the calls.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<grpc/credentials.h>)
#include <grpc/credentials.h>
#endif
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "rpc/guard-internal.h"
#include "rpc/rpc-internal.h"

/*
 * A connection to a server of ours: a gRPC server of its own, so that it has its own buffers, its
 * own turn in the queue and its own end. Which one goes when there are too many is decided here.
 */

#define SWEEP_MS 1000

static void server_settle(struct rpc_server *s);

static void arm_intake(struct connection *c)
{
	grpc_call_error r;

	grpc_call_details_init(&c->intake.details);
	grpc_metadata_array_init(&c->intake.metadata);
	c->intake.call = NULL;
	c->intake.armed = true;
	r = grpc_server_request_call(c->server, &c->intake.call, &c->intake.details,
				     &c->intake.metadata, c->owner->rpc->queue,
				     c->owner->rpc->queue, &c->intake.tag);
	assert(r == GRPC_CALL_OK);
	(void)r;
}

static void call_came(void *owner, bool ok)
{
	struct connection *c = owner;
	grpc_call *call = c->intake.call;
	grpc_call_details details = c->intake.details;
	grpc_metadata_array metadata = c->intake.metadata;

	c->intake.armed = false;
	/* First of all, so that the next call need not wait for the handler of this one. */
	if (ok && !c->closing)
		arm_intake(c);
	if (ok) {
		c->called = true;
		incoming_begin(c, call, &details, &metadata);
	}
	grpc_call_details_destroy(&details);
	grpc_metadata_array_destroy(&metadata);
	connection_settle(c);
}

/* --- which one goes --- */

static struct connection *first(const struct rpc *rpc)
{
	struct rpc_server *s;

	LIST_FOREACH (s, &rpc->servers, link)
		if (!LIST_EMPTY(&s->connections))
			return LIST_FIRST(&s->connections);
	return NULL;
}

static struct connection *next(struct connection *c)
{
	struct rpc_server *s = c->owner;

	if (LIST_NEXT(c, link))
		return LIST_NEXT(c, link);
	while ((s = LIST_NEXT(s, link)))
		if (!LIST_EMPTY(&s->connections))
			return LIST_FIRST(&s->connections);
	return NULL;
}

/* Those without a call first, the oldest of them; then the one that holds most. */
static bool goes_before(const struct connection *a, const struct connection *b)
{
	if (!a->n_calls != !b->n_calls)
		return !a->n_calls;
	if (a->n_calls && a->held != b->held)
		return a->held > b->held;
	return a->active_ms < b->active_ms;
}

static void make_room(struct rpc *rpc)
{
	struct connection *found = NULL;
	size_t n = 0;

	for (struct connection *c = first(rpc); c; c = next(c)) {
		if (c->kept || c->closing)
			continue;
		n++;
		if (!found || goes_before(c, found))
			found = c;
	}
	if (n >= CONNECTIONS_MAX)
		connection_cut(found);
}

static void share_buffers(const struct rpc *rpc)
{
	size_t n = 0, share;

	for (struct connection *c = first(rpc); c; c = next(c))
		n++;
	if (!n)
		return;
	share = BUFFERED_MAX / n;
	if (share < BUFFERED_SHARE_MIN)
		share = BUFFERED_SHARE_MIN;
	if (share > BUFFERED_SHARE_MAX)
		share = BUFFERED_SHARE_MAX;
	for (struct connection *c = first(rpc); c; c = next(c))
		if (c->share != share) {
			c->share = share;
			grpc_resource_quota_resize(c->quota, share);
		}
}

/* --- bytes that it holds --- */

bool connection_charge(struct connection *c, size_t bytes)
{
	struct rpc *rpc = c->owner->rpc;
	struct connection *worst;

	c->held += bytes;
	if (c->closing)
		return true;
	rpc->held += bytes;
	while (rpc->held > HELD_MAX) {
		worst = NULL;
		for (struct connection *o = first(rpc); o; o = next(o))
			if (!o->kept && !o->closing && o->held && (!worst || o->held > worst->held))
				worst = o;
		if (!worst)
			break;
		connection_cut(worst);
	}
	return c->kept || (!c->closing && rpc->held <= HELD_MAX);
}

void connection_discharge(struct connection *c, size_t bytes)
{
	assert(c->held >= bytes);
	c->held -= bytes;
	if (!c->closing)
		c->owner->rpc->held -= bytes;
}

/* --- late connections --- */

static void sweep(void *arg);

static void sweep_later(struct rpc *rpc)
{
	if (!rpc->sweep)
		rpc->sweep = rpc_after(rpc, SWEEP_MS, sweep, rpc);
}

void connection_expect(struct connection *c)
{
	sweep_later(c->owner->rpc);
}

/* Runs as long as something is awaited of a peer, and only then. */
static void sweep(void *arg)
{
	struct rpc *rpc = arg;
	int64_t limit = clock_mono_ms() - SILENT_MS;
	bool wait = false;

	rpc->sweep = NULL;
	for (struct connection *c = first(rpc); c; c = next(c)) {
		if (c->closing)
			continue;
		if (!c->called && c->active_ms < limit)
			connection_cut(c);
		else if (!c->called || incoming_sweep(&c->calls, limit))
			wait = true;
	}
	if (wait && !rpc->stopping)
		sweep_later(rpc);
}

/* --- beginning and end --- */

static void shut_down(void *owner, bool ok)
{
	struct connection *c = owner;

	c->drained = true;
	connection_settle(c);
}

static void start(struct connection *c, int fd)
{
	grpc_server_credentials *creds = grpc_insecure_server_credentials_create();
	grpc_arg args[ARGUMENTS_MAX + 1];
	size_t n = arguments(args, RECEIVE_LIMIT, c->quota);
	struct rpc *rpc = c->owner->rpc;

	args[n++] = argument(GRPC_ARG_MAX_CONCURRENT_STREAMS, CALLS_MAX);
	c->server = grpc_server_create(&(grpc_channel_args) { n, args }, NULL);
	grpc_server_register_completion_queue(c->server, rpc->queue, NULL);
	grpc_server_start(c->server);
	arm_intake(c);
	grpc_server_add_channel_from_fd(c->server, fd, creds);
	grpc_server_credentials_release(creds);
}

static void connection_open(struct rpc_server *s, int fd, const struct rpc_peer *peer,
			    uint64_t guard)
{
	struct rpc *rpc = s->rpc;
	struct connection *c;
	/* gRPC does not report the end of a connection; the kernel does, on a copy of the
	 * descriptor. */
	int watch = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (watch < 0) {
		close(fd);
		return;
	}
	make_room(rpc);
	c = xcalloc(1, sizeof(*c));
	*c = (struct connection) { .owner = s,
				   .id = ++rpc->last_connection,
				   .watch = watch,
				   .peer = *peer,
				   .guard = guard,
				   .quota = grpc_resource_quota_create("connection"),
				   .intake.tag = { call_came, c },
				   .active_ms = clock_mono_ms(),
				   .shut = { shut_down, c } };
	LIST_INIT(&c->calls);
	LIST_INSERT_HEAD(&s->connections, c, link);
	share_buffers(rpc);
	start(c, fd);
	acceptor_watch(rpc->acceptor, c->id, watch);
	sweep_later(rpc);
}

void connection_ended(struct rpc *rpc, uint64_t id)
{
	struct connection *c = first(rpc);

	while (c && c->id != id)
		c = next(c);
	if (c)
		connection_cut(c);
}

/* when its calls are over */
/* Its bytes are about to be freed, and do not count any more. */
static void connection_close(struct connection *c)
{
	if (c->closing)
		return;
	c->closing = true;
	c->owner->rpc->held -= c->held;
	grpc_server_shutdown_and_notify(c->server, c->owner->rpc->queue, &c->shut);
}

void connection_cut(struct connection *c)
{
	connection_close(c);
	if (!c->drained)
		grpc_server_cancel_all_calls(c->server);
}

void connection_settle(struct connection *c)
{
	struct rpc_server *s = c->owner;

	if (!c->drained || c->intake.armed || !LIST_EMPTY(&c->calls))
		return;
	grpc_server_destroy(c->server);
	grpc_resource_quota_unref(c->quota);
	acceptor_unwatch(s->rpc->acceptor, c->watch);
	close(c->watch);
	LIST_REMOVE(c, link);
	free(c);
	share_buffers(s->rpc);
	server_settle(s);
}

/* A server: one listening socket, its connections, and the order in which it ends. */

#define SOCKET_MODE 0660 /* the kubelet is root */
/* How long a closing server waits for its peers to read the end of their calls before it cuts the
 * connections. */
#define GRACE_MS 50

static int open_server(struct rpc *rpc, const char *socket, const struct rpc_method *methods,
		       size_t n, void *ctx, bool guarded, struct rpc_server **ret, struct err *err)
{
	struct listen_socket listening;
	struct rpc_server *s;
	int r;

	assert(rpc_on_thread(rpc));
	if (rpc->stopping)
		return err_set(err, ESHUTDOWN, "%s is not served: stopping", socket);
	r = listen_open(socket, SOCKET_MODE, &listening, err);
	if (r < 0)
		return r;
	s = xcalloc(1, sizeof(*s));
	*s = (struct rpc_server) { .rpc = rpc,
				   .id = ++rpc->last_server,
				   .path = xstrdup(socket),
				   .listening = listening,
				   .methods = methods,
				   .n_methods = n,
				   .ctx = ctx,
				   .guarded = guarded };
	LIST_INIT(&s->connections);
	LIST_INSERT_HEAD(&rpc->servers, s, link);
	acceptor_set(rpc->acceptor, s->id, listening.fd, guarded);
	*ret = s;
	return 0;
}

int rpc_server_open(struct rpc *rpc, const char *socket, const struct rpc_method *methods, size_t n,
		    void *ctx, struct rpc_server **ret, struct err *err)
{
	return open_server(rpc, socket, methods, n, ctx, false, ret, err);
}

int rpc_server_open_guarded(struct rpc *rpc, const char *socket, const struct rpc_method *methods,
			    size_t n, void *ctx, struct rpc_server **ret, struct err *err)
{
	return open_server(rpc, socket, methods, n, ctx, true, ret, err);
}

void rpc_server_trust(struct rpc_server *s, const struct rpc_peer *peer)
{
	assert(rpc_on_thread(s->rpc));
	acceptor_trust(s->rpc->acceptor, s->id, peer);
}

/* Connections stay; a client that the former socket had queued is refused. */
static int listen_at(struct rpc_server *s, const char *path, struct err *err)
{
	struct listen_socket fresh;
	int r;

	assert(rpc_on_thread(s->rpc));
	if (s->closing)
		return err_set(err, ESHUTDOWN, "%s is not served any more", s->path);
	r = listen_open(path, SOCKET_MODE, &fresh, err);
	if (r < 0)
		return r;
	acceptor_set(s->rpc->acceptor, s->id, fresh.fd, s->guarded);
	listen_close(&s->listening, s->path);
	s->listening = fresh;
	return 0;
}

int rpc_server_relisten(struct rpc_server *s, struct err *err)
{
	return listen_intact(&s->listening, s->path) ? 0 : listen_at(s, s->path, err);
}

int rpc_server_move(struct rpc_server *s, const char *path, struct err *err)
{
	int r = listen_at(s, path, err);

	if (r < 0)
		return r;
	free(s->path);
	s->path = xstrdup(path);
	return 0;
}

void server_adopt(struct rpc *rpc, uint64_t server, int fd, const struct rpc_peer *peer,
		  uint64_t guard)
{
	struct rpc_server *s;

	LIST_FOREACH (s, &rpc->servers, link)
		if (s->id == server)
			break;
	if (!s || s->closing)
		close(fd);
	else
		connection_open(s, fd, peer, guard);
}

/* --- the end --- */

static void over(void *arg)
{
	struct rpc_server *s = arg;

	s->grace = NULL;
	s->gone = true;
	if (s->released)
		server_release(s);
}

static void grace_over(void *arg)
{
	struct rpc_server *s = arg;
	struct connection *c;

	s->grace = NULL;
	LIST_FOREACH (c, &s->connections, link)
		connection_cut(c);
}

/* A connection ends only when every call of it is gone, hence the limit of time. */
void server_shut(struct rpc_server *s)
{
	struct connection *c;
	struct incoming *in;

	assert(!s->closing);
	s->closing = true;
	acceptor_set(s->rpc->acceptor, s->id, -1, false);
	listen_close(&s->listening, s->path);
	LIST_FOREACH (c, &s->connections, link) {
		LIST_FOREACH (in, &c->calls, link)
			incoming_stop(in);
		connection_close(c);
	}
	s->grace = rpc_after(s->rpc, GRACE_MS, grace_over, s);
	server_settle(s);
}

bool server_alive(const struct rpc_server *s)
{
	return !s->gone;
}

/* a connection of it is gone */
/* Later, so that done() never runs in rpc_server_close(). */
static void server_settle(struct rpc_server *s)
{
	if (!s->closing || s->ending || !LIST_EMPTY(&s->connections))
		return;
	s->ending = true;
	rpc_timer_cancel(s->grace);
	s->grace = rpc_after(s->rpc, 0, over, s);
}

void server_release(struct rpc_server *s)
{
	void (*done)(void *arg) = s->done;
	void *arg = s->done_arg;

	assert(s->gone && !s->grace);
	LIST_REMOVE(s, link);
	free(s->path);
	free(s);
	if (done)
		done(arg);
}

/* A server that the stop has already ended stays a valid handle: the loop then calls done(). */
void rpc_server_close(struct rpc_server *s, void (*done)(void *arg), void *arg)
{
	assert(rpc_on_thread(s->rpc));
	assert(!s->released);
	s->released = true;
	s->done = done;
	s->done_arg = arg;
	if (!s->closing)
		server_shut(s);
}
