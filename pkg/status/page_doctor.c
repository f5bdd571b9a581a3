/* The findings of doctor on the page: the worst first, with their fixes. */
#include "base/str.h"
#include "status/html-internal.h"
#include "status/status.h"

const char *const status_found_names[STATUS_FOUND_MAX] = {
	[STATUS_FOUND_PASS] = "pass",
	[STATUS_FOUND_UNKNOWN] = "unknown",
	[STATUS_FOUND_WARN] = "warn",
	[STATUS_FOUND_FAIL] = "fail",
};

static const struct {
	const char *word, *class;
} verdicts[STATUS_FOUND_MAX] = {
	[STATUS_FOUND_PASS] = { "PASS", "good" },
	[STATUS_FOUND_UNKNOWN] = { "UNKNOWN", "pale" },
	[STATUS_FOUND_WARN] = { "WARN", "wrong" },
	[STATUS_FOUND_FAIL] = { "FAIL", "wrong" },
};

static void put_verdict(enum status_found v, struct strbuf *out)
{
	strbuf_printf(out, "<b class=\"%s\">%s</b>", verdicts[v].class, verdicts[v].word);
}

static void put_finding(const struct status_finding *f, struct strbuf *out)
{
	strbuf_puts(out, "<li>");
	put_verdict(f->verdict, out);
	strbuf_puts(out, " <b>");
	status_html_text(out, f->check);
	strbuf_puts(out, "</b> <span class=\"pale\">");
	status_html_text(out, f->title);
	strbuf_puts(out, "</span>");
	for (size_t i = 0; i < f->n_shown; i++) {
		strbuf_puts(out, "<p>");
		status_html_text(out, f->shown[i]);
		strbuf_puts(out, "</p>");
	}
	if (f->n_shown < f->n)
		strbuf_printf(out, "<p>and %zu more</p>", f->n - f->n_shown);
	strbuf_puts(out, "<p class=\"pale\">NCCL: ");
	status_html_text(out, f->meaning);
	strbuf_puts(out, "</p>");
	for (size_t i = 0; i < f->n_fixes; i++) {
		strbuf_puts(out, f->fixes[i].where ? "<p>Fix on " : "<p>Fix");
		status_html_text(out, f->fixes[i].where);
		strbuf_puts(out, ": ");
		status_html_text(out, f->fixes[i].what);
		strbuf_puts(out, "</p>");
	}
	strbuf_puts(out, "</li>\n");
}

/* Of passed checks the names are enough. */
static void put_passed(const struct status_doctor *d, struct strbuf *out)
{
	const char *separator = "";

	strbuf_puts(out, "<li>");
	put_verdict(STATUS_FOUND_PASS, out);
	strbuf_putc(out, ' ');
	for (size_t i = 0; i < d->n; i++) {
		if (d->v[i].verdict != STATUS_FOUND_PASS)
			continue;
		strbuf_puts(out, separator);
		status_html_text(out, d->v[i].check);
		separator = ", ";
	}
	strbuf_puts(out, "</li>\n");
}

void status_html_verdict(const struct status_doctor *d, struct strbuf *out)
{
	strbuf_puts(out, "<p>doctor: <a href=\"#doctor\">");
	put_verdict(d->verdict, out);
	strbuf_puts(out, "</a></p>\n");
}

void status_html_doctor(const struct status_doctor *d, struct strbuf *out)
{
	strbuf_puts(out, "<section id=\"doctor\"><h2>Doctor: ");
	put_verdict(d->verdict, out);
	if (d->failure) {
		strbuf_puts(out, "</h2><p class=\"wrong\">Not checked: ");
		status_html_text(out, d->failure);
		strbuf_puts(out, "</p></section>\n");
		return;
	}
	strbuf_puts(
		out,
		"</h2><p class=\"pale\">As the node was when railmated started, or when its hardware changed last. <code>railmatectl doctor --explain CHECK</code> says more, docs/troubleshooting.md has all checks.");
	if (d->confined && d->n_by_verdict[STATUS_FOUND_UNKNOWN])
		strbuf_puts(
			out,
			" UNKNOWN: what a container does not show; <code>kubectl railmate doctor --privileged</code> sees it.");
	strbuf_puts(out, "</p><ul class=\"findings\">\n");
	for (size_t i = 0; i < d->n; i++) {
		if (d->v[i].verdict != STATUS_FOUND_PASS)
			put_finding(&d->v[i], out);
	}
	if (d->n_by_verdict[STATUS_FOUND_PASS])
		put_passed(d, out);
	strbuf_puts(out, "</ul></section>\n");
}
