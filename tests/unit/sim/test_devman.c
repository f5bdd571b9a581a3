/* Which devices of a resource a container gets, as the real kubelet has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "sim/devman.h"
#include "sim/devman-internal.h"

#define DEVICES 8

/* d0 … d7: four on node 0, then four on node 1. */
struct stockroom {
	struct arena *arena;
	struct device_list list;
	struct idset taken, reusable;
	uint64_t random;
	struct devman_pick pick;
};

static struct stockroom stockroom(size_t n_with_node)
{
	struct stockroom s = { .arena = arena_new(4096), .random = 1 };
	int64_t *nodes = arena_array(s.arena, DEVICES, sizeof(*nodes));

	s.list = (struct device_list) { arena_array(s.arena, DEVICES, sizeof(*s.list.v)), DEVICES };
	for (size_t i = 0; i < DEVICES; i++) {
		nodes[i] = i / 4;
		s.list.v[i] = (struct device) { .id = arena_printf(s.arena, "d%zu", i),
						.healthy = true,
						.nodes = &nodes[i],
						.n_nodes = i < n_with_node };
	}
	return s;
}

static void stockroom_done(struct stockroom *s)
{
	sim_idset_done(&s->taken);
	sim_idset_done(&s->reusable);
	arena_free(s->arena);
}
#define _cleanup_stockroom_ __attribute__((cleanup(stockroom_done)))

static enum devman_step begin(struct stockroom *s, size_t count, int affinity)
{
	struct devman_stock stock = { .devices = &s->list,
				      .taken = &s->taken,
				      .reusable = &s->reusable };
	uint64_t mask = (uint64_t)affinity;

	return sim_devman_begin(&s->pick, &stock, &s->taken, count, affinity ? &mask : NULL,
				&s->random, s->arena);
}

static void finish(struct stockroom *s, const char *a, const char *b)
{
	const char *v[] = { a, b };

	sim_devman_finish(&s->pick, &(struct ids) { .v = v, .n = 2 });
}

static bool has(const struct ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->n; i++) {
		if (!strcmp(ids->v[i], id))
			return true;
	}
	return false;
}

static void the_plugin_is_asked_about_all_that_is_free(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	sim_idset_add(&s.taken, "d0");
	s.list.v[7].healthy = false;
	assert_int_equal(begin(&s, 2, 0), DEVMAN_ASK);
	assert_int_equal(s.pick.ask.available.n, 6);
	assert_false(has(&s.pick.ask.available, "d0"));
	assert_false(has(&s.pick.ask.available, "d7"));
	assert_int_equal(s.pick.ask.must.n, 0);
	assert_int_equal(s.pick.ask.size, 2);
	finish(&s, "d5", "d2");
	assert_int_equal(s.pick.needed, 0);
	assert_true(has(&s.pick.picked, "d5") && has(&s.pick.picked, "d2"));
}

static void what_is_picked_is_taken_at_once(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	assert_int_equal(begin(&s, 2, 0), DEVMAN_ASK);
	finish(&s, "d5", "d2");
	assert_int_equal(s.taken.n, 2);
	assert_true(sim_idset_has(&s.taken, "d5") && sim_idset_has(&s.taken, "d2"));
}

static void a_preference_is_only_a_wish(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	sim_idset_add(&s.taken, "d5");
	assert_int_equal(begin(&s, 2, 0), DEVMAN_ASK);
	finish(&s, "d5", "nonsense");
	assert_int_equal(s.pick.picked.n, 2);
	assert_false(has(&s.pick.picked, "d5"));
	assert_false(has(&s.pick.picked, "nonsense"));
}

static void without_a_preference_the_draw_is_even(void **state)
{
	size_t drawn[DEVICES] = { 0 };
	uint64_t random = 3;

	(void)state;
	for (int i = 0; i < 800; i++) {
		_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

		s.random = random;
		assert_int_equal(begin(&s, 1, 0), DEVMAN_ASK);
		sim_devman_finish(&s.pick, NULL);
		assert_int_equal(s.pick.picked.n, 1);
		drawn[s.pick.picked.v[0][1] - '0']++;
		random = s.random;
	}
	for (size_t i = 0; i < DEVICES; i++)
		assert_in_range(drawn[i], 70, 130);
}

