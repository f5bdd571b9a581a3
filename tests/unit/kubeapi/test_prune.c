#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/prune-internal.h"

static const struct keep inner[] = { { "x", NULL }, { NULL, NULL } };
static const struct keep keep[] = { { "a", NULL }, { "in", inner }, { NULL, NULL } };

static void only_what_is_named_stays(void **state)
{
	static const struct {
		const char *text, *left;
	} cases[] = {
		{ "{}", "{}" },
		{ "{\"b\":1}", "{}" },
		{ "{\"a\":1}", "{\"a\":1}" },
		{ " { \"a\" : 1 , \"b\" : [ 2 , {} ] , \"c\" : \"}\" } ", "{\"a\":1}" },
		{ "{\"b\":{\"a\":1},\"a\":{\"b\":[1, 2]}}", "{\"a\":{\"b\":[1, 2]}}" },
		{ "{\"in\":{\"x\":1,\"y\":2},\"a\":null}", "{\"in\":{\"x\":1},\"a\":null}" },
		{ "{\"in\":[{\"y\":2},{\"x\":\"\\\"\",\"z\":{}},7,[{\"x\":1}]]}",
		  "{\"in\":[{},{\"x\":\"\\\"\"},7,[{\"x\":1}]]}" },
		{ "{\"in\":\"text\"}", "{\"in\":\"text\"}" },
		{ "{\"b\":\"\\\\\",\"a\":2}", "{\"a\":2}" },
		{ "{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}" },
		{ "{\"\\u0061\":1}", "{}" },
		{ "{\"aa\":1,\"\":2}", "{}" },
		{ "7", "7" },
		{ "[{\"a\":1,\"b\":2}]", "[{\"a\":1}]" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

		if (!kubeapi_prune(cases[i].text, strlen(cases[i].text), keep, &out))
			fail_msg("%s", cases[i].text);
		assert_string_equal(strbuf_str(&out), cases[i].left);
	}
}

static void a_text_that_ends_anywhere_is_noticed(void **state)
{
	static const char text[] =
		"{\"a\":\"\\\"b\",\"in\":[{\"x\":[1,{}],\"y\":{\"z\":\"\\\\\"}}],\"q\":tr}";

	(void)state;
	for (size_t len = 0; len < strlen(text); len++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		_cleanup_free_ char *copy =
			xcalloc(1, len + 1); /* of its exact size: reading on would be seen */

		memcpy(copy, text, len);
		assert_false(kubeapi_prune(copy, len, keep, &out));
	}
}

static void brackets_that_do_not_fit_are_noticed(void **state)
{
	static const char *const texts[] = { "{\"a\"}",		  "{\"a\":}",	  "{a:1}",
					     "{\"a\":1 \"b\":2}", "{\"a\":1}}",	  "{\"a\":1,}",
					     "{\"in\":[1,]}",	  "{\"in\":[,]}", "{\"b\":}",
					     "{\"in\":{]}}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

		if (kubeapi_prune(texts[i], strlen(texts[i]), keep, &out))
			fail_msg("%s passes as %s", texts[i], strbuf_str(&out));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_named_stays),
		cmocka_unit_test(a_text_that_ends_anywhere_is_noticed),
		cmocka_unit_test(brackets_that_do_not_fit_are_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
