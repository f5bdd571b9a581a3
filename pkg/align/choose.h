/*
 * align on a node: device ids and GPU functions in, device ids out. Builds the numbers for
 * align_solve from the pool, the topology and the known GPUs. Callers: choice, for both bindings;
 * stats and status, to compare; railmatectl plan and simulate. The order of every list is without
 * influence. A device that vanished from the node (no PCI index) counts as far from everything.
 */
#ifndef RAILMATE_ALIGN_CHOOSE_H
#define RAILMATE_ALIGN_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/inventory.h"
#include "topo/topo.h"

struct arena;
struct node;
struct pool;

struct choose_in {
	const struct node *node;
	const struct pool *pool;
	const int *available;
	size_t n_available; /* indices into pool->devs, any order, no doubles */
	const int *must;
	size_t n_must; /* a subset of available */
	size_t want;
	/* The container's, any order; none: unknown. Where some are not known, these get their part
	 * of the VFs, and the others are chosen as for unknown GPUs. */
	struct gpu_set gpus;
	struct gpu_set busy_gpus; /* held by others, as far as known */
	/* GPUs unknown: how many will be drawn from those that are not busy; 0: not known, or not
	 * at random */
	size_t drawn;
};

struct choose_pair {
	int gpu; /* PCI index */
	int dev; /* pool index */
	struct topo_path path;
};

struct choose_out {
	int *chosen;
	size_t n_chosen;	   /* pool indices, ascending */
	struct choose_pair *pairs; /* of the GPUs that are known */
	size_t n_pairs;
	int cost;
	/* the runner-up, filled when asked for; n_runner_up 0: none */
	int *runner_up;
	size_t n_runner_up;
	int runner_up_cost;
};

struct choose_out align_choose(const struct choose_in *in, bool with_runner_up,
			       struct arena *arena);
/* The pairs of VFs that are already decided (Allocate): same balanced assignment, no choice but
 * which VFs are for the GPUs that are known. */
struct choose_out align_pairs(const struct choose_in *in, const int *devs, size_t n_devs,
			      struct arena *arena);

#endif
