/*
 * Instance types whose PCIe switches are published by their vendor, since the guest does not see
 * them. Sources: Azure/azhpc-images, topology/ndv5-topo.xml and ndv4-topo.xml; aws/aws-ofi-nccl,
 * topology/p4d-24xl-topo.xml. The pairs of the ND MI300X v5 are inferred from its domain numbers
 * (no switches in ROCm/rccl, tools/topo_expl/models/topo_8p_940vm.xml).
 */
#include "base/mem.h"
#include "hw/inventory.h"
#include "topo/topo.h"

#define ANY 0

/* A machine is of this type if its GPUs of the vendor, and its NICs of vendor, class and device,
 * are exactly those of the groups. */
struct shape {
	struct topo_hints hints;
	uint16_t gpu_vendor, nic_vendor, nic_device; /* device ANY: any */
	uint16_t nic_class;			     /* upper 16 bits */
};

/* Azure's functions have a domain each. */
#define DOM(n) .domain = (n)

static const struct bdf h100_gpus[] = {
	{ DOM(0x0001) }, { DOM(0x0002) }, { DOM(0x0003) }, { DOM(0x0008) },
	{ DOM(0x0009) }, { DOM(0x000a) }, { DOM(0x000b) }, { DOM(0x000c) },
};
static const struct bdf h100_nics[] = {
	{ DOM(0x0101) }, { DOM(0x0102) }, { DOM(0x0103) }, { DOM(0x0104) },
	{ DOM(0x0105) }, { DOM(0x0106) }, { DOM(0x0107) }, { DOM(0x0108) },
};
static const struct topo_group nd_h100_v5[] = {
	{ &h100_gpus[0], 1, &h100_nics[0], 1, 0 }, { &h100_gpus[1], 1, &h100_nics[1], 1, 0 },
	{ &h100_gpus[2], 1, &h100_nics[2], 1, 0 }, { &h100_gpus[3], 1, &h100_nics[3], 1, 0 },
	{ &h100_gpus[4], 1, &h100_nics[4], 1, 1 }, { &h100_gpus[5], 1, &h100_nics[5], 1, 1 },
	{ &h100_gpus[6], 1, &h100_nics[6], 1, 1 }, { &h100_gpus[7], 1, &h100_nics[7], 1, 1 },
};

static const struct bdf a100_gpus[] = {
	{ DOM(0x0003) }, { DOM(0x0004) }, { DOM(0x0001) }, { DOM(0x0002) },
	{ DOM(0x000d) }, { DOM(0x000e) }, { DOM(0x000b) }, { DOM(0x000c) },
};
static const struct bdf a100_nics[] = {
	{ DOM(0x0103) }, { DOM(0x0104) }, { DOM(0x0101) }, { DOM(0x0102) },
	{ DOM(0x0107) }, { DOM(0x0108) }, { DOM(0x0105) }, { DOM(0x0106) },
};
static const struct topo_group nd_a100_v4[] = {
	{ &a100_gpus[0], 2, &a100_nics[0], 2, 0 },
	{ &a100_gpus[2], 2, &a100_nics[2], 2, 1 },
	{ &a100_gpus[4], 2, &a100_nics[4], 2, 2 },
	{ &a100_gpus[6], 2, &a100_nics[6], 2, 3 },
};

static const struct bdf mi300x_gpus[] = {
	{ DOM(0x0011) }, { DOM(0x0021) }, { DOM(0x0031) }, { DOM(0x0041) },
	{ DOM(0x0051) }, { DOM(0x0061) }, { DOM(0x0071) }, { DOM(0x0081) },
};
static const struct bdf mi300x_nics[] = {
	{ DOM(0x0010) }, { DOM(0x0020) }, { DOM(0x0030) }, { DOM(0x0040) },
	{ DOM(0x0050) }, { DOM(0x0060) }, { DOM(0x0070) }, { DOM(0x0080) },
};
static const struct topo_group nd_mi300x_v5[] = {
	{ &mi300x_gpus[0], 1, &mi300x_nics[0], 1, 0 },
	{ &mi300x_gpus[1], 1, &mi300x_nics[1], 1, 0 },
	{ &mi300x_gpus[2], 1, &mi300x_nics[2], 1, 0 },
	{ &mi300x_gpus[3], 1, &mi300x_nics[3], 1, 0 },
	{ &mi300x_gpus[4], 1, &mi300x_nics[4], 1, 1 },
	{ &mi300x_gpus[5], 1, &mi300x_nics[5], 1, 1 },
	{ &mi300x_gpus[6], 1, &mi300x_nics[6], 1, 1 },
	{ &mi300x_gpus[7], 1, &mi300x_nics[7], 1, 1 },
};

