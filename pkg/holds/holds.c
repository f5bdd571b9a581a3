#include "holds/holds.h"
#include "holds/holds-internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"

const struct holds_pace holds_default_pace = {
	.young_ms = 1000,
	.apart_ms = 2000,
	.mature_ms = 600000,
	.store_ms = 3000,
	.create_ms = 35000,
};

struct holds *holds_new(struct ledger *ledger, const struct holds_pace *pace, struct holds_now now)
{
	struct holds *h = xcalloc(1, sizeof(*h));

	h->lost = !ledger;
	h->ledger = ledger ? ledger : ledger_new();
	if (h->lost) /* records that cannot be read yet, and a ledger that comes back, may have any
			number */
		ledger_skip(h->ledger, (uint64_t)now.wall_ms);
	h->pace = *pace;
	h->stored = ledger_generation(h->ledger);
	h->next_loaded = ledger ? ledger_next(h->ledger) : 0;
	h->synced = UINT64_MAX;
	holds_sync(h, now);
	for (size_t i = 0; i < h->n_observations; i++) {
		h->observations[i].loaded = true;
		h->cgroups_seen |= ledger_hold_at(h->ledger, i)->seen_cgroup;
		h->observations[i].told_ms = now.mono_ms;
		h->observations[i].noted_ms -=
			pace->young_ms + 1; /* the kubelet has noted these long ago */
	}
	return h;
}

static void free_unknown(struct unknown *u)
{
	free(u->slot);
	free(u->resource);
	free((char *)u->owner.ns);
	free((char *)u->owner.pod);
	free((char *)u->owner.uid);
	free((char *)u->owner.container);
}

static void observation_done(struct observation *s)
{
	free(s->vf);
	free(s->former_slot);
}

void holds_free(struct holds *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_observations; i++)
		observation_done(&h->observations[i]);
	for (size_t i = 0; i < h->n_promises; i++)
		free(h->promises[i].slot);
	for (size_t i = 0; i < h->n_unknown; i++)
		free_unknown(&h->unknown[i]);
	free(h->claims);
	arena_free(h->claims_arena);
	free(h->observations);
	free(h->promises);
	free(h->unknown);
	free(h->actions);
	ledger_free(h->ledger);
	free(h);
}

void holds_know_slot(struct holds *h, const char *slot)
{
	for (size_t i = 0; i < h->n_unknown; i++) {
		if (strcmp(h->unknown[i].slot, slot) != 0)
			continue;
		free_unknown(&h->unknown[i]); /* slot may be its own */
		h->unknown[i] = h->unknown[--h->n_unknown];
		holds_relist(h);
		return;
	}
}

const struct ledger *holds_ledger(const struct holds *h)
{
	return h->ledger;
}

/* --- who is who --- */

bool holds_text(const char *s)
{
	return s && *s;
}

bool holds_is_claims(const struct ledger_hold *hold)
{
	return holds_text(hold->owner.claim);
}

bool holds_same_uid(const struct ledger_owner *a, const struct ledger_owner *b)
{
	return holds_text(a->uid) && holds_text(b->uid) && !strcmp(a->uid, b->uid);
}

bool holds_other_uid(const struct ledger_owner *a, const struct ledger_owner *b)
{
	return holds_text(a->uid) && holds_text(b->uid) && strcmp(a->uid, b->uid) != 0;
}

bool holds_same_name(const struct ledger_owner *a, const char *ns, const char *pod)
{
	return holds_text(a->pod) && str_eq(a->pod, pod) &&
	       str_eq(a->ns ? a->ns : "", ns ? ns : "");
}

bool holds_same_pod(const struct ledger_owner *a, const struct ledger_owner *b)
{
	return holds_same_name(a, b->ns, b->pod) && !holds_other_uid(a, b);
}

static bool is_same_container(const struct ledger_owner *a, const struct ledger_owner *b)
{
	return holds_text(a->container) && str_eq(a->container, b->container);
}

bool holds_is_beside(const struct ledger_hold *hold, const struct observation *s,
		     const struct ledger_owner *owner)
{
	const struct ledger_owner *holder = &hold->owner;

	return s->doubled && !hold->pending && !holds_other_uid(holder, owner) &&
	       (holds_same_uid(holder, owner) || holds_same_name(holder, owner->ns, owner->pod)) &&
	       !is_same_container(holder, owner);
}

bool holds_is_shown_as(const struct ledger_hold *hold, const struct observation *s,
		       const struct ledger_owner *owner)
{
	return holds_text(hold->owner.pod) && !holds_text(hold->owner.uid) &&
	       !holds_text(owner->pod) && holds_text(owner->uid) && s->shown_ms && !s->unseen &&
	       !s->passed_on && holds_is_only_pod(&s->pods, owner->uid);
}

bool holds_is_holder(const struct ledger_hold *hold, const struct observation *s,
		     const struct ledger_owner *owner, const struct holds_facts *f)
{
	bool renamed = holds_text(owner->container) && holds_text(hold->owner.container) &&
		       strcmp(owner->container, hold->owner.container) != 0;

	if (holds_is_claims(hold) || !holds_same_uid(&hold->owner, owner) ||
	    holds_is_beside(hold, s, owner))
		return false;
	/* A container that has ended, or restarts, has nothing open: another one of the pod has. */
	return hold->pending || !f || !f->open || !(renamed || s->shared);
}

