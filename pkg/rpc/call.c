/*
 * A call that came in, from its path to the end of its answer or stream, and the bytes of both.
 * server.c begins it; handlers answer by rpc.h.
 */
#include <assert.h>
#include <ctype.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rpc/guard-internal.h"
#include "rpc/rpc-internal.h"

static struct incoming *stream_new(void);
static void stream_free(struct incoming *in);
static void stream_open(struct incoming *in, struct bytes request);
static void stream_sent(struct incoming *in);
static void stream_closed(struct incoming *in);

grpc_byte_buffer *buffer_new(struct bytes body)
{
	grpc_slice slice =
		body.len ? grpc_slice_from_copied_buffer((const char *)body.data, body.len)
			 : grpc_empty_slice();
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

	grpc_slice_unref(slice);
	return buffer;
}

void buffer_free(grpc_byte_buffer **buffer)
{
	if (*buffer)
		grpc_byte_buffer_destroy(*buffer);
	*buffer = NULL;
}

bool buffer_read(grpc_byte_buffer *buffer, grpc_slice *ret_slice, struct bytes *ret)
{
	grpc_byte_buffer_reader reader;

	if (buffer->data.raw.compression != GRPC_COMPRESS_NONE ||
	    !grpc_byte_buffer_reader_init(&reader, buffer))
		return false;
	*ret_slice = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	ret->data = GRPC_SLICE_START_PTR(*ret_slice);
	ret->len = GRPC_SLICE_LENGTH(*ret_slice);
	return true;
}

/* One incoming call: from the path to a handler, and one answer back. Streams go on below. */

/* Bytes of a call beside its request, about: the call here and in gRPC, and the handler's own
 * questions to others. */
#define CALL_BYTES 8192
/* Decoded, a request takes a multiple of its bytes. */
#define DECODED_FACTOR 3

/* A unary call, also one whose path is unknown. */
struct rpc_call {
	struct incoming in; /* first */
	struct arena *arena;
	char *user_agent;
	int64_t began_ns;
	bool handed; /* the handler owes rpc_reply() */
	bool replied;
};

static struct rpc_call *unary_of(struct incoming *in)
{
	assert(!in->method || in->method->unary);
	return (struct rpc_call *)(void *)in;
}

static bool is_stream(const struct incoming *in)
{
	return in->method && !in->method->unary;
}

static void discharge(struct incoming *in, size_t bytes)
{
	assert(in->charged >= bytes);
	in->charged -= bytes;
	if (in->conn)
		connection_discharge(in->conn, bytes);
	else
		in->rpc->held -= bytes;
}

static void call_free(struct incoming *in)
{
	discharge(in, in->charged);
	if (is_stream(in)) {
		stream_free(in);
		return;
	}
	arena_free(unary_of(in)->arena);
	free(unary_of(in)->user_agent);
	free(in);
}

/* --- batches --- */

static void begin_batch(struct incoming *in, const grpc_op *ops, size_t n, struct tag *tag)
{
	grpc_call_error r = grpc_call_start_batch(in->call, ops, n, tag, NULL);

	assert(r == GRPC_CALL_OK);
	(void)r;
	in->batches++;
}

/* After the last one gRPC is through with the call. A handler that still owes its answer keeps the
 * struct, on the list of orphans. */
static void end_batch(struct incoming *in)
{
	struct connection *c = in->conn;

	assert(in->batches);
	if (--in->batches)
		return;
	grpc_call_unref(in->call);
	in->call = NULL;
	LIST_REMOVE(in, link);
	c->n_calls--;
	c->kept -= in->kept;
	c->active_ms = clock_mono_ms();
	connection_discharge(c, in->charged);
	in->conn = NULL;
	in->rpc->held += in->charged;
	if (!is_stream(in) && unary_of(in)->handed && !unary_of(in)->replied)
		LIST_INSERT_HEAD(&in->rpc->orphans, in, link);
	else
		call_free(in);
	connection_settle(c);
}

