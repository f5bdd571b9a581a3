#include "sim/vendor.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "topo/topo.h"

/* --- which GPUs --- */

static const struct {
	const char *resource, *vendor;
} plugins[] = {
	{ "nvidia.com/gpu", "NVIDIA" },
	{ "amd.com/gpu", "AMD" },
	{ "gpu.intel.com/i915", "Intel" },
};

static bool is_offered(const struct hw_gpu *gpu, const char *resource)
{
	for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
		if (str_eq(plugins[i].resource, resource))
			return str_eq(plugins[i].vendor, gpu->vendor);
	}
	return true;
}

const char *sim_vendor_resource(const struct hw_inventory *inv)
{
	for (size_t i = 0; inv->n_gpu && i < ARRAY_LEN(plugins); i++) {
		if (str_eq(plugins[i].vendor, inv->gpu[0].vendor))
			return plugins[i].resource;
	}
	return "gpu";
}

const struct vendor *sim_vendor_new(const struct hw_inventory *inv, const struct topo *topo,
				    const char *resource, struct arena *arena)
{
	struct vendor *g = arena_alloc(arena, sizeof(*g));
	int64_t *nodes = arena_array(arena, inv->n_gpu, sizeof(*nodes));
	int *pci = arena_array(arena, inv->n_gpu, sizeof(*pci));
	uint8_t *rank;
	size_t n;

	g->list.v = arena_array(arena, inv->n_gpu, sizeof(*g->list.v));
	for (size_t i = 0; i < inv->n_gpu; i++) {
		const struct hw_gpu *gpu = &inv->gpu[i];
		char address[BDF_STRLEN];
		const char *id;

		if (!is_offered(gpu, resource))
			continue;
		id = gpu->uuid ? gpu->uuid : bdf_format(inv->pci[gpu->pci].bdf, address);
		pci[g->list.n] = gpu->pci;
		nodes[i] = inv->pci[gpu->pci].numa;
		g->list.v[g->list.n++] = (struct device) { .id = arena_strdup(arena, id),
							   .healthy = true,
							   .nodes = &nodes[i],
							   .n_nodes = nodes[i] >= 0 };
	}
	n = g->list.n;
	rank = arena_array(arena, n, n);
	for (size_t i = 0; i < n * n; i++)
		rank[i] = (uint8_t)topo_rank(topo_between(topo, pci[i / n], pci[i % n]).class);
	g->pci = pci;
	g->rank = rank;
	return g;
}

/* --- GetPreferredAllocation: close to each other, then lowest address --- */

struct choice {
	const bool *candidate;
	bool *chosen; /* by position in the list */
	size_t n;
};

static int cost_of_adding(const struct vendor *g, const bool *chosen, size_t gpu)
{
	int cost = 0;

	for (size_t i = 0; i < g->list.n; i++)
		cost += chosen[i] ? g->rank[i * g->list.n + gpu] : 0;
	return cost;
}

/* Adds the closest candidate until there are `size`; returns the total distance. */
static int grow(const struct vendor *g, struct choice *c, size_t size)
{
	int total = 0;

	while (c->n < size) {
		size_t best = SIZE_MAX;
		int best_cost = 0;

		for (size_t i = 0; i < g->list.n; i++) {
			int cost = c->candidate[i] && !c->chosen[i]
					   ? cost_of_adding(g, c->chosen, i)
					   : -1;

			if (cost < 0 || (best != SIZE_MAX && cost >= best_cost))
				continue;
			best = i;
			best_cost = cost;
		}
		if (best == SIZE_MAX)
			break;
		c->chosen[best] = true;
		c->n++;
		total += best_cost;
	}
	return total;
}

static size_t mark(const struct vendor *g, const struct ids *ids, bool *marks)
{
	size_t n = 0;

	for (size_t i = 0; i < g->list.n; i++) {
		for (size_t k = 0; k < ids->n && !marks[i]; k++)
			marks[i] = !strcmp(g->list.v[i].id, ids->v[k]);
		n += marks[i];
	}
	return n;
}

/* Every candidate as the seed, the tightest group wins. */
static struct choice choose(const struct vendor *g, const struct preferred_container *req,
			    struct arena *a)
{
	size_t n = g->list.n, size = req->size > 0 ? (size_t)req->size : 0;
	struct choice best = { .chosen = arena_array(a, n, sizeof(bool)) };
	bool *candidate = arena_array(a, n, sizeof(bool));
	int best_cost = -1;

	mark(g, &req->available, candidate);
	for (size_t seed = 0; seed < n; seed++) {
		struct choice c = { .candidate = candidate,
				    .chosen = arena_array(a, n, sizeof(bool)) };
		int cost = 0;

		if (!candidate[seed])
			continue;
		c.n = mark(g, &req->must, c.chosen);
		if (c.n < size && !c.chosen[seed]) {
			cost = cost_of_adding(g, c.chosen, seed);
			c.chosen[seed] = true;
			c.n++;
		}
		cost += grow(g, &c, size);
		if (best_cost >= 0 && cost >= best_cost)
			continue;
		best = c;
		best_cost = cost;
	}
	return best;
}

struct ids sim_vendor_prefer(const struct vendor *g, const struct preferred_container *req,
			     struct arena *arena)
{
	struct choice c = choose(g, req, arena);
	struct ids ids = { .v = arena_array(arena, g->list.n, sizeof(char *)) };

	for (size_t i = 0; i < g->list.n; i++) {
		if (c.chosen[i])
			ids.v[ids.n++] = g->list.v[i].id;
	}
	return ids;
}
