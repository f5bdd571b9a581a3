/*
 * The kernel's side of a VF's verbs, as /sys of this container shows it: its uverbs node, its RDMA
 * device, and the user-space provider that its driver needs. Soft RDMA (rxe) has no link between
 * its RDMA device and a PCI function; there the name is all.
 */
#ifndef RAILMATE_PROBE_NODES_H
#define RAILMATE_PROBE_NODES_H

#include <stddef.h>
#include <sys/types.h>

struct sysroot;
struct told_vf;

struct node {
	char name[32]; /* "uverbs4" */
	char ibdev[64];
	dev_t number;
};
/* Reads class/infiniband_verbs/`name`. 0 or -errno. */
int node_read(const struct sysroot *root, const char *name, struct node *ret);
/* The uverbs node of a VF with an RDMA device. -ENOENT: the kernel shows none. */
int node_of_vf(const struct sysroot *root, const struct told_vf *vf, struct node *ret);
/* The name of the provider of the VF's RDMA device, as in lib<name>-rdmavNN.so. -ENOENT: its driver
 * is not known. */
int node_provider(const struct sysroot *root, const struct told_vf *vf, char *buf, size_t size);

#endif
