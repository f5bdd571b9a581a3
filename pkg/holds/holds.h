/*
 * Who holds which VF. Everything that gives a VF to a container, takes it back, or calls it free,
 * draining or unknown is decided here and nowhere else. A state machine without file, clock, socket
 * or thread: each function is one event with the time at which it happened (struct holds_now), and
 * the actions that follow from it are fetched with holds_next(). One owner, one thread.
 *
 * What a hold goes through (struct ledger_hold, ledger/ledger.h):
 *
 *   Allocate ──▶ pending ──PreStartContainer──▶ started ──gone, in use──▶ draining ──idle──▶ (free)
 *                   │                              │
 *                   └──gone, VF idle──▶ (free)     └──gone, VF idle──▶ (free)
 *
 * Identity. A pod is its UID as the kubelet knows it (checkpoint, CNI, cgroup names). A name alone
 * neither takes over a started hold nor frees one.
 *
 * Gone. A started hold ends only if one of these is true, and nothing on the machine uses the VF:
 *   (a) this kubelet (epoch) has shown the pod and then, in a complete answer that was asked for
 *       later, not any more;
 *   (b) the cgroup of the pod has no process, on a node where cgroups of pods have been found by
 *       their UIDs, and the kubelet does not show the pod, or gives the VF to another one;
 *   (c) an operator says so (holds_release());
 *   (d) neither (a) nor (b) can ever be known (no UID, or no cgroups), and this kubelet has not
 *       shown the pod for `mature_ms`.
 * Everything else (no answer, an answer of a kubelet that has just started, a directory that cannot
 * be read) decides nothing.
 *
 * Numbers. Every decision has a number that only grows; ledger, CDI specs and map.json carry it. Of
 * two records of one VF or one slot the higher number counts.
 */
#ifndef RAILMATE_HOLDS_HOLDS_H
#define RAILMATE_HOLDS_HOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/event.h"
#include "ledger/ledger.h"

struct arena;
struct holds;

struct holds_now {
	int64_t mono_ms; /* monotonic; what intervals are measured with */
	int64_t wall_ms; /* Unix time; what records carry */
};

struct holds_pace {
	unsigned young_ms;  /* an answer says nothing about a hold that is younger: 1000 */
	unsigned apart_ms;  /* a pod that still uses its VF drains when it is missed twice, so far
			       apart: 2000 */
	unsigned mature_ms; /* rule (d): 600000 */
	unsigned store_ms;  /* a container waits no longer for the disk: 3000 */
	/*
	 * A container is created no later after its PreStartContainer: 35000. The kubelet gives the
	 * call to another plugin of the container 30 s (KubeletPreStartContainerRPCTimeoutInSecs),
	 * and the runtime reads the CDI specs first thing in CreateContainer.
	 */
	unsigned create_ms;
};
extern const struct holds_pace holds_default_pace;

/*
 * ledger (taken): what was on disk; NULL: there was none that could be read, and what is held is
 * rebuilt from the other records. A ledger that is merely absent is NULL as well. One may come
 * back, so that decisions then get numbers beyond any that it can have: from the wall clock on, in
 * milliseconds. blind: PodResources will never be asked (it is off, or the kubelet has none).
 */
struct holds *holds_new(struct ledger *ledger, const struct holds_pace *pace, struct holds_now now);
void holds_free(struct holds *h); /* NULL is fine */
const struct ledger *holds_ledger(const struct holds *h);
void holds_set_blind(struct holds *h, bool blind);

/* --- actions: fetched after every event until there is none --- */

enum holds_action_kind {
	HOLDS_SAY,    /* an event; bad: an operator should look */
	HOLDS_RELIST, /* what the kubelet was told about VFs or slots is no longer true */
	HOLDS_LOOK,   /* look at vf (struct holds_facts) and call holds_looked(), now */
};
struct holds_action {
	enum holds_action_kind kind;
	bool bad;
	char text[EVENT_SIZE]; /* SAY: the event; LOOK: the PCI address of the VF */
};
bool holds_next(struct holds *h, struct holds_action *ret); /* false: none is left */

