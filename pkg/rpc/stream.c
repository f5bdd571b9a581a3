/*
 * A server stream. At most one message is in flight and one waits; a newer one replaces the one
 * that waits, so a slow reader skips states and costs two messages of memory, whatever it does.
 */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

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

struct incoming *stream_new(void)
{
	struct rpc_stream *stream = xcalloc(1, sizeof(*stream));

	return &stream->in;
}

void stream_free(struct incoming *in)
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

void stream_open(struct incoming *in, struct bytes request)
{
	struct rpc_stream *stream = stream_of(in);

	if (stream->ending)
		return;
	stream->opened = true;
	in->method->opened(in->conn->owner->ctx, stream, request);
}

void stream_sent(struct incoming *in)
{
	struct rpc_stream *stream = stream_of(in);

	stream->in_flight = false;
	pump(stream);
}

void stream_closed(struct incoming *in)
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
