/* Are GPUs and VFs there, with the right driver, near each other, on links of full width? */
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "doctor/board-internal.h"
#include "hw/driver.h"
#include "hw/inventory.h"

#define MAX_NEAREST 64

static const char no_switch_fix[] =
	"Move the NIC or the GPU to slots behind one PCIe switch if the board has any; else measure before raising NCCL_NET_GDR_LEVEL, and do not set it by default.";

/* --- driver --- */

static void judge_driver(const struct facts *f, struct diagnosis *r, int pci, bool is_gpu)
{
	const struct hw_pci *p = &f->inv->pci[pci];
	const char *who = facts_address(f, pci), *kind = is_gpu ? "GPU" : "VF";

	if (hw_driver_is_user_space(p->driver))
		diagnosis_add(r, is_gpu ? DIAGNOSIS_WARN : DIAGNOSIS_FAIL,
			      is_gpu ? &doctor_gpu_user_space : &doctor_user_space_driver, who,
			      "%s %s is bound to %s.", kind, who, p->driver);
	else if (!p->driver)
		doctor_warn(r, no_driver, who, "%s %s has no driver.", kind, who);
}

/* A VF counts when its PF is one of those that containers' VFs are of, or is itself the function
 * that the machine shows. */
static bool is_our_vf(const struct facts *f, int pci)
{
	int place = f->inv->pci[pci].physfn >= 0 ? f->inv->pci[pci].physfn : pci;

	if (!hw_is_nic_vf(f->inv, pci))
		return false;
	return list_has_int(f->nic, f->n_nic, place);
}

static void run_driver(const struct facts *f, struct diagnosis *r)
{
	size_t vfs = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_driver(f, r, f->inv->gpu[i].pci, true);
	for (size_t i = 0; i < f->inv->n_pci; i++) {
		if (!is_our_vf(f, (int)i))
			continue;
		judge_driver(f, r, (int)i, false);
		vfs++;
	}
	if (vfs + f->inv->n_gpu)
		diagnosis_fine(r, "GPUs: %zu, VFs: %zu, all with a driver of the kernel.",
			       f->inv->n_gpu, vfs);
}

/* --- vfs --- */

/* A card that is not a GPU's nearest needs no VFs: cards for storage and management have none on
 * purpose. */
static bool is_nearer(const struct facts *f, int pf)
{
	int nearest[MAX_NEAREST];
	enum topo_class best;

	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		int gpu = f->inv->gpu[i].pci;

		facts_nearest(f, gpu, nearest, MAX_NEAREST, &best);
		if (topo_between(f->topo, gpu, pf).class < best)
			return true;
	}
	return false;
}

static void run_vfs(const struct facts *f, struct diagnosis *r)
{
	const struct hw_inventory *inv = f->inv;
	size_t vfs = 0;

	for (size_t i = 0; i < inv->n_pci; i++) {
		const char *who = facts_address(f, (int)i);
		size_t of_pf = 0;

		vfs += is_our_vf(f, (int)i);
		for (size_t k = 0; k < inv->n_pci; k++)
			of_pf += inv->pci[k].physfn == (int)i;
		if (!hw_is_pf(&inv->pci[i]) || hw_find_rdma(inv, (int)i) < 0 || of_pf)
			continue;
		for (size_t k = 0; k < f->n_nic; k++) {
			if (f->nic[k] != (int)i)
				continue;
			doctor_warn(r, no_vfs, who, "%s has none of its %d VFs.",
				    facts_nic_name(f, (int)i), inv->pci[i].sriov_total);
		}
		if (is_nearer(f, (int)i))
			doctor_warn(
				r, no_vfs, who,
				"%s has none of its %d VFs, and is nearer to a GPU than those that have.",
				facts_nic_name(f, (int)i), inv->pci[i].sriov_total);
	}
	if (!inv->n_rdma)
		doctor_fail(r, no_nic, "host", "No RDMA device is here.");
	else if (vfs)
		diagnosis_add(r, DIAGNOSIS_PASS, NULL, "host", "VFs: %zu, cards: %zu.", vfs,
			      f->n_nic);
}

