/* Early binding: the VFs that Allocate gave, and whether a container may start with them. */
#include "holds/holds-internal.h"

#include "base/arena.h"
#include "base/mem.h"

/* The hold goes on: other known facts of the VF stay. */
static bool goes_on(const struct ledger_hold *old, const struct ledger_owner *owner,
		    uint64_t number)
{
	if (!old || old->slot || holds_other_uid(&old->owner, owner))
		return false;
	return holds_same_uid(&old->owner, owner) || (number && old->decision == number);
}

static void put(struct holds *h, const struct holds_vf *v, const struct ledger_owner *owner,
		uint64_t number, bool pending, struct holds_now now)
{
	const struct ledger_hold *old = ledger_find(h->ledger, v->vf);
	struct ledger_hold hold = {
		.vf = v->vf, .resource = v->resource, .rdma = v->rdma, .since_ms = now.wall_ms
	};

	if (goes_on(old, owner, number))
		hold = *old;
	hold.owner = *owner;
	/* Nothing is known: it stays whose it was. Of a pending one that was inferred, for the
	 * container of its own decision. */
	if (old && !holds_text(owner->pod) && !holds_text(owner->uid) &&
	    (old->decision == number || (!pending && !old->pending)))
		hold.owner = old->owner;
	else if (old && !holds_text(owner->uid) && old->decision == number)
		hold.owner.uid = old->owner.uid;
	if (number)
		hold.decision = number;
	hold.pending = pending;
	hold.draining = hold.replaced = false;
	hold.kubelet = pending ? 0 : h->epoch;
	ledger_put(h->ledger, &hold);
	holds_note_cgroup(h, v->vf, v->facts);
}

/* Judged first, then changed: after each change all observations would be sorted anew for the next
 * VF. Where the new container may not have it yet, it waits in PreStartContainer. */
void holds_on_allocated(struct holds *h, const struct holds_event *e, struct holds_now now)
{
	_cleanup_free_ bool *left = xcalloc(e->n, sizeof(*left));

	for (size_t i = 0; i < e->n; i++) {
		const struct holds_vf *v = &e->given[i];
		const struct ledger_hold *hold = ledger_find(h->ledger, v->vf);
		struct observation *s = holds_observation(h, v->vf, now);

		left[i] = !hold || holds_is_holder(hold, s, e->owner, v->facts) ||
			  holds_is_gone(h, hold, s, v->facts, true, false, now);
		if (left[i])
			continue;
		holds_give_away(s);
		holds_say(
			h, false,
			"the kubelet has given the VF to another container: its holder has it still" HOLD_KEYS,
			HOLD_OF(hold));
	}
	for (size_t i = 0; i < e->n; i++) {
		const struct holds_vf *v = &e->given[i];
		const struct ledger_hold *hold = ledger_find(h->ledger, v->vf);
		/* VFs that its init container had */
		bool own = hold && holds_same_uid(&hold->owner, e->owner);

		if (!left[i])
			continue;
		if (hold && !own)
			holds_pass_on(h, v->vf,
				      "the kubelet has given what it held to another container",
				      now);
		put(h, v, e->owner, e->number, !own || hold->pending, now);
	}
	holds_sync(h, now);
}

void holds_on_offered(struct holds *h, const struct holds_event *e, struct holds_now now)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct ledger_hold *hold = ledger_find(h->ledger, e->vfs[i]);
		struct observation *s = hold ? holds_observation(h, e->vfs[i], now) : NULL;

		if (!hold || hold->draining || (s->judged_ms && !s->unseen))
			continue;
		holds_give_away(s);
		holds_want_probe(h, hold->vf);
	}
}

/* --- PreStartContainer --- */

/*
 * Without a UID the name alone identifies the owner of the hold, or the container that starts: no
 * process may be using the VF. A container that starts again has ended before.
 */
static bool may_be_own(const struct ledger_hold *hold, const struct observation *s,
		       const struct ledger_owner *owner)
{
	if (holds_text(hold->owner.uid) && holds_text(owner->uid))
		return false;
	if (!holds_text(owner->pod) && !holds_text(owner->uid))
		return true;
	return (!holds_text(hold->owner.pod) && !holds_text(hold->owner.uid)) ||
	       holds_same_name(&hold->owner, owner->ns, owner->pod) ||
	       holds_is_shown_as(hold, s, owner);
}

static bool refuse(const struct ledger_hold *hold, const char *vf, const char *because,
		   struct arena *a, const char **ret_why)
{
	char name[HOLDS_NAME_MAX];

	if (!hold)
		*ret_why = arena_printf(a, "VF %s is in use: %s", vf, because);
	else
		*ret_why = arena_printf(a, "VF %s is held by %s%s: %s", vf,
					holds_name(&hold->owner, name, sizeof(name)),
					hold->draining && !hold->replaced ? ", which is gone" : "",
					because);
	return false;
}

