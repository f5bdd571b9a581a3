/* Shared by the files of this room. */
#ifndef RAILMATE_HOLDS_HOLDS_INTERNAL_H
#define RAILMATE_HOLDS_HOLDS_INTERNAL_H

#include "holds/holds.h"

/* The UIDs of the pods with one id, by the checkpoint; "" where there is none, or more than two. */
struct id_pods {
	char uids[2][48];
};

/* Facts of a hold since railmated started. In the order of the holds. */
struct observation {
	char *vf;
	char *former_slot; /* NULL, or: its slot until another container had that */
	int64_t since_ms;  /* with the number, these distinguish one hold of a VF from the next */
	uint64_t decision;
	/* When the hold was made; young_ms before the start for holds of the ledger */
	int64_t noted_ms;
	/* asked_ms of the newest answer of this kubelet that showed it; 0: none has */
	int64_t shown_ms;
	/* When a container, or its CNI plugin, last got the VF; the start for holds of the ledger
	 */
	int64_t told_ms;
	/* asked_ms of the newest answer that counted for it; 0: none */
	int64_t judged_ms;
	bool loaded; /* it was in the ledger when we started */
	/* After the container got this VF, it was refused another one: it does not run */
	bool not_created;
	/* Bound late, and neither the container nor its CNI plugin got the VF */
	bool tentative;
	bool unseen;	/* the newest answer of this kubelet that could show the hold did not */
	bool passed_on; /* by the kubelet another pod has the id */
	/* The kubelet has given the VF to another container, since it last showed the holder */
	bool given_away;
	/* The kubelet once gave the VF to another container: the checkpoint may mean that */
	bool id_passed_on;
	bool gone;	   /* rule (a) */
	int64_t missed_ms; /* when the pod was first missed so; 0 never */
	bool missed_twice;
	bool doubly_told;
	struct id_pods pods;
	/* By the checkpoint two containers of its pod have the id: one of them an ordinary init
	 * container, as a rule */
	bool shared;
	/* The kubelet shows the id with another container of its pod, and shows the holder's, too:
	 * they run beside each other */
	bool doubled;
};

struct promise {
	char *slot;
	int64_t since_ms;
	bool held; /* as far as is known, a container has it */
	/* Given while railmated runs; else a List has shown it */
	bool given;
};

/* A slot that a container has and whose VF no record names. */
struct unknown {
	char *slot, *resource;
	struct ledger_owner owner; /* strings of its own */
	struct id_pods pods;
	bool given_away; /* to another container since, which the checkpoint may mean */
	bool doubled;	 /* another container of the pod is shown with the slot, too */
	bool missed;
	int64_t missed_ms; /* since when; monotonic */
	/* Since when each look has shown no more than a sandbox; 0: the last one has not */
	int64_t idle_ms;
	/* When the kubelet last called for a container of the pod: its sandbox ran; 0: never */
	int64_t called_ms;
};

struct holds {
	struct ledger *ledger;
	struct holds_pace pace;
	bool blind;
	bool cgroups_seen; /* of some pod: a missing cgroup of another pod counts */

	struct observation *observations;
	size_t n_observations;
	uint64_t synced; /* the generation of the ledger that the observations are of */
	struct promise *promises;
	size_t n_promises, cap_promises;
	struct unknown *unknown;
	size_t n_unknown, cap_unknown;

	/* records */
	bool lost; /* the ledger is missing, or older than another record */
	bool claims_read;
	uint64_t next_loaded; /* the next number by the ledger that was on disk; 0: none was read */
	struct holds_claim *claims; /* not weighed yet; their strings are in the arena */
	size_t n_claims, cap_claims;
	struct arena *claims_arena; /* NULL: there are none */
	bool shown;		    /* a List of this kubelet came since we started */

	/* the kubelet */
	int64_t listed_ms; /* when the newest List was asked for */
	/* When a hold last ended: an answer to an older question may show it still */
	int64_t ended_ms;
	uint64_t epoch;
	int64_t answering_ms; /* when this kubelet first answered with a List; 0: it has not */

	/* the disk */
	uint64_t stored;
	bool failing, slow, must_store;

	struct holds_action *actions;
	size_t first_action, n_actions, cap_actions;
};

#define HOLDS_UNREAD                                                                               \
	"the CDI directory and the run directory, which say what containers hold, were not read yet"

/* Events; the simple ones are in holds_event() itself. */
void holds_on_claimed(struct holds *h, const struct holds_claim *c, struct holds_now now);
void holds_on_claims_read(struct holds *h, bool complete, struct holds_now now);
void holds_on_kubelet(struct holds *h, uint64_t epoch, struct holds_now now);
void holds_on_answered(struct holds *h, const struct holds_answer *answer, struct holds_now now);
void holds_on_checkpoint(struct holds *h, const struct holds_entry *v, size_t n,
			 struct holds_now now);
void holds_on_probed(struct holds *h, const char *vf, const struct holds_facts *f,
		     struct holds_now now);
void holds_on_released(struct holds *h, const char *vf, struct holds_now now);
void holds_on_offered(struct holds *h, const struct holds_event *e, struct holds_now now);
void holds_on_allocated(struct holds *h, const struct holds_event *e, struct holds_now now);
void holds_on_promised(struct holds *h, const struct holds_event *e, struct holds_now now);
void holds_on_bound(struct holds *h, const struct holds_event *e, struct holds_now now);
void holds_on_confirmed(struct holds *h, const char *slot, struct holds_now now);
void holds_on_unbound(struct holds *h, const char *slot, struct holds_now now);
void holds_on_unprepared(struct holds *h, const struct holds_event *e, struct holds_now now);
void holds_on_not_created(struct holds *h, const struct ledger_owner *owner, struct holds_now now);
void holds_on_slot_probed(struct holds *h, const char *slot, enum holds_cgroup cgroup,
			  struct holds_now now);

