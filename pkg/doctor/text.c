/* The report for a tired operator: the verdict, then what is wrong, the worst first, then one line
 * for what is right. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "doctor/doctor-internal.h"

#define COLUMNS 100

/* Words of text, wrapped; every line but the first begins below the text's first word. */
static void put_wrapped(struct strbuf *out, const char *label, const char *text)
{
	size_t indent = strlen(label), column = indent;

	strbuf_puts(out, label);
	for (size_t len; *text; text += len, text += strspn(text, " ")) {
		len = strcspn(text, " ");
		if (column > indent && column + 1 + len > COLUMNS) {
			strbuf_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			strbuf_putc(out, ' ');
			column++;
		}
		strbuf_add(out, text, len);
		column += len;
	}
	strbuf_putc(out, '\n');
}

void doctor_put_paragraph(struct strbuf *out, const char *text)
{
	put_wrapped(out, "", text);
}

static bool is_first_of_kind(const struct doctor_report *r, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (doctor_same_kind(&r->findings[i], &r->findings[at]))
			return false;
	}
	return true;
}

static size_t count_kind(const struct doctor_report *r, size_t first)
{
	size_t n = 0;

	for (size_t i = first; i < r->n; i++)
		n += doctor_same_kind(&r->findings[i], &r->findings[first]);
	return n;
}

static void put_fix(const struct doctor_advice *a, struct strbuf *out)
{
	if (!a->fix[DOCTOR_GRUB])
		return;
	if (!a->fix[DOCTOR_OPENSHIFT] && !a->fix[DOCTOR_TALOS]) {
		put_wrapped(out, "  fix:  ", a->fix[DOCTOR_GRUB]);
		return;
	}
	put_wrapped(out, "  fix on Ubuntu, RHEL: ", doctor_fix_on(a, DOCTOR_GRUB));
	put_wrapped(out, "         on OpenShift: ", doctor_fix_on(a, DOCTOR_OPENSHIFT));
	put_wrapped(out, "             on Talos: ", doctor_fix_on(a, DOCTOR_TALOS));
}

/* Of findings of one kind; --json has all. Of what nobody knows a few are enough. */
static size_t max_lines(enum doctor_verdict v)
{
	return v == DOCTOR_UNKNOWN ? 3 : 8;
}

static void put_trouble(const struct doctor_report *r, size_t first, struct strbuf *out)
{
	const struct doctor_finding *f = &r->findings[first];
	size_t n = count_kind(r, first), shown = 0;

	strbuf_printf(out, "\n%s %s: %s\n", doctor_verdict_name(f->verdict), f->check->id,
		      f->check->title);
	for (size_t i = first; i < r->n && shown < max_lines(f->verdict); i++) {
		if (!doctor_same_kind(&r->findings[i], f))
			continue;
		put_wrapped(out, "  ", r->findings[i].sentence);
		shown++;
	}
	if (shown < n)
		strbuf_printf(out, "  and %zu more (--json has all)\n", n - shown);
	put_wrapped(out, "  NCCL: ", f->advice->meaning);
	put_fix(f->advice, out);
}

static void put_pass(const struct doctor_report *r, size_t first, struct strbuf *out)
{
	const struct doctor_finding *f = &r->findings[first];
	size_t n = count_kind(r, first);

	strbuf_printf(out, "PASS %-17s %s", f->check->id, f->sentence);
	if (n > 1)
		strbuf_printf(out, " (and %zu more)", n - 1);
	strbuf_putc(out, '\n');
}

static void put_level(const struct doctor_report *r, enum doctor_verdict v, struct strbuf *out)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->findings[i].verdict == v && is_first_of_kind(r, i))
			(v == DOCTOR_PASS ? put_pass : put_trouble)(r, i, out);
	}
}

/* "WARN: acs, iommu" */
static void put_checks_of(const struct doctor_report *r, int verdict, const char *label,
			  struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;

	for (size_t i = 0; i < r->n_ran; i++) {
		if (doctor_verdict_of(r, r->ran[i]) == verdict)
			strbuf_printf(&names, "%s%s", names.len ? ", " : "", r->ran[i]->id);
	}
	if (names.len)
		put_wrapped(out, label, strbuf_str(&names));
}

void doctor_text(const struct doctor_facts *f, const struct doctor_report *r, struct strbuf *out)
{
	strbuf_printf(out, "verdict: %s\n", doctor_verdict_name(doctor_report_verdict(r)));
	put_checks_of(r, DOCTOR_FAIL, "  FAIL:    ", out);
	put_checks_of(r, DOCTOR_WARN, "  WARN:    ", out);
	put_checks_of(r, DOCTOR_UNKNOWN, "  UNKNOWN: ", out);
	put_checks_of(r, DOCTOR_PASS, "  PASS:    ", out);
	put_checks_of(r, -1, "  nothing to say: ", out);
	if (f->container == DOCTOR_YES)
		put_wrapped(
			out, "  ",
			"This is the view from inside a container: what it does not show is UNKNOWN.");
	put_level(r, DOCTOR_FAIL, out);
	put_level(r, DOCTOR_WARN, out);
	put_level(r, DOCTOR_UNKNOWN, out);
	if (doctor_report_n(r))
		strbuf_putc(out, '\n');
	put_level(r, DOCTOR_PASS, out);
}
