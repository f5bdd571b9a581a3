/* Late binding: slots, promised ones, and the VF of each. */
#include "holds/holds-internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"

/* --- slots that were given, and have no VF yet --- */

struct promise *holds_promise(const struct holds *h, const char *slot)
{
	for (size_t i = 0; i < h->n_promises; i++) {
		if (!strcmp(h->promises[i].slot, slot))
			return &h->promises[i];
	}
	return NULL;
}

static void promise(struct holds *h, const char *slot, bool given, struct holds_now now)
{
	struct promise *p = holds_promise(h, slot);

	if (!p) {
		h->promises = xgrow(h->promises, &h->cap_promises, h->n_promises + 1,
				    sizeof(*h->promises));
		p = &h->promises[h->n_promises++];
		*p = (struct promise) { .slot = xstrdup(slot) };
	}
	p->since_ms = now.mono_ms;
	p->held = true;
	p->given |= given;
}

void holds_forget_promise(struct holds *h, const char *slot)
{
	struct promise *p = holds_promise(h, slot);

	if (!p)
		return;
	free(p->slot);
	*p = h->promises[--h->n_promises];
}

const struct ledger_hold *holds_live_slot(const struct holds *h, const char *slot)
{
	const struct ledger_hold *hold = ledger_find_slot(h->ledger, slot);

	return hold && !hold->draining ? hold : NULL;
}

void holds_lose_slot(struct observation *s, const char *slot)
{
	free(s->former_slot);
	s->former_slot = xstrdup(slot);
}

static struct unknown *find_unknown(struct holds *h, const char *slot)
{
	for (size_t i = 0; i < h->n_unknown; i++) {
		if (!strcmp(h->unknown[i].slot, slot))
			return &h->unknown[i];
	}
	return NULL;
}

/* A VF that drains no longer counts on its slot: the slot is another container's. */
void holds_on_promised(struct holds *h, const struct holds_event *e, struct holds_now now)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct ledger_hold *hold = ledger_find_slot(h->ledger, e->slots[i]);
		struct unknown *u = find_unknown(h, e->slots[i]);
		struct ledger_hold loose;

		promise(h, e->slots[i], true, now);
		if (u)
			u->given_away = true;
		if (!hold)
			continue;
		holds_give_away(holds_observation(h, hold->vf, now));
		holds_want_probe(h, hold->vf);
		if (!hold->draining)
			continue;
		loose = *hold;
		loose.slot = NULL;
		ledger_put(h->ledger, &loose);
	}
	holds_relist(h);
}

/* --- slots whose VF is not known --- */

const char *holds_unknown(const struct holds *h, size_t k, const struct ledger_owner **ret_owner)
{
	if (k >= h->n_unknown)
		return NULL;
	if (ret_owner)
		*ret_owner = &h->unknown[k].owner;
	return h->unknown[k].slot;
}

const struct unknown *holds_unknown_of(const struct holds *h, const char *resource)
{
	for (size_t i = 0; i < h->n_unknown; i++) {
		if (!strcmp(h->unknown[i].resource, resource))
			return &h->unknown[i];
	}
	return NULL;
}

/* The kubelet gave the slot of this hold to another container, and that is gone: by the kubelet's
 * account it is this one's again. NULL: not so. */
static const char *slot_again(const struct holds *h, const struct ledger_hold *hold)
{
	const struct observation *s =
		hold->slot || hold->draining ? NULL : holds_observation_of(h, hold);
	const char *slot = s ? s->former_slot : NULL;

	return slot && !ledger_find_slot(h->ledger, slot) && !holds_promise(h, slot) ? slot : NULL;
}

/* A container has it, by a List. A slot given while railmated runs has no VF yet; one given before
 * has one that is not known. */
