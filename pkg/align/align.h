/*
 * The choice of VFs for GPUs. Pure: numbers in, numbers out, deterministic, independent of input
 * order where the caller sorts (VFs and places come in the order of rails, then addresses).
 *
 * A *place* is where VFs sit on PCIe: their PF (or the VF itself when its PF is not visible). All
 * VFs of a place are equally far from everything.
 *
 * Objective, lexicographic:
 *  1. minimum total rank of a capacity-balanced assignment of max(g, v) pairs: every GPU and every
 *     chosen VF in at least one, loads of either side differing by at most one; among equals the
 *     GPU that is worst off first: as few GPUs as possible whose best VF is of the last rank, then
 *     of the one before, and so on;
 *  2. fewest VFs beyond the first on one place (one VF per PF port, PFs spread);
 *  3. keep VFs beside the free GPUs: as few as possible of the n_free GPUs remain without a VF of
 *     their own, left over at a place that is nearest to them now (a maximum matching);
 *  4. among places that are equal in all this, those with a VF left whose port is up, then those
 *     with the most VFs left (containers spread over PFs), round by round: no place gets its second
 *     VF before the others have their first; of a place, VFs whose port is up before those whose
 *     port is down;
 *  5. the same VF index on every place, where possible; then the lowest index;
 *  6. lowest rail, plane and address: first in the caller's order.
 * Terms 1 to 3 are exactly optimal when v >= g, whatever the ranks, and when v < g on machines
 * whose distances nest, as those of a PCIe tree do. When v < g and they do not nest (unknown NUMA
 * nodes), they are as long as the search ends within ALIGN_SEARCH_LEAVES assignments, which it does
 * on anything small; beyond, the answer is the best one seen. 4 to 6 are deterministic choices,
 * made one after the other.
 *
 * Without GPUs (n_gpus 0) the GPUs are predicted. The candidates are *zones*: the sets of places
 * that are connected by a rank of at most PXB (switches), PHB (root complex), NODE, and all places.
 * A free GPU is at home in a zone that holds every place nearest to it. Zones with enough VFs are
 * compared by
 *  a. fewest must VFs outside;
 *  b. most GPUs at home, counted up to v;
 *  c. fewest GPUs at home (whole groups of GPUs stay free);
 *  d. inside one NUMA node;
 *  e. fewest VFs beyond the first on one place;
 *  f. the tightest kind of zone;
 *  g. lowest rail and address.
 * In the best zone the VFs are chosen as for its GPUs at home: each VF beside a GPU of its own as
 * long as there are enough (total rank), then terms 2 and 4 to 6.
 *
 * When the GPUs are drawn at random (`drawn` of the n_free, each set as likely as any other)
 * nothing is gained by a guess where they will be together: term 1 is the *expected* total rank
 * then, followed by terms 2 and 4 to 6. Exact when distances nest and of the numbers of VFs and
 * GPUs one divides the other. Up to ALIGN_DRAWN_MAX VFs; more are chosen by zones.
 */
#ifndef RAILMATE_ALIGN_ALIGN_H
#define RAILMATE_ALIGN_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define ALIGN_RANKS	    5 /* PIX 0, PXB 1, PHB 2, NODE 3, SYS 4 */
#define ALIGN_SEARCH_LEAVES 5000
#define ALIGN_DRAWN_MAX	    64

struct align_vf {
	int place; /* index of its place */
	int index; /* VF index on the PF; -1 unknown */
	bool must; /* has to be chosen */
	bool down; /* its port is known not to be ACTIVE: NCCL would leave it out */
};

struct align_in {
	const struct align_vf *vfs;
	size_t n_vfs; /* the available ones, by rail and address */
	size_t n_places;
	size_t n_gpus;		 /* the container's GPUs; 0: unknown */
	const uint8_t *gpu_rank; /* n_gpus × n_places */
	/* GPUs that no container holds (unknown GPUs of the container count among them) */
	size_t n_free;
	const uint8_t *free_rank; /* n_free × n_places */
	/* n_places × n_places, 0 on the diagonal; read without GPUs only, NULL: one zone */
	const uint8_t *place_rank;
	size_t want; /* how many VFs; clamped to n_vfs, at least the musts */
	/* Without GPUs: how many of the free ones will be drawn at random; 0: not known, or not at
	 * random */
	size_t drawn;
};

struct align_pair {
	int gpu, vf, rank;
};

struct align_out {
	int *chosen;
	size_t n_chosen; /* indices into vfs, ascending */
	struct align_pair *pairs;
	size_t n_pairs; /* sorted by GPU, then VF; none without GPUs */
	int cost;	/* total rank of pairs; without GPUs 0 */
};

/* Never fails; memory from the arena. */
struct align_out align_solve(const struct align_in *in, struct arena *arena);
/* The best choice that is not `best`'s multiset of places: n_chosen 0 when there is none. */
struct align_out align_runner_up(const struct align_in *in, const struct align_out *best,
				 struct arena *arena);
/*
 * The balanced assignment of exactly these VFs (indices into in->vfs, ascending) to the GPUs: the
 * pairs and cost only. Among assignments of equal cost the lower GPU gets the lower VF.
 */
struct align_out align_assign(const struct align_in *in, const int *vfs, size_t n,
			      struct arena *arena);

#endif
