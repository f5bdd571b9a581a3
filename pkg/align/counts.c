/*
 * How many VFs each place gives, and what that is worth: a flow where there are as many VFs as
 * GPUs, tables over a tree and a search where there are fewer. It knows the numbers of one problem
 * (align-internal.h) and nothing of devices; align.c asks, and picks the VFs themselves.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "align/align-internal.h"
#include "align/align.h"
#include "base/arena.h"

static inline int row_rank(const struct problem *p, int row, int group)
{
	return p->rank[(size_t)row * (size_t)p->n_places + (size_t)p->groups[group].place];
}

/* VFs beyond the first on a place when a group gives `count`. */
static inline int group_excess(const struct group *g, int count)
{
	int rest = count - g->must - g->firsts;

	return g->forced + (rest > 0 ? rest : 0);
}

/* --- minimum-cost flow on a small graph with costs of zero or more: successive shortest paths with
 * potentials, all equally short paths at once; dense by intent: a few dozen nodes --- */

#define FAR INT64_MAX

enum { SOURCE, SINK };

struct arc {
	int to, next; /* next arc of the same node, -1 */
	int cap;      /* the part left */
	int64_t cost;
};

struct flow {
	int n_nodes, n_arcs, max_arcs;
	int *head;	  /* first arc of a node, -1 */
	struct arc *arcs; /* arc 2k+1 is the way back of arc 2k */
	int64_t *potential, *dist;
	bool *done;
};

static int count_losses(const struct problem *p, const int *counts);

static struct flow *flow_new(struct arena *arena, int n_nodes, int max_arcs)
{
	struct flow *f = arena_alloc(arena, sizeof(*f));

	f->n_nodes = n_nodes;
	f->max_arcs = 2 * max_arcs;
	f->head = arena_array(arena, (size_t)n_nodes, sizeof(*f->head));
	f->arcs = arena_array(arena, (size_t)f->max_arcs, sizeof(*f->arcs));
	f->potential = arena_array(arena, (size_t)n_nodes, sizeof(*f->potential));
	f->dist = arena_array(arena, (size_t)n_nodes, sizeof(*f->dist));
	f->done = arena_array(arena, (size_t)n_nodes, sizeof(*f->done));
	for (int i = 0; i < n_nodes; i++)
		f->head[i] = -1;
	return f;
}

static void half_arc(struct flow *f, int from, int to, int cap, int64_t cost)
{
	f->arcs[f->n_arcs] = (struct arc) { to, f->head[from], cap, cost };
	f->head[from] = f->n_arcs++;
}

/* The arc's number, for flow_on(). */
static int flow_arc(struct flow *f, int from, int to, int cap, int64_t cost)
{
	int arc = f->n_arcs;

	assert(arc + 2 <= f->max_arcs && cost >= 0 && cap >= 0);
	half_arc(f, from, to, cap, cost);
	half_arc(f, to, from, 0, -cost);
	return arc;
}

static int flow_on(const struct flow *f, int arc)
{
	return f->arcs[arc ^ 1].cap;
}

static int64_t reduced(const struct flow *f, int from, const struct arc *a)
{
	return a->cost + f->potential[from] - f->potential[a->to];
}

static int nearest_open(const struct flow *f)
{
	int best = -1;

	for (int i = 0; i < f->n_nodes; i++)
		if (!f->done[i] && f->dist[i] != FAR && (best < 0 || f->dist[i] < f->dist[best]))
			best = i;
	return best;
}

/* Dijkstra until the sink is settled. Nodes beyond keep its distance: potentials stay valid. */
static bool find_distances(struct flow *f)
{
	int node;

	for (int i = 0; i < f->n_nodes; i++)
		f->dist[i] = FAR;
	memset(f->done, 0, (size_t)f->n_nodes * sizeof(*f->done));
	f->dist[SOURCE] = 0;
	while ((node = nearest_open(f)) >= 0 && node != SINK) {
		f->done[node] = true;
		for (int i = f->head[node]; i >= 0; i = f->arcs[i].next) {
			const struct arc *a = &f->arcs[i];
			int64_t d;

			if (a->cap == 0)
				continue;
			d = f->dist[node] + reduced(f, node, a);
			if (d < f->dist[a->to])
				f->dist[a->to] = d;
		}
	}
	if (node < 0)
		return false;
	for (int i = 0; i < f->n_nodes; i++)
		f->potential[i] += f->dist[i] < f->dist[SINK] ? f->dist[i] : f->dist[SINK];
	return true;
}

/* Push along arcs of no reduced cost; `done` marks the nodes of this search. */
static int push(struct flow *f, int node, int amount)
{
	if (node == SINK)
		return amount;
	f->done[node] = true;
	for (int i = f->head[node]; i >= 0; i = f->arcs[i].next) {
		struct arc *a = &f->arcs[i];
		int sent;

		if (a->cap == 0 || f->done[a->to] || reduced(f, node, a) != 0)
			continue;
		sent = push(f, a->to, amount < a->cap ? amount : a->cap);
		if (sent > 0) {
			a->cap -= sent;
			f->arcs[i ^ 1].cap += sent;
			return sent;
		}
	}
	return 0;
}

