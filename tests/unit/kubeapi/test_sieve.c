#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/transfer-internal.h"

#define MEMBER_MAX 64

/* "a=1 b={} |": the members, and the end of each element. */
static int note(void *arg, const char *key, const char *text, size_t len, struct err *err)
{
	struct strbuf *out = arg;

	if (text && !strcmp(text, "\"no\""))
		return err_set(err, ENOTSUP, "no is no");
	assert_true(!text || strlen(text) == len);
	strbuf_printf(out, "%s=%s ", key, text ? text : "TOO LARGE");
	return 0;
}

static int end(void *arg, struct err *err)
{
	(void)err;
	strbuf_putc(arg, '|');
	return 0;
}

static const struct keep inner[] = { { "x", NULL }, { NULL, NULL } };
static const struct keep keep[] = { { "a", NULL }, { "in", inner }, { NULL, NULL } };

static int read_in_pieces(const char *text, size_t len, size_t piece, struct strbuf *out,
			  struct err *err)
{
	const struct sieve_reader reader = {
		.keep = keep, .member_max = MEMBER_MAX, .member = note, .end = end, .arg = out
	};
	_cleanup_free_ char *copy = xcalloc(1, len + 1); /* reading on would be seen */
	struct sieve s;
	int r = 0;

	memcpy(copy, text, len);
	kubeapi_sieve_init(&s, &reader);
	for (size_t at = 0; at < len && r == 0; at += piece)
		r = kubeapi_sieve_push(&s, copy + at, len - at < piece ? len - at : piece, err);
	if (r == 0)
		r = kubeapi_sieve_end(&s, err);
	if (s.metadata.len)
		strbuf_printf(out, " metadata=%s", strbuf_str(&s.metadata));
	kubeapi_sieve_done(&s);
	return r;
}

/* Whatever the pieces, what stays is the same. */
static void assert_left(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		struct err err = { 0 };

		if (read_in_pieces(text, strlen(text), piece, &out, &err) < 0)
			fail_msg("%s: %s", text, err.msg);
		assert_string_equal(strbuf_str(&out), expected);
	}
}

