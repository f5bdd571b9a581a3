#include "pods/who.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pods/gpus.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "pool/slots.h"

static bool has(const struct ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->n; i++) {
		if (!strcmp(ids->v[i], id))
			return true;
	}
	return false;
}

static size_t count_shared(const struct ids *ids, const struct ids *slots)
{
	size_t n = 0;

	for (size_t i = 0; i < slots->n; i++)
		n += has(ids, slots->v[i]);
	return n;
}

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
			const struct pool *pool = slot_pool(node, held->ids.v[k]);

			if (pool && pool == node_pool(node, held->resource))
				ids.v[ids.n++] = held->ids.v[k];
		}
	}
	return ids;
}

static bool is_meant(const struct pod *p, const struct pod_ref *pod)
{
	return !pod || (str_eq(p->ns, pod->ns) && str_eq(p->name, pod->name));
}

/* Containers that have all of them. */
static size_t full_holders(const struct node *node, const struct pod *p, const struct ids *slots,
			   struct candidate *ret, struct arena *a)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_containers; i++) {
		struct ids ids = late_ids(node, &p->containers[i], a);

		if (slots->n && count_shared(&ids, slots) == slots->n)
			ret[n++] = (struct candidate) { p, &p->containers[i] };
	}
	return n;
}

static bool holds_some(const struct node *node, const struct pod *p, const struct ids *slots,
		       struct arena *a)
{
	for (size_t i = 0; i < p->n_containers; i++) {
		struct ids ids = late_ids(node, &p->containers[i], a);

		if (count_shared(&ids, slots))
			return true;
	}
	return false;
}

size_t who_holds(const struct node *node, const struct pod_list *pods, const struct ids *slots,
		 const struct pod_ref *pod, struct arena *a, struct candidate **ret)
{
	size_t room = 0, n = 0;

	for (size_t i = 0; i < pods->n; i++)
		room += pods->v[i].n_containers;
	*ret = arena_array(a, room + pods->n, sizeof(**ret));
	for (size_t i = 0; i < pods->n; i++) {
		if (is_meant(&pods->v[i], pod))
			n += full_holders(node, &pods->v[i], slots, *ret + n, a);
	}
	/* An init container left some of its slots to a later container: that one's pod is the pod.
	 */
	for (size_t i = 0; !n && i < pods->n; i++) {
		if (is_meant(&pods->v[i], pod) && holds_some(node, &pods->v[i], slots, a))
			(*ret)[n++] = (struct candidate) { &pods->v[i], NULL };
	}
	return n;
}

static int by_string(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static struct ids sorted(struct ids ids)
{
	size_t n = 0;

	if (ids.n)
		qsort(ids.v, ids.n, sizeof(*ids.v), by_string);
	for (size_t i = 0; i < ids.n; i++) {
		if (!n || strcmp(ids.v[n - 1], ids.v[i]) != 0)
			ids.v[n++] = ids.v[i];
	}
	ids.n = n;
	return ids;
}

static void add_gpus(const struct node *node, const struct pod_container *c, struct target *t,
		     struct arena *a)
{
	int *gpus, *all;
	size_t n = gpus_held(node, c, "", a, &gpus);

	if (!n)
		return;
	all = arena_array(a, t->n_gpus + n, sizeof(*all));
	if (t->n_gpus)
		memcpy(all, t->gpus, t->n_gpus * sizeof(*all));
	memcpy(all + t->n_gpus, gpus, n * sizeof(*all));
	t->gpus = all;
	t->n_gpus = identify_unique(all, t->n_gpus + n);
}

/* Its own GPUs; a container without any serves those of its pod. */
static void find_gpus(const struct node *node, const struct candidate *c, struct target *t,
		      struct arena *a)
{
	if (c->container)
		add_gpus(node, c->container, t, a);
	if (t->n_gpus)
		return;
	for (size_t i = 0; i < c->pod->n_containers; i++)
		add_gpus(node, &c->pod->containers[i], t, a);
}

static bool is_among(const int *v, size_t n, int item)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i] == item)
			return true;
	}
	return false;
}

static void find_busy(const struct node *node, const struct pod_list *pods, struct target *t,
		      struct arena *a)
{
	bool *busy = arena_array(a, node->inv->n_pci, sizeof(*busy));
	int *gpus;

	for (size_t i = 0; i < pods->n; i++) {
		for (size_t k = 0; k < pods->v[i].n_containers; k++) {
			size_t n = gpus_held(node, &pods->v[i].containers[k], "", a, &gpus);

			for (size_t g = 0; g < n; g++)
				busy[gpus[g]] = true;
		}
	}
	t->busy_gpus = arena_array(a, node->inv->n_gpu, sizeof(*t->busy_gpus));
	for (size_t i = 0; i < node->inv->n_gpu; i++) {
		int pci = node->inv->gpu[i].pci;

		if (busy[pci] && !is_among(t->gpus, t->n_gpus, pci))
			t->busy_gpus[t->n_busy_gpus++] = pci;
	}
}

struct target who_target(const struct node *node, const struct pod_list *pods,
			 const struct candidate *c, const struct ids *slots, struct arena *a)
{
	struct target t = { .owner = { .ns = c->pod->ns, .pod = c->pod->name } };
	struct ids ids = *slots;

	if (c->container) {
		t.owner.container = c->container->name;
		t.container = c->container;
		ids = late_ids(node, c->container, a);
	}
	t.slots = sorted((struct ids) { arena_copy(a, ids.v, ids.n * sizeof(*ids.v)), ids.n });
	find_gpus(node, c, &t, a);
	find_busy(node, pods, &t, a);
	return t;
}
