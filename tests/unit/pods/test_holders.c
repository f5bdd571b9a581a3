#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kubemsg/podspec.h"
#include "pods/holders.h"
#include "pods/pods-internal.h"

#define RES "rdma/vf"
#define GPU "nvidia.com/gpu"

static struct holders *h;
static int64_t now_ms = 1;

static int setup(void **state)
{
	(void)state;
	h = pods_holders_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pods_holders_free(h);
	return 0;
}

static void hear(bool all, const char *name, struct pod_list pods)
{
	pods_holders_hear(h, &(struct pods_said) { .all = all,
						   .ns = "default",
						   .name = name,
						   .pods = &pods,
						   .asked_ms = now_ms });
}

/* A pod with one container c; NULL: it holds none of it. */
static void pod_holds(const char *name, const char *gpu, const char *vf, bool alone)
{
	struct held held[2];
	struct pod_container c = { .name = "c", .held = held };
	struct pod pod = { "default", name, &c, 1 };

	if (gpu)
		held[c.n_held++] = (struct held) { GPU, { &gpu, 1 } };
	if (vf)
		held[c.n_held++] = (struct held) { RES, { &vf, 1 } };
	hear(alone, name, (struct pod_list) { &pod, 1 });
}

static const struct spec_limit both[] = { { GPU, 1 }, { RES, 1 } };

static struct spec_pod spec_of(const char *name, const struct spec_container *c)
{
	return (struct spec_pod) {
		.ns = "default", .name = name, .containers = c, .n_containers = 1
	};
}

static const struct ids *held_by(const char *pod, const char *resource)
{
	const struct pod *p = kubemsg_pods_find(pods_holders_view(h, NULL), "default", pod);

	return p ? kubemsg_held(pods_find_container(p, "c"), resource) : NULL;
}

static void list_replaces_everything(void **state)
{
	(void)state;
	pod_holds("a", "GPU-0", "x", true);
	pod_holds("b", "GPU-1", NULL, true);
	assert_int_equal(pods_holders_view(h, NULL)->n, 1);
	assert_null(held_by("a", GPU));
	assert_string_equal(held_by("b", GPU)->v[0], "GPU-1");
}

static void get_replaces_one_pod(void **state)
{
	(void)state;
	pod_holds("a", "GPU-0", NULL, true);
	pod_holds("b", "GPU-1", NULL, false);
	pod_holds("a", "GPU-0", "x", false);
	assert_int_equal(pods_holders_view(h, NULL)->n, 2);
	assert_string_equal(held_by("a", RES)->v[0], "x");
	assert_string_equal(held_by("b", GPU)->v[0], "GPU-1");
	hear(false, "a", (struct pod_list) { NULL, 0 });
	hear(false, "nobody", (struct pod_list) { NULL, 0 });
	assert_int_equal(pods_holders_view(h, NULL)->n, 1);
}

static void what_was_asked_for_before_the_last_list_is_no_news(void **state)
{
	(void)state;
	now_ms = 5;
	pod_holds("a", "GPU-0", NULL, true);
	now_ms = 4;
	pod_holds("b", "GPU-1", NULL, true);
	pod_holds("c", "GPU-2", NULL, false);
	now_ms = 5;
	assert_int_equal(pods_holders_view(h, NULL)->n, 1);
	assert_non_null(held_by("a", GPU));
	pod_holds("c", "GPU-2", NULL, false);
	assert_int_equal(pods_holders_view(h, NULL)->n, 2);
}

static void picture_stays_over_hundreds_of_gets(void **state)
{
	(void)state;
	pod_holds("a", "GPU-0", "x", true);
	for (int i = 0; i < 700; i++)
		pod_holds(i % 2 ? "b" : "c", "GPU-1", i % 3 ? "y" : NULL, false);
	assert_int_equal(pods_holders_view(h, NULL)->n, 3);
	assert_string_equal(held_by("a", RES)->v[0], "x");
	assert_string_equal(held_by("c", RES)->v[0], "y");
	assert_null(held_by("b", RES));
	assert_null(kubemsg_pods_find(pods_holders_view(h, NULL), "other", "a"));
}

static void pods_that_are_gone_hold_nothing(void **state)
{
	const struct spec_container c = { "c", SPEC_APP, both, 2, NULL, 0 };
	struct spec_pod specs[1] = { spec_of("a", &c) };

	(void)state;
	pod_holds("a", "GPU-0", "x", true);
	pod_holds("b", "GPU-1", "y", false);
	pod_holds("c", "GPU-2", "z", false);
	assert_int_equal(pods_holders_view(h, &(struct spec_list) { specs, 1 })->n, 1);
	assert_int_equal(pods_holders_view(h, NULL)->n, 1);
	assert_non_null(held_by("a", RES));
}

static void pod_whose_containers_are_not_known_goes_on_holding_what_it_has(void **state)
{
	struct spec_pod large = { .ns = "default", .name = "a", .unread = "too large" };

	(void)state;
	pod_holds("a", "GPU-0", "x", true);
	assert_int_equal(pods_holders_view(h, &(struct spec_list) { &large, 1 })->n, 1);
	assert_non_null(held_by("a", RES));
}

static void picture_is_complete_when_everybody_has_what_he_asks_for(void **state)
{
	const struct spec_container c = { "c", SPEC_APP, both, 2, NULL, 0 },
				    gpu_only = { "c", SPEC_APP, both, 1, NULL, 0 },
				    plain = { "c", SPEC_APP, NULL, 0, NULL, 0 };
	struct spec_pod specs[3] = { spec_of("a", &c), spec_of("b", &gpu_only),
				     spec_of("p", &plain) };
	struct spec_list list = { specs, 3 };
	struct spec_candidate next = { &specs[0], &c, false };
	struct spec_candidates nobody = { .n = 0 }, a_is_next = { .v = &next, .n = 1 };

	(void)state;
	assert_false(pods_holders_complete(h, &list, &nobody)); /* nobody ever told */
	pod_holds("a", "GPU-0", "x", true);
	assert_false(pods_holders_complete(h, &list, &nobody)); /* b has come since */
	pod_holds("b", "GPU-1", NULL, false);
	assert_true(pods_holders_complete(h, &list, &nobody));
	pod_holds("a", NULL, "x", false); /* got its VF first, and has its GPU by now */
	assert_false(pods_holders_complete(h, &list, &nobody));
	assert_true(pods_holders_complete(h, &list, &a_is_next));
	next.stale = true;
	assert_false(pods_holders_complete(h, &list, &a_is_next));
	pod_holds("a", "GPU-0", "x", false);
	assert_true(pods_holders_complete(h, &list, &nobody));
	specs[2].unread = "too large"; /* what it asks for may have come since */
	assert_false(pods_holders_complete(h, &list, &nobody));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(list_replaces_everything),
		T(get_replaces_one_pod),
		T(what_was_asked_for_before_the_last_list_is_no_news),
		T(picture_stays_over_hundreds_of_gets),
		T(pods_that_are_gone_hold_nothing),
		T(pod_whose_containers_are_not_known_goes_on_holding_what_it_has),
		T(picture_is_complete_when_everybody_has_what_he_asks_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
