/*
 * The kubelet's TopologyManager, container scope: hints of each resource, their merge, the policy's
 * verdict (docs/design/kubelet.md §1.5). Pure. A set of NUMA nodes is a bit mask; 0 means "no
 * topology".
 */
#ifndef RAILMATE_SIM_NUMA_H
#define RAILMATE_SIM_NUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum numa_policy { NUMA_NONE, NUMA_BEST_EFFORT, NUMA_RESTRICTED, NUMA_SINGLE_NODE };

/* One resource of the container. A device's mask holds its nodes. */
struct numa_ask {
	const uint64_t *all, *available, *reusable;
	size_t n_all, n_available, n_reusable;
	size_t count;
};

struct numa_verdict {
	bool admit;
	bool has_affinity;
	uint64_t affinity;
};

#define NUMA_NODES_MAX 8 /* the kubelet refuses to start with more */

struct numa_verdict sim_numa_judge(enum numa_policy policy, uint64_t machine,
				   const struct numa_ask *asks, size_t n);

#endif
