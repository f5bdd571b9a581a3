#include "pods/gpuquestion.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pods/pods-internal.h"

/* -1 also of a part of one. */
static int whole_gpu(const struct hw_inventory *inv, const char *resource, const char *id)
{
	return str_starts(id, "MIG-") ? -1 : hw_gpu_of_id(inv, resource, id);
}

static const struct held *find_resource(const struct pod_container *allocatable,
					const char *resource, const char *ours,
					const struct hw_inventory *inv)
{
	const struct held *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < allocatable->n_held; i++) {
		const struct held *h = &allocatable->held[i];
		size_t n = 0;

		if (str_eq(h->resource, ours) || (resource && !str_eq(h->resource, resource)))
			continue;
		for (size_t k = 0; k < h->ids.n; k++)
			n += whole_gpu(inv, h->resource, h->ids.v[k]) >= 0;
		if (n > most) {
			most = n;
			best = h;
		}
	}
	return best;
}

static struct ids held_ids(const struct pod_list *held, const char *resource, struct arena *a)
{
	struct ids ids = { NULL, 0 };
	size_t total = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < held->n; i++) {
			for (size_t k = 0; k < held->v[i].n_containers; k++) {
				const struct ids *some =
					kubemsg_held(&held->v[i].containers[k], resource);

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
		qsort(ids.v, ids.n, sizeof(*ids.v), list_by_string);
	return ids;
}

bool pods_gpu_question(const struct pod_container *allocatable, const struct pod_list *held,
		       const char *resource, const char *ours, size_t want, const int *nodes,
		       size_t n_nodes, const struct hw_inventory *inv, struct arena *a,
		       struct gpu_question *ret, const char **why)
{
	const struct held *all = find_resource(allocatable, resource, ours, inv);
	struct ids taken, ids = { NULL, 0 };

	if (!all) {
		*why = resource ? arena_printf(a, "%s offers no whole GPUs of this node", resource)
				: "no device plugin offers whole GPUs of this node";
		return false;
	}
	for (size_t i = 0; i < all->ids.n; i++) {
		if (strstr(all->ids.v[i], "::")) {
			*why = arena_printf(a,
					    "%s shares its GPUs: which one comes next is not known",
					    all->resource);
			return false;
		}
	}
	taken = held_ids(held, all->resource, a);
	ids.v = arena_array(a, all->ids.n, sizeof(*ids.v));
	for (size_t i = 0; i < all->ids.n; i++) {
		const char *id = all->ids.v[i];
		int gpu = whole_gpu(inv, all->resource, id);

		if (gpu < 0 || (n_nodes && !list_has_int(nodes, n_nodes, inv->pci[gpu].numa)))
			continue;
		if (!list_has_sorted(taken.v, taken.n, id))
			ids.v[ids.n++] = id;
	}
	if (ids.n < want || !want) {
		*why = arena_printf(a, "%zu of %s are free, %zu are wanted", ids.n, all->resource,
				    want);
		return false;
	}
	qsort(ids.v, ids.n, sizeof(*ids.v), list_by_string);
	*ret = (struct gpu_question) { arena_strdup(a, all->resource), ids };
	return true;
}
