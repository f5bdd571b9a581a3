/* What a container's VFs are worth, against brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "lab.h"
#include "sim/devman-internal.h"
#include "sim/score-internal.h"

#define CASES 1500

struct question {
	int gpus[4], free_vfs[7], vfs[4];
	int n_gpus, n_free, n_vfs;
};

static int draw_some(uint64_t *random, int *from, int n_from, int n, int *ret)
{
	sim_random_shuffle(random, from, (size_t)n_from, sizeof(*from));
	memcpy(ret, from, (size_t)n * sizeof(*ret));
	return n;
}

static struct question draw(const struct lab *lab, uint64_t *random)
{
	const struct hw_inventory *inv = lab->node->inv;
	int gpus[64], vfs[128], n_vfs = (int)lab->pool->n_devs, most;
	struct question q = { 0 };

	for (size_t i = 0; i < inv->n_gpu; i++)
		gpus[i] = inv->gpu[i].pci;
	for (int i = 0; i < n_vfs; i++)
		vfs[i] = i;
	q.n_gpus = draw_some(random, gpus, (int)inv->n_gpu, 1 + (int)sim_random_below(random, 4),
			     q.gpus);
	most = n_vfs < 7 ? n_vfs : 7;
	q.n_free = draw_some(random, vfs, n_vfs, 1 + (int)sim_random_below(random, (uint64_t)most),
			     q.free_vfs);
	most = q.n_free < 4 ? q.n_free : 4;
	q.n_vfs = draw_some(random, q.free_vfs, q.n_free,
			    1 + (int)sim_random_below(random, (uint64_t)most), q.vfs);
	return q;
}

static void check(const struct lab *lab, const struct question *q)
{
	struct score_in in = { .node = lab->node,
			       .pool = lab->pool,
			       .gpus.v = q->gpus,
			       .gpus.n = (size_t)q->n_gpus,
			       .free_vfs = q->free_vfs,
			       .n_free = (size_t)q->n_free };
	struct score s = sim_score_container(&in, q->vfs, (size_t)q->n_vfs, lab->arena);
	struct brute got = brute_assign(lab, q->gpus, q->n_gpus, q->vfs, q->n_vfs);
	struct brute best = brute_choose(lab, q->gpus, q->n_gpus, q->free_vfs, q->n_free, q->n_vfs);

	assert_int_equal(s.pairs, q->n_gpus > q->n_vfs ? q->n_gpus : q->n_vfs);
	assert_int_equal(sim_score_rank(&s.got), got.best);
	assert_int_equal(sim_score_rank(&s.optimum), best.best);
	assert_true(brute_has(&got, &s.got));
	assert_true(brute_has(&best, &s.optimum));
	if (got.n_codes == 1 && best.n_codes == 1)
		assert_int_equal(s.best, brute_at_best(&got, got.codes[0], &best, best.codes[0]));
	else
		assert_in_range(s.best, got.best == best.best ? s.pairs : 0, s.pairs);
}

static void equals_brute_force(void **state)
{
	static const char *const machines[] = { HGX, DGX_A100, MI300X, P4D, TIGHT };
	uint64_t random = 1;

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
		for (int i = 0; i < CASES / 5; i++) {
			_cleanup_lab_ struct lab lab = lab_new(machines[m]);
			struct question q = draw(&lab, &random);

			check(&lab, &q);
		}
	}
}

static void a_pair_counts_once_for_each_of_the_optimum(void **state)
{
	static const struct {
		struct score_classes got, optimum;
		size_t best;
	} table[] = {
		{ { { 2, 0, 0, 0, 0 } }, { { 2, 0, 0, 0, 0 } }, 2 },
		{ { { 0, 0, 0, 2, 0 } }, { { 2, 0, 0, 0, 0 } }, 0 },
		{ { { 1, 0, 0, 1, 0 } }, { { 2, 0, 0, 0, 0 } }, 1 },
		{ { { 0, 0, 0, 2, 0 } }, { { 1, 0, 0, 1, 0 } }, 1 },
		{ { { 1, 0, 0, 0, 3 } }, { { 2, 0, 0, 0, 2 } }, 3 },
		/* the same total by another way */
		{ { { 0, 0, 2, 0, 0 } }, { { 1, 0, 0, 0, 1 } }, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(sim_score_best(&table[i].got, &table[i].optimum), table[i].best);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_brute_force),
		cmocka_unit_test(a_pair_counts_once_for_each_of_the_optimum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
