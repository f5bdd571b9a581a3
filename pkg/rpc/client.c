/*
 * Calls to another program's unix socket. The connection is made here and not by gRPC, which makes
 * a channel wait after a failed attempt, refuses calls meanwhile and goes on trying on its own; the
 * kubelet is back in milliseconds, which inotify shows. So each call that finds no connection makes
 * its own attempt, and a guard stands between gRPC and the program that has the socket's name.
 *
 * Time limits are timers of ours, which end calls by cancelling them: each that gRPC has makes its
 * threads wake up, afterwards as well (docs/design/grpc.md §2).
 */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#if __has_include(<grpc/credentials.h>)
#include <grpc/credentials.h>
#endif
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>

#include "base/err.h"
#include "base/mem.h"
#include "rpc/guard-internal.h"

struct rpc_channel {
	LIST_ENTRY(rpc_channel) link;
	struct rpc *rpc;
	grpc_channel *channel; /* NULL: not connected */
	int watch;	       /* a copy of its descriptor; -1: the attempt failed */
	char *path;
	int max_receive;
	struct client_call_list calls;
	bool closed;
};

/* A call of ours, unary (message is NULL) or streaming. */
struct rpc_subscription {
	LIST_ENTRY(rpc_subscription) link;
	struct rpc_channel *channel;
	grpc_call *call;
	struct tag begun, received, ended;
	struct rpc_timer *limit; /* NULL: none, or it is over */
	unsigned batches;
	grpc_byte_buffer *request, *answer;
	grpc_metadata_array headers, trailers;
	grpc_status_code status;
	grpc_slice details;
	void (*message)(void *arg, struct bytes body);
	rpc_done_fn done;
	void *arg;
	bool paused, reading, cancelled;
	bool late; /* cancelled, for its time was over */
	bool dry;  /* the last message was read */
};

/* --- channel --- */

struct rpc_channel *rpc_channel_open(struct rpc *rpc, const char *socket, size_t max_receive)
{
	struct rpc_channel *ch = xcalloc(1, sizeof(*ch));

	assert(rpc_on_thread(rpc));
	*ch = (struct rpc_channel) { .rpc = rpc, .watch = -1, .path = xstrdup(socket) };
	ch->max_receive = max_receive < INT_MAX ? (int)max_receive : INT_MAX;
	LIST_INIT(&ch->calls);
	LIST_INSERT_HEAD(&rpc->channels, ch, link);
	return ch;
}

struct rpc_channel *channel_next(struct rpc_channel *ch)
{
	return LIST_NEXT(ch, link);
}

bool channel_busy(const struct rpc_channel *ch)
{
	return !LIST_EMPTY(&ch->calls);
}

static int dial(const char *path, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return err_set(err, ENAMETOOLONG, "connect to %s: its name is too long", path);
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	r = err_sys(err, "connect to %s", path);
	closep(&fd);
	return r;
}

/* gRPC's end of a connection whose other end has a guard; ch->watch is set. */
static int connect_guarded(struct rpc_channel *ch, struct err *err)
{
	int fd = dial(ch->path, err), inner;
	uint64_t id;

	if (fd < 0)
		return fd;
	ch->watch = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	inner = guards_add(ch->rpc->guards, fd, GUARD_OF_SERVER, &id);
	if (inner >= 0 && ch->watch >= 0)
		return inner;
	closep(&inner);
	closep(&ch->watch);
	ch->watch = -1;
	return err_set(err, EMFILE, "connect to %s: no descriptor is left", ch->path);
}

static grpc_arg words(const char *key, const char *value)
{
	return (grpc_arg) { .type = GRPC_ARG_STRING,
			    .key = (char *)key,
			    .value.string = (char *)value };
}

