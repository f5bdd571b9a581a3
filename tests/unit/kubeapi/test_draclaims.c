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
#include "kubeapi/transfer-internal.h"

static struct arena *a;
static struct draclaims c;
static struct err err;

static int set_up(void **state)
{
	(void)state;
	a = arena_new(0);
	err = (struct err) { 0 };
	kubeapi_draclaims_init(&c, a);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kubeapi_draclaims_done(&c);
	arena_free(a);
	return 0;
}

static int read_claims(const char *text)
{
	_cleanup_free_ char *list = xasprintf("{\"items\":[%s]}", text);
	struct sieve s;
	int r;

	kubeapi_sieve_init(&s, &c.reader);
	r = kubeapi_sieve_push(&s, list, strlen(list), &err);
	kubeapi_sieve_done(&s);
	return r;
}

static void add(const char *text)
{
	if (read_claims(text) < 0)
		fail_msg("%s", err.msg);
}

static void the_devices_of_an_allocation_are_read(void **state)
{
	(void)state;
	add("{\"metadata\":{\"name\":\"c\"},\n"
	    "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"x\"}]}},\n"
	    "\"status\":{\"allocation\":{\"devices\":{\"config\":[],\n"
	    "\"results\":[{\"device\":\"gpu-0\",\"driver\":\"gpu.nvidia.com\",\n"
	    "\"pool\":\"n1\",\"request\":\"a\",\"adminAccess\":null},{\"request\":\"b/c\",\n"
	    "\"driver\":\"d\",\"pool\":\"p\",\"device\":\"e\"}]},\"nodeSelector\":{}},\n"
	    "\"reservedFor\":[]}}");
	assert_int_equal(c.n_claims, 1);
	assert_int_equal(c.n, 2);
	assert_string_equal(c.v[0].request, "a");
	assert_string_equal(c.v[0].driver, "gpu.nvidia.com");
	assert_string_equal(c.v[0].pool, "n1");
	assert_string_equal(c.v[0].device, "gpu-0");
	assert_string_equal(c.v[1].request, "b/c");
}

static void a_claim_without_an_allocation_has_no_devices(void **state)
{
	static const char *const empty[] = {
		"{}", "{\"status\":{}}", "{\"status\":null}",
		"{\"status\":{\"allocation\":{\"devices\":{\"results\":null}}}}",
		"{\"status\":{\"allocation\":{\"devices\":{}}}}"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(empty); i++)
		add(empty[i]);
	assert_int_equal(c.n_claims, ARRAY_LEN(empty));
	assert_int_equal(c.n, 0);
}

static void what_is_no_claim_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "{\"status\":{\"allocation\":{\"devices\":{\"results\":7}}}}", "not a list" },
		{ "{\"status\":{\"allocation\":{\"devices\":{\"results\":[7]}}}}", "lacks" },
		{ "{\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"a\",\"driver\":\"b\",\"pool\":\"c\"}]}}}}",
		  "lacks" },
		{ "{\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"\\u0000\"}]}}}}",
		  "the claim:1: holds a NUL" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		err = (struct err) { 0 };
		assert_true(read_claims(cases[i].text) < 0);
		if (!strstr(err.msg, cases[i].why))
			fail_msg("'%s' does not say '%s'", err.msg, cases[i].why);
	}
	assert_int_equal(c.n_claims, 0);
}

static void what_a_list_leaves_behind_is_bounded(void **state)
{
	static const char one[] =
		"{\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"a\","
		"\"driver\":\"b\",\"pool\":\"c\",\"device\":\"d\"}]}}}}";

	(void)state;
	while (read_claims(one) == 0)
		assert_true(c.n < DRACLAIMS_KEPT_MAX);
	assert_int_equal(err.code, EFBIG);
}

/* The configuration of devices, and what drivers write of them, is of any size. */
static void a_claim_of_unreasonable_size_is_refused(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)state;
	strbuf_puts(&text, "{\"status\":{\"devices\":[");
	for (int i = 0; i < 10000; i++)
		strbuf_puts(&text, i ? ",{\"data\":{}}" : "{}");
	strbuf_puts(&text, "],\"allocation\":{\"devices\":{\"results\":[");
	for (int i = 0; i < 10000; i++)
		strbuf_puts(&text, i ? ",{\"pool\":\"\"}" : "{}");
	strbuf_puts(&text, "]}}}}");
	assert_true(read_claims(text.s) < 0);
	assert_int_equal(err.code, EFBIG);
	assert_non_null(strstr(err.msg, "the claim's status takes more than"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_devices_of_an_allocation_are_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_claim_without_an_allocation_has_no_devices,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_claim_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_list_leaves_behind_is_bounded, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_claim_of_unreasonable_size_is_refused, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
