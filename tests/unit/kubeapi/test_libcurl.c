#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/transfer-internal.h"

static void a_library_that_is_not_there_is_one_sentence(void **state)
{
	static const char *const sonames[] = { "libno-such-thing.so.1", "libnor-this.so.2" };
	struct libcurl c = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kubeapi_libcurl_load(sonames, 2, &c, &err), -ELIBACC);
	assert_non_null(strstr(err.msg, "libcurl cannot be loaded: libnor-this.so.2"));
	assert_null(c.global_init);
}

static void a_library_that_is_another_one_is_refused_by_name(void **state)
{
	static const char *const sonames[] = { "libjansson.so.4" };
	struct libcurl c = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kubeapi_libcurl_load(sonames, 1, &c, &err), -ELIBBAD);
	assert_string_equal(err.msg, "libjansson.so.4: there is no curl_global_init in it");
	assert_null(c.global_init);
}

static void the_second_name_is_tried_when_the_first_is_not_there(void **state)
{
	static const char *const sonames[] = { "libno-such-thing.so.1", "libcurl-gnutls.so.4" };
	struct libcurl c = { 0 };
	struct err err = { 0 };

	(void)state;
	if (kubeapi_libcurl_load(sonames, 2, &c, &err) < 0)
		fail_msg("%s", err.msg);
	assert_non_null(c.multi_poll);
}

static void the_one_of_the_process_is_loaded_once(void **state)
{
	const struct libcurl *first, *second;

	(void)state;
	assert_int_equal(kubeapi_libcurl_get(&first, NULL), 0);
	assert_int_equal(kubeapi_libcurl_get(&second, NULL), 0);
	assert_ptr_equal(first, second);
}

static void options_that_would_be_careless_are_refused(void **state)
{
	static const struct kubeapi_options plain = { .name = "x",
						      .url = "http://127.0.0.1/pods",
						      .ca_file = "/ca.crt" };
	static const struct kubeapi_options no_ca = { .name = "x",
						      .url = "https://127.0.0.1/pods" };
	struct kubeapi *k = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kubeapi_open(NULL, &plain, &k, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "http://127.0.0.1/pods"));
	assert_int_equal(kubeapi_open(NULL, &no_ca, &k, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "whose certificates"));
	assert_null(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_that_is_not_there_is_one_sentence),
		cmocka_unit_test(a_library_that_is_another_one_is_refused_by_name),
		cmocka_unit_test(the_second_name_is_tried_when_the_first_is_not_there),
		cmocka_unit_test(the_one_of_the_process_is_loaded_once),
		cmocka_unit_test(options_that_would_be_careless_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
