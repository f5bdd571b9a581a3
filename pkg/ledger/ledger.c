/*
 * The ledger in memory, its text, and its text read again. holds owns it; file.c and writer.c have
 * the disk.
 */
#include "ledger/ledger.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "ledger/ledger-internal.h"

#define LEDGER_SUM_LEN 16

static void decision_write(const struct ledger_decision *d, struct strbuf *out);
static struct ledger_decision *decision_parse(const char *text, size_t len, struct arena *a);

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
	decision_write(&numbered, &text);
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

/* Appends a decision under its own number, which is greater than that of any other. */
static void append(struct ledger *l, const struct ledger_decision *d)
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
	append(l, &numbered);
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
		e->view = decision_parse(e->text, e->len, e->view_arena);
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

	return e ? decision_parse(e->text, e->len, a) : NULL;
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
				       arena_strdup(a, owner->container),
				       arena_strdup(a, owner->claim) };
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
						.container = copy_text(a, hold->owner.container),
						.claim = copy_text(a, hold->owner.claim) };
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
	       !strcmp(a->owner.container, b->owner.container) &&
	       !strcmp(a->owner.claim, b->owner.claim) && a->draining == b->draining &&
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

/* --- as text --- */

/* The ledger as text. One hold and one decision a line, so that a person can read it, too. */

static const char *const ledger_gpus_names[LEDGER_GPUS_MAX] = {
	[LEDGER_GPUS_UNKNOWN] = "unknown",
	[LEDGER_GPUS_PREDICTED] = "predicted",
	[LEDGER_GPUS_KNOWN] = "known",
};

static void put_some(struct json *j, const char *key, const char *s)
{
	if (s && *s)
		json_kv_string(j, key, s);
}

static void put_number(struct json *j, const char *key, int64_t v)
{
	if (v)
		json_kv_int(j, key, v);
}

static void put_true(struct json *j, const char *key, bool v)
{
	if (v)
		json_kv_bool(j, key, true);
}

static void put_owner(struct json *j, const struct ledger_owner *o)
{
	put_some(j, "namespace", o->ns);
	put_some(j, "pod", o->pod);
	put_some(j, "uid", o->uid);
	put_some(j, "container", o->container);
	put_some(j, "claim", o->claim);
}

static void put_hold(struct json *j, const struct ledger_hold *h)
{
	json_begin_object(j);
	json_kv_string(j, "vf", h->vf);
	json_kv_string(j, "resource", h->resource);
	put_some(j, "slot", h->slot);
	put_owner(j, &h->owner);
	put_true(j, "pending", h->pending);
	put_true(j, "draining", h->draining);
	put_true(j, "replaced", h->replaced);
	put_some(j, "rdma", h->rdma);
	put_some(j, "netdev", h->netdev);
	put_some(j, "driver", h->driver);
	put_true(j, "seen_cgroup", h->seen_cgroup);
	put_number(j, "kubelet", (int64_t)h->kubelet);
	json_kv_int(j, "since_ms", h->since_ms);
	put_number(j, "decision", (int64_t)h->decision);
	json_end_object(j);
}

static void put_texts(struct json *j, const char *key, const char *const *v, size_t n)
{
	if (!n)
		return;
	json_kv_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_put_string(j, v[i] ? v[i] : "");
	json_end_array(j);
}

static void put_free(struct json *j, const struct ledger_place *v, size_t n)
{
	if (!n)
		return;
	json_kv_array(j, "free");
	for (size_t i = 0; i < n; i++) {
		json_begin_array(j);
		json_put_string(j, v[i].pf ? v[i].pf : "");
		json_put_int(j, v[i].free);
		json_end_array(j);
	}
	json_end_array(j);
}

static void put_pairs(struct json *j, const struct ledger_pair *v, size_t n)
{
	if (!n)
		return;
	json_kv_array(j, "pairs");
	for (size_t i = 0; i < n; i++) {
		json_begin_array(j);
		json_put_string(j, v[i].gpu ? v[i].gpu : "");
		json_put_string(j, v[i].vf ? v[i].vf : "");
		json_put_string(j, v[i].path ? v[i].path : "");
		json_end_array(j);
	}
	json_end_array(j);
}

/* A decision as one JSON object, and back. The text is of decision_write(): it cannot be
 * wrong. */
