#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/pods-internal.h"

struct fixture {
	struct arena *arena;
	struct pods pods;
	struct err err;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->arena = arena_new(1024);
	kubeapi_pods_init(&f->pods, f->arena);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kubeapi_pods_done(&f->pods);
	arena_free(f->arena);
	free(f);
	return 0;
}

static const struct spec_pod *read_pod(struct fixture *f, const char *text)
{
	if (kubeapi_pods_add(&f->pods, text, strlen(text), &f->err) < 0)
		fail_msg("%s", f->err.msg);
	return &f->pods.v[f->pods.n - 1];
}

static void assert_refused(struct fixture *f, const char *text, const char *why)
{
	f->err = (struct err) { 0 };
	assert_true(kubeapi_pods_add(&f->pods, text, strlen(text), &f->err) < 0);
	if (!strstr(f->err.msg, why))
		fail_msg("%s: '%s' does not say '%s'", text, f->err.msg, why);
	assert_int_equal(f->pods.n, 0);
}

#define META "\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"}"

static void a_pod_is_read_with_its_containers_in_the_order_of_the_kubelet(void **state)
{
	const struct spec_pod *p = read_pod(
		*state,
		"{\"metadata\":{\"name\":\"trainer\",\"namespace\":\"ml\",\"uid\":\"5-6\",\n"
		"\"creationTimestamp\":\"2026-01-02T03:04:05Z\"},\n"
		"\"spec\":{\"containers\":[{\"name\":\"main\",\n"
		"\"resources\":{\"limits\":{\"cpu\":\"4\",\"memory\":\"1Gi\",\n"
		"\"hugepages-2Mi\":\"1Gi\",\"nvidia.com/gpu\":\"8\",\"rdma/vf\":\"4\"}}},\n"
		"{\"name\":\"logger\"}],\"initContainers\":[{\"name\":\"prepare\",\n"
		"\"resources\":{\"limits\":{\"rdma/vf\":\"1\"}}},{\"name\":\"agent\",\n"
		"\"restartPolicy\":\"Always\"}]},\"status\":{\"phase\":\"Pending\"}}");

	assert_string_equal(p->ns, "ml");
	assert_string_equal(p->name, "trainer");
	assert_string_equal(p->uid, "5-6");
	assert_int_equal(p->created, 1767323045);
	assert_false(p->over);
	assert_false(p->deleted);
	assert_int_equal(p->n_containers, 4);
	assert_string_equal(p->containers[0].name, "prepare");
	assert_int_equal(p->containers[0].kind, SPEC_INIT);
	assert_string_equal(p->containers[1].name, "agent");
	assert_int_equal(p->containers[1].kind, SPEC_SIDECAR);
	assert_int_equal(p->containers[1].n_limits, 0);
	assert_string_equal(p->containers[2].name, "main");
	assert_int_equal(p->containers[2].kind, SPEC_APP);
	assert_int_equal(p->containers[2].n_limits, 2);
	assert_string_equal(p->containers[2].limits[0].resource, "nvidia.com/gpu");
	assert_int_equal(p->containers[2].limits[0].count, 8);
	assert_string_equal(p->containers[2].limits[1].resource, "rdma/vf");
	assert_int_equal(p->containers[2].limits[1].count, 4);
	assert_string_equal(p->containers[3].name, "logger");
}

static void assert_claim(const struct spec_claim *c, const char *claim, const char *request)
{
	assert_string_equal(c->claim, claim);
	if (request)
		assert_string_equal(c->request, request);
	else
		assert_null(c->request);
}

/* By name, made of a template, made by the scheduler of a limit; one that is not there; one without
 * a claim.
 */
static void a_container_names_its_parts_of_resource_claims(void **state)
{
	const struct spec_pod *p = read_pod(
		*state,
		"{" META
		",\"spec\":{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimName\":\"shared\"},\n"
		"{\"name\":\"b\",\"resourceClaimTemplateName\":\"t\"},{\"name\":\"c\"}],\n"
		"\"containers\":[\n"
		"{\"name\":\"m\",\"resources\":{\"claims\":[{\"name\":\"a\",\"request\":\"gpu-0\"},{\"name\":\"b\"},{\"name\":\"c\"},{\"name\":\"d\"},7]}},\n"
		"{\"name\":\"l\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\",\"rdma/vf\":\"1\"}}}]},\n"
		"\"status\":{\n"
		"\"resourceClaimStatuses\":[{\"name\":\"b\",\"resourceClaimName\":\"p-b-x7\"}],\n"
		"\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"p-extended\",\"requestMappings\":[\n"
		"{\"containerName\":\"l\",\"resourceName\":\"nvidia.com/gpu\",\"requestName\":\"container-1-request-0\"},\n"
		"{\"containerName\":\"m\",\"resourceName\":\"rdma/vf\",\"requestName\":\"container-0-request-0\"}]}}}");

	assert_int_equal(p->containers[0].n_claims, 3);
	assert_claim(&p->containers[0].claims[0], "shared", "gpu-0");
	assert_claim(&p->containers[0].claims[1], "p-b-x7", NULL);
	assert_claim(&p->containers[0].claims[2], "p-extended", "container-0-request-0");
	assert_int_equal(p->containers[1].n_claims, 1);
	assert_claim(&p->containers[1].claims[0], "p-extended", "container-1-request-0");
	/* What the scheduler made a claim of is no device plugin's any more. */
	assert_int_equal(p->containers[1].n_limits, 1);
	assert_string_equal(p->containers[1].limits[0].resource, "rdma/vf");
}

