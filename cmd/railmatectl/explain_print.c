/* The text of railmatectl explain, for a tired operator and for programs. */
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"
#include "explain.h"
#include "ledger/ledger.h"

#define PLACES_A_LINE 4

static const char *const gpus_words[LEDGER_GPUS_MAX] = {
	[LEDGER_GPUS_UNKNOWN] = "unknown",
	[LEDGER_GPUS_PREDICTED] = "predicted",
	[LEDGER_GPUS_KNOWN] = "known",
};

static bool has_no_gpus(const struct ledger_decision *d)
{
	return !d->n_gpus && d->known == LEDGER_GPUS_KNOWN;
}

static const char *judge_before(const struct ledger_decision *d)
{
	static const char *const words[LEDGER_GPUS_MAX] = {
		[LEDGER_GPUS_UNKNOWN] =
			"The VFs were requested before the GPUs, and the GPUs could not be predicted.",
		[LEDGER_GPUS_PREDICTED] =
			"Chosen for the GPUs that were expected; whether they came was not seen yet.",
		[LEDGER_GPUS_KNOWN] = "Nothing nearer to the container's GPUs was free.",
	};

	if (has_no_gpus(d))
		return "The container has no GPU, so no VF is nearer than another.";
	if (d->late && d->known == LEDGER_GPUS_UNKNOWN)
		return "The container's GPUs could not be identified, so VFs were chosen by the NUMA nodes of its slots.";
	if (d->late && d->known == LEDGER_GPUS_PREDICTED)
		return "The container's GPUs could not be identified, so VFs were chosen for all GPUs of its pod.";
	if (d->known == LEDGER_GPUS_KNOWN && !d->cost)
		return "Each GPU has a VF behind its own PCIe switch.";
	return words[d->known];
}

/* One plain sentence: was the choice the best, and if not, why. */
static const char *verdict_of(const struct chapter *c)
{
	const struct ledger_decision *d = c->d;
	static const char *const missed[LEDGER_GPUS_MAX] = {
		[LEDGER_GPUS_UNKNOWN] =
			"Nearer VFs were free: the VFs were requested before the GPUs, and the GPUs could not be predicted.",
		[LEDGER_GPUS_PREDICTED] =
			"Nearer VFs were free: the container got other GPUs than were expected.",
		[LEDGER_GPUS_KNOWN] =
			"Nearer VFs were free: the kubelet kept to ids of its own (NUMA policy, init container), or the GPUs changed after the choice.",
	};

	if (!d)
		return "Why is not recorded: the ledger was made again from what the kubelet says.";
	if (!d->checked)
		return judge_before(d);
	if (!d->n_real_gpus)
		return "The container has no GPU that railmate knows, so no VF is nearer than another.";
	if (d->real_cost > d->best_cost)
		return missed[d->known];
	return d->real_cost ? "Nothing nearer to the container's GPUs was free."
			    : "Each GPU has a VF behind its own PCIe switch.";
}

