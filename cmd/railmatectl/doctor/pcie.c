/* The settings of the ends and the bridges of a path: relaxed ordering, payload and read request
 * sizes. */
#include <linux/pci_regs.h>
#include <stddef.h>

#include "base/mem.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

#define MAX_NEAREST 64
#define FAST_NIC    200000 /* Mb/s */

/* --- relaxed-ordering --- */

/* A function that its machine sees without its PF: the bits are not its own. */
static bool is_lone_vf(const struct facts *f, int pci)
{
	const struct hw_pci *p = &f->inv->pci[pci];

	return f->inv->hypervisor && hw_is_nic_vf(f->inv, pci) && p->physfn < 0;
}

static void judge_ordering(const struct facts *f, struct diagnosis *r, int pci, const char *name,
			   size_t *on)
{
	const struct facts_pci *p = &f->pci[pci];
	const char *who = facts_address(f, pci);

	if (is_lone_vf(f, pci))
		doctor_unknown(r, ordering_of_pf, who, "%s is a VF whose PF is not here.", name);
	else if (p->devctl < 0)
		doctor_unknown(r, ordering_unknown, who,
			       "%s: relaxed ordering is unknown, for its configuration space %s.",
			       name,
			       p->config == FACTS_CONFIG_READ ? "has no PCIe capability"
							      : facts_why_unread(p->config));
	else if (!(p->devctl & PCI_EXP_DEVCTL_RELAX_EN))
		doctor_warn(r, ordering_off, who, "%s has relaxed ordering off.", name);
	else
		*on += 1;
}

static void run_ordering(const struct facts *f, struct diagnosis *r)
{
	size_t on = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_ordering(f, r, f->inv->gpu[i].pci, facts_gpu_name(f, i), &on);
	for (size_t i = 0; i < f->n_nic; i++)
		judge_ordering(f, r, f->nic[i], facts_nic_name(f, f->nic[i]), &on);
	if (on)
		diagnosis_fine(r, "GPUs and NICs with relaxed ordering on: %zu.", on);
}

/* --- payload --- */

/* GPU, bridges, NIC; a lone VF's bits are not its own. Returns how many of them could not be read.
 */
static size_t payload_of_path(const struct facts *f, int gpu, int nic, int *ret_min, int *ret_max,
			      int *ret_at)
{
	int path[FACTS_PATH_MAX + 2], common;
	size_t n = facts_path(f->inv, gpu, nic, path, &common), unread = 0;

	path[n++] = gpu;
	path[n++] = nic;
	*ret_min = *ret_max = 0;
	for (size_t i = 0; i < n; i++) {
		int devctl = is_lone_vf(f, path[i]) ? -1 : f->pci[path[i]].devctl;
		int size = devctl < 0 ? 0 : facts_mps(devctl);

		unread += devctl < 0;
		if (size && (!*ret_min || size < *ret_min)) {
			*ret_min = size;
			*ret_at = path[i];
		}
		if (size > *ret_max)
			*ret_max = size;
	}
	return unread;
}

static void judge_payload(const struct facts *f, struct diagnosis *r, size_t gpu, size_t *fine)
{
	int nearest[MAX_NEAREST], pci = f->inv->gpu[gpu].pci, min, max, at = -1;
	enum topo_class class;
	size_t n = facts_nearest(f, pci, nearest, MAX_NEAREST, &class), unread = 0;

	for (size_t i = 0; i < n && class <= TOPO_PHB; i++) {
		unread += payload_of_path(f, pci, nearest[i], &min, &max, &at);
		if (min != max) {
			doctor_warn(
				r, payload_unequal, facts_address(f, at),
				"Between %s and %s packets of %d bytes are accepted, but %s takes %d at most.",
				facts_gpu_name(f, gpu), facts_nic_name(f, nearest[i]), max,
				facts_address(f, at), min);
			return;
		}
	}
	if (unread)
		doctor_unknown(
			r, payload_unknown, facts_address(f, pci),
			"Between %s and its NICs %zu functions do not show their payload size.",
			facts_gpu_name(f, gpu), unread);
	else if (n && class <= TOPO_PHB)
		*fine += 1;
}

static void judge_requests(const struct facts *f, struct diagnosis *r, int nic)
{
	int devctl = f->pci[nic].devctl, rdma = hw_find_rdma(f->inv, nic), rate = 0;

	if (rdma >= 0 && f->inv->rdma[rdma].n_ports)
		rate = f->inv->rdma[rdma].ports[0].rate_mbps;
	if (devctl >= 0 && !is_lone_vf(f, nic) && rate >= FAST_NIC && facts_mrrs(devctl) < 512)
		doctor_warn(r, requests_small, facts_address(f, nic),
			    "%s of %d Gb/s reads at most %d bytes at a time.",
			    facts_nic_name(f, nic), rate / 1000, facts_mrrs(devctl));
}

static void run_payload(const struct facts *f, struct diagnosis *r)
{
	size_t fine = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_payload(f, r, i, &fine);
	for (size_t i = 0; i < f->n_nic; i++)
		judge_requests(f, r, f->nic[i]);
	if (fine)
		diagnosis_fine(r, "One payload size from end to end, for GPUs: %zu.", fine);
}

const struct diagnosis_check doctor_pcie_checks[] = {
	{ "relaxed-ordering", "relaxed ordering of GPUs and NICs", .run = run_ordering },
	{ "payload", "PCIe payload and read request sizes", .run = run_payload },
};
const size_t doctor_pcie_checks_n = ARRAY_LEN(doctor_pcie_checks);
