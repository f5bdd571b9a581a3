/* A VF as it is on the machine now, where the node may be older. */
#include "latebind/latebind-internal.h"

#include "base/arena.h"
#include "base/str.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "sysroot/sysroot.h"

static int is_any(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return 1;
}

bool latebind_is_away_now(const struct latebind *b, const struct pool_dev *dev, struct arena *a)
{
	struct function_now now;
	struct bdf bdf;

	if (dev->pci < 0 || dev->rdma >= 0 || !dev->had_rdma || bdf_parse(dev->id, &bdf) < 0 ||
	    devstate_function(b->env.root, bdf, &now, NULL) < 0 ||
	    !str_eq(now.driver, b->node->inv->pci[dev->pci].driver))
		return false;
	return now.rdma[0] ||
	       sysroot_each(b->env.root, arena_printf(a, "sys/bus/pci/devices/%s/net", dev->id),
			    is_any, NULL) <= 0;
}
