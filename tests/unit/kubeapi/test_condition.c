/* The node condition, as the API server wants it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/events-internal.h"

static const struct condition down = {
	.node = "worker-1",
	.message = "the link of PF 0000:18:00.0 is down",
	.since_ms = 1767323045067,
	.now_ms = 1767323105999,
};

static void a_condition_is_a_patch_of_the_status(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)state;
	kubeapi_condition_write(&down, &text);
	assert_string_equal(
		strbuf_str(&text),
		"{\"status\":{\"conditions\":[{\"type\":\"RDMALinksHealthy\",\"status\":\"False\",\"reason\":\"LinksAreDownOrDegraded\",\"message\":\"the link of PF 0000:18:00.0 is down\",\"lastHeartbeatTime\":\"2026-01-02T03:05:05Z\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}");
}

static void each_status_has_its_word_and_reason(void **state)
{
	static const struct {
		enum condition_status status;
		const char *text;
	} cases[] = {
		{ CONDITION_TRUE, "\"status\":\"True\",\"reason\":\"LinksAreUp\"" },
		{ CONDITION_UNKNOWN, "\"status\":\"Unknown\",\"reason\":\"NoLinks\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
		struct condition c = down;

		c.status = cases[i].status;
		kubeapi_condition_write(&c, &text);
		assert_non_null(strstr(strbuf_str(&text), cases[i].text));
	}
}

static void a_name_that_is_none_of_a_node_has_no_path(void **state)
{
	static const char *const wrong[] = { "", ".", "../x", "a/b", "a?b", "Worker", "a b" };
	_cleanup_free_ char *path = kubeapi_condition_path("worker-1.example");

	(void)state;
	assert_string_equal(path, "/api/v1/nodes/worker-1.example/status");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_null(kubeapi_condition_path(wrong[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_condition_is_a_patch_of_the_status),
		cmocka_unit_test(each_status_has_its_word_and_reason),
		cmocka_unit_test(a_name_that_is_none_of_a_node_has_no_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
