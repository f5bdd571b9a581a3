/* The bound for VFs before GPUs that are drawn, against brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "lab.h"
#include "sim/bound-internal.h"
#include "sim/random.h"

#define CASES 60

static int gpu_list(const struct lab *lab, int *ret)
{
	for (size_t i = 0; i < lab->node->inv->n_gpu; i++)
		ret[i] = lab->node->inv->gpu[i].pci;
	return (int)lab->node->inv->n_gpu;
}

/* Pairs at their best, over every set of k of the GPUs; ret_sets: how many sets. */
static int over_draws(const struct lab *lab, const int *gpus, int n_gpus, int k,
		      const int *free_vfs, int n_free, const int *vfs, int v, int *ret_sets)
{
	int sum = 0;

	*ret_sets = 0;
	for (unsigned set = 0; set < 1u << n_gpus; set++) {
		int drawn[BRUTE_MAX], n = 0;
		struct brute got, best;

		if (__builtin_popcount(set) != k)
			continue;
		for (int i = 0; i < n_gpus; i++) {
			if (set >> i & 1)
				drawn[n++] = gpus[i];
		}
		got = brute_assign(lab, drawn, n, vfs, v);
		best = brute_choose(lab, drawn, n, free_vfs, n_free, v);
		sum += brute_at_best(&got, got.codes[0], &best, best.codes[0]);
		++*ret_sets;
	}
	return sum;
}

static double best_over_draws(const struct lab *lab, const int *gpus, int n_gpus, int k,
			      const int *free_vfs, int n_free, int v)
{
	int best = 0, sets = 1;

	for (unsigned set = 0; set < 1u << n_free; set++) {
		int vfs[BRUTE_MAX], n = 0, sum;

		if (__builtin_popcount(set) != v)
			continue;
		for (int i = 0; i < n_free; i++) {
			if (set >> i & 1)
				vfs[n++] = free_vfs[i];
		}
		sum = over_draws(lab, gpus, n_gpus, k, free_vfs, n_free, vfs, n, &sets);
		best = sum > best ? sum : best;
	}
	return (double)best / sets;
}

/* Machines where equal totals have equal classes: the optimum's classes are no matter of taste. */
static void equals_brute_force(void **state)
{
	static const char *const machines[] = { DGX_A100, P4D, TIGHT };
	uint64_t random = 7;

	(void)state;
	for (int i = 0; i < CASES; i++) {
		_cleanup_lab_ struct lab lab = lab_new(machines[i % 3]);
		int gpus[16], positions[16], free_vfs[64], free_gpus[16],
			n_gpus = gpu_list(&lab, gpus), sets;
		int n_free_gpus, n_free, v, k, n_vfs = (int)lab.pool->n_devs;
		struct bound *b =
			sim_bound_new(lab.node, lab.pool, gpus, (size_t)n_gpus, lab.arena);
		struct bound_in in = { .free_gpus = positions,
				       .free_vfs = free_vfs,
				       .chosen = free_vfs };
		double expected, bound;

		for (int g = 0; g < n_gpus; g++)
			positions[g] = g;
		for (int f = 0; f < n_vfs; f++)
			free_vfs[f] = f;
		sim_random_shuffle(&random, positions, (size_t)n_gpus, sizeof(*positions));
		sim_random_shuffle(&random, free_vfs, (size_t)n_vfs, sizeof(*free_vfs));
		n_free_gpus = 2 + (int)sim_random_below(&random, 3);
		n_free = n_vfs < 6 ? n_vfs : 6;
		v = 1 + (int)sim_random_below(&random, 2);
		k = 1 + (int)sim_random_below(&random, 2);
		for (int g = 0; g < n_free_gpus; g++)
			free_gpus[g] = gpus[positions[g]];
		in.n_free_gpus = (size_t)n_free_gpus;
		in.n_free_vfs = (size_t)n_free;
		in.n_chosen = (size_t)v;
		in.gpus = (size_t)k;
		assert_true(sim_bound_judge(b, &in, &expected, &bound));
		assert_float_equal(expected,
				   (double)over_draws(&lab, free_gpus, n_free_gpus, k, free_vfs,
						      n_free, free_vfs, v, &sets) /
					   sets,
				   1e-9);
		assert_float_equal(
			bound,
			best_over_draws(&lab, free_gpus, n_free_gpus, k, free_vfs, n_free, v),
			1e-9);
	}
}

static void one_of_two_gpus_is_guessed_every_second_time(void **state)
{
	_cleanup_lab_ struct lab lab = lab_new("numa:2 root:1 switch:1 gpu:1 pf:1 vf:1");
	int gpus[2], positions[] = { 0, 1 }, vfs[] = { 0, 1 };
	struct bound_in in = { .free_gpus = positions,
			       .n_free_gpus = 2,
			       .free_vfs = vfs,
			       .n_free_vfs = 2,
			       .chosen = vfs,
			       .n_chosen = 1,
			       .gpus = 1 };
	struct bound *b;
	double expected, bound;

	(void)state;
	gpu_list(&lab, gpus);
	b = sim_bound_new(lab.node, lab.pool, gpus, 2, lab.arena);
	assert_true(sim_bound_judge(b, &in, &expected, &bound));
	assert_float_equal(expected, 0.5, 1e-9);
	assert_float_equal(bound, 0.5, 1e-9);
	in.n_free_gpus = 1; /* only one can come: it is known */
	assert_true(sim_bound_judge(b, &in, &expected, &bound));
	assert_float_equal(expected, 1, 1e-9);
	in.chosen = vfs + 1;
	assert_true(sim_bound_judge(b, &in, &expected, &bound));
	assert_float_equal(expected, 0, 1e-9);
	assert_float_equal(bound, 1, 1e-9);
}

static void what_is_too_much_to_enumerate_is_said(void **state)
{
	_cleanup_lab_ struct lab many = lab_new("numa:2 root:10 switch:1 gpu:1 pf:1 vf:4");
	_cleanup_lab_ struct lab wide = lab_new("numa:2 root:8 switch:1 gpu:1 pf:1 vf:8");
	int gpus[32], vfs[64];
	struct bound_in in = {
		.free_gpus = gpus, .free_vfs = vfs, .chosen = vfs, .n_chosen = 1, .gpus = 1
	};
	double expected, bound;

	(void)state;
	assert_false(sim_bound_judge(sim_bound_new(many.node, many.pool, gpus,
						   (size_t)gpu_list(&many, gpus), many.arena),
				     &in, &expected, &bound));
	in.n_chosen = 8;
	in.gpus = 8;
	assert_false(sim_bound_judge(sim_bound_new(wide.node, wide.pool, gpus,
						   (size_t)gpu_list(&wide, gpus), wide.arena),
				     &in, &expected, &bound));
	in.n_chosen = 9;
	assert_false(sim_bound_judge(sim_bound_new(wide.node, wide.pool, gpus,
						   (size_t)gpu_list(&wide, gpus), wide.arena),
				     &in, &expected, &bound));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_brute_force),
		cmocka_unit_test(one_of_two_gpus_is_guessed_every_second_time),
		cmocka_unit_test(what_is_too_much_to_enumerate_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
