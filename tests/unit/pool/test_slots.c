#include "unit/pool/machine.h"

#include <stdio.h>
#include <stdlib.h>

#include "pool/pool-internal.h"
#include "pool/slots.h"

/* VFs 0 to 7 on node 0, 8 to 11 on node 1. */
#define N_DEVS 12

static struct pool_config cfg;
static struct pool_dev devs[N_DEVS];
static struct pool pool;
static struct arena *a;

static int setup(void **state)
{
	(void)state;
	a = arena_new(0);
	cfg = (struct pool_config) { .resource = "rdma/vf", .binding = BINDING_LATE };
	for (int i = 0; i < N_DEVS; i++)
		devs[i] = (struct pool_dev) { .id = arena_printf(a, "0000:%02x:00.0", i),
					      .pci = i,
					      .rdma = i,
					      .numa = i / 8,
					      .healthy = true };
	pool = (struct pool) { &cfg, devs, N_DEVS };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

static struct slot_list list(const struct slot_use *uses, size_t n_uses, const char *lost)
{
	struct slot_view view = { .pool = &pool, .uses = uses, .n_uses = n_uses };

	view.lost = &lost;
	view.n_lost = lost ? 1 : 0;
	return pool_slots(&view, a);
}

static const struct slot *find(struct slot_list l, const char *id)
{
	for (size_t i = 0; i < l.n; i++) {
		if (!strcmp(l.v[i].id, id))
			return &l.v[i];
	}
	fail_msg("there is no slot %s", id);
	return NULL;
}

static size_t healthy(struct slot_list l)
{
	size_t n = 0;

	for (size_t i = 0; i < l.n; i++)
		n += l.v[i].healthy;
	return n;
}

/* --- ids --- */

static void ids_say_pool_node_and_number(void **state)
{
	(void)state;
	assert_string_equal(pool_slot_id("rdma/vf", 0, 3, a), "rdma_vf-n0-3");
	assert_string_equal(pool_slot_id("rdma/vf", SLOT_ANY, 12, a), "rdma_vf-any-12");
	assert_string_equal(pool_slot_id("a.b-c.d/e_f.g", 1, 0, a), "a.b-c.d_e_f.g-n1-0");
}

static void ids_are_read_back(void **state)
{
	static const char *const names[] = { "rdma/vf", "rdma/vf-n0", "a.b/c_d", "x/any-1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (int numa = SLOT_ANY; numa < 3; numa++) {
			unsigned number = 99;
			int got = 99;

			assert_true(pool_slot_parse(names[i], pool_slot_id(names[i], numa, 17, a),
						    &got, &number));
			assert_int_equal(got, numa);
			assert_int_equal(number, 17);
		}
	}
}

static void what_is_not_written_so_is_no_id(void **state)
{
	static const char *const wrong[] = {
		"",
		"rdma_vf",
		"rdma_vf-",
		"rdma_vf-n0",
		"rdma_vf-n0-",
		"rdma_vf-n0-x",
		"rdma_vf-n0-03",
		"rdma_vf-n00-3",
		"rdma_vf-n-3",
		"rdma_vf-m0-3",
		"rdma/vf-n0-3",
		"rdma_vf-any-",
		"rdma_vf-anyx-1",
		"rdma_vf-n0-3-1",
		"rdma_vf-n0-+3",
		"rdma_vg-n0-3",
		"rdma_vf-n0-3 ",
		"rdma_vf-n0-65536",
		"rdma_vf-n10000-1",
		"0000:1a:00.2",
	};
	unsigned number;
	int numa;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(pool_slot_parse("rdma/vf", wrong[i], &numa, &number));
}

static void no_two_resources_share_an_id(void **state)
{
	static const char *const names[] = { "rdma/vf",	  "rdma/vf-n0", "rdma/vf_n0",
					     "rdma.vf/x", "rdma/v",	"rdma.x/any-1",
					     "rdma-vf/x", "rdma/vf.x",	"rdma/VF" };
	unsigned number;
	int numa;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			const char *id = pool_slot_id(names[i], 0, 1, a);

			assert_int_equal(pool_slot_parse(names[k], id, &numa, &number), i == k);
		}
	}
}

static void long_names_are_cut_and_still_differ(void **state)
{
	char one[400], two[400];
	const char *id, *other;
	unsigned number;
	int numa;

	(void)state;
	memset(one, 'x', sizeof(one));
	strcpy(one + 250, "/vf1");
	memcpy(two, one, sizeof(two));
	two[253] = '2';
	id = pool_slot_id(one, 1023, SLOT_NUMBER_MAX, a);
	other = pool_slot_id(two, 1023, SLOT_NUMBER_MAX, a);
	assert_true(strlen(id) <= SLOT_ID_MAX);
	assert_string_not_equal(id, other);
	assert_true(pool_slot_parse(one, id, &numa, &number));
	assert_int_equal(numa, 1023);
	assert_false(pool_slot_parse(two, id, &numa, &number));
	strcpy(one, "short/");
	memset(one + 6, 'y', 60);
	one[66] = '\0';
	assert_null(strchr(pool_slot_id(one, 0, 0, a), '/'));
}

