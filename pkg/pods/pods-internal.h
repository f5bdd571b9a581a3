/* What the files of the room share, and its tests. */
#ifndef RAILMATE_PODS_PODS_INTERNAL_H
#define RAILMATE_PODS_PODS_INTERNAL_H

#include "pods/gpus.h"
#include "pods/identify.h"

/* --- what was seen of pods and of specs: identify.c, identify_specs.c --- */

struct names {
	const char **v; /* sorted */
	size_t n;
};

struct seen_specs {
	struct arena *arena; /* NULL: nothing was seen yet */
	/* That did not get what they wait for when another container did, and that one; and pods
	 * whose containers are not known */
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

/* When one of them was answered, or a pod whose containers are not known. */
void pods_note_candidates(struct seen_specs *seen, const struct spec_candidates *c,
			  const struct pod_list *held);
/* The one by pod specs: q has a candidate. */
struct identified pods_first_candidate(const struct pod_list *pods, const struct pods_question *q,
				       const struct hw_inventory *inv, struct seen_pods *seen,
				       struct arena *a);
/* How many of a resource a container asks for. */
int64_t pods_wants(const struct spec_container *c, const char *resource);
/* Does the resource, or DRA driver, give GPUs or parts of GPUs? */
bool pods_gives_gpus(const char *name);
/* The GPUs of a container, but those that come as `except`: PCI indices, ascending, each once. */
struct gpu_set pods_gpus_but(const struct pod_container *c, const char *except,
			     const struct hw_inventory *inv, struct arena *a);
/* Those of all containers but this one (NULL: of all), likewise. */
struct gpu_set pods_busy_gpus(const struct pod_list *pods, const struct pod_container *but,
			      const struct hw_inventory *inv, struct arena *a);
const struct pod_container *pods_find_container(const struct pod *pod,
						const char *container); /* NULL: not in it */

#endif
