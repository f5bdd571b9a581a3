/*
 * Whose GPUs? The kubelet never says for which pod it asks. By elimination (reference kubelet.md §3.3 b): the container under
 * admission is the one that has GPUs and none of our resource yet, in the pod that was not complete before. Pure.
 */
#ifndef RAILMATE_KUBELET_IDENTIFY_H
#define RAILMATE_KUBELET_IDENTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "kubelet/messages.h"

struct arena;
struct hw_inventory;

/*
 * What PodResources said when we last looked: which containers held GPUs and none of ours, which held ours, which pods
 * were there. A pod of the same name that came back (StatefulSet, Job) is told from the one before by what it holds.
 * One per resource, owned by the caller.
 */
struct seen_pods;
struct seen_pods *seen_pods_new(void);
void seen_pods_free(struct seen_pods *s); /* NULL is fine */
/* A look outside any admission (at start): everything listed is old. */
void seen_pods_note(struct seen_pods *s, const struct pod_list *pods, const char *resource, const struct hw_inventory *inv);

struct identified {
	bool found;		/* exactly one candidate */
	const char *ns, *pod, *container;	/* of it */
	int *gpus;		size_t n_gpus;		/* its GPUs: PCI indices, ascending */
	int *busy_gpus;		size_t n_busy_gpus;	/* every GPU that any other container holds */
	const char *why;	/* one sentence: why it was found or not (log, explain) */
};

/* want: the number of VFs asked for. must: ids the kubelet has already set aside (a reused init container's, or a NUMA-aligned part).
 * Updates seen. Results in the arena. */
struct identified identify_container(const struct pod_list *pods, const char *resource, size_t want, const struct ids *must,
				     const struct hw_inventory *inv, struct seen_pods *seen, struct arena *a);

#endif
