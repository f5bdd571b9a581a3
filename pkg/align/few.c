/*
 * Fewer VFs than GPUs: each VF serves a fixed number of GPUs or one more, and which VFs to take is a
 * choice of facilities, not a flow. A bound that lets groups compete for nothing is computed for all
 * ends of the list of groups; the choice it proposes is usually optimal already. Else a local search
 * improves it, and a depth-first search over the numbers of VFs proves it or finds the better one.
 */
#include <string.h>

#include "align/align-internal.h"
#include "align/balance.h"
#include "base/arena.h"

#define NEVER (INT64_MAX / 4)

struct few {
	const struct problem *p;
	int base, extras; /* GPUs of each VF; VFs that have one more */
	int64_t loss, excess, rank;
	const int *sum;	 /* per group: total rank of its 0, 1, 2 … nearest GPUs */
	int64_t *rest;	 /* bound for groups from g on, with k VFs and e extras to give */
	int64_t *prefix; /* bound for groups before g, by extras given */
	int64_t *cost;	 /* scratch: rows × groups */
	int *col_base, *col_extra;
	int *counts, *best;
	int64_t best_score;
	int leaves;
};

static const int *rank_sums(const struct problem *p)
{
	int width = p->n_rows + 1;
	int *sum = arena_array(p->arena, (size_t)(p->n_groups * width), sizeof(*sum));

	for (int g = 0; g < p->n_groups; g++) {
		int *s = sum + g * width, n = 0, at_rank[ALIGN_RANKS] = { 0 };

		for (int r = 0; r < p->n_rows; r++)
			at_rank[row_rank(p, r, g)]++;
		for (int rank = 0; rank < ALIGN_RANKS; rank++)
			for (int i = 0; i < at_rank[rank]; i++, n++)
				s[n + 1] = s[n] + rank;
	}
	return sum;
}

static int64_t *rest_at(const struct few *f, int group, int vfs, int extras)
{
	return &f->rest[(group * (f->p->v + 1) + vfs) * (f->extras + 1) + extras];
}

