/*
 * A pool that has no device some time after the start, on a node that pools are meant for
 * (pool/empty.h), is told where operators look: by an Event about the node, reason PoolEmpty, one a
 * pool and start. An API server that is away is asked again later, one that does not allow it is
 * not; either is one line of the log. Nothing waits for it.
 */
#ifndef RAILMATE_DAEMON_EMPTYPOOLS_H
#define RAILMATE_DAEMON_EMPTYPOOLS_H

struct emptypools;
struct node;
struct specs_options;
struct uv_loop_s;

/* newest: the node as it is by then. seconds: after which it looks; again after twice as long where
 * the API server did not answer. who is borrowed: its node_name and service_account. [main thread,
 * as all of it] */
struct emptypools *emptypools_start(struct uv_loop_s *loop, const struct specs_options *who,
				    unsigned seconds, const struct node *(*newest)(void *ctx),
				    void *ctx);
void emptypools_stop(struct emptypools *e); /* before the loop is closed, with whose handles its own
					       go; NULL is fine */
void emptypools_free(struct emptypools *e); /* after it; NULL is fine */

#endif
