/* railmatectl explain: why a container has the VFs that it has, from the daemon's ledger: its
 * decisions as chapters, and their text, for a tired operator and for programs. */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ask_ledger.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "document/document.h"
#include "hw/bdf.h"
#include "ledger/ledger.h"
#include "pools.h"
#include "railmatectl.h"

/* One decision with the VFs that are still held by it; or VFs whose choice is not recorded. */
struct chapter {
	const struct ledger_decision *d; /* NULL: not recorded */
	const struct ledger_hold **holds;
	size_t n_holds;
};

struct explanation {
	const char *from; /* "railmated at …", "…/ledger.json" */
	bool running;	  /* the daemon answered, not the ledger's file */
	struct chapter *chapters;
	size_t n_chapters;
	/* Of a pod that has shares of HCAs: lines, and the same as JSON objects; NULL: it has none,
	 * or the daemon does not answer */
	const char *shares, *shares_json;
};

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
	if (d->claims && *d->claims) {
		label(out, "claims");
		strbuf_printf(out, "%s\n", d->claims);
	}
	label(out, "decided");
	pools_put_time(d->at_ms, out);
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

static void put_text(const struct explanation *s, struct strbuf *out)
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
			pools_put_time(h->since_ms, out);
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
	json_kv_strings(j, "chosen", d->chosen, d->n_chosen);
	json_kv_array(j, "pairs");
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
	json_kv_strings(j, "chosen", d->alternative, d->n_alternative);
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
	json_text(j, "claims", d->claims);
	json_kv_int(j, "asked", d->asked);
	json_kv_string(j, "known", gpus_words[d->known]);
	json_text(j, "source", d->source);
	json_kv_strings(j, "gpus", d->gpus, d->n_gpus);
	json_kv_array(j, "free");
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
		json_kv_strings(j, "gpus", d->real_gpus, d->n_real_gpus);
		json_kv_int(j, "cost", d->real_cost);
		json_kv_int(j, "best_cost", d->best_cost);
		json_end_object(j);
	}
	json_end_object(j);
}

static void put_json(const struct explanation *s, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "from", s->from);
	json_kv_bool(&j, "running", s->running);
	json_kv_array(&j, "choices");
	for (size_t i = 0; i < s->n_chapters; i++) {
		const struct chapter *c = &s->chapters[i];

		json_begin_object(&j);
		json_decision(&j, c->d);
		json_kv_array(&j, "held");
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

struct request {
	struct ledger_source source;
	bool json;
	const char *what;     /* "pod", "vf", "last", "pool" */
	const char *ns, *pod; /* pod */
	const char *vf;	      /* vf */
	const char *resource; /* pool; NULL: every one */
};

struct question {
	const struct request *req;
	struct arena *arena;
	struct ledger *ledger;
	struct explanation explanation;
};

/* --- decisions and VFs --- */

static bool is_pod(const struct question *q, const struct ledger_owner *o)
{
	return str_eq(o->ns, q->req->ns) && str_eq(o->pod, q->req->pod);
}

static struct chapter *add_chapter(struct question *q, const struct ledger_decision *d)
{
	struct chapter *c = &q->explanation.chapters[q->explanation.n_chapters++];

	*c = (struct chapter) { .d = d };
	c->holds = arena_array(q->arena, ledger_holds(q->ledger), sizeof(struct ledger_hold *));
	return c;
}

/* A decision with its present holds. */
static void add_decision(struct question *q, const struct ledger_decision *d)
{
	struct chapter *c = add_chapter(q, d);

	for (size_t i = 0; i < ledger_holds(q->ledger); i++) {
		const struct ledger_hold *h = ledger_hold_at(q->ledger, i);

		if (h->decision == d->number)
			c->holds[c->n_holds++] = h;
	}
}

static void add_hold(struct question *q, const struct ledger_hold *h)
{
	struct chapter *c = add_chapter(q, NULL);

	c->holds[c->n_holds++] = h;
}

static int explain_vf(struct question *q)
{
	const struct ledger_hold *h = ledger_find(q->ledger, q->req->vf);
	const struct ledger_decision *d = h ? ledger_decision(q->ledger, h->decision) : NULL;

	for (size_t i = ledger_decisions(q->ledger); !h && !d && i-- > 0;) {
		const struct ledger_decision *made = ledger_decision_at(q->ledger, i);

		if (list_has(made->chosen, made->n_chosen, q->req->vf))
			d = made;
	}
	if (d)
		add_decision(q, d);
	else if (h)
		add_hold(q, h);
	else
		return fail(EXIT_REFUSED,
			    "%s: no container holds it, and none of the %zu newest choices took it",
			    q->req->vf, ledger_decisions(q->ledger));
	return EXIT_DONE;
}

/* A pod without a record here: it was refused, waits for VFs, or runs elsewhere. Which pods hold
 * the VFs? */
static int explain_pools(struct question *q, const char *resource, int code)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	const struct item *answer;
	struct err err = { 0 };
	const char *text;

	if (pools_ask(q->req->source.socket, q->arena, &answer, &text, &err) < 0)
		return code == EXIT_DONE ? fail(EXIT_FAILED, "%s", err.msg) : code;
	if (q->req->json)
		strbuf_printf(&out, "%s\n", text);
	else if (!pools_text(answer, resource, &out))
		return fail(EXIT_REFUSED, "node %s has no pool %s", pools_node(answer), resource);
	print_out(&out);
	return code;
}