/* --- the list --- */

static void as_many_slots_as_vfs_in_each_class(void **state)
{
	struct slot_list l = list(NULL, 0, NULL);

	(void)state;
	assert_int_equal(l.n, N_DEVS);
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(l.v[i].id, pool_slot_id("rdma/vf", i / 8, i % 8, a));
		assert_int_equal(l.v[i].numa, i / 8);
		assert_int_equal(l.v[i].dev, -1);
		assert_true(l.v[i].healthy && !l.v[i].held);
	}
}

static void without_topology_there_is_one_class(void **state)
{
	(void)state;
	cfg.exclude_topology = true;
	assert_string_equal(list(NULL, 0, NULL).v[11].id, "rdma_vf-any-11");
	cfg.exclude_topology = false;
	devs[3].numa = -1;
	assert_string_equal(list(NULL, 0, NULL).v[0].id, "rdma_vf-any-0");
	assert_int_equal(list(NULL, 0, NULL).v[0].numa, SLOT_ANY);
	assert_int_equal(list(NULL, 0, NULL).n, N_DEVS);
}

static void an_empty_pool_has_no_slots(void **state)
{
	(void)state;
	pool.n_devs = 0;
	assert_int_equal(list(NULL, 0, NULL).n, 0);
}

static void a_sick_free_vf_takes_the_highest_free_slot(void **state)
{
	struct slot_use held = { "rdma_vf-n0-7", devs[2].id };
	struct slot_list l;

	(void)state;
	devs[0].healthy = false;
	l = list(&held, 1, NULL);
	assert_true(find(l, "rdma_vf-n0-0")->healthy);
	assert_false(find(l, "rdma_vf-n0-6")->healthy);
	assert_true(find(l, "rdma_vf-n0-7")->healthy);
	assert_int_equal(find(l, "rdma_vf-n0-7")->dev, 2);
	assert_int_equal(healthy(l), N_DEVS - 1);
}

static void a_sick_bound_vf_makes_its_slot_sick(void **state)
{
	struct slot_use held = { "rdma_vf-n0-1", devs[2].id };
	struct slot_list l;

	(void)state;
	devs[2].healthy = false;
	l = list(&held, 1, NULL);
	assert_false(find(l, "rdma_vf-n0-1")->healthy);
	assert_int_equal(healthy(l), N_DEVS - 1);
}

static void a_draining_vf_takes_a_free_slot(void **state)
{
	struct slot_list l = list(NULL, 0, devs[9].id);

	(void)state;
	assert_int_equal(healthy(l), N_DEVS - 1);
	assert_false(find(l, "rdma_vf-n1-3")->healthy);
}

static void an_allocated_slot_stays_healthy(void **state)
{
	struct slot_use held = { "rdma_vf-n1-3", NULL };
	struct slot_list l = list(&held, 1, devs[9].id);

	(void)state;
	assert_true(find(l, "rdma_vf-n1-3")->healthy);
	assert_true(find(l, "rdma_vf-n1-3")->held);
	assert_int_equal(find(l, "rdma_vf-n1-3")->dev, -1);
	assert_false(find(l, "rdma_vf-n1-2")->healthy);
}

static void a_held_slot_outlives_its_class(void **state)
{
	struct slot_use held[] = { { "rdma_vf-n0-7", devs[0].id }, { "rdma_vf-n2-5", devs[8].id } };
	struct slot_list l;

	(void)state;
	pool = (struct pool) { &cfg, devs, 3 };
	l = list(held, 2, NULL);
	assert_int_equal(l.n, 5);
	assert_true(find(l, "rdma_vf-n0-7")->healthy);
	assert_false(find(l, "rdma_vf-n0-2")->healthy); /* three VFs, one of them bound */
	assert_true(find(l, "rdma_vf-n0-1")->healthy);
	assert_false(find(l, "rdma_vf-n2-5")->healthy); /* its VF is gone */
	assert_true(find(l, "rdma_vf-n2-5")->held);
}

static void a_vf_that_is_gone_takes_no_slot_from_the_others(void **state)
{
	struct slot_use held = { "rdma_vf-n0-0", "0000:ff:00.0" };
	struct slot_list l = list(&held, 1, NULL);

	(void)state;
	assert_false(find(l, "rdma_vf-n0-0")->healthy);
	assert_int_equal(healthy(l), N_DEVS - 1);
}

