/*
 * VFs that a container holds and no pool lists, because their RDMA device is out of sight in its
 * network namespace and the ledger was lost: handed by the rpc thread, which gets them from the
 * kubelet, to the main thread, which makes the node.
 */
#ifndef RAILMATE_DAEMON_UNLISTED_INTERNAL_H
#define RAILMATE_DAEMON_UNLISTED_INTERNAL_H

#include <stddef.h>

struct node_seed;
struct unlisted;
struct uv_loop_s;

/* came: on the main thread, after some were added. The handle goes with the loop's others. */
struct unlisted *unlisted_new(struct uv_loop_s *loop, void (*came)(void *ctx), void *ctx);
void unlisted_add(struct unlisted *u, const struct node_seed *seed); /* copied [rpc thread] */
/* All that came so far, also before; none is taken back. Until the next call [main thread] */
const struct node_seed *unlisted_seeds(struct unlisted *u, size_t *ret_n);
/* When the loop is closed and the rpc thread has ended; NULL is fine */
void unlisted_free(struct unlisted *u);

#endif
