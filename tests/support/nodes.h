/* node_make() of what most tests need of it. */
#ifndef RAILMATE_TESTS_SUPPORT_NODES_H
#define RAILMATE_TESTS_SUPPORT_NODES_H

#include <stddef.h>

#include "pool/node.h"

/* inv is taken; previous may be NULL. */
struct node *node_new(struct hw_inventory *inv, const struct config *cfg,
		      const struct node *previous);
struct node *node_new_seeded(struct hw_inventory *inv, const struct config *cfg,
			     const struct node *previous, const struct node_seed *seeds, size_t n);
/* With held_only. */
struct node *node_new_held(struct hw_inventory *inv, const struct config *cfg,
			   const struct node *previous, const struct node_seed *held, size_t n);

#endif
