/* The holders of VFs, and the GPUs that each VF serves. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "status/status-internal.h"
#include "topo/topo.h"

static enum topo_class class_named(const char *name)
{
	enum topo_class c = TOPO_SELF;

	while (c < TOPO_SYS && strcmp(topo_class_name(c), name))
		c++;
	return c;
}

static void add_gpu(struct holder *h, const char *gpu, const char *class, struct arena *a)
{
	h->gpus = *h->gpus ? arena_printf(a, "%s,%s", h->gpus, gpu) : arena_strdup(a, gpu);
	if (!*h->class || class_named(class) > class_named(h->class))
		h->class = topo_class_name(class_named(class));
}

/* The container got other GPUs than the choice had: NCCL picks, most likely the nearest GPU. */
static void add_nearest(const struct status_facts *f, struct holder *h,
			const struct ledger_decision *d, struct arena *a)
{
	enum topo_class best = TOPO_CLASS_MAX;
	const char *nearest = NULL;

	for (size_t i = 0; h->dev && h->dev->pci >= 0 && i < d->n_real_gpus; i++) {
		struct bdf bdf;
		int gpu =
			bdf_parse(d->real_gpus[i], &bdf) < 0 ? -1 : hw_find_pci(f->node->inv, bdf);
		enum topo_class class =
			gpu < 0 ? TOPO_SYS : topo_between(f->node->topo, h->dev->pci, gpu).class;

		if (nearest && class >= best)
			continue;
		nearest = d->real_gpus[i];
		best = class;
	}
	if (nearest)
		add_gpu(h, nearest, topo_class_name(best), a);
}

static void add_gpus(const struct status_facts *f, struct holder *h,
		     const struct ledger_decision *d, struct arena *a)
{
	bool same = d->n_real_gpus == d->n_gpus; /* the GPUs are those of the choice */

	for (size_t i = 0; same && i < d->n_gpus; i++) {
		same = false;
		for (size_t k = 0; !same && k < d->n_real_gpus; k++)
			same = str_eq(d->real_gpus[k], d->gpus[i]);
	}
	if (d->checked && !same) {
		add_nearest(f, h, d, a);
		return;
	}
	for (size_t i = 0; (d->checked || d->known == LEDGER_GPUS_KNOWN) && i < d->n_pairs; i++) {
		if (str_eq(d->pairs[i].vf, h->hold->vf))
			add_gpu(h, d->pairs[i].gpu, d->pairs[i].path, a);
	}
}

static int by_decision(const void *x, const void *y)
{
	const struct holder *const *a = x, *const *b = y;
	uint64_t m = (*a)->hold->decision, n = (*b)->hold->decision;

	return (m > n) - (m < n);
}

size_t status_holders(const struct status_facts *f, struct arena *a, struct holder **ret)
{
	size_t n = f->ledger ? ledger_holds(f->ledger) : 0;
	struct holder *v = arena_array(a, n, sizeof(*v));
	struct holder **sorted = arena_array(a, n, sizeof(struct holder *));

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(f->ledger, i);
		const struct pool *pool = f->node ? node_pool(f->node, hold->resource) : NULL;

		v[i] = (struct holder) { .hold = hold,
					 .dev = pool ? pool_find(pool, hold->vf) : NULL,
					 .gpus = "",
					 .class = "" };
		v[i].state = holds_state_names[v[i].dev && f->service
						       ? status_verdict(f, pool, v[i].dev).state
						       : HOLDS_IS_LEAVING];
		sorted[i] = &v[i];
	}
	if (n)
		qsort(sorted, n, sizeof(struct holder *), by_decision);

	/* A decision is a text that has to be parsed: once for all of its VFs. */
	for (size_t i = 0, end; i < n; i = end) {
		_cleanup_arena_ struct arena *scratch = arena_new(4096);
		uint64_t number = sorted[i]->hold->decision;
		const struct ledger_decision *d = ledger_decision_read(f->ledger, number, scratch);

		for (end = i; end < n && sorted[end]->hold->decision == number; end++) {
			if (d)
				add_gpus(f, sorted[end], d, a);
		}
	}
	*ret = v;
	return n;
}
