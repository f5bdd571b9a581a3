/*
 * A report as text of at most 100 columns, read in five seconds: the verdict, a table of the
 * transfers, then each finding with its cause and its fix, the worst first. And as JSON: everything
 * that the text is made of.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "report.h"
#include "told.h"

#define COLUMNS 100

/* Of a finding and of the whole: not all that warns is slow. */
static const char *mark(enum outcome o)
{
	static const char *const marks[] = { "GOOD", "????", "WARN", "FAIL" };

	return marks[o];
}

/* Of the same transfer: with all others at once, where `m` was alone. */
static const struct measure *beside(const struct report *r, const struct measure *m)
{
	for (size_t i = 0; i < r->n_measures; i++) {
		const struct measure *o = &r->measures[i];

		if (o->together && o->path == m->path && str_eq(o->from, m->from) &&
		    str_eq(o->to, m->to) && str_eq(o->from_memory, m->from_memory) &&
		    str_eq(o->to_memory, m->to_memory) && str_eq(o->op, m->op))
			return o;
	}
	return NULL;
}

/* Measured together only: it has no row of its own time alone. */
static bool has_row(const struct report *r, const struct measure *m)
{
	if (!m->together)
		return true;
	for (size_t i = 0; i < r->n_measures; i++) {
		if (!r->measures[i].together && beside(r, &r->measures[i]) == m)
			return false;
	}
	return true;
}

static const char *number(struct arena *a, double v, int digits, const char *unit)
{
	return isnan(v) ? "-" : arena_printf(a, "%.*f%s", digits, v, unit);
}

static const char *per_cent(struct arena *a, const struct measure *m)
{
	return !m || isnan(m->gbps) || isnan(m->expect_gbps) || m->expect_gbps <= 0
		       ? "-"
		       : arena_printf(a, "%.0f %%", 100 * m->gbps / m->expect_gbps);
}

static const char *memory(struct arena *a, const struct measure *m)
{
	if (str_eq(m->from_memory, m->to_memory))
		return m->from_memory;
	return arena_printf(a, "%s>%s", m->from_memory, m->to_memory);
}

/* A peer's devices have its name before them, which is that of all. */
static const char *device_of(const char *end)
{
	const char *slash = strrchr(end, '/');

	return slash ? slash + 1 : end;
}

static const char *rate(struct arena *a, double gbps)
{
	return number(a, gbps, gbps > 0 && gbps < 1 ? 3 : 1, "");
}

static void put_rows(const struct report *r, struct arena *a, FILE *out)
{
	fprintf(out, "\n     %-12s %-23s %-14s %-5s %8s %6s %8s %8s\n", "path", "from > to",
		"memory", "op", "Gb/s", "of exp", "at once", "us");
	for (size_t i = 0; i < r->n_measures; i++) {
		const struct measure *m = &r->measures[i], *all = m->together ? m : beside(r, m);
		enum outcome worst = all && all->outcome > m->outcome ? all->outcome : m->outcome;

		if (!has_row(r, m))
			continue;
		fprintf(out, "%s %-12s %-23.23s %-14.14s %-5s %8s %6s %8s %8s\n",
			worst == OUTCOME_SLOW ? "SLOW" : mark(worst), measure_path_name(m->path),
			str_eq(m->from, m->to)
				? m->from
				: arena_printf(a, "%s > %s", m->from, device_of(m->to)),
			memory(a, m), m->op, m->together ? "-" : rate(a, m->gbps),
			per_cent(a, m->together ? NULL : m), all ? rate(a, all->gbps) : "-",
			number(a, m->usec, 1, ""));
	}
}

/* The links that limit, each once. */
static void put_limits(const struct report *r, FILE *out)
{
	for (size_t i = 0; i < r->n_measures; i++) {
		const struct measure *m = &r->measures[i];
		bool known = false;

		for (size_t k = 0; k < i && m->limit; k++)
			known = known || str_eq(r->measures[k].limit, m->limit);
		if (m->limit && !known)
			fprintf(out, "expected: %.1f Gb/s, by %s\n", m->expect_gbps, m->limit);
	}
}

/*
 * Shares of a port's rate in public measurements of transfers from GPU memory: with VFs of 200 Gb/s
 * (perftest, ten runs a cell) GPU and VF below two roots of a NUMA node 124 Gb/s, on two NUMA nodes
 * 101; and a table of transports over 400 Gb/s, in the middle of its ranges.
 */
static const struct {
	double share;
	const char *like;
} known_shares[] = {
	{ 0.62, "two root ports of one NUMA node give" },
	{ 0.51, "two NUMA nodes give" },
	{ 0.44, "InfiniBand with copies through the host gives" },
	{ 0.35, "RoCE with copies through the host gives" },
	{ 0.20, "TCP gives" },
};

