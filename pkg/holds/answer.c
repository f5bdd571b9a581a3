/* The kubelet's answers against the holds: pods that are shown, not shown any more, or new. */
#include "holds/holds-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

struct judging {
	struct holds *h;
	const struct holds_answer *answer;
	const struct holds_seen **seen; /* sorted by id and resource */
	struct holds_now now;
};

void holds_on_kubelet(struct holds *h, uint64_t epoch, struct holds_now now)
{
	if (epoch == h->epoch)
		return;
	h->epoch = epoch;
	h->answering_ms = h->listed_ms = 0;
	holds_sync(h, now);
	/* An answer of another kubelet counts for nothing. */
	for (size_t i = 0; i < h->n_observations; i++) {
		struct observation *s = &h->observations[i];

		s->shown_ms = s->judged_ms = s->missed_ms = 0;
		s->unseen = s->passed_on = s->given_away = s->gone = s->missed_twice = false;
	}
	for (size_t i = 0; i < h->n_unknown; i++)
		h->unknown[i].missed = false;
}

/* --- looking something up in an answer --- */

static int seen_cmp(const struct holds_seen *a, const struct holds_seen *b)
{
	int order = strcmp(a->id, b->id);

	return order ? order : strcmp(a->resource, b->resource);
}

static int by_id(const void *x, const void *y)
{
	const struct holds_seen *a = *(const struct holds_seen *const *)x;
	const struct holds_seen *b = *(const struct holds_seen *const *)y;
	int order = seen_cmp(a, b);

	if (!order)
		order = strcmp(a->ns, b->ns);
	if (!order)
		order = strcmp(a->pod, b->pod);
	return order ? order : strcmp(a->container, b->container);
}

