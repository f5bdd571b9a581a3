/*
 * Data Direct: does libmlx5's answer about a NIC agree with its VPD? The VPD is all that can be
 * read without opening the device (docs/design/nccl.md §1.3), and decides which GPU a NIC is near
 * to; libmlx5 has the driver's own pairing, which NCCL uses.
 */
#include <stddef.h>

#include "base/mem.h"
#include "doctor/doctor-internal.h"
#include "facts/direct.h"
#include "hw/inventory.h"

static const struct diagnosis_advice other_function = {
	"NCCL takes the data direct function that libmlx5 names; railmate gives the NIC to containers with the GPUs near the other one, and their traffic crosses the CPU.",
	{ "Read both functions' VPD (lspci -vv, keywords V3 and VU), update the NIC's firmware, and report it with railmatectl snapshot --scrub." },
};
static const struct diagnosis_advice not_bound = {
	"Without the driver's pairing NCCL uses the NIC where its PCI function is, over the CPU.",
	{ "Use a kernel and firmware with Data Direct (mlx5_ib binds 15b3:2100), load mlx5_ib after both functions are there, and look for 'VU keyword' in the kernel's log." },
};
static const struct diagnosis_advice not_asked = {
	"Without libmlx5's word the pairing rests on the VPD alone.",
	{ "Run it as root on the node, or where /dev/infiniband of the NIC's PF can be opened." },
};

static void judge_nic(const struct facts *f, struct diagnosis *r,
		      const struct facts_direct_nic *nic)
{
	int direct = hw_data_direct(f->inv, nic->pci);
	bool found = nic->answer == FACTS_DIRECT_FOUND;
	char buf[BDF_STRLEN];

	if (found && (direct < 0 || bdf_cmp(f->inv->pci[direct].bdf, nic->bdf)))
		diagnosis_add(r, DIAGNOSIS_WARN, &other_function, facts_address(f, nic->pci),
			      "%s: libmlx5 names the data direct function %s, its VPD %s.",
			      facts_nic_name(f, nic->pci), bdf_format(nic->bdf, buf),
			      direct >= 0 ? facts_address(f, direct) : "none");
	else if (nic->answer == FACTS_DIRECT_NONE && direct >= 0)
		diagnosis_add(r, DIAGNOSIS_WARN, &not_bound, facts_address(f, nic->pci),
			      "%s: its VPD names the data direct function %s, libmlx5 none.",
			      facts_nic_name(f, nic->pci), facts_address(f, direct));
	else if (nic->answer == FACTS_DIRECT_UNKNOWN)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &not_asked, facts_address(f, nic->pci),
			      "%s: %s.", facts_nic_name(f, nic->pci), nic->why);
}

static void run_direct(const struct facts *f, struct diagnosis *r)
{
	const struct facts_direct *d = f->direct;

	if (!d || !d->n)
		return;
	for (size_t i = 0; i < d->n; i++)
		judge_nic(f, r, &d->nic[i]);
	diagnosis_fine(r, "libmlx5 and the VPD pair %zu NICs with the same data direct functions.",
		       d->n);
}

const struct diagnosis_check doctor_direct_checks[] = {
	{ "data-direct", "data direct functions by VPD and by libmlx5",
	  "On machines with Data Direct, where libibverbs and libmlx5 (MLX5_1.25 or newer) are installed: opens the RDMA device of each PF and compares the data direct function that libmlx5 names with the one that the VPD names (V3, VU). PASS: the same for all. WARN: another one, or only one of both names any. UNKNOWN: the device cannot be opened. Elsewhere, and in a container without these libraries, it does not apply.",
	  .run = run_direct },
};
const size_t doctor_direct_checks_n = ARRAY_LEN(doctor_direct_checks);
