/*
 * VFs first, and the GPUs drawn at random: how good can any choice be?
 *
 * The kubelet draws the k GPUs of a container evenly among its free ones when their plugin has no
 * GetPreferredAllocation, after the VFs were chosen. So whatever rule chooses the VFs V, with or
 * without randomness of its own, the expected number of pairs at their best class (score.h) is the
 * mean over all sets G of k free GPUs of best(V, G), and no rule can expect more from this decision
 * than the largest such mean over all V that are free. Both are computed here by enumeration. Added
 * up over the decisions of a day they show the expectation of the rule in use, and the bound that
 * no rule can beat on these decisions.
 */
#ifndef RAILMATE_TESTS_SIM_BOUND_H
#define RAILMATE_TESTS_SIM_BOUND_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct bound;
struct node;
struct pool;

#define BOUND_GPUS_MAX 16
#define BOUND_WORK_MAX 100000 /* choices of VFs × sets of GPUs; beyond, nothing is computed */

struct bound_in {
	const int *free_gpus;
	size_t n_free_gpus; /* positions in sim_bound_new()'s list */
	const int *free_vfs;
	size_t n_free_vfs; /* pool indices */
	const int *chosen;
	size_t n_chosen; /* pool indices, of the free ones */
	size_t gpus;	 /* how many are drawn */
};

/* gpus: PCI indices. Remembers its results; in the arena. */
struct bound *sim_bound_new(const struct node *node, const struct pool *pool, const int *gpus,
			    size_t n_gpus, struct arena *arena);
/* Pairs: expected of `chosen`, and of the best choice. false: too many to enumerate. */
bool sim_bound_judge(struct bound *b, const struct bound_in *in, double *ret_expected,
		     double *ret_bound);

#endif
