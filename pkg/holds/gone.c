/* When a holder is gone and its VF free: the only place that frees one. */
#include "holds/holds-internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* A pod whose cgroup was not seen by then is on a node that does not show it. */
#define SEE_CGROUP_MS 60000

enum holds_cgroup holds_cgroup_of(const struct ledger_hold *hold, const struct holds_facts *f)
{
	if (f->cgroup == HOLDS_CGROUP_OFF || str_eq(f->uid, hold->owner.uid))
		return f->cgroup;
	return HOLDS_CGROUP_UNKNOWN;
}

const char *holds_in_use(const struct ledger_hold *hold, const struct holds_facts *f, bool moves)
{
	if (f->unreadable)
		return f->unreadable;
	if (f->away && !moves)
		return f->away;
	if (f->open)
		return f->open;
	if (!hold || hold->replaced || !holds_text(hold->owner.uid))
		return NULL;
	switch (holds_cgroup_of(hold, f)) {
	case HOLDS_CGROUP_RUNS:
		return "containers of its pod still run";
	case HOLDS_CGROUP_UNKNOWN:
		return hold->pending ? NULL : "the cgroup of its pod cannot be read";
	default:
		return NULL;
	}
}

void holds_give_away(struct observation *s)
{
	s->given_away = s->id_passed_on = true;
}

bool holds_is_gone(const struct holds *h, const struct ledger_hold *hold,
		   const struct observation *s, const struct holds_facts *f, bool given, bool moves,
		   struct holds_now now)
{
	bool has_uid = holds_text(hold->owner.uid);
	bool away = given || s->unseen || s->given_away;
	bool cgroups_show = hold->seen_cgroup || h->cgroups_seen;
	/* The pod has no process, and we have seen that its cgroup would show one. */
	bool is_empty = (cgroups_show || !hold->pending) && has_uid &&
			holds_cgroup_of(hold, f) == HOLDS_CGROUP_EMPTY;
	/* Its cgroup will never show whether it runs. */
	bool has_no_cgroup = !has_uid || f->cgroup == HOLDS_CGROUP_OFF ||
			     (f->cgroup == HOLDS_CGROUP_EMPTY && !cgroups_show);

	if (!h->claims_read || holds_in_use(hold, f, moves && given))
		return false;
	if (hold->replaced)
		return true;
	if (holds_is_claims(hold))
		return hold->draining;
	/* Without a UID (a) misses but a name, and the pod's processes may live. */
	if ((hold->draining || s->gone) && (has_uid || f->cgroup == HOLDS_CGROUP_OFF))
		return true;
	if (away && (hold->pending || h->blind || is_empty))
		return true;
	return s->unseen && has_no_cgroup && h->answering_ms &&
	       now.mono_ms - h->answering_ms >= (int64_t)h->pace.mature_ms &&
	       now.mono_ms - s->noted_ms >= (int64_t)h->pace.mature_ms &&
	       now.mono_ms - s->shown_ms >= (int64_t)h->pace.mature_ms;
}

void holds_note_cgroup(struct holds *h, const char *vf, const struct holds_facts *f)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);
	bool is_there = f->cgroup == HOLDS_CGROUP_RUNS || f->cgroup_is_there;
	struct ledger_hold seen;

	h->cgroups_seen |= is_there;
	if (!hold || hold->seen_cgroup || !is_there || !holds_text(f->uid) ||
	    !str_eq(f->uid, hold->owner.uid))
		return;
	seen = *hold;
	seen.seen_cgroup = true;
	ledger_put(h->ledger, &seen);
}

static void end(struct holds *h, const char *vf, struct holds_now now)
{
	ledger_drop(h->ledger, vf);
	h->ended_ms = now.mono_ms;
}

#define KEYS "%s" OWNER_KEYS " resource=%s reason=%s"
#define FREE "VFs are free: their holder is gone"

/* One line for all VFs of one container of which this is true for one reason: it has eight, as a
 * rule. */
static void say_of_all(struct holds *h, const char *sentence, const struct ledger_hold *hold,
		       const char *because)
{
	char start[EVENT_SIZE] = "";
	struct holds_action *said;
	size_t len;

	event_extend(start, sizeof(start), KEYS, sentence, OWNER_OF(&hold->owner), hold->resource,
		     because);
	said = holds_queued(h, HOLDS_SAY, start);
	len = said ? strlen(said->text) : 0;
	if (said && len + strlen(hold->vf) + 1 < sizeof(said->text))
		snprintf(said->text + len, sizeof(said->text) - len, ",%s", hold->vf);
	else
		holds_say(h, false, KEYS " vf=%s", sentence, OWNER_OF(&hold->owner), hold->resource,
			  because, hold->vf);
}

