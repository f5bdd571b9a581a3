/* Shared by the files of late binding. Everything runs on the rpc thread. */
#ifndef RAILMATE_LATEBIND_LATEBIND_INTERNAL_H
#define RAILMATE_LATEBIND_LATEBIND_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "hw/inventory.h"
#include "base/err.h"
#include "base/log.h"
#include "grant/records.h"
#include "grant/grant.h"
#include "hw/bdf.h"
#include "kubemsg/podspec.h"
#include "latebind/latebind.h"
#include "ledger/ledger.h"
#include "pods/who.h"
#include "status/stats.h"

struct binding_slot;
struct pool_dev;
struct vf_state;

struct latebind {
	struct latebind_env env;
	struct node *node;	 /* NULL: none yet */
	struct spec_file *specs; /* the specs that we wrote, by slot; cdi.c */
	size_t n_specs, cap_specs;
	LIST_HEAD(, request) requests;
	struct log_rate doubted;   /* warnings that not all is known of a VF */
	bool doubles;		   /* the last List showed a slot with two containers */
	int64_t began_ms;	   /* Unix time */
	struct rpc_timer *restore; /* are the specs still there? NULL: there are none */
};

/* The devices that a ResourceClaim of the pod was given. */
struct known_claim {
	const char *name;
	struct draclaim devices;
	const char *why; /* why the claim could not be had; NULL: it could */
};

/* A caller that waits for a binding. */
struct request {
	LIST_ENTRY(request) link;
	struct latebind *b;
	struct arena *arena;
	struct ids slots;
	struct latebind_claim *claim; /* NULL: the kubelet gave the slots */
	struct pod_ref pod;	      /* name NULL: not known */
	bool by_get;		      /* of that pod alone */
	/* A restart: the pod that has the slots by the ledger; name NULL: none */
	struct pod_ref guess;
	int64_t asked_ms, until_ms;
	uint64_t epoch;		/* of the kubelet that was asked */
	bool knows_specs;	/* asked for once, and only when they decide something */
	struct spec_list specs; /* in the order of names */
	const char *specs_why;	/* why the specs could not be had; NULL: they could */
	const char *wanted_ns, *wanted_claim; /* the claim to ask for; NULL: none */
	struct known_claim *claims;
	size_t n_claims;
	latebind_done_fn done;
	void *arg;
	struct rpc_timer *timer;
	struct pending *asked; /* pods, their specs, or a claim */
	struct pending *probing, *saving;
	/* the decision */
	struct node *node;
	struct grant_container c; /* pool_vfs: also of early pools */
	struct binding_slot *bindings;
	uint64_t decision;		/* 0: everything was bound before */
	struct stats_placement *placed; /* of that decision, one a pool */
	size_t n_placed;
	size_t n_bindings;
	struct bindmount mounts[GRANT_MOUNTS]; /* of its directory, if it has one */
	size_t n_mounts;
	/* the outcome */
	struct err err; /* code 0: none */
	struct bound *bound;
	size_t n_bound;
	bool written; /* a spec is new, or another text than before */
};

void latebind_say(const struct latebind *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Are the container's VFs probed before it gets its specs? Yes for PreStartContainer; a CNI plugin
 * asks before it has moved them. */
bool latebind_probes_first(const struct request *r);

struct holds *latebind_holds(const struct latebind *b);
const struct ledger_hold *latebind_live_hold(const struct latebind *b,
					     const char *slot); /* NULL: nothing is bound to it */
bool latebind_is_late(const struct latebind *b, const char *resource);
const char *latebind_rdma_of(const struct latebind *b, const struct pool_dev *dev);

/* --- the decision --- */

/*
 * Binds the container that r is about; nothing is on disk yet. pods: sorted by kubemsg_pods_sort().
 * -EINPROGRESS: pod specs would show which container starts, or r->wanted_claim which GPUs it has.
 * Bindings that it leaves behind are the caller's to tidy, also on failure.
 */
int latebind_decide(struct request *r, const struct pod_list *pods, struct err *err);
/* The same for r->claim: its containers need not be found. */
int latebind_decide_claim(struct request *r, const struct pod_list *pods, struct err *err);
/*
 * A CNI plugin names a VF, by its PCI address, in the place of a slot: r->bound has the VF if
 * r->pod holds it. -EPERM: another pod does; -EAGAIN: not yet, or not known.
 */
bool latebind_names_vf(const struct request *r);
/* It names a VF of the pod's claims, which are prepared before: r->bound has it. False: it names
 * none, or the pod has several of that PF. */
bool latebind_find_claimed(struct request *r);
/* The part of claims that vf is of, with its VFs and their GPUs, by the ledger: as it was bound
 * before. False: it is of none. */
bool latebind_recall(struct request *r, const char *vf);
int latebind_decide_vf(struct request *r, const struct pod_list *pods, struct err *err);
/* A binding came to nothing: VFs bound for the request and not given out yet are free again. */
void latebind_unbind(const struct request *r);

void latebind_count_placed(const struct request *r);

/* --- which GPUs of its claims? --- */

void latebind_know_claim(struct request *r, const struct draclaim *claim,
			 const char *why); /* the answer to r->wanted_claim */

/* --- specs --- */

struct spec_file {
	char *file;   /* the slot that names it: the first */
	char **slots; /* of one container */
	size_t n_slots;
	char *text; /* as we wrote it, or found it at the start */
};

bool latebind_spec_exists(const struct latebind *b, const char *slot);
/* Every spec of ours in the directory; false: some could not be read. */
bool latebind_spec_scan(struct latebind *b,
			void (*found)(struct latebind *b, const struct claims *record,
				      const char *path));
void latebind_specs_tidy(struct latebind *b); /* removes those that holds does not need */
void latebind_specs_restore(
	struct latebind *b); /* writes specs again that holds needs and that are gone */
void latebind_restore_later(struct latebind *b); /* restores specs after a while */
void latebind_specs_done(struct latebind *b);
/* --- the container's grant --- */

/*
 * The decision → files and specs. states: its VFs as they are now, NULL: not known, and why (NULL:
 * not probed). On failure the kubelet may try again.
 */
int latebind_render(struct request *r, const struct vf_state *states, size_t n, const char *why,
		    struct err *err);
/* The container's VFs beside its slots, before the list that names them ends. */
void latebind_note_pool_vfs(struct request *r, const struct target *t);

#endif
