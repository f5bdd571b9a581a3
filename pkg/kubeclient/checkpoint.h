/*
 * The kubelet's checkpoint: the only place that shows the devices of regular init containers, and
 * the UIDs of pods (docs/design/kubelet.md §1.6). A private format without promise: a hint, for
 * facts that PodResources does not show.
 */
#ifndef RAILMATE_KUBECLIENT_CHECKPOINT_H
#define RAILMATE_KUBECLIENT_CHECKPOINT_H

#include "kubemsg/messages.h"

struct arena;
struct err;

/* Pods are named by their UIDs, their namespace is "". path NULL: none. Unreadable or strange:
 * none, and err (may be NULL) has the reason. */
struct pod_list kubeclient_checkpoint(const char *path, struct arena *a, struct err *err);
/* The kubelet's other checkpoint: ResourceClaims, each from before it is prepared until it has been
 * unprepared, with the pods that it is prepared for. */
struct prepared {
	const char *claim; /* UIDs */
	struct ids pods;
};
struct prepared_list {
	const struct prepared *v;
	size_t n;
};
/* False: unreadable or strange; err (may be NULL) has the reason. */
bool kubeclient_prepared(const char *path, struct arena *a, struct prepared_list *ret,
			 struct err *err);

#endif
