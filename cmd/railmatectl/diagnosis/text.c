/* The report for a tired operator: the verdict, then the faults, the worst first, then one line for
 * all that is right. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "facts/facts.h"
#include "diagnosis/diagnosis-internal.h"

#define COLUMNS 100

static void put_wrapped(struct strbuf *out, const char *label, const char *text)
{
	strbuf_put_wrapped(out, label, text, COLUMNS);
}

void diagnosis_put_paragraph(struct strbuf *out, const char *text)
{
	put_wrapped(out, "", text);
}

static void put_fix(const struct diagnosis_advice *a, struct strbuf *out)
{
	if (!a->fix[DIAGNOSIS_GRUB])
		return;
	if (!a->fix[DIAGNOSIS_OPENSHIFT] && !a->fix[DIAGNOSIS_TALOS]) {
		put_wrapped(out, "  fix:  ", a->fix[DIAGNOSIS_GRUB]);
		return;
	}
	put_wrapped(out, "  fix on Ubuntu, RHEL: ", diagnosis_fix_on(a, DIAGNOSIS_GRUB));
	put_wrapped(out, "         on OpenShift: ", diagnosis_fix_on(a, DIAGNOSIS_OPENSHIFT));
	put_wrapped(out, "             on Talos: ", diagnosis_fix_on(a, DIAGNOSIS_TALOS));
}

static void put_trouble(const struct diagnosis_kind *k, struct strbuf *out)
{
	const struct diagnosis_finding *f = k->first;

	strbuf_printf(out, "\n%s %s: %s\n", diagnosis_verdict_name(f->verdict), f->check->id,
		      f->check->title);
	for (size_t i = 0; i < k->n_shown; i++)
		put_wrapped(out, "  ", k->shown[i]);
	if (k->n_shown < k->n)
		strbuf_printf(out, "  and %zu more (--json has all)\n", k->n - k->n_shown);
	put_wrapped(out, "  NCCL: ", f->advice->meaning);
	put_fix(f->advice, out);
}

/* "WARN: acs, iommu" */
static void put_checks_of(const struct diagnosis *r, int verdict, const char *label,
			  struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;

	for (size_t i = 0; i < r->n_ran; i++) {
		if (diagnosis_verdict_of(r, r->ran[i]) == verdict)
			strbuf_printf(&names, "%s%s", names.len ? ", " : "", r->ran[i]->id);
	}
	if (names.len)
		put_wrapped(out, label, strbuf_str(&names));
}

void diagnosis_text(const struct facts *f, const struct diagnosis *r, struct strbuf *out)
{
	const struct diagnosis_kind *kinds;
	size_t n = diagnosis_kinds(r, &kinds), i = 0;

	strbuf_printf(out, "verdict: %s\n", diagnosis_verdict_name(diagnosis_worst(r)));
	put_checks_of(r, DIAGNOSIS_FAIL, "  FAIL:    ", out);
	put_checks_of(r, DIAGNOSIS_WARN, "  WARN:    ", out);
	put_checks_of(r, DIAGNOSIS_UNKNOWN, "  UNKNOWN: ", out);
	put_checks_of(r, DIAGNOSIS_PASS, "  PASS:    ", out);
	put_checks_of(r, -1, "  not applicable: ", out);
	if (f->confined == FACTS_YES)
		put_wrapped(
			out, "  ",
			"This is the view from inside a container: what it does not show is UNKNOWN.");
	for (; i < n && kinds[i].first->verdict != DIAGNOSIS_PASS; i++)
		put_trouble(&kinds[i], out);
	if (n)
		strbuf_putc(out, '\n');
	for (; i < n; i++) {
		strbuf_printf(out, "PASS %-17s %s", kinds[i].first->check->id,
			      kinds[i].first->sentence);
		if (kinds[i].n > 1)
			strbuf_printf(out, " (and %zu more)", kinds[i].n - 1);
		strbuf_putc(out, '\n');
	}
}