/* --- what the machine shows of one VF --- */

enum holds_cgroup {
	HOLDS_CGROUP_OFF,     /* this node is configured without: they say nothing, ever */
	HOLDS_CGROUP_UNKNOWN, /* cannot be read now */
	HOLDS_CGROUP_EMPTY,   /* absent, or without a process */
	HOLDS_CGROUP_RUNS,
};

struct holds_facts {
	const char *unreadable; /* a sentence: the machine could not be looked at. NULL: it was */
	const char *away;	/* a sentence: its netdev or RDMA device is in a container's network
				   namespace. NULL: it is not */
	const char *open; /* a sentence: processes have its RDMA device open. NULL: none has */
	enum holds_cgroup
		cgroup;	 /* of the pod with this UID: that of the hold, see holds_uid_of() */
	const char *uid; /* NULL: none was looked at */
};
/* The UID whose cgroup belongs to the facts of this VF; "" if there is no hold or no UID. */
const char *holds_uid_of(const struct holds *h, const char *vf);

/* --- start of the daemon: the records that are there --- */

/* One VF as a CDI spec, a map.json or a ledger found later has it. Strings are copied. */
struct holds_claim {
	const char *vf, *resource;
	const char *slot; /* NULL: early binding */
	struct ledger_owner owner;
	uint64_t number;    /* 0: written by a version without numbers */
	const char *source; /* "CDI spec rdma_vf-n0-1", for sentences */
};
void holds_claimed(struct holds *h, const struct holds_claim *claim, struct holds_now now);
/*
 * All records were read, and what they claim is weighed now; or some directory could not be read
 * (complete false): the claims are forgotten, and all of it is done again later. Until it was
 * called with true no container starts and nothing is removed. A claim that comes later (of a
 * ledger that came back) is weighed at once.
 */
void holds_claims_read(struct holds *h, bool complete, struct holds_now now);
/* Nothing is held back any more: records were read and, where the ledger was lost, the kubelet has
 * shown its pods. */
bool holds_is_settled(const struct holds *h);

/* --- what the kubelet says --- */

/* The kubelet process that answers from now on: a number below 2^53 that no other one has, also
 * over restarts of ours; 0: not known. */
void holds_kubelet(struct holds *h, uint64_t epoch, struct holds_now now);

/* One id that a container has. slot: the id is a slot of a pool that binds late; else it is a VF.
 */
struct holds_seen {
	const char *resource, *id, *ns, *pod, *container;
	bool slot;
};
struct holds_pod {
	const char *ns, *pod;
	const char *const *containers;
	size_t n_containers; /* that are shown; ordinary init containers never are */
};
struct holds_answer {
	uint64_t epoch;	  /* of the kubelet that answered; that of another one is ignored */
	int64_t asked_ms; /* monotonic: when the question was asked. Answers may overtake each other
			   */
	bool all;	  /* a List; false: a Get of the pod ns/pod */
	const char *ns, *pod;
	bool active_only; /* pods that are over are not shown (kubelet ≥ 1.34) */
	const struct holds_pod *pods;
	size_t n_pods; /* Get: one, or none if there is no such pod */
	const struct holds_seen *seen;
	size_t n_seen; /* of the resources that matter; others are ignored */
};
void holds_answered(struct holds *h, const struct holds_answer *answer, struct holds_now now);

/* A pod that the kubelet has shown is missed: the kubelet should be asked again soon. */
bool holds_misses_some(const struct holds *h);

/* The kubelet's checkpoint: ids by the UID of the pod. */
struct holds_entry {
	const char *uid, *container, *resource, *id;
};
void holds_checkpoint(struct holds *h, const struct holds_entry *v, size_t n, struct holds_now now);
/* Which pod has this id by that checkpoint? "": none, or two. */
const char *holds_checkpoint_uid(const struct holds_entry *v, size_t n, const char *resource,
				 const char *id);