const char *holds_name(const struct ledger_owner *o, char *buf, size_t size)
{
	const char *ns = o->ns ? o->ns : "", *container = o->container ? o->container : "";
	const char *uid = o->uid ? o->uid : "";

	if (!holds_text(o->pod) && !*uid)
		snprintf(buf, size, "a container whose pod is not known yet");
	else
		snprintf(buf, size, "%s%s%spod %s%s%s%s%s%s", *container ? "container " : "",
			 container, *container ? " of " : "", ns, *ns ? "/" : "",
			 o->pod ? o->pod : "", *uid ? " (UID " : "", uid, *uid ? ")" : "");
	return buf;
}

/* --- actions --- */

static struct holds_action *add_action(struct holds *h, enum holds_action_kind kind, bool bad)
{
	struct holds_action *a;

	h->actions = xgrow(h->actions, &h->cap_actions, h->n_actions + 1, sizeof(*h->actions));
	a = &h->actions[h->n_actions++];
	a->kind = kind;
	a->bad = bad;
	a->text[0] = '\0';
	return a;
}

/* The newest. */
struct holds_action *holds_queued(struct holds *h, enum holds_action_kind kind, const char *start)
{
	for (size_t i = h->n_actions; i-- > h->first_action;) {
		if (h->actions[i].kind == kind && str_starts(h->actions[i].text, start))
			return &h->actions[i];
	}
	return NULL;
}

void holds_say(struct holds *h, bool bad, const char *fmt, ...)
{
	struct holds_action *a = add_action(h, HOLDS_SAY, bad);
	va_list ap;

	va_start(ap, fmt);
	event_compose(a->text, sizeof(a->text), fmt, ap);
	va_end(ap);
}

void holds_relist(struct holds *h)
{
	if (!holds_queued(h, HOLDS_RELIST, ""))
		add_action(h, HOLDS_RELIST, false);
}

void holds_want_probe(struct holds *h, const char *vf)
{
	if (!holds_queued(h, HOLDS_PROBE, vf))
		snprintf(add_action(h, HOLDS_PROBE, false)->text, sizeof(h->actions->text), "%s",
			 vf);
}

bool holds_next(struct holds *h, struct holds_action *ret)
{
	if (h->first_action == h->n_actions) {
		h->first_action = h->n_actions = 0;
		return false;
	}
	*ret = h->actions[h->first_action++];
	return true;
}

/* --- observations --- */

static bool is_observation_of(const struct observation *s, const struct ledger_hold *hold)
{
	return s->since_ms == hold->since_ms && s->decision == hold->decision &&
	       !strcmp(s->vf, hold->vf);
}

static struct observation observation_new(const struct ledger_hold *hold, struct holds_now now)
{
	return (struct observation) { .vf = xstrdup(hold->vf),
				      .since_ms = hold->since_ms,
				      .decision = hold->decision,
				      .noted_ms = now.mono_ms };
}

/* As a rule no VF came or went. False: some did. */
static bool sync_same_vfs(struct holds *h, struct holds_now now)
{
	if (h->n_observations != ledger_holds(h->ledger))
		return false;
	for (size_t i = 0; i < h->n_observations; i++) {
		const struct ledger_hold *hold = ledger_hold_at(h->ledger, i);
		struct observation *s = &h->observations[i];

		if (strcmp(s->vf, hold->vf) != 0)
			return false;
		if (is_observation_of(s, hold))
			continue;
		observation_done(s);
		*s = observation_new(hold, now);
	}
	return true;
}

/* Observations and holds are in the order of addresses. */
void holds_sync(struct holds *h, struct holds_now now)
{
	size_t n = ledger_holds(h->ledger), at = 0;
	struct observation *observations;

	if (h->synced == ledger_generation(h->ledger))
		return;
	h->synced = ledger_generation(h->ledger);
	if (sync_same_vfs(h, now))
		return;
	observations = xcalloc(n, sizeof(*observations));
	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(h->ledger, i);

		while (at < h->n_observations &&
		       ledger_vf_cmp(h->observations[at].vf, hold->vf) < 0)
			observation_done(&h->observations[at++]);
		if (at < h->n_observations && is_observation_of(&h->observations[at], hold))
			observations[i] = h->observations[at++];
		else
			observations[i] = observation_new(hold, now);
	}
	while (at < h->n_observations)
		observation_done(&h->observations[at++]);
	free(h->observations);
	h->observations = observations;
	h->n_observations = n;
}

struct observation *holds_observation(struct holds *h, const char *vf, struct holds_now now)
{
	size_t lo = 0, hi;

	holds_sync(h, now);
	hi = h->n_observations;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ledger_vf_cmp(h->observations[mid].vf, vf) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < h->n_observations && !strcmp(h->observations[lo].vf, vf) ? &h->observations[lo]
									     : NULL;
}