static void decision_write(const struct ledger_decision *d, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_int(&j, "number", (int64_t)d->number);
	json_kv_int(&j, "at_ms", d->at_ms);
	put_some(&j, "resource", d->resource);
	put_true(&j, "late", d->late);
	put_owner(&j, &d->owner);
	put_some(&j, "claims", d->claims);
	json_kv_int(&j, "asked", d->asked);
	json_kv_string(&j, "known", ledger_gpus_names[d->known]);
	put_some(&j, "source", d->source);
	put_texts(&j, "gpus", d->gpus, d->n_gpus);
	put_free(&j, d->free, d->n_free);
	put_texts(&j, "chosen", d->chosen, d->n_chosen);
	put_texts(&j, "nodes", d->nodes, d->n_nodes);
	put_pairs(&j, d->pairs, d->n_pairs);
	put_number(&j, "cost", d->cost);
	put_texts(&j, "alternative", d->alternative, d->n_alternative);
	put_number(&j, "alternative_cost", d->alternative_cost);
	put_true(&j, "checked", d->checked);
	put_texts(&j, "real_gpus", d->real_gpus, d->n_real_gpus);
	put_number(&j, "real_cost", d->real_cost);
	put_number(&j, "best_cost", d->best_cost);
	json_end_object(&j);
}

void ledger_write(const struct ledger *l, struct strbuf *out)
{
	size_t sum_at = out->len + sizeof(LEDGER_HEAD) - 1, body_at;
	char sum[LEDGER_SUM_LEN + 1];
	struct json j;

	strbuf_puts(out, LEDGER_HEAD "0000000000000000" LEDGER_HEAD_END);
	body_at = out->len;
	strbuf_puts(out, "\"next\":");
	strbuf_put_int(out, (int64_t)l->next);
	strbuf_puts(out, ",\n\"holds\":[");
	for (size_t i = 0; i < l->n_holds; i++) {
		strbuf_puts(out, i ? ",\n" : "\n");
		json_init(&j, out, 0);
		put_hold(&j, &l->holds[i]->hold);
	}
	strbuf_puts(out, "],\n\"decisions\":[");
	for (size_t i = 0; i < l->n_decisions; i++) {
		strbuf_puts(out, i ? ",\n" : "\n");
		strbuf_add(out, l->decisions[i]->text, l->decisions[i]->len);
	}
	strbuf_puts(out, "]}\n");
	snprintf(sum, sizeof(sum), "%016llx",
		 (unsigned long long)str_checksum(out->s + body_at, out->len - body_at));
	memcpy(out->s + sum_at, sum, LEDGER_SUM_LEN);
}

/* Text → ledger. A text with a right checksum was written by us; it is checked all the same. */

/* Far from where counting on would overflow. */
#define NUMBER_MAX (INT64_MAX / 2)

/* The first fault is kept; values read after it do not matter. */
struct reader {
	const char *name;
	struct arena *arena;
	struct err *err;
	int fault;
};

static void refuse(struct reader *r, const struct item *at, const char *what)
{
	if (!r->fault)
		r->fault = err_set(r->err, EBADMSG, "%s:%d: %s", r->name, at->line, what);
}

static const char *text(struct reader *r, const struct item *object, const char *key)
{
	const struct item *item = item_get(object, key);

	if (item && item->type != ITEM_STRING)
		refuse(r, item, arena_printf(r->arena, "'%s' is not a string", key));
	return item && item->type == ITEM_STRING ? item->string : NULL;
}

static const char *text_or_empty(struct reader *r, const struct item *object, const char *key)
{
	const char *s = text(r, object, key);

	return s ? s : "";
}

static int64_t number(struct reader *r, const struct item *object, const char *key, int64_t min,
		      int64_t max)
{
	const struct item *item = item_get(object, key);

	if (!item)
		return 0;
	if (!item->whole || item->number < min || item->number > max) {
		refuse(r, item, arena_printf(r->arena, "'%s' is not a number that fits", key));
		return 0;
	}
	return item->number;
}

static bool boolean(struct reader *r, const struct item *object, const char *key)
{
	const struct item *item = item_get(object, key);

	if (item && item->type != ITEM_BOOL)
		refuse(r, item, arena_printf(r->arena, "'%s' is not true or false", key));
	return item && item->boolean;
}

static const struct item *list(struct reader *r, const struct item *object, const char *key)
{
	static const struct item none;
	const struct item *item = item_get(object, key);

	if (item && item->type == ITEM_LIST)
		return item;
	if (item)
		refuse(r, item, arena_printf(r->arena, "'%s' is not a list", key));
	return &none;
}

