/*
 * bench: Allocate or GetPreferredAllocation of a registered plugin, one call at a time, in turn
 * with the floor: GetDevicePluginOptions, a handler of the same server that does nothing, and the
 * first to be called, since that opens the connection. Allocate: "allocate" and "paced" give the
 * same ids again and again, "fresh" gives each id once, as to containers that come and stay. The
 * calls come from the process that the plugin registered with, so that limits for other peers do
 * not apply. Nanoseconds, from the call to its answer.
 */
#include "kubelet.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubepeer/kubepeer.h"

#define PAUSE_MS   2
#define TIMEOUT_MS 10000
#define BYTES_MAX  (4u << 20)
#define ROUNDS_MAX 10000000

struct series {
	const char *name, *path;
	struct bytes *requests; /* in turn */
	size_t n_requests;
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

static struct series *series_of_turn(struct bench *b)
{
	return &b->series[1 - b->turn % 2];
}

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
	struct series *s = series_of_turn(b);

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
	struct series *s = series_of_turn(b);

	clock_gettime(CLOCK_MONOTONIC, &b->began);
	rpc_call_unary(b->channel, s->path, s->requests[s->n % s->n_requests], TIMEOUT_MS,
		       on_answer, b);
}

static struct ids ids_of(const struct command *cmd, size_t first, struct arena *a)
{
	struct ids ids = { arena_array(a, cmd->argc, sizeof(*ids.v)), 0 };

	for (size_t i = first; i < cmd->argc; i++)
		ids.v[ids.n++] = arena_strdup(a, cmd->argv[i]);
	return ids;
}

/* Requests for so many ids each; what is left over is not asked for. */
static void allocate(struct bench *b, const struct ids *ids, size_t each)
{
	struct series *s = &b->series[0];

	s->path = PATH_ALLOCATE;
	s->requests = arena_array(b->arena, ids->n, sizeof(*s->requests));
	for (size_t i = 0; each && i + each <= ids->n; i += each)
		s->requests[s->n_requests++] = peer_encode_allocate(
			&(struct id_lists) { &(struct ids) { ids->v + i, each }, 1 }, b->arena);
}

static void prefer(struct bench *b, const struct ids *ids, const char *size)
{
	struct preferred_container c = { .available = *ids };
	struct series *s = &b->series[0];

	s->path = PATH_PREFERRED;
	if (!ids->n || str_to_int(size, &c.size) < 0)
		return;
	s->requests = arena_array(b->arena, 1, sizeof(*s->requests));
	s->requests[s->n_requests++] =
		kubemsg_encode(&kubemsg_preferred, &(struct preferred_request) { &c, 1 }, b->arena);
}

/* False: that is no bench. */
static bool plan(struct bench *b, const struct command *cmd)
{
	const char *what = cmd->argv[2];
	bool preferred = !strcmp(what, "preferred");
	struct ids ids = ids_of(cmd, preferred ? 5 : 4, b->arena);
	uint64_t number;

	if (str_to_u64(cmd->argv[3], 10, ROUNDS_MAX, &number) < 0 || !number)
		return false;
	b->rounds = (size_t)number;
	if (preferred)
		prefer(b, &ids, cmd->argv[4]);
	else if (!strcmp(what, "fresh"))
		allocate(b, &ids, (size_t)number);
	else if (!strcmp(what, "paced") || !strcmp(what, "allocate"))
		allocate(b, &ids, ids.n);
	if (!strcmp(what, "fresh"))
		b->rounds = b->series[0].n_requests;
	b->pause_ms = !strcmp(what, "paced") || !strcmp(what, "fresh") ? PAUSE_MS : 0;
	return b->series[0].n_requests > 0;
}

void bench(struct command *cmd, const char *socket)
{
	static struct bytes nothing;
	struct bench *b = xcalloc(1, sizeof(*b));

	b->cmd = cmd;
	b->arena = arena_new(65536);
	b->series[0] = (struct series) { .name = "call" };
	b->series[1] = (struct series) {
		.name = "floor", .path = PATH_OPTIONS, .requests = &nothing, .n_requests = 1
	};
	if (!plan(b, cmd)) {
		answer_error(
			cmd,
			"bench: allocate|paced COUNT ID…, fresh N ID… or preferred COUNT N ID… is expected");
		arena_free(b->arena);
		free(b);
		return;
	}
	for (size_t i = 0; i < 2; i++)
		b->series[i].ns = xcalloc(b->rounds, sizeof(*b->series[i].ns));
	b->channel = rpc_channel_open(cmd->k->rpc, socket, BYTES_MAX);
	next_call(b);
}
