/* The bound for VFs before GPUs that are drawn, against brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "choice/choice.h"
#include "lab.h"
#include "pods/identify.h"
#include "unit/sim/bound.h"
#include "sim/devman-internal.h"

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

/* A container with v VFs for k GPUs that are drawn among the free ones. */
static void add_expectation(const struct lab *lab, struct bound *b, uint64_t *random, size_t v,
			    size_t k, double *expected, double *bound)
{
	int positions[16], busy[16], free_vfs[64], chosen[8], n_gpus = (int)lab->node->inv->n_gpu;
	size_t n_vfs = lab->pool->n_devs;
	struct bound_in in = { .free_gpus = positions,
			       .free_vfs = free_vfs,
			       .chosen = chosen,
			       .n_chosen = v,
			       .gpus = k };
	struct identified who = { .n_drawn = k, .busy_gpus.v = busy };
	struct preferred_container ask = { .size = (int)v };
	double one, most;
	struct ids ids;

	for (int i = 0; i < n_gpus; i++)
		positions[i] = i;
	for (size_t i = 0; i < n_vfs; i++)
		free_vfs[i] = (int)i;
	sim_random_shuffle(random, positions, (size_t)n_gpus, sizeof(*positions));
	sim_random_shuffle(random, free_vfs, n_vfs, sizeof(*free_vfs));
	in.n_free_gpus = k + sim_random_below(random, (uint64_t)n_gpus - k + 1);
	for (size_t i = in.n_free_gpus; i < (size_t)n_gpus; i++)
		busy[who.busy_gpus.n++] = lab->node->inv->gpu[positions[i]].pci;
	in.n_free_vfs = v + sim_random_below(random, n_vfs - v + 1);
	ask.available.v = arena_array(lab->arena, in.n_free_vfs, sizeof(char *));
	while (ask.available.n < in.n_free_vfs) {
		ask.available.v[ask.available.n] = lab->pool->devs[free_vfs[ask.available.n]].id;
		ask.available.n++;
	}
	ids = choice_decide(lab->node, lab->pool, &ask, &who, NULL, lab->arena, NULL);
	assert_int_equal(ids.n, v);
	for (size_t i = 0; i < v; i++)
		chosen[i] = (int)(pool_find(lab->pool, ids.v[i]) - lab->pool->devs);
	assert_true(sim_bound_judge(b, &in, &one, &most));
	*expected += one;
	*bound += most;
}

static void nobody_could_expect_more_of_drawn_gpus(void **state)
{
	static const char *const machines[] = { HGX, DGX_A100, MI300X, P4D, TIGHT };
	static const size_t shapes[][2] = { { 1, 1 }, { 2, 2 }, { 2, 4 }, { 4, 2 }, { 4, 4 } };

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
		_cleanup_lab_ struct lab lab = lab_new(machines[m]);
		int gpus[16];
		size_t n_gpus = (size_t)gpu_list(&lab, gpus);
		struct bound *b = sim_bound_new(lab.node, lab.pool, gpus, n_gpus, lab.arena);
		double expected = 0, bound = 0;
		uint64_t random = 1;

		for (size_t i = 0; i < CASES; i++) {
			const size_t *shape = shapes[i % ARRAY_LEN(shapes)];

			if (shape[0] <= lab.pool->n_devs && shape[1] <= n_gpus)
				add_expectation(&lab, b, &random, shape[0], shape[1], &expected,
						&bound);
		}
		assert_true(expected <= bound + 1e-6);
		assert_true(expected >= 0.99 * bound); /* in states that no day leaves, too */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_brute_force),
		cmocka_unit_test(one_of_two_gpus_is_guessed_every_second_time),
		cmocka_unit_test(what_is_too_much_to_enumerate_is_said),
		cmocka_unit_test(nobody_could_expect_more_of_drawn_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