static void more_aligned_than_needed_are_offered_alone(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	assert_int_equal(begin(&s, 2, 1 << 1), DEVMAN_ASK);
	assert_int_equal(s.pick.ask.available.n, 4);
	finish(&s, "d0", "d6"); /* d0 is on the other node */
	assert_int_equal(s.pick.picked.n, 2);
	assert_true(has(&s.pick.picked, "d6"));
	assert_false(has(&s.pick.picked, "d0"));
}

static void exactly_the_aligned_ones_are_taken_unasked(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	assert_int_equal(begin(&s, 4, 1 << 1), DEVMAN_DONE);
	for (size_t i = 4; i < DEVICES; i++)
		assert_true(has(&s.pick.picked, s.list.v[i].id));
}

static void too_few_aligned_are_taken_all_and_the_rest_is_asked_for(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	assert_int_equal(begin(&s, 5, 1 << 1), DEVMAN_ASK);
	assert_int_equal(s.pick.ask.available.n, 8);
	assert_int_equal(s.pick.ask.must.n, 4);
	assert_int_equal(s.pick.ask.size, 5);
	finish(&s, "d3", "d4");
	assert_int_equal(s.pick.picked.n, 5);
	assert_true(has(&s.pick.picked, "d3"));
}

static void devices_without_a_node_come_last(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(6); /* d6, d7: none */

	(void)state;
	assert_int_equal(begin(&s, 5, 1 << 1), DEVMAN_ASK);
	sim_devman_finish(&s.pick, NULL);
	assert_true(has(&s.pick.picked, "d4") && has(&s.pick.picked, "d5"));
	assert_false(has(&s.pick.picked, "d6") || has(&s.pick.picked, "d7"));
}

static void an_init_containers_devices_are_taken_first(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	sim_idset_add(&s.reusable, "d3");
	sim_idset_add(&s.taken, "d3");
	assert_int_equal(begin(&s, 1, 0), DEVMAN_DONE);
	assert_string_equal(s.pick.picked.v[0], "d3");
	assert_int_equal(begin(&s, 2, 0), DEVMAN_ASK);
	assert_int_equal(s.pick.ask.must.n, 1);
	assert_true(has(&s.pick.ask.available, "d3"));
}

static void too_few_are_refused(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(DEVICES);

	(void)state;
	assert_int_equal(begin(&s, DEVICES + 1, 0), DEVMAN_SHORT);
	assert_int_equal(s.pick.available, DEVICES);
	assert_int_equal(s.taken.n, 0);
}

static void hints_tell_nodes_of_all_and_of_what_is_free(void **state)
{
	_cleanup_stockroom_ struct stockroom s = stockroom(6);
	struct devman_stock stock = { .devices = &s.list,
				      .taken = &s.taken,
				      .reusable = &s.reusable };
	struct numa_ask ask;

	(void)state;
	sim_idset_add(&s.taken, "d0");
	sim_idset_add(&s.reusable, "d5");
	ask = sim_devman_hint(&stock, 2, s.arena);
	assert_int_equal(ask.n_all, 8);
	assert_int_equal(ask.n_available, 7);
	assert_int_equal(ask.n_reusable, 1);
	assert_int_equal(ask.reusable[0], 1 << 1);
	assert_int_equal(ask.all[7], 0);
	assert_int_equal(sim_devman_nodes(&s.list), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_plugin_is_asked_about_all_that_is_free),
		cmocka_unit_test(what_is_picked_is_taken_at_once),
		cmocka_unit_test(a_preference_is_only_a_wish),
		cmocka_unit_test(without_a_preference_the_draw_is_even),
		cmocka_unit_test(more_aligned_than_needed_are_offered_alone),
		cmocka_unit_test(exactly_the_aligned_ones_are_taken_unasked),
		cmocka_unit_test(too_few_aligned_are_taken_all_and_the_rest_is_asked_for),
		cmocka_unit_test(devices_without_a_node_come_last),
		cmocka_unit_test(an_init_containers_devices_are_taken_first),
		cmocka_unit_test(too_few_are_refused),
		cmocka_unit_test(hints_tell_nodes_of_all_and_of_what_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
