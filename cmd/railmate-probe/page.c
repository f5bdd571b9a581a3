/*
 * A report as one page of HTML without scripts and without references to anything outside of it:
 * the picture, with Gb/s on the paths, the table, the findings. All names are escaped: a tenant
 * wrote map.json.
 */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "report.h"
#include "told.h"

#define NAMES_MAX 128 /* ends in the picture; the table has all */
#define ROW	  34
#define WIDTH	  760

static void escaped(FILE *out, const char *s)
{
	for (; s && *s; s++) {
		switch (*s) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc((unsigned char)*s < ' ' ? '?' : *s, out);
		}
	}
}

static const char *colour(enum outcome o)
{
	static const char *const colours[] = { "#1a7f37", "#6e7781", "#bf8700", "#cf222e" };

	return colours[o];
}

/* The memory and the device of one end, as one name: "0000:1b:00.0 / mlx5_4". */
struct end {
	const char *memory, *device;
};

struct ends {
	struct end v[NAMES_MAX];
	size_t n;
};

static size_t end_of(struct ends *ends, const char *memory, const char *device)
{
	for (size_t i = 0; i < ends->n; i++) {
		if (str_eq(ends->v[i].memory, memory) && str_eq(ends->v[i].device, device))
			return i;
	}
	if (ends->n < NAMES_MAX)
		ends->v[ends->n++] = (struct end) { memory, device };
	return ends->n - 1;
}

static void put_ends(const struct ends *ends, int x, const char *anchor, FILE *out)
{
	for (size_t i = 0; i < ends->n; i++) {
		fprintf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"%s\">", x, i * ROW + 22,
			anchor);
		if (!str_eq(ends->v[i].memory, "host")) {
			escaped(out, ends->v[i].memory);
			fputs(" / ", out);
		}
		escaped(out, ends->v[i].device);
		fputs("</text>\n", out);
	}
}

/* Writes alone, or the first operation that was measured: one line an edge. */
static bool drawn(const struct report *r, size_t at)
{
	const struct measure *m = &r->measures[at];

	if (m->together)
		return false;
	for (size_t i = 0; i < at; i++) {
		const struct measure *o = &r->measures[i];

		if (!o->together && str_eq(o->from, m->from) && str_eq(o->to, m->to) &&
		    str_eq(o->from_memory, m->from_memory) && str_eq(o->to_memory, m->to_memory))
			return false;
	}
	return true;
}

static void put_picture(const struct report *r, FILE *out)
{
	struct ends left = { .n = 0 }, right = { .n = 0 };

	for (size_t i = 0; i < r->n_measures; i++) {
		end_of(&left, r->measures[i].from_memory, r->measures[i].from);
		end_of(&right, r->measures[i].to_memory, r->measures[i].to);
	}
	fprintf(out,
		"<svg width=\"%d\" height=\"%zu\" font-family=\"monospace\" font-size=\"12\">\n",
		WIDTH, (left.n > right.n ? left.n : right.n) * ROW + 10);
	for (size_t i = 0; i < r->n_measures; i++) {
		const struct measure *m = &r->measures[i];
		size_t a = end_of(&left, m->from_memory, m->from),
		       b = end_of(&right, m->to_memory, m->to);

		if (!drawn(r, i))
			continue;
		fprintf(out,
			"<line x1=\"240\" y1=\"%zu\" x2=\"520\" y2=\"%zu\" stroke=\"%s\" stroke-width=\"2\"/>\n"
			"<text x=\"300\" y=\"%.0f\" fill=\"%s\">",
			a * ROW + 18, b * ROW + 18, colour(m->outcome),
			(double)(a * ROW) + 14 + ((double)b - (double)a) * ROW * 60 / 280,
			colour(m->outcome));
		if (isnan(m->gbps))
			fputs("not measured</text>\n", out);
		else
			fprintf(out, "%.1f Gb/s</text>\n", m->gbps);
	}
	put_ends(&left, 230, "end", out);
	put_ends(&right, 530, "start", out);
	fputs("</svg>\n", out);
}

static void put_cell(FILE *out, double v)
{
	if (isnan(v))
		fputs("<td>-", out);
	else
		fprintf(out, "<td>%.1f", v);
}

static void put_table(const struct report *r, FILE *out)
{
	fputs("<table><tr><th>outcome<th>path<th>from<th>to<th>memory<th>way<th>op<th>Gb/s<th>expected<th>limited by"
	      "<th>&micro;s<th>bytes compared</tr>\n",
	      out);
	for (size_t i = 0; i < r->n_measures; i++) {
		const struct measure *m = &r->measures[i];

		fprintf(out, "<tr><td style=\"color:%s\">%s<td>%s%s<td>", colour(m->outcome),
			outcome_name(m->outcome), measure_path_name(m->path),
			m->together ? ", at once" : "");
		escaped(out, m->from);
		fputs("<td>", out);
		escaped(out, m->to);
		fputs("<td>", out);
		escaped(out, m->from_memory);
		fputs(" &rarr; ", out);
		escaped(out, m->to_memory);
		fputs("<td>", out);
		escaped(out, m->memory_way);
		fprintf(out, "<td>%s", m->op);
		put_cell(out, m->gbps);
		put_cell(out, m->expect_gbps);
		fputs("<td>", out);
		escaped(out, m->limit);
		put_cell(out, m->usec);
		fprintf(out, "<td>%s</tr>\n", m->verified ? "yes" : "no");
	}
	fputs("</table>\n", out);
}

void report_html(const struct report *r, FILE *out)
{
	enum outcome o = report_outcome(r);

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>railmate-probe</title>\n"
	      "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
	      "td,th{padding:2px 8px;border-bottom:1px solid #ddd;text-align:left}</style>\n",
	      out);
	fprintf(out, "<h1 style=\"color:%s\">%s</h1>\n<p>", colour(o), outcome_name(o));
	escaped(out, r->told ? r->told->pod : NULL);
	fputc(' ', out);
	escaped(out, r->told ? r->told->container : NULL);
	fputs("</p>\n", out);
	if (r->n_measures) {
		put_picture(r, out);
		put_table(r, out);
	}
	fputs("<ul>\n", out);
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding *f = &r->findings[i];

		fprintf(out, "<li><b style=\"color:%s\">%s</b> ", colour(f->outcome),
			outcome_name(f->outcome));
		escaped(out, f->on);
		fputs(f->on ? ": " : "", out);
		escaped(out, f->what);
		fputs(f->sentence->likely ? "<br>Likely: " : "", out);
		escaped(out, f->sentence->likely);
		fputs(f->sentence->fix ? "<br>Do: " : "", out);
		escaped(out, f->sentence->fix);
		fputs("</li>\n", out);
	}
	fputs("</ul></html>\n", out);
}
