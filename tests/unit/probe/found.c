#include "found.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

struct report found_report(struct arena *a, const struct told *told)
{
	return (struct report) {
		.arena = a, .told = told, .quiet = true, .slow = .8, .broken = .5
	};
}

void found_assert(const struct report *r, enum outcome outcome, const char *id, const char *part)
{
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding *f = &r->findings[i];

		if (f->outcome == outcome && str_eq(f->sentence->id, id) && strstr(f->what, part))
			return;
	}
	for (size_t i = 0; i < r->n_findings; i++)
		print_message("%s, %s: %s\n", outcome_name(r->findings[i].outcome),
			      r->findings[i].sentence->id, r->findings[i].what);
	fail_msg("no finding %s (%s) with \"%s\"", id, outcome_name(outcome), part);
}

void found_assert_none(const struct report *r, const char *id)
{
	for (size_t i = 0; i < r->n_findings; i++) {
		if (!id || str_eq(r->findings[i].sentence->id, id))
			fail_msg("%s: %s", r->findings[i].sentence->id, r->findings[i].what);
	}
}
