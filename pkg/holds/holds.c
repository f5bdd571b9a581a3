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
	h->next_loaded = ledger_next(h->ledger);
	h->synced = UINT64_MAX;
	holds_sync(h, now);
	for (size_t i = 0; i < h->n_sights; i++) {
		h->sights[i].loaded = true;
		h->cgroups_seen |= ledger_hold_at(h->ledger, i)->seen_cgroup;
		h->sights[i].told_ms = now.mono_ms;
		h->sights[i].noted_ms -=
			pace->young_ms + 1; /* the kubelet has noted these long ago */
	}
	return h;
}

static void free_owner(struct ledger_owner *o)
{
	free((char *)o->ns);
	free((char *)o->pod);
	free((char *)o->uid);
	free((char *)o->container);
}

static void free_unknown(struct unknown *u)
{
	free(u->slot);
	free(u->resource);
	free_owner(&u->owner);
}

void holds_free(struct holds *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_sights; i++)
		free(h->sights[i].vf);
	for (size_t i = 0; i < h->n_promises; i++)
		free(h->promises[i].slot);
	for (size_t i = 0; i < h->n_unknown; i++)
		free_unknown(&h->unknown[i]);
	free(h->claims);
	arena_free(h->claims_arena);
	free(h->sights);
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
		return;
	}
}

const struct ledger *holds_ledger(const struct holds *h)
{
	return h->ledger;
}

void holds_set_blind(struct holds *h, bool blind)
{
	h->blind = blind;
}

/* --- who is who --- */

bool holds_text(const char *s)
{
	return s && *s;
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

const char *holds_uid_of(const struct holds *h, const char *vf)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);

	return hold ? hold->owner.uid : "";
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

void holds_want_look(struct holds *h, const char *vf)
{
	if (!holds_queued(h, HOLDS_LOOK, vf))
		snprintf(add_action(h, HOLDS_LOOK, false)->text, sizeof(h->actions->text), "%s",
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

/* --- sights --- */

static bool is_sight_of(const struct sight *s, const struct ledger_hold *hold)
{
	return s->since_ms == hold->since_ms && s->decision == hold->decision &&
	       !strcmp(s->vf, hold->vf);
}

static struct sight sight_new(char *vf, const struct ledger_hold *hold, struct holds_now now)
{
	return (struct sight) { .vf = vf,
				.since_ms = hold->since_ms,
				.decision = hold->decision,
				.noted_ms = now.mono_ms };
}

/* As a rule no VF came or went. False: some did. */
static bool sync_same_vfs(struct holds *h, struct holds_now now)
{
	if (h->n_sights != ledger_holds(h->ledger))
		return false;
	for (size_t i = 0; i < h->n_sights; i++) {
		const struct ledger_hold *hold = ledger_hold_at(h->ledger, i);
		struct sight *s = &h->sights[i];

		if (strcmp(s->vf, hold->vf) != 0)
			return false;
		if (!is_sight_of(s, hold))
			*s = sight_new(s->vf, hold, now);
	}
	return true;
}

/* Both are in the order of addresses. */
static void sync_all(struct holds *h, struct holds_now now)
{
	size_t n = ledger_holds(h->ledger), at = 0;
	struct sight *sights = xcalloc(n, sizeof(*sights));

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(h->ledger, i);

		while (at < h->n_sights && ledger_vf_cmp(h->sights[at].vf, hold->vf) < 0)
			free(h->sights[at++].vf);
		if (at < h->n_sights && is_sight_of(&h->sights[at], hold))
			sights[i] = h->sights[at++];
		else
			sights[i] = sight_new(xstrdup(hold->vf), hold, now);
	}
	while (at < h->n_sights)
		free(h->sights[at++].vf);
	free(h->sights);
	h->sights = sights;
	h->n_sights = n;
}

void holds_sync(struct holds *h, struct holds_now now)
{
	if (h->synced == ledger_generation(h->ledger))
		return;
	if (!sync_same_vfs(h, now))
		sync_all(h, now);
	h->synced = ledger_generation(h->ledger);
}

struct sight *holds_sight(struct holds *h, const char *vf, struct holds_now now)
{
	size_t lo = 0, hi;

	holds_sync(h, now);
	hi = h->n_sights;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ledger_vf_cmp(h->sights[mid].vf, vf) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < h->n_sights && !strcmp(h->sights[lo].vf, vf) ? &h->sights[lo] : NULL;
}

/* --- decisions --- */

uint64_t holds_decide(struct holds *h, const struct ledger_decision *d)
{
	if (h->lost) /* records that cannot be read yet, and a ledger that comes back, may have any
			number */
		ledger_skip(h->ledger, (uint64_t)d->at_ms);
	return ledger_decide(h->ledger, d);
}

void holds_undecide(struct holds *h, uint64_t number)
{
	ledger_undecide(h->ledger, number);
}

void holds_amend(struct holds *h, uint64_t number, const struct ledger_decision *d)
{
	ledger_amend(h->ledger, number, d);
}

void holds_devices(struct holds *h, const char *vf, const char *rdma, const char *netdev,
		   const char *driver)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);
	struct ledger_hold full;

	if (!hold || hold->draining)
		return;
	full = *hold;
	full.rdma = hold->rdma ? hold->rdma : rdma;
	full.netdev = hold->netdev ? hold->netdev : netdev;
	if (!hold->driver && (full.rdma || full.netdev))
		full.driver = driver;
	ledger_put(h->ledger, &full);
}

/* --- the disk --- */

bool holds_is_settled(const struct holds *h)
{
	return h->claims_read && (!h->lost || h->shown || h->blind);
}

bool holds_is_stored(const struct holds *h)
{
	return h->stored == ledger_generation(h->ledger) && !h->failing;
}

bool holds_wants_store(const struct holds *h)
{
	return holds_is_settled(h) && !h->n_unknown &&
	       (h->stored != ledger_generation(h->ledger) || h->lost || h->must_store);
}

void holds_restore(struct holds *h)
{
	h->stored = 0;
	h->must_store = true;
}

void holds_storing(struct holds *h, uint64_t generation, struct holds_now now)
{
	h->storing = generation;
	h->storing_ms = now.mono_ms;
}

void holds_stored(struct holds *h, uint64_t generation, bool ok, struct holds_now now)
{
	(void)now;
	h->storing_ms = 0;
	if (ok) {
		if (h->slow || h->failing)
			holds_say(h, false, "the ledger is on disk again");
		h->stored = generation;
		h->slow = h->must_store = false;
		h->lost = false; /* from now on the file knows everything */
	}
	h->failing = !ok;
}

bool holds_may_answer(struct holds *h, uint64_t generation, int64_t since_mono_ms,
		      struct holds_now now)
{
	if (h->stored >= generation || h->failing || !holds_wants_store(h))
		return true;
	if (now.mono_ms - since_mono_ms < (int64_t)h->pace.store_ms)
		return false;
	if (!h->slow)
		holds_say(h, true,
			  "the disk has not stored the ledger in time: containers start without "
			  "waiting for it, and CDI specs and map.json are the record ms=%u",
			  h->pace.store_ms);
	h->slow = true;
	return true;
}
