/*
 * Calls a running device plugin as the kubelet does, one call at a time, and prints latencies.
 *
 *   bench_plugin SOCKET allocate COUNT ID…      Allocate of all ids, in turn with the floor:
 *                                               GetDevicePluginOptions, a handler of the same server that
 * does nothing bench_plugin SOCKET paced COUNT ID…         the same with a pause before each call, so that
 * what the plugin does after a reply is in nobody's way bench_plugin SOCKET preferred COUNT N ID…
 * GetPreferredAllocation of N out of the ids, likewise
 *
 * One JSON object on standard output: microseconds, from the call to the decoded answer's arrival.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/messages.h"
#include "rpc/rpc.h"

#define PAUSE_MS 2

struct series {
	const char *name, *path;
	struct bytes request;
	double *us;
	size_t n;
};

struct bench {
	struct rpc *rpc;
	struct rpc_channel *channel;
	const char *socket;
	struct series series[2];
	size_t rounds, turn; /* turn alternates between the two series */
	unsigned pause_ms;
	struct timespec began;
	sem_t finished;
	bool failed;
};

static double us_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) * 1e6 + (double)(now.tv_nsec - t->tv_nsec) / 1e3;
}

static void next_call(struct bench *b);

static void call_again(void *arg)
{
	next_call(arg);
}

static void on_answer(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct bench *b = arg;
	struct series *s = &b->series[b->turn % 2];

	(void)body;
	if (status != RPC_OK) {
		fprintf(stderr, "bench_plugin: %s: status %d: %s\n", s->path, (int)status, message);
		b->failed = true;
		sem_post(&b->finished);
		return;
	}
	s->us[s->n++] = us_since(&b->began);
	b->turn++;
	if (b->pause_ms)
		rpc_after(b->rpc, b->pause_ms, call_again, b);
	else
		next_call(b);
}

static void next_call(struct bench *b)
{
	struct series *s = &b->series[b->turn % 2];

	if (b->turn == 2 * b->rounds) {
		sem_post(&b->finished);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &b->began);
	rpc_call_unary(b->channel, s->path, s->request, 10000, on_answer, b);
}

static void start(void *arg)
{
	struct bench *b = arg;

	b->channel = rpc_channel_open(b->rpc, b->socket, 4u << 20);
	next_call(b);
}

static void stop(void *arg)
{
	struct bench *b = arg;

	rpc_channel_close(b->channel);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double percentile(const struct series *s, double p)
{
	return s->us[(size_t)(p * (double)(s->n - 1))];
}

static void report(struct bench *b)
{
	for (int i = 0; i < 2; i++)
		qsort(b->series[i].us, b->series[i].n, sizeof(double), by_value);
	printf("{");
	for (int i = 0; i < 2; i++)
		printf("\"%s\": {\"p50_us\": %.1f, \"p99_us\": %.1f}, ", b->series[i].name,
		       percentile(&b->series[i], 0.50), percentile(&b->series[i], 0.99));
	printf("\"p50_ratio\": %.3f, \"p99_ratio\": %.3f, \"calls\": %zu}\n",
	       percentile(&b->series[0], 0.50) / percentile(&b->series[1], 0.50),
	       percentile(&b->series[0], 0.99) / percentile(&b->series[1], 0.99), b->rounds);
}

static struct bytes allocate_request(char **ids, size_t n, struct arena *arena)
{
	struct ids list = { (const char **)ids, n };
	struct id_lists m = { &list, 1 };

	return msg_encode_allocate(&m, arena);
}

static struct bytes preferred_request(const char *want, char **ids, size_t n, struct arena *arena)
{
	struct preferred_container c = { .available = { (const char **)ids, n } };
	struct preferred_request m = { &c, 1 };

	if (str_to_int(want, &c.size) < 0)
		return (struct bytes) { NULL, 0 };
	return msg_encode_preferred(&m, arena);
}

static int usage(void)
{
	fputs("usage: bench_plugin SOCKET allocate|paced COUNT ID… | SOCKET preferred COUNT N ID…\n", stderr);
	return 2;
}

static int run(struct bench *b)
{
	struct err err = { 0 };

	for (int i = 0; i < 2; i++)
		b->series[i].us = xcalloc(b->rounds, sizeof(double));
	sem_init(&b->finished, 0, 0);
	if (rpc_start(&b->rpc, &err) < 0) {
		fprintf(stderr, "bench_plugin: %s\n", err.msg);
		return 1;
	}
	rpc_post(b->rpc, start, b);
	sem_wait(&b->finished);
	rpc_post(b->rpc, stop, b);
	rpc_stop(b->rpc);
	if (!b->failed)
		report(b);
	for (int i = 0; i < 2; i++)
		free(b->series[i].us);
	return b->failed;
}

int main(int argc, char **argv)
{
	_cleanup_arena_ struct arena *arena = arena_new(65536);
	struct bench b = { .series = { { .name = "call" }, { .name = "floor", .path = PATH_OPTIONS } } };
	uint64_t rounds;

	if (argc < 5 || str_to_u64(argv[3], 10, 10000000, &rounds) < 0 || !rounds)
		return usage();
	b.socket = argv[1];
	b.rounds = rounds;
	if (!strcmp(argv[2], "allocate") || !strcmp(argv[2], "paced")) {
		b.pause_ms = !strcmp(argv[2], "paced") ? PAUSE_MS : 0;
		b.series[0].path = PATH_ALLOCATE;
		b.series[0].request = allocate_request(argv + 4, (size_t)argc - 4, arena);
	} else if (!strcmp(argv[2], "preferred") && argc > 5) {
		b.series[0].path = PATH_PREFERRED;
		b.series[0].request = preferred_request(argv[4], argv + 5, (size_t)argc - 5, arena);
	}
	return b.series[0].path && b.series[0].request.len ? run(&b) : usage();
}
