#include "align/flow-internal.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"

#define SOURCE 0
#define SINK   1
#define FAR    INT64_MAX

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

struct flow *align_flow_new(struct arena *arena, int n_nodes, int max_arcs)
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

int align_flow_arc(struct flow *f, int from, int to, int cap, int64_t cost)
{
	int arc = f->n_arcs;

	assert(arc + 2 <= f->max_arcs && cost >= 0 && cap >= 0);
	half_arc(f, from, to, cap, cost);
	half_arc(f, to, from, 0, -cost);
	return arc;
}

int align_flow_on(const struct flow *f, int arc)
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

int align_flow_send(struct flow *f, int amount)
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
