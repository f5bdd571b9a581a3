/* What we know of slots beyond the ledger: which were given away, which pods the kubelet has shown. */
#include "kubelet/binder-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "kubelet/checkpoint.h"
#include "kubelet/identify.h"
#include "kubelet/keeper.h"
#include "kubelet/podres.h"
#include "ledger/ledger.h"

/* A container that was given a slot shows in the next List; one that did not by then was not admitted. */
#define YOUNG_MS 2000

/* --- slots that were given away and have no VF yet --- */

struct promise *binder_find_promise(const struct binder *b, const char *slot)
{
	for (size_t i = 0; i < b->n_promises; i++) {
		if (!strcmp(b->promises[i].slot, slot))
			return &b->promises[i];
	}
	return NULL;
}

struct promise *binder_promise(struct binder *b, const char *slot)
{
	struct promise *p = binder_find_promise(b, slot);

	if (!p) {
		b->promises = xgrow(b->promises, &b->cap_promises, b->n_promises + 1, sizeof(*b->promises));
		p = &b->promises[b->n_promises++];
		*p = (struct promise) { .slot = xstrdup(slot) };
	}
	p->since_ms = clock_mono_ms();
	p->held = true;
	return p;
}

void binder_drop_promise(struct binder *b, struct promise *p)
{
	if (!p)
		return;
	free(p->slot);
	*p = b->promises[--b->n_promises];
}

/* Where it is, or would be: they are sorted. */
static size_t sighted_place(const struct binder *b, const char *vf)
{
	size_t lo = 0, hi = b->n_sighted;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(b->sighted[mid].vf, vf) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct sighted *find_sighted(const struct binder *b, const char *vf)
{
	size_t at = sighted_place(b, vf);

	return at < b->n_sighted && !strcmp(b->sighted[at].vf, vf) ? &b->sighted[at] : NULL;
}

void binder_note_sighted(struct binder *b, const char *vf, bool anew)
{
	uint64_t epoch = podres_epoch(b->env.podres);
	struct sighted *s = find_sighted(b, vf);
	size_t at = sighted_place(b, vf);

	if (!s) {
		b->sighted = xgrow(b->sighted, &b->cap_sighted, b->n_sighted + 1, sizeof(*b->sighted));
		s = &b->sighted[at];
		memmove(s + 1, s, (b->n_sighted++ - at) * sizeof(*s));
		s->vf = xstrdup(vf);
		anew = true;
	}
	if (anew || s->epoch != epoch)
		s->since = ++b->moment;
	s->epoch = epoch;
}

bool binder_was_sighted(const struct binder *b, const char *vf, uint64_t asked)
{
	const struct sighted *s = find_sighted(b, vf);

	return s && s->epoch == podres_epoch(b->env.podres) && s->since < asked;
}

/* --- what pods have --- */

struct pod_list binder_sorted_pods(const struct pod_list *pods, struct arena *a)
{
	struct pod_list sorted = { arena_array(a, pods->n, sizeof(*sorted.v)), pods->n };

	if (!pods->n)
		return sorted;
	memcpy(sorted.v, pods->v, pods->n * sizeof(*sorted.v));
	identify_sort(sorted.v, sorted.n);
	return sorted;
}

static int by_string(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* fill: else they are counted only. */
static void add_slots(const struct binder *b, const struct pod_container *c, bool fill, struct ids *slots)
{
	for (size_t i = 0; i < c->n_held; i++) {
		if (!binder_is_late(b, c->held[i].resource))
			continue;
		for (size_t k = 0; k < c->held[i].ids.n; k++) {
			if (fill)
				slots->v[slots->n] = c->held[i].ids.v[k];
			slots->n++;
		}
	}
}

/* Every slot that a container has, as often as one has it. */
static struct ids late_slots(const struct binder *b, const struct pod_list *pods, struct arena *a)
{
	struct ids slots = { NULL, 0 };

	for (size_t pass = 0; pass < 2; pass++) {
		slots.v = arena_array(a, slots.n, sizeof(*slots.v));
		slots.n = 0;
		for (size_t i = 0; i < pods->n; i++) {
			for (size_t k = 0; k < pods->v[i].n_containers; k++)
				add_slots(b, &pods->v[i].containers[k], pass == 1, &slots);
		}
	}
	return slots;
}

/* Slots with a VF, sorted. */
static struct ids bound_slots(const struct binder *b, struct arena *a)
{
	const struct ledger *l = keeper_ledger(b->env.keeper);
	struct ids slots = { arena_array(a, ledger_holds(l), sizeof(*slots.v)), 0 };

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (hold->slot && !hold->draining)
			slots.v[slots.n++] = hold->slot;
	}
	if (slots.n)
		qsort(slots.v, slots.n, sizeof(*slots.v), by_string);
	return slots;
}

static bool has_slot(const struct ids *sorted, const char *slot)
{
	return sorted->n && bsearch(&slot, sorted->v, sorted->n, sizeof(*sorted->v), by_string);
}

/* Which slots containers have. */
static void note_slots(struct binder *b, const struct pod_list *pods)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct ids slots = late_slots(b, pods, a), bound = bound_slots(b, a);

	if (slots.n)
		qsort(slots.v, slots.n, sizeof(*slots.v), by_string);
	b->doubles = false;
	for (size_t i = 0; i < slots.n; i++) {
		b->doubles |= i && !strcmp(slots.v[i - 1], slots.v[i]);
		if (!has_slot(&bound, slots.v[i]) || binder_find_promise(b, slots.v[i]))
			binder_promise(b, slots.v[i]);
	}
}

