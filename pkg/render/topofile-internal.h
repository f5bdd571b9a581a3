/* What the files that make, check and want the topology file share. */
#ifndef RAILMATE_RENDER_TOPOFILE_INTERNAL_H
#define RAILMATE_RENDER_TOPOFILE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct hw_inventory;
struct topo;

/* NCCL reads up to 256 elements per process, and adds its own; 16 attributes, and adds its own (reference nccl.md §2.2). */
#define TOPOFILE_ELEMENTS_MAX	199
#define TOPOFILE_ATTRIBUTES_MAX 10

/* May stand in a value: printable ASCII without quotes and what has a meaning in XML, though NCCL knows no entities. */
bool topofile_is_plain(int c);
bool topofile_is_link_speed(const char *text); /* one of the words that NCCL knows */
/* The word for a link of that many MT/s; NULL: NCCL has none. */
const char *topofile_link_speed(int mts);

/*
 * By PCI index: is it a NIC that NCCL could use, which is a PF or VF where it or a VF of the same PF has an RDMA device? So it does not
 * change while containers have some of them. A heap array.
 */
bool *topofile_nics(const struct hw_inventory *inv, const struct topo *topo);

#endif
