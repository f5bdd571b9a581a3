/* Where NCCL takes a VF to be. Facts: NCCL, src/transport/net_ib/init.cc, ncclIbGetPciPath(). */
#include "hw/inventory.h"
#include "topo/topo.h"

static bool same_device(struct bdf a, struct bdf b)
{
	return a.domain == b.domain && a.bus == b.bus && a.dev == b.dev;
}

struct bdf topo_nccl_address(struct bdf bdf, bool merge)
{
	bdf.fn = 0;
	if (merge)
		bdf.dev = 0;
	return bdf;
}

bool topo_vf_merges(const struct hw_inventory *inv, int vf)
{
	const struct hw_pci *f = &inv->pci[vf], *place = f->physfn >= 0 ? &inv->pci[f->physfn] : f;
	struct bdf merged = topo_nccl_address(f->bdf, true);

	if (same_device(merged, f->bdf))
		return true; /* it makes no difference */
	return same_device(merged, place->bdf) && hw_find_pci(inv, merged) >= 0;
}