/* Init containers of which only the UID is known: nobody else looks after these (see keeper_reconcile.c). */
static void release_inits(struct binder *b)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	const struct ledger *l = keeper_ledger(b->env.keeper);
	struct pod_list pods = { NULL, 0 };
	bool have_read = false;

	for (size_t i = ledger_holds(l); i-- > 0;) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);
		struct candidate *v;
		struct ids slot;

		if (!hold->slot || hold->draining || *hold->owner.pod || !*hold->owner.uid)
			continue;
		if (!have_read)
			pods = checkpoint_pods(b->env.checkpoint, a);
		have_read = true;
		slot = (struct ids) { arena_copy(a, &hold->slot, sizeof(hold->slot)), 1 };
		if (!who_holds(b->node, &pods, &slot, NULL, a, &v) ||
		    strcmp(v->pod->name, hold->owner.uid) != 0)
			binder_release(b, hold, a);
	}
}

static void note_owners(struct binder *b, const struct pod_list *pods)
{
	const struct ledger *l = keeper_ledger(b->env.keeper);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (hold->slot && identify_sorted_pod(pods, hold->owner.ns, hold->owner.pod))
			binder_note_sighted(b, hold->vf, false);
	}
}

void binder_note_pods(struct binder *b, const struct pod_list *pods, int64_t asked_ms)
{
	note_owners(b, pods);
	note_slots(b, pods);
	for (size_t i = b->n_promises; i-- > 0;) {
		struct promise *p = &b->promises[i];

		if (p->since_ms > asked_ms - YOUNG_MS)
			continue;
		p->held = false;
		if (!binder_live_hold(b, p->slot))
			binder_drop_promise(b, p);
	}
	release_inits(b);
}

void binder_reconcile(struct binder *b, const struct pod_list *pods, int64_t asked_ms)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct pod_list by_name;

	if (!b->node)
		return;
	by_name = binder_sorted_pods(pods, a);
	binder_note_pods(b, &by_name, asked_ms);
	binder_tidy(b);
	binder_tell_changed(b);
}

void binder_tidy(struct binder *b)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct ids slots = bound_slots(b, a);

	for (size_t i = b->n_specs; i-- > 0;) {
		const char *slot = b->specs[i].slot;

		if (!has_slot(&slots, slot))
			spec_remove(b, arena_strdup(a, slot));
	}
}

void binder_forget_all(struct binder *b)
{
	for (size_t i = 0; i < b->n_promises; i++)
		free(b->promises[i].slot);
	free(b->promises);
	for (size_t i = 0; i < b->n_sighted; i++)
		free(b->sighted[i].vf);
	free(b->sighted);
}