static void sent(void *owner, bool ok)
{
	struct incoming *in = owner;

	(void)ok; /* a peer that went shows itself by `closed` */
	discharge(in, in->sending_len);
	in->sending_len = 0;
	buffer_free(&in->sending);
	if (is_stream(in))
		stream_sent(in);
	end_batch(in);
}

static size_t add_headers(struct incoming *in, grpc_op *ops, size_t n)
{
	if (in->headers_sent)
		return n;
	in->headers_sent = true;
	ops[n] = (grpc_op) { .op = GRPC_OP_SEND_INITIAL_METADATA };
	return n + 1;
}

static size_t add_message(struct incoming *in, grpc_op *ops, size_t n, grpc_byte_buffer *body)
{
	assert(!in->sending);
	if (!body)
		return n;
	in->sending = body;
	/* Not later: gRPC takes the slices out of the buffer. */
	in->sending_len = grpc_byte_buffer_length(body);
	in->charged += in->sending_len;
	connection_charge(in->conn, in->sending_len);
	ops[n] = (grpc_op) { .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = body };
	return n + 1;
}

static void incoming_send(struct incoming *in, grpc_byte_buffer *body)
{
	grpc_op ops[2];
	size_t n;

	assert(!in->answered && !in->over);
	n = add_headers(in, ops, 0);
	n = add_message(in, ops, n, body);
	begin_batch(in, ops, n, &in->sent);
}

static void incoming_finish(struct incoming *in, enum rpc_status status, const char *message,
			    grpc_byte_buffer *body)
{
	grpc_slice details = grpc_slice_from_copied_string(message ? message : "");
	grpc_op ops[3];
	size_t n;

	assert(!in->answered);
	in->answered = true;
	n = add_headers(in, ops, 0);
	n = add_message(in, ops, n, body);
	ops[n++] = (grpc_op) { .op = GRPC_OP_SEND_STATUS_FROM_SERVER,
			       .data.send_status_from_server = { .status = (grpc_status_code)status,
								 .status_details = &details } };
	begin_batch(in, ops, n, &in->sent);
	grpc_slice_unref(details);
}

void incoming_stop(struct incoming *in)
{
	if (in->answered || in->over)
		return;
	if (is_stream(in))
		rpc_stream_end((struct rpc_stream *)(void *)in, RPC_UNAVAILABLE,
			       "the server is closing");
	else
		incoming_finish(in, RPC_UNAVAILABLE, "the server is closing", NULL);
}

/* --- the life of a call --- */

static void closed(void *owner, bool ok)
{
	struct incoming *in = owner;

	in->over = true;
	if (is_stream(in))
		stream_closed(in);
	end_batch(in);
}

static void hand_over(struct incoming *in, struct bytes request)
{
	struct rpc_call *call = unary_of(in);

	in->charged += CALL_BYTES + DECODED_FACTOR * request.len;
	if (!connection_charge(in->conn, in->charged)) {
		incoming_finish(in, RPC_RESOURCE_EXHAUSTED, "too many calls wait", NULL);
		return;
	}
	call->arena = arena_new(request.len + 4096);
	request.data = arena_copy(call->arena, request.data, request.len);
	call->handed = true;
	call->began_ns = in->method->answered ? clock_mono_ns() : 0;
	in->method->unary(in->conn->owner->ctx, call, request);
}

static void received(void *owner, bool ok)
{
	struct incoming *in = owner;
	struct bytes request;
	grpc_slice slice;

	in->awaited = false;
	if (!ok || in->answered || in->over) {
		; /* gone, refused or closing: no client waits for the handler */
	} else if (!in->request) {
		incoming_finish(in, RPC_INVALID_ARGUMENT, "the call carries no request", NULL);
	} else if (!buffer_read(in->request, &slice, &request)) {
		incoming_finish(in, RPC_INVALID_ARGUMENT, "the request is compressed", NULL);
	} else {
		if (is_stream(in))
			stream_open(in, request);
		else
			hand_over(in, request);
		grpc_slice_unref(slice);
	}
	buffer_free(&in->request);
	end_batch(in);
}

