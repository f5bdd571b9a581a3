/* The records that are there when the daemon starts: of two the higher number counts, and nothing
 * is removed before all were read. */
#include "holds/holds-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

/* Takes the slot from a VF with an older number; false: that of the other is higher, and it keeps
 * it. */
static bool take_slot(struct holds *h, const struct holds_claim *c, struct holds_now now)
{
	const struct ledger_hold *other = c->slot ? ledger_find_slot(h->ledger, c->slot) : NULL;
	struct ledger_hold loose;

	if (!other || !strcmp(other->vf, c->vf))
		return true;
	if (other->decision > c->number)
		return false;
	loose = *other;
	loose.slot = NULL;
	holds_lose_slot(holds_observation(h, other->vf, now), c->slot);
	ledger_put(h->ledger, &loose);
	return true;
}

static void adopt(struct holds *h, const struct holds_claim *c, struct holds_now now)
{
	bool has_uid = holds_text(c->owner.uid);
	struct ledger_hold hold = { .vf = c->vf,
				    .resource = c->resource,
				    .slot = c->slot,
				    .owner = c->owner,
				    /* its sandbox ran when the record was written */
				    .seen_cgroup = has_uid,
				    .since_ms = now.wall_ms,
				    .decision = c->number };
	struct observation *s;

	if (!take_slot(h, c, now))
		hold.slot = NULL;
	ledger_put(h->ledger, &hold);
	ledger_skip(h->ledger, c->number);
	s = holds_observation(h, c->vf, now);
	if (hold.slot)
		holds_know_slot(h, hold.slot);
	else if (c->slot)
		holds_lose_slot(s, c->slot);
	s->loaded = true;
	s->told_ms = now.mono_ms;
	s->noted_ms = now.mono_ms - (int64_t)h->pace.young_ms - 1;
	holds_say(h, false,
		  "the VF is held, as a record says vf=%s slot=%s resource=%s" OWNER_KEYS
		  " source=%s",
		  c->vf, c->slot, c->resource, OWNER_OF(&c->owner), c->source);
}

/* Of one decision: one of the two may be older, and know less. */
static void complete(struct holds *h, const struct holds_claim *c, const struct ledger_hold *hold,
		     struct holds_now now)
{
	struct ledger_hold with = *hold;

	if (c->slot && !hold->slot && take_slot(h, c, now))
		with.slot = c->slot;
	if (c->number && !holds_text(hold->owner.uid) && holds_text(c->owner.uid)) {
		with.owner.uid = c->owner.uid;
		with.seen_cgroup = true; /* as in adopt() */
	}
	ledger_put(h->ledger, &with);
}

static void weigh(struct holds *h, const struct holds_claim *c, struct holds_now now)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, c->vf);
	/* Of a decision that the ledger knows, and that has ended since. */
	bool over = !h->lost && c->number < h->next_loaded;

	/* A record is of a container that started. The ledger was stored before that, or is younger
	 * than the records. */
	if (hold && hold->pending && (h->lost || c->number == hold->decision)) {
		adopt(h, c, now);
	} else if (hold ? c->number > hold->decision : !over) {
		adopt(h, c, now);
	} else if (hold && c->number == hold->decision && !hold->draining) {
		complete(h, c, hold, now);
	}
}

void holds_on_claimed(struct holds *h, const struct holds_claim *c, struct holds_now now)
{
	struct arena *a;

	if (h->claims_read) {
		weigh(h, c, now);
		return;
	}
	if (!h->claims_arena)
		h->claims_arena = arena_new(4096);
	a = h->claims_arena;
	h->claims = xgrow(h->claims, &h->cap_claims, h->n_claims + 1, sizeof(*h->claims));
	h->claims[h->n_claims++] = (struct holds_claim) { arena_strdup(a, c->vf),
							  arena_strdup(a, c->resource),
							  arena_strdup(a, c->slot),
							  ledger_copy_owner(&c->owner, a),
							  c->number,
							  arena_strdup(a, c->source) };
}

static int by_number(const void *x, const void *y)
{
	const struct holds_claim *a = x, *b = y;

	if (a->number != b->number)
		return a->number < b->number ? 1 : -1;
	return strcmp(a->vf, b->vf);
}

void holds_on_claims_read(struct holds *h, bool complete, struct holds_now now)
{
	const struct holds_claim *newest = h->claims;

	if (complete && !h->claims_read && h->n_claims) {
		qsort(h->claims, h->n_claims, sizeof(*h->claims), by_number);
		/* The file is older than decisions made since: these could not be stored. */
		if (!h->lost && newest->number >= h->next_loaded) {
			h->lost = true;
			holds_say(
				h, true,
				"the ledger is older than another record: allocations are rebuilt from the others source=%s vf=%s decision=%llu",
				newest->source, newest->vf, (unsigned long long)newest->number);
		}
		for (size_t i = 0; i < h->n_claims; i++)
			weigh(h, &h->claims[i], now);
	}
	arena_free(STEAL(h->claims_arena));
	h->n_claims = 0;
	h->claims_read |= complete;
	holds_sync(h, now);
	holds_relist(h);
}

bool holds_needs_record(const struct holds *h, const char *vf, const char *slot)
{
	return !holds_is_settled(h) || h->n_unknown ||
	       (slot ? ledger_find_slot(h->ledger, slot) : ledger_find(h->ledger, vf));
}

bool holds_is_of(const struct holds *h, const char *vf, uint64_t decision)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, vf);

	return h->claims_read && hold && decision && hold->decision == decision;
}
