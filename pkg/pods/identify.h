/*
 * Whose GPUs? The kubelet never says for which pod it asks. By elimination: with pod specs
 * (docs/design/kubelet.md §3.3 a) the container under admission is one that asks for exactly this
 * many of our resource and holds none of it yet; without (§3.3 b) the one that has GPUs and none of
 * ours, in the pod that was not complete before. Pure.
 */
#ifndef RAILMATE_PODS_IDENTIFY_H
#define RAILMATE_PODS_IDENTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "kubemsg/messages.h"

struct arena;
struct hw_inventory;
struct spec_container;
struct spec_list;
struct spec_pod;

/*
 * What PodResources said when we last looked: which containers held GPUs and none of ours, which
 * held ours, which pods were there. A pod of the same name that came back (StatefulSet, Job) is
 * told from the one before by what it holds. One per resource, owned by the caller.
 */
struct seen_pods;
struct seen_pods *seen_pods_new(void);
void seen_pods_free(struct seen_pods *s); /* NULL is fine */
/* A look outside any admission (at start): everything listed is old. */
void seen_pods_note(struct seen_pods *s, const struct pod_list *pods, const char *resource,
		    const struct hw_inventory *inv);
/* That look may have been within the admission of the next container to ask: when nobody else is
 * new, those that it showed are. */
void seen_pods_doubt(struct seen_pods *s);

struct identified {
	bool found;			  /* exactly one candidate */
	bool ambiguous;			  /* several */
	const char *ns, *pod, *container; /* of it */
	int *gpus;
	size_t n_gpus; /* its GPUs: PCI indices, ascending */
	int *busy_gpus;
	size_t n_busy_gpus; /* every GPU that any other container holds */
	const char *why;    /* one sentence: why it was found or not (log, explain) */
	size_t n_drawn; /* not found: so many GPUs are still to come, and nobody has a preference
			   which; 0: not known */
	/* With specs: */
	const char *uid;		   /* of the pod; NULL: not known */
	const struct spec_container *spec; /* what it asks for; NULL: not known */
};

/* want: the number of VFs asked for. must: ids the kubelet has already set aside (a reused init
 * container's, or a NUMA-aligned part). Updates seen. Results in the arena. */
struct identified identify_container(const struct pod_list *pods, const char *resource, size_t want,
				     const struct ids *must, const struct hw_inventory *inv,
				     struct seen_pods *seen, struct arena *a);

/* --- with pod specs --- */

struct spec_candidate {
	const struct spec_pod *pod;
	const struct spec_container *container;
	bool stale; /* it was there and waited already when another one was found: it will not ask
		       any more */
};
struct spec_candidates {
	struct spec_candidate *v;
	size_t n;
};

/* Candidates of earlier calls. One per resource, owned by the caller. */
struct seen_specs;
struct seen_specs *seen_specs_new(void);
void seen_specs_free(struct seen_specs *s); /* NULL is fine */

/*
 * held, here and below, is in the order of names, as holders_view() is. Containers, the likeliest
 * first (not stale, then the newest pod), that ask for `want` of the resource and hold none of it,
 * as far as `held` tells; whose pod is neither over nor deleted; and whose pod's earlier containers
 * have theirs. reused: the kubelet has set aside devices of an earlier container of the same pod,
 * so the pod's first one is not meant. complete: held is a List, a pod that is not in it is not
 * admitted yet.
 */
struct spec_candidates identify_candidates(const struct spec_list *specs,
					   const struct pod_list *held, bool complete,
					   const char *resource, size_t want, bool reused,
					   const struct seen_specs *seen, struct arena *a);
/* The first candidate is the one. held: what it holds, and everybody else. Updates seen. */
struct identified identify_by_specs(const struct spec_candidates *candidates,
				    const struct pod_list *held, const char *resource,
				    const struct hw_inventory *inv, struct seen_specs *seen,
				    struct arena *a);

/* In the order of names, which identify_spec() needs; as identify_sorted_pod() does: that of
 * holders_view(). */
struct spec_list identify_copy_specs(const struct spec_list *specs, struct arena *a);
void identify_sort(struct pod *pods, size_t n);
const struct spec_pod *identify_spec(const struct spec_list *specs, const char *ns,
				     const char *name); /* NULL: not in it */
/* How many of a resource a container asks for. */
int64_t identify_asked(const struct spec_container *c, const char *resource);
/* What a container holds of a resource; NULL nothing. */
const struct ids *identify_held(const struct pod_container *c, const char *resource);
/* The GPUs of a container, but those that come as `except`: PCI indices, ascending, each once. */
size_t identify_gpus(const struct pod_container *c, const char *except,
		     const struct hw_inventory *inv, struct arena *a, int **ret);
size_t identify_unique(int *v, size_t n); /* sorts; how many are left when each is there once */
/* NULL: not in it; of what identify_sort() has sorted. */
const struct pod *identify_sorted_pod(const struct pod_list *pods, const char *ns,
				      const char *name);
const struct pod_container *identify_named(const struct pod *pod,
					   const char *container); /* NULL: not in it */

#endif
