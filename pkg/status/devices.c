/* The devices of pools, for metrics and the page: how many are in which state, and why not. */
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "status/status-internal.h"

const char *const status_fault_names[POOL_FAULT_MAX] = {
	[POOL_FAULT_GONE] = "gone",
	[POOL_FAULT_NO_DRIVER] = "no_driver",
	[POOL_FAULT_NO_RDMA] = "no_rdma",
	[POOL_FAULT_LINK_DOWN] = "link_down",
	[POOL_FAULT_LINK_DEGRADED] = "link_degraded",
	[POOL_FAULT_NOT_SELECTED] = "other",
};

struct holds_verdict status_verdict(const struct status_facts *f, const struct pool *pool,
				    const struct pool_dev *dev)
{
	const struct node *node = f->node;
	bool shared = pool->cfg->shares;
	size_t at = shared ? node->n_pools + (size_t)(pool - node->shared)
			   : (size_t)(pool - node->pools);

	return f->service->verdicts[at][dev - pool->devs];
}

const char *status_binding(const struct pool *pool)
{
	if (pool->cfg->shares)
		return "shared";
	return pool->cfg->binding == BINDING_LATE ? "late" : "early";
}

void status_count_states(const struct status_facts *f, const struct pool *pool,
			 uint64_t n[HOLDS_STATES])
{
	for (size_t i = 0; f->service && i < pool->n_devs; i++)
		n[status_verdict(f, pool, &pool->devs[i]).state]++;
}

const char *status_device_address(const struct status_facts *f, int pci, char buf[BDF_STRLEN])
{
	return pci < 0 ? "" : bdf_format(f->node->inv->pci[pci].bdf, buf);
}
