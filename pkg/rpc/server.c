/* A server: one listening socket, its connections, and the order in which it ends. */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

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

/* Later, so that done() never runs in rpc_server_close(). */
void server_settle(struct rpc_server *s)
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