static grpc_channel *create(const struct rpc_channel *ch, int fd)
{
	grpc_resource_quota *quota = grpc_resource_quota_create("channel");
	grpc_channel_credentials *creds = grpc_insecure_credentials_create();
	grpc_arg args[ARGUMENTS_MAX + 2];
	size_t n = arguments(args, ch->max_receive, quota);
	grpc_channel *channel;

	grpc_resource_quota_resize(quota, (size_t)ch->max_receive + BUFFERED_SHARE_MAX);
	args[n++] = words(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
	if (ch->rpc->user_agent)
		args[n++] = words(GRPC_ARG_PRIMARY_USER_AGENT_STRING, ch->rpc->user_agent);
	channel =
		grpc_channel_create_from_fd(ch->path, fd, creds, &(grpc_channel_args) { n, args });
	grpc_channel_credentials_release(creds);
	grpc_resource_quota_unref(quota);
	return channel;
}

static void disconnect(struct rpc_channel *ch)
{
	if (!ch->channel)
		return;
	grpc_channel_destroy(STEAL(ch->channel));
	closep(&ch->watch);
	ch->watch = -1;
}

static bool is_connected(const struct rpc_channel *ch)
{
	struct pollfd p = { .fd = ch->watch, .events = POLLRDHUP };

	return ch->watch >= 0 && poll(&p, 1, 0) == 0;
}

/* Where it fails, a channel whose calls all have that status. */
static void reconnect(struct rpc_channel *ch)
{
	struct err err;
	int fd;

	disconnect(ch);
	fd = connect_guarded(ch, &err);
	ch->channel = fd >= 0 ? create(ch, fd)
			      : grpc_lame_client_channel_create(ch->path, GRPC_STATUS_UNAVAILABLE,
								err.msg);
}

void channel_free(struct rpc_channel *ch)
{
	assert(!channel_busy(ch));
	disconnect(ch);
	LIST_REMOVE(ch, link);
	free(ch->path);
	free(ch);
}

void channel_cancel_calls(struct rpc_channel *ch)
{
	struct rpc_subscription *s;

	LIST_FOREACH (s, &ch->calls, link)
		rpc_subscription_cancel(s);
}

void rpc_channel_close(struct rpc_channel *ch)
{
	if (!ch)
		return;
	assert(rpc_on_thread(ch->rpc));
	assert(!ch->closed);
	ch->closed = true;
	channel_cancel_calls(ch);
	if (!channel_busy(ch))
		channel_free(ch);
}

/* --- call --- */

/* Taken off its channel before done(), which may close the channel; freed after. */
static void conclude(struct rpc_subscription *s)
{
	struct rpc_channel *ch = s->channel;
	enum rpc_status status = (enum rpc_status)s->status;
	grpc_slice slice = grpc_empty_slice();
	struct bytes body = { 0 };
	const char *message;
	char *details;

	LIST_REMOVE(s, link);
	rpc_timer_cancel(STEAL(s->limit));
	/* Its server may be going: it takes no new calls, and the connection is still there. */
	if (s->status == GRPC_STATUS_UNAVAILABLE && !channel_busy(ch))
		disconnect(ch);
	if (ch->closed && !channel_busy(ch))
		channel_free(ch);
	message = details = grpc_slice_to_c_string(s->details);
	if (s->late && status == RPC_CANCELLED) {
		status = RPC_DEADLINE_EXCEEDED;
		message = "Deadline Exceeded";
	}
	if (!s->message && status == RPC_OK &&
	    (!s->answer || !buffer_read(s->answer, &slice, &body))) {
		status = RPC_INTERNAL;
		message = "the answer carries no message";
	}
	s->done(s->arg, status, message, body);
	grpc_slice_unref(slice);
	gpr_free(details);
	grpc_call_unref(s->call);
	grpc_slice_unref(s->details);
	grpc_metadata_array_destroy(&s->headers);
	grpc_metadata_array_destroy(&s->trailers);
	buffer_free(&s->request);
	buffer_free(&s->answer);
	free(s);
}

static void begin_batch(struct rpc_subscription *s, const grpc_op *ops, size_t n, struct tag *tag)
{
	grpc_call_error r = grpc_call_start_batch(s->call, ops, n, tag, NULL);

	assert(r == GRPC_CALL_OK);
	(void)r;
	s->batches++;
}

static void end_batch(struct rpc_subscription *s)
{
	assert(s->batches);
	if (--s->batches == 0)
		conclude(s);
}

static void batch_done(void *owner, bool ok)
{
	(void)ok; /* the status has it */
	end_batch(owner);
}

static void read_next(struct rpc_subscription *s)
{
	grpc_op op = { .op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &s->answer };

	if (s->reading || s->paused || s->dry)
		return;
	s->reading = true;
	begin_batch(s, &op, 1, &s->received);
}

static void received(void *owner, bool ok)
{
	struct rpc_subscription *s = owner;
	struct bytes body;
	grpc_slice slice;

	s->dry = !ok || !s->answer;
	if (!s->dry && !s->cancelled) {
		if (buffer_read(s->answer, &slice, &body)) {
			s->message(s->arg, body);
			grpc_slice_unref(slice);
		} else {
			rpc_subscription_cancel(s);
		}
	}
	buffer_free(&s->answer);
	s->reading = false; /* not earlier: message() may have unpaused */
	read_next(s);
	end_batch(s);
}

static void took_too_long(void *arg)
{
	struct rpc_subscription *s = arg;

	s->limit = NULL;
	s->late = true;
	rpc_subscription_cancel(s);
}

static struct rpc_subscription *new_call(struct rpc_channel *ch, const char *path,
					 struct bytes request, rpc_done_fn done, void *arg)
{
	struct rpc_subscription *s = xcalloc(1, sizeof(*s));
	grpc_slice method = grpc_slice_from_copied_string(path);

	assert(rpc_on_thread(ch->rpc));
	assert(!ch->closed);
	*s = (struct rpc_subscription) { .channel = ch,
					 .begun = { batch_done, s },
					 .received = { received, s },
					 .ended = { batch_done, s },
					 .request = buffer_new(request),
					 .done = done,
					 .arg = arg };
	grpc_metadata_array_init(&s->headers);
	grpc_metadata_array_init(&s->trailers);
	if (!is_connected(ch))
		reconnect(ch);
	s->call =
		grpc_channel_create_call(ch->channel, NULL, GRPC_PROPAGATE_DEFAULTS, ch->rpc->queue,
					 method, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	grpc_slice_unref(method);
	LIST_INSERT_HEAD(&ch->calls, s, link);
	return s;
}

static size_t add_request(struct rpc_subscription *s, grpc_op *ops)
{
	ops[0] = (grpc_op) { .op = GRPC_OP_SEND_INITIAL_METADATA };
	ops[1] = (grpc_op) { .op = GRPC_OP_SEND_MESSAGE,
			     .data.send_message.send_message = s->request };
	ops[2] = (grpc_op) { .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT };
	ops[3] = (grpc_op) { .op = GRPC_OP_RECV_INITIAL_METADATA,
			     .data.recv_initial_metadata.recv_initial_metadata = &s->headers };
	return 4;
}

static grpc_op receive_status(struct rpc_subscription *s)
{
	return (grpc_op) { .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
			   .data.recv_status_on_client = { .trailing_metadata = &s->trailers,
							   .status = &s->status,
							   .status_details = &s->details } };
}

void rpc_call_unary(struct rpc_channel *ch, const char *path, struct bytes request,
		    unsigned timeout_ms, rpc_done_fn done, void *arg)
{
	struct rpc_subscription *s = new_call(ch, path, request, done, arg);
	grpc_op ops[6];
	size_t n = add_request(s, ops);

	ops[n++] = (grpc_op) { .op = GRPC_OP_RECV_MESSAGE,
			       .data.recv_message.recv_message = &s->answer };
	ops[n++] = receive_status(s);
	begin_batch(s, ops, n, &s->ended);
	if (timeout_ms)
		s->limit = rpc_after(ch->rpc, timeout_ms, took_too_long, s);
	if (ch->rpc->stopping)
		rpc_subscription_cancel(s);
}

struct rpc_subscription *rpc_call_stream(struct rpc_channel *ch, const char *path,
					 struct bytes request,
					 void (*message)(void *arg, struct bytes body),
					 rpc_done_fn done, void *arg)
{
	struct rpc_subscription *s = new_call(ch, path, request, done, arg);
	grpc_op ops[4], status = receive_status(s);

	s->message = message;
	begin_batch(s, ops, add_request(s, ops), &s->begun);
	begin_batch(s, &status, 1, &s->ended);
	read_next(s);
	if (ch->rpc->stopping)
		rpc_subscription_cancel(s);
	return s;
}

void rpc_subscription_cancel(struct rpc_subscription *s)
{
	assert(rpc_on_thread(s->channel->rpc));
	s->cancelled = true;
	grpc_call_cancel(s->call, NULL);
}

void rpc_subscription_pause(struct rpc_subscription *s, bool paused)
{
	assert(rpc_on_thread(s->channel->rpc));
	s->paused = paused;
	read_next(s);
}
