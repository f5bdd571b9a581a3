/* PCI addresses as text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hw/bdf.h"

static void reads_what_the_kernel_writes_and_writes_it_back(void **state)
{
	static const char *const same[] = { "0000:00:00.0", "0000:3b:1f.7", "10000:01:00.0",
					    "ffffffff:ff:1f.7" };
	char text[BDF_STRLEN];
	struct bdf bdf;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		assert_int_equal(bdf_parse(same[i], &bdf), 0);
		assert_string_equal(bdf_format(bdf, text), same[i]);
	}
	assert_int_equal(bdf_parse("00000000:AB:0C.1", &bdf), 0);
	assert_string_equal(bdf_format(bdf, text), "0000:ab:0c.1");
}

static void refuses_everything_else(void **state)
{
	static const char *const bad[] = { "",
					   "3b:00.0",
					   "0000:3b:00",
					   "0000:3b:00.8",
					   "0000:3b:20.0",
					   "0000:3b:00.0 ",
					   " 0000:3b:00.0",
					   "000:3b:00.0",
					   "0000:3b:0.0",
					   "0000:3b:00.00",
					   "100000000:00:00.0",
					   "0000-3b-00.0" };
	struct bdf bdf = { 7, 7, 7, 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(bdf_parse(bad[i], &bdf), -EINVAL);
	assert_int_equal(bdf.domain, 7);
}

static void orders_by_domain_bus_device_function(void **state)
{
	static const struct bdf sorted[] = {
		{ 0, 0, 0, 0 }, { 0, 0, 0, 1 }, { 0, 0, 1, 0 },
		{ 0, 1, 0, 0 }, { 1, 0, 0, 0 }, { 0xffffffff, 0, 0, 0 }
	};

	(void)state;
	for (size_t i = 1; i < ARRAY_LEN(sorted); i++) {
		assert_true(bdf_cmp(sorted[i - 1], sorted[i]) < 0);
		assert_true(bdf_cmp(sorted[i], sorted[i - 1]) > 0);
		assert_int_equal(bdf_cmp(sorted[i], sorted[i]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_the_kernel_writes_and_writes_it_back),
		cmocka_unit_test(refuses_everything_else),
		cmocka_unit_test(orders_by_domain_bus_device_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
