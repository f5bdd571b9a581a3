/*
 * Which binding a pool with "binding": "auto" gets. Pure. Late is right in whatever order the
 * kubelet asks, but does harm where a container then starts without its VFs, or where a CNI plugin
 * is handed a slot that it cannot read. So: late where all that it needs is known to be there, else
 * early. A pool that containers hold something of stays as it is: their ids would mean nothing in
 * the other binding.
 */
#ifndef RAILMATE_DAEMON_BINDING_INTERNAL_H
#define RAILMATE_DAEMON_BINDING_INTERNAL_H

#include <stdbool.h>

#include "config/config.h"
#include "kubemsg/messages.h"

struct autobind;
struct config;
struct daemon_options;
struct ledger;
struct podres;
struct rpc;
struct uv_loop_s;

/* Obstacles to late binding on this node, each a clause for the log; NULL: there is none, and that
 * is known. */
struct binding_facts {
	const char *cdi;     /* the directory, or a flag of the command line */
	const char *kubelet; /* it passes CDI devices on, and shows which container starts */
	const char *runtime; /* it does CDI */
	const char *cni;     /* no CNI plugin is handed device ids */
};

enum binding_held { BINDING_HELD_NOTHING, BINDING_HELD_EARLY, BINDING_HELD_LATE };

/* What containers have, by all who know of it. A slot is in no ledger before its container starts,
 * and a container that has not started has no process by which the checkpoint's entry would count.
 */
struct binding_view {
	const struct ledger *ledger; /* NULL: there is none */
	struct ids promised;	     /* slots that have no VF yet */
	struct pod_list checkpoint;  /* the kubelet's (kubeclient/checkpoint.h) */
};
/* The ids that containers have of this pool. */
enum binding_held binding_held(const struct binding_view *view, const char *resource);
/* Would these ids mean nothing with this binding? */
bool binding_breaks(enum binding_held held, enum pool_binding binding);

/* facts: NULL is fine where something is held. ret_why: a clause, static or one of facts. */
enum pool_binding binding_decide(const struct binding_facts *facts, enum binding_held held,
				 enum pool_network network, const char **ret_why);

/*
 * Pools with "binding": "auto" get one: binding_decide() does it, by the facts of the node
 * and by the VFs that containers have of the pool. Nothing is asked while no such pool is open.
 * Main thread, unless noted.
 */

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
/* Decides for the pools of cfg before any of them is offered, by ledger and slots (struct
 * binding_view) and the kubelet's checkpoint. False: a fact that it depends on is not known yet;
 * env.known() follows. */
bool autobind_pools(struct autobind *a, struct config *cfg, const struct ledger *ledger,
		    const struct ids *promised);
/* cfg with another decision for pools that are bound as they are for what containers held, of which
 * they hold nothing any more, and for those that a container got something of by the other binding
 * while they were decided anew; NULL: there are none. */
struct config *autobind_anew(struct autobind *a, const struct config *cfg,
			     const struct ledger *ledger, const struct ids *promised);
/* A pool that is the same as before keeps its binding: the kubelet knows its devices by these ids.
 */
void autobind_inherit(const struct config *before, struct config *next);
/* Is the decision still right? Multus may be installed after pools were bound, on a new node within
 * seconds. */
void autobind_check(struct autobind *a, const struct config *cfg);
void autobind_close(struct autobind *a); /* [rpc thread]; NULL is fine, here and below */
void autobind_free(struct autobind *a);	 /* when the loop is closed and the rpc thread has ended */

#endif
