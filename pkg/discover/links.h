/* The links of some PFs, of a machine that is known. */
#ifndef RAILMATE_DISCOVER_LINKS_H
#define RAILMATE_DISCOVER_LINKS_H

#include <stddef.h>

struct hw_inventory;
struct sysroot;

/*
 * The machine as it was, with the carrier of these PFs (indices into before->pci) and the state of
 * their RDMA ports as they are now; nothing else is read. NULL: one of them has lost its interface,
 * and only a scan can find it again. The caller's (hw_inventory_free()).
 */
struct hw_inventory *discover_links_again(const struct sysroot *root,
					  const struct hw_inventory *before, const int *pfs,
					  size_t n);

#endif
