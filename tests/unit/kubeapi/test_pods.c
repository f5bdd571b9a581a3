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
#include "kubeapi/transfer-internal.h"

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

static int add(struct fixture *f, const char *text)
{
	_cleanup_free_ char *list = xasprintf("{\"items\":[%s]}", text);
	struct sieve s;
	int r;

	kubeapi_sieve_init(&s, &f->pods.reader);
	r = kubeapi_sieve_push(&s, list, strlen(list), &f->err);
	kubeapi_sieve_done(&s);
	return r;
}

static const struct spec_pod *read_pod(struct fixture *f, const char *text)
{
	if (add(f, text) < 0)
		fail_msg("%s", f->err.msg);
	return &f->pods.list.v[f->pods.list.n - 1];
}

static void assert_refused(struct fixture *f, const char *text, const char *why)
{
	f->err = (struct err) { 0 };
	kubeapi_pods_done(&f->pods);
	kubeapi_pods_init(&f->pods, f->arena);
	assert_true(add(f, text) < 0);
	if (!strstr(f->err.msg, why))
		fail_msg("%s: '%s' does not say '%s'", text, f->err.msg, why);
	assert_int_equal(f->pods.list.n, 0);
}

/* It is known by name, and none of its containers is. The pod behind it is known. */
static void assert_unread(struct fixture *f, const char *text, const char *why)
{
	_cleanup_free_ char *both = xasprintf(
		"%s,{\"metadata\":{\"name\":\"q\",\"namespace\":\"m\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"rdma/vf\":\"1\"}}}]}}",
		text);
	const struct spec_pod *next = read_pod(f, both), *p = next - 1;

	assert_string_equal(p->ns, "n");
	assert_string_equal(p->name, "p");
	assert_string_equal(p->uid, "u");
	assert_int_equal(p->n_containers, 0);
	if (!p->unread || !strstr(p->unread, why))
		fail_msg("%.300s: '%s' does not say '%s'", text, p->unread, why);
	assert_null(next->unread);
	assert_string_equal(next->name, "q");
	assert_int_equal(next->n_containers, 1);
	assert_int_equal(next->containers[0].limits[0].count, 1);
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

/* A tenant's by the thousand: they hold nothing, and whatever they asked for is past. */
static void a_pod_that_ended_is_no_pod_of_the_list(void **state)
{
	static const char ended[] =
		"{" META ",\"spec\":{},\"status\":{\"phase\":\"Failed\"}},{" META
		",\"spec\":7,\"status\":{\"phase\":\"Succeeded\"}}";
	struct fixture *f = *state;

	assert_int_equal(add(f, ended), 0);
	assert_int_equal(f->pods.list.n, 0);
	read_pod(f, "{" META ",\"spec\":{},\"status\":{\"phase\":\"Running\"}}");
	assert_int_equal(f->pods.list.n, 1);
}

static void a_pod_that_is_being_deleted_says_so(void **state)
{
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

static void a_pod_without_a_name_is_refused_by_its_place(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "{}", "items[0]: metadata is not an object" },
		{ "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}",
		  "items[0]: metadata:1: a key stands twice" },
		{ "{\"metadata\":{\"name\":\"a\\u0000b\"}}", "items[0]: metadata:1: holds a NUL" },
		{ "{\"metadata\":{\"name\":\"\xff\"}}", "items[0]: metadata:1: is not UTF-8" },
		{ "{\"metadata\":7,\"spec\":{}}", "items[0]: metadata is not an object" },
		{ "{\"metadata\":{\"namespace\":\"n\"},\"spec\":{}}",
		  "items[0]: metadata.name is not a string" },
		{ "{\"metadata\":{\"name\":\"\",\"namespace\":\"n\"},\"spec\":{}}",
		  "metadata.name is not a string" },
		{ "{" META
		  ",\"spec\":{},\"status\":{\"phase\":\"Failed\"}},{\"metadata\":{\"name\":\"p\"}}",
		  "items[1]: metadata.namespace is not a string" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(*state, cases[i].text, cases[i].why);
}

#define LIMIT(text)                                                                                \
	"{" META                                                                                   \
	",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"a/b\":" text      \
	"}}}]}}"

static void what_is_wrong_with_one_pod_is_that_pods_affair(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "{" META "}", "spec is not an object" },
		{ "{" META ",\"spec\":null}", "spec is not an object" },
		{ "{" META ",\"spec\":{},\"spec\":{}}", "spec is there twice" },
		{ "{" META ",\"spec\":{\"containers\":[{\"name\":\"\\u0000\"}]}}",
		  "spec:1: holds a NUL" },
		{ "{" META ",\"spec\":{\"containers\":[{\"name\":\"\xff\"}]}}",
		  "spec:1: is not UTF-8" },
		{ "{" META ",\"spec\":{},\"status\":{\"phase\":\"\\u0000\"}}",
		  "status:1: holds a NUL" },
		{ "{" META ",\"spec\":{\"containers\":{}}}", "spec.containers is not a list" },
		{ "{" META ",\"spec\":{\"initContainers\":1}}",
		  "spec.initContainers is not a list" },
		{ "{" META ",\"spec\":{\"containers\":[1]}}",
		  "spec.containers[0].name is not a string" },
		{ LIMIT("\"1.5\""),
		  "spec.containers[0].resources.limits.a/b is not a whole number" },
		{ LIMIT("\"some\""), "limits.a/b is not a whole number" },
		{ LIMIT("\"1500m\""), "limits.a/b is not a whole number" },
		{ LIMIT("-1"), "limits.a/b is not a whole number" },
		{ LIMIT("{}"), "limits.a/b is not a whole number" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_unread(*state, cases[i].text, cases[i].why);
}

static void counts_are_read_however_the_api_server_keeps_them(void **state)
{
	static const char *const limits[] = { LIMIT("\"+1\""), LIMIT("\"1.\""), LIMIT("\"10e-1\""),
					      LIMIT("\"1000m\""), LIMIT("1") };

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		assert_int_equal(read_pod(*state, limits[i])->containers[0].limits[0].count, 1);
	assert_int_equal(read_pod(*state, LIMIT("\"5e-0\""))->containers[0].limits[0].count, 5);
	assert_int_equal(read_pod(*state, LIMIT("\"1.500k\""))->containers[0].limits[0].count,
			 1500);
}

/* Each '#' is the number of the copy. */
static void put_numbered(struct strbuf *text, const char *what, size_t i)
{
	for (; *what; what++) {
		if (*what == '#')
			strbuf_put_int(text, (int64_t)i);
		else
			strbuf_putc(text, *what);
	}
}

static void repeat(struct strbuf *text, const char *what, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		strbuf_puts(text, i ? "," : "");
		put_numbered(text, what, i);
	}
}

/* m containers, each with n of `what` between begin and end. */
static char *large(const char *begin, const char *what, const char *end, size_t m, size_t n)
{
	struct strbuf text = STRBUF_INIT;

	strbuf_puts(&text, "{" META ",\"spec\":{\"containers\":[");
	for (size_t i = 0; i < m; i++) {
		strbuf_puts(&text, i ? "," : "");
		put_numbered(&text, begin, i);
		repeat(&text, what, n);
		strbuf_puts(&text, end);
	}
	strbuf_puts(&text, "]}}");
	return strbuf_steal(&text);
}

#define CLAIMS "{\"name\":\"c#\",\"resources\":{\"claims\":["
#define LIMITS "{\"name\":\"c#\",\"resources\":{\"limits\":{"

static void a_pod_that_asks_for_too_much_is_left_out_by_name(void **state)
{
	static const struct {
		const char *begin, *what, *end;
		size_t m, n;
		const char *why;
	} cases[] = {
		{ CLAIMS, "{\"name\":\"a#\"}", "]}}", 1000, 100,
		  "spec takes more than 32768 bytes" },
		{ CLAIMS, "{\"name\":\"a#\"}", "]}}", 10, 60,
		  "more limits and claims than are read" },
		{ CLAIMS, "{\"name\":\"a#\"}", "]}}", 1, 600,
		  "more limits and claims than are read" },
		{ LIMITS, "\"x.example/r#\":\"0\"", "}}}", 1, 8500,
		  "spec takes more than 32768 bytes" },
		{ LIMITS, "\"x.example/r#\":\"1\"", "}}}", 2, 400,
		  "more limits and claims than are read" },
		{ LIMITS, "\"x.example/a-name-of-some-length-#\":\"1\"", "}}}", 4, 60,
		  "ask for more than is kept of one pod" },
		{ CLAIMS, "{}", "]}}", 600, 0, "more containers than are read" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *text =
			large(cases[i].begin, cases[i].what, cases[i].end, cases[i].m, cases[i].n);

		assert_unread(*state, text, cases[i].why);
	}
}

static void claims_of_a_pod_without_end_are_left_out_by_name(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_puts(&text, "{" META ",\"spec\":{\"containers\":[],\"resourceClaims\":[");
	repeat(&text, "{\"name\":\"a#\"}", SPEC_CLAIMS_MAX + 1);
	strbuf_puts(&text, "]}}");
	assert_unread(*state, text.s, "more ResourceClaims than are read");
}

/* Of any size, and the pod is known. */
static void what_does_not_matter_costs_a_pod_nothing(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct spec_pod *p;

	strbuf_puts(&text, "{\"metadata\":{\"annotations\":{");
	repeat(&text, "\"a#\":\"v\"", 20000);
	strbuf_puts(&text, "},\"labels\":{");
	repeat(&text, "\"a#\":\"v\"", 20000);
	strbuf_puts(&text, "},\"name\":\"p\",\"namespace\":\"n\",\"managedFields\":");
	for (int i = 0; i < 5000; i++)
		strbuf_puts(&text, "[{\"f:x\":");
	strbuf_puts(&text, "0");
	for (int i = 0; i < 5000; i++)
		strbuf_puts(&text, "}]");
	strbuf_puts(&text, "},\"spec\":{\"ephemeralContainers\":[");
	repeat(&text, "{\"name\":\"e#\"}", 5000);
	strbuf_puts(&text, "],\"volumes\":[");
	repeat(&text, "{\"name\":\"v#\",\"emptyDir\":{}}", 20000);
	strbuf_puts(&text, "],\"containers\":[{\"name\":\"c\",\"env\":[");
	repeat(&text, "{\"name\":\"E#\",\"value\":\"\\\\u003c\"}", 20000);
	strbuf_puts(
		&text,
		"],\"resources\":{\"requests\":{\"a/b\":\"bad\"},\"limits\":{\"a/b\":\"2\"}}}]}}");
	assert_true(text.len > 1500000);
	p = read_pod(*state, text.s);
	assert_null(p->unread);
	assert_int_equal(p->containers[0].limits[0].count, 2);
}

static void a_node_full_of_the_largest_pods_is_known(void **state)
{
	_cleanup_free_ char *text = large(LIMITS, "\"x.example/resource-#\":\"1\"", "}}}", 20, 5);
	struct fixture *f = *state;

	for (int i = 0; i < 300; i++)
		assert_null(read_pod(f, text)->unread);
	assert_true(arena_used(f->arena) < SPEC_LIST_BYTES_MAX);
}

/* Small ones: their places count. */
static void pods_without_end_are_bounded_with_the_array_that_has_them(void **state)
{
	static const char text[] = "{" META ",\"spec\":{}}";
	struct fixture *f = *state;
	int r = 0;

	while (r == 0 && f->pods.list.n < SPEC_LIST_BYTES_MAX / sizeof(*f->pods.list.v))
		r = add(f, text);
	assert_int_equal(r, -EFBIG);
	assert_non_null(strstr(f->err.msg, "take more than"));
	assert_true(arena_used(f->arena) + f->pods.list.cap * sizeof(*f->pods.list.v) <=
		    SPEC_LIST_BYTES_MAX);
	assert_true(f->pods.list.n > 5000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_pod_is_read_with_its_containers_in_the_order_of_the_kubelet),
		T(a_container_names_its_parts_of_resource_claims),
		T(a_pod_that_ended_is_no_pod_of_the_list),
		T(a_pod_that_is_being_deleted_says_so),
		T(a_static_pod_has_no_time_of_creation),
		T(a_limit_of_zero_asks_for_nothing),
		T(a_pod_without_a_name_is_refused_by_its_place),
		T(what_is_wrong_with_one_pod_is_that_pods_affair),
		T(counts_are_read_however_the_api_server_keeps_them),
		T(a_pod_that_asks_for_too_much_is_left_out_by_name),
		T(claims_of_a_pod_without_end_are_left_out_by_name),
		T(what_does_not_matter_costs_a_pod_nothing),
		T(a_node_full_of_the_largest_pods_is_known),
		T(pods_without_end_are_bounded_with_the_array_that_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
