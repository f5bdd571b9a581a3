/* The ledger as text. One hold and one decision a line, so that a person can read it, too. */
#include "ledger/ledger.h"
#include "ledger/ledger-internal.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

const char *const ledger_gpus_names[LEDGER_GPUS_MAX] = {
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
	json_key(j, key);
	json_begin_array(j);
	for (size_t i = 0; i < n; i++)
		json_put_string(j, v[i] ? v[i] : "");
	json_end_array(j);
}

static void put_free(struct json *j, const struct ledger_place *v, size_t n)
{
	if (!n)
		return;
	json_key(j, "free");
	json_begin_array(j);
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
	json_key(j, "pairs");
	json_begin_array(j);
	for (size_t i = 0; i < n; i++) {
		json_begin_array(j);
		json_put_string(j, v[i].gpu ? v[i].gpu : "");
		json_put_string(j, v[i].vf ? v[i].vf : "");
		json_put_string(j, v[i].path ? v[i].path : "");
		json_end_array(j);
	}
	json_end_array(j);
}

void ledger_decision_write(const struct ledger_decision *d, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_int(&j, "number", (int64_t)d->number);
	json_kv_int(&j, "at_ms", d->at_ms);
	put_some(&j, "resource", d->resource);
	put_true(&j, "late", d->late);
	put_owner(&j, &d->owner);
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
