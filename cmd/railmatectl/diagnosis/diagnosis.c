/* Findings, in the order in which checks add them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "diagnosis/diagnosis-internal.h"

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

const char *diagnosis_fix_on(const struct diagnosis_advice *a, enum diagnosis_platform p)
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

static struct diagnosis_finding *add(struct diagnosis *r, enum diagnosis_verdict v,
				     const struct diagnosis_advice *a, const char *subject,
				     const char *fmt, va_list ap)
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

/* --- kinds --- */

static bool is_same_kind(const struct diagnosis_finding *a, const struct diagnosis_finding *b)
{
	return a->check == b->check && a->verdict == b->verdict && a->advice == b->advice;
}

static struct diagnosis_kind kind_of(const struct diagnosis *r, size_t first)
{
	static const size_t most[DIAGNOSIS_VERDICT_MAX] = { 1, 3, 8, 8 };
	const struct diagnosis_finding *f = &r->findings[first];
	const char **shown = arena_array(r->arena, most[f->verdict], sizeof(*shown));
	struct diagnosis_kind kind = { .first = f, .shown = shown };

	for (size_t i = first; i < r->n; i++) {
		if (!is_same_kind(&r->findings[i], f))
			continue;
		if (kind.n++ < most[f->verdict])
			shown[kind.n_shown++] = r->findings[i].sentence;
	}
	return kind;
}

size_t diagnosis_kinds(const struct diagnosis *r, const struct diagnosis_kind **ret)
{
	struct diagnosis_kind *v = arena_array(r->arena, r->n, sizeof(*v));
	size_t n = 0;

	for (int verdict = DIAGNOSIS_VERDICT_MAX - 1; verdict >= 0; verdict--) {
		for (size_t i = 0; i < r->n; i++) {
			size_t first = 0;

			while (!is_same_kind(&r->findings[first], &r->findings[i]))
				first++;
			if ((int)r->findings[i].verdict == verdict && first == i)
				v[n++] = kind_of(r, i);
		}
	}
	*ret = v;
	return n;
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
