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

static void a_place_is_that_of_the_first_that_is_not_less(void **state)
{
	static const int v[] = { 1, 3, 3, 3, 7 };
	static const struct {
		int key;
		size_t place;
	} rows[] = { { 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 1 }, { 4, 4 }, { 7, 4 }, { 8, 5 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(list_place(&rows[i].key, v, ARRAY_LEN(v), sizeof(*v), list_by_int),
				 rows[i].place);
	assert_int_equal(list_place(&rows[0].key, NULL, 0, sizeof(*v), list_by_int), 0);
}

static void a_string_is_found_among_sorted_ones(void **state)
{
	static const char *const v[] = { "a", "b", "c" };

	(void)state;
	assert_true(list_has_sorted(v, 3, "a") && list_has_sorted(v, 3, "c"));
	assert_false(list_has_sorted(v, 3, "") || list_has_sorted(v, 3, "d"));
	assert_false(list_has_sorted(NULL, 0, "a"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_string_by_its_text),
		cmocka_unit_test(finds_a_number),
		cmocka_unit_test(sorts_and_searches),
		cmocka_unit_test(a_place_is_that_of_the_first_that_is_not_less),
		cmocka_unit_test(a_string_is_found_among_sorted_ones),
	};

	return cmocka_run_group_tests_name("base/list", tests, NULL, NULL);
}