void holds_drop(struct holds *h, const char *vf, const char *because, struct holds_now now)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);

	if (!hold)
		return;
	say_of_all(h, FREE, hold, because);
	end(h, vf, now);
	holds_relist(h);
}

void holds_pass_on(struct holds *h, const char *vf, const char *because, struct holds_now now)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);

	if (!hold)
		return;
	if (hold->draining || hold->slot) /* else the next one's looks the same to the kubelet */
		holds_relist(h);
	say_of_all(h, FREE, hold, because);
	end(h, vf, now);
}

void holds_on_probed(struct holds *h, const char *vf, const struct holds_facts *f,
		     struct holds_now now)
{
	const struct ledger_hold *hold;
	const struct observation *s;
	struct ledger_hold drained;
	const char *why;

	holds_note_cgroup(h, vf, f);
	hold = ledger_find(h->ledger, vf);
	s = holds_observation(h, vf, now);
	if (!hold || !s)
		return;
	why = holds_in_use(hold, f, false);
	if (holds_is_gone(h, hold, s, f, false, false, now)) {
		holds_drop(h, vf, "nothing uses what it held", now);
	} else if (!hold->draining && s->gone && s->missed_twice && !s->passed_on && why) {
		holds_say(
			h, false,
			"the VF is still in use and its holder is gone: it is withheld until it is idle" HOLD_KEYS
			" reason=%s",
			HOLD_OF(hold), why);
		drained = *hold;
		drained.draining = true;
		ledger_put(h->ledger, &drained);
		holds_relist(h);
	}
}

bool holds_is_shown(const struct holds *h, const char *vf)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);
	const struct observation *s = hold ? holds_observation_of(h, hold) : NULL;

	return s && !holds_is_claims(hold) && s->shown_ms && !s->unseen && !s->passed_on;
}

enum holds_whose holds_whose(const struct holds *h, const char *vf, const struct ledger_owner *pod)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);
	bool same;

	if (!hold)
		return HOLDS_OF_NOBODY;
	if (hold->pending && !holds_text(hold->owner.uid) && !holds_text(hold->owner.pod))
		return HOLDS_OF_UNKNOWN;
	same = holds_same_uid(&hold->owner, pod) ||
	       (!holds_other_uid(&hold->owner, pod) &&
		holds_same_name(&hold->owner, pod->ns, pod->pod));
	return same ? HOLDS_OF_POD : HOLDS_OF_ANOTHER;
}

bool holds_wants_probe(struct holds *h, size_t i, struct holds_now now)
{
	const struct ledger_hold *hold = ledger_hold_at(h->ledger, i);
	const struct observation *s;

	holds_sync(h, now);
	s = &h->observations[i];
	return hold->draining || s->gone || s->unseen || s->given_away ||
	       (holds_text(hold->owner.uid) && !hold->seen_cgroup &&
		now.mono_ms - s->noted_ms < SEE_CGROUP_MS);
}

void holds_on_unprepared(struct holds *h, const struct holds_event *e, struct holds_now now)
{
	for (size_t i = 0; i < ledger_holds(h->ledger); i++) {
		struct ledger_hold hold = *ledger_hold_at(h->ledger, i);

		if (hold.draining || !str_eq(hold.owner.claim, e->claim_uid))
			continue;
		if (e->owner) {
			hold.owner = *e->owner;
			hold.owner.claim = e->claim_uid;
			hold.seen_cgroup = true;
		}
		say_of_all(h, "VFs are free once they are idle", &hold,
			   "the kubelet has unprepared their claim");
		hold.draining = true;
		ledger_put(h->ledger, &hold);
		holds_want_probe(h, ledger_hold_at(h->ledger, i)->vf);
		holds_relist(h);
	}
	holds_sync(h, now);
}

void holds_on_released(struct holds *h, const char *vf, struct holds_now now)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);

	if (!hold)
		return;
	holds_say(h, true, "an operator has released the VF" HOLD_KEYS, HOLD_OF(hold));
	end(h, vf, now);
	holds_relist(h);
}