/* Which one has a container with just these? "": none, or two. The kubelet may have given some of
 * them twice. */
const char *holds_checkpoint_uid_of(const struct holds_entry *v, size_t n, const char *resource,
				    const char *const *ids, size_t n_ids);

/* --- what the machine says --- */

/* The answer to HOLDS_LOOK, also unasked. */
void holds_looked(struct holds *h, const char *vf, const struct holds_facts *facts,
		  struct holds_now now);
/* Is a look at this hold of use by now? For a timer of a second or so. */
bool holds_wants_look(struct holds *h, size_t i, struct holds_now now);
/* What the hold does not know of its VF yet, so that it is known again when it is out of sight.
 * NULL: not known here. */
void holds_devices(struct holds *h, const char *vf, const char *rdma, const char *netdev,
		   const char *driver);

/* --- early binding: ids are VFs --- */

struct holds_vf {
	const char *vf, *resource, *rdma;
	const struct holds_facts *facts;
};

/* Is the kubelet told that it is unhealthy, since it drains? Not by a ledger alone that other
 * records may know to be old. */
bool holds_withholds(const struct holds *h, const char *vf);

/* A number and a record for a choice; what becomes known of it later. */
uint64_t holds_decide(struct holds *h, const struct ledger_decision *d);
void holds_undecide(
	struct holds *h,
	uint64_t number); /* it came to nothing: forgotten, unless something is held by it */
void holds_amend(struct holds *h, uint64_t number, const struct ledger_decision *d);

/* GetPreferredAllocation: the kubelet offers these VFs, so they are nobody's by its own account. To
 * be told after a List of that moment. */
void holds_offered(struct holds *h, const char *const *vfs, size_t n, struct holds_now now);
/*
 * Allocate was answered: the kubelet has given these VFs to a container. owner: as far as it was
 * inferred; may be all NULL. A VF whose holder is not gone stays with it; the new container then
 * waits in PreStartContainer.
 */
void holds_allocated(struct holds *h, const struct holds_vf *v, size_t n,
		     const struct ledger_owner *owner, uint64_t decision, struct holds_now now);
/*
 * PreStartContainer: a container, that of owner, starts with these VFs, says the kubelet. owner:
 * pod NULL where it is not known, uid "" or NULL likewise. decision: the newest that gave exactly
 * these ids; 0 none. moves: a CNI plugin moves the devices of these VFs into the pod before this
 * moment, so "away" says nothing. True: it may start, and holds them from now on (by the decision
 * whose number the holds have then). False: it has to wait; ret_why, in the arena, is for the pod's
 * status.
 */
bool holds_start(struct holds *h, const struct holds_vf *v, size_t n,
		 const struct ledger_owner *owner, uint64_t decision, bool moves,
		 struct holds_now now, struct arena *a, const char **ret_why);

/* --- late binding: ids are slots --- */

/* The kubelet has given these slots to a container. */
bool holds_is_promised(const struct holds *h,
		       const char *slot); /* given, and no VF was bound to it since */
void holds_promised(struct holds *h, const char *const *slots, size_t n, struct holds_now now);
/* The VF that this container keeps for this slot when it starts (again), and whose it is by then;
 * NULL: one is to be chosen. usable: the VF that the slot has now is there and healthy (asked only
 * if there is one: holds_slot_vf()). */
const char *holds_slot_vf(const struct holds *h, const char *slot); /* NULL: none is bound */
const char *holds_slot_start(struct holds *h, const char *slot, const struct ledger_owner *owner,
			     bool usable, struct holds_now now);
/*
 * Before that: a sentence if this container has to wait. Not all records were read; or another pod
 * was told of the slot's VF less than create_ms ago and may run (facts, of holds_slot_vf()): CDI
 * would give its container, if that is not created yet, the VF that the slot's spec names by then.
 */
