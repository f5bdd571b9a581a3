#include "align/align.h"

#include <stdlib.h>

#include "align/align-internal.h"
#include "align/balance-internal.h"
#include "base/arena.h"

/* The state of an assignment: columns are the VFs' places, those with equal ranks together. */
struct pairing {
	const struct align_in *in;
	struct arena *arena;
	const int *vfs;
	int n_vfs, n_cols;
	int *col_of;  /* per VF of vfs */
	int *col_vfs; /* VFs in a column */
	int *place;   /* a place of each column */
	int *units;   /* rows × columns */
};

static int gpu_rank(const struct align_in *in, size_t gpu, int place)
{
	return in->gpu_rank[gpu * in->n_places + (size_t)place];
}

static bool equal_for_gpus(const struct align_in *in, int a, int b)
{
	for (size_t g = 0; g < in->n_gpus && a != b; g++)
		if (gpu_rank(in, g, a) != gpu_rank(in, g, b))
			return false;
	return true;
}

static void set_columns(struct pairing *s)
{
	s->col_of = arena_array(s->arena, (size_t)s->n_vfs, sizeof(*s->col_of));
	s->col_vfs = arena_array(s->arena, (size_t)s->n_vfs, sizeof(*s->col_vfs));
	s->place = arena_array(s->arena, (size_t)s->n_vfs, sizeof(*s->place));
	for (int i = 0; i < s->n_vfs; i++) {
		int place = s->in->vfs[s->vfs[i]].place, col = 0;

		while (col < s->n_cols && !equal_for_gpus(s->in, s->place[col], place))
			col++;
		if (col == s->n_cols)
			s->place[s->n_cols++] = place;
		s->col_of[i] = col;
		s->col_vfs[col]++;
	}
}

static void balance_columns(struct pairing *s)
{
	int gpus = (int)s->in->n_gpus, many = s->n_vfs >= gpus, total = many ? s->n_vfs : gpus;
	int *base = arena_array(s->arena, (size_t)s->n_cols, sizeof(*base));
	int *extra = arena_array(s->arena, (size_t)s->n_cols, sizeof(*extra));
	int64_t *first = arena_array(s->arena, (size_t)(gpus * s->n_cols), sizeof(*first));
	int64_t *cost = arena_array(s->arena, (size_t)(gpus * s->n_cols), sizeof(*cost));
	int64_t uneven = (int64_t)total * gpus * s->n_cols + 1;
	int64_t worst_base = best_base(gpus, uneven, (int64_t)total * 2 * (gpus + s->n_cols));
	int64_t whole = uneven * (gpus * best_worth(ALIGN_RANKS - 1, worst_base) + 1);
	struct balance b = {
		.n_rows = gpus,
		.n_cols = s->n_cols,
		.cost = total > gpus ? cost : first,
		.first = total > gpus ? first : NULL,
		.row_base = many ? total / gpus : 1,
		.row_extra = many && total % gpus,
		.col_base = base,
		.col_extra = extra,
		.total = total,
	};

	/* Among equal ranks the lower GPU goes to the lower column: the sum of the products of
	 * their numbers is greatest. */
	for (int i = 0; i < gpus * s->n_cols; i++) {
		int g = i / s->n_cols, c = i % s->n_cols;
		int rank = gpu_rank(s->in, (size_t)g, s->place[c]);

		cost[i] = whole * rank + (int64_t)g * (s->n_cols - 1 - c);
		first[i] = cost[i] + uneven * best_worth(rank, worst_base);
	}
	for (int c = 0; c < s->n_cols; c++) {
		base[c] = s->col_vfs[c] * (total / s->n_vfs);
		extra[c] = total % s->n_vfs ? s->col_vfs[c] : 0;
	}
	s->units = arena_array(s->arena, (size_t)(gpus * s->n_cols), sizeof(*s->units));
	align_balance(&b, s->arena, s->units);
}

