/*
 * Which rail of the fabric a NIC is on. The switches of a rail-optimised fabric connect the NICs
 * with the same number of all nodes: containers whose NICs have the same numbers reach each other
 * over one switch. Pure; any thread.
 *
 * By the operator's names where there are some: a NIC that they do not name is on no known rail.
 * Else by the order of the GPUs: the NICs that are nearest to a GPU are numbered in the order of
 * the GPUs' addresses, those of one GPU in the order of their switches. The NICs of one card take
 * no more rails than there are GPUs that the card is nearest to: two ports of a card beside one GPU
 * are one rail. Behind them come the NICs that are nearest to no GPU, in the order of their
 * switches; those whose switch is not known (hw_neighbor), and NICs without an RDMA device, are on
 * no known rail.
 *
 * The order of their switches is that of the switches' names, then of the ports there
 * (strverscmp(): leaf-2 before leaf-10), and of their own addresses where that is equal or not
 * known, which comes last. So nodes that are wired alike number alike, wherever their cards are.
 *
 * NICs of one rail are its planes, from 0 in the order of their switches. (rdma_topo of rdma-core
 * counts the PFs of one card by their addresses; NCCL 2.30 reads both as name:port:rail:plane.) A
 * plane that the operator names stays, also where the rail has one NIC here; the others of its rail
 * get the numbers that are left, so two nodes whose cards are in another order can be made equal.
 */
#ifndef RAILMATE_TOPO_RAILS_H
#define RAILMATE_TOPO_RAILS_H

#include <stdbool.h>
#include <stddef.h>

struct topo;
struct topo_rails;

#define TOPO_RAIL_MAX  1023
#define TOPO_PLANE_MAX 1023

/* nic: a PF (or a VF whose PF is not visible) by PCI address, network interface or RDMA device. */
struct topo_rail_name {
	const char *nic;
	int rail;	/* 0 … TOPO_RAIL_MAX */
	bool has_plane; /* else it is counted */
	int plane;	/* 0 … TOPO_PLANE_MAX */
};

struct topo_rail {
	int rail;  /* -1: not known */
	int plane; /* -1: the rail has one NIC and no plane is named, or is not known */
};

/* Borrows the topology and its inventory; names are read here only. */
struct topo_rails *topo_rails_new(const struct topo *t, const struct topo_rail_name *names,
				  size_t n);
void topo_rails_free(struct topo_rails *r); /* NULL is fine */
/* Of any PCI function; a VF's are its PF's. pci -1 is on no known rail, and with r NULL none is. */
struct topo_rail topo_rails_of(const struct topo_rails *r, int pci);
/* By the operator's names, and not only counted. */
bool topo_rails_are_named(const struct topo_rails *r);
/* How many rails the order of the GPUs gives: those below this number. */
int topo_rails_by_gpus(const struct topo_rails *r);
/* A sentence for each name that is not a NIC of this node. */
const char *const *topo_rails_notes(const struct topo_rails *r, size_t *ret_n);

#endif
