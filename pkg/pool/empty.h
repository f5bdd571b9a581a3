/* A pool without a device on this node: a mistake, or a node that the pool is not meant for? */
#ifndef RAILMATE_POOL_EMPTY_H
#define RAILMATE_POOL_EMPTY_H

#include <stdbool.h>

struct hw_inventory;
struct node;
struct pool;
struct strbuf;

/* Are pools meant for such a node? It has VFs with RDMA devices; or GPUs, and cards with RDMA that
 * could have VFs. */
bool pool_is_meant_for(const struct hw_inventory *inv);
/* Is there nothing here for any pool? None has a device, and they are not meant for such a node. */
bool pool_is_idle(const struct node *node);
/* The explanation of a pool without devices, for the operator: the cards that it names and are not
 * here, and those that are. One paragraph. */
void pool_say_empty(const struct node *node, const struct pool *pool, struct strbuf *out);

#endif