/* Deals the VFs of one column to its GPUs, both in order; a VF takes `base` of them or one more. */
static void deal_column(const struct pairing *s, int col, struct align_out *out)
{
	int gpus = (int)s->in->n_gpus, total = 0, vf = -1, room = 0, base, extras;

	for (int g = 0; g < gpus; g++)
		total += s->units[g * s->n_cols + col];
	base = total / s->col_vfs[col];
	extras = total % s->col_vfs[col];
	for (int g = 0; g < gpus; g++) {
		for (int u = 0; u < s->units[g * s->n_cols + col]; u++) {
			if (room == 0) {
				do
					vf++;
				while (s->col_of[vf] != col);
				room = base + (extras-- > 0);
			}
			room--;
			out->pairs[out->n_pairs++] =
				(struct align_pair) { g, s->vfs[vf],
						      gpu_rank(s->in, (size_t)g, s->place[col]) };
			out->cost += out->pairs[out->n_pairs - 1].rank;
		}
	}
}

static int by_gpu_then_vf(const void *a, const void *b)
{
	const struct align_pair *x = a, *y = b;

	return x->gpu != y->gpu ? x->gpu - y->gpu : x->vf - y->vf;
}

struct align_out align_assign(const struct align_in *in, const int *vfs, size_t n,
			      struct arena *arena)
{
	struct pairing s = { .in = in, .arena = arena, .vfs = vfs, .n_vfs = (int)n };
	struct align_out out = { 0 };

	if (n == 0 || in->n_gpus == 0)
		return out;
	set_columns(&s);
	balance_columns(&s);
	out.pairs = arena_array(arena, n > in->n_gpus ? n : in->n_gpus, sizeof(*out.pairs));
	for (int c = 0; c < s.n_cols; c++)
		deal_column(&s, c, &out);
	qsort(out.pairs, out.n_pairs, sizeof(*out.pairs), by_gpu_then_vf);
	return out;
}

/* How many VFs each group gives; false when the limits leave too few. */
static bool solve_counts(struct problem *p, int **ret_counts, struct value *ret)
{
	int64_t cap = 0;

	if (p->in->n_gpus > 0)
		problem_set_gpus(p);
	else if (!problem_set_drawn(p) && !zone_choose(p, ret))
		return false;
	problem_group(p);
	for (int g = 0; g < p->n_groups; g++)
		cap += p->groups[g].cap;
	if (cap < p->v)
		return false;
	*ret_counts = arena_array(p->arena, (size_t)p->n_groups, sizeof(**ret_counts));
	if (p->drawn > 0)
		count_drawn(p, *ret_counts, ret);
	else if (p->v < p->n_rows && !p->optional)
		count_few(p, *ret_counts, ret);
	else
		count_many(p, *ret_counts, ret);
	return true;
}

static struct align_out finish(const struct problem *p, const int *counts)
{
	size_t n;
	int *chosen = pick_vfs(p, counts, &n);
	struct align_out out = align_assign(p->in, chosen, n, p->arena);

	out.chosen = chosen;
	out.n_chosen = n;
	return out;
}

struct align_out align_solve(const struct align_in *in, struct arena *arena)
{
	struct value value = { { 0 } };
	struct problem p;
	int *counts;

	problem_init(&p, in, arena);
	if (p.v == 0 || !solve_counts(&p, &counts, &value))
		return (struct align_out) { 0 };
	return finish(&p, counts);
}

/* Another multiset of places has fewer VFs on at least one place of this one: forbid that for each
 * in turn. */
struct align_out align_runner_up(const struct align_in *in, const struct align_out *best,
				 struct arena *arena)
{
	int *on_place = arena_array(arena, in->n_places, sizeof(*on_place)), *counts = NULL;
	struct value value = { { 0 } };
	struct problem p = { 0 };

	for (size_t i = 0; i < best->n_chosen; i++)
		on_place[in->vfs[best->chosen[i]].place]++;
	for (size_t i = 0; i < in->n_places; i++) {
		struct value other_value = { { 0 } };
		struct problem other;
		int *other_counts;

		if (on_place[i] == 0)
			continue;
		problem_init(&other, in, arena);
		if (on_place[i] == other.must[i])
			continue;
		other.limit[i] = on_place[i] - 1;
		if (!solve_counts(&other, &other_counts, &other_value))
			continue;
		if (counts && value_cmp(&other_value, &value) >= 0)
			continue;
		p = other;
		counts = other_counts;
		value = other_value;
	}
	return counts ? finish(&p, counts) : (struct align_out) { 0 };
}
