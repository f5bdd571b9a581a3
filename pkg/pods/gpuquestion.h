/* The question to a GPU plugin (gpuplugin.h). Pure. */
#ifndef RAILMATE_PODS_GPUQUESTION_H
#define RAILMATE_PODS_GPUQUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "kubemsg/messages.h"

struct arena;
struct hw_inventory;

struct gpu_question {
	const char *resource;
	struct ids free; /* by id; they live as long as the allocatable ones */
};

/*
 * The free ids of a GPU resource: allocatable, and held by no container. resource NULL: the one
 * with the most GPUs, ours left out. nodes: only GPUs on these NUMA nodes (n_nodes 0: on all).
 * false: no prediction is possible, why is a sentence: no such GPUs, fewer free than wanted, or ids
 * that stand for a part of a GPU (MIG; time-sliced "…::n", which are handed out in no foreseeable
 * order).
 */
bool pods_gpu_question(const struct pod_container *allocatable, const struct pod_list *held,
		       const char *resource, const char *ours, size_t want, const int *nodes,
		       size_t n_nodes, const struct hw_inventory *inv, struct arena *a,
		       struct gpu_question *ret, const char **why);
#endif
