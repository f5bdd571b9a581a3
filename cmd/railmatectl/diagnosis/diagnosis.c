/* Findings, in the order in which checks add them; the report for a tired operator: the verdict,
 * then the faults, the worst first, then one line for all that is right; the same as JSON, nothing
 * cut. */
#include "diagnosis/diagnosis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "facts/facts.h"

struct diagnosis {
	struct arena *arena;
	const struct diagnosis_check *running;
	const struct diagnosis_check **ran;
	size_t n_ran, cap_ran;
	struct diagnosis_finding *findings;
	size_t n, cap;
	size_t first; /* finding of the running check */
};

const char *diagnosis_verdict_name(enum diagnosis_verdict v)
{
	static const char *const names[] = {
		[DIAGNOSIS_PASS] = "PASS",
		[DIAGNOSIS_UNKNOWN] = "UNKNOWN",
		[DIAGNOSIS_WARN] = "WARN",
		[DIAGNOSIS_FAIL] = "FAIL",
	};

	return names[v];
}

const char *diagnosis_platform_name(enum diagnosis_platform p)
{
	static const char *const names[] = {
		[DIAGNOSIS_GRUB] = "grub",
		[DIAGNOSIS_OPENSHIFT] = "openshift",
		[DIAGNOSIS_TALOS] = "talos",
	};

	return names[p];
}

static const char *fix_on(const struct diagnosis_advice *a, enum diagnosis_platform p)
{
	return a->fix[p] ? a->fix[p] : a->fix[DIAGNOSIS_GRUB];
}

/* --- making one --- */

struct diagnosis *diagnosis_new(void)
{
	struct diagnosis *r = xcalloc(1, sizeof(*r));

	r->arena = arena_new(16384);
	return r;
}

void diagnosis_run(struct diagnosis *r, const struct diagnosis_check *check, const struct facts *f)
{
	r->ran = xgrow(r->ran, &r->cap_ran, r->n_ran + 1, sizeof(*r->ran));
	r->running = r->ran[r->n_ran++] = check;
	r->first = r->n;
	check->run(f, r);
}

__attribute__((format(printf, 5, 0))) static struct diagnosis_finding *
add(struct diagnosis *r, enum diagnosis_verdict v, const struct diagnosis_advice *a,
    const char *subject, const char *fmt, va_list ap)
{
	static const struct diagnosis_advice none;
	struct diagnosis_finding *f;
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	str_utf8_trim(text);
	r->findings = xgrow(r->findings, &r->cap, r->n + 1, sizeof(*r->findings));
	f = &r->findings[r->n++];
	*f = (struct diagnosis_finding) {
		.check = r->running,
		.verdict = v,
		.subject = arena_strdup(r->arena, subject),
		.sentence = arena_strdup(r->arena, text),
		.advice = a ? a : &none,
	};
	return f;
}

struct diagnosis_finding *diagnosis_add(struct diagnosis *r, enum diagnosis_verdict v,
					const struct diagnosis_advice *a, const char *subject,
					const char *fmt, ...)
{
	struct diagnosis_finding *f;
	va_list ap;

	va_start(ap, fmt);
	f = add(r, v, a, subject, fmt, ap);
	va_end(ap);
	return f;
}

void diagnosis_fine(struct diagnosis *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		add(r, DIAGNOSIS_PASS, NULL, "host", fmt, ap);
	va_end(ap);
}

struct arena *diagnosis_arena(const struct diagnosis *r)
{
	return r->arena;
}

enum diagnosis_verdict diagnosis_worst_so_far(const struct diagnosis *r)
{
	enum diagnosis_verdict worst = DIAGNOSIS_PASS;

	for (size_t i = r->first; i < r->n; i++) {
		if (r->findings[i].verdict > worst)
			worst = r->findings[i].verdict;
	}
	return worst;
}

size_t diagnosis_n_before(const struct diagnosis *r)
{
	return r->first;
}

/* --- reading it --- */

int diagnosis_verdict_of(const struct diagnosis *r, const struct diagnosis_check *c)
{
	int worst = -1;

	for (size_t i = 0; i < r->n; i++) {
		if (r->findings[i].check == c && (int)r->findings[i].verdict > worst)
			worst = (int)r->findings[i].verdict;
	}
	return worst;
}

enum diagnosis_verdict diagnosis_worst(const struct diagnosis *r)
{
	enum diagnosis_verdict worst = DIAGNOSIS_PASS;

	for (size_t i = 0; i < r->n; i++) {
		if (r->findings[i].verdict > worst)
			worst = r->findings[i].verdict;
	}
	return worst;
}

size_t diagnosis_n(const struct diagnosis *r)
{
	return r->n;
}

const struct diagnosis_finding *diagnosis_at(const struct diagnosis *r, size_t i)
{
	return &r->findings[i];
}

/* --- its end --- */

void diagnosis_free(struct diagnosis *r)
{
	if (!r)
		return;
	free(r->ran);
	free(r->findings);
	arena_free(r->arena);
	free(r);
}

void diagnosis_freep(struct diagnosis **r)
{
	diagnosis_free(*r);
}

/* --- text --- */

#define COLUMNS 100

static void put_wrapped(struct strbuf *out, const char *label, const char *text)
{
	strbuf_put_wrapped(out, label, text, COLUMNS);
}