static const char *element(struct reader *r, const struct item *list, size_t i)
{
	if (i < list->n_kids && list->kids[i].type == ITEM_STRING)
		return list->kids[i].string;
	refuse(r, list, "a list has something else than the strings it should have");
	return "";
}

static const char *const *texts(struct reader *r, const struct item *object, const char *key,
				size_t *ret_n)
{
	const struct item *l = list(r, object, key);
	const char **out = arena_array(r->arena, l->n_kids, sizeof(*out));

	for (size_t i = 0; i < l->n_kids; i++)
		out[i] = element(r, l, i);
	*ret_n = l->n_kids;
	return out;
}

static const struct ledger_pair *pairs(struct reader *r, const struct item *object, size_t *ret_n)
{
	const struct item *l = list(r, object, "pairs");
	struct ledger_pair *out = arena_array(r->arena, l->n_kids, sizeof(*out));

	for (size_t i = 0; i < l->n_kids; i++)
		out[i] = (struct ledger_pair) { element(r, &l->kids[i], 0),
						element(r, &l->kids[i], 1),
						element(r, &l->kids[i], 2) };
	*ret_n = l->n_kids;
	return out;
}

static const struct ledger_place *places(struct reader *r, const struct item *object, size_t *ret_n)
{
	const struct item *l = list(r, object, "free");
	struct ledger_place *out = arena_array(r->arena, l->n_kids, sizeof(*out));

	for (size_t i = 0; i < l->n_kids; i++) {
		const struct item *place = &l->kids[i];
		const struct item *count = place->n_kids == 2 ? &place->kids[1] : NULL;

		out[i].pf = element(r, place, 0);
		if (count && count->whole && count->number >= 0 && count->number <= INT_MAX)
			out[i].free = (int)count->number;
		else
			refuse(r, place, "an entry of 'free' has no count");
	}
	*ret_n = l->n_kids;
	return out;
}

static struct ledger_owner owner(struct reader *r, const struct item *object)
{
	return (struct ledger_owner) { .ns = text_or_empty(r, object, "namespace"),
				       .pod = text_or_empty(r, object, "pod"),
				       .uid = text_or_empty(r, object, "uid"),
				       .container = text_or_empty(r, object, "container"),
				       .claim = text_or_empty(r, object, "claim") };
}

static void read_hold(struct reader *r, const struct item *o, struct ledger *l)
{
	struct ledger_hold hold = {
		.vf = text(r, o, "vf"),
		.resource = text(r, o, "resource"),
		.slot = text(r, o, "slot"),
		.owner = owner(r, o),
		.pending = boolean(r, o, "pending"),
		.draining = boolean(r, o, "draining"),
		.replaced = boolean(r, o, "replaced"),
		.rdma = text(r, o, "rdma"),
		.netdev = text(r, o, "netdev"),
		.driver = text(r, o, "driver"),
		.seen_cgroup = boolean(r, o, "seen_cgroup"),
		.kubelet = (uint64_t)number(r, o, "kubelet", 0, NUMBER_MAX),
		.since_ms = number(r, o, "since_ms", INT64_MIN, INT64_MAX),
		.decision = (uint64_t)number(r, o, "decision", 0, NUMBER_MAX),
	};

	if (!hold.vf || !*hold.vf)
		refuse(r, o, "a hold names no VF");
	else
		ledger_put(l, &hold);
}

static enum ledger_gpus known(struct reader *r, const struct item *o)
{
	const char *name = text(r, o, "known");

	for (int i = 0; i < LEDGER_GPUS_MAX; i++) {
		if (str_eq(name, ledger_gpus_names[i]))
			return (enum ledger_gpus)i;
	}
	refuse(r, o, "'known' of a decision is none of unknown, predicted, known");
	return LEDGER_GPUS_UNKNOWN;
}

static int small(struct reader *r, const struct item *o, const char *key)
{
	return (int)number(r, o, key, INT_MIN, INT_MAX);
}

static struct ledger_decision decision_of(struct reader *r, const struct item *o)
{
	struct ledger_decision d = {
		.number = (uint64_t)number(r, o, "number", 0, NUMBER_MAX),
		.at_ms = number(r, o, "at_ms", INT64_MIN, INT64_MAX),
		.resource = text_or_empty(r, o, "resource"),
		.late = boolean(r, o, "late"),
		.owner = owner(r, o),
		.asked = small(r, o, "asked"),
		.known = known(r, o),
		.source = text_or_empty(r, o, "source"),
		.claims = text_or_empty(r, o, "claims"),
		.cost = small(r, o, "cost"),
		.alternative_cost = small(r, o, "alternative_cost"),
		.checked = boolean(r, o, "checked"),
		.real_cost = small(r, o, "real_cost"),
		.best_cost = small(r, o, "best_cost"),
	};

