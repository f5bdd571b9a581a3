/*
 * GetPreferredAllocation, the decision only: align_choose() on 8 GPUs and 8 PFs × 16 VFs, and on 16
 * GPUs and 16 PFs × 127 VFs; many random free sets, beside a floor that looks at the same functions
 * and takes the nearest free VF for each GPU in turn.
 *
 *   bench_align [--json] [COUNT]
 *       COUNT free sets a row (10,000); a tenth of it on the large machine
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/synth.h"

#define MAX_GPUS 16
#define MAX_VFS	 (16 * 127)

struct row {
	size_t gpus, want;
	int one_in;
};

struct machine {
	const char *line;
	size_t gpus;
	unsigned fewer; /* free sets */
	struct row rows[8];
	size_t n_rows;
};

static const struct machine machines[] = {
	{ "numa:2 root:4 switch:1 gpu:1 pf:1 vf:16",
	  8,
	  1,
	  { { 8, 8, 1 },
	    { 8, 8, 2 },
	    { 8, 8, 10 },
	    { 8, 4, 2 },
	    { 8, 3, 10 },
	    { 2, 2, 2 },
	    { 0, 4, 2 } },
	  7 },
	{ "numa:2 root:8 switch:1 gpu:1 pf:1 vf:127",
	  16,
	  10,
	  { { 16, 16, 1 },
	    { 16, 16, 2 },
	    { 16, 16, 10 },
	    { 16, 8, 2 },
	    { 8, 16, 2 },
	    { 4, 4, 2 },
	    { 0, 8, 2 } },
	  7 },
};

struct bench {
	struct pool_dev devs[MAX_VFS];
	struct pool pool;
	struct node node;
	const struct machine *machine;
	int gpus[MAX_GPUS], free_set[MAX_VFS];
	struct choose_in in;
	size_t rounds;
	bool json;
};

struct series {
	uint64_t *ns;
	int64_t cost;
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
	for (size_t i = 0; i < b->machine->gpus; i++)
		b->gpus[i] = synth_gpu(inv, i);
	b->in = (struct choose_in) {
		.node = &b->node, .pool = &b->pool, .available = b->free_set, .gpus.v = b->gpus
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
	b->in.gpus.n = gpus;
}

/* The floor: no balance, no spreading, no thought for others. */
static int greedy(const struct bench *b)
{
	bool used[MAX_VFS] = { false };
	int cost = 0;

	for (size_t g = 0; g < b->in.want; g++) {
		int best = -1, best_rank = 0, gpu = b->gpus[b->in.gpus.n ? g % b->in.gpus.n : 0];

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

static double percentile_us(const struct bench *b, const struct series *s, size_t percent)
{
	return (double)s->ns[(b->rounds - 1) * percent / 100] / 1e3;
}

static void print_line(const struct bench *b, const struct row *row, const char *what,
		       const struct series *s)
{
	printf("  %-28s p50 %7.1f us   p99 %7.1f us", what, percentile_us(b, s, 50),
	       percentile_us(b, s, 99));
	/* Costs compare only where both make as many pairs. */
	if (row->gpus > 0 && row->want >= row->gpus)
		printf("   mean cost %6.3f", (double)s->cost / (double)b->rounds);
	printf("\n");
}

static void print_text(const struct bench *b, const struct row *row, const struct series *chosen,
		       const struct series *floor)
{
	printf("%zu GPUs, pick %zu, one VF in %d free\n", row->gpus, row->want, row->one_in);
	print_line(b, row, "align_choose", chosen);
	print_line(b, row, "floor: greedy, nearest first", floor);
}

static void print_json(const struct bench *b, const struct row *row, const struct series *chosen,
		       const struct series *floor)
{
	printf("{\"vfs\": %zu, \"gpus\": %zu, \"want\": %zu, \"one_in\": %d, ", b->pool.n_devs,
	       row->gpus, row->want, row->one_in);
	printf("\"choose\": {\"p50_us\": %.1f, \"p99_us\": %.1f}, ", percentile_us(b, chosen, 50),
	       percentile_us(b, chosen, 99));
	printf("\"floor\": {\"p50_us\": %.1f, \"p99_us\": %.1f}}", percentile_us(b, floor, 50),
	       percentile_us(b, floor, 99));
}

static uint64_t time_choice(struct bench *b, int64_t *cost)
{
	struct arena *arena;
	uint64_t begin = now_ns();

	arena = arena_new(64 * 1024); /* as an RPC has one */
	*cost += align_choose(&b->in, false, arena).cost;
	arena_free(arena);
	return now_ns() - begin;
}

static uint64_t time_greedy(struct bench *b, int64_t *cost)
{
	uint64_t begin = now_ns();

	*cost += greedy(b);
	return now_ns() - begin;
}

static void run(struct bench *b, const struct row *row)
{
	struct series chosen = { .ns = xcalloc(b->rounds, sizeof(uint64_t)) };
	struct series floor = { .ns = xcalloc(b->rounds, sizeof(uint64_t)) };

	for (size_t i = 0; i < b->rounds; i++) {
		draw(b, row->gpus, row->want, row->one_in);
		chosen.ns[i] = time_choice(b, &chosen.cost);
		floor.ns[i] = time_greedy(b, &floor.cost);
	}
	qsort(chosen.ns, b->rounds, sizeof(uint64_t), by_time);
	qsort(floor.ns, b->rounds, sizeof(uint64_t), by_time);
	if (b->json)
		print_json(b, row, &chosen, &floor);
	else
		print_text(b, row, &chosen, &floor);
	free(chosen.ns);
	free(floor.ns);
}

static void run_machine(struct bench *b)
{
	struct hw_inventory *inv = synth_inventory(b->machine->line);
	struct topo *topo = topo_new(inv, NULL);
	size_t rounds = b->rounds;

	b->rounds = rounds / b->machine->fewer + 1;
	set_up(b, inv, topo);
	if (!b->json)
		printf("bench_align: %s, %zu free sets each\n", b->machine->line, b->rounds);
	for (size_t i = 0; i < b->machine->n_rows; i++) {
		if (b->json && (i || b->machine != machines))
			fputs(",\n ", stdout);
		run(b, &b->machine->rows[i]);
	}
	b->rounds = rounds;
	topo_free(topo);
	hw_inventory_free(inv);
}

static int parse(int argc, char **argv, struct bench *b)
{
	uint64_t rounds = 10000;
	int i = 1;

	b->json = argc > 1 && !strcmp(argv[1], "--json");
	i += b->json;
	if (i < argc && (str_to_u64(argv[i++], 10, 10000000, &rounds) < 0 || !rounds))
		return -1;
	b->rounds = rounds;
	return i == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (parse(argc, argv, &b) < 0) {
		fputs("usage: bench_align [--json] [COUNT]\n", stderr);
		return 2;
	}
	if (b.json)
		putchar('[');
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		b.machine = &machines[i];
		run_machine(&b);
	}
	if (b.json)
		puts("]");
	return 0;
}
