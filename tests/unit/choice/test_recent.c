#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/arena.h"
#include "choice/choice.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "support/synth.h"

static const struct config cfg = { .n_pools = 0 };
static struct node *node;
static struct hw_pci rescanned_pci[1];
static const struct hw_inventory rescanned = { .pci = rescanned_pci, .n_pci = 1 };
static const char *ab[] = { "a", "b" }, *ba[] = { "b", "a" }, *just_a[] = { "a" };
static const struct ids ids_ab = { ab, 2 }, ids_ba = { ba, 2 }, ids_a = { just_a, 1 };

static struct arena *a;
static struct recent_answers *r;
static int gpu[2]; /* PCI indices */

static struct choice choice_for(const int *gpus, size_t n)
{
	return (struct choice) { .in = { .node = node, .gpus = { .v = gpus, .n = n }, .want = 2 },
				 .owner = { "default", "p", "u", "c", NULL },
				 .known = LEDGER_GPUS_KNOWN,
				 .source = "a test" };
}

static void add(int64_t now_ms, const struct ids *ids, const int *gpus, size_t n)
{
	struct choice c = choice_for(gpus, n);

	choice_recent_add(r, now_ms, ids, &c);
}

/* How many GPUs an answer was for; 0 when it is none. */
static size_t take(int64_t now_ms, const struct ids *ids, const struct hw_inventory *inv,
		   const int **ret)
{
	struct choice *c = choice_recent_take(r, now_ms, ids);
	struct gpu_set known = choice_known_gpus(c, inv, a);

	choice_free(c);
	*ret = known.v;
	return known.n;
}

static int setup(void **state)
{
	(void)state;
	a = arena_new(0);
	node = node_new(synth_inventory("switch:1 gpu:2"), &cfg, NULL);
	r = choice_recent_new();
	for (int i = 0; i < 2; i++)
		gpu[i] = node->inv->gpu[i].pci;
	rescanned_pci[0] = node->inv->pci[gpu[1]];
	add(1000, &ids_ab, gpu, 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	choice_recent_free(r);
	node_unref(node);
	arena_free(a);
	return 0;
}

static void same_ids_in_any_order_are_the_same_container(void **state)
{
	const int *gpus;

	(void)state;
	assert_int_equal(take(1001, &ids_ba, node->inv, &gpus), 2);
	assert_int_equal(gpus[0], gpu[0]);
	assert_int_equal(gpus[1], gpu[1]);
}

static void other_ids_are_not(void **state)
{
	(void)state;
	assert_null(choice_recent_take(r, 1001, &ids_a));
}

static void answer_counts_once(void **state)
{
	const int *gpus;

	(void)state;
	assert_int_equal(take(1001, &ids_ab, node->inv, &gpus), 2);
	assert_null(choice_recent_take(r, 1002, &ids_ab));
}

static void old_answer_does_not_count(void **state)
{
	(void)state;
	assert_null(choice_recent_take(r, 11001, &ids_ab));
}

static void newest_answer_for_the_same_ids_counts(void **state)
{
	const int *gpus;

	(void)state;
	add(1000, &ids_ba, &gpu[1], 1);
	assert_int_equal(take(1001, &ids_ab, node->inv, &gpus), 1);
	assert_int_equal(gpus[0], gpu[1]);
}

static void gpus_are_found_again_after_a_rescan(void **state)
{
	const int *gpus;

	(void)state;
	assert_int_equal(take(1001, &ids_ab, &rescanned, &gpus), 1); /* the first one is gone */
	assert_int_equal(gpus[0], 0);
}

static void predicted_gpus_are_not_known_for_sure(void **state)
{
	struct choice c = choice_for(gpu, 2), *back;

	(void)state;
	c.known = LEDGER_GPUS_PREDICTED;
	choice_recent_add(r, 1000, &ids_a, &c);
	back = choice_recent_take(r, 1001, &ids_a);
	assert_non_null(back);
	assert_int_equal(choice_known_gpus(back, node->inv, a).n, 0);
	choice_free(back);
	assert_int_equal(choice_known_gpus(NULL, node->inv, a).n, 0);
}

static void choice_comes_back_as_it_was(void **state)
{
	static const int available[] = { 3, 5 };
	struct choice c = choice_for(gpu, 1), *back;

	(void)state;
	c.in.available = available;
	c.in.n_available = 2;
	choice_recent_add(r, 1000, &ids_a, &c);
	back = choice_recent_take(r, 1001, &ids_a);
	assert_string_equal(back->owner.pod, "p");
	assert_string_equal(back->owner.uid, "u");
	assert_string_equal(back->source, "a test");
	assert_int_equal(back->in.n_available, 2);
	assert_int_equal(back->in.available[1], 5);
	assert_int_equal(back->in.want, 2);
	assert_ptr_equal(back->in.node, node);
	choice_free(back);
}

static void oldest_answers_make_room(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++) {
		const char *id[] = { arena_printf(a, "%d", i) };

		add(1000, &(struct ids) { id, 1 }, gpu, 1);
	}
	assert_null(choice_recent_take(r, 1001, &ids_ab));
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
		T(predicted_gpus_are_not_known_for_sure),
		T(choice_comes_back_as_it_was),
		T(oldest_answers_make_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
