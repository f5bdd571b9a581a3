/*
 * The order in which Go walks a small map, as the kubelet walks a container's limits
 * (docs/design/kubelet.md §1.3): eight cells filled in the order of insertion, from a random cell
 * on. A DeepCopy walks the map and inserts in that order.
 */
#ifndef RAILMATE_SIM_GOMAP_INTERNAL_H
#define RAILMATE_SIM_GOMAP_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#define GOMAP_CELLS 8

/* items: as inserted; rearranged as one walk gives them after `copies` copies. At most GOMAP_CELLS.
 */
void sim_gomap_walk(uint64_t *random, int *items, size_t n, unsigned copies);

#endif
