#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void a_coarse_time_is_the_same_for_all_who_wait(void **state)
{
	(void)state;
	assert_int_equal(clock_coarse_ms(0, 5000), 5000);
	assert_int_equal(clock_coarse_ms(5000, 5000), 5000);
	assert_int_equal(clock_coarse_ms(5001, 5000), 4999);
	assert_int_equal(clock_coarse_ms(7400, 5000), 2600);
	assert_int_equal(clock_coarse_ms(INT64_C(86400000000003), 1000), 997);
}

static void a_coarse_time_is_half_a_period_away_at_least(void **state)
{
	(void)state;
	assert_int_equal(clock_coarse_ms(7500, 5000), 2500);
	assert_int_equal(clock_coarse_ms(7501, 5000), 7499);
	assert_int_equal(clock_coarse_ms(9999, 5000), 5001);
	assert_int_equal(clock_coarse_ms(7, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_coarse_time_is_the_same_for_all_who_wait),
		cmocka_unit_test(a_coarse_time_is_half_a_period_away_at_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
