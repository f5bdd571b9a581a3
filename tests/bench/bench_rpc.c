/*
 * The floor under every RPC: 10,000 calls of an empty handler, one after the other, over a unix
 * socket. Once with client and server on the same rpc thread, once with a thread each, as the
 * kubelet and railmated are.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "rpc/rpc.h"

#define CALLS  10000
#define WARMUP 500

struct bench {
	struct rpc *server_rpc, *client_rpc;
	struct rpc_server *server;
	struct rpc_channel *channel;
	char path[64];
	uint64_t begin, ns[CALLS];
	int n; /* calls done; below 0: warming up */
	sem_t done;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void empty(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	rpc_reply(call, RPC_OK, NULL, (struct bytes) { 0 });
}

static const struct rpc_method methods[] = { { .path = "/bench.B/Empty", .unary = empty } };

static void open_server(void *arg)
{
	struct bench *b = arg;
	struct err err;

	if (rpc_server_open(b->server_rpc, b->path, methods, ARRAY_LEN(methods), b, &b->server,
			    &err) < 0) {
		fprintf(stderr, "bench_rpc: %s\n", err.msg);
		exit(1);
	}
}

static void call_next(struct bench *b);

static void answered(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct bench *b = arg;

	(void)body;
	if (status != RPC_OK) {
		fprintf(stderr, "bench_rpc: status %d: %s\n", status, message);
		exit(1);
	}
	if (b->n >= 0)
		b->ns[b->n] = now_ns() - b->begin;
	if (++b->n < CALLS)
		call_next(b);
	else
		sem_post(&b->done);
}

static void call_next(struct bench *b)
{
	b->begin = now_ns();
	rpc_call_unary(b->channel, methods[0].path, (struct bytes) { 0 }, 10000, answered, b);
}

static void begin_calls(void *arg)
{
	struct bench *b = arg;

	b->n = -WARMUP;
	b->channel = rpc_channel_open(b->client_rpc, b->path, 1 << 20);
	call_next(b);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(struct bench *b, const char *what)
{
	rpc_run(b->server_rpc, open_server, b);
	rpc_run(b->client_rpc, begin_calls, b);
	while (sem_wait(&b->done) < 0)
		;
	qsort(b->ns, CALLS, sizeof(*b->ns), by_value);
	printf("rpc, empty unary handler, %s: p50 %.1f us, p99 %.1f us, max %.1f us (%d calls)\n",
	       what, (double)b->ns[CALLS / 2] / 1e3, (double)b->ns[CALLS * 99 / 100] / 1e3,
	       (double)b->ns[CALLS - 1] / 1e3, CALLS);
	if (b->client_rpc != b->server_rpc)
		rpc_stop(b->client_rpc);
	rpc_stop(b->server_rpc);
}

static struct rpc *start(void)
{
	struct rpc *rpc;
	struct err err;

	if (rpc_start(&rpc, &err) < 0) {
		fprintf(stderr, "bench_rpc: %s\n", err.msg);
		exit(1);
	}
	return rpc;
}

int main(void)
{
	static struct bench b;
	char dir[] = "/tmp/railmate-bench-XXXXXX";

	if (!mkdtemp(dir)) {
		perror("bench_rpc: make a folder");
		return 1;
	}
	snprintf(b.path, sizeof(b.path), "%s/b.sock", dir);
	sem_init(&b.done, 0, 0);
	b.server_rpc = b.client_rpc = start();
	measure(&b, "client on the same thread");
	b.server_rpc = start();
	b.client_rpc = start();
	measure(&b, "client on its own thread");
	rmdir(dir);
	return 0;
}
