/*
 * Knowledge from before this start: the ledger of --state-dir. Opened on the main thread; given to
 * the rpc thread as a tracker.
 */
#ifndef RAILMATE_DAEMON_STATE_INTERNAL_H
#define RAILMATE_DAEMON_STATE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pool/node.h"

struct config;
struct err;
struct holdings;
struct ids;
struct ledger;
struct ledger_file;
struct node;
struct node_seed;
struct rdma_users;
struct rpc;
struct sysroot;
struct tracker;
struct tracker_env;
struct unlisted;
struct uv_loop_s;

struct state {
	struct ledger *ledger;	  /* NULL: there was none that could be read */
	struct ledger_file *file; /* NULL: memory only */
	const char *away;	  /* the directory, borrowed, if it could not be opened */
	struct rdma_users *users; /* NULL: open devices are not seen */
	struct node_seed *seeds;  /* the holds; the strings are the ledger's */
	size_t n_seeds;
};

/* dir NULL: memory only. One that cannot be used is logged and tried again later. -EBUSY, with a
 * sentence that names the other daemon: it has the ledger; ret then is as before, and may be tried
 * again. ret is zeroed, or comes from state_peek(). */
int state_open(struct state *ret, const char *dir, const struct sysroot *root, struct err *err);
/* Another daemon has the ledger of dir: its present holds become the seeds. A ledger that cannot be
 * read is an empty one. */
void state_peek(struct state *ret, const char *dir);
/* Does the node list all that was held? VFs may be out of sight (in a pod's network). */
bool state_is_in(const struct state *s, const struct node *node);
/* The ledger and its file go to the tracker, whose notes are logged. users stays here. env: the
 * daemon's part of it. On the rpc thread. */
struct tracker *state_make_tracker(struct state *s, const struct tracker_env *env);
void state_close(struct state *s); /* when the rpc thread has ended */

/*
 * VFs that a container holds and no pool lists, because their RDMA device is out of sight in its
 * network namespace and the ledger was lost: handed by the rpc thread, which gets them from the
 * kubelet, to the main thread, which makes the node.
 */

/* came: on the main thread, after some were added. The handle goes with the loop's others. */
struct unlisted *unlisted_new(struct uv_loop_s *loop, void (*came)(void *ctx), void *ctx);
void unlisted_add(struct unlisted *u, const struct node_seed *seed); /* copied [rpc thread] */
/* All that came so far, also before; none is taken back. Until the next call [main thread] */
const struct node_seed *unlisted_seeds(struct unlisted *u, size_t *ret_n);
/* When the loop is closed and the rpc thread has ended; NULL is fine */
void unlisted_free(struct unlisted *u);

/*
 * The VFs that containers hold, for the main thread: a copy of the ledger, when the main thread
 * asks or the rpc thread finds that the node lists something that no container holds any more.
 */

/* came: on the main thread, with the newest copy (its own; lives until the return). promised: the
 * slots that containers have without a VF, which are in no ledger. */
struct holdings *holdings_new(struct uv_loop_s *loop, struct rpc *rpc,
			      void (*came)(void *ctx, const struct ledger *held,
					   const struct ids *promised),
			      void *ctx);
/* came follows, unless the rpc thread is stopping or has no tracker yet. [main thread] */
void holdings_ask(struct holdings *h);

/* tracker: NULL: none any more. [rpc thread, as the next ones] */
void holdings_follow(struct holdings *h, struct tracker *tracker);
/* May this node be published? Not if it was made of an old copy, and a VF that was given since is
 * not in its pool any more, or its id means nothing to it: came follows with a newer one. */
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