static void a_pod_that_ended_or_is_being_deleted_says_so(void **state)
{
	assert_true(
		read_pod(*state, "{" META ",\"spec\":{},\"status\":{\"phase\":\"Failed\"}}")->over);
	assert_true(read_pod(*state, "{" META ",\"spec\":{},\"status\":{\"phase\":\"Succeeded\"}}")
			    ->over);
	assert_false(read_pod(*state, "{" META ",\"spec\":{},\"status\":{\"phase\":\"Running\"}}")
			     ->over);
	assert_true(
		read_pod(
			*state,
			"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"},\"spec\":{}}")
			->deleted);
	assert_false(
		read_pod(
			*state,
			"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"deletionTimestamp\":null},\"spec\":{}}")
			->deleted);
}

static void a_static_pod_has_no_time_of_creation(void **state)
{
	assert_int_equal(
		read_pod(
			*state,
			"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"creationTimestamp\":null},\"spec\":{\"containers\":null}}")
			->created,
		0);
	assert_int_equal(
		read_pod(
			*state,
			"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"creationTimestamp\":\"yesterday\"},\"spec\":{}}")
			->created,
		0);
}

static void a_limit_of_zero_asks_for_nothing(void **state)
{
	const struct spec_pod *p = read_pod(
		*state,
		"{" META
		",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"a/b\":\"0\",\"c/d\":2}}}]}}");

	assert_int_equal(p->containers[0].n_limits, 1);
	assert_string_equal(p->containers[0].limits[0].resource, "c/d");
	assert_int_equal(p->containers[0].limits[0].count, 2);
}

static void what_is_no_pod_is_refused_by_the_name_of_the_place(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "{", "items[0]:1: is not JSON" },
		{ "{\"metadata\":{},\"metadata\":{}}", "items[0]:1: a key stands twice" },
		{ "{\"metadata\":{\"name\":\"a\\u0000b\"}}", "items[0]:1: holds a NUL" },
		{ "{\"metadata\":{\"name\":\"\xff\"}}", "items[0]:1: is not UTF-8" },
		{ "[]", "items[0]: metadata is not an object" },
		{ "{\"metadata\":7,\"spec\":{}}", "items[0]: metadata is not an object" },
		{ "{" META "}", "items[0]: spec is not an object" },
		{ "{\"metadata\":{\"namespace\":\"n\"},\"spec\":{}}",
		  "items[0]: metadata.name is not a string" },
		{ "{\"metadata\":{\"name\":\"\",\"namespace\":\"n\"},\"spec\":{}}",
		  "metadata.name is not a string" },
		{ "{\"metadata\":{\"name\":\"p\"},\"spec\":{}}",
		  "items[0]: metadata.namespace is not a string" },
		{ "{" META ",\"spec\":{\"containers\":{}}}",
		  "items[0]: spec.containers is not a list" },
		{ "{" META ",\"spec\":{\"initContainers\":1}}",
		  "items[0]: spec.initContainers is not a list" },
		{ "{" META ",\"spec\":{\"containers\":[1]}}",
		  "spec.containers[0].name is not a string" },
		{ "{" META
		  ",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"a/b\":\"1.5\"}}}]}}",
		  "items[0]: spec.containers[0].resources.limits.a/b is not a whole number" },
		{ "{" META
		  ",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"a/b\":-1}}}]}}",
		  "limits.a/b is not a whole number" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(*state, cases[i].text, cases[i].why);
}

static void what_pods_leave_behind_is_bounded(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct fixture *f = *state;
	int r = 0;

	strbuf_puts(&text, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"");
	for (size_t i = 0; i < PODS_KEPT_MAX / 8; i++)
		strbuf_putc(&text, 'x');
	strbuf_puts(&text, "\"},\"spec\":{}}");
	for (int i = 0; i < 10 && r == 0; i++)
		r = kubeapi_pods_add(&f->pods, text.s, text.len, &f->err);
	assert_int_equal(r, -EFBIG);
	assert_non_null(strstr(f->err.msg, "take more than"));
	assert_in_range(f->pods.n, 4, 8);
}

/* Small ones: their places count. */
static void many_pods_are_bounded_with_the_array_that_has_them(void **state)
{
	static const char text[] = "{" META ",\"spec\":{}}";
	struct fixture *f = *state;
	int r = 0;

	while (r == 0 && f->pods.n < PODS_KEPT_MAX / sizeof(*f->pods.v))
		r = kubeapi_pods_add(&f->pods, text, strlen(text), &f->err);
	assert_int_equal(r, -EFBIG);
	assert_true(arena_used(f->arena) + f->pods.cap * sizeof(*f->pods.v) <= PODS_KEPT_MAX);
	assert_true(f->pods.n > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_pod_is_read_with_its_containers_in_the_order_of_the_kubelet, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_container_names_its_parts_of_resource_claims,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_pod_that_ended_or_is_being_deleted_says_so, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_static_pod_has_no_time_of_creation, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_limit_of_zero_asks_for_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_pod_is_refused_by_the_name_of_the_place,
						setup, teardown),
		cmocka_unit_test_setup_teardown(many_pods_are_bounded_with_the_array_that_has_them,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_pods_leave_behind_is_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
