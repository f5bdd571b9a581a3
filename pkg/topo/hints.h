/*
 * Facts that a virtual machine hides: which GPUs and NICs share a PCIe switch. From the
 * operator's file (config/config.h), or from the table of instance types that publish it
 * (topo_shape()). Only a machine whose switches are hidden (topo_flattened_vm()) is read with them.
 * Plain data; strings and tables are their owner's.
 */
#ifndef RAILMATE_TOPO_HINTS_H
#define RAILMATE_TOPO_HINTS_H

#include <stddef.h>

#include "hw/bdf.h"

struct hw_inventory;

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