/* Shares of HCAs are no holds: the kubelet alone knows their containers. A daemon that is away or
 * has no shares adds nothing. */
static void find_shares(struct question *q)
{
	const struct item *answer, *list;
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT, objects = STRBUF_INIT;
	struct err err = { 0 };
	const char *text;
	struct json j;

	if (str_eq(q->req->source.socket, "none") ||
	    pools_ask(q->req->source.socket, q->arena, &answer, &text, &err) < 0)
		return;
	json_init(&j, &objects, 0);
	json_begin_array(&j);
	list = pools_list(answer, "shared");
	for (size_t i = 0; i < list->n_kids; i++)
		pools_put_shares(&list->kids[i], q->req->ns, q->req->pod, &out);
	for (size_t i = 0; i < list->n_kids; i++)
		pools_json_shares(&list->kids[i], q->req->ns, q->req->pod, &j);
	json_end_array(&j);
	q->explanation.shares_json = arena_strdup(q->arena, strbuf_str(&objects));
	q->explanation.shares = out.len ? arena_strdup(q->arena, out.s) : NULL;
}

static int explain_pod(struct question *q)
{
	find_shares(q);
	for (size_t i = 0; i < ledger_decisions(q->ledger); i++) {
		const struct ledger_decision *d = ledger_decision_at(q->ledger, i);
		bool held = false;

		for (size_t k = 0; !held && k < ledger_holds(q->ledger); k++) {
			const struct ledger_hold *h = ledger_hold_at(q->ledger, k);

			held = h->decision == d->number &&
			       (is_pod(q, &h->owner) || is_pod(q, &d->owner));
		}
		if (held)
			add_decision(q, d);
	}
	for (size_t i = 0; i < ledger_holds(q->ledger); i++) {
		const struct ledger_hold *h = ledger_hold_at(q->ledger, i);

		if (is_pod(q, &h->owner) && !ledger_decision(q->ledger, h->decision))
			add_hold(q, h);
	}
	if (!q->explanation.n_chapters) {
		const struct ledger_decision *d, *newest = NULL;

		/* The pod holds nothing any more: the choices for the newest pod of that name. */
		for (size_t i = ledger_decisions(q->ledger); !newest && i-- > 0;) {
			d = ledger_decision_at(q->ledger, i);
			newest = is_pod(q, &d->owner) ? d : NULL;
		}
		for (size_t i = 0; newest && i < ledger_decisions(q->ledger); i++) {
			d = ledger_decision_at(q->ledger, i);
			if (is_pod(q, &d->owner) && str_eq(d->owner.uid, newest->owner.uid))
				add_decision(q, d);
		}
	}
	if (q->explanation.n_chapters || q->explanation.shares)
		return EXIT_DONE;
	fail(0,
	     "pod %s/%s holds no VF on this node, and none of the %zu newest choices was for it: it was refused here, or it runs on another node (`kubectl railmate explain` finds it)",
	     q->req->ns, q->req->pod, ledger_decisions(q->ledger));
	return explain_pools(q, NULL, EXIT_REFUSED);
}

