#include "ledger/ledger.h"
#include "base/list.h"
#include "ledger/ledger-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"

struct ledger *ledger_new(void)
{
	struct ledger *l = xcalloc(1, sizeof(*l));

	l->views = xcalloc(1, sizeof(*l->views));
	l->next = 1;
	return l;
}

static void decision_free(struct decision_entry *e)
{
	arena_free(e->view_arena);
	free(e->text);
	free(e);
}

void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_holds; i++)
		arena_free(l->holds[i]->arena);
	for (size_t i = 0; i < l->n_decisions; i++)
		decision_free(l->decisions[i]);
	arena_free(l->copied);
	free(l->holds);
	free(l->decisions);
	free(l->views);
	free(l);
}

/* Strings that were returned are freed now: after the caller's own values, which may point into it,
 * were copied. */
static void change(struct ledger *l)
{
	struct decision_entry *e;

	while ((e = l->views->first)) {
		l->views->first = e->next_view;
		arena_free(STEAL(e->view_arena));
		e->view = NULL;
	}
	l->generation++;
}

uint64_t ledger_generation(const struct ledger *l)
{
	return l->generation;
}

/* --- decisions --- */

static int by_number(const void *number, const void *entry)
{
	uint64_t n = *(const uint64_t *)number,
		 m = (*(const struct decision_entry *const *)entry)->number;

	return (n > m) - (n < m);
}

static size_t decision_place(const struct ledger *l, uint64_t number)
{
	return list_place(&number, l->decisions, l->n_decisions, sizeof(*l->decisions), by_number);
}

static struct decision_entry *find_decision(const struct ledger *l, uint64_t number)
{
	size_t i = decision_place(l, number);

	return i < l->n_decisions && l->decisions[i]->number == number ? l->decisions[i] : NULL;
}

static struct decision_entry *decision_new(const struct ledger_decision *d, uint64_t number)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger_decision numbered = *d;
	struct decision_entry *e = xcalloc(1, sizeof(*e));

	numbered.number = e->number = number;
	ledger_decision_write(&numbered, &text);
	e->text = xstrdup(text.s); /* no larger than it is: the buffer has grown by doubling */
	e->len = text.len;
	return e;
}

/* The oldest go that are neither among the newest ones nor the reason of a live hold. */
static void forget_decisions(struct ledger *l)
{
	size_t old = l->n_decisions > LEDGER_DECISIONS ? l->n_decisions - LEDGER_DECISIONS : 0,
	       kept = 0;

	for (size_t i = 0; i < l->n_decisions; i++) {
		if (i < old && !l->decisions[i]->holds)
			decision_free(l->decisions[i]);
		else
			l->decisions[kept++] = l->decisions[i];
	}
	l->n_decisions = kept;
}

void ledger_append(struct ledger *l, const struct ledger_decision *d)
{
	l->decisions = xgrow(l->decisions, &l->cap_decisions, l->n_decisions + 1,
			     sizeof(struct decision_entry *));
	l->decisions[l->n_decisions++] = decision_new(d, d->number);
	if (d->number >= l->next)
		l->next = d->number + 1;
}

uint64_t ledger_decide(struct ledger *l, const struct ledger_decision *d)
{
	struct ledger_decision numbered = *d;

	numbered.number = l->next;
	ledger_append(l, &numbered);
	change(l);
	forget_decisions(l);
	return numbered.number;
}

void ledger_undecide(struct ledger *l, uint64_t number)
{
	struct decision_entry *e = find_decision(l, number);
	size_t at = decision_place(l, number);

	if (!e || e->holds)
		return;
	change(l);
	l->n_decisions--;
	memmove(&l->decisions[at], &l->decisions[at + 1],
		(l->n_decisions - at) * sizeof(*l->decisions));
	decision_free(e);
}

uint64_t ledger_next(const struct ledger *l)
{
	return l->next;
}

void ledger_skip(struct ledger *l, uint64_t number)
{
	if (number < l->next)
		return;
	change(l);
	l->next = number + 1;
}

static const struct ledger_decision *view(const struct ledger *l, struct decision_entry *e)
{
	if (!e->view) {
		e->view_arena = arena_new(4096);
		e->view = ledger_decision_parse(e->text, e->len, e->view_arena);
		e->next_view = l->views->first;
		l->views->first = e;
	}
	return e->view;
}

const struct ledger_decision *ledger_decision(const struct ledger *l, uint64_t number)
{
	struct decision_entry *e = find_decision(l, number);

	return e ? view(l, e) : NULL;
}