static void note_held(struct holds *h, const struct holds_seen *seen, struct holds_now now)
{
	struct promise *p = holds_promise(h, seen->id);
	struct unknown *u = find_unknown(h, seen->id);

	if (u && holds_same_name(&u->owner, seen->ns, seen->pod))
		u->doubled |= strcmp(seen->container, u->owner.container) != 0;
	if (p)
		p->held = true;
	if (p || holds_live_slot(h, seen->id))
		return;
	for (size_t i = 0; i < ledger_holds(h->ledger); i++) {
		const char *again = slot_again(h, ledger_hold_at(h->ledger, i));

		if (again && !strcmp(again, seen->id))
			return;
	}
	if (!h->claims_read)
		return; /* a record may name its VF */
	if (h->lost && !u) {
		h->unknown =
			xgrow(h->unknown, &h->cap_unknown, h->n_unknown + 1, sizeof(*h->unknown));
		holds_relist(h);
		h->unknown[h->n_unknown++] =
			(struct unknown) { .slot = xstrdup(seen->id),
					   .resource = xstrdup(seen->resource),
					   .owner = { xstrdup(seen->ns), xstrdup(seen->pod),
						      xstrdup(""), xstrdup(seen->container),
						      NULL } };
		holds_say(
			h, true,
			"the VF of a slot is not known: until its container ends, no new one gets a VF of the resource slot=%s resource=%s pod=%s/%s container=%s",
			seen->id, seen->resource, seen->ns, seen->pod, seen->container);
	}
	promise(h, seen->id, false, now);
}

static void name_unknown(struct unknown *u, const char *uid)
{
	if (holds_text(u->owner.uid) || u->missed || !*uid)
		return;
	free((char *)u->owner.uid);
	u->owner.uid = xstrdup(uid);
}

/* The kubelet has given it to two pods, and one of them starts: the other one, of this UID, may run
 * with it. Its name is known only where that is not the name of the pod that starts. */
static void leave_unknown(struct unknown *u, const struct ledger_owner *starts, const char *uid)
{
	if (!holds_text(starts->pod) || holds_same_name(&u->owner, starts->ns, starts->pod)) {
		free((char *)u->owner.ns);
		free((char *)u->owner.pod);
		free((char *)u->owner.container);
		u->owner.ns = xstrdup("");
		u->owner.pod = xstrdup("");
		u->owner.container = xstrdup("");
		u->doubled = false; /* that was of the pod that starts */
	}
	free((char *)u->owner.uid);
	u->owner.uid = xstrdup(uid);
	u->idle_ms = u->called_ms = 0;
}

void holds_name_unknown(struct holds *h, const struct holds_entry *v, size_t n)
{
	for (size_t i = 0; i < h->n_unknown; i++) {
		struct unknown *u = &h->unknown[i];

		holds_note_pods(&u->pods, v, n, u->resource, u->slot);
		if (!u->given_away)
			name_unknown(u, holds_uid_of_id(v, n, u->resource, u->slot));
	}
	/* The newest List shows both, and pods of one List have names of their own. */
	for (size_t i = 0; i < h->n_unknown; i++) {
		struct unknown *u = &h->unknown[i];

		for (size_t k = 0; k < h->n_unknown; k++) {
			const struct unknown *other = &h->unknown[k];

			if (!other->missed && holds_text(other->owner.uid) &&
			    holds_same_name(&other->owner, u->owner.ns, u->owner.pod))
				name_unknown(u, other->owner.uid);
		}
	}
}

/* Without a UID its cgroup will never show whether it runs: then rule (d) holds. */
static void note_missing(struct holds *h, const struct holds_answer *answer)
{
	for (size_t i = h->n_unknown; i-- > 0;) {
		struct unknown *u = &h->unknown[i];
		bool missed = true;

		if (!answer->all && !holds_same_name(&u->owner, answer->ns, answer->pod))
			continue;
		for (size_t k = 0; missed && k < answer->n_seen; k++) {
			const struct holds_seen *seen = &answer->seen[k];

			missed = strcmp(seen->id, u->slot) != 0 ||
				 !holds_same_name(&u->owner, seen->ns, seen->pod);
		}
		if (missed && !u->missed)
			u->missed_ms = answer->asked_ms;
		u->missed = missed;
		if (missed && !holds_text(u->owner.uid) &&
		    answer->asked_ms - u->missed_ms >= (int64_t)h->pace.mature_ms)
			holds_know_slot(h, u->slot);
	}
}

