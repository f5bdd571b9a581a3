/*
 * GetPreferredAllocation, the decision only: choose_vfs() on 8 GPUs and 8 PFs × 16 VFs, 10,000 random free
 * sets, beside a floor that looks at the same functions and takes the nearest free VF for each GPU in turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/mem.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/synth.h"

#define MACHINE "numa:2 root:4 switch:1 gpu:1 pf:1 vf:16"
#define ROUNDS	10000
#define MAX_VFS 128

struct bench {
	struct pool_dev devs[MAX_VFS];
	struct pool pool;
	struct node node;
	int gpus[8], free_set[MAX_VFS];
	struct choose_in in;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t seed = 1;

static int roll(int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)((seed >> 33) % (uint64_t)n);
}

static void set_up(struct bench *b, const struct hw_inventory *inv, const struct topo *topo)
{
	b->node.inv = inv;
	b->node.topo = topo;
	b->pool.devs = b->devs;
	b->pool.n_devs = synth_count_vfs(inv);
	for (size_t i = 0; i < b->pool.n_devs; i++)
		b->devs[i] = (struct pool_dev) { .pci = synth_vf(inv, i), .healthy = true };
	for (size_t i = 0; i < 8; i++)
		b->gpus[i] = synth_gpu(inv, i);
	b->in = (struct choose_in) {
		.node = &b->node, .pool = &b->pool, .available = b->free_set, .gpus = b->gpus
	};
}

/* A free set of at least `want` VFs, about one in `one_in`, in no order. */
static void draw(struct bench *b, size_t gpus, size_t want, int one_in)
{
	size_t n;

	do {
		n = 0;
		for (int i = 0; i < (int)b->pool.n_devs; i++)
			if (roll(one_in) == 0)
				b->free_set[n++] = i;
	} while (n < want);
	for (size_t i = n; i > 1; i--) {
		int k = roll((int)i), swap = b->free_set[i - 1];

		b->free_set[i - 1] = b->free_set[k];
		b->free_set[k] = swap;
	}
	b->in.n_available = n;
	b->in.want = want;
	b->in.n_gpus = gpus;
}

/* The floor: no balance, no spreading, no thought for others. */
static int greedy(const struct bench *b)
{
	bool used[MAX_VFS] = { false };
	int cost = 0;

	for (size_t g = 0; g < b->in.want; g++) {
		int best = -1, best_rank = 0, gpu = b->gpus[b->in.n_gpus ? g % b->in.n_gpus : 0];

		for (size_t i = 0; i < b->in.n_available; i++) {
			int pci = b->devs[b->free_set[i]].pci;
			int rank = topo_rank(topo_between(b->node.topo, gpu, pci).class);

			if (!used[i] && (best < 0 || rank < best_rank)) {
				best = (int)i;
				best_rank = rank;
			}
		}
		used[best] = true;
		cost += best_rank;
	}
	return cost;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print(const char *what, uint64_t *ns)
{
	qsort(ns, ROUNDS, sizeof(*ns), by_time);
	printf("  %-28s p50 %7.1f us   p99 %7.1f us", what, (double)ns[ROUNDS / 2] / 1e3,
	       (double)ns[ROUNDS - ROUNDS / 100] / 1e3);
}

/* Costs compare only where both make as many pairs. */
static void print_cost(const struct bench *b, int64_t cost)
{
	if (b->in.n_gpus > 0 && b->in.want >= b->in.n_gpus)
		printf("   mean cost %6.3f", (double)cost / ROUNDS);
	printf("\n");
}

static uint64_t time_choice(struct bench *b, int64_t *cost)
{
	struct arena *arena;
	uint64_t begin = now_ns();

	arena = arena_new(64 * 1024); /* as an RPC has one */
	*cost += choose_vfs(&b->in, false, arena).cost;
	arena_free(arena);
	return now_ns() - begin;
}

static uint64_t time_greedy(struct bench *b, int64_t *cost)
{
	uint64_t begin = now_ns();

	*cost += greedy(b);
	return now_ns() - begin;
}

static void run(struct bench *b, size_t gpus, size_t want, int one_in)
{
	static uint64_t chosen[ROUNDS], floor[ROUNDS];
	int64_t cost = 0, floor_cost = 0;

	for (int i = 0; i < ROUNDS; i++) {
		draw(b, gpus, want, one_in);
		chosen[i] = time_choice(b, &cost);
		floor[i] = time_greedy(b, &floor_cost);
	}
	printf("%zu GPUs, pick %zu, one VF in %d free\n", gpus, want, one_in);
	print("choose_vfs", chosen);
	print_cost(b, cost);
	print("floor: greedy, nearest first", floor);
	print_cost(b, floor_cost);
}

int main(void)
{
	static const struct {
		size_t gpus, want;
		int one_in;
	} rows[] = { { 8, 8, 1 },  { 8, 8, 2 }, { 8, 8, 10 }, { 8, 4, 2 },
		     { 8, 3, 10 }, { 2, 2, 2 }, { 0, 4, 2 } };
	struct hw_inventory *inv = synth_inventory(MACHINE);
	struct topo *topo = topo_new(inv);
	static struct bench b;

	set_up(&b, inv, topo);
	printf("bench_align: %s, %d free sets each\n", MACHINE, ROUNDS);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		run(&b, rows[i].gpus, rows[i].want, rows[i].one_in);
	topo_free(topo);
	hw_inventory_free(inv);
	return 0;
}
