/* A report for a test, and the search for a finding in it. */
#ifndef RAILMATE_TESTS_UNIT_PROBE_FOUND_H
#define RAILMATE_TESTS_UNIT_PROBE_FOUND_H

#include <stddef.h>

#include "railmate-probe/report.h"

struct arena;
struct told;

struct report found_report(struct arena *a, const struct told *told);
/* Fails the test where the report has no such finding of this outcome whose sentence has `part`. */
void found_assert(const struct report *r, enum outcome outcome, const char *id, const char *part);
void found_assert_none(const struct report *r, const char *id); /* NULL: none at all */

#endif
