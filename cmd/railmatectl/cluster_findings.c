/* The report of `railmatectl cluster doctor`: findings of one check with one meaning are a kind,
 * which is printed with its nodes, its sentences and one fix. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "cluster.h"
#include "cluster_doctor.h"

#define COLUMNS 100
#define PARTS	8 /* of a list of nodes, in the text */

/* --- order --- */

/* NULL comes first. Equal strings of the reports are one, which is most often seen at once. */
static int cmp(const char *a, const char *b)
{
	if (a == b)
		return 0;
	return !a ? -1 : !b ? 1 : strcmp(a, b);
}

static int cmp_kind(const struct report_finding *x, const struct report_finding *y)
{
	int r = 0;

	if (x->verdict != y->verdict)
		return x->verdict > y->verdict ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if ((r = cmp(x->check, y->check)) || (r = cmp(x->meaning, y->meaning)))
		return r;
	for (int p = 0; r == 0 && p < DIAGNOSIS_PLATFORM_MAX; p++)
		r = cmp(x->fix[p], y->fix[p]);
	return r;
}

static int by_kind(const void *a, const void *b)
{
	const struct report_finding *x = a, *y = b;
	int r = cmp_kind(x, y);

	if (r == 0)
		r = cmp(x->sentence, y->sentence);
	return r ? r : cluster_node_cmp(x->node, y->node);
}

static int by_name(const void *a, const void *b)
{
	return cluster_node_cmp(*(const char *const *)a, *(const char *const *)b);
}

static int silent_by_name(const void *a, const void *b)
{
	const struct report_silent *x = a, *y = b;

	return cluster_node_cmp(x->node, y->node);
}

/* A list of none has no array. */
static void sort(void *v, size_t n, size_t size, int (*order)(const void *, const void *))
{
	if (n)
		qsort(v, n, size, order);
}

void reports_sort(struct reports *reports)
{
	sort(reports->findings, reports->n, sizeof(*reports->findings), by_kind);
	sort(reports->nodes, reports->n_nodes, sizeof(*reports->nodes), by_name);
	sort(reports->silent, reports->n_silent, sizeof(*reports->silent), silent_by_name);
}

/* --- kinds --- */

struct names {
	const char **v;
	size_t n;
};

struct said {
	const char *sentence;
	struct names nodes;
};

struct kind {
	const struct report_finding *f; /* the first */
	struct said *said;
	size_t n_said;
	struct names nodes;
};

static struct names nodes_of(const struct report_finding *f, size_t n, struct arena *a)
{
	struct names names = { arena_array(a, n, sizeof(*names.v)), 0 };

	for (size_t i = 0; i < n; i++)
		names.v[i] = f[i].node;
	sort(names.v, n, sizeof(*names.v), by_name);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(names.v[i], names.v[names.n - 1]) != 0)
			names.v[names.n++] = names.v[i];
	}
	return names;
}

/* Most nodes first. */
static int by_nodes(const void *a, const void *b)
{
	const struct said *x = a, *y = b;

	if (x->nodes.n != y->nodes.n)
		return x->nodes.n > y->nodes.n ? -1 : 1;
	return strcmp(x->sentence, y->sentence);
}

static int worst_first(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	if (x->f->verdict == y->f->verdict && x->nodes.n != y->nodes.n)
		return x->nodes.n > y->nodes.n ? -1 : 1;
	return cmp_kind(x->f, y->f);
}

static struct kind *read_kinds(const struct reports *reports, struct arena *a, size_t *ret)
{
	struct kind *kinds = arena_array(a, reports->n, sizeof(*kinds));
	size_t n = 0;

	for (size_t i = 0, end, next; i < reports->n; i = end) {
		const struct report_finding *f = reports->findings;
		struct kind *k = &kinds[n++];

		for (end = i + 1; end < reports->n && !cmp_kind(&f[i], &f[end]); end++)
			;
		*k = (struct kind) { &f[i], arena_array(a, end - i, sizeof(*k->said)), 0,
				     nodes_of(&f[i], end - i, a) };
		for (size_t at = i; at < end; at = next) {
			for (next = at + 1; next < end && !strcmp(f[next].sentence, f[at].sentence);
			     next++)
				;
			k->said[k->n_said++] =
				(struct said) { f[at].sentence, nodes_of(&f[at], next - at, a) };
		}
		sort(k->said, k->n_said, sizeof(*k->said), by_nodes);
	}
	sort(kinds, n, sizeof(*kinds), worst_first);
	*ret = n;
	return kinds;
}

/* --- text --- */

static void put_node_list(const struct names *names, struct strbuf *out)
{
	strbuf_printf(out, "%zu node%s: ", names->n, names->n == 1 ? "" : "s");
	cluster_put_nodes(names->v, names->n, PARTS, out);
}