/* Send up to `amount` from node 0 to node 1 at the lowest cost; returns the amount sent. */
static int flow_send(struct flow *f, int amount)
{
	int total = 0;

	while (total < amount && find_distances(f)) {
		int sent;

		do {
			memset(f->done, 0, (size_t)f->n_nodes * sizeof(*f->done));
			sent = push(f, SOURCE, amount - total);
			total += sent;
		} while (sent > 0 && total < amount);
	}
	return total;
}

/* --- the capacity-balanced assignment of rows (GPUs) to columns (places or groups of them) --- */

/* Rows that have a first unit of its own cost are two nodes each: that unit, and the rest. */
static int row_nodes(const struct balance *b)
{
	return b->first ? 2 * b->n_rows : b->n_rows;
}

static int64_t unit_cost(const struct balance *b, int i)
{
	int n = b->n_rows * b->n_cols;

	if (b->first)
		return i < n ? b->first[i] : b->cost[i - n];
	return b->cost[i];
}

static void add_bases(const struct balance *b, struct flow *f, int64_t extra)
{
	int nodes = row_nodes(b);

	for (int r = 0; b->first && r < b->n_rows; r++)
		flow_arc(f, 0, 2 + r, 1, 0);
	for (int r = nodes - b->n_rows; r < nodes; r++) {
		flow_arc(f, 0, 2 + r, b->row_base - (b->first != NULL), 0);
		if (b->row_extra > 0)
			flow_arc(f, 0, 2 + r, b->row_extra, extra);
	}
	for (int c = 0; c < b->n_cols; c++) {
		flow_arc(f, 2 + nodes + c, 1, b->col_base[c], 0);
		if (b->col_extra[c] > 0)
			flow_arc(f, 2 + nodes + c, 1, b->col_extra[c], extra);
	}
}

int64_t align_balance(const struct balance *b, struct arena *arena, int *ret_units)
{
	int nodes = row_nodes(b), pairs = b->n_rows * b->n_cols, arcs = nodes * b->n_cols;
	struct flow *f = flow_new(arena, 2 + nodes + b->n_cols, arcs + 3 * nodes + 2 * b->n_cols);
	int64_t total = 0, top = 0;
	int first = 0;

	for (int i = 0; i < arcs; i++) {
		int row = i / b->n_cols, col = i % b->n_cols;
		int arc = flow_arc(f, 2 + row, 2 + nodes + col, b->total, unit_cost(b, i));

		first = i == 0 ? arc : first;
		top = unit_cost(b, i) > top ? unit_cost(b, i) : top;
	}
	/* More than any detour between bases can cost. */
	add_bases(b, f, (top + 1) * 2 * (nodes + b->n_cols));
	flow_send(f, b->total);
	for (int i = 0; i < arcs; i++) {
		int units = flow_on(f, first + 2 * i);

		total += units * unit_cost(b, i);
		if (ret_units)
			ret_units[i % pairs] = (i < pairs ? 0 : ret_units[i % pairs]) + units;
	}
	return total;
}

/*
 * At least as many VFs as GPUs: every VF serves one GPU, so a choice is a flow and the optimum
 * exact.
 *
 *   source ─▶ GPU ─(rank)▶ group, chosen ─(beyond the first)▶ group, used ─▶ sink
 *
 * A GPU that gets several VFs is two nodes, for its best one and for the others.
 *
 *   source ─▶ free GPU ───────────────────────────────────────▶ ┘ └─(lost)───▶ sink
 */

enum { FIRST_ROW = SINK + 1 };

struct net {
	const struct problem *p;
	struct flow *f;
	struct weights w;
	int64_t force; /* above all of them */
	int n_nodes;   /* of rows */
	int serve;     /* first arc row → group */
	int *use;      /* per group: first of three arcs chosen → used */
};

/* From n_rows on: the VFs of a row beside its best one. */
static int row_node(int row)
{
	return FIRST_ROW + row;
}

static int chosen_node(const struct net *n, int group)
{
	return row_node(n->n_nodes) + group;
}

static int used_node(const struct net *n, int group)
{
	return row_node(n->n_nodes) + n->p->n_groups + group;
}

static int spare_gpu_node(const struct net *n, int spare_gpu)
{
	return row_node(n->n_nodes) + 2 * n->p->n_groups + spare_gpu;
}

static void add_rows(struct net *n)
{
	const struct problem *p = n->p;

	for (int r = 0; r < n->n_nodes; r++) {
		for (int g = 0; g < p->n_groups; g++) {
			int rank = row_rank(p, r % p->n_rows, g);
			int arc =
				flow_arc(n->f, row_node(r), chosen_node(n, g), p->v,
					 r < p->n_rows ? best_cost(&n->w, rank) : n->w.rank * rank);

			n->serve = r + g == 0 ? arc : n->serve;
		}
	}
	for (int r = 0; r < p->n_rows; r++)
		flow_arc(n->f, SOURCE, row_node(r), 1, 0);
	for (int r = p->n_rows; r < n->n_nodes; r++) {
		flow_arc(n->f, SOURCE, row_node(r), p->v / p->n_rows - 1, 0);
		flow_arc(n->f, SOURCE, row_node(r), p->v % p->n_rows > 0, n->force);
	}
}