/* Those of the same pod and of this container do not run. NULL: none of the pod does. */
static void know_slots_of(struct holds *h, const struct unknown *one, const char *container)
{
	_cleanup_arena_ struct arena *a = arena_new(256);
	const struct ledger_owner o = ledger_copy_owner(&one->owner, a);
	const char *of = arena_strdup(a, container), *slot = arena_strdup(a, one->slot);

	for (size_t i = h->n_unknown; i-- > 0;) {
		const struct ledger_owner *its = &h->unknown[i].owner;

		if (!strcmp(h->unknown[i].slot, slot) ||
		    (holds_same_name(its, o.ns, o.pod) && !holds_other_uid(its, &o) &&
		     (!of || str_eq(its->container, of))))
			holds_know_slot(h, h->unknown[i].slot);
	}
}

/* The kubelet calls for a container only while the sandbox runs: then a process in its cgroup is no
 * container's. One that a former instance let start is created by then. */
static bool runs_no_container(const struct holds *h, const struct unknown *u, struct holds_now now)
{
	return u->idle_ms && now.mono_ms - u->idle_ms >= (int64_t)h->pace.create_ms &&
	       u->called_ms && now.mono_ms - u->called_ms < (int64_t)h->pace.create_ms;
}

void holds_on_slot_probed(struct holds *h, const char *slot, enum holds_cgroup cgroup,
			  struct holds_now now)
{
	struct unknown *u = find_unknown(h, slot);

	if (!u)
		return;
	if (cgroup != HOLDS_CGROUP_SANDBOX || !holds_text(u->owner.uid))
		u->idle_ms = 0;
	else if (!u->idle_ms)
		u->idle_ms = now.mono_ms;
	if ((cgroup == HOLDS_CGROUP_EMPTY && holds_text(u->owner.uid)) ||
	    runs_no_container(h, u, now))
		know_slots_of(h, u, NULL);
	else if (u->missed && (cgroup == HOLDS_CGROUP_EMPTY || cgroup == HOLDS_CGROUP_OFF))
		holds_know_slot(h, slot);
}

void holds_note_slots(struct holds *h, const struct holds_answer *answer, struct holds_now now)
{
	if (answer->asked_ms < h->listed_ms)
		return; /* a newer one overtook it */
	if (!answer->all) {
		note_missing(h, answer);
		return;
	}
	h->listed_ms = answer->asked_ms;
	for (size_t i = 0; i < answer->n_seen; i++) {
		if (answer->seen[i].slot)
			note_held(h, &answer->seen[i], now);
	}
	for (size_t i = h->n_promises; i-- > 0;) {
		struct promise *p = &h->promises[i];
		bool shown = false;

		for (size_t k = 0; !shown && k < answer->n_seen; k++)
			shown = !strcmp(answer->seen[k].id, p->slot);
		if (shown || p->since_ms + 2 * (int64_t)h->pace.young_ms > answer->asked_ms)
			continue;
		p->held = false;
		if (!holds_live_slot(h, p->slot))
			holds_forget_promise(h, p->slot);
	}
	note_missing(h, answer);
}

/* --- a container starts --- */

struct holds_slot holds_slot(const struct holds *h, const char *slot)
{
	const struct ledger_hold *hold = holds_live_slot(h, slot);

	return (struct holds_slot) { slot, hold ? hold->vf : NULL, holds_promise(h, slot) != NULL };
}

/* Without UIDs the name counts, unless the kubelet has given the slot since. */
static bool is_holder(const struct holds *h, const struct ledger_hold *hold,
		      const struct observation *s, const struct ledger_owner *owner)
{
	const struct promise *p = holds_promise(h, hold->slot);

	if (holds_is_claims(hold) || holds_text(owner->claim))
		return str_eq(hold->owner.claim, owner->claim);
	if (holds_text(hold->owner.uid) && holds_text(owner->uid))
		return holds_is_holder(hold, s, owner, NULL);
	return (holds_same_name(&hold->owner, owner->ns, owner->pod) ||
		holds_is_shown_as(hold, s, owner)) &&
	       !(p && p->given) && !holds_is_beside(hold, s, owner);
}

/* Of one the UID is known and of the other the name: they may be one. */
static bool may_be_holder(const struct ledger_owner *holder, const struct ledger_owner *owner)
{
	bool named = holds_text(holder->pod), has_uid = holds_text(holder->uid);

	return (has_uid && !named && !holds_text(owner->uid) && holds_text(owner->pod)) ||
	       (named && !has_uid && !holds_text(owner->pod) && holds_text(owner->uid));
}

