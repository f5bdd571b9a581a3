/*
 * A command finds handled whatever had reached our sockets before it. What is posted to the rpc
 * thread overtakes them: gRPC polls only while its queue is empty. So a command waits until two
 * messages of a stream to ourselves, one after the other, have come: the first may be handled
 * before the other events of its poll, the second is of a later poll.
 */
#include "kubelet.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define PATH_TURNS "/fakekubelet/Turns"

#define TRIPS 2

static void make_trip(struct kubelet *k)
{
	rpc_stream_send(k->turn_stream, (struct bytes) { (const uint8_t *)"", 1 });
}

/* For those that wait now; who comes later waits for the next. */
static void set_out(struct kubelet *k)
{
	const struct command *newest = k->turns;

	while (newest->next)
		newest = newest->next;
	k->turn_last = newest->number;
	k->turn_trips = TRIPS;
	make_trip(k);
}

static void on_trip(void *arg, struct bytes body)
{
	struct kubelet *k = arg;

	(void)body;
	if (--k->turn_trips) {
		make_trip(k);
		return;
	}
	while (k->turns && k->turns->number <= k->turn_last) {
		struct command *cmd = k->turns;

		k->turns = cmd->next;
		command_run(cmd);
	}
	if (k->turns)
		set_out(k);
}

void turns_take(void *arg)
{
	struct command *cmd = arg, **at = &cmd->k->turns;

	while (*at)
		at = &(*at)->next;
	*at = cmd;
	if (!cmd->k->turn_trips)
		set_out(cmd->k);
}

static void on_opened(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	struct kubelet *k = ctx;

	(void)request;
	rpc_stream_keep(stream);
	k->turn_stream = stream;
	k->turns_ready();
}

static void on_closed(void *ctx, struct rpc_stream *stream)
{
	(void)ctx;
	(void)stream;
}

static void on_end(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	const struct kubelet *k = arg;

	(void)body;
	if (k->leaving)
		return;
	fprintf(stderr, "fakekubelet: %s: status %d: %s\n", PATH_TURNS, (int)status, message);
	abort();
}

int turns_open(struct kubelet *k, void (*ready)(void), struct err *err)
{
	static const struct rpc_method methods[] = {
		{ .path = PATH_TURNS, .opened = on_opened, .closed = on_closed },
	};
	_cleanup_free_ char *path = xasprintf("%s/turns.sock", k->opt.root);
	struct rpc_server *server;
	int r = rpc_server_open(k->rpc, path, methods, ARRAY_LEN(methods), k, &server, err);

	if (r < 0)
		return r;
	k->turns_ready = ready;
	rpc_call_stream(rpc_channel_open(k->rpc, path, 1), PATH_TURNS, (struct bytes) { 0 },
			on_trip, on_end, k);
	return 0;
}