static void assert_refused_bytes(const char *text, size_t len, const char *why)
{
	for (size_t piece = 1; piece <= len || piece == 1; piece++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		struct err err = { 0 };

		if (read_in_pieces(text, len, piece, &out, &err) == 0)
			fail_msg("%s passes as %s", text, strbuf_str(&out));
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
	assert_left("{\"items\":[{\"a\":1},{\"a\":[2,{}]}]}", "a=1 |a=[2,{}] |");
	assert_left(
		" {\n\t\"kind\" : \"PodList\" , \"items\" : [ {} , { \"a\" : 7 } ] , \"z\":0 } \r\n",
		"|a=7 |");
}

static void only_what_is_named_stays(void **state)
{
	static const struct {
		const char *element, *left;
	} cases[] = {
		{ "{}", "" },
		{ "{\"b\":1}", "" },
		{ "{ \"a\" : 1 , \"b\" : [ 2 , {} ] , \"c\" : \"}\" }", "a=1 " },
		{ "{\"b\":{\"a\":1},\"a\":{\"b\":[1, 2]}}", "a={\"b\":[1, 2]} " },
		{ "{\"in\":{\"x\":1,\"y\":2},\"a\":null}", "in={\"x\":1} " },
		{ "{\"in\":[{\"y\":2},{\"x\":\"\\\"\",\"z\":{}},7,[{\"x\":1}]]}",
		  "in=[{},{\"x\":\"\\\"\"},7,[{\"x\":1}]] " },
		{ "{\"in\":{\"y\":[{\"x\":1}],\"x\":1,\"x\":{\"y\":2}}}",
		  "in={\"x\":1,\"x\":{\"y\":2}} " },
		{ "{\"in\":\"text\"}", "in=\"text\" " },
		{ "{\"in\":{ },\"a\":[ ]}", "in={} a=[ ] " },
		{ "{\"b\":\"\\\\\",\"a\":2}", "a=2 " },
		{ "{\"b\":\"]}[{\",\"a\":\"\\\"]\\\\\"}", "a=\"\\\"]\\\\\" " },
		{ "{\"a\":1,\"a\":2}", "a=1 a=2 " },
		{ "{\"\\u0061\":1,\"a\\\"\":2}", "" },
		{ "{\"aa\":1,\"\":2,\"i\":{\"n\":3}}", "" },
		{ "{\"a-key-that-is-longer-than-any-that-can-be-kept-anywhere\":1}", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *text = xasprintf("{\"items\":[%s]}", cases[i].element);
		_cleanup_free_ char *left = xasprintf("%s|", cases[i].left);

		assert_left(text, left);
	}
}

static void what_stands_beside_the_items_is_skipped(void **state)
{
	(void)state;
	assert_left(
		"{\"Metadata\":{\"items\":[1,2],\"r\":\"{\"},\"n\":-1.5e3,\"t\":true,\"items\":[{\"a\":3}],\"e\":[]}",
		"a=3 |");
	assert_left("{\"x\\\"items\":[1],\"items\":[{\"a\":2}]}", "a=2 |");
}

static void metadata_of_the_list_stay_if_they_are_small(void **state)
{
	_cleanup_free_ char *large =
		xasprintf("{\"metadata\":{\"continue\":\"%065d\"},\"items\":[]}", 0);

	(void)state;
	assert_left(
		"{\"metadata\":{\"continue\":\"t}\",\"x\":1},\"items\":[{\"metadata\":2,\"a\":3}],\"e\":[]}",
		"a=3 | metadata={\"continue\":\"t}\",\"x\":1}");
	assert_left("{\"items\":[{\"in\":[1]}],\"metadata\":{}}", "in=[1] | metadata={}");
	assert_left("{\"items\":[],\"metadata\":[1]}", " metadata=[1]");
	assert_left(large, "");
}

static void no_items_are_an_empty_list_or_null(void **state)
{
	(void)state;
	assert_left("{\"items\":[]}", "");
	assert_left("{\"items\":[ ],\"a\":1}", "");
	assert_left("{\"items\":null}", "");
	assert_left("{\"items\": null ,\"a\":1}", "");
}

static void a_list_of_something_else_is_refused(void **state)
{
	(void)state;
	assert_refused("{}", "holds no items");
	assert_refused("{\"kind\":\"Status\",\"Items\":[1]}", "holds no items");
	assert_refused("{\"items\":{}}", "holds items that are not a list");
	assert_refused("{\"items\":7}", "holds items that are not a list");
	assert_refused("{\"items\":[],\"items\":[]}", "holds items twice");
	assert_refused("{\"items\":[7]}", "element of items that is not an object");
	assert_refused("{\"items\":[{},[]]}", "element of items that is not an object");
}

static void text_that_is_no_json_is_refused(void **state)
{
	static const char *const texts[] = {
		"hello",
		"[1]",
		"{\"items\":[{}]}}",
		"{\"items\":[{}]} x",
		"{items:[]}",
		"{\"items\"[1]}",
		"{\"items\":,}",
		"{\"items\":[,]}",
		"{\"items\":[{},]}",
		"{\"items\":[{} {}]}",
		"{\"items\":[{}}",
		"{\"items\":[{]}]}",
		"{\"items\":[],}",
		"{,\"items\":[]}",
		"{\"a\":1 \"b\":2}",
		"{\"items\":[{\"a\":1,}]}",
		"{\"items\":[{\"a\"}]}",
		"{\"items\":[{\"a\":}]}",
		"{\"items\":[{\"in\":[1,]}]}",
		"{\"items\":[{\"in\":{\"x\":1]}]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_refused(texts[i], "is not JSON");
}

static void a_text_that_ends_too_early_is_refused_wherever_it_ends(void **state)
{
	static const char text[] =
		"{\"k\":\"b\",\"items\":[{\"a\":\"\\\"b\",\"in\":[{\"x\":[1,{}],\"y\":{\"z\":\"\\\\\"}}],\"q\":tr},{}],\"e\":null}";

	(void)state;
	for (size_t len = 1; len < strlen(text); len++)
		assert_refused_bytes(text, len, "ends in the middle");
	assert_refused_bytes("", 0, "is empty");
	assert_refused("   ", "is empty");
}

static void a_nul_byte_is_no_json(void **state)
{
	static const char outside[] = "{\"items\":[{}\0]}",
			  in_number[] = "{\"a\":1\0002,\"items\":[]}";

	(void)state;
	assert_refused_bytes(outside, sizeof(outside) - 1, "is not JSON");
	assert_refused_bytes(in_number, sizeof(in_number) - 1, "is not JSON");
}

/* The others of the element, and the other elements, stay. What is skipped may be of any size. */
static void a_member_of_unreasonable_size_is_left_out(void **state)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"items\":[{\"a\":\"%062d\",\"in\":{\"x\":1}},{\"a\":\"%063d\",\"in\":{\"y\":\"%0500d\",\"x\":2}},{\"in\":[{\"x\":1234567},{\"x\":1234567},{\"x\":1234567},{\"x\":1234567},{\"x\":12}],\"a\":3},{\"a\":4}]}",
		0, 0, 0);
	_cleanup_free_ char *left = xasprintf(
		"a=\"%062d\" in={\"x\":1} |a=TOO LARGE in={\"x\":2} |in=TOO LARGE a=3 |a=4 |", 0);

	(void)state;
	assert_left(text, left);
}

static char *nested(const char *key, size_t depth)
{
	struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, "{\"items\":[{\"%s\":", key);
	for (size_t i = 0; i < depth; i++)
		strbuf_putc(&text, '[');
	for (size_t i = 0; i < depth; i++)
		strbuf_putc(&text, ']');
	strbuf_puts(&text, "},{\"a\":1}]}");
	return strbuf_steal(&text);
}

