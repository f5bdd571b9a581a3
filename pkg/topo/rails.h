/*
 * Which rail of the fabric a NIC is on. The switches of a rail-optimised fabric connect the NICs
 * with the same number of all nodes: containers whose NICs have the same numbers reach each other
 * over one switch. Pure; any thread.
 *
 * By the operator's names where there are some: a NIC that they do not name is on no known rail.
 * Else by the order of the GPUs: the NICs that are nearest to a GPU are numbered in the order of
 * the GPUs' addresses, those of one GPU in the order of their own. The NICs of one card take no
 * more rails than there are GPUs that the card is nearest to: two ports of a card beside one GPU
 * are one rail. NICs that are nearest to no GPU, or have no RDMA device, are on no known rail.
 *
 * NICs of one rail are its planes, from 0 in the order of their addresses. (rdma_topo of rdma-core
 * counts the PFs of one card that way; NCCL 2.30 reads both as name:port:rail:plane.)
 */
#ifndef RAILMATE_TOPO_RAILS_H
#define RAILMATE_TOPO_RAILS_H

#include <stddef.h>

struct topo;
struct topo_rails;

#define TOPO_RAIL_MAX 1023

/* nic: a PF (or a VF whose PF is not visible) by PCI address, network interface or RDMA device. */
struct topo_rail_name {
	const char *nic;
	int rail; /* 0 … TOPO_RAIL_MAX */
};

struct topo_rail {
	int rail;  /* -1: not known */
	int plane; /* -1: the rail has one NIC, or is not known */
};

/* Borrows the topology and its inventory; names are read here only. */
struct topo_rails *topo_rails_new(const struct topo *t, const struct topo_rail_name *names,
				  size_t n);
void topo_rails_free(struct topo_rails *r); /* NULL is fine */
/* Of any PCI function; a VF's are its PF's. pci -1 is on no known rail, and with r NULL none is. */
struct topo_rail topo_rails_of(const struct topo_rails *r, int pci);
/* A sentence for each name that is no NIC of this node. */
const char *const *topo_rails_notes(const struct topo_rails *r, size_t *ret_n);

#endif
