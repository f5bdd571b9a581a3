#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "status/stats.h"

static void a_resource_is_counted_in_one_place_that_stays(void **state)
{
	struct stats *s = stats_new();
	struct stats_pool *b = stats_of(s, "rdma/b"), *a = stats_of(s, "rdma/a");

	(void)state;
	for (int i = 0; i < 100; i++) {
		char name[] = "rdma/x00";

		name[6] = (char)('0' + i / 10);
		name[7] = (char)('0' + i % 10);
		stats_of(s, name);
	}
	assert_ptr_equal(stats_of(s, "rdma/a"), a);
	assert_ptr_equal(stats_of(s, "rdma/b"), b);
	assert_ptr_not_equal(a, b);
	stats_free(s);
}

static void copies_are_by_name_and_do_not_follow(void **state)
{
	_cleanup_arena_ struct arena *arena = arena_new(1024);
	struct stats *s = stats_new();
	const struct stats_pool *const *v;
	size_t n;

	(void)state;
	stats_count_kubelet(stats_of(s, "rdma/b"));
	stats_count_choice(stats_of(s, "rdma/a"), LEDGER_GPUS_KNOWN);
	v = stats_copy(s, arena, &n);
	stats_count_kubelet(stats_of(s, "rdma/b"));
	stats_free(s);
	assert_int_equal(n, 2);
	assert_string_equal(v[0]->resource, "rdma/a");
	assert_int_equal(v[0]->choices[LEDGER_GPUS_KNOWN], 1);
	assert_string_equal(v[1]->resource, "rdma/b");
	assert_int_equal(v[1]->kubelets, 1);
}

static void where_nobody_looks_nothing_is_counted(void **state)
{
	struct stats_classes none = { 0 };

	(void)state;
	assert_null(stats_of(NULL, "rdma/vf"));
	stats_count_call(NULL, STATS_ALLOCATE, 0, 1);
	stats_count_choice(NULL, LEDGER_GPUS_KNOWN);
	stats_count_pairs(NULL, &none, &none);
	stats_count_kubelet(NULL);
	stats_free(NULL);
}

static void a_call_goes_into_the_bucket_of_its_time(void **state)
{
	static const struct {
		int64_t ns;
		size_t bucket;
	} table[] = {
		{ -1, 0 },
		{ 0, 0 },
		{ 100000, 0 },
		{ 100001, 1 },
		{ 999999, 3 },
		{ 10000000000, STATS_BUCKETS - 1 },
		{ 10000000001, STATS_BUCKETS },
		{ INT64_MAX / 2, STATS_BUCKETS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct stats_pool p = { 0 };
		const struct stats_histogram *h = &p.latency[STATS_ALLOCATE];

		stats_count_call(&p, STATS_ALLOCATE, 0, table[i].ns);
		assert_int_equal(h->n[table[i].bucket], 1);
		assert_int_equal(h->sum_ns, table[i].ns < 0 ? 0 : table[i].ns);
	}
	for (size_t i = 1; i < STATS_BUCKETS; i++)
		assert_true(stats_bounds_ns[i - 1] < stats_bounds_ns[i]);
}

static void a_code_that_grpc_does_not_have_is_unknown(void **state)
{
	struct stats *s = stats_new();
	struct stats_pool *p = stats_of(s, "rdma/vf");

	(void)state;
	stats_count_call(p, STATS_ALLOCATE, 14, 5);
	stats_count_call(p, STATS_ALLOCATE, 99, 5);
	assert_int_equal(p->calls[STATS_ALLOCATE][14], 1);
	assert_int_equal(p->calls[STATS_ALLOCATE][2], 1);
	assert_int_equal(p->latency[STATS_ALLOCATE].sum_ns, 10);
	stats_free(s);
}

/* The rule of sim/score-internal.h: min of both in each class, all where the sums of ranks are
 * equal. */
static void pairs_at_their_best_class_are_counted(void **state)
{
	static const struct {
		struct stats_classes got, best;
		uint64_t n_best;
	} table[] = {
		{ { { [TOPO_PIX] = 4 } }, { { [TOPO_PIX] = 4 } }, 4 },
		{ { { [TOPO_PIX] = 3, [TOPO_SYS] = 1 } }, { { [TOPO_PIX] = 4 } }, 3 },
		{ { { [TOPO_NODE] = 4 } }, { { [TOPO_PIX] = 4 } }, 0 },
		{ { { [TOPO_NODE] = 4 } }, { { [TOPO_NODE] = 4 } }, 4 },
		/* PXB + PXB is as much as PIX + PHB */
		{ { { [TOPO_PXB] = 2 } }, { { [TOPO_PIX] = 1, [TOPO_PHB] = 1 } }, 2 },
		{ { { [TOPO_PXB] = 1, [TOPO_SYS] = 1 } },
		  { { [TOPO_PIX] = 1, [TOPO_PXB] = 1 } },
		  1 },
		{ { { 0 } }, { { 0 } }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct stats *s = stats_new();
		struct stats_pool *p = stats_of(s, "rdma/vf");

		stats_count_pairs(p, &table[i].got, &table[i].best);
		assert_int_equal(p->pairs_best, table[i].n_best);
		for (int c = 0; c < TOPO_CLASS_MAX; c++)
			assert_int_equal(p->pairs[c], table[i].got.n[c]);
		stats_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_resource_is_counted_in_one_place_that_stays),
		cmocka_unit_test(copies_are_by_name_and_do_not_follow),
		cmocka_unit_test(where_nobody_looks_nothing_is_counted),
		cmocka_unit_test(a_call_goes_into_the_bucket_of_its_time),
		cmocka_unit_test(a_code_that_grpc_does_not_have_is_unknown),
		cmocka_unit_test(pairs_at_their_best_class_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