static void put_likeness(const struct report *r, FILE *out)
{
	for (size_t i = 0; i < r->n_measures; i++) {
		const struct measure *m = &r->measures[i];
		double share = m->gbps / m->expect_gbps, off = 0.05;
		const char *like = NULL;

		if (m->together || m->outcome < OUTCOME_SLOW || str_eq(m->from_memory, "host") ||
		    isnan(share))
			continue;
		for (size_t k = 0; k < sizeof(known_shares) / sizeof(*known_shares); k++) {
			if (fabs(share - known_shares[k].share) >= off)
				continue;
			off = fabs(share - known_shares[k].share);
			like = known_shares[k].like;
		}
		if (like)
			fprintf(out, "%s from %s: %.1f GB/s of %.1f: about what %s\n", m->from,
				m->from_memory, m->gbps / 8, m->expect_gbps / 8, like);
	}
}

/* One kind of line: its label, and the text wrapped behind it. */
static void put_wrapped(const char *label, const char *text, FILE *out)
{
	_cleanup_strbuf_ struct strbuf clean = STRBUF_INIT, lines = STRBUF_INIT;

	strbuf_puts(&clean, text);
	str_printable(clean.s, clean.len, "");
	strbuf_put_wrapped(&lines, label, strbuf_str(&clean), COLUMNS);
	fputs(strbuf_str(&lines), out);
}

static void put_finding(const struct finding *f, struct arena *a, FILE *out)
{
	put_wrapped(arena_printf(a, "%s ", mark(f->outcome)),
		    f->on ? arena_printf(a, "%s: %s", f->on, f->what) : f->what, out);
	if (f->outcome != OUTCOME_GOOD && f->sentence->likely)
		put_wrapped("     likely: ", f->sentence->likely, out);
	if (f->outcome != OUTCOME_GOOD && f->sentence->fix)
		put_wrapped("     do: ", f->sentence->fix, out);
}

void report_text(const struct report *r, FILE *out)
{
	_cleanup_arena_ struct arena *a = arena_new(1 << 14);
	const struct told *t = r->told;

	fprintf(out, "%s: ", mark(report_outcome(r)));
	if (t && t->pod)
		fprintf(out, "%s %s, ", t->pod, t->container ? t->container : "");
	fprintf(out, "%zu VFs, %zu GPUs, %zu transfers", t ? t->n_vfs : 0, t ? t->n_gpus : 0,
		r->n_measures);
	if (r->n_measures && device_of(r->measures->to) != r->measures->to)
		fprintf(out, " to %.*s", (int)(device_of(r->measures->to) - r->measures->to - 1),
			r->measures->to);
	fputc('\n', out);
	if (r->n_measures) {
		put_rows(r, a, out);
		put_limits(r, out);
		put_likeness(r, out);
	}
	if (r->n_findings)
		fputc('\n', out);
	for (int o = OUTCOME_MAX - 1; o >= 0; o--) {
		for (size_t i = 0; i < r->n_findings; i++) {
			if (r->findings[i].outcome == (enum outcome)o)
				put_finding(&r->findings[i], a, out);
		}
	}
}

/* JSON has no NAN; the writer of pkg/base knows whole numbers only. */
static void put_number(struct json *j, const char *key, double v)
{
	char text[32];

	json_key(j, key);
	if (isnan(v)) {
		json_put_null(j);
		return;
	}
	snprintf(text, sizeof(text), "%.3f", v);
	json_put_raw(j, text, strlen(text));
}

static void put_measure(struct json *j, const struct measure *m)
{
	json_begin_object(j);
	json_kv_string(j, "path", measure_path_name(m->path));
	json_kv_string(j, "from", m->from);
	json_kv_string(j, "to", m->to);
	json_kv_string(j, "from_memory", m->from_memory);
	json_kv_string(j, "to_memory", m->to_memory);
	json_kv_string(j, "memory_way", m->memory_way);
	json_kv_string(j, "op", m->op);
	json_kv_bool(j, "together", m->together);
	put_number(j, "gbps", m->gbps);
	put_number(j, "usec", m->usec);
	put_number(j, "expect_gbps", m->expect_gbps);
	json_kv_string(j, "limit", m->limit);
	json_kv_bool(j, "verified", m->verified);
	json_kv_string(j, "outcome", outcome_name(m->outcome));
	json_end_object(j);
}

void report_json(const struct report *r, FILE *out)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct told *t = r->told;
	struct json j;

	json_init(&j, &text, 1);
	json_begin_object(&j);
	json_kv_int(&j, "probe", 1);
	json_kv_string(&j, "version", RAILMATE_VERSION);
	json_kv_string(&j, "outcome", outcome_name(report_outcome(r)));
	json_kv_string(&j, "pod", t ? t->pod : NULL);
	json_kv_string(&j, "container", t ? t->container : NULL);
	json_key(&j, "measures");
	json_begin_array(&j);
	for (size_t i = 0; i < r->n_measures; i++)
		put_measure(&j, &r->measures[i]);
	json_end_array(&j);
	json_key(&j, "findings");
	json_begin_array(&j);
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding *f = &r->findings[i];

		json_begin_object(&j);
		json_kv_string(&j, "outcome", outcome_name(f->outcome));
		json_kv_string(&j, "id", f->sentence->id);
		json_kv_string(&j, "on", f->on);
		json_kv_string(&j, "what", f->what);
		json_kv_string(&j, "likely", f->sentence->likely);
		json_kv_string(&j, "fix", f->sentence->fix);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	fprintf(out, "%s\n", strbuf_str(&text));
}