/* Must VFs first, then one VF for each place, then the rest. */
static void add_groups(struct net *n)
{
	const struct problem *p = n->p;

	n->use = arena_array(p->arena, (size_t)p->n_groups, sizeof(*n->use));
	for (int i = 0; i < p->n_groups; i++) {
		const struct group *g = &p->groups[i];
		int64_t free_choice = n->force + n->w.order * i;
		int from = chosen_node(n, i), to = used_node(n, i);

		n->use[i] = flow_arc(n->f, from, to, g->must, 0);
		flow_arc(n->f, from, to, g->firsts, free_choice);
		flow_arc(n->f, from, to, g->cap - g->must - g->firsts, free_choice + n->w.excess);
		flow_arc(n->f, to, SINK, g->avail, 0);
	}
}

void count_many(const struct problem *p, int *counts, struct value *ret)
{
	struct net n = { .p = p, .n_nodes = p->v > p->n_rows ? 2 * p->n_rows : p->n_rows };
	int groups = p->n_groups, nodes = row_node(n.n_nodes) + 2 * groups + p->n_keep;
	int arcs = n.n_nodes * (groups + 2) + 4 * groups + p->n_keep * (groups + 2);
	int64_t rank = 0, uneven = 0, excess = 0, order = 0;

	n.f = flow_new(p->arena, nodes, arcs);
	n.w = problem_weights(p);
	n.force = n.w.rank * ALIGN_RANKS * 2 * (p->n_rows + groups);
	add_rows(&n);
	add_groups(&n);
	for (int k = 0; k < p->n_keep; k++) {
		flow_arc(n.f, SOURCE, spare_gpu_node(&n, k), 1, 0);
		flow_arc(n.f, spare_gpu_node(&n, k), SINK, 1, n.w.loss);
		for (int g = 0; g < groups; g++)
			if (keeps(p, k, g))
				flow_arc(n.f, spare_gpu_node(&n, k), used_node(&n, g), 1, 0);
	}
	flow_send(n.f, p->v + p->n_keep);
	for (int i = 0; i < n.n_nodes * groups; i++) {
		int64_t units = flow_on(n.f, n.serve + 2 * i);
		int row = i / groups, r = row_rank(p, row % p->n_rows, i % groups);

		rank += units * r;
		uneven += row < p->n_rows ? units * best_worth(r, n.w.base) : 0;
	}
	for (int g = 0; g < groups; g++) {
		counts[g] = 0;
		for (int i = 0; i < 3; i++)
			counts[g] += flow_on(n.f, n.use[g] + 2 * i);
		excess += group_excess(&p->groups[g], counts[g]);
		order += (int64_t)counts[g] * g;
	}
	ret->key[RANK] = rank;
	ret->key[UNEVEN] = uneven;
	ret->key[EXCESS] = excess;
	ret->key[LOSSES] = count_losses(p, counts);
	ret->key[ORDER] = order;
}

/* Free GPUs that a choice leaves without a VF of their own at a nearest place. */
static int count_losses(const struct problem *p, const int *counts)
{
	_cleanup_arena_ struct arena *scratch = NULL;
	struct flow *f;
	int group = FIRST_ROW + p->n_keep;

	if (p->n_keep == 0)
		return 0;
	scratch = arena_new(1 << 13);
	f = flow_new(scratch, group + p->n_groups, p->n_keep * (p->n_groups + 1) + p->n_groups);
	for (int g = 0; g < p->n_groups; g++)
		flow_arc(f, group + g, SINK, p->groups[g].avail - counts[g], 0);
	for (int k = 0; k < p->n_keep; k++) {
		flow_arc(f, SOURCE, row_node(k), 1, 0);
		for (int g = 0; g < p->n_groups; g++)
			if (keeps(p, k, g))
				flow_arc(f, row_node(k), group + g, 1, 0);
	}
	return p->n_keep - flow_send(f, p->n_keep);
}

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

/* GPUs that are drawn make most places alike: those with the most VFs left go first, as the VFs
 * themselves have it within a group. */
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

/*
 * Counts for fewer VFs than GPUs, or for GPUs that are drawn; exact where distances nest.
 * Returns the packed worth, which none can beat; when GPUs are drawn, over all draws and in parts
 * of a pair.
 */
static int64_t tree_counts(const struct problem *p, const struct weights *w, int *counts)
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

/*
 * Fewer VFs than GPUs: each VF serves a fixed number of GPUs or one more, and which VFs to take is
 * a choice of facilities, not a flow. The tables over the tree propose a choice and bound all
 * others; on a machine whose distances nest the two meet. Elsewhere a local search improves the
 * proposal, and a depth-first search over the numbers of VFs finds the better one or proves that
 * there is none.
 */

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
