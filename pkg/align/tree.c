/*
 * Fewer VFs than GPUs, or GPUs that are yet to be drawn, on a machine whose distances nest: exact,
 * by tables over the tree.
 *
 * Groups and GPUs that ranks of at most L connect form a component; components of L nest in those
 * of L + 1. With n GPUs and s free seats (VFs times the GPUs each serves) in a component, min(n, s)
 * pairs stay inside it, for all components at once, so the total rank is
 *
 *   sum over L = 0 … 3 of (pairs − sum over components of L of min(n, s)).
 *
 * The same pairs are the best for any cost that grows with the rank (best_cost()), so the steps
 * from one level to the next may differ.
 *
 * A component's table has the least cost for k VFs, e of them with an extra GPU. Free GPUs are
 * served from the VFs left in the smallest component that holds all their nearest groups.
 *
 * When k of the n GPUs are drawn, min(n, s) is replaced by its expected value: the number of drawn
 * ones in a component is hypergeometric. The same sum is the expected total rank then.
 *
 * Where distances do not nest, connecting brings things closer than they are: a bound from below.
 */
#include <string.h>

#include "align/align-internal.h"
#include "base/arena.h"

#define NEVER	      (INT64_MAX / 4)
#define DRAWS_MAX     65536
#define DEPLETION_TOP 256

struct cell {
	int64_t cost;
	int lost; /* free GPUs without a VF, part of the cost */
	int left; /* cell of the left table it came from */
};

/* Cells are numbered k × (extras + 1) + e. */
struct table {
	struct table *left, *right; /* merged from these; NULL: one group, or nothing */
	int group;		    /* -1: none */
	int most;		    /* VFs that it can give, at most v */
	int rows, avail, spare_gpus;
	struct cell *cells;
};

struct tree {
	const struct problem *p;
	const struct weights *w;
	int base, extras;
	int *component;	       /* of groups, then of rows */
	struct table **tables; /* per component; NULL: merged into another */
	bool *served;	       /* spare GPUs that are counted */
};

static int cells_of(const struct tree *t, const struct table *table)
{
	return (table->most + 1) * (t->extras + 1);
}

static struct table *new_table(const struct tree *t, int most)
{
	struct table *table = arena_alloc(t->p->arena, sizeof(*table));

	table->group = -1;
	table->most = most < t->p->v ? most : t->p->v;
	table->cells = arena_array(t->p->arena, (size_t)cells_of(t, table), sizeof(*table->cells));
	for (int i = 0; i < cells_of(t, table); i++)
		table->cells[i].cost = NEVER;
	return table;
}

/* GPUs that are drawn make most places alike: those with the most VFs left go first, as pick.c has
 * it within a group. */
static int64_t depletion(const struct problem *p, int group, int k)
{
	const struct group *g = &p->groups[group];
	int64_t sum = 0;

	for (int i = 0; i < k; i++) {
		int left = (g->avail - i) / g->n_places;

		sum += left < DEPLETION_TOP ? DEPLETION_TOP - left : 0;
	}
	return sum * p->n_groups + (int64_t)group * k;
}

static struct table *group_table(const struct tree *t, int group)
{
	const struct group *g = &t->p->groups[group];
	struct table *table = new_table(t, g->cap);

	table->group = group;
	table->avail = g->avail;
	for (int k = g->must; k <= table->most; k++)
		for (int e = 0; e <= k && e <= t->extras; e++)
			table->cells[k * (t->extras + 1) + e].cost =
				t->w->excess * group_excess(g, k) +
				t->w->order * (t->p->drawn ? depletion(t->p, group, k)
							   : (int64_t)group * k);
	return table;
}

static struct table *merge(const struct tree *t, struct table *a, struct table *b)
{
	struct table *out = new_table(t, a->most + b->most);
	int width = t->extras + 1;

	out->left = a;
	out->right = b;
	out->rows = a->rows + b->rows;
	out->avail = a->avail + b->avail;
	out->spare_gpus = a->spare_gpus + b->spare_gpus;
	for (int i = 0; i < cells_of(t, a); i++) {
		const struct cell *x = &a->cells[i];

		for (int j = 0; x->cost < NEVER && j < cells_of(t, b); j++) {
			int k = i / width + j / width, e = i % width + j % width;
			const struct cell *y = &b->cells[j];
			struct cell *z = &out->cells[k * width + e];

			if (k <= out->most && e <= t->extras && y->cost < NEVER &&
			    x->cost + y->cost < z->cost)
				*z = (struct cell) { x->cost + y->cost, x->lost + y->lost, i };
		}
	}
	return out;
}

static void join(struct tree *t, int a, int b)
{
	int from = t->component[b], to = t->component[a];

	if (from == to)
		return;
	t->tables[to] = merge(t, t->tables[to], t->tables[from]);
	t->tables[from] = NULL;
	for (int i = 0; i < t->p->n_groups + t->p->n_rows; i++)
		if (t->component[i] == from)
			t->component[i] = to;
}

