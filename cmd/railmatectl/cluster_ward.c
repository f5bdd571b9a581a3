/* What doctor says on one node, for the report of all. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster_doctor.h"
#include "doctor/doctor.h"
#include "document/document.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep_text(void *text)
{
	(void)text; /* the arena has it */
}

/* Each string is kept once, a thousand nodes say the same; and is one line. */
static const char *own(struct ward *w, const char *text)
{
	_cleanup_free_ char *line = xstrdup(text ? text : "");
	void *found;

	if (!text)
		return NULL;
	str_printable(line, strlen(line), "");
	found = tfind(line, &w->strings, by_text);
	if (!found)
		found = tsearch(arena_strdup(w->arena, line), &w->strings, by_text);
	if (!found)
		abort();
	return *(const char *const *)found;
}

void ward_done(struct ward *w)
{
	tdestroy(w->strings, keep_text);
	free(w->findings);
	free(w->nodes);
	free(w->silent);
}

static bool read_verdict(const char *name, enum diagnosis_verdict *ret)
{
	for (int v = 0; name && v < DIAGNOSIS_VERDICT_MAX; v++) {
		if (!strcmp(name, diagnosis_verdict_name((enum diagnosis_verdict)v))) {
			*ret = (enum diagnosis_verdict)v;
			return true;
		}
	}
	return false;
}

static void add_finding(struct ward *w, const char *node, const struct item *check,
			const struct item *finding)
{
	const char *id = item_string(check, "id"), *sentence = item_string(finding, "finding");
	const struct item *fix = item_get(finding, "fix");
	struct ward_finding f = { .node = node };

	if (!id || !sentence || !read_verdict(item_string(finding, "verdict"), &f.verdict) ||
	    f.verdict == DIAGNOSIS_PASS)
		return;
	f.check = own(w, id);
	f.title = own(w, item_string(check, "title"));
	f.sentence = own(w, sentence);
	f.meaning = own(w, item_string(finding, "meaning"));
	for (int p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++)
		f.fix[p] = own(
			w, item_string(fix, diagnosis_platform_name((enum diagnosis_platform)p)));
	/* Those that this railmatectl does not know, of another version, come last. */
	while (f.order < doctor_n_checks() && strcmp(doctor_check_at(f.order)->id, id) != 0)
		f.order++;
	w->findings = xgrow(w->findings, &w->cap, w->n + 1, sizeof(*w->findings));
	w->findings[w->n++] = f;
}

static const struct item *list_of(const struct item *object, const char *key)
{
	static const struct item none = { .type = ITEM_LIST };
	const struct item *list = item_get(object, key);

	return list && list->type == ITEM_LIST ? list : &none;
}

void ward_add(struct ward *w, const char *node, const char *text, size_t len, const char *why)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	enum diagnosis_verdict verdict;
	const struct item *top, *checks;
	struct err err = { 0 };

	if (text && document_parse(text, len, "its answer", a, &top, &err) < 0)
		why = err.msg;
	else if (text && !read_verdict(item_string(top, "verdict"), &verdict))
		why = "its answer is not that of railmatectl doctor";
	else if (text)
		why = NULL;
	node = own(w, node);
	if (!text || why) {
		w->silent = xgrow(w->silent, &w->cap_silent, w->n_silent + 1, sizeof(*w->silent));
		w->silent[w->n_silent++] = (struct ward_silent) { node, own(w, why) };
		return;
	}
	w->nodes = xgrow(w->nodes, &w->cap_nodes, w->n_nodes + 1, sizeof(*w->nodes));
	w->nodes[w->n_nodes++] = node;
	checks = list_of(top, "checks");
	for (size_t i = 0; i < checks->n_kids; i++) {
		const struct item *findings = list_of(&checks->kids[i], "findings");

		for (size_t k = 0; k < findings->n_kids; k++)
			add_finding(w, node, &checks->kids[i], &findings->kids[k]);
	}
}

enum diagnosis_verdict ward_verdict(const struct ward *w)
{
	enum diagnosis_verdict worst = w->n_silent ? DIAGNOSIS_UNKNOWN : DIAGNOSIS_PASS;

	for (size_t i = 0; i < w->n; i++) {
		if (w->findings[i].verdict > worst)
			worst = w->findings[i].verdict;
	}
	return worst;
}