static void put_kind(const struct kind *k, struct strbuf *out)
{
	size_t most = k->f->verdict == DIAGNOSIS_UNKNOWN ? 3 : 8; /* as doctor's own text */
	const char *const *fix = k->f->fix;

	strbuf_printf(out, "\n%s %s: %s\n  ", diagnosis_verdict_name(k->f->verdict), k->f->check,
		      k->f->title ? k->f->title : "");
	put_node_list(&k->nodes, out);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < k->n_said && i < most; i++) {
		_cleanup_strbuf_ struct strbuf line = STRBUF_INIT;

		strbuf_puts(&line, k->said[i].sentence);
		if (k->said[i].nodes.n < k->nodes.n) {
			strbuf_puts(&line, " (");
			cluster_put_nodes(k->said[i].nodes.v, k->said[i].nodes.n, PARTS, &line);
			strbuf_putc(&line, ')');
		}
		strbuf_put_wrapped(out, "  ", strbuf_str(&line), COLUMNS);
	}
	if (k->n_said > most)
		strbuf_printf(out, "  and %zu more (--json has all)\n", k->n_said - most);
	if (k->f->meaning)
		strbuf_put_wrapped(out, "  NCCL: ", k->f->meaning, COLUMNS);
	if (!fix[DIAGNOSIS_GRUB])
		return;
	if (!cmp(fix[DIAGNOSIS_GRUB], fix[DIAGNOSIS_OPENSHIFT]) &&
	    !cmp(fix[DIAGNOSIS_GRUB], fix[DIAGNOSIS_TALOS])) {
		strbuf_put_wrapped(out, "  fix:  ", fix[DIAGNOSIS_GRUB], COLUMNS);
		return;
	}
	strbuf_put_wrapped(out, "  fix on Ubuntu, RHEL: ", fix[DIAGNOSIS_GRUB], COLUMNS);
	if (fix[DIAGNOSIS_OPENSHIFT])
		strbuf_put_wrapped(out, "         on OpenShift: ", fix[DIAGNOSIS_OPENSHIFT],
				   COLUMNS);
	if (fix[DIAGNOSIS_TALOS])
		strbuf_put_wrapped(out, "             on Talos: ", fix[DIAGNOSIS_TALOS], COLUMNS);
}

void reports_text(const struct reports *reports, const char *advice, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	size_t n;
	const struct kind *kinds = read_kinds(reports, a, &n);
	struct names ill = nodes_of(reports->findings, reports->n, a);
	struct names well = { arena_array(a, reports->n_nodes, sizeof(*well.v)), 0 };

	strbuf_printf(out, "verdict: %s, %zu nodes",
		      diagnosis_verdict_name(reports_verdict(reports)),
		      reports->n_nodes + reports->n_silent);
	if (reports->n_silent)
		strbuf_printf(out, ", %zu of them without an answer", reports->n_silent);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < reports->n_silent; i++)
		strbuf_printf(out, "%s%s: %s\n", i ? "" : "\n", reports->silent[i].node,
			      reports->silent[i].why);
	for (size_t i = 0; i < n; i++)
		put_kind(&kinds[i], out);
	for (size_t i = 0, k = 0; i < reports->n_nodes; i++) {
		while (k < ill.n && cluster_node_cmp(ill.v[k], reports->nodes[i]) < 0)
			k++;
		if (k == ill.n || strcmp(ill.v[k], reports->nodes[i]) != 0)
			well.v[well.n++] = reports->nodes[i];
	}
	if (well.n) {
		strbuf_puts(out, "\nPASS, ");
		put_node_list(&well, out);
		strbuf_putc(out, '\n');
	}
	if (advice) {
		strbuf_putc(out, '\n');
		diagnosis_put_paragraph(out, advice);
	}
}

/* --- JSON --- */

static void json_names(const struct names *names, struct json *j)
{
	json_key(j, "nodes");
	json_begin_array(j);
	for (size_t i = 0; i < names->n; i++)
		json_put_string(j, names->v[i]);
	json_end_array(j);
}

void reports_json(const struct reports *reports, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	const struct names answered = { reports->nodes, reports->n_nodes };
	size_t n;
	const struct kind *kinds = read_kinds(reports, a, &n);
	struct json j;

	json_init(&j, out, 2);
	json_begin_object(&j);
	json_kv_string(&j, "verdict", diagnosis_verdict_name(reports_verdict(reports)));
	json_names(&answered, &j);
	json_key(&j, "no_answer");
	json_begin_array(&j);
	for (size_t i = 0; i < reports->n_silent; i++) {
		json_begin_object(&j);
		json_kv_string(&j, "node", reports->silent[i].node);
		json_kv_string(&j, "error", reports->silent[i].why);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_key(&j, "groups");
	json_begin_array(&j);
	for (size_t i = 0; i < n; i++) {
		const struct kind *k = &kinds[i];

		json_begin_object(&j);
		json_kv_string(&j, "verdict", diagnosis_verdict_name(k->f->verdict));
		json_kv_string(&j, "check", k->f->check);
		json_kv_string(&j, "title", k->f->title);
		json_names(&k->nodes, &j);
		json_key(&j, "findings");
		json_begin_array(&j);
		for (size_t at = 0; at < k->n_said; at++) {
			json_begin_object(&j);
			json_kv_string(&j, "finding", k->said[at].sentence);
			json_names(&k->said[at].nodes, &j);
			json_end_object(&j);
		}
		json_end_array(&j);
		json_kv_string(&j, "meaning", k->f->meaning);
		json_key(&j, "fix");
		json_begin_object(&j);
		for (int p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++)
			json_kv_string(&j, diagnosis_platform_name((enum diagnosis_platform)p),
				       k->f->fix[p]);
		json_end_object(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}
