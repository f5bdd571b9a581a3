/* Shared by the files of the room, and its tests. */
#ifndef RAILMATE_PODS_PODS_INTERNAL_H
#define RAILMATE_PODS_PODS_INTERNAL_H

#include "pods/gpus.h"
#include "pods/identify.h"

/* --- pods and specs as they were seen: identify.c, identify_specs.c --- */

struct names {
	const char **v; /* sorted */
	size_t n;
};

struct seen_specs {
	struct arena *arena; /* NULL: nothing was seen yet */
	/* Containers that did not get the devices that they wait for when another one did, and that
	 * one; and pods whose containers are not known */
	const char **waiting;
	size_t n;
};

struct seen_pods {
	struct arena *arena;
	struct names gpu_only; /* containers with GPUs and none of ours, by name and GPUs */
	struct names holders;  /* containers with some of ours, by name and ids */
	struct names pods;     /* every pod of the list */
	const char *answered;  /* the one that was found then, as in gpu_only; NULL */
	struct seen_specs specs;
};

/* Notes that one of the candidates was answered, or a pod whose containers are not known. */
void pods_note_candidates(struct seen_specs *seen, const struct spec_candidates *c,
			  const struct pod_list *held);
/* The container by pod specs; q has a candidate. */
struct identified pods_first_candidate(const struct pod_list *pods, const struct pods_question *q,
				       const struct hw_inventory *inv, struct seen_pods *seen,
				       struct arena *a);
/* The number of devices of a resource that a container asks for. */
int64_t pods_wants(const struct spec_container *c, const char *resource);
/* Does the resource, or DRA driver, give GPUs or parts of GPUs? */
bool pods_gives_gpus(const char *name);
/* The GPUs of a container, but those that come as `except`: PCI indices, ascending, each once. */
struct gpu_set pods_gpus_but(const struct pod_container *c, const char *except,
			     const struct hw_inventory *inv, struct arena *a);
/* The GPUs of all containers but this one (NULL: of all): PCI indices, ascending, each once. */
struct gpu_set pods_busy_gpus(const struct pod_list *pods, const struct pod_container *but,
			      const struct hw_inventory *inv, struct arena *a);
const struct pod_container *pods_find_container(const struct pod *pod,
						const char *container); /* NULL: not in it */

#endif
