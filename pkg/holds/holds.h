/*
 * Who holds which VF. Everything that gives a VF to a container, takes it back, or calls it free,
 * draining or unknown is decided here and nowhere else. A state machine without file, clock, socket
 * or thread: events are passed in with the time at which they happened (struct holds_event, struct
 * holds_now), and the actions that follow are fetched with holds_next(). A question that needs an
 * answer at once (may this container start?) is a function of its own. One owner, one thread.
 *
 * Actions cannot wait: to log, to list anew, to probe. Everything else the edge asks, after each
 * event: is the ledger to be stored, are pods missed (holds_status()), which files are needed
 * (holds_needs_record()); and every second: which VFs are to be probed (holds_wants_probe(),
 * holds_unknown()). State changes with holds_event(), and with holds_start(), holds_slot_start()
 * and holds_may_give(), which give, take and free while they answer; holds_decide() takes a number,
 * holds_may_answer() may log that the disk is slow.
 *
 * The life of a hold (struct ledger_hold, ledger/ledger.h):
 *
 *   Allocate ──▶ pending ──PreStartContainer──▶ started ──gone, in use──▶ draining ──idle──▶ (free)
 *                   │                              │
 *                   └──gone, VF idle──▶ (free)     └──gone, VF idle──▶ (free)
 *
 * Identity. A pod is its UID as the kubelet knows it (checkpoint, CNI, cgroup names). A name alone
 * neither takes over a started hold nor frees one. Within a pod the holder is a container: only an
 * ordinary init container leaves its VFs to the next one.
 *
 * Gone. A started hold ends only if one of these is true, and nothing on the machine uses the VF:
 *   (a) this kubelet (epoch) has shown the pod and then, in a complete answer that was asked for
 *       later, not any more. Not of a pod without UID, unless cgroups are off: only its name is
 *       missing then, and its cgroup cannot be asked;
 *   (b) the cgroup of the pod has no process, on a node where cgroups of pods have been found by
 *       their UIDs, and the kubelet does not show the pod, or gives the VF to another one;
 *   (c) an operator releases it (HOLDS_RELEASED);
 *   (d) neither (a) nor (b) can ever be known (no UID, or no cgroups), and this kubelet has not
 *       shown the pod for `mature_ms`;
 *   (e) its owner is a ResourceClaim, and the kubelet has unprepared that (HOLDS_UNPREPARED). Then
 *       (a), (b) and (d) decide nothing: other pods may have the claim, too.
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
	int64_t mono_ms; /* monotonic; for intervals */
	int64_t wall_ms; /* Unix time; for records */
};

struct holds_pace {
	unsigned young_ms; /* an answer does not count for a hold that is younger: 1000 */
	/* A pod that still uses its VF drains when it is missed twice, so far apart: 2000 */
	unsigned apart_ms;
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
 * ledger (taken): the one on disk; NULL: there was none that could be read, and holds are rebuilt
 * from the other records. A ledger that is merely absent is NULL as well. One may come back, so
 * that decisions then get numbers beyond any that it can have: from the wall clock on, in
 * milliseconds.
 */
struct holds *holds_new(struct ledger *ledger, const struct holds_pace *pace, struct holds_now now);
void holds_free(struct holds *h); /* NULL is fine */
const struct ledger *holds_ledger(const struct holds *h);

/* --- actions: fetched after every event until there is none --- */

enum holds_action_kind {
	HOLDS_SAY,    /* an event; bad: an operator should look */
	HOLDS_RELIST, /* the list that the kubelet has of VFs or slots is no longer true */
	HOLDS_PROBE,  /* look at vf (struct holds_facts) and pass in HOLDS_PROBED, now */
};
struct holds_action {
	enum holds_action_kind kind;
	bool bad;
	char text[EVENT_SIZE]; /* SAY: the event; PROBE: the PCI address of the VF */
};
bool holds_next(struct holds *h, struct holds_action *ret); /* false: none is left */

/* --- one VF, as the machine shows it --- */

enum holds_cgroup {
	HOLDS_CGROUP_OFF,     /* this node is configured without: they never count */
	HOLDS_CGROUP_UNKNOWN, /* cannot be read now */
	HOLDS_CGROUP_EMPTY,   /* absent, or without a process */
	HOLDS_CGROUP_RUNS,
	/* Only of a slot (HOLDS_SLOT_PROBED): the cgroup looks like a sandbox without a container;
	   after the end of the sandbox, a small container looks like that, too */
	HOLDS_CGROUP_SANDBOX,
};

struct holds_facts {
	const char *unreadable; /* a sentence: the machine could not be looked at. NULL: it was */
	/* A sentence: its netdev or RDMA device is in a container's network namespace. NULL: it is
	 * not */
	const char *away;
	const char *open; /* a sentence: processes have its RDMA device open. NULL: none has */
	enum holds_cgroup cgroup; /* of the pod with this UID: that of the hold in the ledger */
	bool cgroup_is_there;	  /* also an EMPTY one */
	const char *uid;	  /* NULL: none was looked at */
};

/* --- events --- */

/* One VF as a CDI spec, a map.json or a ledger found later has it. Strings are copied. */
struct holds_claim {
	const char *vf, *resource;
	const char *slot; /* NULL: early binding */
	struct ledger_owner owner;
	uint64_t number;    /* 0: written by a version without numbers */
	const char *source; /* "CDI spec rdma_vf-n0-1", for sentences */
};

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
	uint64_t epoch; /* of the kubelet that answered; an answer of another one is ignored */
	/* Monotonic: when the question was asked. Answers may overtake each other */
	int64_t asked_ms;
	bool all; /* a List; false: a Get of the pod ns/pod */
	const char *ns, *pod;
	bool active_only; /* pods that are over are not shown (kubelet ≥ 1.34) */
	const struct holds_pod *pods;
	size_t n_pods; /* Get: one, or none if there is no such pod */
	const struct holds_seen *seen;
	size_t n_seen; /* of the resources that matter; others are ignored */
};