/* What reads a member recurses; what is skipped is counted only. */
static void nesting_of_what_stays_is_bounded(void **state)
{
	static const char *const keys[] = { "a", "in" };
	_cleanup_free_ char *skipped = nested("skipped", 5000);

	(void)state;
	assert_left(skipped, "|a=1 |");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		_cleanup_free_ char *fits = nested(keys[i], SIEVE_DEPTH_MAX - 3);
		_cleanup_free_ char *too_deep = nested(keys[i], SIEVE_DEPTH_MAX - 2);
		_cleanup_free_ char *left = xasprintf("%s=TOO LARGE |a=1 |", keys[i]);
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

		assert_int_equal(read_in_pieces(fits, strlen(fits), 10, &out, NULL), 0);
		assert_null(strstr(strbuf_str(&out), "TOO LARGE"));
		assert_left(too_deep, left);
	}
}

static void who_reads_a_member_may_end_it(void **state)
{
	(void)state;
	assert_refused("{\"items\":[{\"a\":1},{\"a\":\"no\"},{\"a\":2}]}", "no is no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_come_one_by_one_however_the_text_is_cut),
		cmocka_unit_test(only_what_is_named_stays),
		cmocka_unit_test(what_stands_beside_the_items_is_skipped),
		cmocka_unit_test(metadata_of_the_list_stay_if_they_are_small),
		cmocka_unit_test(no_items_are_an_empty_list_or_null),
		cmocka_unit_test(a_list_of_something_else_is_refused),
		cmocka_unit_test(text_that_is_no_json_is_refused),
		cmocka_unit_test(a_text_that_ends_too_early_is_refused_wherever_it_ends),
		cmocka_unit_test(a_nul_byte_is_no_json),
		cmocka_unit_test(a_member_of_unreasonable_size_is_left_out),
		cmocka_unit_test(nesting_of_what_stays_is_bounded),
		cmocka_unit_test(who_reads_a_member_may_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
