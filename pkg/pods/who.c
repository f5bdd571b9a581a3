#include "pods/who.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pods/pods-internal.h"
#include "pool/node.h"
#include "pool/slots.h"

/* All ids of late pools that a container has, as they come. */
static struct ids late_ids(const struct node *node, const struct pod_container *c, struct arena *a)
{
	struct ids ids = { NULL, 0 };
	size_t room = 0;

	for (size_t i = 0; i < c->n_held; i++)
		room += c->held[i].ids.n;
	ids.v = arena_array(a, room, sizeof(*ids.v));
	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *held = &c->held[i];

		for (size_t k = 0; k < held->ids.n; k++) {
			const struct pool *pool = pool_of_slot(node, held->ids.v[k]);

			if (pool && pool == node_pool(node, held->resource))
				ids.v[ids.n++] = held->ids.v[k];
		}
	}
	return ids;
}

size_t pods_with_slots(const struct node *node, const struct pod_list *pods,
		       const struct ids *slots, const struct pod_ref *pod, struct arena *a,
		       struct candidate **ret)
{
	struct candidate *partly = arena_array(a, pods->n, sizeof(*partly));
	size_t room = 0, n = 0, n_partly = 0;

	for (size_t i = 0; i < pods->n; i++)
		room += pods->v[i].n_containers;
	*ret = arena_array(a, room, sizeof(**ret));
	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *p = &pods->v[i];
		size_t most = 0;

		if (pod && (!str_eq(p->ns, pod->ns) || !str_eq(p->name, pod->name)))
			continue;
		for (size_t k = 0; k < p->n_containers; k++) {
			struct ids ids = late_ids(node, &p->containers[k], a);
			size_t shared = 0;

			for (size_t s = 0; s < slots->n; s++)
				shared += list_has(ids.v, ids.n, slots->v[s]);
			if (shared && shared == slots->n)
				(*ret)[n++] = (struct candidate) { p, &p->containers[k] };
			most = shared > most ? shared : most;
		}
		if (most)
			partly[n_partly++] = (struct candidate) { p, NULL };
	}
	/* An init container left some of its slots to a later container: that one's pod is the pod.
	 */
	if (!n) {
		*ret = partly;
		n = n_partly;
	}
	return n;
}

static void add_gpus(const struct node *node, const struct pod_container *c, struct target *t,
		     struct arena *a)
{
	struct pods_gpus gpus = pods_gpus(node, c, "", a);
	int *all = arena_array(a, t->gpus.n + gpus.n, sizeof(*all));

	t->gpus.n_unknown += gpus.n_unknown;
	if (!gpus.n)
		return;
	if (t->gpus.n)
		memcpy(all, t->gpus.v, t->gpus.n * sizeof(*all));
	memcpy(all + t->gpus.n, gpus.v, gpus.n * sizeof(*all));
	t->gpus.v = all;
	t->gpus.n = list_unique_int(all, t->gpus.n + gpus.n);
}

static void find_busy(const struct node *node, const struct pod_list *pods, struct target *t,
		      struct arena *a)
{
	bool *busy = arena_array(a, node->inv->n_pci, sizeof(*busy));
	int *others = arena_array(a, node->inv->n_gpu, sizeof(*others));

	for (size_t i = 0; i < pods->n; i++) {
		for (size_t k = 0; k < pods->v[i].n_containers; k++) {
			struct pods_gpus gpus = pods_gpus(node, &pods->v[i].containers[k], "", a);

			for (size_t g = 0; g < gpus.n; g++)
				busy[gpus.v[g]] = true;
		}
	}
	t->busy_gpus.v = others;
	for (size_t i = 0; i < node->inv->n_gpu; i++) {
		int pci = node->inv->gpu[i].pci;

		if (busy[pci] && !list_has_int(t->gpus.v, t->gpus.n, pci))
			others[t->busy_gpus.n++] = pci;
	}
}

struct target pods_target(const struct node *node, const struct pod_list *pods,
			  const struct candidate *c, const struct ids *slots, struct arena *a)
{
	struct target t = { .owner = { .ns = c->pod->ns, .pod = c->pod->name } };
	struct ids ids = *slots;
	bool own;

	if (c->container) {
		t.owner.container = c->container->name;
		t.container = c->container;
		ids = late_ids(node, c->container, a);
	}
	t.slots.v = arena_copy(a, ids.v, ids.n * sizeof(*ids.v));
	if (ids.n)
		qsort(t.slots.v, ids.n, sizeof(*t.slots.v), list_by_string);
	for (size_t i = 0; i < ids.n; i++) {
		if (!i || strcmp(t.slots.v[t.slots.n - 1], t.slots.v[i]) != 0)
			t.slots.v[t.slots.n++] = t.slots.v[i];
	}
	/* Its own GPUs; a container without any serves those of its pod. */
	if (c->container)
		add_gpus(node, c->container, &t, a);
	own = t.gpus.n > 0;
	for (size_t i = 0; !own && i < c->pod->n_containers; i++)
		add_gpus(node, &c->pod->containers[i], &t, a);
	find_busy(node, pods, &t, a);
	return t;
}
