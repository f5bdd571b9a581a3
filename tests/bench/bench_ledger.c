/*
 * The ledger on disk: bench_ledger DIR HOLDS ROUNDS. Each round changes one hold, writes the text
 * and stores it: a new file, fsync, rename, fsync of the directory. The floor: the same bytes over
 * those of an open file, and one fdatasync. Every 8 holds share a decision of 8 VFs for 8 GPUs, and
 * the newest decisions are all there, as in a daemon that runs for long.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "ledger/file.h"
#include "ledger/ledger.h"

#define PER_DECISION 8

enum { PART_TEXT, PART_STORE, PART_FLOOR, PART_MAX };

struct bench {
	struct ledger *ledger;
	struct ledger_file *file;
	int floor_fd;
	size_t holds, rounds;
	uint64_t *ns[PART_MAX];
	size_t bytes; /* of the text */
};

static void die(const char *what)
{
	fprintf(stderr, "bench_ledger: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static char *address(unsigned bus, size_t i)
{
	return xasprintf("0000:%02x:%02zx.%zu", bus + (unsigned)(i >> 8), (i >> 3) & 31, i & 7);
}

/* As the plugin writes one for 8 VFs of 8 PFs. */
static uint64_t decide(struct ledger *l, size_t first)
{
	_cleanup_free_ char *pod = xasprintf("train-%zu", first);
	const char *gpus[PER_DECISION], *vfs[PER_DECISION];
	struct ledger_pair pairs[PER_DECISION];
	struct ledger_place places[PER_DECISION];
	struct ledger_decision d = { .at_ms = 1763736000000,
				     .resource = "rdma/vf",
				     .asked = PER_DECISION,
				     .known = LEDGER_GPUS_KNOWN };
	uint64_t number;

	for (size_t i = 0; i < PER_DECISION; i++) {
		gpus[i] = address(0x60, i);
		vfs[i] = address(0x80, first + i);
		pairs[i] = (struct ledger_pair) { gpus[i], vfs[i], "PIX" };
		places[i] = (struct ledger_place) { gpus[i], 12 };
	}
	d.owner = (struct ledger_owner) { "default", pod, "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55",
					  "main", NULL };
	d.source = "PodResources Get";
	d.gpus = d.real_gpus = gpus;
	d.chosen = d.alternative = vfs;
	d.n_gpus = d.n_real_gpus = d.n_chosen = d.n_alternative = d.n_pairs = d.n_free =
		PER_DECISION;
	d.pairs = pairs;
	d.free = places;
	number = ledger_decide(l, &d);
	for (size_t i = 0; i < PER_DECISION; i++) {
		free((char *)gpus[i]);
		free((char *)vfs[i]);
	}
	return number;
}

static void hold(struct ledger *l, size_t i, int64_t since_ms, uint64_t decision)
{
	_cleanup_free_ char *vf = address(0x80, i), *pod = xasprintf("train-%zu", i / PER_DECISION),
			    *rdma = xasprintf("mlx5_%zu", i);

	ledger_put(l, &(struct ledger_hold) { .vf = vf,
					      .resource = "rdma/vf",
					      .owner = { "default", pod,
							 "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55",
							 "main", NULL },
					      .rdma = rdma,
					      .netdev = "ens1f0v0",
					      .driver = "mlx5_core",
					      .since_ms = since_ms,
					      .decision = decision });
}

static void fill(struct bench *b)
{
	uint64_t decision = 0;

	b->ledger = ledger_new();
	for (size_t i = 0; i < LEDGER_DECISIONS; i++)
		decide(b->ledger, 0);
	for (size_t i = 0; i < b->holds; i++) {
		if (i % PER_DECISION == 0)
			decision = decide(b->ledger, i);
		hold(b->ledger, i, 0, decision);
	}
}

static void overwrite(struct bench *b, const char *text, size_t len)
{
	if (pwrite(b->floor_fd, text, len, 0) != (ssize_t)len || fdatasync(b->floor_fd) < 0)
		die("the floor's file cannot be written");
}

static void round_of(struct bench *b, size_t i)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };
	uint64_t at[PART_MAX + 1];

	hold(b->ledger, i % b->holds, (int64_t)i + 1, 0);
	at[0] = now_ns();
	ledger_write(b->ledger, &text);
	at[1] = now_ns();
	if (ledger_file_store(b->file, text.s, text.len, &err) < 0)
		die(err.msg);
	at[2] = now_ns();
	overwrite(b, text.s, text.len);
	at[3] = now_ns();
	for (int part = 0; part < PART_MAX; part++)
		b->ns[part][i] = at[part + 1] - at[part];
	b->bytes = text.len;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print(struct bench *b)
{
	static const char *const names[] = {
		[PART_TEXT] = "text", [PART_STORE] = "store", [PART_FLOOR] = "floor"
	};

	printf("{\"holds\": %zu, \"decisions\": %zu, \"bytes\": %zu", b->holds,
	       ledger_decisions(b->ledger), b->bytes);
	for (int part = 0; part < PART_MAX; part++) {
		qsort(b->ns[part], b->rounds, sizeof(*b->ns[part]), by_value);
		printf(", \"%s\": {\"p50_us\": %.1f, \"p99_us\": %.1f}", names[part],
		       (double)b->ns[part][b->rounds / 2] / 1e3,
		       (double)b->ns[part][b->rounds * 99 / 100] / 1e3);
	}
	puts("}");
}

static void run(struct bench *b, const char *dir)
{
	_cleanup_free_ char *floor = xasprintf("%s/floor", dir);
	struct err err = { 0 };

	if (ledger_file_open(dir, 0, &b->file, &err) < 0)
		die(err.msg);
	b->floor_fd = open(floor, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (int part = 0; part < PART_MAX; part++)
		b->ns[part] = xcalloc(b->rounds, sizeof(**b->ns));
	fill(b);
	for (size_t i = 0; i < b->rounds; i++)
		round_of(b, i);
	print(b);
	for (int part = 0; part < PART_MAX; part++)
		free(b->ns[part]);
	close(b->floor_fd);
	ledger_file_close(b->file);
	ledger_free(b->ledger);
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	uint64_t holds = 0, rounds = 0;

	if (argc != 4 || str_to_u64(argv[2], 10, 4096, &holds) < 0 ||
	    str_to_u64(argv[3], 10, 1000000, &rounds) < 0 || !holds || !rounds)
		die("usage: bench_ledger DIR HOLDS ROUNDS");
	b.holds = holds;
	b.rounds = rounds;
	run(&b, argv[1]);
	return 0;
}
