/*
 * Late binding: slots → VFs, when the container and all its GPUs are known. One object for all late
 * pools; on the rpc thread. bind is idempotent: the first call, PreStartContainer or the CNI
 * plugin, decides; the other one gets the same. The VFs of a ResourceClaim (DRA) are slots, too,
 * bound when the claim is prepared.
 */
#ifndef RAILMATE_LATEBIND_LATEBIND_H
#define RAILMATE_LATEBIND_LATEBIND_H

#include <stdbool.h>
#include <stddef.h>

#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "pool/slots.h"

struct latebind;
struct draclaim_source;
struct err;
struct tracker;
struct node;
struct pod_ref;
struct podres;
struct podspec_source;
struct rpc;
struct stats;
struct stats_placement;
struct sysroot;
struct vf_state;
struct vfprobe;

struct latebind_env {
	struct rpc *rpc;
	const struct sysroot *root;
	struct podres *podres;
	struct tracker *tracker;
	const struct podspec_source *specs;   /* NULL: none */
	const struct draclaim_source *claims; /* NULL: none */
	const char *cdi_dir;		      /* the runtime's, e.g. /var/run/cdi */
	const char *checkpoint;		      /* the kubelet's; NULL: do without */
	const char *rundir; /* files that are mounted into containers; NULL: none */
	const char *probe;  /* the folder with the probe, mounted below them; NULL: none */
	struct vfprobe
		*vfprobe; /* looks at VFs of containers that start; NULL: as the host shows them */
	struct stats *stats; /* counters of the metrics; NULL: none */
	/* A container starts with VFs that were chosen for it; may be NULL */
	void (*placed)(void *ctx, const struct stats_placement *placement);
	void *placed_ctx;
	/* VFs of a container that starts or was refreshed, as they were seen; may be NULL */
	void (*seen)(void *ctx, const struct vf_state *states, size_t n);
	void *seen_ctx;
	unsigned ask_ms; /* how long specs and claims may take; 0: 2000 */
	/* After a spec was written: the runtime notices by inotify (docs/design/kubelet.md §4) */
	unsigned settle_ms;
	unsigned restore_ms; /* between looks whether the specs are still there; 0: 5 s */
	void (*note)(void *ctx, const char *event); /* for the log; may be NULL */
	void *ctx;
};

/* One slot of the container and its VF now; slot: as it was asked for, also a VF's address. */
struct bound {
	const char *slot, *resource, *vf;
};

/* err NULL: bound holds every slot of the container, sorted by slot, of every late pool. Lives
 * until the return. */
typedef void (*latebind_done_fn)(void *arg, const struct err *err, const struct bound *bound,
				 size_t n);

struct latebind *latebind_new(const struct latebind_env *env);
void latebind_free(struct latebind *b);
void latebind_update(struct latebind *b, struct node *node); /* a reference is taken */
/* At the start, after the first latebind_update(): passes the claims of the CDI specs to holds.
 * False: some could not be read. */
bool latebind_claim(struct latebind *b);
/* The present list of a late pool for the kubelet. */
struct slot_list latebind_slots(const struct latebind *b, const struct pool *pool, struct arena *a);
/* The kubelet gives these to a container: their former bindings are over, and a spec left of one is
 * removed. */
void latebind_allocated(struct latebind *b, const struct ids *slots);
/*
 * Bind the container that holds these slots: all its slots of all late pools at once. When done is
 * called the CDI spec is written, and the ledger is durable or holds no longer waits for it. pod
 * NULL: called for PreStartContainer, so the container is about to start, and the spec has its VFs
 * as they are now. Errors are retryable (EAGAIN) unless a slot is unknown (ENOENT).
 *
 * With a pod the slot may be the PCI address of a VF, also of a pool that binds early: nothing is
 * bound, and the answer is that VF if the pod has it. EPERM: it has not. A VF of the pod's claims
 * goes by the number of its slot ("rdma_vf-any-3"), or by its PF.
 */
void latebind_bind(struct latebind *b, const struct ids *slots, const struct pod_ref *pod,
		   unsigned timeout_ms, latebind_done_fn done, void *arg);
/* A part of ResourceClaims of a pod, and the containers that have it. */
struct latebind_claim {
	struct ledger_owner owner; /* the pod, and the first of the containers */
	struct ids slots;	   /* pool_claim_slot() */
	const char *const *places; /* of each: the only PF whose VFs it may get; NULL: any */
	struct ids containers;
	const char *names; /* of the claims, with commas */
	/* What DRA drivers gave the containers, GPUs among it */
	const struct dynamic *dynamic;
	size_t n_dynamic;
	const char *doubt; /* a sentence: some GPUs may be missing, or others'; NULL: none */
};
/*
 * As latebind_bind(), for the part of claims: their VFs are chosen for the GPUs of its containers,
 * which the kubelet has given by now. Called again with the same slots it keeps the VFs. c is
 * copied.
 */
void latebind_prepare(struct latebind *b, const struct latebind_claim *c, unsigned timeout_ms,
		      latebind_done_fn done, void *arg);
/* A VF of a claim has been moved, or its container is created now: the spec and the files of its
 * part are written anew, as its VFs are then. No VF of a claim: done comes, and nothing else. */
void latebind_refresh(struct latebind *b, const char *vf, latebind_done_fn done, void *arg);
/* Holds have changed: specs that are no longer needed go. */
void latebind_tidy(struct latebind *b);

#endif
