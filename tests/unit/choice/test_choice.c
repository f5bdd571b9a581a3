#include "support/vfpool.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "choice/choice.h"

static struct ids all_ids(void)
{
	struct ids ids = { arena_array(a, m.pool->n_devs, sizeof(*ids.v)), m.pool->n_devs };

	for (size_t i = 0; i < ids.n; i++)
		ids.v[i] = id(ids.n - 1 - i);
	return ids;
}

static void assert_ids(struct ids got, struct ids want)
{
	assert_int_equal(got.n, want.n);
	for (size_t i = 0; i < want.n; i++)
		assert_string_equal(got.v[i], want.v[i]);
}

/* --- the list --- */

static void list_tells_numa_and_health(void **state)
{
	struct device_list l = choice_list(m.pool, a);

	(void)state;
	assert_int_equal(l.n, 16);
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(l.v[i].id, id(i));
		assert_true(l.v[i].healthy);
		assert_int_equal(l.v[i].n_nodes, 1);
		assert_int_equal(l.v[i].nodes[0], i / 8);
	}
}

static void list_without_topology_when_excluded_or_unknown(void **state)
{
	struct pool_dev dev = { .id = "x", .numa = -1 };
	struct pool_config quiet = { .exclude_topology = true };
	struct pool unknown = { &pool_cfg, &dev, 1 }, excluded = { &quiet, &dev, 1 };

	(void)state;
	assert_int_equal(choice_list(&unknown, a).v[0].n_nodes, 0);
	assert_false(choice_list(&unknown, a).v[0].healthy);
	dev.numa = 1;
	assert_int_equal(choice_list(&unknown, a).v[0].nodes[0], 1);
	assert_int_equal(choice_list(&excluded, a).v[0].n_nodes, 0);
}

/* --- preferred allocation --- */

static struct ids prefer(struct ids available, struct ids must, int size,
			 const struct identified *who)
{
	struct preferred_container req = { available, must, size };

	return choice_decide(m.node, m.pool, &req, who, NULL, a, NULL);
}

static void prefers_the_vfs_beside_the_gpus(void **state)
{
	int gpus[] = { synth_gpu(m.node->inv, 2), synth_gpu(m.node->inv, 7) };
	struct identified who = { .found = true, .gpus.v = gpus, .gpus.n = 2 };

	(void)state;
	/* GPU 2 is on the second switch, GPU 7 on the fourth: VFs 4-7 and 12-15 */
	assert_ids(prefer(all_ids(), ids_of(0), 2, &who), ids_of(2, id(4), id(12)));
}

static void answer_does_not_depend_on_the_order(void **state)
{
	struct ids up = all_ids(), down = all_ids();

	(void)state;
	for (size_t i = 0; i < up.n; i++)
		up.v[i] = id(i);
	assert_ids(prefer(up, ids_of(0), 5, NULL), prefer(down, ids_of(0), 5, NULL));
}

static void unknown_and_doubled_ids_are_ignored(void **state)
{
	struct ids ids = prefer(ids_of(4, "nonsense", id(3), id(3), "0000:ff:00.0"), ids_of(1, "x"),
				3, NULL);

	(void)state;
	assert_ids(ids, ids_of(1, id(3)));
}

static void must_ids_are_in_the_answer(void **state)
{
	int gpus[] = { synth_gpu(m.node->inv, 0) };
	struct identified who = { .found = true, .gpus.v = gpus, .gpus.n = 1 };
	struct ids ids = prefer(ids_of(3, id(0), id(1), id(2)), ids_of(1, id(8)), 2, &who);

	(void)state;
	assert_ids(ids, ids_of(2, id(0), id(8)));
}

static void more_musts_than_asked_are_all_kept(void **state)
{
	(void)state;
	assert_ids(prefer(all_ids(), ids_of(2, id(1), id(2)), 1, NULL), ids_of(2, id(1), id(2)));
}

static void sizes_out_of_range_are_clamped(void **state)
{
	(void)state;
	assert_int_equal(prefer(all_ids(), ids_of(0), -5, NULL).n, 0);
	assert_int_equal(prefer(all_ids(), ids_of(0), 0, NULL).n, 0);
	assert_int_equal(prefer(all_ids(), ids_of(0), 1000, NULL).n, 16);
	assert_int_equal(prefer(ids_of(0), ids_of(0), 3, NULL).n, 0);
}

static void not_found_is_no_gpu_knowledge(void **state)
{
	int busy[] = { synth_gpu(m.node->inv, 0) };
	struct identified who = { .found = false, .busy_gpus.v = busy, .busy_gpus.n = 1 };

	(void)state;
	assert_int_equal(prefer(all_ids(), ids_of(0), 4, &who).n, 4);
}

/* What the ledger tells is of the choice that was made: also when the GPUs are to be drawn. */
static void what_is_explained_is_what_was_chosen(void **state)
{
	const struct ids all = all_ids();

	(void)state;
	for (int want = 1; want <= 8; want++) {
		for (size_t drawn = 0; drawn <= 8; drawn++) {
			struct identified who = { .n_drawn = drawn };
			struct preferred_container req = { .available = all, .size = want };
			struct choice c, *copy;
			struct ids ids = choice_decide(m.node, m.pool, &req, &who, NULL, a, &c);
			struct choose_out out;

			copy = choice_copy(&c);
			out = align_choose(&copy->in, true, a);
			assert_int_equal(out.n_chosen, ids.n);
			for (size_t i = 0; i < ids.n; i++)
				assert_string_equal(m.pool->devs[out.chosen[i]].id, ids.v[i]);
			choice_free(copy);
		}
	}
}

/* Something else has the two nearest ones. */
static void takes_what_is_not_free_last(void **state)
{
	int gpus[] = { synth_gpu(m.node->inv, 2) };
	struct identified who = { .found = true, .gpus = { gpus, 1, 0 } };
	struct preferred_container req = { all_ids(), { NULL, 0 }, 2 };
	struct ids best = prefer(req.available, req.must, 2, &who), other;
	bool *free = arena_array(a, m.pool->n_devs, sizeof(*free));

	(void)state;
	for (size_t i = 0; i < m.pool->n_devs; i++)
		free[i] = strcmp(m.pool->devs[i].id, best.v[0]) &&
			  strcmp(m.pool->devs[i].id, best.v[1]);
	other = choice_decide(m.node, m.pool, &req, &who, free, a, NULL);
	assert_int_equal(other.n, 2);
	for (size_t i = 0; i < 4; i++)
		assert_string_not_equal(other.v[i / 2], best.v[i % 2]);
	req.size = (int)m.pool->n_devs - 1; /* one of the two has to be taken */
	assert_int_equal(choice_decide(m.node, m.pool, &req, &who, free, a, NULL).n,
			 m.pool->n_devs - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(list_tells_numa_and_health),
		T(list_without_topology_when_excluded_or_unknown),
		T(prefers_the_vfs_beside_the_gpus),
		T(takes_what_is_not_free_last),
		T(answer_does_not_depend_on_the_order),
		T(unknown_and_doubled_ids_are_ignored),
		T(must_ids_are_in_the_answer),
		T(more_musts_than_asked_are_all_kept),
		T(sizes_out_of_range_are_clamped),
		T(not_found_is_no_gpu_knowledge),
		T(what_is_explained_is_what_was_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