/* Those of one id stand one behind the other; NULL: none. */
static const struct holds_seen *const *find_seen(const struct judging *j, const char *resource,
						 const char *id, size_t *ret_n)
{
	const struct holds_seen key = { .resource = resource, .id = id };
	size_t lo = 0, hi = j->answer->n_seen, n = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (seen_cmp(j->seen[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + n < j->answer->n_seen && !seen_cmp(j->seen[lo + n], &key))
		n++;
	*ret_n = n;
	return n ? &j->seen[lo] : NULL;
}

/* --- a hold that is shown --- */

/* Its container is no ordinary init container: those are never shown. */
static bool shows_container(const struct judging *j, const struct ledger_owner *owner)
{
	for (size_t i = 0; i < j->answer->n_pods; i++) {
		const struct holds_pod *pod = &j->answer->pods[i];

		if (holds_same_name(owner, pod->ns, pod->pod) &&
		    list_has(pod->containers, pod->n_containers, owner->container))
			return true;
	}
	return false;
}

static void hold_is_shown(struct judging *j, const struct ledger_hold *hold, struct observation *s,
			  const struct holds_seen *seen)
{
	struct ledger_hold now = *hold;
	struct ledger_decision named;
	const struct ledger_decision *d;

	s->shown_ms = j->answer->asked_ms;
	s->unseen = s->passed_on = s->given_away = s->gone = s->missed_twice = false;
	s->missed_ms = 0;
	now.owner.ns = seen->ns;
	now.owner.pod = seen->pod;
	if (!s->doubled) /* else it is another one's, too */
		now.owner.container = seen->container;
	now.draining = now.replaced = false;
	now.kubelet = j->h->epoch;
	if (!holds_text(hold->owner.pod) && hold->decision) {
		d = ledger_decision(j->h->ledger, hold->decision);
		if (d && !holds_text(d->owner.pod)) { /* it did not know its container */
			named = *d;
			named.owner = now.owner;
			ledger_amend(j->h->ledger, hold->decision, &named);
		}
	}
	if (hold->draining) {
		holds_say(j->h, false,
			  "the VF is no longer draining: the kubelet shows its pod again" HOLD_KEYS,
			  HOLD_OF(hold));
		holds_relist(j->h);
	}
	ledger_put(j->h->ledger, &now);
}

/* --- a hold that is not --- */

/* It binds late, and its slot is another container's: no answer can show it by an id. */
static bool has_lost_slot(const struct judging *j, const struct ledger_hold *hold)
{
	for (size_t i = 0; !hold->slot && i < j->answer->n_seen; i++) {
		if (j->answer->seen[i].slot && !strcmp(j->answer->seen[i].resource, hold->resource))
			return true;
	}
	return false;
}

/*
 * Its pod may be there, and the id is not. An ordinary init container is never shown, and a kubelet
 * that shows active pods only has lost the record of a live one (docs: a List may drop a
 * reservation). Else the pod is over.
 */
static void hold_is_unseen(struct judging *j, const struct ledger_hold *hold, struct observation *s)
{
	const struct holds_answer *answer = j->answer;
	const struct ledger_owner *owner = &hold->owner;
	bool there = false;

	for (size_t i = 0; holds_text(owner->pod) && i < answer->n_pods; i++) {
		const struct holds_pod *pod = &answer->pods[i];

		if (!str_eq(pod->ns, owner->ns) || !str_eq(pod->pod, owner->pod))
			continue;
		there = answer->active_only || !holds_text(owner->container) ||
			has_lost_slot(j, hold) ||
			!list_has(pod->containers, pod->n_containers, owner->container);
		break;
	}
	s->unseen = true;
	if (!there && holds_was_shown(j->h, hold, s)) {
		s->gone = true;
		if (!s->missed_ms)
			s->missed_ms = answer->asked_ms;
		else if (answer->asked_ms - s->missed_ms >= (int64_t)j->h->pace.apart_ms)
			s->missed_twice = true;
	}
	holds_want_probe(j->h, hold->vf);
}

/*
 * Only the UID is known of a hold: is this pod with its id another one, to which the kubelet has
 * given that as well? By the checkpoint; where that does not have the id, only if the hold was
 * there when we started.
 */
static bool may_be_next(const struct ledger_hold *hold, const struct observation *s)
{
	return !hold->pending && !holds_text(hold->owner.pod) && holds_text(hold->owner.uid) &&
	       (s->loaded || *s->pods.uids[0]) && !holds_is_only_pod(&s->pods, hold->owner.uid);
}

static void judge(struct judging *j, const struct ledger_hold *hold, struct observation *s)
{
	const struct holds_answer *answer = j->answer;
	const struct holds_seen *own = NULL, *other = NULL;
	const struct holds_seen *const *seen;
	struct ledger_hold renamed;
	bool two = false;
	size_t n;

	if (holds_is_claims(hold))
		return; /* ids of plugins alone are shown */
	/* An answer about one pod also names a hold that had no name. */
	seen = find_seen(j, hold->resource, hold->slot ? hold->slot : hold->vf, &n);
	for (size_t i = 0; i < n; i++) {
		/* Another pod with the slot means that this one has lost it, and nothing about its
		 * VF. One without a name is not that of the pod that was given its id since. */
		if (holds_text(hold->owner.pod)
			    ? !holds_same_name(&hold->owner, seen[i]->ns, seen[i]->pod)
			    : s->id_passed_on) {
			other = seen[i];
			continue;
		}
		two |= own && (strcmp(own->ns, seen[i]->ns) || strcmp(own->pod, seen[i]->pod));
		own = own ? own : seen[i];
		/* Of a pending one it is only inferred which container has it. */
		s->doubled |= !hold->pending && holds_text(hold->owner.container) &&
			      strcmp(seen[i]->container, hold->owner.container) != 0 &&
			      shows_container(j, &hold->owner);
	}
	if (two || (own && may_be_next(hold, s)))
		return; /* it has no name, and may be another's */
	if (s->noted_ms >= answer->asked_ms || answer->asked_ms < s->judged_ms)
		return; /* an answer overtook this one, or it is older than the hold */
	if (own && other && !s->doubly_told) {
		s->doubly_told = true;
		holds_say(j->h, true,
			  "the kubelet has given a VF to two pods" HOLD_KEYS " other=%s/%s",
			  HOLD_OF(hold), other->ns, other->pod);
	}
	if (own && (holds_text(hold->owner.pod) || hold->pending || !hold->slot)) {
		s->judged_ms = answer->asked_ms;
		hold_is_shown(j, hold, s, own);
		return;
	}
	if (other && hold->pending) {
		/* No container has started with it: it was inferred whose it is. */
		renamed = *hold;
		renamed.owner = (struct ledger_owner) { .ns = other->ns,
							.pod = other->pod,
							.container = other->container };
		ledger_put(j->h->ledger, &renamed);
		return;
	}
	if (!answer->all && !holds_same_name(&hold->owner, answer->ns, answer->pod))
		return;
	/* The kubelet notes a device a moment after it gave it; a shown one is noted. */
	if (!holds_was_shown(j->h, hold, s) &&
	    answer->asked_ms < s->noted_ms + (int64_t)j->h->pace.young_ms)
		return;
	s->judged_ms = answer->asked_ms;
	s->passed_on = other != NULL;
	s->id_passed_on |= s->passed_on;
	hold_is_unseen(j, hold, s);
}

/*
 * A record, older than the slot's present one, named the VF for another container of the same pod.
 * One hands its slot to the next only when it has ended, unless the kubelet gave the slot to both.
 */
static bool is_former(const struct judging *j, const struct ledger_hold *hold,
		      const struct observation *s)
{
	const struct ledger_hold *next =
		s->loaded && s->former_slot && !hold->slot && !hold->draining
			? ledger_find_slot(j->h->ledger, s->former_slot)
			: NULL;
	const struct observation *its = next ? holds_observation_of(j->h, next) : NULL;

	return its && its->judged_ms == j->answer->asked_ms && !its->doubled && !its->tentative &&
	       !next->pending && next->decision > hold->decision &&
	       holds_same_uid(&next->owner, &hold->owner);
}

static void end_former(struct judging *j)
{
	struct ledger *l = j->h->ledger;

	for (size_t i = 0; i < ledger_holds(l); i++) {
		struct ledger_hold hold = *ledger_hold_at(l, i);

		if (!is_former(j, &hold, &j->h->observations[i]))
			continue;
		holds_say(
			j->h, false,
			"the VF drains: its pod has started again with another VF for the slot" HOLD_KEYS,
			HOLD_OF(&hold));
		holds_want_probe(j->h, hold.vf);
		hold.draining = hold.replaced = true;
		ledger_put(l, &hold); /* its strings are new */
		j->h->synced = ledger_generation(l);
	}
}

/* --- ids that no hold has --- */

/* A container has it: the ledger was lost. Late ids are slots: see slots.c. */
static void adopt(struct judging *j, const struct holds_seen *seen)
{
	struct ledger_hold hold = {
		.vf = seen->id,
		.resource = seen->resource,
		.owner = { .ns = seen->ns, .pod = seen->pod, .container = seen->container },
		.kubelet = j->h->epoch,
		.since_ms = j->now.wall_ms,
		.pending = !j->h->lost, /* it was given while another one still held it, and has not
					   started */
	};
	struct observation *s;

	if (!j->h->claims_read || seen->slot || ledger_find(j->h->ledger, seen->id))
		return;
	if (j->h->lost)
		ledger_skip(j->h->ledger, (uint64_t)j->now.wall_ms);
	hold.decision = ledger_next(j->h->ledger); /* no record knows better */
	ledger_skip(j->h->ledger, hold.decision);
	ledger_put(j->h->ledger, &hold);
	holds_say(j->h, false,
		  "the VF is held, as the kubelet shows vf=%s resource=%s pod=%s/%s container=%s",
		  seen->id, seen->resource, seen->ns, seen->pod, seen->container);
	holds_relist(j->h);
	s = holds_observation(j->h, seen->id, j->now);
	s->noted_ms = j->answer->asked_ms - (int64_t)j->h->pace.young_ms - 1;
	s->shown_ms = s->judged_ms = j->answer->asked_ms;
}

bool holds_was_shown(const struct holds *h, const struct ledger_hold *hold,
		     const struct observation *s)
{
	return holds_text(hold->owner.pod) &&
	       (s->shown_ms || (h->epoch && hold->kubelet == h->epoch));
}

/* From the last hold to the first: judging changes a hold in its place. */
void holds_on_answered(struct holds *h, const struct holds_answer *answer, struct holds_now now)
{
	struct judging j = { .h = h, .answer = answer, .now = now };
	bool overtaken, settled = holds_is_settled(h);

	if (answer->epoch != h->epoch)
		return;
	j.seen = xcalloc(answer->n_seen + 1, sizeof(*j.seen));
	for (size_t i = 0; i < answer->n_seen; i++)
		j.seen[i] = &answer->seen[i];
	if (answer->n_seen)
		qsort(j.seen, answer->n_seen, sizeof(*j.seen), by_id);
	holds_sync(h, now);
	overtaken = answer->asked_ms < h->listed_ms || answer->asked_ms <= h->ended_ms;
	for (size_t i = ledger_holds(h->ledger); i-- > 0;) {
		judge(&j, ledger_hold_at(h->ledger, i), &h->observations[i]);
		h->synced = ledger_generation(h->ledger); /* owners change, holds do not */
	}
	end_former(&j);
	for (size_t i = 0; !overtaken && i < answer->n_seen; i++)
		adopt(&j, j.seen[i]);
	holds_note_slots(h, answer, now);
	if (answer->all) {
		h->shown |= h->claims_read && !overtaken;
		if (!h->answering_ms)
			h->answering_ms = now.mono_ms;
	}
	if (!settled && holds_is_settled(h))
		holds_relist(h);
	free(j.seen);
}

/* --- the checkpoint --- */

const char *holds_uid_of_id(const struct holds_entry *v, size_t n, const char *resource,
			    const char *id)
{
	const char *uid = "";

	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].id, id) != 0 || strcmp(v[i].resource, resource) != 0)
			continue;
		if (*uid && strcmp(uid, v[i].uid) != 0)
			return "";
		uid = v[i].uid;
	}
	return uid;
}