const char *holds_slot_waits(struct holds *h, const char *slot, const struct ledger_owner *owner,
			     const struct holds_facts *facts, struct holds_now now,
			     struct arena *a);
/* The k-th VF that this very container holds without a slot (its slot was given away again): it
 * keeps it. NULL: no more. Of the ledger: good until that changes. */
const char *holds_kept(const struct holds *h, const char *resource,
		       const struct ledger_owner *owner, size_t k);
/* May a VF of this pool be given to a container that starts? could: as far as is known without a
 * look. A sentence if not. */
bool holds_could_give(const struct holds *h, const char *vf);
bool holds_may_give(struct holds *h, const char *vf, const char *resource,
		    const struct holds_facts *facts, struct holds_now now, struct arena *a,
		    const char **ret_why);
/* It is bound, and may be taken back until holds_confirm(). number: of the decision; 0: the VF
 * keeps the one it has (it was bound before). */
void holds_bind(struct holds *h, const char *slot, const struct holds_vf *v,
		const struct ledger_owner *owner, uint64_t number, struct holds_now now);
void holds_confirm(struct holds *h, const char *slot,
		   struct holds_now now); /* the container, or its CNI plugin, is told of it */
/* A PreStartContainer of this container failed (holds_start() knows of its own), and it may have
 * been told of VFs of another pool: the kubelet does not create it. */
void holds_not_created(struct holds *h, const struct ledger_owner *owner, struct holds_now now);
void holds_unbind(struct holds *h, const char *slot,
		  struct holds_now now); /* it came to nothing; unless it was confirmed */

/* What the kubelet is told of late pools: slots with a VF (NULL: given, and none bound yet), and
 * VFs that no slot can count on. */
struct holds_slot {
	const char *slot, *vf;
};
struct holds_slots {
	struct holds_slot *uses;
	size_t n_uses;
	const char **lost;
	size_t n_lost;
};
struct holds_slots holds_slots(const struct holds *h, struct arena *a);
/* Slots that containers have and whose VF is not known (the ledger, the specs and map.json are
 * lost); NULL: no more. */
const char *holds_unknown(const struct holds *h, size_t k, const struct ledger_owner **ret_owner);
/* No container of this pod runs: an ordinary init container of it starts. */
void holds_know_pod(struct holds *h, const char *uid);
/* The cgroup of that owner's pod, now: the slot stays unknown while it runs. To be told every
 * second or so. */
void holds_unknown_looked(struct holds *h, const char *slot, enum holds_cgroup cgroup);

/* --- the operator --- */

/* The VF is free from now on, whoever held it. False: there is no hold. */
bool holds_release(struct holds *h, const char *vf, struct holds_now now);

/* --- records --- */

/* Is the record still needed? Everything that is not may be removed, and what is needed and missing
 * is written again. */
bool holds_needs_spec(const struct holds *h, const char *slot);
bool holds_needs_dir(const struct holds *h, const char *vf);
/* May the files of this VF be written for this decision? Not while another container holds it. */
bool holds_is_of(const struct holds *h, const char *vf, uint64_t decision);

/* --- the disk --- */

/* Should the ledger be stored? Not while a slot's VF is unknown: the next start has to look for it
 * again. */
bool holds_wants_store(const struct holds *h);
void holds_storing(struct holds *h, uint64_t generation, struct holds_now now);
void holds_stored(struct holds *h, uint64_t generation, bool ok, struct holds_now now);
/*
 * May an answer go out that waits, since that time, for this generation to be durable? Yes if it is
 * on disk, if the disk fails, or if it has taken store_ms: the specs and map.json then have to do.
 */
bool holds_may_answer(struct holds *h, uint64_t generation, int64_t since_mono_ms,
		      struct holds_now now);
void holds_restore(struct holds *h); /* there is a file from now on, and nothing of ours is in it */
bool holds_is_stored(const struct holds *h); /* the disk has what the ledger has now */

#endif
