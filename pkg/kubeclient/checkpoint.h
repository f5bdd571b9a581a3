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
/* The text of the kubelet's other checkpoint, of ResourceClaims. Whatever its layout, it has the
 * UID of each claim from before the claim is prepared until it has been unprepared. NULL:
 * unreadable or strange. */
const char *kubeclient_dra_state(const char *path, struct arena *a, struct err *err);

#endif
