/*
 * The kubelet's checkpoint: the only place that shows what regular init containers hold, and the
 * UIDs of pods (docs/design/kubelet.md §1.6). A private format without promise: a hint, for what
 * PodResources does not show.
 */
#ifndef RAILMATE_KUBECLIENT_CHECKPOINT_H
#define RAILMATE_KUBECLIENT_CHECKPOINT_H

#include "kubemsg/messages.h"

struct arena;
struct err;

/* Pods are named by their UIDs, their namespace is "". path NULL: none. Unreadable or strange:
 * none, and err (may be NULL) says why. */
struct pod_list kubeclient_checkpoint(const char *path, struct arena *a, struct err *err);

#endif
