/* Another configuration, of which some pools have errors: these stay as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "topo/rails.h"

static struct config *parse(const char *json)
{
	struct config *cfg = NULL;

	assert_int_equal(config_parse(json, strlen(json), "config.json", "p", &cfg, NULL, NULL), 0);
	return cfg;
}

#define GOOD(name)	     "{\"resourceName\": \"" name "\"}"
#define GID(name, gid)	     "{\"resourceName\": \"" name "\", \"railmate\": {\"gid\": \"" gid "\"}}"
#define ACCELERATOR(name)    "{\"resourceName\": \"" name "\", \"deviceType\": \"accelerator\"}"
#define LIST(...)	     "{\"resourceList\": [" __VA_ARGS__ "]}"
#define WITH_RAILS(r, pools) "{\"railmate\": {\"rails\": " r "}, \"resourceList\": [" pools "]}"

/* The pools' names, with "=" behind those that stay as they were. */
static void assert_pools(const struct config *cfg, const char *expected)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;

	for (size_t i = 0; i < cfg->n_pools; i++)
		strbuf_printf(&names, "%s%s%s", i ? " " : "", cfg->pools[i].name,
			      cfg->pools[i].kept ? "=" : "");
	assert_string_equal(strbuf_str(&names), expected);
}

static void what_has_an_error_stays_and_the_rest_is_taken(void **state)
{
	static const struct {
		const char *before, *now, *pools;
	} cases[] = {
		/* Nothing is wrong. */
		{ LIST(GOOD("a") "," GOOD("b")), LIST(GOOD("b") "," GOOD("c")), "b c" },
		/* A pool that was never served is left out. */
		{ LIST(GOOD("a")), LIST(GOOD("a") "," ACCELERATOR("x") "," GOOD("b")), "a b" },
		/* In its place. */
		{ LIST(GOOD("a") "," GOOD("b")), LIST(ACCELERATOR("a") "," GOOD("c")), "a= c" },
		{ LIST(GOOD("a") "," GOOD("b")), LIST(GOOD("c") "," ACCELERATOR("b") "," GOOD("d")),
		  "c b= d" },
		/* A key that is left out would change what containers get. */
		{ LIST(GID("a", "fixed:3")), LIST(GID("a", "often") "," GOOD("b")), "a= b" },
		{ LIST(GOOD("b")), LIST(GID("a", "often") "," GOOD("b")), "a b" },
		/* A name that cannot be read is that of any pool. */
		{ LIST(GOOD("a") "," GOOD("b")), LIST(GOOD("a") "," GOOD("not legal")), "a b=" },
		{ LIST(GOOD("a") "," GOOD("b")), LIST(GOOD("a") ", 7"), "a b=" },
		{ LIST(GOOD("a") "," GOOD("b")),
		  LIST(GOOD("a") ", {\"resourceName\": \"b\", \"resourcePrefix\": \"/\"}"),
		  "a b=" },
		/* Two of one name. */
		{ LIST(GOOD("a") "," GOOD("b")), LIST(GOOD("a") "," GOOD("a")), "a=" },
		{ LIST(GOOD("b")), LIST(GOOD("a") "," GOOD("a")), "a" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config *before = parse(cases[i].before), *now = parse(cases[i].now);
		struct config *whole = config_keep(now, before);

		config_free(before);
		config_free(now);
		assert_pools(whole, cases[i].pools);
		config_free(whole);
	}
}

static void a_pool_that_stays_is_whole_and_lives_on(void **state)
{
	struct config *first = parse(LIST(GID("a", "fixed:3"))), *last = first;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct config *now = parse(LIST(ACCELERATOR("a") "," GOOD("b")));
		struct config *whole = config_keep(now, last);

		config_free(now);
		config_free(last);
		last = whole;
	}
	assert_pools(last, "a= b");
	assert_string_equal(last->pools[0].resource, "p/a");
	assert_int_equal(last->pools[0].gid_index, 3);
	assert_int_equal(last->n_errors, 1);
	config_free(last);
}

static void what_was_decided_for_it_stays_too(void **state)
{
	struct config *before = parse(LIST(GID("a", "fixed:3"))), *now, *whole, *later;
	const bool retired[] = { true, false };

	(void)state;
	config_bind(before, 0, BINDING_LATE, "of a test", false);
	now = parse(LIST(ACCELERATOR("a") "," GOOD("b")));
	whole = config_keep(now, before);
	config_free(before);
	config_free(now);
	now = parse(LIST(GOOD("c")));
	later = config_retire(now, whole, retired);
	config_free(now);
	config_free(whole);
	assert_int_equal(later->n_pools, 2);
	assert_true(later->pools[1].retired);
	assert_int_equal(later->pools[1].binding, BINDING_LATE);
	assert_string_equal(later->pools[1].binding_why, "of a test");
	config_free(later);
}

static void the_rails_of_before_stay_when_those_of_now_are_wrong(void **state)
{
	struct config *before = parse(WITH_RAILS("{\"eth0\": 1}", GOOD("a")));
	struct config *now = parse(WITH_RAILS("{\"eth0\": \"one\"}", GOOD("a") "," GOOD("b")));
	struct config *whole = config_keep(now, before);

	(void)state;
	config_free(before);
	config_free(now);
	assert_pools(whole, "a b");
	assert_int_equal(whole->n_rails, 1);
	assert_string_equal(whole->rails[0].nic, "eth0");
	config_free(whole);
}

static struct config *with_shared(const char *pools, const char *shared)
{
	struct config *cfg = parse(pools);

	assert_int_equal(
		config_parse_shared(shared, strlen(shared), "shared.json", cfg, NULL, NULL), 0);
	return cfg;
}

#define HCA(name, shares)                                                                          \
	"{\"resourceName\": \"" name "\", \"rdmaHcaMax\": " shares                                 \
	", \"selectors\": {\"vendors\": [\"15b3\"]}}"
#define SHARED(...) "{\"configList\": [" __VA_ARGS__ "]}"

static void shared_hcas_stay_too_and_no_name_is_there_twice(void **state)
{
	struct config *before =
		with_shared(LIST(GOOD("a")), SHARED(HCA("x", "5") "," HCA("y", "5")));
	/* A typo in x; y is one of VFs now, and the name of another entry cannot be read. */
	struct config *now = with_shared(
		LIST(GOOD("a") ", {\"resourceName\": \"y\", \"resourcePrefix\": \"rdma\"}"),
		SHARED(HCA("x", "\"6\"") "," HCA("not legal", "1") "," HCA("z", "7")));
	struct config *whole = config_keep(now, before);

	(void)state;
	config_free(before);
	config_free(now);
	assert_pools(whole, "a y");
	assert_int_equal(whole->n_shared, 2);
	assert_string_equal(whole->shared[0].resource, "rdma/x");
	assert_int_equal(whole->shared[0].shares, 5);
	assert_true(whole->shared[0].kept);
	assert_string_equal(whole->shared[1].resource, "rdma/z");
	assert_false(whole->shared[1].kept);
	config_free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_an_error_stays_and_the_rest_is_taken),
		cmocka_unit_test(a_pool_that_stays_is_whole_and_lives_on),
		cmocka_unit_test(what_was_decided_for_it_stays_too),
		cmocka_unit_test(the_rails_of_before_stay_when_those_of_now_are_wrong),
		cmocka_unit_test(shared_hcas_stay_too_and_no_name_is_there_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