const char *holds_slot_waits(struct holds *h, const char *slot, const struct ledger_owner *owner,
			     const struct holds_facts *facts, struct holds_now now, struct arena *a)
{
	const struct ledger_hold *hold = holds_live_slot(h, slot);
	const struct observation *s = hold ? holds_observation(h, hold->vf, now) : NULL;
	enum holds_cgroup cgroup = hold ? holds_cgroup_of(hold, facts) : HOLDS_CGROUP_OFF;
	char name[HOLDS_NAME_MAX];
	bool same;

	if (!h->claims_read)
		return HOLDS_UNREAD;
	if (!hold || s->tentative || s->not_created || holds_is_claims(hold))
		return NULL;
	if (may_be_holder(&hold->owner, owner) && !holds_is_shown_as(hold, s, owner))
		return arena_printf(
			a,
			"slot %s is held by %s, and whether that starts again is not known: neither PodResources nor the checkpoint says both name and UID",
			slot, holds_name(&hold->owner, name, sizeof(name)));
	same = is_holder(h, hold, s, owner);
	if (same && holds_same_uid(&hold->owner, owner) && !holds_is_holder(hold, s, owner, facts))
		return arena_printf(a, "VF %s of slot %s is held by %s: %s", hold->vf, slot,
				    holds_name(&hold->owner, name, sizeof(name)), facts->open);
	if (same || cgroup == HOLDS_CGROUP_OFF || cgroup == HOLDS_CGROUP_EMPTY ||
	    now.mono_ms - s->told_ms >= (int64_t)h->pace.create_ms)
		return NULL;
	return arena_printf(
		a, "slot %s was given to %s %" PRId64 " s ago, and that may not be created yet",
		slot, holds_name(&hold->owner, name, sizeof(name)),
		(now.mono_ms - s->told_ms) / 1000);
}

static void note_call(struct holds *h, const struct ledger_owner *owner, struct holds_now now)
{
	for (size_t i = 0; i < h->n_unknown; i++) {
		if (holds_same_uid(&h->unknown[i].owner, owner))
			h->unknown[i].called_ms = now.mono_ms;
	}
}

const char *holds_slot_start(struct holds *h, const char *slot, const struct ledger_owner *owner,
			     bool usable, struct holds_now now)
{
	const struct ledger_hold *hold = holds_live_slot(h, slot);
	struct unknown *u = find_unknown(h, slot);
	const char *other = u ? holds_other_of(&u->pods, owner->uid) : NULL;
	struct ledger_hold left;
	struct observation *s;
	bool same;

	note_call(h, owner, now);
	if (other && holds_text(u->owner.pod) && !holds_other_uid(&u->owner, owner))
		leave_unknown(u, owner, other);
	else if (u && !holds_other_uid(&u->owner, owner) &&
		 !(u->doubled && !str_eq(u->owner.container, owner->container)) &&
		 (holds_same_uid(&u->owner, owner) ||
		  holds_same_name(&u->owner, owner->ns, owner->pod)))
		/* It has ended and starts again, or an ordinary init container before it starts. */
		know_slots_of(h, u, u->owner.container);
	if (!hold)
		return NULL;
	s = holds_observation(h, hold->vf, now);
	same = is_holder(h, hold, s, owner);
	if (same && usable)
		return hold->vf;
	/* Another pod of the claim may run with it. The claim holds both once it has another one.
	 */
	if (same && holds_is_claims(hold))
		return NULL;
	left = *hold;
	left.slot = NULL;
	if (same) {
		holds_say(h, false, "the VF is not usable: its slot gets another one" HOLD_KEYS,
			  HOLD_OF(hold));
		left.draining = left.replaced = true;
		promise(h, slot, false, now); /* the container has it still */
	} else {
		/* The one before keeps its VF until it is gone. */
		holds_say(
			h, false,
			"the slot was given to another container: its VF stays with the first one until that is gone" HOLD_KEYS,
			HOLD_OF(hold));
		holds_give_away(s);
		holds_lose_slot(s, hold->slot);
	}
	holds_want_probe(h, hold->vf);
	holds_relist(h);
	ledger_put(h->ledger, &left);
	return NULL;
}