/* --- path --- */

static const struct diagnosis_advice path_far = {
	"NCCL leaves GPUDirect RDMA off when the path crosses the host bridge (its default level is PXB): data go through the host's memory.",
	{ no_switch_fix },
};

/* Their PCIe link carries little: data reach NICs through the CPU to which the GPU is soldered. */
static bool is_on_c2c(const struct hw_inventory *inv, const struct hw_gpu *gpu)
{
	static const char *const models[] = { "GH200", "GB200", "GB300" };

	if (doctor_is_below_c2c_cpu(inv, gpu->pci) && facts_n_memory_nodes(inv))
		return true;
	for (size_t i = 0; gpu->model && i < ARRAY_LEN(models); i++) {
		if (strstr(gpu->model, models[i]))
			return true;
	}
	return false;
}

static void judge_path(const struct facts *f, struct diagnosis *r, size_t gpu)
{
	int nearest[MAX_NEAREST], pci = f->inv->gpu[gpu].pci;
	enum topo_class class;
	size_t n = facts_nearest(f, pci, nearest, MAX_NEAREST, &class);
	const char *who = facts_address(f, pci), *nic;

	if (!n)
		return;
	nic = facts_nic_name(f, nearest[0]);
	if (class <= TOPO_PXB)
		doctor_pass(r, path_near, who, "%s reaches %s by %s.", facts_gpu_name(f, gpu), nic,
			    topo_class_name(class));
	else if (topo_flattened_vm(f->topo))
		doctor_unknown(r, path_hidden, who, "%s: how far its NICs are is not visible.",
			       facts_gpu_name(f, gpu));
	else if (class <= TOPO_NODE && is_on_c2c(f->inv, &f->inv->gpu[gpu]))
		doctor_pass(r, path_c2c, who, "%s reaches %s by its CPU.", facts_gpu_name(f, gpu),
			    nic);
	else
		diagnosis_add(r, DIAGNOSIS_WARN, &path_far, who,
			      "The nearest NIC of %s is %s, by %s.", facts_gpu_name(f, gpu), nic,
			      topo_class_name(class));
}

static void run_path(const struct facts *f, struct diagnosis *r)
{
	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_path(f, r, i);
}

/* --- numa --- */

static void judge_numa_known(const struct facts *f, struct diagnosis *r, int pci, const char *name)
{
	if (topo_numa(f->topo, pci) < 0)
		doctor_warn(r, numa_unknown, facts_address(f, pci),
			    "%s is on no NUMA node, and this machine has %zu.", name,
			    f->inv->n_numa);
}

static void judge_numa_near(const struct facts *f, struct diagnosis *r, size_t gpu)
{
	int nearest[MAX_NEAREST], pci = f->inv->gpu[gpu].pci, numa = topo_numa(f->topo, pci);
	enum topo_class class;
	size_t n = facts_nearest(f, pci, nearest, MAX_NEAREST, &class);

	for (size_t i = 0; i < n; i++) {
		int other = topo_numa(f->topo, nearest[i]);

		if (numa < 0 || other < 0 || numa == other)
			return;
	}
	if (n)
		doctor_warn(r, numa_apart, facts_address(f, pci),
			    "%s is on NUMA node %d, and the nearest to it, %s, on node %d.",
			    facts_gpu_name(f, gpu), numa, facts_nic_name(f, nearest[0]),
			    topo_numa(f->topo, nearest[0]));
}

