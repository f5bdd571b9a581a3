/* document_parse() itself is tested through the rooms that use it (config: lines, paths, bad text).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

static const struct item *parse(struct arena *a, const char *text)
{
	const struct item *item;
	struct err err = { 0 };

	assert_int_equal(document_parse(text, strlen(text), "x.json", a, &item, &err), 0);
	return item;
}

static void a_member_is_found_by_its_exact_name(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct item *top = parse(a, "{\"pod\": \"a\", \"Pod\": \"b\", \"n\": 1}");

	(void)state;
	assert_string_equal(item_string(top, "pod"), "a");
	assert_string_equal(item_string(top, "Pod"), "b");
	assert_null(item_get(top, "POD"));
}

static void a_member_of_another_type_is_no_string_and_no_number(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct item *top = parse(a, "{\"n\": 1, \"s\": \"1\", \"x\": null, \"l\": [1]}");

	(void)state;
	assert_null(item_string(top, "n"));
	assert_null(item_string(top, "x"));
	assert_int_equal(item_number(top, "s", -7), -7);
	assert_int_equal(item_number(top, "l", -7), -7);
	assert_null(item_get(item_get(top, "l"), "n"));
	assert_null(item_get(NULL, "n"));
}

static void whole_numbers_keep_every_digit_and_fractions_are_none(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct item *top =
		parse(a, "{\"big\": 9223372036854775807, \"low\": -3, \"half\": 0.5}");

	(void)state;
	assert_true(item_number(top, "big", 0) == INT64_MAX);
	assert_int_equal(item_number(top, "low", 0), -3);
	assert_int_equal(item_number(top, "half", 42), 42);
}

static void a_byte_order_mark_is_no_part_of_the_text(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct item *top = parse(a, "\xef\xbb\xbf{\"a\": 1,\n\"b\": \"\xef\xbb\xbfx\"}");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(item_number(top, "a", 0), 1);
	assert_string_equal(item_string(top, "b"), "\xef\xbb\xbfx");
	assert_int_equal(item_get(top, "b")->line, 2);
	assert_int_equal(item_get(parse(a, "\xef\xbb\xbf\n [1]"), "a") == NULL, true);
	assert_int_equal(document_parse("\xef\xbb\xbf", 3, "x.json", a, &top, &err), -EINVAL);
	assert_string_equal(err.msg, "x.json:1: is empty");
	err = (struct err) { 0 };
	assert_int_equal(document_parse("\xef\xbb\xbf\xef\xbb\xbf{}", 8, "x.json", a, &top, &err),
			 -EINVAL);
}

static void utf_16_is_named(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = { { "\xff\xfe{\0}\0", 6 }, { "\xfe\xff\0{\0}", 6 } };
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct item *top;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };

		assert_int_equal(document_parse(rows[i].text, rows[i].len, "x.json", a, &top, &err),
				 -EINVAL);
		assert_string_equal(err.msg, "x.json:1: is UTF-16 text: save it as UTF-8");
	}
}

static void is_text(const struct item *top, const char *key, const char *text)
{
	const struct item *item = item_get(top, key);

	assert_int_equal(item->text_len, strlen(text));
	assert_memory_equal(item->text, text, item->text_len);
}

static void every_value_has_the_text_that_it_was(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct item *top = parse(
		a,
		" {\"n\" : 1.50 , \"s\":\"a\\u00e9\\\"\", \"l\": [ 1,\n{} ] ,\"o\":{ \"x\" :null},\"t\":true}\n");

	(void)state;
	is_text(top, "n", "1.50");
	is_text(top, "s", "\"a\\u00e9\\\"\"");
	is_text(top, "l", "[ 1,\n{} ]");
	is_text(top, "o", "{ \"x\" :null}");
	is_text(top, "t", "true");
	is_text(item_get(top, "o"), "x", "null");
	assert_int_equal(top->text_len, strlen(top->text) - 1);
}

/* Values, whatever they are, and however short. */
static void a_tree_of_unreasonable_size_is_refused(void **state)
{
	static const char *const kinds[] = {
		"[]", "{}", "1", "\"x\"", "{\"n\":\"a1\"}", "[[[1]]]"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		_cleanup_arena_ struct arena *a = arena_new(0);
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
		const struct item *item = NULL;
		struct err err = { 0 };

		strbuf_puts(&text, "[0");
		for (size_t n = 0; n < DOCUMENT_TREE_MAX / 256; n++)
			strbuf_printf(&text, ",%s", kinds[i]);
		strbuf_puts(&text, "]");
		assert_int_equal(document_parse(text.s, text.len, "x", a, &item, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "x:1: holds more than"));
		assert_null(item);
		assert_true(arena_used(a) == 0);
	}
}

/* What stands in a string is no value. */
static void a_long_text_of_few_values_is_read(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct item *top;

	(void)state;
	strbuf_puts(&text, "[\"\\\"");
	for (size_t n = 0; n < DOCUMENT_TREE_MAX / 64; n++)
		strbuf_puts(&text, ",[{");
	strbuf_puts(&text, "\"]");
	top = parse(a, text.s);
	assert_int_equal(top->n_kids, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_is_found_by_its_exact_name),
		cmocka_unit_test(a_member_of_another_type_is_no_string_and_no_number),
		cmocka_unit_test(whole_numbers_keep_every_digit_and_fractions_are_none),
		cmocka_unit_test(a_tree_of_unreasonable_size_is_refused),
		cmocka_unit_test(a_long_text_of_few_values_is_read),
		cmocka_unit_test(a_byte_order_mark_is_no_part_of_the_text),
		cmocka_unit_test(utf_16_is_named),
		cmocka_unit_test(every_value_has_the_text_that_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