static bool is_of_container(const struct ledger_hold *hold, const struct ledger_owner *owner)
{
	bool same = holds_text(hold->owner.uid) && holds_text(owner->uid)
			    ? !strcmp(hold->owner.uid, owner->uid)
			    : holds_same_name(&hold->owner, owner->ns, owner->pod);

	return same && str_eq(hold->owner.container, owner->container ? owner->container : "");
}

/* Without a UID of the container a name counts only where the checkpoint can be read, and shows two
 * pods with the slot: then it is one of them. */
static bool keeps(const struct holds *h, const struct ledger_hold *hold,
		  const struct ledger_owner *owner)
{
	const struct observation *s = holds_observation_of(h, hold);

	return !holds_is_claims(hold) && is_of_container(hold, owner) &&
	       (holds_same_uid(&hold->owner, owner) || (s && *s->pods.uids[1]));
}

const char *holds_kept(const struct holds *h, const char *resource,
		       const struct ledger_owner *owner, size_t k)
{
	for (size_t i = 0; i < ledger_holds(h->ledger); i++) {
		const struct ledger_hold *hold = ledger_hold_at(h->ledger, i);

		if (hold->slot || hold->draining || strcmp(hold->resource, resource) != 0 ||
		    !keeps(h, hold, owner))
			continue;
		if (k-- == 0)
			return hold->vf;
	}
	return NULL;
}

bool holds_could_give(const struct holds *h, const char *vf)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);

	const struct observation *s;

	if (!hold || hold->draining)
		return true;
	s = holds_observation_of(h, hold);
	return s && (s->gone || s->given_away || s->unseen);
}

const char *holds_why_unknown(const struct unknown *u, const char *vf, struct arena *a)
{
	if (!holds_text(u->owner.pod))
		return arena_printf(a, "%s may be that of slot %s, which a pod with the UID %s has",
				    vf, u->slot, u->owner.uid);
	return arena_printf(a, "%s may be that of slot %s, which container %s of pod %s/%s has", vf,
			    u->slot, u->owner.container, u->owner.ns, u->owner.pod);
}

static bool refuse(const struct holds *h, const char *vf, const char *resource, struct arena *a,
		   const char **ret_why)
{
	if (!h->claims_read)
		*ret_why = HOLDS_UNREAD;
	else if (!holds_is_settled(h))
		*ret_why = "the ledger was lost, and the kubelet has not shown its pods yet";
	else
		*ret_why = holds_why_unknown(holds_unknown_of(h, resource), vf, a);
	return false;
}

bool holds_may_give(struct holds *h, const char *vf, const char *resource,
		    const struct holds_facts *f, struct holds_now now, struct arena *a,
		    const char **ret_why)
{
	const struct ledger_hold *hold;
	char name[HOLDS_NAME_MAX];
	const char *why;

	if (!holds_is_settled(h) || holds_unknown_of(h, resource))
		return refuse(h, vf, resource, a, ret_why);
	holds_note_cgroup(h, vf, f);
	hold = ledger_find(h->ledger, vf);
	why = holds_in_use(hold, f, false);
	if (hold && holds_is_gone(h, hold, holds_observation(h, vf, now), f, false, false, now)) {
		holds_drop(h, vf, "nothing uses what it held", now);
		return true;
	}
	if (!hold && !why)
		return true;
	if (hold)
		*ret_why = arena_printf(a, "VF %s is held by %s%s%s", vf,
					holds_name(&hold->owner, name, sizeof(name)),
					why ? ": " : "", why ? why : "");
	else
		*ret_why = arena_printf(a, "VF %s is in use: %s", vf, why);
	return false;
}

/* --- a binding --- */

