#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/split-internal.h"

/* The elements, each followed by '|'. */
static int note(void *arg, const char *text, size_t len, struct err *err)
{
	struct strbuf *out = arg;

	if (len == 4 && !memcmp(text, "\"no\"", 4))
		return err_set(err, ENOTSUP, "no is no");
	strbuf_add(out, text, len);
	strbuf_putc(out, '|');
	return 0;
}

static int split_in_pieces(const char *text, size_t len, size_t piece, struct strbuf *out,
			   struct err *err)
{
	struct split s;
	int r = 0;

	kubeapi_split_init(&s, 64, note, out);
	for (size_t at = 0; at < len && r == 0; at += piece)
		r = kubeapi_split_push(&s, text + at, len - at < piece ? len - at : piece, err);
	if (r == 0)
		r = kubeapi_split_end(&s, err);
	kubeapi_split_done(&s);
	return r;
}

/* Whatever the pieces, the elements are the same. */
static void assert_split(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		struct err err = { 0 };

		if (split_in_pieces(text, strlen(text), piece, &out, &err) < 0)
			fail_msg("%s: %s", text, err.msg);
		assert_string_equal(strbuf_str(&out), expected);
	}
}

static void assert_refused_bytes(const char *text, size_t len, const char *why)
{
	for (size_t piece = 1; piece <= len || piece == 1; piece++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		struct err err = { 0 };

		assert_true(split_in_pieces(text, len, piece, &out, &err) < 0);
		if (!strstr(err.msg, why))
			fail_msg("%s: '%s' does not say '%s'", text, err.msg, why);
	}
}

static void assert_refused(const char *text, const char *why)
{
	assert_refused_bytes(text, strlen(text), why);
}

static void elements_come_one_by_one_however_the_text_is_cut(void **state)
{
	(void)state;
	assert_split("{\"items\":[{\"a\":1},{\"b\":[2,{}]}]}", "{\"a\":1}|{\"b\":[2,{}]}|");
	assert_split(
		" {\n\t\"kind\" : \"PodList\" , \"items\" : [ {} , [ ] , 12 , \"x\" , null ] , \"z\":0 } \r\n",
		"{}|[ ]|12|\"x\"|null|");
}

static void brackets_and_quotes_inside_strings_do_not_count(void **state)
{
	(void)state;
	assert_split("{\"items\":[{\"a\":\"]}[{\"},{\"b\":\"\\\"]\\\\\"}]}",
		     "{\"a\":\"]}[{\"}|{\"b\":\"\\\"]\\\\\"}|");
	assert_split("{\"x\\\"items\":[1],\"items\":[2]}", "2|");
}

static void what_stands_beside_the_items_is_skipped(void **state)
{
	(void)state;
	assert_split(
		"{\"metadata\":{\"items\":[1,2],\"r\":\"{\"},\"n\":-1.5e3,\"t\":true,\"items\":[3],\"e\":[]}",
		"3|");
}

static void no_items_are_an_empty_list_or_null(void **state)
{
	(void)state;
	assert_split("{\"items\":[]}", "");
	assert_split("{\"items\":[ ],\"a\":1}", "");
	assert_split("{\"items\":null}", "");
	assert_split("{\"items\": null ,\"a\":1}", "");
}

static void a_list_of_something_else_is_refused(void **state)
{
	(void)state;
	assert_refused("{}", "holds no items");
	assert_refused("{\"kind\":\"Status\",\"Items\":[1]}", "holds no items");
	assert_refused("{\"items\":{}}", "holds items that are not a list");
	assert_refused("{\"items\":7}", "holds items that are not a list");
	assert_refused("{\"items\":[],\"items\":[]}", "holds items twice");
}

static void text_that_is_no_json_is_refused(void **state)
{
	static const char *const texts[] = {
		"hello",
		"[1]",
		"{\"items\":[1]}}",
		"{\"items\":[1]} x",
		"{items:[]}",
		"{\"items\"[1]}",
		"{\"items\":,}",
		"{\"items\":[,]}",
		"{\"items\":[1,]}",
		"{\"items\":[1 2]}",
		"{\"items\":[1}",
		"{\"items\":[{]}]}",
		"{\"items\":[],}",
		"{,\"items\":[]}",
		"{\"a\":1 \"b\":2}",
		"{\"items\":[[}]]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_refused(texts[i], "is not JSON");
}

static void a_text_that_ends_too_early_is_refused_wherever_it_ends(void **state)
{
	static const char text[] = "{\"a\":\"b\",\"items\":[{\"c\":[\"d\"]},5],\"e\":null}";

	(void)state;
	for (size_t len = 1; len < strlen(text); len++)
		assert_refused_bytes(text, len, "ends in the middle");
	assert_refused_bytes("", 0, "is empty");
	assert_refused("   ", "is empty");
}

static void a_nul_byte_is_no_json(void **state)
{
	static const char outside[] = "{\"items\":[1\0]}",
			  in_number[] = "{\"a\":1\0002,\"items\":[]}";

	(void)state;
	assert_refused_bytes(outside, sizeof(outside) - 1, "is not JSON");
	assert_refused_bytes(in_number, sizeof(in_number) - 1, "is not JSON");
}

static void an_element_of_unreasonable_size_is_refused(void **state)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	char fits[100], too_large[100];

	(void)state;
	snprintf(fits, sizeof(fits), "{\"items\":[\"%062d\"]}", 0);
	snprintf(too_large, sizeof(too_large), "{\"items\":[\"%063d\"]}", 0);
	assert_refused(too_large, "larger than 64 bytes");
	assert_int_equal(split_in_pieces(fits, strlen(fits), 7, &out, NULL), 0);
}

static void nesting_is_bounded(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
	struct err err = { 0 };

	(void)state;
	strbuf_puts(&text, "{\"a\":");
	for (int i = 0; i < SPLIT_DEPTH_MAX; i++)
		strbuf_putc(&text, '[');
	for (int i = 0; i < SPLIT_DEPTH_MAX; i++)
		strbuf_putc(&text, ']');
	strbuf_puts(&text, ",\"items\":[1]}");
	assert_int_equal(split_in_pieces(text.s, text.len, 10, &out, &err), 0);
	strbuf_done(&text);
	strbuf_puts(&text, "{\"a\":");
	for (int i = 0; i <= SPLIT_DEPTH_MAX; i++)
		strbuf_putc(&text, '[');
	assert_refused(text.s, "nested more than 64 deep");
}

static void who_reads_an_element_may_refuse_it(void **state)
{
	(void)state;
	assert_refused("{\"items\":[1,\"no\",2]}", "no is no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_come_one_by_one_however_the_text_is_cut),
		cmocka_unit_test(brackets_and_quotes_inside_strings_do_not_count),
		cmocka_unit_test(what_stands_beside_the_items_is_skipped),
		cmocka_unit_test(no_items_are_an_empty_list_or_null),
		cmocka_unit_test(a_list_of_something_else_is_refused),
		cmocka_unit_test(text_that_is_no_json_is_refused),
		cmocka_unit_test(a_text_that_ends_too_early_is_refused_wherever_it_ends),
		cmocka_unit_test(a_nul_byte_is_no_json),
		cmocka_unit_test(an_element_of_unreasonable_size_is_refused),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(who_reads_an_element_may_refuse_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
