/* When is a link degraded, and when is it well again? Samples by table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "pool/link.h"

static const struct pool_health limits = { .flaps = 3, .window_s = 600, .errors_per_minute = 100 };

/* A sample of a link that is well, and what it comes to. */
struct row {
	int at_s;
	int64_t netdev_downs, port_downs, errors;
	int rate_gbps, width;
	unsigned trouble;
};

static unsigned feed(struct link_history *h, const struct row *row)
{
	const struct link_sample s = { .at_ms = row->at_s * INT64_C(1000),
				       .netdev_downs = row->netdev_downs,
				       .port_downs = row->port_downs,
				       .errors = row->errors,
				       .rate_mbps = row->rate_gbps * 1000,
				       .link_mts = 32000,
				       .link_width = row->width };

	return link_judge(h, &s, &limits);
}

static void check_rows(const char *what, const struct row *rows, size_t n)
{
	struct link_history h = { 0 };

	for (size_t i = 0; i < n; i++) {
		unsigned trouble = feed(&h, &rows[i]);

		if (trouble != rows[i].trouble)
			fail_msg("%s, at %d s: trouble %x, not %x", what, rows[i].at_s, trouble,
				 rows[i].trouble);
	}
}
#define CHECK(what, ...)                                                                           \
	do {                                                                                       \
		static const struct row rows_[] = { __VA_ARGS__ };                                 \
		check_rows(what, rows_, ARRAY_LEN(rows_));                                         \
	} while (0)

static void a_link_that_goes_down_often_flaps_until_it_has_been_up_for_the_window(void **state)
{
	(void)state;
	CHECK("what was before the first sample does not count", { 0, 90, 90, 0, 400, 16, 0 },
	      { 30, 90, 90, 0, 400, 16, 0 });
	CHECK("three times within the window", { 0, 5, 0, 0, 400, 16, 0 },
	      { 30, 6, 1, 0, 400, 16, 0 }, { 200, 7, 2, 0, 400, 16, 0 },
	      { 590, 8, 3, 0, 400, 16, LINK_FLAPS }, { 700, 8, 3, 0, 400, 16, LINK_FLAPS },
	      { 1180, 8, 3, 0, 400, 16, LINK_FLAPS }, { 1191, 8, 3, 0, 400, 16, 0 });
	CHECK("between two samples", { 0, 5, -1, 0, 400, 16, 0 },
	      { 30, 8, -1, 0, 400, 16, LINK_FLAPS });
	CHECK("the port counts what the interface, which is off, does not",
	      { 0, 1, 5, 0, 400, 16, 0 }, { 30, 1, 8, 0, 400, 16, LINK_FLAPS });
	CHECK("both count the same", { 0, 1, 5, 0, 400, 16, 0 }, { 30, 3, 7, 0, 400, 16, 0 });
	CHECK("too seldom", { 0, 0, 0, 0, 400, 16, 0 }, { 300, 1, 0, 0, 400, 16, 0 },
	      { 901, 2, 0, 0, 400, 16, 0 }, { 1502, 3, 0, 0, 400, 16, 0 });
	CHECK("a counter that was reset, or is not there", { 0, 50, 50, 0, 400, 16, 0 },
	      { 30, 0, -1, 0, 400, 16, 0 }, { 60, 2, 60, 0, 400, 16, 0 });
	CHECK("one more time while it flaps prolongs it", { 0, 0, 0, 0, 400, 16, 0 },
	      { 10, 3, 0, 0, 400, 16, LINK_FLAPS }, { 500, 4, 0, 0, 400, 16, LINK_FLAPS },
	      { 700, 4, 0, 0, 400, 16, LINK_FLAPS }, { 1101, 4, 0, 0, 400, 16, 0 });
}

