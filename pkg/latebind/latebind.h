/*
 * Late binding: slots → VFs, when the container and all its GPUs are known. One binder for all late
 * pools; on the rpc thread. bind is idempotent: whoever comes first, PreStartContainer or the CNI
 * plugin, decides; the other one is told the same.
 */
#ifndef RAILMATE_LATEBIND_LATEBIND_H
#define RAILMATE_LATEBIND_LATEBIND_H

#include <stdbool.h>
#include <stddef.h>

#include "kubemsg/messages.h"
#include "pool/slots.h"

struct binder;
struct draclaim_source;
struct err;
struct keeper;
struct node;
struct pod_ref;
struct podres;
struct podspec_source;
struct rpc;
struct rundir;
struct sysroot;
struct truth;

struct binder_env {
	struct rpc *rpc;
	const struct sysroot *root;
	struct podres *podres;
	struct keeper *keeper;
	const struct podspec_source *specs;   /* NULL: none */
	const struct draclaim_source *claims; /* NULL: none */
	const char *cdi_dir;		      /* the runtime's, e.g. /var/run/cdi */
	const char *checkpoint;		      /* the kubelet's; NULL: do without */
	struct rundir *rundir; /* files that are mounted into containers; NULL: none */
	struct truth *truth; /* what VFs are when containers start; NULL: as the host shows them */
	unsigned settle_ms;  /* after a spec was written: the runtime notices by inotify
				(docs/design/kubelet.md §4) */
	unsigned restore_ms; /* between looks whether the specs are still there; 0: 5 s */
	void (*note)(void *ctx, const char *sentence); /* a sentence for the log; may be NULL */
	void *ctx;
};

/* One slot of the container and its VF now. */
struct bound {
	const char *slot, *resource, *vf;
};

/* err NULL: bound holds every slot of the container, sorted by slot, of every late pool. Lives
 * until the return. */
typedef void (*binder_done_fn)(void *arg, const struct err *err, const struct bound *bound,
			       size_t n);

struct binder *binder_new(const struct binder_env *env);
void binder_free(struct binder *b);
void binder_update(struct binder *b, struct node *node); /* a reference is taken */
/* At the start, after the first binder_update(): tells holds what the CDI specs say. False: some
 * could not be read. */
bool binder_claim(struct binder *b);
/* What the kubelet is to be told of a late pool now. */
struct slot_list binder_slots(const struct binder *b, const struct pool *pool, struct arena *a);
/* The kubelet gives these to a container: what they were before is over, and a spec that is left of
 * it goes. */
void binder_allocated(struct binder *b, const struct ids *slots);
/*
 * Bind the container that holds these slots: all its slots of all late pools at once. When done is
 * called the CDI spec is written, and the ledger is durable or holds does not want to wait for it
 * any longer. pod NULL: called for PreStartContainer, so the container is about to start, and the
 * spec says what its VFs are now. Errors are retryable (EAGAIN) unless a slot is unknown (ENOENT).
 */
void binder_bind(struct binder *b, const struct ids *slots, const struct pod_ref *pod,
		 unsigned timeout_ms, binder_done_fn done, void *arg);
/* Holds have changed: specs that are no longer needed go. */
void binder_tidy(struct binder *b);

#endif
