/*
 * Do the pods of one job have the same rails on two nodes? The nodes have days of their own
 * (stream.h), and the nth pod of a size on one and the nth of that size on the other are one job.
 * Its score is how many VFs of each are on a rail on which the other has one, too.
 *
 * The worth of the rule of the lowest rails (align.h) shows where two nodes number their NICs in
 * different orders, as another firmware or slot does: without the rule, the choice among equally
 * near VFs goes by PCI address. So the score without it is that of a second node whose addresses
 * are in the opposite order.
 */
#ifndef RAILMATE_SIM_RAILS_INTERNAL_H
#define RAILMATE_SIM_RAILS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct node;
struct pool;
struct topo_rails;

struct rail_pod {
	size_t gpus;	 /* the pod's size is gpus and n_vfs */
	const int *rail; /* of each of its VFs, ascending; -1 unknown */
	size_t n_vfs;
};

/* The VFs that the pods of a day got, in the order of the pods; in an arena. */
struct rail_day {
	const struct node *node;
	const struct pool *pool;
	struct arena *arena;
	struct rail_pod *pods;
	size_t n, max; /* pods beyond max are not noted */
};

/* node: whose rails count, whatever was known of them when VFs were chosen. */
struct rail_day sim_rail_day_new(const struct node *node, const struct pool *pool, size_t max,
				 struct arena *arena);
/* vfs: pool indices. */
void sim_rail_day_note(struct rail_day *day, size_t gpus, const int *vfs, size_t n_vfs);
/* VFs of the jobs on the first node, and how many of them are on a rail of their peer. */
struct rail_score {
	size_t vfs, same;
};
struct rail_score sim_rail_days_compare(const struct rail_day *a, const struct rail_day *b,
					struct arena *arena);
/* Is any VF of the pool on a known rail? */
bool sim_rails_are_known(const struct node *node, const struct pool *pool);
/* Of the node's own NICs, such that the lowest rails are the highest addresses. topo_rails_free().
 */
struct topo_rails *sim_rails_against_addresses(const struct node *node);

#endif
