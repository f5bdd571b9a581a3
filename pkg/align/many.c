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
#include "align/align-internal.h"
#include "align/flow-internal.h"
#include "base/arena.h"

enum { SOURCE, SINK, FIRST_ROW };

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
			int arc = align_flow_arc(n->f, row_node(r), chosen_node(n, g), p->v,
						 r < p->n_rows ? best_cost(&n->w, rank)
							       : n->w.rank * rank);

			n->serve = r + g == 0 ? arc : n->serve;
		}
	}
	for (int r = 0; r < p->n_rows; r++)
		align_flow_arc(n->f, SOURCE, row_node(r), 1, 0);
	for (int r = p->n_rows; r < n->n_nodes; r++) {
		align_flow_arc(n->f, SOURCE, row_node(r), p->v / p->n_rows - 1, 0);
		align_flow_arc(n->f, SOURCE, row_node(r), p->v % p->n_rows > 0, n->force);
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

		n->use[i] = align_flow_arc(n->f, from, to, g->must, 0);
		align_flow_arc(n->f, from, to, g->firsts, free_choice);
		align_flow_arc(n->f, from, to, g->cap - g->must - g->firsts,
			       free_choice + n->w.excess);
		align_flow_arc(n->f, to, SINK, g->avail, 0);
	}
}

void count_many(const struct problem *p, int *counts, struct value *ret)
{
	struct net n = { .p = p, .n_nodes = p->v > p->n_rows ? 2 * p->n_rows : p->n_rows };
	int groups = p->n_groups, nodes = row_node(n.n_nodes) + 2 * groups + p->n_keep;
	int arcs = n.n_nodes * (groups + 2) + 4 * groups + p->n_keep * (groups + 2);
	int64_t rank = 0, uneven = 0, excess = 0, order = 0;

	n.f = align_flow_new(p->arena, nodes, arcs);
	n.w = problem_weights(p);
	n.force = n.w.rank * ALIGN_RANKS * 2 * (p->n_rows + groups);
	add_rows(&n);
	add_groups(&n);
	for (int k = 0; k < p->n_keep; k++) {
		align_flow_arc(n.f, SOURCE, spare_gpu_node(&n, k), 1, 0);
		align_flow_arc(n.f, spare_gpu_node(&n, k), SINK, 1, n.w.loss);
		for (int g = 0; g < groups; g++)
			if (keeps(p, k, g))
				align_flow_arc(n.f, spare_gpu_node(&n, k), used_node(&n, g), 1, 0);
	}
	align_flow_send(n.f, p->v + p->n_keep);
	for (int i = 0; i < n.n_nodes * groups; i++) {
		int64_t units = align_flow_on(n.f, n.serve + 2 * i);
		int row = i / groups, r = row_rank(p, row % p->n_rows, i % groups);

		rank += units * r;
		uneven += row < p->n_rows ? units * best_worth(r, n.w.base) : 0;
	}
	for (int g = 0; g < groups; g++) {
		counts[g] = 0;
		for (int i = 0; i < 3; i++)
			counts[g] += align_flow_on(n.f, n.use[g] + 2 * i);
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
int count_losses(const struct problem *p, const int *counts)
{
	_cleanup_arena_ struct arena *scratch = NULL;
	struct flow *f;
	int group = FIRST_ROW + p->n_keep;

	if (p->n_keep == 0)
		return 0;
	scratch = arena_new(1 << 13);
	f = align_flow_new(scratch, group + p->n_groups,
			   p->n_keep * (p->n_groups + 1) + p->n_groups);
	for (int g = 0; g < p->n_groups; g++)
		align_flow_arc(f, group + g, SINK, p->groups[g].avail - counts[g], 0);
	for (int k = 0; k < p->n_keep; k++) {
		align_flow_arc(f, SOURCE, row_node(k), 1, 0);
		for (int g = 0; g < p->n_groups; g++)
			if (keeps(p, k, g))
				align_flow_arc(f, row_node(k), group + g, 1, 0);
	}
	return p->n_keep - align_flow_send(f, p->n_keep);
}
