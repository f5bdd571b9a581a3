/*
 * Knowledge from before this start: the ledger of --state-dir. Opened on the main thread; given to
 * the rpc thread as a tracker.
 */
#ifndef RAILMATE_DAEMON_STATE_INTERNAL_H
#define RAILMATE_DAEMON_STATE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pool/node.h"

struct err;
struct tracker;
struct tracker_env;
struct ledger;
struct ledger_file;
struct rdma_users;
struct sysroot;

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

#endif