/* Also one that was unprepared: what it had. */
static int explain_claim(struct question *q)
{
	for (size_t i = 0; i < ledger_decisions(q->ledger); i++) {
		const struct ledger_decision *d = ledger_decision_at(q->ledger, i);
		bool its = false;

		for (const char *s = d->claims ? d->claims : ""; *s; s += strspn(s, ",")) {
			size_t n = strcspn(s, ",");

			its |= strlen(q->req->pod) == n && !strncmp(s, q->req->pod, n);
			s += n;
		}
		if (its && str_eq(d->owner.ns, q->req->ns))
			add_decision(q, d);
	}
	if (q->explanation.n_chapters)
		return EXIT_DONE;
	return fail(
		EXIT_REFUSED,
		"claim %s/%s was not prepared on this node, as far as the %zu newest choices go: its pod runs elsewhere, or waits (kubectl describe pod)",
		q->req->ns, q->req->pod, ledger_decisions(q->ledger));
}

static int explain(struct question *q)
{
	size_t n = ledger_decisions(q->ledger), most = n + ledger_holds(q->ledger);

	q->explanation.chapters = arena_array(q->arena, most, sizeof(struct chapter));
	if (str_eq(q->req->what, "pod"))
		return explain_pod(q);
	if (str_eq(q->req->what, "claim"))
		return explain_claim(q);
	if (str_eq(q->req->what, "vf"))
		return explain_vf(q);
	if (!n)
		return fail(EXIT_REFUSED, "no VF was given to a container yet");
	add_decision(q, ledger_decision_at(q->ledger, n - 1));
	return EXIT_DONE;
}

static int run(const struct request *req)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	_cleanup_arena_ struct arena *arena = arena_new(16384);
	struct question q = { .req = req, .arena = arena };
	struct ledger_answer answer = { 0 };
	struct err err = { 0 };
	int r;

	if (str_eq(req->what, "pool"))
		return explain_pools(&q, req->resource, EXIT_DONE);
	if (ask_ledger(&req->source, arena, &answer, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	q.ledger = answer.ledger;
	q.explanation.from = answer.from;
	q.explanation.running = answer.running;
	r = explain(&q);
	if (r == EXIT_DONE) {
		(req->json ? put_json : put_text)(&q.explanation, &out);
		r = print_out(&out);
	}
	ledger_free(q.ledger);
	return r;
}

/* --- command line --- */

static int read_pod(struct request *req, const char *name, struct arena *a)
{
	const char *slash = strchr(name, '/');

	if (!slash || slash == name || !slash[1] || strchr(slash + 1, '/'))
		return fail(EXIT_USAGE, "explain %s: '%s' is not NAMESPACE/NAME", req->what, name);
	req->ns = arena_printf(a, "%.*s", (int)(slash - name), name);
	req->pod = slash + 1;
	return EXIT_DONE;
}

static int read_vf(struct request *req, const char *name, struct arena *a)
{
	char buf[BDF_STRLEN];
	struct bdf bdf;

	if (bdf_parse(name, &bdf) < 0)
		return fail(EXIT_USAGE, "explain vf: '%s' is not a PCI address (dddd:bb:dd.f)",
			    name);
	req->vf = arena_strdup(a, bdf_format(bdf, buf));
	return EXIT_DONE;
}

static int read_subject(struct request *req, char **args, int n, struct arena *a)
{
	req->what = n > 0 ? args[0] : "";
	req->resource = n > 1 ? args[1] : NULL;
	if ((str_eq(req->what, "pod") || str_eq(req->what, "claim")) && n == 2)
		return read_pod(req, args[1], a);
	if (str_eq(req->what, "vf") && n == 2)
		return read_vf(req, args[1], a);
	if ((str_eq(req->what, "last") && n == 1) || (str_eq(req->what, "pool") && n <= 2))
		return EXIT_DONE;
	return fail(
		EXIT_USAGE,
		"explain: expected `pod NAMESPACE/NAME`, `claim NAMESPACE/NAME`, `vf ADDRESS`, `pool [RESOURCE]` or `last`");
}

int cmd_explain(int argc, char **argv)
{
	struct request req = { .source = { CONTROL_SOCKET, STATE_DIR } };
	_cleanup_arena_ struct arena *a = arena_new(256);
	const struct word words[] = {
		{ "json", NULL, &req.json },
		{ "control-socket", &req.source.socket, NULL },
		{ "state-dir", &req.source.state_dir, NULL },
	};
	int r = read_options(argc, argv, words, ARRAY_LEN(words));

	if (r == EXIT_DONE)
		r = read_subject(&req, argv + optind, argc - optind, a);
	return r == EXIT_DONE ? run(&req) : r;
}
