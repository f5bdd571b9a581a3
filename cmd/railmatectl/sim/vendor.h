/*
 * A GPU device plugin like the vendors': lists the GPUs with their NUMA nodes, and its
 * GetPreferredAllocation prefers those that are close to each other, then the lowest address. Pure.
 * The fake GPU plugin of the tests and the simulator both choose here.
 */
#ifndef RAILMATE_SIM_VENDOR_H
#define RAILMATE_SIM_VENDOR_H

#include <stddef.h>
#include <stdint.h>

#include "kubemsg/messages.h"

struct arena;
struct hw_inventory;
struct topo;

struct vendor {
	struct device_list list; /* in address order; ids: UUIDs, else PCI addresses */
	const int *pci;		 /* of each */
	const uint8_t *rank;	 /* list.n × list.n */
};

/* resource: nvidia.com/gpu, amd.com/gpu and gpu.intel.com/i915 list that vendor's GPUs, any other
 * name all of them. */
const struct vendor *sim_vendor_new(const struct hw_inventory *inv, const struct topo *topo,
				    const char *resource, struct arena *arena);
/* The name under which the first GPU of the machine is offered; "gpu" for a vendor without a plugin
 * that we know. */
const char *sim_vendor_resource(const struct hw_inventory *inv);
/* In address order. Ids that are not listed are ignored; fewer available than asked for: all of
 * these. */
struct ids sim_vendor_prefer(const struct vendor *g, const struct preferred_container *req,
			     struct arena *arena);

#endif