static void errors_count_by_the_minute(void **state)
{
	(void)state;
	CHECK("at the limit", { 0, 0, 0, 1000, 400, 16, 0 }, { 30, 0, 0, 1049, 400, 16, 0 },
	      { 60, 0, 0, 1099, 400, 16, LINK_ERRORS });
	CHECK("samples that are close together do not exaggerate", { 0, 0, 0, 0, 400, 16, 0 },
	      { 1, 0, 0, 30, 400, 16, 0 }, { 30, 0, 0, 30, 400, 16, 0 });
	CHECK("ends after a window below half of the limit", { 0, 0, 0, 0, 400, 16, 0 },
	      { 60, 0, 0, 500, 400, 16, LINK_ERRORS }, { 120, 0, 0, 560, 400, 16, LINK_ERRORS },
	      { 180, 0, 0, 600, 400, 16, LINK_ERRORS }, { 700, 0, 0, 600, 400, 16, LINK_ERRORS },
	      { 721, 0, 0, 600, 400, 16, 0 });
	CHECK("a counter that was reset, or is not there", { 0, 0, 0, 5000, 400, 16, 0 },
	      { 30, 0, 0, 0, 400, 16, 0 }, { 60, 0, 0, -1, 400, 16, 0 },
	      { 90, 0, 0, 9000, 400, 16, 0 }, { 120, 0, 0, 9049, 400, 16, 0 });
}

static void slower_than_before_is_slow(void **state)
{
	(void)state;
	CHECK("the rate", { 0, 0, 0, 0, 400, 16, 0 }, { 30, 0, 0, 0, 200, 16, 0 },
	      { 41, 0, 0, 0, 200, 16, LINK_SLOW }, { 60, 0, 0, 0, 400, 16, LINK_SLOW },
	      { 100, 0, 0, 0, 400, 16, LINK_SLOW }, { 121, 0, 0, 0, 400, 16, 0 });
	CHECK("the width", { 0, 0, 0, 0, 400, 16, 0 }, { 30, 0, 0, 0, 400, 8, 0 },
	      { 60, 0, 0, 0, 400, 8, LINK_SLOW });
	CHECK("a port that is down has no rate", { 0, 0, 0, 0, 400, 16, 0 },
	      { 30, 0, 0, 0, 0, 16, 0 }, { 60, 0, 0, 0, 0, 16, 0 });
	CHECK("a link that trains", { 0, 0, 0, 0, 400, 16, 0 }, { 30, 0, 0, 0, 100, 16, 0 },
	      { 35, 0, 0, 0, 400, 16, 0 }, { 60, 0, 0, 0, 100, 16, 0 },
	      { 65, 0, 0, 0, 400, 16, 0 });
	CHECK("slow for ever is not slower than before", { 0, 0, 0, 0, 100, 4, 0 },
	      { 60, 0, 0, 0, 100, 4, 0 });
}

static void the_sentence_stays_while_the_trouble_lasts(void **state)
{
	static const struct row rows[] = {
		{ 0, 0, 0, 0, 400, 16, 0 },	 { 30, 4, 0, 900, 200, 16, 0 },
		{ 60, 5, 0, 2000, 200, 16, 0 },	 { 90, 6, 0, 9000, 200, 16, 0 },
		{ 120, 6, 0, 9000, 200, 16, 0 },
	};
	static const char expected[] =
		"goes down too often: at least 3 times in 600 s, counts too many errors: at least 100 a "
		"minute, is slower than it was: 200 of 400 Gb/s";
	struct link_history h = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_strbuf_ struct strbuf said = STRBUF_INIT;

		feed(&h, &rows[i]);
		link_say(&h, &limits, &said);
		if (i == 0)
			assert_string_equal(strbuf_str(&said), "");
		if (i >= 2)
			assert_string_equal(strbuf_str(&said), expected);
	}
}

static void samples_of_one_moment_are_one(void **state)
{
	struct link_history h = { 0 };

	(void)state;
	feed(&h, &(struct row) { 10, 0, 0, 0, 400, 16, 0 });
	feed(&h, &(struct row) { 10, 9, 9, 9, 100, 1, 0 });
	assert_int_equal(feed(&h, &(struct row) { 11, 2, 0, 0, 400, 16, 0 }), 0);
	/* The third since the first sample, which the second has not replaced. */
	assert_int_equal(feed(&h, &(struct row) { 12, 3, 0, 0, 400, 16, 0 }), LINK_FLAPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_link_that_goes_down_often_flaps_until_it_has_been_up_for_the_window),
		cmocka_unit_test(errors_count_by_the_minute),
		cmocka_unit_test(slower_than_before_is_slow),
		cmocka_unit_test(the_sentence_stays_while_the_trouble_lasts),
		cmocka_unit_test(samples_of_one_moment_are_one),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