/* The path comes from the peer: only plain text of it is sent back. */
static void refuse_path(struct incoming *in, grpc_slice path)
{
	char shown[129], text[sizeof(shown) + 32];
	size_t len = GRPC_SLICE_LENGTH(path), n = len < sizeof(shown) ? len : sizeof(shown) - 1;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = GRPC_SLICE_START_PTR(path)[i];

		shown[i] = c < 0x80 && isprint(c) ? (char)c : '?';
	}
	shown[n] = '\0';
	snprintf(text, sizeof(text), "unknown method %s%s", shown, n < len ? "..." : "");
	incoming_finish(in, RPC_UNIMPLEMENTED, text, NULL);
}

static struct incoming *incoming_new(const struct rpc_method *method,
				     const grpc_metadata_array *metadata)
{
	struct rpc_call *call;

	if (method && !method->unary)
		return stream_new();
	call = xcalloc(1, sizeof(*call));
	for (size_t i = 0; i < metadata->count && !call->user_agent; i++) {
		grpc_slice value = metadata->metadata[i].value;

		if (grpc_slice_str_cmp(metadata->metadata[i].key, "user-agent") == 0)
			call->user_agent = xasprintf("%.*s", (int)GRPC_SLICE_LENGTH(value),
						     (const char *)GRPC_SLICE_START_PTR(value));
	}
	return &call->in;
}

void incoming_begin(struct connection *c, grpc_call *call, const grpc_call_details *details,
		    const grpc_metadata_array *metadata)
{
	const struct rpc_server *s = c->owner;
	const struct rpc_method *method = NULL;
	struct incoming *in;
	grpc_op op;

	for (size_t i = 0; i < s->n_methods && !method; i++)
		if (grpc_slice_str_cmp(details->method, s->methods[i].path) == 0)
			method = &s->methods[i];
	in = incoming_new(method, metadata);
	in->rpc = s->rpc;
	in->conn = c;
	in->call = call;
	in->method = method;
	in->received = (struct tag) { received, in };
	in->closed = (struct tag) { closed, in };
	in->sent = (struct tag) { sent, in };
	LIST_INSERT_HEAD(&c->calls, in, link);
	c->n_calls++;

	op = (grpc_op) { .op = GRPC_OP_RECV_CLOSE_ON_SERVER,
			 .data.recv_close_on_server.cancelled = &in->cancelled };
	begin_batch(in, &op, 1, &in->closed);
	/* Headers are kept for as long as a call is open. */
	if (c->n_calls > CALLS_ABUSE || metadata->count > HEADERS_N_MAX)
		connection_cut(c);
	if (!method) {
		refuse_path(in, details->method);
	} else {
		in->awaited = true;
		in->began_ms = clock_mono_ms();
		op = (grpc_op) { .op = GRPC_OP_RECV_MESSAGE,
				 .data.recv_message.recv_message = &in->request };
		begin_batch(in, &op, 1, &in->received);
		connection_expect(c);
	}
	if (c->closing)
		incoming_stop(in);
}

bool incoming_sweep(const struct incoming_list *calls, int64_t limit_ms)
{
	struct incoming *in;
	bool wait = false;

	LIST_FOREACH (in, calls, link) {
		if (!in->awaited)
			continue;
		if (in->began_ms >= limit_ms)
			wait = true;
		else
			grpc_call_cancel_with_status(in->call, GRPC_STATUS_DEADLINE_EXCEEDED,
						     "the request did not come", NULL);
	}
	return wait;
}

static void incoming_keep(struct incoming *in)
{
	if (in->kept)
		return;
	in->kept = true;
	if (!in->conn->kept++ && in->conn->guard)
		guards_trust(in->rpc->guards, in->conn->guard);
}

/* --- for handlers --- */

struct arena *rpc_call_arena(struct rpc_call *call)
{
	return call->arena;
}

const char *rpc_call_user_agent(struct rpc_call *call)
{
	return call->user_agent ? call->user_agent : "";
}

