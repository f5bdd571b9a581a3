/* Text → ledger. A text with a right checksum was written by us; it is checked all the same. */
#include "ledger/ledger.h"
#include "ledger/ledger-internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "document/document.h"

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
				       .container = text_or_empty(r, object, "container") };
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

struct ledger_decision *ledger_decision_parse(const char *text, size_t len, struct arena *a)
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
			ledger_append(l, &d);
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
