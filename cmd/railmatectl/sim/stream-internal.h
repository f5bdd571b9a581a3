/*
 * A day of pods, from a seed: the pods that arrive, their requests, and those that leave before. It
 * knows nothing of a policy: devices of a resource are alike as far as counting goes, so every
 * policy can run the same day.
 */
#ifndef RAILMATE_SIM_STREAM_INTERNAL_H
#define RAILMATE_SIM_STREAM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

struct stream_in {
	size_t pods;
	uint64_t seed;
	size_t gpus, vfs;			/* of the machine */
	unsigned load_min, load_max;		/* per cent of the GPUs, 1 … 100 */
	const char *gpu_resource, *vf_resource; /* their names bias the order */
};

struct stream_pod {
	size_t gpus, vfs;
	bool gpu_first;	     /* the order in which the kubelet walks its limits */
	const size_t *leave; /* the pods that leave before it comes, by number */
	size_t n_leave;
	size_t busy_gpus; /* those of the pod included */
};

struct stream {
	const struct stream_pod *pods;
	size_t n_pods;
};

/*
 * Pods of 1, 2, 4 and 8 GPUs with as many VFs, of 4 GPUs with 2 VFs and of 2 GPUs with 4 VFs; the
 * shapes that the machine cannot hold are left out. Before each one a load is drawn between the
 * bounds, and random pods leave until no more of the GPUs are busy and it has room. n_pods 0: the
 * machine can hold none.
 */
struct stream sim_stream_new(const struct stream_in *in, struct arena *arena);

/*
 * The order in which Go walks a small map, as the kubelet walks a container's limits
 * (docs/design/kubelet.md §1.3): eight cells filled in the order of insertion, from a random cell
 * on. A DeepCopy walks the map and inserts in that order.
 */
#define GOMAP_CELLS 8

/* items: as inserted; rearranged as one walk gives them after `copies` copies. At most GOMAP_CELLS.
 */
void sim_gomap_walk(uint64_t *random, int *items, size_t n, unsigned copies);

#endif