/* The kubelet's checkpoint: ids by the UID of the pod. */
struct holds_entry {
	const char *uid, *container, *resource, *id;
};

/* A VF that a container is given. */
struct holds_vf {
	const char *vf, *resource, *rdma;
	const struct holds_facts *facts;
};

enum holds_event_kind {
	/* The start of the daemon: a claim of a record. A claim after HOLDS_CLAIMS_READ (of a
	   ledger that came back) is weighed at once. */
	HOLDS_CLAIMED,
	/* complete: all records were read, and their claims are weighed now. Else some directory
	   could not be read: the claims are forgotten, and read again later. Until one reading was
	   complete no container starts and nothing is removed. */
	HOLDS_CLAIMS_READ,
	/* blind: PodResources will never be asked (it is off, or the kubelet has none); not blind:
	   it is asked again. */
	HOLDS_BLIND,

	/* epoch: the kubelet process that answers from now on: a number below 2^53 that no other
	   process has, also over restarts of railmated; 0: not known. */
	HOLDS_KUBELET,
	HOLDS_ANSWERED,	  /* answer */
	HOLDS_CHECKPOINT, /* entries, n */

	/* vf, facts: the answer to HOLDS_PROBE, also unasked. */
	HOLDS_PROBED,
	/* vf; rdma, netdev, driver: facts that the hold lacks of its VF, so that it is known again
	 * when it is out of sight. NULL: not known here. */
	HOLDS_DEVICES,
	/* slot, cgroup: of the pod of an owner of holds_unknown(), now. The slot stays unknown
	   while a container of that pod runs. Passed in every second or so. */
	HOLDS_SLOT_PROBED,

	HOLDS_AMENDED,	 /* number, decision: with facts that have become known since */
	HOLDS_UNDECIDED, /* number: of a decision that came to nothing; kept if a hold has it */

	/* Early binding. GetPreferredAllocation: the kubelet offers vfs, n, so by the kubelet's
	   account no container holds them. Passed in after a List of that moment. */
	HOLDS_OFFERED,
	/* Allocate was answered: the kubelet has given these VFs (given, n) to a container. owner:
	 * as far as it was inferred; may be all NULL. number: of the decision. A VF whose holder is
	 * not gone stays with it; the new container then waits in PreStartContainer. */
	HOLDS_ALLOCATED,

	/* Late binding. The kubelet has given slots, n to a container. */
	HOLDS_PROMISED,
	/* slot is bound to one VF (given) of owner, and may be taken back until HOLDS_CONFIRMED.
	 * number: of the decision; 0: the VF was bound before, and keeps its number. */
	HOLDS_BOUND,
	HOLDS_CONFIRMED, /* slot: the container, or its CNI plugin, has got it */
	HOLDS_UNBOUND,	 /* slot: the binding came to nothing; ignored after HOLDS_CONFIRMED */
	/* DRA: the slots of a claim are bound like those that the kubelet gives, with an owner that
	 * is the claim. claim_uid: its UID; the kubelet has unprepared it. owner: a pod of the
	 * claim that runs, whose the VFs are then until it has ended; NULL: the one that is noted.
	 */
	HOLDS_UNPREPARED,
	/* A PreStartContainer of owner failed elsewhere than in holds_start(): the kubelet does not
	   create the container, which may have got VFs of another pool. */
	HOLDS_NOT_CREATED,

