/*
 * Fewer VFs than GPUs: each VF serves a fixed number of GPUs or one more, and which VFs to take is
 * a choice of facilities, not a flow. The tables of tree.c propose a choice and bound all others;
 * on a machine whose distances nest the two meet. Elsewhere a local search improves the proposal,
 * and a depth-first search over the numbers of VFs finds the better one or proves that there is
 * none.
 */
#include <string.h>

#include "align/align-internal.h"
#include "align/balance-internal.h"
#include "base/arena.h"

struct few {
	const struct problem *p;
	struct weights w;
	int base, extras;    /* GPUs of each VF; VFs that have one more */
	const int64_t *cost; /* rows × groups */
	int *col_base, *col_extra;
	int *counts, *best;
	int64_t best_score, bound;
	int leaves;
};

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

static bool is_over(const struct few *f)
{
	return f->best_score <= f->bound || f->leaves > ALIGN_SEARCH_LEAVES;
}

static int64_t assign_cost(struct few *f)
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
	return align_balance(&b, scratch, NULL);
}

/* Exact worth of f->counts. */
static int64_t score_counts(struct few *f, struct value *ret)
{
	int64_t *key = ret->key, cost;

	memset(key + RANK, 0, (N_KEYS - RANK) * sizeof(*key));
	for (int g = 0; g < f->p->n_groups; g++) {
		f->col_base[g] = f->base * f->counts[g];
		f->col_extra[g] = f->extras ? f->counts[g] : 0;
		key[EXCESS] += group_excess(&f->p->groups[g], f->counts[g]);
		key[ORDER] += (int64_t)g * f->counts[g];
	}
	cost = assign_cost(f);
	key[RANK] = cost / f->w.rank;
	key[UNEVEN] = cost % f->w.rank / f->w.uneven;
	key[LOSSES] = count_losses(f->p, f->counts);
	return cost + f->w.excess * key[EXCESS] + f->w.loss * key[LOSSES] + f->w.order * key[ORDER];
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

/* Move one VF from a group to another, while that is better. */
static void improve(struct few *f)
{
	int n = f->p->n_groups;
	bool moved;

	do {
		moved = false;
		for (int i = 0; i < n * n && !is_over(f); i++) {
			int a = i / n, b = i % n;

			if (a == b || f->counts[a] <= f->p->groups[a].must ||
			    f->counts[b] >= f->p->groups[b].cap)
				continue;
			f->counts[a]--;
			f->counts[b]++;
			if (consider(f)) {
				moved = true;
				continue;
			}
			f->counts[a]++;
			f->counts[b]--;
		}
	} while (moved);
}

/* Bound with the groups before `next` decided and the others free to take all they can. */
static bool is_hopeless(struct few *f, int next, int k)
{
	int64_t score = 0;

	for (int g = 0; g < f->p->n_groups; g++) {
		int c = g < next ? f->counts[g] : smaller(f->p->groups[g].cap, k);

		f->col_base[g] = (f->base + (f->extras > 0)) * c;
		f->col_extra[g] = 0;
		if (g < next)
			score += f->w.excess * group_excess(&f->p->groups[g], c) +
				 f->w.order * g * c;
	}
	return score + assign_cost(f) >= f->best_score;
}

static void search(struct few *f, int group, int k)
{
	const struct group *g;
	int after = 0; /* VFs that the groups behind this one can give */

	if (is_over(f))
		return;
	if (group == f->p->n_groups) {
		consider(f);
		return;
	}
	if (is_hopeless(f, group, k))
		return;
	g = &f->p->groups[group];
	for (int i = group + 1; i < f->p->n_groups; i++)
		after += f->p->groups[i].cap;
	for (int c = g->must; c <= smaller(g->cap, k); c++) {
		if (k - c > after)
			continue;
		f->counts[group] = c;
		search(f, group + 1, k - c);
	}
}

void count_few(const struct problem *p, int *counts, struct value *ret)
{
	size_t groups = (size_t)p->n_groups;
	int64_t *cost = arena_array(p->arena, (size_t)p->n_rows * groups, sizeof(*cost));
	struct few f = {
		.p = p,
		.w = problem_weights(p),
		.base = p->n_rows / p->v,
		.extras = p->n_rows % p->v,
		.cost = cost,
		.col_base = arena_array(p->arena, groups, sizeof(*f.col_base)),
		.col_extra = arena_array(p->arena, groups, sizeof(*f.col_extra)),
		.counts = arena_array(p->arena, groups, sizeof(*f.counts)),
		.best = counts,
		.best_score = INT64_MAX,
	};

	for (int i = 0; i < p->n_rows * p->n_groups; i++)
		cost[i] = best_cost(&f.w, row_rank(p, i / p->n_groups, i % p->n_groups));
	f.bound = tree_counts(p, &f.w, f.counts);
	consider(&f);
	improve(&f);
	search(&f, 0, p->v);
	f.counts = counts;
	score_counts(&f, ret);
}
