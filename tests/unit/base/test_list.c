/* Lists as arrays and their length. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/mem.h"

static void finds_a_string_by_its_text(void **state)
{
	static const char *const list[] = { "a", "bc", NULL, "" };
	const char same[] = "bc";

	(void)state;
	assert_true(list_has(list, 2, same));
	assert_false(list_has(list, 1, "bc"));
	assert_false(list_has(list, 2, "b"));
	assert_false(list_has(list, 2, NULL));
	assert_true(list_has(list, 4, NULL));
	assert_true(list_has(list, 4, ""));
	assert_false(list_has(NULL, 0, "a"));
}

static void finds_a_number(void **state)
{
	static const int list[] = { 3, -1, 0 };

	(void)state;
	assert_true(list_has_int(list, 3, 0));
	assert_false(list_has_int(list, 2, 0));
	assert_false(list_has_int(NULL, 0, 0));
}

static void sorts_and_searches(void **state)
{
	const char *words[] = { "b", "", "ab", "a" }, *want = "ab";
	int numbers[] = { 0, INT_MAX, INT_MIN, -1 };

	(void)state;
	qsort(words, ARRAY_LEN(words), sizeof(*words), list_by_string);
	assert_string_equal(words[0], "");
	assert_string_equal(words[3], "b");
	assert_ptr_equal(bsearch(&want, words, ARRAY_LEN(words), sizeof(*words), list_by_string),
			 &words[2]);
	qsort(numbers, ARRAY_LEN(numbers), sizeof(*numbers), list_by_int);
	assert_int_equal(numbers[0], INT_MIN);
	assert_int_equal(numbers[3], INT_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_string_by_its_text),
		cmocka_unit_test(finds_a_number),
		cmocka_unit_test(sorts_and_searches),
	};

	return cmocka_run_group_tests_name("base/list", tests, NULL, NULL);
}
