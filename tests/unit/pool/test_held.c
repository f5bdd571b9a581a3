/* A configuration that is replaced while containers hold VFs: what stays, what moves, what ends. */
#include "unit/pool/machine.h"

#define POOL(name, pf)                                                                             \
	"{\"resourceName\": \"" name "\", \"selectors\": {\"pfNames\": [\"" pf                     \
	"\"], \"isRdma\": true}}"
#define CONFIG(pools) "{\"resourceList\": [" pools "]}"

static const struct node_seed held[] = {
	{ "rdma/a", "0000:3b:00.1", "mlx5_1", "mlx5_core" },
	{ "rdma/a", "0000:3b:00.2", "mlx5_2", "mlx5_core" },
};

/* The pools of `before` that are marked by their names: held ones that `next` does not have. */
static struct config *retire(const struct config *next, const struct config *before,
			     const char *resource)
{
	bool marked[8] = { false };

	for (size_t i = 0; i < before->n_pools; i++)
		marked[i] = str_eq(before->pools[i].resource, resource);
	return config_retire(next, before, marked);
}

static const struct pool_dev *dev(const struct node *node, const char *resource, const char *id)
{
	const struct pool_dev *found = pool_find(node_pool(node, resource), id);

	assert_non_null(found);
	return found;
}

static void nothing_held_goes_where_the_configuration_says(void **state)
{
	_cleanup_config_ struct config *before = machine_config(CONFIG(POOL("a", "ens1f0")));
	_cleanup_config_ struct config *after =
		machine_config(CONFIG(POOL("a", "ens2f0") "," POOL("b", "ens1f0")));
	_cleanup_node_ struct node *first = node_new(machine(), before, NULL);
	_cleanup_node_ struct node *second = node_new_held(machine(), after, first, NULL, 0);

	(void)state;
	assert_pool(second, "rdma/a", "5e:00.1 5e:00.2");
	assert_pool(second, "rdma/b", "3b:00.1 3b:00.2 3b:00.3");
	assert_false(node_has_left_over(second));
	assert_int_equal(second->generation, 2);
}

static void what_is_held_stays_in_its_pool(void **state)
{
	_cleanup_config_ struct config *before = machine_config(CONFIG(POOL("a", "ens1f0")));
	_cleanup_config_ struct config *after =
		machine_config(CONFIG(POOL("b", "ens1f0") "," POOL("a", "ens2f0")));
	_cleanup_node_ struct node *first = node_new(machine(), before, NULL), *second = NULL,
				   *third = NULL, *fourth = NULL;

	(void)state;
	second = node_new_held(machine(), after, first, held, 2);
	assert_pool(second, "rdma/a", "3b:00.1! 3b:00.2! 5e:00.1 5e:00.2");
	assert_pool(second, "rdma/b", "3b:00.3");
	assert_true(dev(second, "rdma/a", "0000:3b:00.1")->left_over);
	assert_false(dev(second, "rdma/a", "0000:5e:00.1")->left_over);
	/* A scan changes nothing. */
	third = node_new(machine(), after, second);
	assert_pool(third, "rdma/a", "3b:00.1! 3b:00.2! 5e:00.1 5e:00.2");
	assert_true(node_has_left_over(third));
	assert_int_equal(third->generation, second->generation);
	/* One of them is free. */
	fourth = node_new_held(machine(), after, third, &held[1], 1);
	assert_pool(fourth, "rdma/a", "3b:00.2! 5e:00.1 5e:00.2");
	assert_pool(fourth, "rdma/b", "3b:00.1 3b:00.3");
}

static void a_held_vf_that_is_selected_again_is_not_left_over(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(CONFIG(POOL("a", "ens1f0")));
	_cleanup_node_ struct node *first = node_new(machine(), cfg, NULL);
	_cleanup_node_ struct node *second = node_new_held(machine(), cfg, first, held, 2);

	(void)state;
	assert_pool(second, "rdma/a", "3b:00.1 3b:00.2 3b:00.3");
	assert_false(node_has_left_over(second));
}