	/* An operator: vf is free from now on, held or not. */
	HOLDS_RELEASED,

	HOLDS_STORED, /* generation of the ledger, ok: it is on the disk, or could not be written */
	HOLDS_RESTORE, /* the ledger has a file from now on, with nothing of it yet */
};

/* The members that the kind names; the rest is zero. No pointer of it is kept. */
struct holds_event {
	enum holds_event_kind kind;
	bool complete, blind, ok;
	enum holds_cgroup cgroup;
	const char *vf, *rdma, *netdev, *driver, *slot, *claim_uid;
	const char *const *vfs, *const *slots;
	const struct holds_claim *claim;
	const struct holds_answer *answer;
	const struct holds_entry *entries;
	const struct holds_facts *facts;
	const struct holds_vf *given;
	size_t n;
	const struct ledger_owner *owner;
	const struct ledger_decision *decision;
	uint64_t epoch, number, generation;
};
void holds_event(struct holds *h, const struct holds_event *e, struct holds_now now);

struct holds_status {
	/* Nothing is held back any more: records were read and, where the ledger was lost, the
	 * kubelet has shown its pods. */
	bool settled;
	/* A pod that the kubelet has shown is missed: the kubelet should be asked again soon. */
	bool misses_some;
	/* The ledger should be stored. Not while a slot's VF is unknown: the next start has to look
	 * for it again. */
	bool wants_store;
	bool stored; /* the disk has the present ledger */
};
struct holds_status holds_status(const struct holds *h);

/* Should hold i be probed: would a probe now decide anything? Asked every second or so. */
bool holds_wants_probe(struct holds *h, size_t i, struct holds_now now);
/* Which pod has a container with just these ids by the checkpoint, or else the first of them that
 * one pod has? "": none, or two. The kubelet may have given some of them twice. */
const char *holds_checkpoint_uid(const struct holds_entry *v, size_t n, const char *resource,
				 const char *const *ids, size_t n_ids);
/* Did the kubelet's last answer show the pod of this VF's hold? Then the next answer would undo
 * HOLDS_RELEASED: the pod has to be deleted. */
bool holds_is_shown(const struct holds *h, const char *vf);
/*
 * Does this pod, which a CNI plugin names, hold the VF? UIDs decide where both are known, else the
 * names. Unknown: the VF was given a moment ago, and its container has not been seen yet.
 */
enum holds_whose { HOLDS_OF_NOBODY, HOLDS_OF_UNKNOWN, HOLDS_OF_POD, HOLDS_OF_ANOTHER };
enum holds_whose holds_whose(const struct holds *h, const char *vf, const struct ledger_owner *pod);
/* Records a choice in the ledger; returns its number. */
uint64_t holds_decide(struct holds *h, const struct ledger_decision *d);
/* Is the record of a VF (its directory) or of a slot (its spec) still needed? The other one is
 * NULL. A record that is not may be removed; one that is needed and missing is written again. */
bool holds_needs_record(const struct holds *h, const char *vf, const char *slot);
/* May the files of this VF be written for this decision? Not while another container holds it, nor
 * before all records were read. */
bool holds_is_of(const struct holds *h, const char *vf, uint64_t decision);
/*
 * May an answer go out that waits for this generation of the ledger? Yes if that is on disk, if the
 * disk fails, or after store_ms: CDI specs and map.json are the record then.
 */
bool holds_may_answer(struct holds *h, uint64_t generation, int64_t since_mono_ms,
		      struct holds_now now);

/* Both owners have names, and the same one; and the same UID, where both have one. */
bool holds_same_pod(const struct ledger_owner *a, const struct ledger_owner *b);

/* --- the state of a VF --- */

/*
 * One verdict for all that show or offer a VF: the list for the kubelet, the candidates of
 * GetPreferredAllocation, metrics, page, Events, `status`, `explain pool`. The first state of this
 * order that is true.
 */
