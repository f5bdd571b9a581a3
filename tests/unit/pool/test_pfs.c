/* The PFs of a node, also those that are missing. */
#include "unit/pool/machine.h"

#include "config/config.h"

#define PF "0000:3b:00.0"

static const char one_pf[] =
	"{\"resourceList\": [{\"resourceName\": \"vf\", \"selectors\": {\"pfNames\": [\"ens1f0\"], \"isRdma\": true}}]}";

static const char later[] =
	"{\"resourceList\": [{\"resourceName\": \"later\", \"selectors\": {\"pfNames\": [\"rail9\"]}}]}";

static void pull(struct hw_inventory *inv)
{
	machine_take_pci(inv, "0000:3b:00.3");
	machine_take_pci(inv, "0000:3b:00.2");
	machine_take_pci(inv, "0000:3b:00.1");
	machine_take_pci(inv, PF);
}

static struct hw_inventory *pulled(void)
{
	struct hw_inventory *inv = machine();

	pull(inv);
	return inv;
}

static struct node *next_of(struct node *before, struct hw_inventory *inv)
{
	struct node *now = node_new(inv, before->cfg, before);

	node_unref(before);
	return now;
}

static const struct node_pf *pf_of(const struct node *node, const char *vf)
{
	const struct pool_dev *dev = pool_find(node_pool(node, "rdma/vf"), vf);

	assert_non_null(dev);
	return dev->pf;
}

static void the_devices_of_a_pf_have_it_in_common(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(one_pf);
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);
	const struct node_pf *pf = node_pf(node, PF);

	(void)state;
	assert_int_equal(node->n_pfs, 1);
	assert_non_null(pf);
	assert_ptr_equal(pf_of(node, "0000:3b:00.1"), pf);
	assert_ptr_equal(pf_of(node, "0000:3b:00.3"), pf);
	assert_int_equal(pf->pci, machine_find(node->inv, PF));
	assert_string_equal(pf->netdev, "ens1f0");
	assert_string_equal(pf->rdma, "mlx5_0");
	assert_true(pf->wanted);
	assert_null(pf->missing);
	assert_int_equal(pf->n_ports, 1);
	assert_int_equal(pf->ports[0].number, 1);
	assert_int_equal(pf->ports[0].up, 1);
	assert_int_equal(pf->n_shared, 0);
}

static void one_that_fell_off_the_bus_is_known_until_it_is_back(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(one_pf);
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);
	const struct node_pf *pf;

	(void)state;
	for (int i = 0; i < 3; i++) { /* and in every node after that */
		node = next_of(node, pulled());
		pf = node_pf(node, PF);
		assert_non_null(pf);
		assert_int_equal(pf->pci, -1);
		assert_string_equal(pf->missing, "is gone from the PCI bus");
		assert_string_equal(pf->netdev, "ens1f0");
		assert_string_equal(pf->rdma, "mlx5_0");
		assert_true(pf->wanted);
		assert_int_equal(pf->ports[0].number, 1);
		assert_int_equal(pf->ports[0].up, 0);
		assert_ptr_equal(pf_of(node, "0000:3b:00.2"), pf);
	}
	node = next_of(node, machine());
	pf = node_pf(node, PF);
	assert_null(pf->missing);
	assert_int_equal(pf->ports[0].up, 1);
	assert_int_equal(node->n_pfs, 1);
}

static void vfs_that_are_gone_still_have_the_pf_that_is_there(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(one_pf);
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_pci(inv, "0000:3b:00.2");
	node = next_of(node, inv);
	assert_ptr_equal(pf_of(node, "0000:3b:00.2"), node_pf(node, PF));
	assert_null(node_pf(node, PF)->missing);
	assert_int_equal(node->n_pfs, 1);
}

static void one_without_its_driver_is_missing(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(one_pf);
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);
	struct hw_inventory *inv = machine();
	const struct node_pf *pf;

	(void)state;
	machine_fn(inv, PF)->driver = NULL;
	machine_fn(inv, PF)->netdev = NULL;
	machine_fn(inv, PF)->carrier = -1;
	machine_take_rdma(inv, PF);
	node = next_of(node, inv);
	pf = node_pf(node, PF);
	assert_string_equal(pf->missing, "has no driver");
	assert_string_equal(pf->netdev, "ens1f0");
	assert_int_equal(pf->ports[0].up, 0);
}

