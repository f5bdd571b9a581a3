/*
 * A day of pods (stream.h) through the kubelet's allocation logic (devman.h, numa.h) with a GPU
 * plugin (vendor.h), once for each policy. The daemon's own code decides about VFs:
 * choice_decide(), align_choose(). Pure.
 */
#ifndef RAILMATE_SIM_SIMULATE_H
#define RAILMATE_SIM_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/numa.h"
#include "sim/score-internal.h"
#include "sim/stream-internal.h"

struct arena;
struct node;
struct pool;

enum sim_binding { SIM_KUBELET, SIM_EARLY, SIM_LATE };
enum sim_order { SIM_AS_IT_COMES, SIM_GPU_FIRST, SIM_VF_FIRST };

enum sim_flag {
	SIM_DRAWN = 1, /* the GPU plugin has no GetPreferredAllocation: the kubelet draws GPUs */
	SIM_MUTE = 2,  /* the GPU plugin does not answer us */
	/* It is not known how many GPUs a container wants: as many as VFs are predicted */
	SIM_NO_SPECS = 4
};

struct sim_policy {
	const char *name, *what; /* what: a phrase */
	enum sim_binding binding;
	enum sim_order order;
	enum numa_policy numa; /* the TopologyManager's */
	unsigned flags;
};

struct sim_result {
	const struct sim_policy *policy;
	/* refused: the kubelet had too few devices; none when the machine does not change */
	size_t pods, refused;
	size_t gpu_first;
	double load; /* per cent of the GPUs that were busy when a pod had come, in the mean */
	size_t predicted, predicted_right; /* pods whose GPUs were predicted, and came so */
	size_t pairs, best;
	struct score_classes got; /* of all pods */
	/* The best that was there, under this policy: fragmentation shows here */
	struct score_classes optimum;
};

struct sim_in {
	const struct node *node;
	const struct pool *pool;
	struct stream_in day; /* gpus, vfs and the resources' names are filled in by sim_run() */
};

/* One result for each policy, in the arena; NULL: the machine can hold no pod. */
const struct sim_result *sim_run(const struct sim_in *in, size_t *ret_n, struct arena *arena);

double sim_mean_rank(const struct score_classes *c); /* 0 without pairs */
double sim_percent(double part, size_t all);	     /* 100 of nothing */

#endif