const struct rpc_peer *rpc_call_peer(const struct rpc_call *call)
{
	return &call->in.conn->peer;
}

void rpc_reply(struct rpc_call *call, enum rpc_status status, const char *message,
	       struct bytes body)
{
	struct incoming *in = &call->in;

	assert(call->handed && !call->replied);
	call->replied = true;
	if (!in->conn) { /* an orphan */
		LIST_REMOVE(in, link);
		call_free(in);
		return;
	}
	assert(rpc_on_thread(in->rpc));
	if (in->method->answered)
		in->method->answered(in->conn->owner->ctx, in->method, status,
				     clock_mono_ns() - call->began_ns);
	if (!in->answered && !in->over)
		incoming_finish(in, status, message, status == RPC_OK ? buffer_new(body) : NULL);
}

void orphans_free(struct rpc *rpc)
{
	struct incoming *in;

	while ((in = LIST_FIRST(&rpc->orphans))) {
		LIST_REMOVE(in, link);
		call_free(in);
	}
}

/*
 * A server stream. At most one message is in flight and one waits; a newer one replaces the one
 * that waits, so a slow reader skips states and costs two messages of memory, whatever it does.
 */

struct rpc_stream {
	struct incoming in; /* first */
	void *data;
	grpc_byte_buffer *waiting;
	bool opened, in_flight;
	bool ending;
	enum rpc_status end_status;
	char *end_message;
};

static struct rpc_stream *stream_of(struct incoming *in)
{
	return (struct rpc_stream *)(void *)in;
}

static struct incoming *stream_new(void)
{
	struct rpc_stream *stream = xcalloc(1, sizeof(*stream));

	return &stream->in;
}

static void stream_free(struct incoming *in)
{
	struct rpc_stream *stream = stream_of(in);

	buffer_free(&stream->waiting);
	free(stream->end_message);
	free(stream);
}

static void pump(struct rpc_stream *stream)
{
	struct incoming *in = &stream->in;

	if (stream->in_flight || in->answered || in->over)
		return;
	if (stream->waiting) {
		stream->in_flight = true;
		incoming_send(in, STEAL(stream->waiting));
	} else if (stream->ending) {
		incoming_finish(in, stream->end_status, stream->end_message, NULL);
	}
}

static void stream_open(struct incoming *in, struct bytes request)
{
	struct rpc_stream *stream = stream_of(in);

	if (stream->ending)
		return;
	stream->opened = true;
	in->method->opened(in->conn->owner->ctx, stream, request);
}

/* the message in flight has left */
static void stream_sent(struct incoming *in)
{
	struct rpc_stream *stream = stream_of(in);

	stream->in_flight = false;
	pump(stream);
}

/* the call is over */
static void stream_closed(struct incoming *in)
{
	struct rpc_stream *stream = stream_of(in);

	if (!stream->opened)
		return;
	stream->opened = false;
	in->method->closed(in->conn->owner->ctx, stream);
}

void rpc_stream_send(struct rpc_stream *stream, struct bytes body)
{
	assert(stream->in.conn && rpc_on_thread(stream->in.rpc));
	if (stream->ending || stream->in.over)
		return;
	buffer_free(&stream->waiting);
	stream->waiting = buffer_new(body);
	pump(stream);
}

void rpc_stream_end(struct rpc_stream *stream, enum rpc_status status, const char *message)
{
	assert(stream->in.conn && rpc_on_thread(stream->in.rpc));
	if (stream->ending || stream->in.over)
		return;
	stream->ending = true;
	stream->end_status = status;
	stream->end_message = message ? xstrdup(message) : NULL;
	pump(stream);
}

const struct rpc_peer *rpc_stream_peer(const struct rpc_stream *stream)
{
	return &stream->in.conn->peer;
}

void rpc_stream_keep(struct rpc_stream *stream)
{
	incoming_keep(&stream->in);
}

void rpc_stream_set_data(struct rpc_stream *stream, void *data)
{
	stream->data = data;
}

void *rpc_stream_data(const struct rpc_stream *stream)
{
	return stream->data;
}
