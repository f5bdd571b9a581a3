/* Jobs with a pod on each of two nodes: how many of their VFs are on the same rails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "lab.h"
#include "sim/simulate.h"
#include "topo/rails.h"

#define POD(g, n, ...)                                                                             \
	{                                                                                          \
		.gpus = (g), .rail = (const int[]) { __VA_ARGS__ }, .n_vfs = (n)                   \
	}
#define PODS(list)                                                                                 \
	{                                                                                          \
		.pods = (list), .n = ARRAY_LEN(list)                                               \
	}

static void only_rails_that_both_have_are_the_same(void **state)
{
	const struct {
		struct rail_pod a, b;
		size_t same;
	} rows[] = {
		{ POD(2, 2, 0, 1), POD(2, 2, 0, 1), 2 },
		{ POD(2, 2, 0, 1), POD(2, 2, 1, 2), 1 },
		{ POD(2, 2, 0, 1), POD(2, 2, 2, 3), 0 },
		{ POD(2, 2, 0, 0), POD(2, 2, 0, 1), 1 }, /* one VF has one peer */
		{ POD(2, 4, 1, 1, 2, 2), POD(2, 4, 1, 1, 2, 3), 3 },
		{ POD(2, 2, -1, -1), POD(2, 2, -1, -1), 0 }, /* nobody knows that they are */
		{ POD(2, 2, -1, 5), POD(2, 2, -1, 5), 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_arena_ struct arena *arena = arena_new(256);
		struct rail_pod one = rows[i].a, other = rows[i].b;
		struct rail_day a = { .pods = &one, .n = 1 }, b = { .pods = &other, .n = 1 };
		struct rail_score s = sim_rail_days_compare(&a, &b, arena);

		assert_int_equal(s.vfs, one.n_vfs);
		assert_int_equal(s.same, rows[i].same);
	}
}

static void a_job_is_two_pods_of_one_size(void **state)
{
	_cleanup_arena_ struct arena *arena = arena_new(256);
	struct rail_pod here[] = { POD(1, 1, 0), POD(4, 2, 0, 1), POD(1, 1, 3), POD(1, 1, 2) };
	struct rail_pod there[] = { POD(2, 2, 0, 1), POD(1, 1, 0), POD(1, 1, 2) };
	struct rail_day a = PODS(here), b = PODS(there);
	struct rail_score s = sim_rail_days_compare(&a, &b, arena);

	(void)state;
	assert_int_equal(s.vfs, 2); /* the first two of 1 GPU and 1 VF */
	assert_int_equal(s.same, 1);
	s = sim_rail_days_compare(&b, &a, arena);
	assert_int_equal(s.vfs, 2);
	assert_int_equal(s.same, 1);
}

static void the_other_order_of_rails_is_that_of_addresses_backwards(void **state)
{
	_cleanup_lab_ struct lab lab = lab_new(HGX);
	struct topo_rails *back = sim_rails_against_addresses(lab.node);
	const struct pool *pool = lab.pool;

	(void)state;
	assert_true(sim_rails_are_known(lab.node, pool));
	for (size_t i = 0; i < pool->n_devs; i++)
		assert_int_equal(topo_rails_of(back, pool->devs[i].pci).rail +
					 topo_rails_of(lab.node->rails, pool->devs[i].pci).rail,
				 7);
	topo_rails_free(back);
}

static const struct sim_result *run(const struct lab *lab, const char *const *names, size_t n)
{
	const struct sim_policy *chosen[8], *all;
	struct sim_in in = { .node = lab->node,
			     .pool = lab->pool,
			     .day = { .pods = 200, .seed = 1, .load_min = 60, .load_max = 95 } };
	size_t n_all, found = 0;

	all = sim_policies(&n_all);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n_all; k++)
			if (!strcmp(all[k].name, names[i]))
				chosen[found++] = &all[k];
	assert_int_equal(found, n);
	return sim_run(&in, chosen, n, lab->arena);
}

/* Where every NIC of a socket is equally near, nothing but the rule lines up the rails. */
static void the_lowest_rails_line_up_nodes_that_number_otherwise(void **state)
{
	_cleanup_lab_ struct lab lab = lab_new("numa:2 root:1 switch:0 gpu:4 pf:8 vf:8");
	const struct sim_result *r = run(&lab, (const char *const[]) { "kubelet", "late" }, 2);

	(void)state;
	assert_int_equal(r[0].rails.vfs, r[0].rails_without.vfs);
	assert_int_equal(r[0].rails.same, r[0].rails_without.same); /* it has no rule */
	assert_int_equal(r[1].rails.vfs, r[1].rails_without.vfs);
	assert_true(r[1].rails.vfs > 100);
	assert_true(r[1].rails.same > r[0].rails.same);
	assert_true(r[1].rails.same > 2 * r[1].rails_without.same);
	assert_int_equal(r[1].best, r[1].pairs); /* the days beside it change nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_rails_that_both_have_are_the_same),
		cmocka_unit_test(a_job_is_two_pods_of_one_size),
		cmocka_unit_test(the_other_order_of_rails_is_that_of_addresses_backwards),
		cmocka_unit_test(the_lowest_rails_line_up_nodes_that_number_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