bool holds_is_settled(const struct holds *h);
/* The UID of the pod that has this id by the checkpoint; "": none, or two. */
const char *holds_uid_of_id(const struct holds_entry *v, size_t n, const char *resource,
			    const char *id);

bool holds_text(const char *s); /* neither NULL nor "" */
/* Is the owner of the hold a ResourceClaim? */
bool holds_is_claims(const struct ledger_hold *hold);
/* Both owners have UIDs: equal ones; different ones. */
bool holds_same_uid(const struct ledger_owner *a, const struct ledger_owner *b);
bool holds_other_uid(const struct ledger_owner *a, const struct ledger_owner *b);
bool holds_same_name(const struct ledger_owner *a, const char *ns, const char *pod);
/*
 * Identity: is it the holder that starts, or one that its VF passes to within its pod? An ordinary
 * init container ends before others start, and they may get its VFs. f: as the VF is now; NULL: by
 * the kubelet's answer only.
 */
bool holds_is_holder(const struct ledger_hold *hold, const struct observation *s,
		     const struct ledger_owner *owner, const struct holds_facts *f);
/* Are holder and owner known to be two containers of one pod that run beside each other? */
bool holds_is_beside(const struct ledger_hold *hold, const struct observation *s,
		     const struct ledger_owner *owner);
/*
 * Only the UID is known of the container that starts (an ordinary init container is never shown),
 * and only the name of the holder: are they of one pod by the kubelet's account, which shows the
 * pod with the id, and no other pod with it?
 */
bool holds_is_shown_as(const struct ledger_hold *hold, const struct observation *s,
		       const struct ledger_owner *owner);
/* "container main of pod default/web-0 (UID …)", in a buffer of the caller. */
const char *holds_name(const struct ledger_owner *o, char *buf, size_t size);
#define HOLDS_NAME_MAX 400

/* An event (base/event.h); the pairs of a hold in it, and of its owner. */
#define OWNER_KEYS    " pod=%s%s%s uid=%s container=%s"
#define OWNER_OF(o)   (o)->ns, holds_text((o)->ns) ? "/" : "", (o)->pod, (o)->uid, (o)->container
#define HOLD_KEYS     " vf=%s slot=%s resource=%s" OWNER_KEYS
#define HOLD_OF(hold) (hold)->vf, (hold)->slot, (hold)->resource, OWNER_OF(&(hold)->owner)
void holds_say(struct holds *h, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The action that was not fetched yet and whose text begins so; NULL: none. */
struct holds_action *holds_queued(struct holds *h, enum holds_action_kind kind, const char *start);
void holds_relist(struct holds *h);
void holds_want_probe(struct holds *h, const char *vf);

/* Brings the observations in step with the ledger; to be called before one is read. */
void holds_sync(struct holds *h, struct holds_now now);
struct observation *holds_observation(struct holds *h, const char *vf,
				      struct holds_now now); /* NULL: no hold */
/* The observation of a hold as it is; NULL: holds_sync() has not made it yet. */
const struct observation *holds_observation_of(const struct holds *h,
					       const struct ledger_hold *hold);
/* Has this kubelet shown the holder's pod with the VF? */
bool holds_was_shown(const struct holds *h, const struct ledger_hold *hold,
		     const struct observation *s);

/* The cgroup of the holder's pod. A look that is older than the hold does not count for it. */
enum holds_cgroup holds_cgroup_of(const struct ledger_hold *hold, const struct holds_facts *f);
/* Why the VF is in use, by the machine; NULL: it is idle. moves: a VF that is away may be idle. */
const char *holds_in_use(const struct ledger_hold *hold, const struct holds_facts *f, bool moves);
/* The kubelet has given the VF away, or thinks that it is free. */
void holds_give_away(struct observation *s);
/* Is the holder gone, by one of the rules, and the VF idle? given: the kubelet gives the VF to
 * another container now. */
bool holds_is_gone(const struct holds *h, const struct ledger_hold *hold,
		   const struct observation *s, const struct holds_facts *f, bool given, bool moves,
		   struct holds_now now);
void holds_note_cgroup(struct holds *h, const char *vf, const struct holds_facts *f);
void holds_drop(struct holds *h, const char *vf, const char *because, struct holds_now now);
/* Drops the hold of vf; another hold of it, without a slot, takes its place in the same call. */
void holds_pass_on(struct holds *h, const char *vf, const char *because, struct holds_now now);

void holds_note_pods(struct id_pods *pods, const struct holds_entry *v, size_t n,
		     const char *resource, const char *id);
bool holds_is_only_pod(const struct id_pods *pods, const char *uid);
/* Of two pods: the UID of the one that is not uid; NULL: uid is of neither, or they are not two. */
const char *holds_other_of(const struct id_pods *pods, const char *uid);

struct promise *holds_promise(const struct holds *h, const char *slot); /* NULL: none */
void holds_forget_promise(struct holds *h, const char *slot);
void holds_lose_slot(struct observation *s, const char *slot); /* to another container */
void holds_know_slot(struct holds *h, const char *slot);       /* it is no longer unknown */
void holds_name_unknown(struct holds *h, const struct holds_entry *v, size_t n);
void holds_note_slots(struct holds *h, const struct holds_answer *answer, struct holds_now now);
/* A slot of this resource whose VF is not known; NULL: none. Its VF may be any that is not held. */
const struct unknown *holds_unknown_of(const struct holds *h, const char *resource);
const char *holds_why_unknown(const struct unknown *u, const char *vf, struct arena *a);
const struct ledger_hold *holds_live_slot(const struct holds *h,
					  const char *slot); /* NULL: nothing is bound to it */

#endif
