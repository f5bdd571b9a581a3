/*
 * How close two PCI functions are. Smaller is closer; the names are nvidia-smi's and NCCL's:
 *
 *   SELF  the same function          PIX   one PCIe switch between them
 *   PXB   several PCIe switches      PHB   the same root complex (a PCIe host bridge)
 *   NODE  the same NUMA node         SYS   across NUMA nodes
 *
 * A VF has its PF's place. A NIC with Data Direct is at two: where its PCI function is and where
 * its data direct function is; the nearer one counts, as for NCCL, whose "_dma" device is at the
 * second. Two-level Broadcom Gen4/Gen5 switches count as one switch, as in NCCL (src/graph/topo.cc,
 * ncclTopoFlattenBcmSwitches). Pure; borrows the inventory; any thread.
 */
#ifndef RAILMATE_TOPO_TOPO_H
#define RAILMATE_TOPO_TOPO_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/bdf.h"

struct hw_inventory;
struct topo;
struct topo_hints;

enum topo_class { TOPO_SELF, TOPO_PIX, TOPO_PXB, TOPO_PHB, TOPO_NODE, TOPO_SYS, TOPO_CLASS_MAX };

/* Rank used for costs: PIX (and SELF) 0, PXB 1, PHB 2, NODE 3, SYS 4. */
int topo_rank(enum topo_class c);
const char *topo_class_name(enum topo_class c); /* "PIX" */

/*
 * How many of these pairs, counted by class, are at their best class: at one that the best choice
 * has, as often as it has it; all are when the sum of their ranks is not greater.
 */
size_t topo_pairs_at_best(const size_t got[TOPO_CLASS_MAX], const size_t best[TOPO_CLASS_MAX]);

struct topo_path {
	enum topo_class class;
	int bridges; /* PCIe switches passed: 1 for PIX, 2 or more for PXB; -1 for the others */
	bool direct; /* so near because of a data direct function: topo_direct() of the NIC */
};

/* hints: the operator's, of hidden switches (topo/topo.h); NULL: none. Borrowed, as the inventory.
 */
struct topo *topo_new(const struct hw_inventory *inv, const struct topo_hints *hints);
void topo_free(struct topo *t);
struct topo_path topo_between(const struct topo *t, int pci_a, int pci_b);
/* topo_between() for a library that does not use Data Direct: by the places of the PCI functions
 * themselves. */
struct topo_path topo_between_functions(const struct topo *t, int pci_a, int pci_b);
/* A bridge that begins a sub-switch which counts as one with the switch above it. */
bool topo_is_fused(const struct topo *t, int pci);
/* From here on no NIC has a data direct function: for a node where nothing uses them. */
void topo_forget_direct(struct topo *t);
int topo_place(const struct topo *t, int pci); /* a VF's visible PF, else the function itself */
int topo_direct(const struct topo *t,
		int pci); /* the data direct function of a NIC, for a VF its PF's; -1: none */
/*
 * GPUs and NICs are there, this looks like a VM (the tree shows a hypervisor, or every one of
 * them sits on a root bus), and no pair is closer than PHB: the switches are hidden, PHB and NODE
 * mean "unknown".
 */
bool topo_flattened_vm(const struct topo *t);
/* The hints that count here: the operator's, else those of a known instance type; NULL: none. A
 * pair of one group is PIX. */
const struct topo_hints *topo_hints_used(const struct topo *t);
int topo_group_of(const struct topo *t, int pci); /* index into the groups of the hints; -1: none */
int topo_numa(const struct topo *t,
	      int pci); /* its NUMA node, of the hints or else of the inventory; -1 */
bool topo_one_node(
	const struct topo *t); /* no two NUMA nodes are known: an unknown one is no other */
/* The faults of the operator's hints, as sentences: addresses that are not there, or that they are
 * not needed here. */
const char *const *topo_notes(const struct topo *t, size_t *ret_n);

/*
 * Where NCCL looks for a network function in sysfs and in a topology file: function 0 of its own
 * device; with merge (NCCL_IB_MERGE_VFS=1, which is the default) of device 0 of its bus.
 */
struct bdf topo_nccl_address(struct bdf bdf, bool merge);
/*
 * Does NCCL find a VF at its PF's place with its default? If not, the container needs
 * NCCL_IB_MERGE_VFS=0: VFs on a further bus than their PF, VFs without one that are not device 0.
 */
bool topo_vf_merges(const struct hw_inventory *inv, int vf);

/*
 * Facts that a virtual machine hides: which GPUs and NICs share a PCIe switch. From the
 * operator's file (config/config.h), or from the table of instance types that publish it
 * (topo_shape()). Only a machine whose switches are hidden (topo_flattened_vm()) is read with them.
 * Plain data; strings and tables are their owner's.
 */

/* One switch. A NIC is a VF as the machine shows it, or the PF of VFs. */
struct topo_group {
	const struct bdf *gpus;
	size_t n_gpus;
	const struct bdf *nics;
	size_t n_nics;
	int numa; /* -1: that of its functions */
};

struct topo_hints {
	const char *source; /* "hints.json"; "Azure ND H100 v5" */
	const struct topo_group *groups;
	size_t n_groups;
	/* Of the links of each group, as in hw_pci; 0: those of the functions */
	int link_mts, link_width;
};

/* The instance type that this machine looks like: exactly its GPUs and its RDMA NICs, by vendor and
 * address. NULL: none. */
const struct topo_hints *topo_shape(const struct hw_inventory *inv);

#endif