const struct ledger_decision *ledger_decision_read(const struct ledger *l, uint64_t number,
						   struct arena *a)
{
	const struct decision_entry *e = find_decision(l, number);

	return e ? ledger_decision_parse(e->text, e->len, a) : NULL;
}

size_t ledger_decisions(const struct ledger *l)
{
	return l->n_decisions;
}

const struct ledger_decision *ledger_decision_at(const struct ledger *l, size_t i)
{
	return view(l, l->decisions[i]);
}

bool ledger_decision_mentions(const struct ledger *l, size_t i, const char *address)
{
	const struct decision_entry *e = l->decisions[i];

	return memmem(e->text, e->len, address, strlen(address)) != NULL;
}

void ledger_amend(struct ledger *l, uint64_t number, const struct ledger_decision *d)
{
	struct decision_entry *before = find_decision(l, number), *now;

	if (!before)
		return;
	now = decision_new(d, number);
	now->holds = before->holds;
	change(l);
	l->decisions[decision_place(l, number)] = now;
	decision_free(before);
}

/* --- holds --- */

int ledger_vf_cmp(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	return n != m ? (n < m ? -1 : 1) : strcmp(a, b);
}

static int by_vf(const void *vf, const void *entry)
{
	return ledger_vf_cmp(vf, (*(const struct hold_entry *const *)entry)->hold.vf);
}

static size_t hold_place(const struct ledger *l, const char *vf)
{
	return list_place(vf, l->holds, l->n_holds, sizeof(*l->holds), by_vf);
}

static bool is_at(const struct ledger *l, size_t i, const char *vf)
{
	return i < l->n_holds && !strcmp(l->holds[i]->hold.vf, vf);
}

const struct ledger_hold *ledger_find(const struct ledger *l, const char *vf)
{
	size_t i = hold_place(l, vf);

	return is_at(l, i, vf) ? &l->holds[i]->hold : NULL;
}

static struct hold_entry **slot_place(const struct ledger *l, const char *slot)
{
	for (size_t i = 0; slot && i < l->n_holds; i++) {
		if (str_eq(l->holds[i]->hold.slot, slot))
			return &l->holds[i];
	}
	return NULL;
}

const struct ledger_hold *ledger_find_slot(const struct ledger *l, const char *slot)
{
	struct hold_entry **e = slot_place(l, slot);

	return e ? &(*e)->hold : NULL;
}

size_t ledger_holds(const struct ledger *l)
{
	return l->n_holds;
}

const struct ledger_hold *ledger_hold_at(const struct ledger *l, size_t i)
{
	return &l->holds[i]->hold;
}

static const char *copy_text(struct arena *a, const char *s)
{
	return arena_strdup(a, s ? s : "");
}

struct ledger_owner ledger_copy_owner(const struct ledger_owner *owner, struct arena *a)
{
	return (struct ledger_owner) { arena_strdup(a, owner->ns), arena_strdup(a, owner->pod),
				       arena_strdup(a, owner->uid),
				       arena_strdup(a, owner->container) };
}

/* NULL and "" mean the same. */
static const char *copy_some(struct arena *a, const char *s)
{
	return s && *s ? arena_strdup(a, s) : NULL;
}

static struct hold_entry *copy_hold(struct arena *a, const struct ledger_hold *hold)
{
	struct hold_entry *e = arena_alloc(a, sizeof(*e));

	e->arena = a;
	e->hold = *hold;
	e->hold.vf = arena_strdup(a, hold->vf);
	e->hold.resource = copy_text(a, hold->resource);
	e->hold.slot = copy_some(a, hold->slot);
	e->hold.owner = (struct ledger_owner) { .ns = copy_text(a, hold->owner.ns),
						.pod = copy_text(a, hold->owner.pod),
						.uid = copy_text(a, hold->owner.uid),
						.container = copy_text(a, hold->owner.container) };
	e->hold.rdma = copy_some(a, hold->rdma);
	e->hold.netdev = copy_some(a, hold->netdev);
	e->hold.driver = copy_some(a, hold->driver);
	return e;
}

/* The holds together, in one arena: none of them changes. */
struct ledger *ledger_copy(const struct ledger *l)
{
	struct ledger *copy = ledger_new();

