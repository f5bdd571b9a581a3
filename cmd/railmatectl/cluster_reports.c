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
static const char *own(struct reports *reports, const char *text)
{
	_cleanup_free_ char *line = xstrdup(text ? text : "");
	void *found;

	if (!text)
		return NULL;
	str_printable(line, strlen(line), "");
	found = tfind(line, &reports->strings, by_text);
	if (!found)
		found = tsearch(arena_strdup(reports->arena, line), &reports->strings, by_text);
	if (!found)
		abort();
	return *(const char *const *)found;
}

void reports_done(struct reports *reports)
{
	tdestroy(reports->strings, keep_text);
	free(reports->findings);
	free(reports->nodes);
	free(reports->silent);
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

static void add_finding(struct reports *reports, const char *node, const struct item *check,
			const struct item *finding)
{
	const char *id = item_string(check, "id"), *sentence = item_string(finding, "finding");
	const struct item *fix = item_get(finding, "fix");
	struct report_finding f = { .node = node };

	if (!id || !sentence || !read_verdict(item_string(finding, "verdict"), &f.verdict) ||
	    f.verdict == DIAGNOSIS_PASS)
		return;
	f.check = own(reports, id);
	f.title = own(reports, item_string(check, "title"));
	f.sentence = own(reports, sentence);
	f.meaning = own(reports, item_string(finding, "meaning"));
	for (int p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++)
		f.fix[p] =
			own(reports,
			    item_string(fix, diagnosis_platform_name((enum diagnosis_platform)p)));
	/* Those that this railmatectl does not know, of another version, come last. */
	while (f.order < doctor_n_checks() && strcmp(doctor_check_at(f.order)->id, id) != 0)
		f.order++;
	reports->findings =
		xgrow(reports->findings, &reports->cap, reports->n + 1, sizeof(*reports->findings));
	reports->findings[reports->n++] = f;
}

static const struct item *list_of(const struct item *object, const char *key)
{
	static const struct item none = { .type = ITEM_LIST };
	const struct item *list = item_get(object, key);

	return list && list->type == ITEM_LIST ? list : &none;
}

void reports_add(struct reports *reports, const char *node, const char *text, size_t len,
		 const char *why)
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
	node = own(reports, node);
	if (!text || why) {
		reports->silent = xgrow(reports->silent, &reports->cap_silent,
					reports->n_silent + 1, sizeof(*reports->silent));
		reports->silent[reports->n_silent++] =
			(struct report_silent) { node, own(reports, why) };
		return;
	}
	reports->nodes = xgrow(reports->nodes, &reports->cap_nodes, reports->n_nodes + 1,
			       sizeof(*reports->nodes));
	reports->nodes[reports->n_nodes++] = node;
	checks = list_of(top, "checks");
	for (size_t i = 0; i < checks->n_kids; i++) {
		const struct item *findings = list_of(&checks->kids[i], "findings");

		for (size_t k = 0; k < findings->n_kids; k++)
			add_finding(reports, node, &checks->kids[i], &findings->kids[k]);
	}
}

enum diagnosis_verdict reports_verdict(const struct reports *reports)
{
	enum diagnosis_verdict worst = reports->n_silent ? DIAGNOSIS_UNKNOWN : DIAGNOSIS_PASS;

	for (size_t i = 0; i < reports->n; i++) {
		if (reports->findings[i].verdict > worst)
			worst = reports->findings[i].verdict;
	}
	return worst;
}