static void an_rdma_device_in_a_container_is_remembered(void **state)
{
	_cleanup_config_ struct config *before = machine_config(CONFIG(POOL("a", "ens1f0")));
	_cleanup_config_ struct config *after =
		machine_config(CONFIG(POOL("a", "ens1f0") "," POOL("b", "ens2f0")));
	_cleanup_node_ struct node *first = node_new(machine(), before, NULL), *second = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.1");
	second = node_new_held(inv, after, first, held, 2);
	assert_pool(second, "rdma/a", "3b:00.1 3b:00.2 3b:00.3");
	assert_true(dev(second, "rdma/a", "0000:3b:00.1")->rdma_away);
	assert_string_equal(dev(second, "rdma/a", "0000:3b:00.1")->rdma_name,
			    dev(first, "rdma/a", "0000:3b:00.1")->rdma_name);
}

static void a_retired_pool_has_only_what_is_held(void **state)
{
	_cleanup_config_ struct config *before =
		machine_config(CONFIG(POOL("a", "ens1f0") "," POOL("c", "ens2f0")));
	_cleanup_config_ struct config *next = machine_config(CONFIG(POOL("b", "ens1f0")));
	_cleanup_config_ struct config *after = retire(next, before, "rdma/a");
	_cleanup_node_ struct node *first = node_new(machine(), before, NULL);
	_cleanup_node_ struct node *second = node_new_held(machine(), after, first, held, 2);

	(void)state;
	assert_pool(second, "rdma/a", "3b:00.1 3b:00.2");
	assert_pool(second, "rdma/b", "3b:00.3");
	assert_null(node_pool(second, "rdma/c"));
	assert_true(node_pool(second, "rdma/a")->cfg->retired);
	assert_false(node_pool(second, "rdma/b")->cfg->retired);
	assert_true(node_has_left_over(second));
	assert_int_equal(second->n_notes, 1);
	assert_note(second,
		    "rdma/b: matches 2 functions (first 0000:3b:00.1) that belong to rdma/a");
}

static void what_is_gone_stays_where_it_was(void **state)
{
	_cleanup_config_ struct config *before =
		machine_config(CONFIG(POOL("a", "ens1f0") "," POOL("c", "ens2f0")));
	_cleanup_config_ struct config *next =
		machine_config(CONFIG(POOL("b", "ens1f0") "," POOL("c", "ens2f0")));
	_cleanup_config_ struct config *after = retire(next, before, "rdma/a");
	_cleanup_node_ struct node *first = node_new(machine(), before, NULL), *second = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_pci(inv, "0000:3b:00.2"); /* held */
	machine_take_pci(inv, "0000:3b:00.3"); /* of a pool that is not there any more */
	machine_take_pci(inv, "0000:5e:00.2"); /* of one that is */
	machine_take_rdma(inv, "0000:5e:00.1");
	machine_fn(inv, "0000:5e:00.1")->driver = NULL;
	second = node_new_held(inv, after, first, held, 2);
	assert_pool(second, "rdma/a", "3b:00.1 3b:00.2!");
	assert_pool(second, "rdma/b", "");
	assert_pool(second, "rdma/c", "5e:00.1! 5e:00.2!");
	assert_false(dev(second, "rdma/c", "0000:5e:00.1")->left_over);
}

static void configurations_form_no_chain(void **state)
{
	struct config *now = machine_config(CONFIG(POOL("a", "ens1f0")));
	struct node *node = node_new(machine(), now, NULL);

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct config *next = machine_config(CONFIG(POOL("b", "ens1f0")));
		struct config *after = retire(next, now, "rdma/a");
		struct node *then = node_new_held(machine(), after, node, held, 2);

		config_free(next);
		config_free(now);
		node_unref(node);
		now = after;
		node = then;
		assert_int_equal(now->n_pools, 2);
		assert_pool(node, "rdma/a", "3b:00.1 3b:00.2");
	}
	/* Nobody holds it any more. */
	{
		struct config *after = retire(now, now, "");

		assert_int_equal(after->n_pools, 1);
		assert_string_equal(after->pools[0].resource, "rdma/b");
		config_free(after);
	}
	config_free(now);
	assert_string_equal(node->pools[1].cfg->resource, "rdma/a");
	node_unref(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_held_goes_where_the_configuration_says),
		cmocka_unit_test(what_is_held_stays_in_its_pool),
		cmocka_unit_test(a_held_vf_that_is_selected_again_is_not_left_over),
		cmocka_unit_test(an_rdma_device_in_a_container_is_remembered),
		cmocka_unit_test(a_retired_pool_has_only_what_is_held),
		cmocka_unit_test(what_is_gone_stays_where_it_was),
		cmocka_unit_test(configurations_form_no_chain),
	};

	return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
