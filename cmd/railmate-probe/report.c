/* What a run found: kept in order, judged by the worst. The forms that it is printed in are
 * print.c's. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "report.h"

const char *outcome_name(enum outcome o)
{
	static const char *const names[] = { "good", "not measured", "slow", "broken" };

	assert(o < OUTCOME_MAX);
	return names[o];
}

const char *measure_path_name(enum measure_path p)
{
	static const char *const names[] = { "loopback",  "same card",	"same host",
					     "same rail", "other rail", "other subnet" };

	assert(p < PATH_MAX);
	return names[p];
}

/* Room for one more: doubled at each power of two, for an arena frees nothing on its own. */
static void *grown(struct arena *a, void *v, size_t n, size_t size)
{
	void *more;

	if (n & (n - 1) || n == 1)
		return v;
	more = arena_array(a, n ? 2 * n : 2, size);
	if (n)
		memcpy(more, v, n * size);
	return more;
}

void report_finding(struct report *r, enum outcome outcome, const char *id, const char *on,
		    const char *what, ...)
{
	va_list ap;
	char *text;

	va_start(ap, what);
	text = arena_vprintf(r->arena, what, ap);
	va_end(ap);
	for (size_t i = 0; i < r->n_findings; i++) { /* of another run over the same device */
		const struct finding *f = &r->findings[i];

		if (f->outcome == outcome && str_eq(f->sentence->id, id) && str_eq(f->on, on) &&
		    str_eq(f->what, text))
			return;
	}
	r->findings = grown(r->arena, r->findings, r->n_findings, sizeof(*r->findings));
	r->findings[r->n_findings++] = (struct finding) {
		.outcome = outcome,
		.sentence = sentence_of(id),
		.on = arena_strdup(r->arena, on),
		.what = text,
	};
}

void report_measure(struct report *r, const struct measure *m)
{
	struct measure copy = *m;

	if (copy.outcome == OUTCOME_GOOD && isnan(copy.gbps)) {
		copy.outcome = OUTCOME_NOT_MEASURED;
		copy.verified = false;
	}
	if (copy.outcome == OUTCOME_GOOD && !isnan(copy.expect_gbps)) {
		double share = copy.gbps / copy.expect_gbps;

		if (share < r->broken)
			copy.outcome = OUTCOME_BROKEN;
		else if (share < r->slow)
			copy.outcome = OUTCOME_SLOW;
	}
	copy.from = arena_strdup(r->arena, m->from);
	copy.to = arena_strdup(r->arena, m->to);
	copy.from_memory = arena_strdup(r->arena, m->from_memory);
	copy.to_memory = arena_strdup(r->arena, m->to_memory);
	copy.memory_way = arena_strdup(r->arena, m->memory_way);
	copy.limit = arena_strdup(r->arena, m->limit);
	r->measures = grown(r->arena, r->measures, r->n_measures, sizeof(*r->measures));
	r->measures[r->n_measures++] = copy;
}

void report_progress(const struct report *r, const char *what, ...)
{
	va_list ap;

	if (r->quiet || !isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fflush(stderr);
}

enum outcome report_outcome(const struct report *r)
{
	enum outcome worst = OUTCOME_GOOD;

	for (size_t i = 0; i < r->n_findings; i++) {
		if (r->findings[i].outcome > worst)
			worst = r->findings[i].outcome;
	}
	for (size_t i = 0; i < r->n_measures; i++) {
		if (r->measures[i].outcome > worst)
			worst = r->measures[i].outcome;
	}
	return worst;
}

/* Is a GPU's library all that was in the way? */
static bool only_lacks_library(const struct report *r)
{
	for (size_t i = 0; i < r->n_findings; i++) {
		if (r->findings[i].outcome == OUTCOME_NOT_MEASURED &&
		    !str_eq(r->findings[i].sentence->id, "gpu-library"))
			return false;
	}
	return r->no_gpu_library;
}

enum probe_exit report_exit(const struct report *r)
{
	switch (report_outcome(r)) {
	case OUTCOME_BROKEN:
		return PROBE_EXIT_BROKEN;
	case OUTCOME_SLOW:
		return PROBE_EXIT_SLOW;
	case OUTCOME_NOT_MEASURED:
		return only_lacks_library(r) ? PROBE_EXIT_NO_GPU_LIBRARY : PROBE_EXIT_NOT_MEASURED;
	default:
		return PROBE_EXIT_GOOD;
	}
}