/* What a group costs at least when it gives c VFs, x of them with an extra GPU. */
static int64_t group_floor(const struct few *f, int group, int c, int x)
{
	int load = f->base * c + x;

	if (load > f->p->n_rows)
		return NEVER;
	return f->rank * f->sum[group * (f->p->n_rows + 1) + load] +
	       f->excess * group_excess(&f->p->groups[group], c) + (int64_t)group * c;
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

/* The best (c, x) of one group, the rest after it taken as bounded. */
static int64_t best_of_group(const struct few *f, int group, int k, int e, int *ret_c, int *ret_x)
{
	const struct group *g = &f->p->groups[group];
	int64_t best = NEVER;

	for (int c = g->must; c <= smaller(g->cap, k); c++) {
		for (int x = 0; x <= smaller(c, e); x++) {
			int64_t after = *rest_at(f, group + 1, k - c, e - x);
			int64_t score = group_floor(f, group, c, x) + after;

			if (after >= NEVER || score >= best)
				continue;
			best = score;
			*ret_c = c;
			*ret_x = x;
		}
	}
	return best;
}

static void bound_rest(struct few *f)
{
	int groups = f->p->n_groups, v = f->p->v, c = 0, x = 0;

	f->rest = arena_array(f->p->arena, (size_t)((groups + 1) * (v + 1) * (f->extras + 1)),
			      sizeof(*f->rest));
	for (int k = 0; k <= v; k++)
		for (int e = 0; e <= f->extras; e++)
			*rest_at(f, groups, k, e) = k + e == 0 ? 0 : NEVER;
	for (int g = groups - 1; g >= 0; g--)
		for (int k = 0; k <= v; k++)
			for (int e = 0; e <= f->extras; e++)
				*rest_at(f, g, k, e) = best_of_group(f, g, k, e, &c, &x);
}

/* The choice that attains the bound, conflicts ignored. */
static void propose(struct few *f)
{
	int k = f->p->v, e = f->extras;

	for (int g = 0; g < f->p->n_groups; g++) {
		int c = f->p->groups[g].must, x = 0;

		best_of_group(f, g, k, e, &c, &x);
		f->counts[g] = c;
		k -= c;
		e -= x;
	}
}

static int64_t assign_rank(struct few *f)
{
	_cleanup_arena_ struct arena *scratch = arena_new(1 << 14);
	struct balance b = {
		.n_rows = f->p->n_rows,
		.n_cols = f->p->n_groups,
		.cost = f->cost,
		.row_base = 1,
		.col_base = f->col_base,
		.col_extra = f->col_extra,
		.total = f->p->n_rows,
	};

	f->leaves++;
	return balance_solve(&b, scratch, NULL);
}

/* Exact worth of f->counts. */
static int64_t score_counts(struct few *f, struct value *ret)
{
	int64_t *key = ret->key + ZONE_KEYS;

	memset(key, 0, 4 * sizeof(*key));
	for (int g = 0; g < f->p->n_groups; g++) {
		f->col_base[g] = f->base * f->counts[g];
		f->col_extra[g] = f->extras ? f->counts[g] : 0;
		key[1] += group_excess(&f->p->groups[g], f->counts[g]);
		key[3] += (int64_t)g * f->counts[g];
	}
	key[0] = assign_rank(f);
	key[2] = count_losses(f->p, f->counts);
	return f->rank * key[0] + f->excess * key[1] + f->loss * key[2] + key[3];
}

/* Keep f->counts when it is better than the best so far. */
static bool consider(struct few *f)
{
	struct value value;
	int64_t score = score_counts(f, &value);

	if (score >= f->best_score)
		return false;
	f->best_score = score;
	memcpy(f->best, f->counts, (size_t)f->p->n_groups * sizeof(*f->best));
	return true;
}

/* Move one VF from group a to group b, if that is better. */
static bool try_move(struct few *f, int a, int b)
{
	const struct group *from = &f->p->groups[a], *to = &f->p->groups[b];
	bool better;

	if (a == b || f->counts[a] <= from->must || f->counts[b] >= to->cap)
		return false;
	f->counts[a]--;
	f->counts[b]++;
	better = consider(f);
	if (!better) {
		f->counts[a]++;
		f->counts[b]--;
	}
	return better;
}

static void improve(struct few *f)
{
	bool moved;

	do {
		moved = false;
		for (int i = 0; i < f->p->n_groups * f->p->n_groups; i++) {
			if (f->best_score == *rest_at(f, 0, f->p->v, f->extras) ||
			    f->leaves > ALIGN_SEARCH_LEAVES)
				return;
			moved = try_move(f, i / f->p->n_groups, i % f->p->n_groups) || moved;
		}
	} while (moved);
}

/* Bound with the groups before `next` decided and the others free to take what they can. */
static int64_t relaxed_score(struct few *f, int next, int k)
{
	int64_t score = 0;

	for (int g = 0; g < f->p->n_groups; g++) {
		int c = g < next ? f->counts[g] : smaller(f->p->groups[g].cap, k);

		f->col_base[g] = (f->base + (f->extras > 0)) * c;
		f->col_extra[g] = 0;
		if (g < next)
			score += f->excess * group_excess(&f->p->groups[g], c) + (int64_t)g * c;
	}
	return score + f->rank * assign_rank(f);
}

static bool hopeless(struct few *f, int next, int k)
{
	const int64_t *prefix = f->prefix + next * (f->extras + 1);
	int64_t bound = NEVER;

	for (int e = 0; e <= f->extras; e++) {
		int64_t rest = *rest_at(f, next, k, f->extras - e);

		if (prefix[e] < NEVER && rest < NEVER && prefix[e] + rest < bound)
			bound = prefix[e] + rest;
	}
	return bound >= f->best_score || relaxed_score(f, next, k) >= f->best_score;
}

static void extend_prefix(struct few *f, int group, int c)
{
	const int64_t *old = f->prefix + group * (f->extras + 1);
	int64_t *new = f->prefix + (group + 1) * (f->extras + 1);

	for (int e = 0; e <= f->extras; e++) {
		new[e] = NEVER;
		for (int x = 0; x <= smaller(c, e); x++) {
			int64_t own = group_floor(f, group, c, x);

			if (own < NEVER && old[e - x] < NEVER && old[e - x] + own < new[e])
				new[e] = old[e - x] + own;
		}
	}
}

static void search(struct few *f, int group, int k)
{
	const struct group *g;

	if (f->leaves > ALIGN_SEARCH_LEAVES || hopeless(f, group, k))
		return;
	if (group == f->p->n_groups) {
		consider(f);
		return;
	}
	g = &f->p->groups[group];
	for (int c = g->must; c <= smaller(g->cap, k); c++) {
		f->counts[group] = c;
		extend_prefix(f, group, c);
		search(f, group + 1, k - c);
	}
}

static void prepare(struct few *f)
{
	const struct problem *p = f->p;
	size_t groups = (size_t)p->n_groups;

	f->base = p->n_rows / p->v;
	f->extras = p->n_rows % p->v;
	f->loss = (int64_t)p->v * p->n_groups + 1;
	f->excess = f->loss * (p->n_keep + 1);
	f->rank = f->excess * (p->v + 1);
	f->sum = rank_sums(p);
	f->cost = arena_array(p->arena, (size_t)p->n_rows * groups, sizeof(*f->cost));
	for (int i = 0; i < p->n_rows * p->n_groups; i++)
		f->cost[i] = row_rank(p, i / p->n_groups, i % p->n_groups);
	f->col_base = arena_array(p->arena, groups, sizeof(*f->col_base));
	f->col_extra = arena_array(p->arena, groups, sizeof(*f->col_extra));
	f->counts = arena_array(p->arena, groups, sizeof(*f->counts));
	f->prefix = arena_array(p->arena, (groups + 1) * (size_t)(f->extras + 1), sizeof(*f->prefix));
	for (int e = 1; e <= f->extras; e++)
		f->prefix[e] = NEVER;
}

void count_few(const struct problem *p, int *counts, struct value *ret)
{
	struct few f = { .p = p, .best = counts, .best_score = NEVER };

	prepare(&f);
	bound_rest(&f);
	propose(&f);
	consider(&f);
	improve(&f);
	if (f.best_score > *rest_at(&f, 0, p->v, f.extras))
		search(&f, 0, p->v);
	f.counts = counts;
	score_counts(&f, ret);
}
