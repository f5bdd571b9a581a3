/*
 * The kubelet's device manager: which devices of one resource a container gets
 * (docs/design/kubelet.md §1.2: devicesToAllocate, filterByAffinity), and its hints for the
 * TopologyManager. In two steps, as the plugin is asked between them. Where the real one walks a Go
 * map, the order is random. The fake kubelet of the tests and the simulator both decide here.
 */
#ifndef RAILMATE_SIM_DEVMAN_H
#define RAILMATE_SIM_DEVMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kubemsg/messages.h"
#include "sim/numa.h"

struct arena;
struct idset;

/* Devices of one resource: those of its plugin's list, and those that the manager regards as taken.
 */
struct devman_stock {
	const struct device_list *devices;
	const struct idset *taken;
	const struct idset *reusable; /* left by init containers of the same pod; NULL: none */
};

uint64_t sim_devman_nodes(const struct device_list *devices); /* the NUMA nodes that have any */
struct numa_ask sim_devman_hint(const struct devman_stock *stock, size_t count,
				struct arena *arena);

enum devman_step {
	DEVMAN_DONE,  /* picked holds them */
	DEVMAN_ASK,   /* send `ask` to the plugin, then sim_devman_finish() */
	DEVMAN_SHORT, /* fewer are free than needed: the pod fails */
};

struct devman_pick {
	struct ids picked;
	size_t needed, available; /* still needed; free beside those */
	struct preferred_container ask;
	/* between the steps */
	struct idset *taken;
	uint64_t *random;
	struct arena *arena;
	struct ids free, aligned, unaligned, elsewhere;
	bool from_aligned;
};

/*
 * Strings are copied into the arena: the list may be replaced while the plugin thinks. Everything
 * picked is added to `taken` (the stock's own) at once, as a reservation. affinity NULL: the
 * TopologyManager has no opinion.
 */
enum devman_step sim_devman_begin(struct devman_pick *pick, const struct devman_stock *stock,
				  struct idset *taken, size_t count, const uint64_t *affinity,
				  uint64_t *random, struct arena *arena);
/* preferred: the plugin's answer, only a wish; NULL when it has no GetPreferredAllocation. Leaves
 * needed > 0 if the devices went. */
void sim_devman_finish(struct devman_pick *pick, const struct ids *preferred);

#endif
