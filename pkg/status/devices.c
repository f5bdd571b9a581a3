/* What the devices of pools are now. */
#include "config/config.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "status/status-internal.h"

const char *const status_device_state_names[DEVICE_STATE_MAX] = {
	[DEVICE_FREE] = "free",		  [DEVICE_HELD] = "held",
	[DEVICE_DRAINING] = "draining",	  [DEVICE_IN_USE] = "in_use",
	[DEVICE_UNHEALTHY] = "unhealthy",
};

const char *const status_fault_names[POOL_FAULT_MAX] = {
	[POOL_FAULT_GONE] = "gone",
	[POOL_FAULT_NO_DRIVER] = "no_driver",
	[POOL_FAULT_NO_RDMA] = "no_rdma",
	[POOL_FAULT_LINK_DOWN] = "link_down",
	[POOL_FAULT_LINK_DEGRADED] = "link_degraded",
	[POOL_FAULT_NOT_SELECTED] = "other",
};

enum device_state status_device_state(const struct status_facts *f, const struct pool_dev *dev)
{
	const struct ledger_hold *hold = f->ledger ? ledger_find(f->ledger, dev->id) : NULL;

	if (hold)
		return hold->draining ? DEVICE_DRAINING : DEVICE_HELD;
	if (!dev->healthy)
		return DEVICE_UNHEALTHY;
	return dev->rdma_away ? DEVICE_IN_USE : DEVICE_FREE;
}

const char *status_device_address(const struct status_facts *f, int pci, char buf[BDF_STRLEN])
{
	return pci < 0 ? "" : bdf_format(f->node->inv->pci[pci].bdf, buf);
}
