/* A server: one listening socket, one intake of calls, and the order in which it ends. */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<grpc/credentials.h>)
#include <grpc/credentials.h>
#endif
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>

#include "base/err.h"
#include "base/mem.h"

#define SOCKET_MODE	     0660 /* the kubelet is root */
#define RECEIVE_LIMIT	     (4 << 20)
#define CALLS_PER_CONNECTION 128
/* How long a closing server waits for its peers to read the end of their calls before it cuts the
 * connections. */
#define GRACE_MS 50

static void arm_intake(struct rpc_server *s)
{
	grpc_call_error r;

	grpc_call_details_init(&s->intake.details);
	grpc_metadata_array_init(&s->intake.metadata);
	s->intake.call = NULL;
	s->intake.armed = true;
	r = grpc_server_request_call(s->server, &s->intake.call, &s->intake.details, &s->intake.metadata,
				     s->rpc->queue, s->rpc->queue, &s->intake.tag);
	assert(r == GRPC_CALL_OK);
	(void)r;
}

static void call_came(void *owner, bool ok)
{
	struct rpc_server *s = owner;
	grpc_call *call = s->intake.call;
	grpc_call_details details = s->intake.details;
	grpc_metadata_array metadata = s->intake.metadata;

	s->intake.armed = false;
	/* First of all, so that the next call need not wait for the handler of this one. */
	if (ok && !s->closing)
		arm_intake(s);
	if (ok)
		incoming_begin(s, call, &details, &metadata);
	grpc_call_details_destroy(&details);
	grpc_metadata_array_destroy(&metadata);
	server_settle(s);
}

static void shut_down(void *owner, bool ok)
{
	struct rpc_server *s = owner;

	(void)ok;
	rpc_timer_cancel(STEAL(s->grace));
	s->drained = true;
	server_settle(s);
}

static void start_server(struct rpc_server *s)
{
	grpc_arg args[] = {
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		  .value.integer = RECEIVE_LIMIT },
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_MAX_CONCURRENT_STREAMS,
		  .value.integer = CALLS_PER_CONNECTION },
		{ .type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_ENABLE_CHANNELZ, .value.integer = 0 },
	};

	s->server = grpc_server_create(&(grpc_channel_args) { ARRAY_LEN(args), args }, NULL);
	grpc_server_register_completion_queue(s->server, s->rpc->queue, NULL);
	grpc_server_start(s->server);
	arm_intake(s);
}

int rpc_server_open(struct rpc *rpc, const char *socket, const struct rpc_method *methods, size_t n,
		    void *ctx, struct rpc_server **ret, struct err *err)
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
				   .intake.tag = { call_came, s },
				   .shut = { shut_down, s } };
	LIST_INIT(&s->calls);
	LIST_INSERT_HEAD(&rpc->servers, s, link);
	start_server(s);
	acceptor_set(rpc->acceptor, s->id, listening.fd);
	*ret = s;
	return 0;
}

bool rpc_server_socket_intact(const struct rpc_server *s)
{
	assert(rpc_on_thread(s->rpc));
	return listen_intact(&s->listening, s->path);
}

int rpc_server_relisten(struct rpc_server *s, struct err *err)
{
	struct listen_socket fresh;
	int r;

	assert(rpc_on_thread(s->rpc));
	if (s->closing)
		return err_set(err, ESHUTDOWN, "%s is not served any more", s->path);
	if (listen_intact(&s->listening, s->path))
		return 0;
	r = listen_open(s->path, SOCKET_MODE, &fresh, err);
	if (r < 0)
		return r;
	acceptor_set(s->rpc->acceptor, s->id, fresh.fd);
	closep(&s->listening.fd);
	s->listening = fresh;
	return 0;
}

void server_adopt(struct rpc *rpc, uint64_t server, int fd)
{
	grpc_server_credentials *creds;
	struct rpc_server *s;

	LIST_FOREACH(s, &rpc->servers, link)
	if (s->id == server)
		break;
	if (!s || s->closing) {
		close(fd);
		return;
	}
	creds = grpc_insecure_server_credentials_create();
	grpc_server_add_channel_from_fd(s->server, fd, creds);
	grpc_server_credentials_release(creds);
}

/* --- the end --- */

static void grace_over(void *arg)
{
	struct rpc_server *s = arg;

	s->grace = NULL;
	grpc_server_cancel_all_calls(s->server);
}

/* gRPC tells the end of the shutdown only when every call and connection is gone, hence the limit of time. */
void server_shut(struct rpc_server *s)
{
	struct incoming *in;

	assert(!s->closing);
	s->closing = true;
	acceptor_set(s->rpc->acceptor, s->id, -1);
	listen_close(&s->listening, s->path);
	LIST_FOREACH(in, &s->calls, link)
	incoming_stop(in);
	grpc_server_shutdown_and_notify(s->server, s->rpc->queue, &s->shut);
	s->grace = rpc_after(s->rpc, GRACE_MS, grace_over, s);
}

bool server_alive(const struct rpc_server *s)
{
	return s->server;
}

void server_settle(struct rpc_server *s)
{
	if (!s->server || !s->drained || s->intake.armed || !LIST_EMPTY(&s->calls))
		return;
	grpc_server_destroy(s->server);
	s->server = NULL;
	if (s->released)
		server_release(s);
}

void server_release(struct rpc_server *s)
{
	void (*done)(void *arg) = s->done;
	void *arg = s->done_arg;

	assert(!s->server && !s->grace);
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