static void put_fix(const struct diagnosis_advice *a, struct strbuf *out)
{
	if (!a->fix[DIAGNOSIS_GRUB])
		return;
	if (!a->fix[DIAGNOSIS_OPENSHIFT] && !a->fix[DIAGNOSIS_TALOS]) {
		put_wrapped(out, "  fix:  ", a->fix[DIAGNOSIS_GRUB]);
		return;
	}
	put_wrapped(out, "  fix on Ubuntu, RHEL: ", fix_on(a, DIAGNOSIS_GRUB));
	put_wrapped(out, "         on OpenShift: ", fix_on(a, DIAGNOSIS_OPENSHIFT));
	put_wrapped(out, "             on Talos: ", fix_on(a, DIAGNOSIS_TALOS));
}

/* Findings of one kind are shown together. */
static bool is_same_kind(const struct diagnosis_finding *a, const struct diagnosis_finding *b)
{
	return a->check == b->check && a->verdict == b->verdict && a->advice == b->advice;
}

static bool is_first_of_kind(const struct diagnosis *r, size_t i)
{
	size_t first = 0;

	while (!is_same_kind(&r->findings[first], &r->findings[i]))
		first++;
	return first == i;
}

static void put_trouble(const struct diagnosis *r, size_t first, struct strbuf *out)
{
	static const size_t most[DIAGNOSIS_VERDICT_MAX] = { 0, 3, 8, 8 };
	const struct diagnosis_finding *f = &r->findings[first];
	size_t n = 0;

	strbuf_printf(out, "\n%s %s: %s\n", diagnosis_verdict_name(f->verdict), f->check->id,
		      f->check->title);
	for (size_t i = first; i < r->n; i++) {
		if (is_same_kind(&r->findings[i], f) && n++ < most[f->verdict])
			put_wrapped(out, "  ", r->findings[i].sentence);
	}
	if (n > most[f->verdict])
		strbuf_printf(out, "  and %zu more (--json has all)\n", n - most[f->verdict]);
	put_wrapped(out, "  NCCL: ", f->advice->meaning);
	put_fix(f->advice, out);
}

static void put_pass(const struct diagnosis *r, size_t first, struct strbuf *out)
{
	const struct diagnosis_finding *f = &r->findings[first];
	size_t n = 0;

	for (size_t i = first; i < r->n; i++)
		n += is_same_kind(&r->findings[i], f);
	strbuf_printf(out, "PASS %-17s %s", f->check->id, f->sentence);
	if (n > 1)
		strbuf_printf(out, " (and %zu more)", n - 1);
	strbuf_putc(out, '\n');
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
	for (int verdict = DIAGNOSIS_VERDICT_MAX - 1; verdict >= 0; verdict--) {
		if (verdict == DIAGNOSIS_PASS && r->n)
			strbuf_putc(out, '\n');
		for (size_t i = 0; i < r->n; i++) {
			if ((int)r->findings[i].verdict == verdict && is_first_of_kind(r, i))
				(verdict == DIAGNOSIS_PASS ? put_pass : put_trouble)(r, i, out);
		}
	}
}

/* --- JSON --- */

static void put_finding(const struct diagnosis_finding *f, struct json *j)
{
	json_begin_object(j);
	json_kv_string(j, "verdict", diagnosis_verdict_name(f->verdict));
	json_kv_string(j, "subject", f->subject);
	json_kv_string(j, "finding", f->sentence);
	json_kv_string(j, "meaning", f->advice->meaning);
	json_key(j, "fix");
	if (f->advice->fix[DIAGNOSIS_GRUB]) {
		json_begin_object(j);
		for (enum diagnosis_platform p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++)
			json_kv_string(j, diagnosis_platform_name(p), fix_on(f->advice, p));
		json_end_object(j);
	} else {
		json_put_null(j);
	}
	json_kv_string(j, "kernel_arg", f->kernel_arg);
	json_kv_string(j, "module", f->module);
	json_end_object(j);
}

static void put_check(const struct diagnosis *r, const struct diagnosis_check *c, struct json *j)
{
	int verdict = diagnosis_verdict_of(r, c);

	json_begin_object(j);
	json_kv_string(j, "id", c->id);
	json_kv_string(j, "title", c->title);
	json_kv_string(j, "verdict",
		       verdict < 0 ? NULL
				   : diagnosis_verdict_name((enum diagnosis_verdict)verdict));
	json_kv_array(j, "findings");
	for (size_t i = 0; i < r->n; i++) {
		if (r->findings[i].check == c)
			put_finding(&r->findings[i], j);
	}
	json_end_array(j);
	json_end_object(j);
}

void diagnosis_json(const struct facts *f, const struct diagnosis *r, struct json *j)
{
	json_begin_object(j);
	json_kv_string(j, "verdict", diagnosis_verdict_name(diagnosis_worst(r)));
	json_kv_bool(j, "live", f->live);
	json_key(j, "container");
	if (f->confined == FACTS_UNKNOWN)
		json_put_null(j);
	else
		json_put_bool(j, f->confined == FACTS_YES);
	json_kv_array(j, "checks");
	for (size_t i = 0; i < r->n_ran; i++)
		put_check(r, r->ran[i], j);
	json_end_array(j);
	json_end_object(j);
}
