/*
 * Which VFs for which GPUs. Pure: numbers in, numbers out, deterministic, independent of input order
 * where the caller sorts (VFs and places come in address order).
 *
 * A *place* is where VFs sit on PCIe: their PF (or the VF itself when its PF is not visible). All VFs
 * of a place are equally far from everything.
 *
 * Objective, lexicographic:
 *  1. minimum total rank of a capacity-balanced assignment of max(g, v) pairs: every GPU and every
 *     chosen VF in at least one, loads of either side differing by at most one;
 *  2. fewest VFs beyond the first on one place (one VF per PF port, PFs spread);
 *  3. as few as possible of the GPUs that are still free lose their best place's VFs (keep VFs beside free GPUs);
 *  4. the same VF index on every place, where possible;
 *  5. lowest address.
 */
#ifndef RAILMATE_ALIGN_ALIGN_H
#define RAILMATE_ALIGN_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define ALIGN_RANKS 5 /* PIX 0, PXB 1, PHB 2, NODE 3, SYS 4 */

struct align_vf {
	int place;	/* index of its place */
	int index;	/* VF index on the PF; -1 unknown */
	bool must;	/* has to be chosen */
};

struct align_in {
	const struct align_vf *vfs;	size_t n_vfs;	/* the available ones, in address order */
	size_t n_places;
	size_t n_gpus;			/* the container's GPUs; 0: unknown */
	const uint8_t *gpu_rank;	/* n_gpus × n_places */
	size_t n_free;			/* GPUs that nobody holds (unknown GPUs of the container count among them) */
	const uint8_t *free_rank;	/* n_free × n_places */
	const uint8_t *place_rank;	/* n_places × n_places, 0 on the diagonal */
	const int *place_numa;		/* n_places; -1 unknown */
	size_t want;			/* how many VFs; clamped to n_vfs, at least the musts */
};

struct align_pair { int gpu, vf, rank; };

struct align_out {
	int *chosen;		size_t n_chosen;	/* indices into vfs, ascending */
	struct align_pair *pairs; size_t n_pairs;	/* sorted by GPU, then VF; none without GPUs */
	int cost;		/* total rank of pairs; without GPUs 0 */
};

/* Never fails; memory from the arena. */
struct align_out align_solve(const struct align_in *in, struct arena *arena);
/* The best choice that is not `best`'s multiset of places: n_chosen 0 when there is none. */
struct align_out align_runner_up(const struct align_in *in, const struct align_out *best, struct arena *arena);
/* The balanced assignment of exactly these VFs (indices into in->vfs) to the GPUs: the pairs and cost only. */
struct align_out align_assign(const struct align_in *in, const int *vfs, size_t n, struct arena *arena);

#endif