static void run_numa(const struct facts *f, struct diagnosis *r)
{
	if (f->inv->n_numa < 2) {
		if (f->inv->n_numa)
			diagnosis_fine(r, "One NUMA node.");
		return;
	}
	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		judge_numa_known(f, r, f->inv->gpu[i].pci, facts_gpu_name(f, i));
		judge_numa_near(f, r, i);
	}
	for (size_t i = 0; i < f->n_nic; i++)
		judge_numa_known(f, r, f->nic[i], facts_nic_name(f, f->nic[i]));
	if (f->inv->n_gpu + f->n_nic)
		diagnosis_fine(r,
			       "Each GPU is on one NUMA node with its nearest NIC; there are %zu.",
			       f->inv->n_numa);
}

/* --- link --- */

static void judge_link(const struct facts *f, struct diagnosis *r, int pci, const char *name,
		       size_t *slow)
{
	const struct hw_pci *p = &f->inv->pci[pci];
	int max = p->link_width_max, now = p->link_mts;
	/* 0: not reported by the device. */
	int best = p->link_mts_max ? hw_pcie_best(f->inv, pci).mts : 0;

	if (!p->link_width || !max)
		doctor_unknown(r, link_unknown, facts_address(f, pci),
			       "The PCIe link of %s is not known.", name);
	else if (p->link_width < max)
		doctor_warn(r, link_narrow, facts_address(f, pci), "%s runs x%d of x%d.", name,
			    p->link_width, max);
	else if (now && now < best && hw_find_gpu(f->inv, pci) >= 0)
		*slow += 1;
	else if (now && now < best)
		doctor_warn(r, link_slow_nic, facts_address(f, pci),
			    "%s runs at %g GT/s, and %g would go.", name, now / 1000.0,
			    best / 1000.0);
}

/* The ports above it, where a narrow link slows every device below. */
static void judge_uplinks(const struct facts *f, struct diagnosis *r, int pci, bool *seen)
{
	const struct hw_inventory *inv = f->inv;

	for (int up = inv->pci[pci].parent; up >= 0 && !seen[up]; up = inv->pci[up].parent) {
		const struct hw_pci *p = &inv->pci[up];
		int above = p->parent >= 0 ? inv->pci[p->parent].link_width_max : 0,
		    max = p->link_width_max;

		seen[up] = true;
		if (f->pci[up].port_type != FACTS_PORT_UPSTREAM || !p->link_width || !above || !max)
			continue;
		if (p->link_width < max && p->link_width < above)
			doctor_warn(r, link_narrow, facts_address(f, up),
				    "The switch at %s, above %s, runs x%d of x%d.",
				    facts_address(f, up), facts_address(f, pci), p->link_width,
				    max < above ? max : above);
	}
}

static void run_link(const struct facts *f, struct diagnosis *r)
{
	_cleanup_free_ bool *seen = xcalloc(f->inv->n_pci + 1, sizeof(*seen));
	size_t slow = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		judge_link(f, r, f->inv->gpu[i].pci, facts_gpu_name(f, i), &slow);
		judge_uplinks(f, r, f->inv->gpu[i].pci, seen);
	}
	for (size_t i = 0; i < f->n_nic; i++) {
		judge_link(f, r, f->nic[i], facts_nic_name(f, f->nic[i]), &slow);
		judge_uplinks(f, r, f->nic[i], seen);
	}
	if (slow)
		doctor_pass(r, link_slow, "host", "GPUs' links below their speed just now: %zu.",
			    slow);
	else if (f->inv->n_gpu + f->n_nic)
		diagnosis_fine(r, "Links at full width and speed: %zu.", f->inv->n_gpu + f->n_nic);
}

const struct diagnosis_check doctor_place_checks[] = {
	{ "driver", "drivers of GPUs and VFs", .run = run_driver },
	{ "vfs", "VFs of the NICs", .run = run_vfs },
	{ "path", "PCIe path from each GPU to its nearest NIC", .run = run_path },
	{ "numa", "NUMA nodes of GPUs and NICs", .run = run_numa },
	{ "link", "width and speed of PCIe links", .run = run_link },
};
const size_t doctor_place_checks_n = ARRAY_LEN(doctor_place_checks);