/* Slot of node 0, VF of node 1: there is one VF more than slots on node 0, and one less on node 1.
 */
static void a_vf_of_another_node_keeps_the_sum(void **state)
{
	struct slot_use held = { "rdma_vf-n0-0", devs[8].id };
	struct slot_list l = list(&held, 1, NULL);

	(void)state;
	assert_int_equal(l.n, N_DEVS);
	assert_int_equal(healthy(l), N_DEVS);
}

static void uses_of_others_and_doubles_do_not_count(void **state)
{
	struct slot_use held[] = { { "rdma_vf-n0-0", NULL },
				   { "rdma_vf-n0-0", devs[4].id },
				   { "rdma_other-n0-1", devs[5].id } };
	struct slot_list l = list(held, 3, NULL);

	(void)state;
	assert_int_equal(l.n, N_DEVS);
	assert_int_equal(find(l, "rdma_vf-n0-0")->dev, 4);
	assert_false(find(l, "rdma_vf-n0-1")->held);
}

static void a_slot_names_its_late_pool(void **state)
{
	struct pool_config early = { .resource = "rdma/early" };
	struct pool pools[] = { { &early, NULL, 0 }, pool };
	struct node node = { .pools = pools, .n_pools = 2 };

	(void)state;
	assert_ptr_equal(pool_of_slot(&node, "rdma_vf-n0-3"), &pools[1]);
	assert_null(pool_of_slot(&node, "rdma_early-n0-3"));
	assert_null(pool_of_slot(&node, "0000:1a:00.2"));
}

#define UID "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55"

static void ids_of_claims_have_the_uid_of_the_claim(void **state)
{
	static const char *wrong[] = {
		"rdma_vf-c" UID "-",
		"rdma_vf-c" UID "-01",
		"rdma_vf-c" UID "-65536",
		"rdma_vf-c" UID,
		"rdma_vf-n" UID "-1",
		"rdma_vf-c0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a5-1",
		"rdma_vf-c0b1a6e2c155d0-4f0b-9d7e-6b1d1f0c9a55-1",
		"c" UID "-1",
		"-c" UID "-1",
	};
	const char *id = pool_claim_slot("rdma/vf", UID, 12, a);
	const struct pool_config early = { .resource = "rdma/vf", .binding = BINDING_EARLY };
	const struct pool one = { .cfg = &early };
	const struct node node = { .pools = &one, .n_pools = 1 };
	unsigned number = 0;
	int numa = 0;

	(void)state;
	assert_string_equal(id, "rdma_vf-c" UID "-12");
	assert_true(pool_slot_parse("rdma/vf", id, &numa, &number));
	assert_int_equal(numa, SLOT_ANY);
	assert_int_equal(number, 12);
	assert_string_equal(pool_slot_claim(id, a), UID);
	assert_null(pool_slot_claim("rdma_vf-n0-3", a));
	assert_ptr_equal(pool_of_slot(&node, id), &one); /* also where it binds early now */
	assert_false(pool_slot_parse("rdma/v", id, &numa, &number));
	assert_false(pool_slot_parse("rdma/vf-c" UID, id, &numa, &number));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(pool_slot_parse("rdma/vf", wrong[i], &numa, &number));
	/* a resource whose name ends like that has slots of its own */
	assert_true(pool_slot_parse("rdma/vf-c" UID, "rdma_vf-c" UID "-n0-1", &numa, &number));
	assert_int_equal(numa, 0);
	assert_null(pool_claim_slot("rdma/vf", "not-a-uid", 0, a));
	assert_null(pool_claim_slot("rdma/vf", UID "0", 0, a));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(ids_say_pool_node_and_number),
		T(ids_are_read_back),
		T(what_is_not_written_so_is_no_id),
		T(no_two_resources_share_an_id),
		T(long_names_are_cut_and_still_differ),
		T(as_many_slots_as_vfs_in_each_class),
		T(without_topology_there_is_one_class),
		T(an_empty_pool_has_no_slots),
		T(a_sick_free_vf_takes_the_highest_free_slot),
		T(a_sick_bound_vf_makes_its_slot_sick),
		T(a_draining_vf_takes_a_free_slot),
		T(an_allocated_slot_stays_healthy),
		T(a_held_slot_outlives_its_class),
		T(a_vf_that_is_gone_takes_no_slot_from_the_others),
		T(a_vf_of_another_node_keeps_the_sum),
		T(uses_of_others_and_doubles_do_not_count),
		T(a_slot_names_its_late_pool),
		T(ids_of_claims_have_the_uid_of_the_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
