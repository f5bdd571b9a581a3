/* railmatectl cluster doctor: one diagnosis of all nodes, each finding once, with its nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cluster.h"
#include "diagnosis/diagnosis.h"
#include "doctor/doctor.h"
#include "document/document.h"
#include "pools.h"
#include "facts/facts.h"

struct finding {
	struct diagnosis_check check;
	size_t order; /* of the check, as doctor prints them; unknown ones last */
	enum diagnosis_verdict verdict;
	struct diagnosis_advice advice;
	const char *sentence;
	const char **nodes; /* by their names */
	size_t n;
};

struct reports {
	struct facts facts; /* first: tell() casts it to this struct */
	struct arena *arena;
	struct finding *v;
	size_t n, n_nodes;
	size_t told;
	bool json; /* the sentences do not name the nodes */
};

/* --- answers → findings --- */

/* Room for one more behind n: the array doubles when n is a power of two. */
static void *room_for_one(struct arena *a, void *v, size_t n, size_t size)
{
	bool is_full = (n & (n - 1)) == 0;
	void *more;

	if (!is_full)
		return v;
	more = arena_array(a, 2 * n + 1, size);
	if (n)
		memcpy(more, v, n * size);
	return more;
}

static bool is_same_advice(const struct finding *x, const struct finding *y)
{
	bool same = x->verdict == y->verdict && !strcmp(x->check.id, y->check.id) &&
		    !strcmp(x->advice.meaning, y->advice.meaning);

	for (int p = 0; same && p < DIAGNOSIS_PLATFORM_MAX; p++)
		same = str_eq(x->advice.fix[p], y->advice.fix[p]);
	return same;
}

static void add(struct reports *r, const struct finding *as, const char *node)
{
	struct finding *f;
	size_t i = 0;

	while (i < r->n &&
	       (strcmp(r->v[i].sentence, as->sentence) != 0 || !is_same_advice(&r->v[i], as)))
		i++;
	if (i == r->n) {
		r->v = room_for_one(r->arena, r->v, r->n, sizeof(*f));
		r->v[r->n++] = *as;
	}
	f = &r->v[i];
	/* Findings are added node by node. */
	if (f->n && f->nodes[f->n - 1] == node)
		return;
	f->nodes = room_for_one(r->arena, f->nodes, f->n, sizeof(*f->nodes));
	f->nodes[f->n++] = node;
}

static bool read_verdict(const struct item *object, enum diagnosis_verdict *ret)
{
	const char *name = item_string(object, "verdict");

	for (*ret = 0; *ret < DIAGNOSIS_VERDICT_MAX; ++*ret) {
		if (str_eq(name, diagnosis_verdict_name(*ret)))
			return true;
	}
	return false;
}

/* Its verdict; PASS: it is none that is understood. */
static enum diagnosis_verdict add_finding(struct reports *r, const char *node,
					  const struct item *check, const struct item *finding)
{
	const struct item *fix = item_get(finding, "fix");
	struct finding f = {
		.check = { .id = cluster_own(item_string(check, "id"), r->arena),
			   .title = cluster_own(item_string(check, "title"), r->arena) },
		.advice.meaning = cluster_own(item_string(finding, "meaning"), r->arena),
		.sentence = cluster_own(item_string(finding, "finding"), r->arena),
	};

	if (!read_verdict(finding, &f.verdict) || f.verdict == DIAGNOSIS_PASS || !f.check.id ||
	    !f.check.title || !f.sentence || !f.advice.meaning)
		return DIAGNOSIS_PASS;
	for (enum diagnosis_platform p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++) {
		const char *text = item_string(fix, diagnosis_platform_name(p));

		if (p == DIAGNOSIS_GRUB || !str_eq(text, item_string(fix, "grub")))
			f.advice.fix[p] = cluster_own(text, r->arena);
	}
	while (f.order < doctor_n_checks() && strcmp(doctor_check_at(f.order)->id, f.check.id) != 0)
		f.order++;
	add(r, &f, node);
	return f.verdict;
}

