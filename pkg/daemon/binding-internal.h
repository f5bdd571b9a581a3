/*
 * Which binding a pool with "binding": "auto" gets. Pure. Late is right in whatever order the
 * kubelet asks, but does harm where a container then starts without its VFs, or where a CNI plugin
 * is handed a slot that it cannot read. So: late where all that it needs is known to be there, else
 * early. A pool that containers hold something of stays as it is: their ids would mean nothing in
 * the other binding.
 */
#ifndef RAILMATE_DAEMON_BINDING_INTERNAL_H
#define RAILMATE_DAEMON_BINDING_INTERNAL_H

#include "config/config.h"

struct ledger;
struct pod_list;

/* Obstacles to late binding on this node, each a clause for the log; NULL: there is none, and that
 * is known. */
struct binding_facts {
	const char *cdi;     /* the directory, or a flag of the command line */
	const char *kubelet; /* it passes CDI devices on, and shows which container starts */
	const char *runtime; /* it does CDI */
	const char *cni;     /* no CNI plugin is handed device ids */
};

enum binding_held { BINDING_HELD_NOTHING, BINDING_HELD_EARLY, BINDING_HELD_LATE };

/* The ids that containers have of this pool: by the ledger (NULL: there is none) and by the
 * kubelet's checkpoint (kubeclient/checkpoint.h), which has slots of containers that have not
 * started, too. */
enum binding_held binding_held(const struct ledger *ledger, const struct pod_list *checkpoint,
			       const char *resource);

/* facts: NULL is fine where something is held. ret_why: a clause, static or one of facts. */
enum pool_binding binding_decide(const struct binding_facts *facts, enum binding_held held,
				 enum pool_network network, const char **ret_why);

#endif
