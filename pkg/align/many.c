/*
 * At least as many VFs as GPUs: every VF serves one GPU, so a choice is a flow and the optimum
 * exact.
 *
 *   source ─▶ GPU ─(rank)▶ group, chosen ─(beyond the first)▶ group, used ─▶ sink
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
	int serve;     /* first arc row → group */
	int *use;      /* per group: first of three arcs chosen → used */
};

static int row_node(int row)
{
	return FIRST_ROW + row;
}

static int chosen_node(const struct net *n, int group)
{
	return FIRST_ROW + n->p->n_rows + group;
}

static int used_node(const struct net *n, int group)
{
	return FIRST_ROW + n->p->n_rows + n->p->n_groups + group;
}

static int spare_gpu_node(const struct net *n, int spare_gpu)
{
	return FIRST_ROW + n->p->n_rows + 2 * n->p->n_groups + spare_gpu;
}

static void add_rows(struct net *n)
{
	const struct problem *p = n->p;
	int base = p->v >= p->n_rows ? p->v / p->n_rows : 1;
	int extra = p->v >= p->n_rows && p->v % p->n_rows;

	for (int r = 0; r < p->n_rows; r++) {
		for (int g = 0; g < p->n_groups; g++) {
			int arc = align_flow_arc(n->f, row_node(r), chosen_node(n, g), p->v,
						 n->w.rank * row_rank(p, r, g));

			n->serve = r + g == 0 ? arc : n->serve;
		}
	}
	for (int r = 0; r < p->n_rows; r++) {
		align_flow_arc(n->f, SOURCE, row_node(r), base, 0);
		align_flow_arc(n->f, SOURCE, row_node(r), extra, n->force);
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
	struct net n = { .p = p };
	int groups = p->n_groups, nodes = FIRST_ROW + p->n_rows + 2 * groups + p->n_keep;
	int arcs = p->n_rows * (groups + 2) + 4 * groups + p->n_keep * (groups + 2);

	int64_t rank = 0, excess = 0, order = 0;

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
	for (int i = 0; i < p->n_rows * groups; i++)
		rank += (int64_t)align_flow_on(n.f, n.serve + 2 * i) *
			row_rank(p, i / groups, i % groups);
	for (int g = 0; g < groups; g++) {
		counts[g] = 0;
		for (int i = 0; i < 3; i++)
			counts[g] += align_flow_on(n.f, n.use[g] + 2 * i);
		excess += group_excess(&p->groups[g], counts[g]);
		order += (int64_t)counts[g] * g;
	}
	ret->key[ZONE_KEYS] = rank;
	ret->key[ZONE_KEYS + 1] = excess;
	ret->key[ZONE_KEYS + 2] = count_losses(p, counts);
	ret->key[ZONE_KEYS + 3] = order;
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
