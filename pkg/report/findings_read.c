/* The JSON of `railmatectl doctor` → kinds of findings, which are shown together. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "report/findings.h"

struct finding {
	enum status_found verdict;
	const struct item *check, *item;
	bool taken; /* into a kind */
};

struct reader {
	struct arena *scratch; /* of the text read */
	struct arena *arena;   /* of the report */
	struct finding *v;
	size_t n;
	struct status_doctor *ret;
};

static const char *keep(const struct reader *r, const struct item *of, const char *key)
{
	return arena_strdup(r->arena, item_string(of, key));
}

static int read_verdict(const struct item *of, enum status_found *ret, struct err *err)
{
	static const char *const names[STATUS_FOUND_MAX] = {
		[STATUS_FOUND_PASS] = "PASS",
		[STATUS_FOUND_UNKNOWN] = "UNKNOWN",
		[STATUS_FOUND_WARN] = "WARN",
		[STATUS_FOUND_FAIL] = "FAIL",
	};
	const char *name = item_string(of, "verdict");

	for (int v = 0; v < STATUS_FOUND_MAX; v++) {
		if (str_eq(name, names[v])) {
			*ret = (enum status_found)v;
			return 0;
		}
	}
	return err_set(err, EINVAL, "line %d has no verdict", of->line);
}

static const struct item *list_of(const struct item *object, const char *key)
{
	const struct item *list = item_get(object, key);

	return list && list->type == ITEM_LIST ? list : NULL;
}

/* All findings, in the order of the checks. */
static int read_checks(struct reader *r, const struct item *checks, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < checks->n_kids; i++) {
		const struct item *found = list_of(&checks->kids[i], "findings");

		if (!found || !item_string(&checks->kids[i], "id"))
			return err_set(err, EINVAL, "line %d is no check", checks->kids[i].line);
		n += found->n_kids;
	}
	r->v = arena_array(r->scratch, n, sizeof(*r->v));
	for (size_t i = 0; i < checks->n_kids; i++) {
		const struct item *found = list_of(&checks->kids[i], "findings");

		for (size_t k = 0; k < found->n_kids; k++) {
			struct finding *f = &r->v[r->n++];

			f->check = &checks->kids[i];
			f->item = &found->kids[k];
			if (read_verdict(f->item, &f->verdict, err) < 0)
				return -EINVAL;
			r->ret->n_by_verdict[f->verdict]++;
		}
	}
	return 0;
}

static bool is_same_kind(const struct finding *a, const struct finding *b)
{
	const struct item *x = item_get(a->item, "fix"), *y = item_get(b->item, "fix");

	return a->check == b->check && a->verdict == b->verdict &&
	       str_eq(item_string(a->item, "meaning"), item_string(b->item, "meaning")) &&
	       str_eq(item_string(x, "grub"), item_string(y, "grub"));
}

/* Where it is the same everywhere it is one. */
static void read_fixes(const struct reader *r, struct status_finding *kind, const struct item *fix)
{
	static const struct {
		const char *key, *where;
	} hosts[] = { { "grub", "Ubuntu, RHEL" },
		      { "openshift", "OpenShift" },
		      { "talos", "Talos" } };
	struct status_fix *v = arena_array(r->arena, ARRAY_LEN(hosts), sizeof(*v));

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		const char *what = keep(r, fix, hosts[i].key);

		if (what && (!kind->n_fixes || strcmp(what, v[0].what) != 0))
			v[kind->n_fixes++] = (struct status_fix) { hosts[i].where, what };
	}
	if (kind->n_fixes == 1)
		v->where = NULL;
	kind->fixes = v;
}

static void read_kind(struct reader *r, size_t first, struct status_finding *ret)
{
	static const size_t most[STATUS_FOUND_MAX] = { 1, 3, 8, 8 };
	const struct finding *f = &r->v[first];
	const char **shown = arena_array(r->arena, most[f->verdict], sizeof(*shown));

	*ret = (struct status_finding) { .verdict = f->verdict,
					 .check = keep(r, f->check, "id"),
					 .title = keep(r, f->check, "title"),
					 .shown = shown,
					 .meaning = keep(r, f->item, "meaning") };
	for (size_t i = first; i < r->n; i++) {
		if (r->v[i].taken || !is_same_kind(&r->v[i], f))
			continue;
		r->v[i].taken = true;
		if (ret->n++ < most[f->verdict])
			shown[ret->n_shown++] = keep(r, r->v[i].item, "finding");
	}
	read_fixes(r, ret, item_get(f->item, "fix"));
}

/* The worst first. */
static void read_kinds(struct reader *r)
{
	struct status_finding *v = arena_array(r->arena, r->n, sizeof(*v));

	for (int verdict = STATUS_FOUND_MAX - 1; verdict >= 0; verdict--) {
		for (size_t i = 0; i < r->n; i++) {
			if (!r->v[i].taken && (int)r->v[i].verdict == verdict)
				read_kind(r, i, &v[r->ret->n++]);
		}
	}
	r->ret->v = v;
}

int findings_read(const char *text, size_t len, struct findings_report **ret, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(65536);
	struct arena *a = arena_new(4096);
	struct findings_report *report = arena_alloc(a, sizeof(*report));
	struct reader r = { .scratch = scratch, .arena = a, .ret = &report->doctor };
	const struct item *root, *container;

	report->arena = a;
	if (document_parse(text, len, "its report", scratch, &root, err) < 0 ||
	    read_verdict(root, &report->doctor.verdict, err) < 0 ||
	    (!list_of(root, "checks") && err_set(err, EINVAL, "its report has no checks")) ||
	    read_checks(&r, list_of(root, "checks"), err) < 0) {
		arena_free(a);
		return -EINVAL;
	}
	container = item_get(root, "container");
	report->doctor.confined = container && container->type == ITEM_BOOL && container->boolean;
	read_kinds(&r);
	*ret = report;
	return 0;
}