/* The component of all nearest groups of a free GPU; -1 while they are apart. */
static int home_of(const struct tree *t, int spare_gpu)
{
	int home = -1;

	for (int g = 0; g < t->p->n_groups; g++) {
		if (!keeps(t->p, spare_gpu, g))
			continue;
		if (home >= 0 && t->component[g] != home)
			return -1;
		home = t->component[g];
	}
	return home;
}

/* Serve new free GPUs from the VFs that are left in their component. */
static void serve_spare_gpus(struct tree *t)
{
	for (int k = 0; k < t->p->n_keep; k++) {
		int home = t->served[k] ? -1 : home_of(t, k);
		struct table *table;

		if (home < 0)
			continue;
		t->served[k] = true;
		table = t->tables[home];
		for (int i = 0; i < cells_of(t, table); i++) {
			struct cell *c = &table->cells[i];
			int left =
				table->avail - i / (t->extras + 1) - (table->spare_gpus - c->lost);

			if (c->cost >= NEVER || left >= 1)
				continue;
			c->lost += 1 - left;
			c->cost += t->w->loss * (1 - left);
		}
		table->spare_gpus++;
	}
}

/* All ways to take k of n. */
static double choices(int n, int k)
{
	double c = 1;

	for (int i = 1; i <= k; i++)
		c = c * (n - k + i) / i;
	return k < 0 || k > n ? 0 : c;
}

/*
 * The saving of pairs inside the component against the next level. When GPUs are drawn: over all
 * draws, DRAWS_MAX of them when there are more. Each GPU makes 1 / drawn of the pairs, each VF 1 /
 * v; so counted in drawn × v parts they are whole numbers.
 */
static void save_pairs(const struct tree *t, struct table *table, int64_t step)
{
	const struct problem *p = t->p;
	double draws[ALIGN_DRAWN_MAX + 1]; /* in how many of them g GPUs are among its rows */
	double all = p->drawn ? choices(p->n_rows, p->drawn) : 1;
	double scale = all > DRAWS_MAX ? DRAWS_MAX / all : 1;
	int width = t->extras + 1;

	for (int g = 0; p->drawn && g <= p->drawn; g++)
		draws[g] = scale * choices(table->rows, g) *
			   choices(p->n_rows - table->rows, p->drawn - g);
	for (int i = 0; i < cells_of(t, table); i++) {
		int seats = t->base * (i / width) + i % width;
		int64_t pairs = seats < table->rows ? seats : table->rows;
		double sum = 0;

		for (int g = 0; p->drawn && g <= p->drawn; g++)
			sum += draws[g] * (g * p->v < i * p->drawn ? g * p->v : i * p->drawn);
		if (p->drawn)
			pairs = (int64_t)(sum + 0.5);
		if (table->cells[i].cost < NEVER)
			table->cells[i].cost -= step * pairs;
	}
}

static void read_counts(const struct tree *t, const struct table *table, int cell, int *counts)
{
	int width = t->extras + 1, left;

	if (table->group >= 0)
		counts[table->group] = cell / width;
	if (!table->left)
		return;
	left = table->cells[cell].left;
	read_counts(t, table->left, left, counts);
	read_counts(t, table->right,
		    (cell / width - left / width) * width + cell % width - left % width, counts);
}

int64_t tree_counts(const struct problem *p, const struct weights *w, int *counts)
{
	struct tree t = { .p = p, .w = w, .base = p->n_rows / p->v };
	int n = p->n_groups + p->n_rows, cell;
	const struct table *all;

	t.extras = p->drawn ? 0 : p->n_rows % p->v;
	cell = p->v * (t.extras + 1) + t.extras;

	t.component = arena_array(p->arena, (size_t)n, sizeof(*t.component));
	t.tables = arena_array(p->arena, (size_t)n, sizeof(struct table *));
	t.served = arena_array(p->arena, (size_t)p->n_keep, sizeof(*t.served));
	for (int i = 0; i < n; i++) {
		t.component[i] = i;
		if (i < p->n_groups) {
			t.tables[i] = group_table(&t, i);
			continue;
		}
		t.tables[i] = new_table(&t, 0);
		t.tables[i]->rows = 1;
		t.tables[i]->cells[0].cost = 0;
	}
	serve_spare_gpus(&t);
	for (int rank = 0; rank < ALIGN_RANKS; rank++) {
		for (int r = 0; r < p->n_rows; r++)
			for (int g = 0; g < p->n_groups; g++)
				if (row_rank(p, r, g) <= rank)
					join(&t, g, p->n_groups + r);
		serve_spare_gpus(&t);
		for (int i = 0; i < n && rank < ALIGN_RANKS - 1; i++)
			if (t.tables[i])
				save_pairs(&t, t.tables[i],
					   best_cost(w, rank + 1) - best_cost(w, rank));
	}
	all = t.tables[t.component[0]];
	read_counts(&t, all, cell, counts);
	return all->cells[cell].cost + best_cost(w, ALIGN_RANKS - 1) * p->n_rows;
}

void count_drawn(const struct problem *p, int *counts, struct value *ret)
{
	struct weights w = { .order = 1 };

	w.excess = (int64_t)p->v * (DEPLETION_TOP + 1) * p->n_groups + 1;
	w.rank = w.excess * (p->v + 1);
	ret->key[RANK] = tree_counts(p, &w, counts);
}