static void read_report(const struct cluster *c, size_t at, struct reports *r)
{
	_cleanup_arena_ struct arena *tree = arena_new(64 * 1024);
	struct err err = { 0 };
	const struct item *top = cluster_answer(c, at, tree, &err), *checks;
	const char *node = cluster_own(c->pods[at].node, r->arena), *why = err.msg;
	struct finding f = {
		.check = { .id = "nodes", .title = "Nodes that answer" },
		.advice = { "What is wrong there is not known.",
			    { "kubectl get pods and kubectl logs say why it does not answer." } },
	};
	enum diagnosis_verdict whole = DIAGNOSIS_UNKNOWN, worst = DIAGNOSIS_PASS, one;

	if (top && !read_verdict(top, &whole)) {
		whole = DIAGNOSIS_UNKNOWN;
		why = "its answer is not that of railmatectl doctor";
	}
	checks = pools_list(top, "checks");
	for (size_t i = 0; i < checks->n_kids; i++) {
		const struct item *findings = pools_list(&checks->kids[i], "findings");

		for (size_t k = 0; k < findings->n_kids; k++) {
			one = add_finding(r, node, &checks->kids[i], &findings->kids[k]);
			worst = one > worst ? one : worst;
		}
	}
	if (!*why && whole > worst)
		why = "no finding of its answer is as bad as its verdict";
	if (!*why && worst != DIAGNOSIS_PASS)
		return;
	f.verdict = whole;
	f.sentence = *why ? arena_strdup(r->arena, why) : "Nothing is wrong";
	add(r, &f, node);
}

/* --- findings → a diagnosis --- */

/* By check, and within a check the findings of most nodes first. */
static int by_check(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int r = (x->order > y->order) - (x->order < y->order);

	r = r ? r : strcmp(x->check.id, y->check.id);
	r = r ? r : (y->n > x->n) - (y->n < x->n);
	return r ? r : cluster_node_cmp(x->sentence, y->sentence);
}

/* The run() of a check: adds its findings. Those with one advice are shown together. */
static void tell(const struct facts *facts, struct diagnosis *d)
{
	struct reports *r = (struct reports *)facts;
	const struct finding *first = &r->v[r->told], *f = first, *same;

	for (; r->told < r->n && !strcmp(f->check.id, first->check.id); f = &r->v[++r->told]) {
		_cleanup_strbuf_ struct strbuf nodes = STRBUF_INIT, subject = STRBUF_INIT;

		for (size_t i = 0; i < f->n; i++)
			strbuf_printf(&subject, "%s%s", i ? "," : "", f->nodes[i]);
		if (!r->json) {
			strbuf_puts(&nodes, " (");
			cluster_put_nodes(f->nodes, f->n, &nodes);
			strbuf_putc(&nodes, ')');
		}
		for (same = first; same < f && !is_same_advice(same, f); same++)
			;
		diagnosis_add(d, f->verdict, &same->advice, strbuf_str(&subject), "%s%s",
			      f->sentence, strbuf_str(&nodes));
	}
}

int cluster_merge_doctor(const struct cluster *c, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	_cleanup_diagnosis_ struct diagnosis *d = diagnosis_new();
	struct reports r = { .arena = a, .json = c->json };
	struct json j;

	for (size_t i = 0; i < c->n; i++)
		read_report(c, i, &r);
	qsort(r.v, r.n, sizeof(*r.v), by_check);
	while (r.told < r.n) {
		r.v[r.told].check.run = tell;
		diagnosis_run(d, &r.v[r.told].check, &r.facts);
	}
	r.facts.live = true;
	r.facts.confined = FACTS_YES;
	json_init(&j, out, 2);
	if (c->json)
		diagnosis_json(&r.facts, d, &j);
	else
		diagnosis_text(&r.facts, d, out);
	if (c->json)
		strbuf_putc(out, '\n');
	return doctor_codes[diagnosis_worst(d)];
}
