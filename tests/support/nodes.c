#include "support/nodes.h"

struct node *node_new(struct hw_inventory *inv, const struct config *cfg,
		      const struct node *previous)
{
	return node_make(inv, &(struct node_parts) { .cfg = cfg, .previous = previous });
}

struct node *node_new_seeded(struct hw_inventory *inv, const struct config *cfg,
			     const struct node *previous, const struct node_seed *seeds, size_t n)
{
	return node_make(inv,
			 &(struct node_parts) {
				 .cfg = cfg, .previous = previous, .seeds = seeds, .n_seeds = n });
}

struct node *node_new_held(struct hw_inventory *inv, const struct config *cfg,
			   const struct node *previous, const struct node_seed *held, size_t n)
{
	return node_make(inv, &(struct node_parts) { .cfg = cfg,
						     .previous = previous,
						     .seeds = held,
						     .n_seeds = n,
						     .held_only = true });
}
