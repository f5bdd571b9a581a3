/* Shared by the files of the solver. */
#ifndef RAILMATE_ALIGN_ALIGN_INTERNAL_H
#define RAILMATE_ALIGN_ALIGN_INTERNAL_H

#include "align/align.h"

/* Places whose VFs differ in nothing but address: equal ranks to every GPU that counts. */
struct group {
	int place;  /* the first one */
	int cap;    /* VFs that may be chosen */
	int avail;  /* VFs that are there */
	int must;   /* VFs that have to be chosen */
	int forced; /* of these, beyond the first on their place */
	int firsts; /* places without a must that may take one */
	int n_places;
};

/* One question: v VFs out of places, for rows (GPUs). */
struct problem {
	const struct align_in *in;
	struct arena *arena;
	int n_places, v;
	int *avail, *must; /* VFs of each place */
	int *limit;	   /* of these, how many may be chosen */
	/* The GPUs to serve. `optional`: v of them are served, not all */
	int n_rows;
	const uint8_t *rank; /* n_rows × n_places */
	bool optional;
	int drawn; /* how many of the rows will be the container's; 0: all of them are */
	/* Free GPUs that could lose their nearest VFs: n_keep × n_places, true where it is nearest
	 */
	int n_keep;
	const uint8_t *keep;
	int n_groups;
	struct group *groups;
	int *group_of; /* place → group; -1: nothing to choose there */
};

/* Lexicographic; smaller is better. */
#define ZONE_KEYS 6
enum { RANK = ZONE_KEYS, UNEVEN, EXCESS, LOSSES, ORDER, N_KEYS };
struct value {
	int64_t key[N_KEYS]; /* the zone's come first */
};
int value_cmp(const struct value *a, const struct value *b);

static inline int row_rank(const struct problem *p, int row, int group)
{
	return p->rank[(size_t)row * (size_t)p->n_places + (size_t)p->groups[group].place];
}
static inline bool keeps(const struct problem *p, int spare_gpu, int group)
{
	return p->keep[(size_t)spare_gpu * (size_t)p->n_places + (size_t)p->groups[group].place];
}
/* VFs beyond the first on a place when a group gives `count`. */
static inline int group_excess(const struct group *g, int count)
{
	int rest = count - g->must - g->firsts;

	return g->forced + (rest > 0 ? rest : 0);
}

/*
 * The GPU that is worst off: the summand of a GPU whose best VF is of that rank. With a base above
 * the number of GPUs, one GPU fewer at a rank outweighs them all at the ranks below.
 */
static inline int64_t best_worth(int rank, int64_t base)
{
	int64_t worth = rank > 0;

	while (--rank > 0)
		worth *= base;
	return worth;
}

/* The base for that many GPUs; smaller where pairs of GPUs and VFs that cost `uneven` times
 * best_worth() would not fit the numbers of a flow. */
int64_t best_base(int n_gpus, int64_t uneven, int64_t pairs);

/* problem.c: from the caller's tables to groups. */
void problem_init(struct problem *p, const struct align_in *in, struct arena *arena);
void problem_set_gpus(struct problem *p); /* rows and spare GPUs of a container with known GPUs */
bool problem_set_drawn(
	struct problem *p); /* rows for GPUs that are drawn; false: not to be decided that way */
void problem_group(struct problem *p); /* after rows, spare GPUs and limits are set */
/* Mark the places with VFs that are nearest to a free GPU (n_places flags); how many VFs they have.
 */
int problem_nearest(const struct problem *p, int free_gpu, uint8_t *ret_near);

/* The terms packed into one number, each above all smaller ones. */
struct weights {
	int64_t order, loss, excess, uneven, rank;
	int64_t base; /* of best_worth() */
};
struct weights problem_weights(const struct problem *p);
/* Of a pair: the VF is the only one of its GPU, or its best one. */
static inline int64_t best_cost(const struct weights *w, int rank)
{
	return w->rank * rank + w->uneven * best_worth(rank, w->base);
}

/*
 * tree.c: counts for fewer VFs than GPUs, or for GPUs that are drawn; exact where distances nest.
 * Returns the packed worth, which none can beat; when GPUs are drawn, over all draws and in parts
 * of a pair.
 */
int64_t tree_counts(const struct problem *p, const struct weights *w, int *counts);

/* many.c and few.c: the number of VFs that each group gives, and its value. Need sum(cap) >= v. */
void count_many(const struct problem *p, int *counts, struct value *ret);
void count_few(const struct problem *p, int *counts, struct value *ret);
void count_drawn(const struct problem *p, int *counts, struct value *ret);
int count_losses(const struct problem *p, const int *counts);

/* zone.c: rows and limits of the zone where the GPUs are expected; false: too few VFs. */
bool zone_choose(struct problem *p, struct value *ret);

/* pick.c: the VFs themselves, ascending. */
int *pick_vfs(const struct problem *p, const int *counts, size_t *ret_n);

#endif
