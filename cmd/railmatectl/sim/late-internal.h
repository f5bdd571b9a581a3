/* The VFs that the daemon would bind to the slots of a container (choice/choice.h), without the
 * daemon. */
#ifndef RAILMATE_SIM_LATE_INTERNAL_H
#define RAILMATE_SIM_LATE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/inventory.h"
#include "kubemsg/messages.h"

struct arena;
struct node;
struct pool;

struct late_in {
	const struct node *node;
	const struct pool *pool;
	const struct ids *slots;
	struct gpu_set gpus, busy_gpus;
	const bool *is_free; /* by pool index */
};

/* Pool indices, one for each slot, in the arena; NULL: too few VFs are free. */
int *sim_late_bind(const struct late_in *in, struct arena *arena);

#endif
