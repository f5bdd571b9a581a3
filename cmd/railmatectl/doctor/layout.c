/*
 * The machine as the firmware and the cables have it: NUMA nodes that are parts of sockets (NPS,
 * SNC) or memory of GPUs, rails against the order of the GPUs, windows in memory and room for VFs.
 */
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"
#include "topo/rails.h"

/* --- numa-clusters --- */

/* A node of the same socket is 11 to 15 away; of another 16 and more (AMD 32, Intel 20 and 21). */
#define OTHER_SOCKET 16

static bool has_cpus(const struct hw_numa *n)
{
	return n->cpumap && n->cpumap[strspn(n->cpumap, "0,")];
}

static bool is_same_socket(const struct hw_inventory *inv, size_t a, size_t b)
{
	return a == b || (inv->numa[a].distance && inv->numa[a].distance[b] < OTHER_SOCKET);
}

/* CPU nodes of this node's socket; *ret_first: the first of them, which stands for it. */
static size_t parts_of(const struct hw_inventory *inv, size_t node, size_t *ret_first)
{
	size_t n = 0;

	*ret_first = node;
	for (size_t i = 0; i < inv->n_numa; i++) {
		if (!has_cpus(&inv->numa[i]) || !is_same_socket(inv, node, i))
			continue;
		if (i < *ret_first)
			*ret_first = i;
		n++;
	}
	return n;
}

static size_t gpus_on(const struct facts *f, size_t node, bool whole_socket)
{
	size_t n = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		int id = topo_numa(f->topo, f->inv->gpu[i].pci);

		for (size_t k = 0; k < f->inv->n_numa; k++)
			n += f->inv->numa[k].id == id &&
			     (k == node || (whole_socket && is_same_socket(f->inv, node, k)));
	}
	return n;
}

static void run_clusters(const struct facts *f, struct diagnosis *r)
{
	const struct hw_inventory *inv = f->inv;
	size_t nodes = 0, sockets = 0, split = 0;

	for (size_t i = 0; i < inv->n_numa; i++) {
		size_t first, parts;

		if (!has_cpus(&inv->numa[i]))
			continue;
		parts = parts_of(inv, i, &first);
		nodes++;
		sockets += first == i;
		split += parts > 1;
		if (parts > 1 && !gpus_on(f, i, false) && gpus_on(f, i, true))
			doctor_warn(
				r, clusters_bare, "host",
				"NUMA node %d is a part of a socket (NPS, SNC) and has no GPU; other parts have.",
				inv->numa[i].id);
	}
	if (split && inv->n_gpu && diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		doctor_pass(r, clusters_fine, "host",
			    "Sockets are split into NUMA nodes (NPS, SNC): sockets %zu, nodes %zu.",
			    sockets, nodes);
}

/* --- numa-nodes --- */

#define KUBELET_NODES 8

static void run_nodes(const struct facts *f, struct diagnosis *r)
{
	size_t memory = facts_n_memory_nodes(f->inv), n = f->inv->n_numa;

	if (n > KUBELET_NODES)
		doctor_warn(r, nodes_many, "host",
			    "There are %zu NUMA nodes, %zu of them memory without CPUs.", n,
			    memory);
	else if (memory)
		doctor_pass(r, nodes_fine, "host",
			    "NUMA nodes: %zu, of them memory without CPUs: %zu.", n, memory);
}

/* --- rails --- */

struct end {
	int pci;
	struct topo_rail at;
	const struct hw_neighbor *leaf;
};

/* Planes are networks of their own. */
static int by_plane_and_rail(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->at.plane != y->at.plane)
		return x->at.plane < y->at.plane ? -1 : 1;
	return x->at.rail != y->at.rail ? x->at.rail - y->at.rail : x->pci - y->pci;
}

static size_t find_ends(const struct facts *f, const struct topo_rails *rails, struct end *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < f->inv->n_neighbor; i++) {
		struct end end = { .pci = f->inv->neighbor[i].pci, .leaf = &f->inv->neighbor[i] };

		end.at = topo_rails_of(rails, end.pci);
		if (end.at.rail >= 0 && end.at.rail < topo_rails_by_gpus(rails))
			ret[n++] = end;
	}
	if (n > 1)
		qsort(ret, n, sizeof(*ret), by_plane_and_rail);
	return n;
}

static void compare(const struct facts *f, const struct topo_rails *rails, struct diagnosis *r)
{
	_cleanup_free_ struct end *ends = xcalloc(f->inv->n_neighbor + 1, sizeof(*ends));
	size_t n = find_ends(f, rails, ends);

	for (size_t i = 1; i < n; i++) {
		const struct end *low = &ends[i - 1], *high = &ends[i];

		if (low->at.plane == high->at.plane &&
		    strverscmp(low->leaf->name, high->leaf->name) > 0)
			doctor_warn(
				r, swapped, facts_address(f, high->pci),
				"%s is on rail %d by the order of the GPUs, and its switch %s comes before %s, that of rail %d.",
				facts_nic_name(f, high->pci), high->at.rail, high->leaf->name,
				low->leaf->name, low->at.rail);
	}
	if (n > 1)
		diagnosis_fine(r, "The switches of %zu NICs are in the order of their rails.", n);
}

