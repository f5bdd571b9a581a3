/*
 * The container that a call of the kubelet is for, and its GPUs. The kubelet does not name the pod,
 * so the container is found by elimination, and a guess is called one: with pod specs
 * (docs/design/kubelet.md §3.3 a) the container under admission is one that asks for exactly this
 * many of our resource and holds none of it yet; without (§3.3 b) the one that has GPUs and none of
 * ours, in the pod that was not complete before. Pure.
 */
#ifndef RAILMATE_PODS_IDENTIFY_H
#define RAILMATE_PODS_IDENTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"

struct arena;
struct hw_inventory;
struct spec_container;
struct spec_list;
struct spec_pod;

/*
 * The last answer of PodResources: containers that held GPUs and none of ours, those that held
 * ours, and the pods. A pod of the same name that came back (StatefulSet, Job) is distinguished
 * from the one before by its devices. One per resource, owned by the caller.
 */
struct seen_pods;
void pods_seen_free(struct seen_pods *s); /* NULL is fine */

struct identified {
	bool found;		   /* exactly one candidate */
	bool ambiguous;		   /* several */
	struct ledger_owner owner; /* that one; its uid by its spec only */
	struct gpu_set gpus;	   /* its own, ascending */
	struct gpu_set busy_gpus;  /* every one that any other container holds */
	const char *why;	   /* one sentence: why it was found or not (log, explain) */
	/* Not found: how many GPUs are still to come, and no plugin has a preference which; 0: not
	 * known */
	size_t n_drawn;
	/* With specs: */
	const struct spec_container *spec; /* its requests; NULL: not known */
};

struct spec_candidate {
	const struct spec_pod *pod;
	const struct spec_container *container;
	/* The container waited already when another one was found: it will not ask any more */
	bool stale;
};
struct spec_candidates {
	struct spec_candidate *v;
	size_t n;
	/* Pods whose containers are not known. One of them that is new may be the one that asks:
	 * then n is 0, and n_hidden are the candidates in v. */
	const struct spec_pod **unread;
	size_t n_unread, n_hidden;
};

struct pods_question {
	const char *resource;
	size_t want; /* VFs; 0: no request is under way, all that is listed is old */
	/* Devices that the kubelet has already set aside: a reused init container's, or a
	 * NUMA-aligned part */
	struct ids must;
	bool listed; /* the pods are a List: one that is not in it is not admitted yet */
	/* The note of before may be of a moment within the admission of this container: when no
	 * other container is new, those in the note count as new. */
	bool doubted;
	struct spec_candidates candidates; /* the first one is it; n is 0: by elimination */
};

/*
 * pods is in the order of names, as pods_holders_view() is. Containers, the likeliest first (not
 * stale, then the newest pod), that ask for the wanted devices and hold none of them, as far as
 * pods shows; whose pod is not deleted; and whose pod's earlier containers have theirs: one at
 * least, where something must be taken.
 */
struct spec_candidates pods_candidates(const struct spec_list *specs, const struct pod_list *pods,
				       const struct pods_question *q, const struct seen_pods *seen,
				       struct arena *a);
/* Results in the arena. *seen is updated, and made where it is NULL. */
struct identified pods_identify(const struct pod_list *pods, const struct pods_question *q,
				const struct hw_inventory *inv, struct seen_pods **seen,
				struct arena *a);

#endif