	d.gpus = texts(r, o, "gpus", &d.n_gpus);
	d.free = places(r, o, &d.n_free);
	d.chosen = texts(r, o, "chosen", &d.n_chosen);
	d.nodes = texts(r, o, "nodes", &d.n_nodes);
	d.pairs = pairs(r, o, &d.n_pairs);
	d.alternative = texts(r, o, "alternative", &d.n_alternative);
	d.real_gpus = texts(r, o, "real_gpus", &d.n_real_gpus);
	return d;
}

static struct ledger_decision *decision_parse(const char *text, size_t len, struct arena *a)
{
	struct reader r = { .name = "decision", .arena = a };
	struct ledger_decision *d = arena_alloc(a, sizeof(*d));
	const struct item *top = NULL;

	if (document_parse(text, len, r.name, a, &top, NULL) < 0)
		abort();
	*d = decision_of(&r, top);
	return d;
}

/* Decisions first: a hold that is read counts as a user of its decision. */
static int read_body(struct reader *r, const struct item *top, struct ledger *l)
{
	const struct item *holds = list(r, top, "holds"), *decisions = list(r, top, "decisions");
	uint64_t next = (uint64_t)number(r, top, "next", 0, NUMBER_MAX);

	for (size_t i = 0; !r->fault && i < decisions->n_kids; i++) {
		const struct ledger_decision d = decision_of(r, &decisions->kids[i]);

		if (d.number < l->next)
			refuse(r, &decisions->kids[i],
			       "decisions are not in the order of their numbers");
		if (!r->fault)
			append(l, &d);
	}
	for (size_t i = 0; !r->fault && i < holds->n_kids; i++)
		read_hold(r, &holds->kids[i], l);
	if (next > l->next)
		l->next = next;
	l->generation = 0;
	return r->fault;
}

static bool has_sum(const char *text, size_t len)
{
	const size_t end = sizeof(LEDGER_HEAD) - 1 + LEDGER_SUM_LEN;
	const size_t body = end + sizeof(LEDGER_HEAD_END) - 1;
	char sum[LEDGER_SUM_LEN + 1];

	if (len < body || memcmp(text + end, LEDGER_HEAD_END, sizeof(LEDGER_HEAD_END) - 1))
		return false;
	snprintf(sum, sizeof(sum), "%016llx",
		 (unsigned long long)str_checksum(text + body, len - body));
	return !memcmp(text + sizeof(LEDGER_HEAD) - 1, sum, LEDGER_SUM_LEN);
}

/* Not this version's: whose, then? */
static int refuse_foreign(const struct item *top, const char *name, struct err *err)
{
	int64_t version = item_number(top, "version", 0);

	if (!str_eq(item_string(top, "railmate"), "ledger"))
		return err_set(err, EBADMSG, "%s: is not a ledger of railmate", name);
	if (version > LEDGER_VERSION)
		return err_set(err, ENOTSUP,
			       "%s: is a ledger of version %lld; this railmate reads version %d",
			       name, (long long)version, LEDGER_VERSION);
	return err_set(err, EBADMSG, "%s: is a ledger that another program has written", name);
}

int ledger_read(const char *text, size_t len, const char *name, struct ledger **ret,
		struct err *err)
{
	_cleanup_arena_ struct arena *arena = arena_new(16 * 1024);
	struct reader r = { .name = name, .arena = arena, .err = err };
	bool ours = len > sizeof(LEDGER_HEAD) - 1 &&
		    !memcmp(text, LEDGER_HEAD, sizeof(LEDGER_HEAD) - 1);
	const struct item *top;
	struct ledger *l;

	if (!len)
		return err_set(err, EBADMSG, "%s: is empty", name);
	if (ours && !has_sum(text, len))
		return err_set(err, EBADMSG, "%s: checksum mismatch: truncated or modified", name);
	if (document_parse(text, len, name, arena, &top, err) < 0) {
		if (err)
			err->code = EBADMSG;
		return -EBADMSG;
	}
	if (!ours)
		return refuse_foreign(top, name, err);
	l = ledger_new();
	if (read_body(&r, top, l) < 0) {
		ledger_free(l);
		return r.fault;
	}
	*ret = l;
	return 0;
}
