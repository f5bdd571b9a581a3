/* Shared by the files of this room. */
#ifndef RAILMATE_TOPO_INTERNAL_H
#define RAILMATE_TOPO_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/topo.h"

/* The facts that a question about a function needs, in one cache line's reach. */
struct spot {
	int place;     /* the visible PF of a VF, else the function */
	int up;	       /* next bridge, -1 on the root bus */
	int16_t depth; /* bridges above */
	/* Sub-switches among itself and the bridges above that count with their parent */
	int16_t fused;
	int direct; /* data direct function of a NIC that is its own place; -1: none */
	int numa;
	int group; /* of the hints; -1: none. A VF's is its place's */
	bool is_fused;
};

struct topo {
	const struct hw_inventory *inv;
	struct spot *spots;
	const struct topo_hints *hints; /* that count; NULL: none */
	char **notes;
	size_t n_notes, cap_notes;
	bool one_node; /* at most one known NUMA node */
	bool flattened;
};

/* The operator's hints, or else the instance type's, into the groups and nodes of the spots. */
void apply_hints(struct topo *t, const struct topo_hints *hints);

#endif
