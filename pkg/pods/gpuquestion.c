#include "pods/gpuquestion.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pods/identify.h"

static size_t count_gpus(const struct held *h, const struct hw_inventory *inv)
{
	size_t n = 0;

	for (size_t i = 0; i < h->ids.n; i++)
		n += hw_gpu_of_id(inv, h->resource, h->ids.v[i]) >= 0;
	return n;
}

static const struct held *find_resource(const struct pod_container *allocatable,
					const char *resource, const char *ours,
					const struct hw_inventory *inv)
{
	const struct held *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < allocatable->n_held; i++) {
		const struct held *h = &allocatable->held[i];
		size_t n;

		if (str_eq(h->resource, ours) || (resource && !str_eq(h->resource, resource)))
			continue;
		n = count_gpus(h, inv);
		if (n > most) {
			most = n;
			best = h;
		}
	}
	return best;
}

static bool on_nodes(const struct hw_inventory *inv, int pci, const int *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (inv->pci[pci].numa == nodes[i])
			return true;
	}
	return n == 0;
}

static int by_string(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static struct ids held_ids(const struct pod_list *held, const char *resource, struct arena *a)
{
	struct ids ids = { NULL, 0 };
	size_t total = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < held->n; i++) {
			for (size_t k = 0; k < held->v[i].n_containers; k++) {
				const struct ids *some =
					identify_held(&held->v[i].containers[k], resource);

				for (size_t j = 0; some && j < some->n; j++) {
					if (pass == 0)
						total++;
					else
						ids.v[ids.n++] = some->v[j];
				}
			}
		}
		if (pass == 0)
			ids.v = arena_array(a, total, sizeof(*ids.v));
	}
	if (ids.n)
		qsort(ids.v, ids.n, sizeof(*ids.v), by_string);
	return ids;
}

/* A whole GPU of this node on these NUMA nodes. */
static bool is_wanted(const char *resource, const char *id, const int *nodes, size_t n_nodes,
		      const struct hw_inventory *inv)
{
	int gpu = hw_gpu_of_id(inv, resource, id);

	return gpu >= 0 && on_nodes(inv, gpu, nodes, n_nodes);
}

static bool is_shared(const struct held *h)
{
	for (size_t i = 0; i < h->ids.n; i++) {
		if (strstr(h->ids.v[i], "::"))
			return true;
	}
	return false;
}

static struct ids free_ids(const struct held *all, const struct pod_list *held, const int *nodes,
			   size_t n_nodes, const struct hw_inventory *inv, struct arena *a)
{
	struct ids taken = held_ids(held, all->resource, a);
	struct ids ids = { arena_array(a, all->ids.n, sizeof(*ids.v)), 0 };

	for (size_t i = 0; i < all->ids.n; i++) {
		const char *id = all->ids.v[i];

		if (!is_wanted(all->resource, id, nodes, n_nodes, inv))
			continue;
		if (!taken.n || !bsearch(&id, taken.v, taken.n, sizeof(*taken.v), by_string))
			ids.v[ids.n++] = id;
	}
	if (ids.n)
		qsort(ids.v, ids.n, sizeof(*ids.v), by_string);
	return ids;
}

bool gpu_question_ask(const struct pod_container *allocatable, const struct pod_list *held,
		      const char *resource, const char *ours, size_t want, const int *nodes,
		      size_t n_nodes, const struct hw_inventory *inv, struct arena *a,
		      struct gpu_question *ret, const char **why)
{
	const struct held *all = find_resource(allocatable, resource, ours, inv);
	struct ids ids;

	if (!all) {
		*why = resource ? arena_printf(a, "%s offers no whole GPUs of this node", resource)
				: "no device plugin offers whole GPUs of this node";
		return false;
	}
	if (is_shared(all)) {
		*why = arena_printf(a, "%s shares its GPUs: which one comes next is not known",
				    all->resource);
		return false;
	}
	ids = free_ids(all, held, nodes, n_nodes, inv, a);
	if (ids.n < want || !want) {
		*why = arena_printf(a, "%zu of %s are free, %zu are wanted", ids.n, all->resource,
				    want);
		return false;
	}
	*ret = (struct gpu_question) { arena_strdup(a, all->resource), ids };
	return true;
}

size_t gpu_question_gpus(const struct gpu_question *q, const struct ids *ids,
			 const struct hw_inventory *inv, struct arena *a, int **ret)
{
	int *v = arena_array(a, ids->n, sizeof(*v));

	for (size_t i = 0; i < ids->n; i++) {
		v[i] = hw_gpu_of_id(inv, q->resource, ids->v[i]);
		if (v[i] < 0)
			return 0;
	}
	*ret = v;
	return identify_unique(v, ids->n) == ids->n ? ids->n : 0;
}
