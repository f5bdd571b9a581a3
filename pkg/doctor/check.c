/* The table of all checks, and running some of them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"

/* In the order of printing: what must be there, where it is, how it is wired, what the host adds.
 */
static const struct {
	const struct doctor_check *checks;
	const size_t *n;
} tables[] = {
	{ doctor_place_checks, &doctor_place_checks_n },
	{ doctor_node_checks, &doctor_node_checks_n },
	{ doctor_rail_checks, &doctor_rail_checks_n },
	{ doctor_slot_checks, &doctor_slot_checks_n },
	{ doctor_vf_checks, &doctor_vf_checks_n },
	{ doctor_port_checks, &doctor_port_checks_n },
	{ doctor_roce_checks, &doctor_roce_checks_n },
	{ doctor_ecn_checks, &doctor_ecn_checks_n },
	{ doctor_firmware_checks, &doctor_firmware_checks_n },
	{ doctor_switchdev_checks, &doctor_switchdev_checks_n },
	{ doctor_table_checks, &doctor_table_checks_n },
	{ doctor_iommu_checks, &doctor_iommu_checks_n },
	{ doctor_acs_checks, &doctor_acs_checks_n },
	{ doctor_board_checks, &doctor_board_checks_n },
	{ doctor_direct_checks, &doctor_direct_checks_n },
	{ doctor_pcie_checks, &doctor_pcie_checks_n },
	{ doctor_host_checks, &doctor_host_checks_n },
	{ doctor_module_checks, &doctor_module_checks_n },
	{ doctor_gpu_option_checks, &doctor_gpu_option_checks_n },
	{ doctor_limit_checks, &doctor_limit_checks_n },
};

size_t doctor_n_checks(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		n += *tables[i].n;
	return n;
}

const struct doctor_check *doctor_check_at(size_t at)
{
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		if (at < *tables[i].n)
			return &tables[i].checks[at];
		at -= *tables[i].n;
	}
	return NULL;
}

const struct doctor_check *doctor_check_by_id(const char *id)
{
	for (size_t i = 0; i < doctor_n_checks(); i++) {
		if (!strcmp(doctor_check_at(i)->id, id))
			return doctor_check_at(i);
	}
	return NULL;
}

const char *doctor_verdict_name(enum doctor_verdict v)
{
	static const char *const names[] = {
		[DOCTOR_PASS] = "PASS",
		[DOCTOR_UNKNOWN] = "UNKNOWN",
		[DOCTOR_WARN] = "WARN",
		[DOCTOR_FAIL] = "FAIL",
	};

	return names[v];
}

const char *doctor_platform_name(enum doctor_platform p)
{
	static const char *const names[] = {
		[DOCTOR_GRUB] = "grub",
		[DOCTOR_OPENSHIFT] = "openshift",
		[DOCTOR_TALOS] = "talos",
	};

	return names[p];
}

const char *doctor_fix_on(const struct doctor_advice *a, enum doctor_platform p)
{
	return a->fix[p] ? a->fix[p] : a->fix[DOCTOR_GRUB];
}

/* --- findings --- */

struct doctor_finding *doctor_find(struct doctor_report *r, enum doctor_verdict v,
				   const struct doctor_advice *a, const char *subject,
				   const char *fmt, ...)
{
	struct doctor_finding *f;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_utf8_trim(text);
	r->findings = xgrow(r->findings, &r->cap, r->n + 1, sizeof(*r->findings));
	f = &r->findings[r->n++];
	*f = (struct doctor_finding) {
		.check = r->running,
		.verdict = v,
		.subject = arena_strdup(r->arena, subject),
		.sentence = arena_strdup(r->arena, text),
		.advice = a,
	};
	return f;
}

struct arena *doctor_report_arena(const struct doctor_report *r)
{
	return r->arena;
}

enum doctor_verdict doctor_worst_so_far(const struct doctor_report *r)
{
	enum doctor_verdict worst = DOCTOR_PASS;

	for (size_t i = r->first; i < r->n; i++) {
		if (r->findings[i].verdict > worst)
			worst = r->findings[i].verdict;
	}
	return worst;
}

