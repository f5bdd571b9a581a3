/*
 * The VFs that containers hold, for the main thread: a copy of the ledger, when the main thread
 * asks or the rpc thread finds that the node lists something that no container holds any more.
 */
#ifndef RAILMATE_DAEMON_HOLDINGS_INTERNAL_H
#define RAILMATE_DAEMON_HOLDINGS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct holdings;
struct ledger;
struct node;
struct node_seed;
struct rpc;
struct tracker;
struct uv_loop_s;

/* came: on the main thread, with the newest copy (its own; lives until the return). */
struct holdings *holdings_new(struct uv_loop_s *loop, struct rpc *rpc,
			      void (*came)(void *ctx, const struct ledger *held), void *ctx);
/* came follows, unless the rpc thread is stopping or has no tracker yet. [main thread] */
void holdings_ask(struct holdings *h);

/* tracker: NULL: none any more. [rpc thread, as the next ones] */
void holdings_follow(struct holdings *h, struct tracker *tracker);
/* May this node be published? Not if it was made of an old copy, and a VF that was given since is
 * not in its pool any more: came follows with a newer one. */
bool holdings_permits(struct holdings *h, const struct node *node);
/* The node was published. came follows when a device left over in it is free. */
void holdings_published(struct holdings *h, struct node *node);

/* All that containers hold, for a node (held_only); of the copy's strings. Heap. [any thread] */
struct node_seed *holdings_seeds(const struct ledger *held, size_t *ret_n);
/* For config_retire(): pools of `before` that `next` does not have, and that are held. Heap. [any
 * thread] */
bool *holdings_retired(const struct ledger *held, const struct config *before,
		       const struct config *next);
void holdings_free(struct holdings *h); /* when the loop is closed and the rpc thread has ended */

#endif
