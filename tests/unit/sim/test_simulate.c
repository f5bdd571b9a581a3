/* A day under every policy: what always has to be true, and what was promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "lab.h"
#include "sim/simulate.h"
#include "support/slow.h"

#define PODS 200

struct day {
	struct lab lab;
	size_t n;
	const struct sim_result *results;
};

static struct day run(const char *machine, uint64_t seed)
{
	struct day d = { .lab = lab_new(machine) };
	struct sim_in in = { .node = d.lab.node,
			     .pool = d.lab.pool,
			     .day = {
				     .pods = PODS, .seed = seed, .load_min = 60, .load_max = 95 } };

	d.results = sim_run(&in, &d.n, d.lab.arena);
	return d;
}

static void day_done(struct day *d)
{
	lab_done(&d->lab);
}
#define _cleanup_day_ __attribute__((cleanup(day_done)))

static const struct sim_result *result(const struct day *d, const char *name)
{
	for (size_t i = 0; i < d->n; i++) {
		if (!strcmp(d->results[i].policy->name, name))
			return &d->results[i];
	}
	fail_msg("there is no policy %s", name);
	return NULL;
}

static size_t total(const struct score_classes *c)
{
	size_t n = 0;

	for (int i = 0; i < ALIGN_RANKS; i++)
		n += c->n[i];
	return n;
}

/* One day on each, for all tests; a slow program has time for the first two. */
static const char *const machines[] = { HGX, DGX_A100, MI300X, P4D, TIGHT };
static struct day days[ARRAY_LEN(machines)];
static size_t n_machines = ARRAY_LEN(machines);

static int run_days(void **state)
{
	(void)state;
	if (is_slow())
		n_machines = 2;
	for (size_t m = 0; m < n_machines; m++)
		days[m] = run(machines[m], 1);
	return 0;
}

static int end_days(void **state)
{
	(void)state;
	for (size_t m = 0; m < n_machines; m++)
		day_done(&days[m]);
	return 0;
}

static void every_policy_places_every_pod(void **state)
{
	(void)state;
	for (size_t m = 0; m < n_machines; m++) {
		for (size_t i = 0; i < days[m].n; i++) {
			const struct sim_result *r = &days[m].results[i];

			assert_int_equal(r->pods, PODS);
			assert_int_equal(r->refused, 0);
			assert_int_equal(r->pairs, days[m].results[0].pairs);
			assert_int_equal(total(&r->got), r->pairs);
			assert_int_equal(total(&r->optimum), r->pairs);
			assert_true(r->best <= r->pairs);
			assert_true(sim_score_rank(&r->got) >= sim_score_rank(&r->optimum));
		}
	}
}

static void known_gpus_get_the_best_that_is_free(void **state)
{
	static const char *const right[] = { "early-gpu-first", "late", "late-vf-first",
					     "random-late-vf-first" };

	(void)state;
	for (size_t m = 0; m < n_machines; m++) {
		const struct sim_result *kubelet = result(&days[m], "kubelet");

		for (size_t i = 0; i < ARRAY_LEN(right); i++) {
			const struct sim_result *r = result(&days[m], right[i]);

			assert_int_equal(r->best, r->pairs);
			assert_int_equal(sim_score_rank(&r->got), sim_score_rank(&r->optimum));
		}
		assert_true(kubelet->best < kubelet->pairs);
	}
}

static void a_prediction_comes_true(void **state)
{
	const struct day *d = &days[1];
	const struct sim_result *r = result(d, "early-vf-first"), *mixed = result(d, "early");

	(void)state;
	assert_int_equal(r->gpu_first, 0);
	assert_int_equal(r->predicted, PODS);
	assert_int_equal(r->predicted_right, PODS);
	assert_int_equal(r->best, r->pairs);
	assert_int_equal(mixed->predicted, PODS - mixed->gpu_first);
	assert_int_equal(result(d, "early-gpu-first")->predicted, 0);
	assert_int_equal(result(d, "early-mute")->predicted, 0);
	assert_true(result(d, "early-no-specs")->predicted_right < PODS);
}

static void gpus_that_are_drawn_are_the_same_under_every_policy(void **state)
{
	const struct day *d = &days[0]; /* VFs are plenty here, so the optimum tells of GPUs only */
	const struct sim_result *kubelet = result(d, "random-kubelet");
	const struct sim_result *early = result(d, "random-early-vf-first");

	(void)state;
	assert_memory_equal(&kubelet->optimum, &early->optimum, sizeof(early->optimum));
	assert_memory_not_equal(&kubelet->optimum, &result(d, "kubelet")->optimum,
				sizeof(early->optimum));
}

static void the_same_seed_gives_the_same_figures(void **state)
{
	_cleanup_day_ struct day a = run(TIGHT, 6), b = run(TIGHT, 6), c = run(TIGHT, 7);

	(void)state;
	for (size_t i = 0; i < a.n; i++)
		assert_memory_equal(&a.results[i], &b.results[i], sizeof(a.results[i]));
	assert_int_not_equal(a.results[0].best, c.results[0].best);
}

static void a_machine_without_gpus_or_vfs_holds_no_pod(void **state)
{
	_cleanup_day_ struct day no_gpus = run("numa:1 root:1 pf:1 vf:4", 1);
	_cleanup_day_ struct day no_vfs = run("numa:1 root:1 gpu:1 pf:1", 1);

	(void)state;
	assert_null(no_gpus.results);
	assert_null(no_vfs.results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_places_every_pod),
		cmocka_unit_test(known_gpus_get_the_best_that_is_free),
		cmocka_unit_test(a_prediction_comes_true),
		cmocka_unit_test(gpus_that_are_drawn_are_the_same_under_every_policy),
		cmocka_unit_test(the_same_seed_gives_the_same_figures),
		cmocka_unit_test(a_machine_without_gpus_or_vfs_holds_no_pod),
	};

	return cmocka_run_group_tests(tests, run_days, end_days);
}
