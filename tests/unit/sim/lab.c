#include "unit/sim/lab.h"

struct lab lab_new(const char *line)
{
	struct lab lab = { .cfg = config_default(), .arena = arena_new(1 << 16) };

	lab.node = node_new(synth_inventory(line), lab.cfg, NULL);
	lab.pool = &lab.node->pools[0];
	return lab;
}

void lab_done(struct lab *lab)
{
	node_unref(lab->node);
	config_free(lab->cfg);
	arena_free(lab->arena);
}

/* --- brute force --- */

static uint64_t brute_code(const int counts[ALIGN_RANKS])
{
	uint64_t code = 0;

	for (int i = 0; i < ALIGN_RANKS; i++)
		code = code << 8 | (uint64_t)counts[i];
	return code;
}

static void brute_keep(struct brute *b, int total, uint64_t code)
{
	if (total > b->best)
		return;
	if (total < b->best)
		b->n_codes = 0;
	b->best = total;
	for (int i = 0; i < b->n_codes; i++) {
		if (b->codes[i] == code)
			return;
	}
	if (b->n_codes < BRUTE_SETS)
		b->codes[b->n_codes++] = code;
}

/* Every way to give each item of the larger side one of the smaller, loads differing by at most
 * one. */
static void brute_deal(struct brute *b, int item, int total)
{
	bool more_gpus = b->gpus > b->vfs;
	int items = more_gpus ? b->gpus : b->vfs, bins = more_gpus ? b->vfs : b->gpus;
	int low = items / bins, high = low + (items % bins > 0);

	if (item == items) {
		for (int i = 0; i < bins; i++) {
			if (b->load[i] < low)
				return;
		}
		brute_keep(b, total, brute_code(b->counts));
		return;
	}
	for (int i = 0; i < bins; i++) {
		int rank = more_gpus ? b->rank[item][i] : b->rank[i][item];

		if (b->load[i] == high)
			continue;
		b->load[i]++;
		b->counts[rank]++;
		brute_deal(b, item + 1, total + rank);
		b->counts[rank]--;
		b->load[i]--;
	}
}

struct brute brute_assign(const struct lab *lab, const int *gpus, int n_gpus, const int *vfs,
			  int n_vfs)
{
	struct brute b = { .gpus = n_gpus, .vfs = n_vfs, .best = INT32_MAX };

	for (int g = 0; g < n_gpus; g++) {
		for (int v = 0; v < n_vfs; v++) {
			int pci = lab->pool->devs[vfs[v]].pci;

			b.rank[g][v] = topo_rank(topo_between(lab->node->topo, gpus[g], pci).class);
		}
	}
	brute_deal(&b, 0, 0);
	return b;
}

struct brute brute_choose(const struct lab *lab, const int *gpus, int n_gpus, const int *free_vfs,
			  int n_free, int want)
{
	struct brute best = { .best = INT32_MAX };

	for (unsigned set = 0; set < 1u << n_free; set++) {
		int vfs[BRUTE_MAX], n = 0;
		struct brute b;

		if (__builtin_popcount(set) != want)
			continue;
		for (int i = 0; i < n_free; i++) {
			if (set >> i & 1)
				vfs[n++] = free_vfs[i];
		}
		b = brute_assign(lab, gpus, n_gpus, vfs, n);
		for (int i = 0; i < b.n_codes; i++)
			brute_keep(&best, b.best, b.codes[i]);
	}
	return best;
}

bool brute_has(const struct brute *b, const struct score_classes *c)
{
	int counts[ALIGN_RANKS];

	for (int i = 0; i < ALIGN_RANKS; i++)
		counts[i] = (int)c->n[i];
	for (int i = 0; i < b->n_codes; i++) {
		if (b->codes[i] == brute_code(counts))
			return true;
	}
	return false;
}

int brute_at_best(const struct brute *got, uint64_t got_code, const struct brute *optimum,
		  uint64_t optimum_code)
{
	int same = 0, all = 0;

	for (int i = 0; i < ALIGN_RANKS; i++, got_code >>= 8, optimum_code >>= 8) {
		int a = (int)(got_code & 255), b = (int)(optimum_code & 255);

		all += a;
		same += a < b ? a : b;
	}
	return got->best == optimum->best ? all : same;
}
