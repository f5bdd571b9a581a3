/* Holds that come to light: the ledger was lost, and the kubelet, or a CDI spec, knows. */
#include "kubelet/keeper-internal.h"

#include "hw/bdf.h"
#include "hw/inventory.h"
#include "kubelet/keeper.h"
#include "pool/node.h"

void keeper_listen_unlisted(struct keeper *k, void (*unlisted)(void *ctx, const struct node_seed *seed),
			    void *ctx)
{
	k->unlisted = unlisted;
	k->unlisted_ctx = ctx;
}

static bool is_listed(const struct node *node, const char *vf)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		if (pool_find(&node->pools[i], vf))
			return true;
	}
	return false;
}

/* As it is on the bus; NULL: no VF is. */
static const struct hw_pci *find_vf(const struct node *node, const char *vf)
{
	struct bdf bdf;
	int pci = bdf_parse(vf, &bdf) < 0 ? -1 : hw_find_pci(node->inv, bdf);

	return pci >= 0 && hw_is_nic_vf(node->inv, pci) ? &node->inv->pci[pci] : NULL;
}

/* Its driver is bound, and it was in the pool once, for a container has it. */
static bool tell_unlisted(struct keeper *k, const struct node *node, struct ledger_hold *hold)
{
	const struct hw_pci *fn = find_vf(node, hold->vf);

	if (!fn || !fn->driver || !k->unlisted)
		return false;
	hold->driver = fn->driver;
	k->unlisted(k->unlisted_ctx,
		    &(struct node_seed) { .resource = hold->resource, .vf = hold->vf, .driver = fn->driver });
	return true;
}

bool keeper_adopt(struct keeper *k, const struct node *node, const struct ledger_hold *hold)
{
	const struct pool *pool = node_pool(node, hold->resource);
	const struct pool_dev *dev = pool ? pool_find(pool, hold->vf) : NULL;
	struct ledger_hold full = *hold;

	if (dev && dev->rdma >= 0)
		full.rdma = node->inv->rdma[dev->rdma].name;
	if (!pool || (!dev && (is_listed(node, hold->vf) || !tell_unlisted(k, node, &full))))
		return false;
	ledger_put(k->ledger, &full);
	return true;
}