static void one_that_is_missing_is_wanted_as_long_as_selectors_name_it(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(one_pf);
	_cleanup_config_ struct config *other = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"vf\", \"selectors\": {\"pfNames\": [\"ens2f0\"], \"isRdma\": true}}]}");
	_cleanup_config_ struct config *none = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"b\", \"selectors\": {\"pfNames\": [\"ens2f0\"], \"isRdma\": true}}]}");
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);
	_cleanup_node_ struct node *changed = NULL, *dropped = NULL;

	(void)state;
	node = next_of(node, pulled());
	assert_true(node_pf(node, PF)->wanted);
	changed = node_new_held(pulled(), other, node, NULL, 0);
	assert_false(node_pf(changed, PF)->wanted);
	assert_true(node_pf(changed, "0000:5e:00.0")->wanted);
	dropped = node_new_held(pulled(), none, node, NULL, 0);
	assert_null(node_pf(dropped, PF));
}

static void an_hca_that_containers_share_is_known_too(void **state)
{
	static const char shared[] =
		"{\"configList\": [{\"resourceName\": \"hca\", \"rdmaHcaMax\": 4, \"selectors\": {\"ifNames\": [\"ens1f0\"]}}]}";
	_cleanup_config_ struct config *cfg = machine_config(later);
	_cleanup_config_ struct config *without = machine_config(later);
	_cleanup_node_ struct node *node = NULL, *after = NULL;
	struct err err = { 0 };
	const struct node_pf *pf;

	(void)state;
	assert_int_equal(
		config_parse_shared(shared, strlen(shared), "shared.json", cfg, NULL, &err), 0);
	node = node_new(machine(), cfg, NULL);
	pf = node_pf(node, PF);
	assert_non_null(pf);
	assert_int_equal(pf->n_shared, 1);
	assert_string_equal(pf->shared[0], "rdma/hca");
	assert_ptr_equal(node->shared[0].devs[0].pf, pf);
	for (int i = 0; i < 2; i++) {
		node = next_of(node, pulled());
		pf = node_pf(node, PF);
		assert_non_null(pf);
		assert_non_null(pf->missing);
		assert_true(pf->wanted);
		assert_string_equal(pf->shared[0], "rdma/hca");
	}
	after = node_new_held(pulled(), without, node, NULL, 0);
	assert_null(node_pf(after, PF));
}

/* A second port, with this state. */
static struct hw_inventory *two_ports(const char *first, const char *second)
{
	struct hw_inventory *inv = machine();
	struct hw_rdma *rdma = machine_rdma(inv, PF);
	struct hw_port *ports = arena_array(inv->arena, 2, sizeof(*ports));

	ports[0] = ports[1] = rdma->ports[0];
	ports[0].state = first;
	ports[1].state = second;
	ports[1].number = 2;
	rdma->ports = ports;
	rdma->n_ports = 2;
	machine_fn(inv, PF)->carrier = str_eq(first, "ACTIVE");
	return inv;
}

static void each_port_has_a_link_and_one_that_never_was_up_is_none(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(one_pf);
	_cleanup_node_ struct node *node = node_new(two_ports("ACTIVE", "DOWN"), cfg, NULL);
	static const struct {
		const char *first, *second;
		int up[2];
		bool healthy; /* its VFs */
	} steps[] = {
		{ "ACTIVE", "ACTIVE", { 1, 1 }, true },
		{ "ACTIVE", "DOWN", { 1, 0 }, true },
		{ "DOWN", "DOWN", { 0, 0 }, false },
		{ "DOWN", "ACTIVE", { 0, 1 }, true },
	};

	(void)state;
	assert_int_equal(node_pf(node, PF)->ports[0].up, 1);
	assert_int_equal(node_pf(node, PF)->ports[1].up, -1);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		node = next_of(node, two_ports(steps[i].first, steps[i].second));
		assert_int_equal(node_pf(node, PF)->n_ports, 2);
		assert_int_equal(node_pf(node, PF)->ports[0].up, steps[i].up[0]);
		assert_int_equal(node_pf(node, PF)->ports[1].up, steps[i].up[1]);
		for (size_t k = 0; k < node->pools[0].n_devs; k++)
			assert_int_equal(node->pools[0].devs[k].healthy, steps[i].healthy);
	}
	node_unref(node);
	node = node_new(two_ports("DOWN", "ACTIVE"), cfg, NULL);
	assert_int_equal(node_pf(node, PF)->ports[0].up, -1);
	assert_int_equal(node_pf(node, PF)->ports[1].up, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_devices_of_a_pf_have_it_in_common),
		cmocka_unit_test(one_that_fell_off_the_bus_is_known_until_it_is_back),
		cmocka_unit_test(vfs_that_are_gone_still_have_the_pf_that_is_there),
		cmocka_unit_test(one_without_its_driver_is_missing),
		cmocka_unit_test(one_that_is_missing_is_wanted_as_long_as_selectors_name_it),
		cmocka_unit_test(an_hca_that_containers_share_is_known_too),
		cmocka_unit_test(each_port_has_a_link_and_one_that_never_was_up_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