	copy->next = l->next;
	copy->generation = l->generation;
	copy->copied = arena_new(4096 + l->n_holds * 512);
	copy->holds = xgrow(NULL, &copy->cap_holds, l->n_holds, sizeof(struct hold_entry *));
	for (; copy->n_holds < l->n_holds; copy->n_holds++) {
		struct hold_entry *e = copy_hold(copy->copied, &l->holds[copy->n_holds]->hold);

		e->arena = NULL;
		copy->holds[copy->n_holds] = e;
	}
	copy->decisions =
		xgrow(NULL, &copy->cap_decisions, l->n_decisions, sizeof(struct decision_entry *));
	for (; copy->n_decisions < l->n_decisions; copy->n_decisions++) {
		const struct decision_entry *from = l->decisions[copy->n_decisions];
		struct decision_entry *e = xcalloc(1, sizeof(*e));

		*e = (struct decision_entry) { .number = from->number,
					       .holds = from->holds,
					       .text = xstrdup(from->text),
					       .len = from->len };
		copy->decisions[copy->n_decisions] = e;
	}
	return copy;
}

/* Copied twice: the first copy shows how large the arena of the second one has to be. */
static struct hold_entry *hold_new(const struct ledger_hold *hold)
{
	_cleanup_arena_ struct arena *trial = arena_new(1024);

	copy_hold(trial, hold);
	return copy_hold(arena_new(arena_used(trial)), hold);
}

static bool same_hold(const struct ledger_hold *a, const struct ledger_hold *b)
{
	return !strcmp(a->resource, b->resource) && str_eq(a->slot, b->slot) &&
	       !strcmp(a->owner.ns, b->owner.ns) && !strcmp(a->owner.pod, b->owner.pod) &&
	       !strcmp(a->owner.uid, b->owner.uid) &&
	       !strcmp(a->owner.container, b->owner.container) && a->draining == b->draining &&
	       a->replaced == b->replaced && str_eq(a->rdma, b->rdma) &&
	       str_eq(a->netdev, b->netdev) && str_eq(a->driver, b->driver) &&
	       a->pending == b->pending && a->seen_cgroup == b->seen_cgroup &&
	       a->kubelet == b->kubelet && a->since_ms == b->since_ms && a->decision == b->decision;
}

static void count_hold(struct ledger *l, const struct ledger_hold *hold, bool more)
{
	struct decision_entry *e = hold->decision ? find_decision(l, hold->decision) : NULL;

	if (e)
		e->holds += more ? 1u : -1u;
}

static void set_hold(struct ledger *l, size_t at, struct hold_entry *now)
{
	struct hold_entry *before = l->holds[at];

	count_hold(l, &now->hold, true);
	count_hold(l, &before->hold, false);
	l->holds[at] = now;
	arena_free(before->arena);
}

/* The slot has another VF now. A container may still use this one. */
static void loosen_slot(struct ledger *l, const char *slot, const char *except)
{
	struct hold_entry **e = slot_place(l, slot);
	struct ledger_hold loose;

	if (!e || !strcmp((*e)->hold.vf, except))
		return;
	loose = (*e)->hold;
	loose.slot = NULL;
	loose.draining = true;
	set_hold(l, (size_t)(e - l->holds), hold_new(&loose));
}

void ledger_put(struct ledger *l, const struct ledger_hold *hold)
{
	struct hold_entry *now =
		hold_new(hold); /* first: hold may point into the entry that goes */
	size_t at = hold_place(l, now->hold.vf);

	if (is_at(l, at, now->hold.vf) && same_hold(&l->holds[at]->hold, &now->hold)) {
		arena_free(now->arena);
		return;
	}
	change(l);
	loosen_slot(l, now->hold.slot, now->hold.vf);
	if (is_at(l, at, now->hold.vf)) {
		set_hold(l, at, now);
		return;
	}
	l->holds = xgrow(l->holds, &l->cap_holds, l->n_holds + 1, sizeof(struct hold_entry *));
	memmove(&l->holds[at + 1], &l->holds[at], (l->n_holds - at) * sizeof(struct hold_entry *));
	l->holds[at] = now;
	l->n_holds++;
	count_hold(l, &now->hold, true);
}

void ledger_drop(struct ledger *l, const char *vf)
{
	size_t at = hold_place(l, vf);
	struct hold_entry *e;

	if (!is_at(l, at, vf))
		return;
	e = l->holds[at];
	l->n_holds--;
	memmove(&l->holds[at], &l->holds[at + 1], (l->n_holds - at) * sizeof(struct hold_entry *));
	count_hold(l, &e->hold, false);
	arena_free(e->arena); /* last: vf may be its own */
	change(l);
}