enum holds_state {
	HOLDS_IS_DRAINING,  /* its holder is gone, and something uses it */
	HOLDS_IS_RETIRED,   /* its pool is not configured any more; listed for its holder */
	HOLDS_IS_LEAVING,   /* its pool does not select it any more, or it is gone; likewise */
	HOLDS_IS_ALLOCATED, /* the kubelet has given it, and its container has not started */
	HOLDS_IS_HELD,
	HOLDS_IS_UNHEALTHY,
	HOLDS_IS_IN_USE, /* by something that holds does not know */
	HOLDS_IS_FREE,
	HOLDS_STATES
};
extern const char *const holds_state_names[HOLDS_STATES]; /* "in_use": labels, documents */

/* A VF as its pool and the machine have it. Strings are borrowed. */
struct holds_view {
	const char *vf, *resource;
	bool retired, leaving;
	bool given; /* by the kubelet's checkpoint a pod may have it: asked of one that is used */
	const char *unhealthy;		 /* a sentence; NULL: its pool calls it healthy */
	const struct holds_facts *facts; /* of now */
};

struct holds_verdict {
	enum holds_state state;
	/* Healthy in the list for the kubelet: it is free, or its container lives and it is well;
	 * of a ResourceClaim's the kubelet keeps no account as a device */
	bool offered;
	const char *why; /* a sentence; NULL: none. Of the view, or in the arena */
};
/* May a slot that no container has count on this VF? */
bool holds_is_spare(const struct holds_verdict *v);
/* Nothing is draining until all records were read: one may show that the ledger is old. */
struct holds_verdict holds_judge(const struct holds *h, const struct holds_view *v,
				 struct arena *a);

/* --- a container starts --- */

/*
 * PreStartContainer: the kubelet starts a container, that of owner, with these VFs. owner: pod NULL
 * where it is not known, uid "" or NULL likewise. decision: the newest that gave exactly these ids;
 * 0 none. moves: a CNI plugin moves the devices of these VFs into the pod before this moment, so
 * "away" does not mean in use. True: it may start, and holds them from now on (by the decision
 * whose number the holds have then). False: it has to wait; ret_why, in the arena, is for the pod's
 * status.
 */
bool holds_start(struct holds *h, const struct holds_vf *v, size_t n,
		 const struct ledger_owner *owner, uint64_t decision, bool moves,
		 struct holds_now now, struct arena *a, const char **ret_why);

/* --- late binding: ids are slots --- */

struct holds_slot {
	const char *slot, *vf; /* NULL: none is bound */
	bool promised;	       /* given to a container, and no VF was bound to it since */
};
struct holds_slot holds_slot(const struct holds *h, const char *slot);
/* The VF that this container keeps for this slot when it starts (again); the VF is the container's
 * from then on. NULL: one is to be chosen, and a claim keeps the one before as well. usable: the VF
 * that the slot has now is there and healthy (asked only if there is one: holds_slot()). */
const char *holds_slot_start(struct holds *h, const char *slot, const struct ledger_owner *owner,
			     bool usable, struct holds_now now);
/*
 * Asked before holds_slot_start(): a sentence if this container has to wait. Not all records were
 * read; or another pod got the slot's VF less than create_ms ago and may run (facts, of
 * holds_slot()): CDI would give its container, if that is not created yet, the VF that the slot's
 * spec names by then.
 */
const char *holds_slot_waits(struct holds *h, const char *slot, const struct ledger_owner *owner,
			     const struct holds_facts *facts, struct holds_now now,
			     struct arena *a);
/* The k-th VF that this very container holds without a slot (its slot was given away again): it
 * keeps it. NULL: no more. Of the ledger: good until that
 * changes. */
const char *holds_kept(const struct holds *h, const char *resource,
		       const struct ledger_owner *owner, size_t k);
/* May a VF of this pool be given to a container that starts? holds_could_give(): without a probe.
 * ret_why: a sentence if not. */
bool holds_could_give(const struct holds *h, const char *vf);
bool holds_may_give(struct holds *h, const char *vf, const char *resource,
		    const struct holds_facts *facts, struct holds_now now, struct arena *a,
		    const char **ret_why);

/* The slots that containers have: with a VF (NULL: given, and none bound yet). */
struct holds_slots {
	struct holds_slot *uses;
	size_t n_uses;
};
struct holds_slots holds_slots(const struct holds *h, struct arena *a);
/* Slots that containers have and whose VF is not known (the ledger, the specs and map.json are
 * lost); NULL: no more. */
const char *holds_unknown(const struct holds *h, size_t k, const struct ledger_owner **ret_owner);

#endif