/* Its container has these, and no others of the resource. */
static bool has_just(const struct holds_entry *v, size_t n, const struct holds_entry *one,
		     const char *const *ids, size_t n_ids)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].uid, one->uid) != 0 ||
		    strcmp(v[i].container, one->container) != 0 ||
		    strcmp(v[i].resource, one->resource) != 0)
			continue;
		if (!list_has(ids, n_ids, v[i].id))
			return false;
		count++;
	}
	return count == n_ids;
}

const char *holds_checkpoint_uid(const struct holds_entry *v, size_t n, const char *resource,
				 const char *const *ids, size_t n_ids)
{
	const char *uid = "";

	for (size_t i = 0; n_ids && i < n; i++) {
		if (strcmp(v[i].resource, resource) != 0 || strcmp(v[i].id, ids[0]) != 0 ||
		    !has_just(v, n, &v[i], ids, n_ids))
			continue;
		if (*uid && strcmp(uid, v[i].uid) != 0)
			return "";
		uid = v[i].uid;
	}
	for (size_t i = 0; !*uid && i < n_ids; i++)
		uid = holds_uid_of_id(v, n, resource, ids[i]);
	return uid;
}

void holds_note_pods(struct id_pods *pods, const struct holds_entry *v, size_t n,
		     const char *resource, const char *id)
{
	const char *uids[2] = { "", "" };
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].id, id) != 0 || strcmp(v[i].resource, resource) != 0 ||
		    (count && !strcmp(v[i].uid, uids[0])) ||
		    (count > 1 && !strcmp(v[i].uid, uids[1])))
			continue;
		if (count < 2)
			uids[count] = v[i].uid;
		count++;
	}
	for (size_t i = 0; i < 2; i++)
		snprintf(pods->uids[i], sizeof(pods->uids[i]), "%s", count > 2 ? "" : uids[i]);
}