static void run_rails(const struct facts *f, struct diagnosis *r)
{
	struct topo_rails *counted = f->rails ? NULL : topo_rails_new(f->topo, NULL, 0);

	compare(f, f->rails ? f->rails : counted, r);
	topo_rails_free(counted);
}

/* --- bar --- */

#define SMALL_BAR (256 << 20)

static void say_unset(const struct facts *f, struct diagnosis *r, int pci, const char *name,
		      const char *what)
{
	bool despite = facts_boot_list_has(f, "pci=", "realloc");
	struct diagnosis_finding *found = diagnosis_add(
		r, DIAGNOSIS_WARN, despite ? &doctor_bar_unset_despite : &doctor_bar_unset,
		facts_address(f, pci), "%s: the kernel found no place in memory for %s.", name,
		what);

	if (!despite)
		found->kernel_arg = "pci=realloc";
}

static void judge_bars(const struct facts *f, struct diagnosis *r, int pci, const char *name,
		       size_t *unseen)
{
	const struct facts_bars *b = &f->pci[pci].bars;

	if (b->known != FACTS_YES)
		*unseen += 1;
	else if (b->unset)
		say_unset(f, r, pci, name, "one of its BARs");
	else if (b->vf_unset)
		say_unset(f, r, pci, name, "the BARs of its VFs");
	else if (hw_find_gpu(f->inv, pci) >= 0 && b->largest <= SMALL_BAR)
		doctor_warn(r, bar_small, facts_address(f, pci),
			    "%s shows %llu MiB of its memory at most.", name,
			    (unsigned long long)b->largest >> 20);
}

/* In a virtual machine the windows are the hypervisor's. */
static void run_bar(const struct facts *f, struct diagnosis *r)
{
	size_t unseen = 0, n = f->inv->n_gpu + f->n_nic;

	if (f->inv->hypervisor || !n)
		return;
	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_bars(f, r, f->inv->gpu[i].pci, facts_gpu_name(f, i), &unseen);
	for (size_t i = 0; i < f->n_nic; i++)
		judge_bars(f, r, f->nic[i], facts_nic_name(f, f->nic[i]), &unseen);
	if (unseen)
		doctor_unknown(r, bar_unknown, "host",
			       "%zu of %zu GPUs and NICs do not show their BARs.", unseen, n);
	else
		diagnosis_fine(r, "GPUs and NICs with all their BARs: %zu.", n);
}

/* --- ari --- */

#define PLAIN_VFS 7

static void judge_ari(const struct facts *f, struct diagnosis *r, int pf, size_t *on)
{
	const struct hw_pci *p = &f->inv->pci[pf];
	const struct facts_pci *port = p->parent < 0 ? NULL : &f->pci[p->parent];

	bool proven = false;

	if (p->sriov_total <= PLAIN_VFS || !port)
		return;
	/* A VF beyond function 7 of its PF's bus is proof. */
	for (size_t i = 0; i < f->inv->n_pci; i++) {
		const struct hw_pci *vf = &f->inv->pci[i];

		proven |= vf->physfn == pf && vf->bdf.domain == p->bdf.domain &&
			  vf->bdf.bus == p->bdf.bus && vf->bdf.dev;
	}
	if (proven || (port->devctl2 >= 0 && port->devctl2 & PCI_EXP_DEVCTL2_ARI))
		*on += 1;
	else if (port->devctl2 < 0)
		doctor_unknown(r, ari_unknown, facts_address(f, pf),
			       "%s: the configuration space of the port above it %s.",
			       facts_nic_name(f, pf),
			       port->config == FACTS_CONFIG_READ ? "does not show ARI"
								 : facts_why_unread(port->config));
	else
		doctor_warn(r, ari_off, facts_address(f, pf),
			    "%s can have %d VFs, and the port above it, %s, %s.",
			    facts_nic_name(f, pf), p->sriov_total, facts_address(f, p->parent),
			    port->devcap2 & PCI_EXP_DEVCAP2_ARI ? "has ARI forwarding off"
								: "cannot forward ARI");
}

static void run_ari(const struct facts *f, struct diagnosis *r)
{
	size_t on = 0;

	for (size_t i = 0; !f->inv->hypervisor && i < f->n_nic; i++)
		judge_ari(f, r, f->nic[i], &on);
	if (on)
		diagnosis_fine(r, "Cards with ARI: %zu.", on);
}

const struct diagnosis_check doctor_layout_checks[] = {
	{ "numa-clusters", "sockets split into NUMA nodes (NPS, SNC)", .run = run_clusters },
	{ "numa-nodes", "number of NUMA nodes for the kubelet", .run = run_nodes },
	{ "rails", "rails by GPUs and by switches", .run = run_rails },
	{ "bar", "BARs of GPUs and NICs (Above 4G Decoding)", .run = run_bar, .in_manifest = true },
	{ "ari", "ARI of the ports above cards with VFs", .run = run_ari },
};
const size_t doctor_layout_checks_n = ARRAY_LEN(doctor_layout_checks);
