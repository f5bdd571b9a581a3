#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kubemsg/messages-internal.h"

static void resources_of_device_plugins_are_told_from_those_of_kubernetes(void **state)
{
	static const char *const extended[] = { "nvidia.com/gpu", "rdma/vf",
						"intel.com/mig-1g.5gb" };
	static const char *const native[] = { "cpu", "hugepages-2Mi", "kubernetes.io/batch-cpu",
					      "a.kubernetes.io/b", "requests.rdma/vf" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(extended); i++)
		assert_true(kubemsg_podspec_is_extended(extended[i]));
	for (size_t i = 0; i < ARRAY_LEN(native); i++)
		assert_false(kubemsg_podspec_is_extended(native[i]));
}

/* The grammar of resource.Quantity: the API server keeps what was written. */
static void counts_are_read_as_kubernetes_writes_them(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{ "0", 0 },
		{ "8", 8 },
		{ "008", 8 },
		{ "1k", 1000 },
		{ "2Ki", 2048 },
		{ "3M", 3000000 },
		{ "1Ei", INT64_C(1) << 60 },
		{ "1e3", 1000 },
		{ "12E2", 1200 },
		{ "1E", INT64_C(1000000000000000000) },
		{ "9223372036854775807", INT64_MAX },
		{ "9223372036854775807.000", INT64_MAX },
		{ "+1", 1 },
		{ "1.", 1 },
		{ "+1.", 1 },
		{ ".5k", 500 },
		{ "5e-0", 5 },
		{ "5e+2", 500 },
		{ "500E-2", 5 },
		{ "1.500k", 1500 },
		{ "0.5Ki", 512 },
		{ "1.5Gi", INT64_C(1610612736) },
		{ "2000m", 2 },
		{ "3000000u", 3 },
		{ "4000000000n", 4 },
		{ "1000000000000000000000e-20", 10 },
		{ "0.000000000000000000001e21", 1 },
		{ "1000000000000000000000m", INT64_C(1000000000000000000) },
		{ "-0", 0 },
		{ "+0.000m", 0 },
		{ "0Ei", 0 },
		{ "0e99999999999999999999", 0 },
		{ "0e-99999999999999999999", 0 },
	};
	int64_t v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (kubemsg_podspec_count(cases[i].text, &v) < 0 || v != cases[i].value)
			fail_msg("%s", cases[i].text);
	}
}

static void what_is_no_whole_number_is_no_count(void **state)
{
	static const char *const bad[] = { "",
					   "+",
					   "-",
					   ".",
					   "+.",
					   "-1",
					   "1.5",
					   "500m",
					   "1m",
					   "1500m",
					   "0.5",
					   "1n",
					   "x",
					   "1x",
					   "1 ",
					   " 1",
					   "++1",
					   "+-1",
					   "1..",
					   "1.2.3",
					   "1e",
					   "1e+",
					   "1e-",
					   "1e1.5",
					   "1e 1",
					   "1e1k",
					   "1ee1",
					   "1e19",
					   "1e-1",
					   "5e-1",
					   "10E",
					   "9Ei",
					   "Ki",
					   "1ki",
					   "1KI",
					   "1mi",
					   "1kk",
					   "1K",
					   "1g",
					   "1,5",
					   "1_0",
					   "0x1",
					   "1.1Ki",
					   "0.0001Ki",
					   "9223372036854775808",
					   "10000000000000000000000",
					   "18446744073709551617",
					   "1e99999999999999999999",
					   "1e-99999999999999999999",
					   "1e4294967296",
					   "1e18446744073709551616",
					   "0.1e-9223372036854775807",
					   "infinity",
					   "NaN" };
	int64_t v = -7;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (kubemsg_podspec_count(bad[i], &v) != -EINVAL || v != -7)
			fail_msg("%s", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resources_of_device_plugins_are_told_from_those_of_kubernetes),
		cmocka_unit_test(counts_are_read_as_kubernetes_writes_them),
		cmocka_unit_test(what_is_no_whole_number_is_no_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