void holds_on_bound(struct holds *h, const struct holds_event *e, struct holds_now now)
{
	_cleanup_free_ char *vf =
		xstrdup(e->given->vf); /* holds_kept() names the VF that is replaced here */
	const struct ledger_hold *before = ledger_find(h->ledger, vf);
	struct ledger_hold hold = {
		.vf = vf, .rdma = e->given->rdma, .since_ms = now.wall_ms, .decision = e->number
	};
	const struct ledger_hold *other;
	struct ledger_hold loose;
	struct observation *s;

	if (before && !e->number)
		hold = *before;
	hold.resource = e->given->resource;
	hold.slot = e->slot;
	hold.draining = hold.replaced = false;
	hold.kubelet = h->epoch;
	hold.owner = *e->owner;
	if (before && !e->number && !holds_text(e->owner->uid))
		hold.owner.uid = before->owner.uid;
	if (before && !e->number && !e->owner->container)
		hold.owner.container = before->owner.container;
	other = ledger_find_slot(h->ledger, e->slot);
	if (other && strcmp(other->vf, vf) != 0) {
		loose = *other;
		loose.slot = NULL;
		if (holds_is_claims(other) && !other->draining) {
			holds_say(h, false,
				  "the VF is not usable: its slot has another one" HOLD_KEYS,
				  HOLD_OF(other));
			holds_lose_slot(holds_observation(h, other->vf, now), e->slot);
		}
		ledger_put(h->ledger, &loose);
	}
	ledger_put(h->ledger, &hold);
	holds_forget_promise(h, e->slot);
	holds_know_slot(h, e->slot);
	s = holds_observation(h, vf, now);
	s->given_away = false;
	if (holds_text(e->owner->pod)) /* the kubelet has just named the container */
		s->shown_ms = now.mono_ms;
	s->tentative |= e->number != 0;
	holds_want_probe(h, vf); /* its sandbox runs: does the cgroup of its pod show that? */
	holds_relist(h);
}

void holds_on_confirmed(struct holds *h, const char *slot, struct holds_now now)
{
	const struct ledger_hold *hold = ledger_find_slot(h->ledger, slot);
	struct observation *s = hold ? holds_observation(h, hold->vf, now) : NULL;

	if (!s)
		return;
	s->tentative = s->not_created = false;
	s->told_ms = now.mono_ms;
}

void holds_on_not_created(struct holds *h, const struct ledger_owner *owner, struct holds_now now)
{
	holds_sync(h, now);
	for (size_t i = 0; holds_text(owner->container) && i < h->n_observations; i++)
		h->observations[i].not_created |=
			is_of_container(ledger_hold_at(h->ledger, i), owner);
}

/* The VF that the claim had for this slot before has it again. */
static void take_back(struct holds *h, const char *slot, struct holds_now now)
{
	for (size_t i = 0; i < ledger_holds(h->ledger); i++) {
		struct ledger_hold hold = *ledger_hold_at(h->ledger, i);

		if (hold.slot || hold.draining || !holds_is_claims(&hold) ||
		    !str_eq(holds_observation(h, hold.vf, now)->former_slot, slot))
			continue;
		hold.slot = slot;
		ledger_put(h->ledger, &hold);
		break;
	}
}

void holds_on_unbound(struct holds *h, const char *slot, struct holds_now now)
{
	const struct ledger_hold *hold = ledger_find_slot(h->ledger, slot);
	bool is_claims;

	if (!hold || !holds_observation(h, hold->vf, now)->tentative)
		return;
	is_claims = holds_is_claims(hold);
	ledger_drop(h->ledger, hold->vf);
	if (is_claims)
		take_back(h, slot, now);
	else
		promise(h, slot, true, now); /* the kubelet has not taken it back */
	holds_relist(h);
}

struct holds_slots holds_slots(const struct holds *h, struct arena *a)
{
	size_t n = ledger_holds(h->ledger);
	struct holds_slots s = { .uses = arena_array(a, n + h->n_promises + h->n_unknown,
						     sizeof(*s.uses)) };

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(h->ledger, i);
		const char *slot = hold->slot && !hold->draining ? hold->slot : slot_again(h, hold);

		if (slot)
			s.uses[s.n_uses++] = (struct holds_slot) { slot, hold->vf, false };
	}
	for (size_t i = 0; i < h->n_promises; i++) {
		const struct promise *p = &h->promises[i];

		if (p->held && !holds_live_slot(h, p->slot))
			s.uses[s.n_uses++] = (struct holds_slot) { p->slot, NULL, true };
	}
	/* A kubelet that starts does not show them yet, and a promise is forgotten by that. */
	for (size_t i = 0; i < h->n_unknown; i++)
		s.uses[s.n_uses++] = (struct holds_slot) { h->unknown[i].slot, NULL, true };
	return s;
}
