#include "daemon/service-internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void three_questions_fit_into_the_kubelets_patience(void **state)
{
	(void)state;
	assert_int_equal(service_patience_ms(1), 2000);
	assert_int_equal(service_patience_ms(200), 2000);
	assert_int_equal(service_patience_ms(2001), 2001);
	assert_int_equal(service_patience_ms(8999), 8999);
	assert_int_equal(service_patience_ms(60000), 9000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_questions_fit_into_the_kubelets_patience),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
