#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"

static void write_sample(struct json *j)
{
	json_begin_object(j);
	json_kv_string(j, "name", "vf");
	json_kv_int(j, "numa", -1);
	json_kv_bool(j, "ok", true);
	json_kv_string(j, "none", NULL);
	json_key(j, "list");
	json_begin_array(j);
	json_put_int(j, INT64_MIN);
	json_put_null(j);
	json_begin_object(j);
	json_end_object(j);
	json_begin_array(j);
	json_end_array(j);
	json_put_bool(j, false);
	json_end_array(j);
	json_end_object(j);
}

static void compact_text_has_no_blank(void **state)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;

	(void)state;
	json_init(&j, &b, 0);
	write_sample(&j);
	assert_string_equal(
		strbuf_str(&b),
		"{\"name\":\"vf\",\"numa\":-1,\"ok\":true,\"none\":null,\"list\":[-9223372036854775808,null,{},[],false]}");
	assert_int_equal(j.depth, 0);
}

static void indented_text_breaks_lines(void **state)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;

	(void)state;
	json_init(&j, &b, 2);
	write_sample(&j);
	assert_string_equal(
		strbuf_str(&b),
		"{\n  \"name\": \"vf\",\n  \"numa\": -1,\n  \"ok\": true,\n  \"none\": null,\n"
		"  \"list\": [\n    -9223372036854775808,\n    null,\n    {},\n    [],\n"
		"    false\n  ]\n}");
}

static void strings_are_escaped(void **state)
{
	static const char *const rows[][2] = {
		{ "", "\"\"" },
		{ "a\"b\\c/", "\"a\\\"b\\\\c/\"" },
		{ "\b\f\n\r\t\v\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u000b\\u0001\\u001f\\u007f\"" },
		{ "\xe2\x82\xac", "\"\xe2\x82\xac\"" },
		{ "\xc3\xa9\xff\xc3\xa9", "\"\xc3\xa9\xef\xbf\xbd\xc3\xa9\"" },
		{ "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc3\"", "\"\xef\xbf\xbd\\\"\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
		struct json j;

		json_init(&j, &b, 0);
		json_put_string(&j, rows[i][0]);
		assert_string_equal(strbuf_str(&b), rows[i][1]);
	}
}

static void keys_are_escaped_too(void **state)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;

	(void)state;
	json_init(&j, &b, 0);
	json_begin_object(&j);
	json_kv_int(&j, "a\"\n\xff", 1);
	json_end_object(&j);
	assert_string_equal(strbuf_str(&b), "{\"a\\\"\\n\xef\xbf\xbd\":1}");
}

static void what_a_terminal_may_not_be_shown_is_escaped(void **state)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;

	(void)state;
	json_init(&j, &b, 0);
	json_put_string(&j, "\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81\xc3\xa9");
	assert_string_equal(strbuf_str(&b), "\"\\u007f\\u009b\\u202e\\udb40\\udc01\xc3\xa9\"");
}

static void what_is_json_already_stays_as_it_is(void **state)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;

	(void)state;
	json_init(&j, &b, 0);
	json_begin_object(&j);
	json_key(&j, "a");
	json_put_raw(&j, "[1.50, \"\\u00e9\"]x", 16);
	json_kv_int(&j, "b", 2);
	json_end_object(&j);
	assert_string_equal(strbuf_str(&b), "{\"a\":[1.50, \"\\u00e9\"],\"b\":2}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compact_text_has_no_blank),
		cmocka_unit_test(indented_text_breaks_lines),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(keys_are_escaped_too),
		cmocka_unit_test(what_a_terminal_may_not_be_shown_is_escaped),
		cmocka_unit_test(what_is_json_already_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