bool holds_is_only_pod(const struct id_pods *pods, const char *uid)
{
	return !*pods->uids[1] && !strcmp(pods->uids[0], uid);
}

const char *holds_other_of(const struct id_pods *pods, const char *uid)
{
	for (size_t i = 0; holds_text(uid) && *pods->uids[1] && i < 2; i++) {
		if (!strcmp(pods->uids[i], uid))
			return pods->uids[!i];
	}
	return NULL;
}

static bool is_shared(const struct holds_entry *v, size_t n, const struct ledger_hold *hold,
		      const char *id)
{
	const char *container = NULL;
	bool shared = false;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].id, id) != 0 || strcmp(v[i].resource, hold->resource) != 0 ||
		    !str_eq(v[i].uid, hold->owner.uid))
			continue;
		shared |= container && strcmp(container, v[i].container) != 0;
		container = v[i].container;
	}
	return shared;
}

/*
 * A hold that has another UID than the checkpoint keeps it: its id was given away. One that has
 * none is not named if a container has started with it and the id may have been given to another
 * pod since: we hear of that from the kubelet only while we run. No List takes that back: it shows
 * names, and another kubelet remembers no other pod than the last. In the moment of Allocate the
 * checkpoint may still have the pod before.
 */
void holds_on_checkpoint(struct holds *h, const struct holds_entry *v, size_t n,
			 struct holds_now now)
{
	holds_sync(h, now);
	for (size_t i = 0; i < ledger_holds(h->ledger); i++) {
		struct ledger_hold hold = *ledger_hold_at(h->ledger, i);
		const char *id = hold.slot ? hold.slot : hold.vf;
		const char *uid = holds_uid_of_id(v, n, hold.resource, id);
		struct observation *s = &h->observations[i];

		holds_note_pods(&s->pods, v, n, hold.resource,
				s->former_slot ? s->former_slot : id);
		s->shared = is_shared(v, n, &hold, id);
		if (!*uid || hold.draining || s->given_away)
			continue;
		if (holds_text(hold.owner.uid)) {
			if (!strcmp(uid, hold.owner.uid))
				continue;
			holds_give_away(s);
			holds_want_probe(h, hold.vf);
		} else if (hold.pending ? now.mono_ms - s->noted_ms >= (int64_t)h->pace.young_ms
					: !s->loaded && !s->id_passed_on) {
			hold.owner.uid = uid;
			ledger_put(h->ledger, &hold);
			h->synced = ledger_generation(h->ledger);
		}
	}
	holds_name_unknown(h, v, n);
}
