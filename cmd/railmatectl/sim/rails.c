#include "sim/rails-internal.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "topo/rails.h"

struct rail_day sim_rail_day_new(const struct node *node, const struct pool *pool, size_t max,
				 struct arena *arena)
{
	return (struct rail_day) { .node = node,
				   .pool = pool,
				   .arena = arena,
				   .pods = arena_array(arena, max, sizeof(struct rail_pod)),
				   .max = max };
}

void sim_rail_day_note(struct rail_day *day, size_t gpus, const int *vfs, size_t n_vfs)
{
	int *rail;

	if (day->n == day->max)
		return;
	rail = arena_array(day->arena, n_vfs, sizeof(*rail));
	for (size_t i = 0; i < n_vfs; i++)
		rail[i] = topo_rails_of(day->node->rails, day->pool->devs[vfs[i]].pci).rail;
	qsort(rail, n_vfs, sizeof(*rail), list_by_int);
	day->pods[day->n++] = (struct rail_pod) { gpus, rail, n_vfs };
}

/* Both are ascending; an unknown rail is none of the other's. */
static size_t count_same(const struct rail_pod *a, const struct rail_pod *b)
{
	size_t n = 0;

	for (size_t i = 0, k = 0; i < a->n_vfs && k < b->n_vfs;) {
		n += a->rail[i] >= 0 && a->rail[i] == b->rail[k];
		if (a->rail[i] == b->rail[k]) {
			i++;
			k++;
		} else if (a->rail[i] < b->rail[k]) {
			i++;
		} else {
			k++;
		}
	}
	return n;
}

struct rail_score sim_rail_days_compare(const struct rail_day *a, const struct rail_day *b,
					struct arena *arena)
{
	bool *taken = arena_array(arena, b->n, sizeof(*taken));
	struct rail_score score = { 0 };

	for (size_t i = 0; i < a->n; i++) {
		const struct rail_pod *pod = &a->pods[i];
		size_t peer = 0; /* the first of its shape that is no other's */

		while (peer < b->n && (taken[peer] || b->pods[peer].gpus != pod->gpus ||
				       b->pods[peer].n_vfs != pod->n_vfs))
			peer++;
		if (peer == b->n)
			continue;
		taken[peer] = true;
		score.vfs += pod->n_vfs;
		score.same += count_same(pod, &b->pods[peer]);
	}
	return score;
}

bool sim_rails_are_known(const struct node *node, const struct pool *pool)
{
	for (size_t i = 0; i < pool->n_devs; i++) {
		if (topo_rails_of(node->rails, pool->devs[i].pci).rail >= 0)
			return true;
	}
	return false;
}

struct topo_rails *sim_rails_against_addresses(const struct node *node)
{
	const struct hw_inventory *inv = node->inv;
	struct topo_rail_name *names = xcalloc(inv->n_pci + 1, sizeof(*names));
	char(*nics)[BDF_STRLEN] = xcalloc(inv->n_pci + 1, sizeof(*nics));
	struct topo_rails *rails;
	size_t n = 0;

	for (size_t i = inv->n_pci; i-- > 0;) {
		if (!hw_is_own_nic(inv, (int)i))
			continue;
		names[n] = (struct topo_rail_name) { .nic = bdf_format(inv->pci[i].bdf, nics[n]),
						     .rail = (int)n };
		n++;
	}
	rails = topo_rails_new(node->topo, names, n);
	free(nics);
	free(names);
	return rails;
}