int doctor_verdict_of(const struct doctor_report *r, const struct doctor_check *c)
{
	int worst = -1;

	for (size_t i = 0; i < r->n; i++) {
		if (r->findings[i].check == c && (int)r->findings[i].verdict > worst)
			worst = (int)r->findings[i].verdict;
	}
	return worst;
}

enum doctor_verdict doctor_report_verdict(const struct doctor_report *r)
{
	enum doctor_verdict worst = DOCTOR_PASS;

	for (size_t i = 0; i < r->n; i++) {
		if (r->findings[i].verdict > worst)
			worst = r->findings[i].verdict;
	}
	return worst;
}

size_t doctor_report_n(const struct doctor_report *r)
{
	return r->n;
}

const struct doctor_finding *doctor_report_at(const struct doctor_report *r, size_t i)
{
	return &r->findings[i];
}

/* --- kinds --- */

static bool is_same_kind(const struct doctor_finding *a, const struct doctor_finding *b)
{
	return a->check == b->check && a->verdict == b->verdict && a->advice == b->advice;
}

static struct doctor_kind kind_of(const struct doctor_report *r, size_t first)
{
	static const size_t most[DOCTOR_VERDICT_MAX] = { 1, 3, 8, 8 };
	const struct doctor_finding *f = &r->findings[first];
	const char **shown = arena_array(r->arena, most[f->verdict], sizeof(*shown));
	struct doctor_kind kind = { .first = f, .shown = shown };

	for (size_t i = first; i < r->n; i++) {
		if (!is_same_kind(&r->findings[i], f))
			continue;
		if (kind.n++ < most[f->verdict])
			shown[kind.n_shown++] = r->findings[i].sentence;
	}
	return kind;
}

size_t doctor_report_kinds(const struct doctor_report *r, const struct doctor_kind **ret)
{
	struct doctor_kind *v = arena_array(r->arena, r->n, sizeof(*v));
	size_t n = 0;

	for (int verdict = DOCTOR_VERDICT_MAX - 1; verdict >= 0; verdict--) {
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

/* --- running --- */

/* Marks the checks of "a,b"; each comma has a name on both sides. */
static int mark(const char *only, bool *marked, struct err *err)
{
	_cleanup_strbuf_ struct strbuf all = STRBUF_INIT;
	_cleanup_free_ char *words = xstrdup(only);

	for (size_t i = 0; i < doctor_n_checks(); i++)
		strbuf_printf(&all, "%s%s", i ? ", " : "", doctor_check_at(i)->id);
	for (char *word = words, *next; word; word = next) {
		size_t i = 0;

		next = strchr(word, ',');
		if (next)
			*next++ = '\0';
		while (i < doctor_n_checks() && strcmp(doctor_check_at(i)->id, word) != 0)
			i++;
		if (!*word)
			return err_set(err, EINVAL, "an empty name of a check; there are: %s",
				       strbuf_str(&all));
		if (i == doctor_n_checks())
			return err_set(err, EINVAL, "there is no check '%.40s'; there are: %s",
				       word, strbuf_str(&all));
		marked[i] = true;
	}
	return 0;
}

int doctor_run(const struct facts *f, const char *only, struct doctor_report **ret, struct err *err)
{
	_cleanup_free_ bool *marked = xcalloc(doctor_n_checks(), sizeof(*marked));
	struct doctor_report *r;

	if (only && mark(only, marked, err) < 0)
		return -EINVAL;
	r = xcalloc(1, sizeof(*r));
	r->arena = arena_new(16384);
	r->ran = arena_array(r->arena, doctor_n_checks(), sizeof(struct doctor_check *));
	for (size_t i = 0; i < doctor_n_checks(); i++) {
		if (only && !marked[i])
			continue;
		r->running = r->ran[r->n_ran++] = doctor_check_at(i);
		r->first = r->n;
		r->running->run(f, r);
	}
	*ret = r;
	return 0;
}

void doctor_report_free(struct doctor_report *r)
{
	if (!r)
		return;
	free(r->findings);
	arena_free(r->arena);
	free(r);
}

void doctor_report_freep(struct doctor_report **r)
{
	doctor_report_free(*r);
}