static const struct bdf p4d_gpus[] = {
	{ 0, 0x10, 0x1c, 0 }, { 0, 0x10, 0x1d, 0 }, { 0, 0x20, 0x1c, 0 }, { 0, 0x20, 0x1d, 0 },
	{ 0, 0x90, 0x1c, 0 }, { 0, 0x90, 0x1d, 0 }, { 0, 0xa0, 0x1c, 0 }, { 0, 0xa0, 0x1d, 0 },
};
static const struct bdf p4d_nics[] = {
	{ 0, 0x10, 0x1b, 0 },
	{ 0, 0x20, 0x1b, 0 },
	{ 0, 0x90, 0x1b, 0 },
	{ 0, 0xa0, 0x1b, 0 },
};
static const struct topo_group p4d[] = {
	{ &p4d_gpus[0], 2, &p4d_nics[0], 1, 0 },
	{ &p4d_gpus[2], 2, &p4d_nics[1], 1, 0 },
	{ &p4d_gpus[4], 2, &p4d_nics[2], 1, 1 },
	{ &p4d_gpus[6], 2, &p4d_nics[3], 1, 1 },
};

static const struct shape shapes[] = {
	{ { "Azure ND H100 v5", nd_h100_v5, ARRAY_LEN(nd_h100_v5), 32000, 16 },
	  0x10de,
	  0x15b3,
	  ANY,
	  0x0207 },
	{ { "Azure ND A100 v4", nd_a100_v4, ARRAY_LEN(nd_a100_v4), 16000, 16 },
	  0x10de,
	  0x15b3,
	  ANY,
	  0x0207 },
	{ { "Azure ND MI300X v5 (pairs inferred from addresses)", nd_mi300x_v5,
	    ARRAY_LEN(nd_mi300x_v5), 32000, 16 },
	  0x1002,
	  0x15b3,
	  ANY,
	  0x0207 },
	{ { "AWS p4d.24xlarge", p4d, ARRAY_LEN(p4d), 8000, 16 }, 0x10de, 0x1d0f, 0xefa0, 0x0200 },
};

static bool is_listed(const struct shape *s, struct bdf bdf, bool gpu)
{
	for (size_t i = 0; i < s->hints.n_groups; i++) {
		const struct topo_group *g = &s->hints.groups[i];
		const struct bdf *list = gpu ? g->gpus : g->nics;

		for (size_t k = 0; k < (gpu ? g->n_gpus : g->n_nics); k++) {
			if (!bdf_cmp(list[k], bdf))
				return true;
		}
	}
	return false;
}

static size_t count_listed(const struct shape *s, bool gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < s->hints.n_groups; i++)
		n += gpu ? s->hints.groups[i].n_gpus : s->hints.groups[i].n_nics;
	return n;
}

static bool is_of_shape(const struct shape *s, const struct hw_inventory *inv)
{
	size_t n_nics = 0;

	for (size_t i = 0; i < inv->n_gpu; i++) {
		const struct hw_pci *f = &inv->pci[inv->gpu[i].pci];

		if (f->vendor != s->gpu_vendor || !is_listed(s, f->bdf, true))
			return false;
	}
	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *f = &inv->pci[i];

		if (f->vendor != s->nic_vendor || f->class_code >> 8 != s->nic_class ||
		    (s->nic_device != ANY && f->device != s->nic_device))
			continue;
		if (!is_listed(s, f->bdf, false))
			return false;
		n_nics++;
	}
	return inv->n_gpu == count_listed(s, true) && n_nics == count_listed(s, false);
}

const struct topo_hints *topo_shape(const struct hw_inventory *inv)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		if (is_of_shape(&shapes[i], inv))
			return &shapes[i].hints;
	}
	return NULL;
}
