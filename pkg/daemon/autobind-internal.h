/*
 * Pools with "binding": "auto" get one: binding-internal.h decides, by the findings of
 * evidence-internal.h and by the VFs that containers have of the pool. Nothing is asked while no
 * such pool is open. Main thread, unless noted.
 */
#ifndef RAILMATE_DAEMON_AUTOBIND_INTERNAL_H
#define RAILMATE_DAEMON_AUTOBIND_INTERNAL_H

#include <stdbool.h>

struct autobind;
struct config;
struct daemon_options;
struct ledger;
struct podres;
struct rpc;
struct uv_loop_s;

/* All borrowed. */
struct autobind_env {
	struct uv_loop_s *loop;
	struct rpc *rpc;
	const struct daemon_options *opt;
	const char *checkpoint; /* the kubelet's, a path */
	struct podres *(*open_podres)(void *ctx);
	void (*known)(void *ctx); /* autobind_pools() can decide now */
	void *ctx;
};

struct autobind *autobind_new(const struct autobind_env *env);
/* Begins to ask for the evidence, once, if a pool of cfg is open. */
void autobind_ask(struct autobind *a, const struct config *cfg);
/* Decides for the pools of cfg before any of them is offered, with the ledger (NULL: there is
 * none). False: a fact that it depends on is not known yet; env.known() follows. */
bool autobind_pools(struct autobind *a, struct config *cfg, const struct ledger *ledger);
/* cfg with another decision for pools of which containers held slots, and hold nothing any more;
 * NULL: there are none. */
struct config *autobind_anew(struct autobind *a, const struct config *cfg,
			     const struct ledger *ledger);
/* A pool that is the same as before keeps its binding: the kubelet knows its devices by these ids.
 */
void autobind_inherit(const struct config *before, struct config *next);
/* Is the decision still right? Multus may be installed after pools were bound, on a new node within
 * seconds. */
void autobind_check(struct autobind *a, const struct config *cfg);
void autobind_close(struct autobind *a); /* [rpc thread]; NULL is fine, here and below */
void autobind_free(struct autobind *a);	 /* when the loop is closed and the rpc thread has ended */

#endif
