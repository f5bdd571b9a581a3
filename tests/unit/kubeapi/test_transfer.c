/* What opening a source does to the process. That there is a server is the business of
 * tests/integration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/err.h"
#include "kubeapi/transfer-internal.h"

static void open_and_close(const char *token)
{
	const struct kubeapi_options opt = { .name = "test",
					     .url = "https://127.0.0.1:1/pods",
					     .token_file = token,
					     .ca_file = "ca.crt" };
	struct transfer *t;
	struct err err = { 0 };

	assert_int_equal(kubeapi_transfer_open(&opt, TRANSFER_PODS, NULL, NULL, NULL, &t, &err), 0);
	kubeapi_transfer_close(t);
}

static void no_core_holds_a_token(void **state)
{
	struct rlimit cores;

	(void)state;
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
	open_and_close(NULL);
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	open_and_close("token");
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	assert_int_equal(getrlimit(RLIMIT_CORE, &cores), 0);
	assert_int_equal(cores.rlim_max, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_core_holds_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
