#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "kubeapi/kubeapi.h"

static const char *node_of(const char *given)
{
	const char *node = "none";

	apiserver_node(given, &node, NULL);
	return node;
}

static void a_nodes_name_is_the_given_one_or_that_of_the_environment(void **state)
{
	struct err err = { 0 };
	const char *node = "as before";

	(void)state;
	setenv("NODE_NAME", "node-9", 1);
	assert_string_equal(node_of("node-7.example"), "node-7.example");
	assert_string_equal(node_of(NULL), "node-9");
	unsetenv("NODE_NAME");
	assert_int_equal(apiserver_node(NULL, &node, &err), -EINVAL);
	assert_string_equal(node, "as before");
	assert_non_null(strstr(err.msg, "NODE_NAME"));
}

static void a_name_that_is_no_nodes_is_no_path(void **state)
{
	(void)state;
	assert_string_equal(node_of("../etc/passwd"), "none");
	setenv("NODE_NAME", "node/9", 1);
	assert_string_equal(node_of(NULL), "none");
	unsetenv("NODE_NAME");
}

static void an_address_of_ipv6_gets_brackets(void **state)
{
	_cleanup_free_ char *url = NULL, *v6 = NULL;

	(void)state;
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
	assert_int_equal(apiserver_url(&v6, NULL), 0);
	assert_string_equal(v6, "https://[fd00::1]:6443");
	unsetenv("KUBERNETES_SERVICE_PORT");
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	assert_int_equal(apiserver_url(&url, NULL), 0);
	assert_string_equal(url, "https://10.0.0.1:443");
	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(apiserver_url(&url, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nodes_name_is_the_given_one_or_that_of_the_environment),
		cmocka_unit_test(a_name_that_is_no_nodes_is_no_path),
		cmocka_unit_test(an_address_of_ipv6_gets_brackets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
