/* The TopologyManager judges as the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/numa.h"

#define BOTH 3

/* Four devices on node 0, then four on node 1. */
static const uint64_t eight[] = { 1, 1, 1, 1, 2, 2, 2, 2 };
static const uint64_t nowhere[] = { 0, 0, 0, 0 };

static struct numa_ask ask(const uint64_t *all, size_t n, size_t first_free, size_t n_free,
			   size_t count)
{
	return (struct numa_ask) { .all = all,
				   .n_all = n,
				   .available = all + first_free,
				   .n_available = n_free,
				   .count = count };
}

static void policy_none_admits_without_affinity(void **state)
{
	struct numa_ask a = ask(eight, 8, 0, 0, 4);
	struct numa_verdict v = sim_numa_judge(NUMA_NONE, BOTH, &a, 1);

	(void)state;
	assert_true(v.admit);
	assert_false(v.has_affinity);
}

static void two_resources_meet_on_one_node(void **state)
{
	struct numa_ask asks[] = { ask(eight, 8, 2, 6, 3), ask(eight, 8, 0, 8, 3) };
	struct numa_verdict v = sim_numa_judge(NUMA_SINGLE_NODE, BOTH, asks, 2);

	(void)state;
	assert_true(v.admit);
	assert_true(v.has_affinity);
	assert_int_equal(v.affinity, 2);
}

static void single_node_rejects_what_needs_two(void **state)
{
	struct numa_ask a = ask(eight, 8, 0, 8, 6);

	(void)state;
	assert_false(sim_numa_judge(NUMA_SINGLE_NODE, BOTH, &a, 1).admit);
	assert_true(sim_numa_judge(NUMA_RESTRICTED, BOTH, &a, 1).admit);
}

static void restricted_rejects_a_spread_that_one_node_could_avoid(void **state)
{
	struct numa_ask a = ask(eight, 8, 2, 4, 3); /* two free on each node */
	struct numa_verdict v;

	(void)state;
	assert_false(sim_numa_judge(NUMA_RESTRICTED, BOTH, &a, 1).admit);
	v = sim_numa_judge(NUMA_BEST_EFFORT, BOTH, &a, 1);
	assert_true(v.admit);
	assert_int_equal(v.affinity, BOTH);
}

static void resources_without_topology_do_not_care(void **state)
{
	struct numa_ask asks[] = { ask(nowhere, 4, 0, 4, 2), ask(eight, 8, 0, 4, 4) };
	struct numa_verdict v = sim_numa_judge(NUMA_RESTRICTED, BOTH, asks, 2);

	(void)state;
	assert_true(v.admit);
	assert_int_equal(v.affinity, 1);
}

static void single_node_machine_gives_no_affinity(void **state)
{
	struct numa_ask a = ask(eight, 4, 0, 4, 2);
	struct numa_verdict v = sim_numa_judge(NUMA_SINGLE_NODE, 1, &a, 1);

	(void)state;
	assert_true(v.admit);
	assert_false(v.has_affinity);
}

static void too_few_devices_reject(void **state)
{
	struct numa_ask a = ask(eight, 8, 0, 2, 3);

	(void)state;
	assert_false(sim_numa_judge(NUMA_RESTRICTED, BOTH, &a, 1).admit);
	assert_true(sim_numa_judge(NUMA_BEST_EFFORT, BOTH, &a, 1).admit);
}

static void reusable_devices_pin_the_node(void **state)
{
	struct numa_ask a = ask(eight, 8, 0, 4, 2);
	static const uint64_t reused[] = { 2, 2 };
	struct numa_verdict v;

	(void)state;
	a.reusable = reused;
	a.n_reusable = 2;
	v = sim_numa_judge(NUMA_SINGLE_NODE, BOTH, &a, 1);
	assert_true(v.admit);
	assert_int_equal(v.affinity, 2);
}

static void unpreferred_merge_stays_as_narrow_as_the_widest_minimum(void **state)
{
	struct numa_ask asks[] = { ask(eight, 8, 0, 4, 2), ask(eight, 8, 4, 4, 2),
				   ask(eight, 8, 0, 8, 6) };
	struct numa_verdict v = sim_numa_judge(NUMA_BEST_EFFORT, BOTH, asks, 3);

	(void)state;
	assert_true(v.admit);
	assert_true(v.affinity != 0);
	assert_false(sim_numa_judge(NUMA_RESTRICTED, BOTH, asks, 3).admit);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(policy_none_admits_without_affinity),
		cmocka_unit_test(two_resources_meet_on_one_node),
		cmocka_unit_test(single_node_rejects_what_needs_two),
		cmocka_unit_test(restricted_rejects_a_spread_that_one_node_could_avoid),
		cmocka_unit_test(resources_without_topology_do_not_care),
		cmocka_unit_test(single_node_machine_gives_no_affinity),
		cmocka_unit_test(too_few_devices_reject),
		cmocka_unit_test(reusable_devices_pin_the_node),
		cmocka_unit_test(unpreferred_merge_stays_as_narrow_as_the_widest_minimum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
