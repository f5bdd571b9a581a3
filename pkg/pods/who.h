/* The container that starts: PreStartContainer names only device ids, a list of pods has the
 * container with them. Pure. */
#ifndef RAILMATE_PODS_WHO_H
#define RAILMATE_PODS_WHO_H

#include <stddef.h>

#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"

struct arena;
struct node;

/* A pod, as far as it is known (a CNI plugin names it in CNI_ARGS; the kubelet never does). */
struct pod_ref {
	const char *ns, *name, *uid;
};

struct target {
	struct ledger_owner owner; /* strings as in the list */
	struct ids slots;	   /* all of late pools that it has, sorted */
	struct gpu_set gpus;	   /* ascending; its own, or those of its pod when it has none */
	struct gpu_set busy_gpus;  /* of others */
	const struct pod_container *container; /* NULL: an init container that no list shows */
	/* Some of the GPUs may be those of other containers of the pod, a sentence; NULL: none */
	const char *doubt;
};

/* A container of a pod list that has the slots. */
struct candidate {
	const struct pod *pod;
	const struct pod_container *container; /* NULL: an init container, which no list shows */
};

/*
 * The containers that hold these slots. More than one: the kubelet has given them away twice
 * (docs/design/kubelet.md §2.2). None: only regular init containers hold them, or the list is older
 * than they are.
 */
size_t pods_with_slots(const struct node *node, const struct pod_list *pods,
		       const struct ids *slots, const struct pod_ref *pod, struct arena *a,
		       struct candidate **ret);
struct target pods_target(const struct node *node, const struct pod_list *pods,
			  const struct candidate *c, const struct ids *slots, struct arena *a);

#endif