const struct observation *holds_observation_of(const struct holds *h,
					       const struct ledger_hold *hold)
{
	for (size_t i = 0; i < h->n_observations; i++) {
		if (is_observation_of(&h->observations[i], hold))
			return &h->observations[i];
	}
	return NULL;
}

/* --- decisions --- */

uint64_t holds_decide(struct holds *h, const struct ledger_decision *d)
{
	if (h->lost) /* records that cannot be read yet, and a ledger that comes back, may have any
			number */
		ledger_skip(h->ledger, (uint64_t)d->at_ms);
	return ledger_decide(h->ledger, d);
}

static void note_devices(struct holds *h, const struct holds_event *e)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, e->vf);
	struct ledger_hold full;

	if (!hold || hold->draining)
		return;
	full = *hold;
	full.rdma = hold->rdma ? hold->rdma : e->rdma;
	full.netdev = hold->netdev ? hold->netdev : e->netdev;
	if (!hold->driver && (full.rdma || full.netdev))
		full.driver = e->driver;
	ledger_put(h->ledger, &full);
}

/* --- the disk --- */

bool holds_is_settled(const struct holds *h)
{
	return h->claims_read && (!h->lost || h->shown || h->blind);
}

static bool wants_store(const struct holds *h)
{
	return holds_is_settled(h) && !h->n_unknown &&
	       (h->stored != ledger_generation(h->ledger) || h->lost || h->must_store);
}

static void note_stored(struct holds *h, const struct holds_event *e)
{
	if (e->ok) {
		if (h->slow || h->failing)
			holds_say(h, false, "the ledger is on disk again");
		h->stored = e->generation;
		h->slow = h->must_store = false;
		h->lost = false; /* from now on the file knows everything */
	}
	h->failing = !e->ok;
}

bool holds_may_answer(struct holds *h, uint64_t generation, int64_t since_mono_ms,
		      struct holds_now now)
{
	if (h->stored >= generation || h->failing || !wants_store(h))
		return true;
	if (now.mono_ms - since_mono_ms < (int64_t)h->pace.store_ms)
		return false;
	if (!h->slow)
		holds_say(
			h, true,
			"the disk has not stored the ledger in time: containers start without waiting for it ms=%u",
			h->pace.store_ms);
	h->slow = true;
	return true;
}

/* --- */

struct holds_status holds_status(const struct holds *h)
{
	bool misses_some = false;

	for (size_t i = 0; i < h->n_observations; i++)
		misses_some |= h->observations[i].missed_ms && !h->observations[i].missed_twice;
	for (size_t i = 0; i < h->n_unknown; i++)
		misses_some |= h->unknown[i].missed;
	return (struct holds_status) { .settled = holds_is_settled(h),
				       .misses_some = misses_some,
				       .wants_store = wants_store(h),
				       .stored = h->stored == ledger_generation(h->ledger) &&
						 !h->failing };
}

void holds_event(struct holds *h, const struct holds_event *e, struct holds_now now)
{
	switch (e->kind) {
	case HOLDS_CLAIMED:
		holds_on_claimed(h, e->claim, now);
		break;
	case HOLDS_CLAIMS_READ:
		holds_on_claims_read(h, e->complete, now);
		break;
	case HOLDS_BLIND:
		h->blind = e->blind;
		break;
	case HOLDS_KUBELET:
		holds_on_kubelet(h, e->epoch, now);
		break;
	case HOLDS_ANSWERED:
		holds_on_answered(h, e->answer, now);
		break;
	case HOLDS_CHECKPOINT:
		holds_on_checkpoint(h, e->entries, e->n, now);
		break;
	case HOLDS_PROBED:
		holds_on_probed(h, e->vf, e->facts, now);
		break;
	case HOLDS_DEVICES:
		note_devices(h, e);
		break;
	case HOLDS_SLOT_PROBED:
		holds_on_slot_probed(h, e->slot, e->cgroup, now);
		break;
	case HOLDS_AMENDED:
		ledger_amend(h->ledger, e->number, e->decision);
		break;
	case HOLDS_UNDECIDED:
		ledger_undecide(h->ledger, e->number);
		break;
	case HOLDS_OFFERED:
		holds_on_offered(h, e, now);
		break;
	case HOLDS_ALLOCATED:
		holds_on_allocated(h, e, now);
		break;
	case HOLDS_PROMISED:
		holds_on_promised(h, e, now);
		break;
	case HOLDS_BOUND:
		holds_on_bound(h, e, now);
		break;
	case HOLDS_CONFIRMED:
		holds_on_confirmed(h, e->slot, now);
		break;
	case HOLDS_UNBOUND:
		holds_on_unbound(h, e->slot, now);
		break;
	case HOLDS_UNPREPARED:
		holds_on_unprepared(h, e, now);
		break;
	case HOLDS_NOT_CREATED:
		holds_on_not_created(h, e->owner, now);
		break;
	case HOLDS_RELEASED:
		holds_on_released(h, e->vf, now);
		break;
	case HOLDS_STORED:
		note_stored(h, e);
		break;
	case HOLDS_RESTORE:
		h->stored = 0;
		h->must_store = true;
		break;
	}
}
