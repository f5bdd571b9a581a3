/*
 * bench: Allocate or GetPreferredAllocation of a registered plugin, one call at a time, in turn
 * with the floor: GetDevicePluginOptions, a handler of the same server that does nothing. The calls
 * come from the process that the plugin registered with, so that limits for other peers do not
 * apply. Nanoseconds, from the call to its answer.
 */
#include "kubelet.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"

#define PAUSE_MS   2
#define TIMEOUT_MS 10000
#define BYTES_MAX  (4u << 20)
#define ROUNDS_MAX 10000000

struct series {
	const char *name, *path;
	struct bytes request;
	int64_t *ns;
	size_t n;
};

struct bench {
	struct command *cmd;
	struct arena *arena;
	struct rpc_channel *channel;
	struct series series[2];
	size_t rounds, turn; /* turn alternates between the two series */
	unsigned pause_ms;   /* before each call, so that what the plugin does after a reply is in
			      * nobody's way
			      */
	struct timespec began;
};

static void next_call(void *arg);

/* The answer is out. */
static void end(struct bench *b)
{
	rpc_channel_close(b->channel);
	for (size_t i = 0; i < 2; i++)
		free(b->series[i].ns);
	arena_free(b->arena);
	free(b);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int64_t percentile(const struct series *s, size_t percent)
{
	return s->ns[percent * (s->n - 1) / 100];
}

static void tell(struct bench *b)
{
	struct report r;
	struct json *j = report_answer(&r, b->cmd, "benched");

	for (size_t i = 0; i < 2; i++) {
		struct series *s = &b->series[i];

		qsort(s->ns, s->n, sizeof(*s->ns), by_value);
		json_key(j, s->name);
		json_begin_object(j);
		json_kv_int(j, "p50_ns", percentile(s, 50));
		json_kv_int(j, "p99_ns", percentile(s, 99));
		json_end_object(j);
	}
	report_end(&r);
}

static int64_t ns_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)(now.tv_sec - t->tv_sec) * 1000000000 + (now.tv_nsec - t->tv_nsec);
}

static void on_answer(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct bench *b = arg;
	struct series *s = &b->series[b->turn % 2];

	(void)body;
	if (status != RPC_OK) {
		answer_error(b->cmd, "bench: %s: status %d: %s", s->path, (int)status, message);
		end(b);
		return;
	}
	s->ns[s->n++] = ns_since(&b->began);
	if (++b->turn == 2 * b->rounds) {
		tell(b);
		command_done(b->cmd);
		end(b);
	} else if (b->pause_ms) {
		rpc_after(b->cmd->k->rpc, b->pause_ms, next_call, b);
	} else {
		next_call(b);
	}
}

static void next_call(void *arg)
{
	struct bench *b = arg;
	struct series *s = &b->series[b->turn % 2];

	clock_gettime(CLOCK_MONOTONIC, &b->began);
	rpc_call_unary(b->channel, s->path, s->request, TIMEOUT_MS, on_answer, b);
}

static struct bytes request_of(const struct command *cmd, bool preferred, struct arena *a)
{
	size_t first = preferred ? 5 : 4;
	struct ids ids = { arena_array(a, cmd->argc, sizeof(*ids.v)), 0 };
	struct preferred_container c = { 0 };

	for (size_t i = first; i < cmd->argc; i++)
		ids.v[ids.n++] = arena_strdup(a, cmd->argv[i]);
	if (!ids.n)
		return (struct bytes) { NULL, 0 };
	if (!preferred)
		return kubemsg_encode_allocate(&(struct id_lists) { &ids, 1 }, a);
	c.available = ids;
	if (str_to_int(cmd->argv[4], &c.size) < 0)
		return (struct bytes) { NULL, 0 };
	return kubemsg_encode_preferred(&(struct preferred_request) { &c, 1 }, a);
}

void bench(struct command *cmd, const char *socket)
{
	bool preferred = !strcmp(cmd->argv[2], "preferred"), paced = !strcmp(cmd->argv[2], "paced");
	struct bench *b = xcalloc(1, sizeof(*b));
	uint64_t rounds = 0;

	b->cmd = cmd;
	b->arena = arena_new(65536);
	b->pause_ms = paced ? PAUSE_MS : 0;
	b->series[0] = (struct series) { .name = "call",
					 .path = preferred ? PATH_PREFERRED : PATH_ALLOCATE };
	b->series[1] = (struct series) { .name = "floor", .path = PATH_OPTIONS };
	if (preferred || paced || !strcmp(cmd->argv[2], "allocate"))
		b->series[0].request = request_of(cmd, preferred, b->arena);
	if (!b->series[0].request.len || str_to_u64(cmd->argv[3], 10, ROUNDS_MAX, &rounds) < 0 ||
	    !rounds) {
		answer_error(
			cmd,
			"bench: allocate|paced COUNT ID… or preferred COUNT N ID… is expected");
		arena_free(b->arena);
		free(b);
		return;
	}
	b->rounds = (size_t)rounds;
	for (size_t i = 0; i < 2; i++)
		b->series[i].ns = xcalloc(b->rounds, sizeof(*b->series[i].ns));
	b->channel = rpc_channel_open(cmd->k->rpc, socket, BYTES_MAX);
	next_call(b);
}
