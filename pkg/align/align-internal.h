/* What align.c and counts.c share: one problem, and the numbers that are decided about it. */
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

static inline bool keeps(const struct problem *p, int spare_gpu, int group)
{
	return p->keep[(size_t)spare_gpu * (size_t)p->n_places + (size_t)p->groups[group].place];
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

/* How many VFs each group gives, and what that is worth: at least as many VFs as rows; fewer; and
 * for GPUs that are drawn. Need sum(cap) >= v. */
void count_many(const struct problem *p, int *counts, struct value *ret);
void count_few(const struct problem *p, int *counts, struct value *ret);
void count_drawn(const struct problem *p, int *counts, struct value *ret);

/* The capacity-balanced assignment of rows (GPUs) to columns (places or groups of them). */
struct balance {
	int n_rows, n_cols;
	const int64_t *cost;	 /* n_rows × n_cols */
	const int64_t *first;	 /* likewise, of each row's first unit; NULL: as the others */
	int row_base, row_extra; /* each row: base units, then up to extra more */
	const int *col_base, *col_extra;
	int total;
};

/* Bases are filled before extras are used. ret_units (n_rows × n_cols) may be NULL. Returns the
 * total cost. */
int64_t align_balance(const struct balance *b, struct arena *arena, int *ret_units);

#endif
