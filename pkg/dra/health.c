#include "dra/health.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "dra/slices.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pool/slots.h"

/* False: which device it is of is not known any more. */
static bool device_of(const struct ledger_hold *h, const struct pool *pool,
		      const struct pool_dev *dev, struct slices_device *ret)
{
	int numa;

	*ret = (struct slices_device) { .pool = pool };
	if (pool->cfg->dra != POOL_DRA_EXACT)
		return pool_slot_parse(h->resource, h->slot, &numa, &ret->number);
	ret->place = dev ? pool_dev_place(dev) : NULL;
	return dev;
}

static int by_name_worst_first(const void *x, const void *y)
{
	const struct dra_health *a = x, *b = y;
	int r = strcmp(a->device, b->device);

	r = r ? r : b->health - a->health;
	return r ? r : strcmp(a->message ? a->message : "", b->message ? b->message : "");
}

static size_t keep_first_of_each(struct dra_health *v, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (!kept || strcmp(v[kept - 1].device, v[i].device) != 0)
			v[kept++] = v[i];
	}
	return kept;
}

struct dra_health_list dra_health_of(const struct node *node, const struct ledger *ledger,
				     const char *node_name, struct arena *a)
{
	struct dra_health *v = arena_array(a, ledger_holds(ledger), sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < ledger_holds(ledger); i++) {
		const struct ledger_hold *h = ledger_hold_at(ledger, i);
		const struct pool *pool = node_pool(node, h->resource);
		const struct pool_dev *dev = pool ? pool_find(pool, h->vf) : NULL;
		struct slices_device device;

		if (!*h->owner.claim || h->draining || !pool || !device_of(h, pool, dev, &device))
			continue;
		v[n++] = (struct dra_health) { .pool = node_name,
					       .device = slices_name(&device, a),
					       .message = dev ? dev->reason : "the VF is gone",
					       .health = dev && dev->healthy ? DRA_HEALTHY
									     : DRA_UNHEALTHY };
	}
	if (n)
		qsort(v, n, sizeof(*v), by_name_worst_first);
	return (struct dra_health_list) { v, keep_first_of_each(v, n) };
}