void explain_time(struct strbuf *out, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	char text[40] = "at an unknown time";
	struct tm tm;

	if (ms > 0 && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	strbuf_puts(out, text);
}

/* --- text --- */

static void label(struct strbuf *out, const char *name)
{
	strbuf_printf(out, "  %-9s ", name);
}

static void put_list(struct strbuf *out, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_printf(out, "%s%s", i ? " " : "", v[i]);
}

static void put_owner(struct strbuf *out, const struct ledger_owner *o)
{
	if (!o->pod || !*o->pod)
		strbuf_puts(out, "a pod that is not known yet");
	else
		strbuf_printf(out, "pod %s/%s", o->ns ? o->ns : "", o->pod);
	if (o->container && *o->container)
		strbuf_printf(out, ", container %s", o->container);
}

static void text_chosen(const struct ledger_decision *d, struct strbuf *out)
{
	for (size_t i = 0; i < d->n_pairs; i++) {
		label(out, i ? "" : "chosen");
		strbuf_printf(out, "VF %-13s GPU %-13s %s\n", d->pairs[i].vf, d->pairs[i].gpu,
			      d->pairs[i].path);
	}
	if (!d->n_pairs) {
		label(out, "chosen");
		put_list(out, d->chosen, d->n_chosen);
		strbuf_putc(out, '\n');
	}
	if (d->n_pairs) {
		label(out, "cost");
		strbuf_printf(out, "%d (a pair: PIX 0, PXB 1, PHB 2, NODE 3, SYS 4)\n", d->cost);
	}
	if (d->n_alternative) {
		label(out, "next best");
		put_list(out, d->alternative, d->n_alternative);
		if (d->n_pairs)
			strbuf_printf(out, ", cost %d", d->alternative_cost);
		strbuf_putc(out, '\n');
	}
}

static void text_decision(const struct ledger_decision *d, struct strbuf *out)
{
	bool same = d->n_gpus == d->n_real_gpus;

	put_owner(out, &d->owner);
	strbuf_printf(out, ": %d of %s\n", d->asked, d->resource);
	label(out, "decided");
	explain_time(out, d->at_ms);
	strbuf_printf(out, ", %s, number %llu\n", d->late ? "late binding" : "early binding",
		      (unsigned long long)d->number);
	label(out, "GPUs");
	strbuf_puts(out, has_no_gpus(d) ? "none" : gpus_words[d->known]);
	if (d->source && *d->source)
		strbuf_printf(out, " (%s)", d->source);
	if (d->n_gpus)
		strbuf_puts(out, ": ");
	put_list(out, d->gpus, d->n_gpus);
	strbuf_putc(out, '\n');
	if (d->n_free) {
		int total = 0;

		for (size_t i = 0; i < d->n_free; i++)
			total += d->free[i].free;
		label(out, "free");
		strbuf_printf(out, "%d VFs: ", total);
		for (size_t i = 0; i < d->n_free; i++) {
			if (i)
				strbuf_puts(out, i % PLACES_A_LINE ? ", " : ",\n");
			if (i && i % PLACES_A_LINE == 0)
				label(out, "");
			strbuf_printf(out, "%s %d", d->free[i].pf, d->free[i].free);
		}
		strbuf_putc(out, '\n');
	}
	text_chosen(d, out);
	if (!d->checked)
		return;
	label(out, "came");
	if (!d->n_real_gpus) {
		strbuf_puts(out, "no GPU\n");
		return;
	}
	for (size_t i = 0; same && i < d->n_gpus; i++)
		same = str_eq(d->gpus[i], d->real_gpus[i]);
	if (same)
		strbuf_puts(out, "these GPUs");
	else
		put_list(out, d->real_gpus, d->n_real_gpus);
	strbuf_printf(out, ", cost %d; the best that was free: %d\n", d->real_cost, d->best_cost);
}

void explain_text(const struct explanation *s, struct strbuf *out)
{
	for (size_t i = 0; i < s->n_chapters; i++) {
		const struct chapter *c = &s->chapters[i];

		if (i)
			strbuf_putc(out, '\n');
		if (c->d) {
			text_decision(c->d, out);
		} else {
			put_owner(out, &c->holds[0]->owner);
			strbuf_printf(out, ": %s\n", c->holds[0]->resource);
		}
		for (size_t k = 0; k < c->n_holds; k++) {
			const struct ledger_hold *h = c->holds[k];

			label(out, k ? "" : "held");
			strbuf_printf(out, "%s since ", h->vf);
			explain_time(out, h->since_ms);
			if (h->slot && *h->slot)
				strbuf_printf(out, ", slot %s", h->slot);
			if (h->draining)
				strbuf_printf(out, "; %s, but it is still in use",
					      h->replaced ? "its container has another VF by now"
							  : "its pod is gone");
			strbuf_putc(out, '\n');
		}
		if (!c->n_holds) {
			label(out, "held");
			strbuf_puts(out, "no more\n");
		}
		label(out, "verdict");
		strbuf_printf(out, "%s\n", verdict_of(c));
	}
	if (s->shares)
		strbuf_printf(out, "%s%s", s->n_chapters ? "\n" : "", s->shares);
}

/* --- JSON --- */

static void json_list(struct json *j, const char *key, const char *const *v, size_t n)
{
	json_key(j, key);
	json_begin_array(j);
	for (size_t i = 0; i < n; i++)
		json_put_string(j, v[i]);
	json_end_array(j);
}

static void json_text(struct json *j, const char *key, const char *s)
{
	json_kv_string(j, key, s && *s ? s : NULL);
}

static void json_owner(struct json *j, const struct ledger_owner *o)
{
	json_text(j, "namespace", o->ns);
	json_text(j, "pod", o->pod);
	json_text(j, "uid", o->uid);
	json_text(j, "container", o->container);
}

static void json_chosen(struct json *j, const struct ledger_decision *d)
{
	json_list(j, "chosen", d->chosen, d->n_chosen);
	json_key(j, "pairs");
	json_begin_array(j);
	for (size_t i = 0; i < d->n_pairs; i++) {
		json_begin_object(j);
		json_kv_string(j, "gpu", d->pairs[i].gpu);
		json_kv_string(j, "vf", d->pairs[i].vf);
		json_kv_string(j, "class", d->pairs[i].path);
		json_end_object(j);
	}
	json_end_array(j);
	json_kv_int(j, "cost", d->cost);
	json_key(j, "runner_up");
	if (!d->n_alternative) {
		json_put_null(j);
		return;
	}
	json_begin_object(j);
	json_list(j, "chosen", d->alternative, d->n_alternative);
	json_kv_int(j, "cost", d->alternative_cost);
	json_end_object(j);
}

static void json_decision(struct json *j, const struct ledger_decision *d)
{
	json_key(j, "decision");
	if (!d) {
		json_put_null(j);
		return;
	}
	json_begin_object(j);
	json_kv_int(j, "number", (int64_t)d->number);
	json_kv_int(j, "at_ms", d->at_ms);
	json_kv_string(j, "binding", d->late ? "late" : "early");
	json_kv_string(j, "resource", d->resource);
	json_owner(j, &d->owner);
	json_kv_int(j, "asked", d->asked);
	json_kv_string(j, "known", gpus_words[d->known]);
	json_text(j, "source", d->source);
	json_list(j, "gpus", d->gpus, d->n_gpus);
	json_key(j, "free");
	json_begin_array(j);
	for (size_t i = 0; i < d->n_free; i++) {
		json_begin_object(j);
		json_kv_string(j, "pf", d->free[i].pf);
		json_kv_int(j, "vfs", d->free[i].free);
		json_end_object(j);
	}
	json_end_array(j);
	json_chosen(j, d);
	json_key(j, "came");
	if (!d->checked) {
		json_put_null(j);
	} else {
		json_begin_object(j);
		json_list(j, "gpus", d->real_gpus, d->n_real_gpus);
		json_kv_int(j, "cost", d->real_cost);
		json_kv_int(j, "best_cost", d->best_cost);
		json_end_object(j);
	}
	json_end_object(j);
}

void explain_json(const struct explanation *s, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "from", s->from);
	json_kv_bool(&j, "running", s->running);
	json_key(&j, "choices");
	json_begin_array(&j);
	for (size_t i = 0; i < s->n_chapters; i++) {
		const struct chapter *c = &s->chapters[i];

		json_begin_object(&j);
		json_decision(&j, c->d);
		json_key(&j, "held");
		json_begin_array(&j);
		for (size_t k = 0; k < c->n_holds; k++) {
			const struct ledger_hold *h = c->holds[k];

			json_begin_object(&j);
			json_kv_string(&j, "vf", h->vf);
			json_kv_string(&j, "resource", h->resource);
			json_text(&j, "slot", h->slot);
			json_owner(&j, &h->owner);
			json_kv_int(&j, "since_ms", h->since_ms);
			json_kv_bool(&j, "draining", h->draining);
			json_kv_bool(&j, "replaced", h->replaced);
			json_end_object(&j);
		}
		json_end_array(&j);
		json_kv_string(&j, "verdict", verdict_of(c));
		json_end_object(&j);
	}
	json_end_array(&j);
	if (s->shares_json) {
		json_key(&j, "shares");
		json_put_raw(&j, s->shares_json, strlen(s->shares_json));
	}
	json_end_object(&j);
	strbuf_putc(out, '\n');
}
