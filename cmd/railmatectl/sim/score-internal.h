/*
 * How good a container's VFs are for its GPUs, against the best choice among those that were free
 * when it came.
 *
 * Both are capacity-balanced assignments of least total rank (align.h). A pair is *at its best
 * class* when its class is one that the optimal assignment has, as often as that one has it; all
 * pairs are when the totals are equal. So of n pairs there are sum over classes of min(pairs of
 * ours, pairs of the optimum) at their best.
 */
#ifndef RAILMATE_SIM_SCORE_INTERNAL_H
#define RAILMATE_SIM_SCORE_INTERNAL_H

#include <stddef.h>

#include "hw/inventory.h"
#include "align/align.h"

struct arena;
struct node;
struct pool;

struct score_in {
	const struct node *node;
	const struct pool *pool;
	struct gpu_set gpus;
	const int *free_vfs;
	size_t n_free; /* pool indices; those that the container got count among them */
};

/* Pairs of each rank (PIX 0 … SYS 4). */
struct score_classes {
	size_t n[ALIGN_RANKS];
};

struct score {
	size_t pairs, best;
	struct score_classes got, optimum;
};

size_t sim_score_rank(const struct score_classes *c); /* total */
/* How many pairs of `got` are at their best class. */
size_t sim_score_best(const struct score_classes *got, const struct score_classes *optimum);
struct score sim_score_container(const struct score_in *in, const int *vfs, size_t n_vfs,
				 struct arena *arena);

#endif
