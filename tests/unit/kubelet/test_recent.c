#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/arena.h"
#include "hw/inventory.h"
#include "kubelet/recent.h"

static struct hw_pci before[] = { { .bdf = { 0, 0x10, 0, 0 } }, { .bdf = { 0, 0x20, 0, 0 } } };
static struct hw_pci after[] = { { .bdf = { 0, 0x05, 0, 0 } }, { .bdf = { 0, 0x20, 0, 0 } } };
static const struct hw_inventory inv = { .pci = before, .n_pci = 2 },
				 rescanned = { .pci = after, .n_pci = 2 };
static const char *ab[] = { "a", "b" }, *ba[] = { "b", "a" }, *just_a[] = { "a" };
static const struct ids ids_ab = { ab, 2 }, ids_ba = { ba, 2 }, ids_a = { just_a, 1 };

static struct arena *a;
static struct recent *r;
static int *gpus;

static int setup(void **state)
{
	static const int both[] = { 0, 1 };

	(void)state;
	a = arena_new(0);
	r = recent_new();
	recent_add(r, 1000, &ids_ab, both, 2, &inv);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	recent_free(r);
	arena_free(a);
	return 0;
}

static void same_ids_in_any_order_are_the_same_container(void **state)
{
	(void)state;
	assert_int_equal(recent_take(r, 1001, &ids_ba, &inv, a, &gpus), 2);
	assert_int_equal(gpus[0], 0);
	assert_int_equal(gpus[1], 1);
}

static void other_ids_are_not(void **state)
{
	(void)state;
	assert_int_equal(recent_take(r, 1001, &ids_a, &inv, a, &gpus), 0);
}

static void answer_counts_once(void **state)
{
	(void)state;
	assert_int_equal(recent_take(r, 1001, &ids_ab, &inv, a, &gpus), 2);
	assert_int_equal(recent_take(r, 1002, &ids_ab, &inv, a, &gpus), 0);
}

static void old_answer_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(recent_take(r, 11001, &ids_ab, &inv, a, &gpus), 0);
}

static void newest_answer_for_the_same_ids_counts(void **state)
{
	static const int second[] = { 1 };

	(void)state;
	recent_add(r, 1000, &ids_ba, second, 1, &inv);
	assert_int_equal(recent_take(r, 1001, &ids_ab, &inv, a, &gpus), 1);
	assert_int_equal(gpus[0], 1);
}

static void gpus_are_found_again_after_a_rescan(void **state)
{
	(void)state;
	assert_int_equal(recent_take(r, 1001, &ids_ab, &rescanned, a, &gpus), 1); /* 10:00.0 is gone */
	assert_int_equal(gpus[0], 1);
}

static void oldest_answers_make_room(void **state)
{
	static const int first[] = { 0 };

	(void)state;
	for (int i = 0; i < 64; i++) {
		const char *id[] = { arena_printf(a, "%d", i) };

		recent_add(r, 1000, &(struct ids) { id, 1 }, first, 1, &inv);
	}
	assert_int_equal(recent_take(r, 1001, &ids_ab, &inv, a, &gpus), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(same_ids_in_any_order_are_the_same_container),
		T(other_ids_are_not),
		T(answer_counts_once),
		T(old_answer_does_not_count),
		T(newest_answer_for_the_same_ids_counts),
		T(gpus_are_found_again_after_a_rescan),
		T(oldest_answers_make_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