static bool may_start(struct holds *h, const struct holds_vf *v, const struct ledger_owner *owner,
		      uint64_t decision, bool moves, struct holds_now now, struct arena *a,
		      const char **ret_why)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, v->vf);
	const struct observation *s = holds_observation(h, v->vf, now);
	bool ours = hold && hold->pending && decision && hold->decision == decision;
	bool nameless = !holds_text(owner->pod) && !holds_text(owner->uid) && !h->blind;
	const char *why =
		holds_in_use(nameless && hold && !hold->pending ? hold : NULL, v->facts, moves);

	if (hold && holds_is_holder(hold, s, owner, v->facts))
		return true;
	if (ours && !h->lost)
		return true; /* it was free when this decision took it */
	if (hold && holds_is_beside(hold, s, owner))
		return refuse(
			hold, v->vf,
			"the kubelet has given it to another container of the pod as well: delete the pod",
			a, ret_why);
	if (!hold || hold->pending ||
	    (may_be_own(hold, s, owner) && !hold->draining && !s->given_away &&
	     !(holds_text(hold->owner.uid) && s->id_passed_on)))
		return !why || refuse(hold && !hold->pending ? hold : NULL, v->vf, why, a, ret_why);
	if (holds_is_gone(h, hold, s, v->facts, true, moves, now))
		return true;
	why = holds_in_use(hold, v->facts, moves);
	if (!why && s->gone)
		why = "its UID is not known, so it may still run";
	return refuse(hold, v->vf,
		      why ? why : "the kubelet has not shown yet that this pod is gone", a,
		      ret_why);
}

/* A container starts that it is not of. */
static bool passes_on(const struct ledger_hold *hold, const struct observation *s,
		      const struct ledger_owner *owner)
{
	return hold && !hold->pending && !holds_same_uid(&hold->owner, owner) &&
	       !may_be_own(hold, s, owner);
}

/*
 * A hold that begins now and not with its decision (another container had the VF then) needs a
 * number of its own: a ledger that was stored between them knows the decision's, and no hold with
 * it, and one that comes back may know a later decision. 0: every hold is there, and keeps the
 * number that it has.
 */
static uint64_t number_of_start(struct holds *h, const struct holds_vf *v, size_t n,
				const struct ledger_owner *owner, uint64_t decision,
				struct holds_now now)
{
	const struct ledger_decision *d;
	bool begins = false;
	uint64_t number;

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *old = ledger_find(h->ledger, v[i].vf);

		begins |= !goes_on(old, owner, decision) ||
			  (decision && old->decision != decision) ||
			  passes_on(old, holds_observation(h, v[i].vf, now), owner);
	}
	if (!begins)
		return decision;
	d = decision ? ledger_decision(h->ledger, decision) : NULL;
	if (d)
		return ledger_decide(h->ledger, d);
	if (h->lost)
		ledger_skip(h->ledger, (uint64_t)now.wall_ms);
	number = ledger_next(h->ledger);
	ledger_skip(h->ledger, number);
	return number;
}

/* The kubelet shows the holder, by its name, and gives its id to two pods. One of them is the one
 * that starts: the other one's cgroup shows whether the holder runs. */
static void know_the_other(struct holds *h, const char *vf, const struct ledger_owner *owner,
			   struct holds_now now)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);
	const struct observation *s = holds_observation(h, vf, now);
	const char *other = s ? holds_other_of(&s->pods, owner->uid) : NULL;
	struct ledger_hold known;

	if (!other || !hold || holds_text(hold->owner.uid) || !holds_text(hold->owner.pod) ||
	    holds_same_name(&hold->owner, owner->ns, owner->pod) || !s->shown_ms || s->unseen)
		return;
	known = *hold;
	known.owner.uid = other;
	ledger_put(h->ledger, &known);
	holds_sync(h, now);
}

bool holds_start(struct holds *h, const struct holds_vf *v, size_t n,
		 const struct ledger_owner *owner, uint64_t decision, bool moves,
		 struct holds_now now, struct arena *a, const char **ret_why)
{
	if (!h->claims_read) {
		*ret_why = HOLDS_UNREAD;
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold;
		struct observation *s;

		know_the_other(h, v[i].vf, owner, now);
		holds_note_cgroup(h, v[i].vf, v[i].facts);
		if (!may_start(h, &v[i], owner, decision, moves, now, a, ret_why)) {
			hold = ledger_find(h->ledger, v[i].vf);
			s = holds_observation(h, v[i].vf, now);
			if (hold && !may_be_own(hold, s, owner))
				holds_give_away(s);
			holds_on_not_created(h, owner, now);
			return false;
		}
	}
	decision = number_of_start(h, v, n, owner, decision, now);
	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_find(h->ledger, v[i].vf);
		struct observation *s = holds_observation(h, v[i].vf, now);
		struct id_pods pods = s ? s->pods : (struct id_pods) { 0 };

		if (passes_on(hold, s, owner))
			holds_pass_on(h, v[i].vf, "another container starts with what it held",
				      now);
		put(h, &v[i], owner, decision, false, now);
		s = holds_observation(h, v[i].vf, now);
		s->pods = pods;		    /* of the id, and not of its holder */
		if (holds_text(owner->pod)) /* the kubelet has just named the container */
			s->shown_ms = now.mono_ms;
		holds_want_probe(
			h, v[i].vf); /* its sandbox runs: does the cgroup of its pod show that? */
	}
	holds_sync(h, now);
	return true;
}
