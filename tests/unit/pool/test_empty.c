/* A pool without a device: when an operator is told, and what. */
#include "unit/pool/machine.h"

#include "pool/node.h"

static void assert_says(struct hw_inventory *inv, struct config *cfg, const char *expected)
{
	_cleanup_strbuf_ struct strbuf said = STRBUF_INIT;
	_cleanup_node_ struct node *node = node_new(inv, cfg, NULL);

	assert_int_equal(node->pools[0].n_devs, 0);
	pool_say_empty(node, &node->pools[0], &said);
	assert_string_equal(strbuf_str(&said), expected);
}

static void names_that_are_not_here_are_said_beside_those_that_are(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\",\n"
		"\"selectors\": [{\"pfNames\": [\"rail0\", \"rail1#0-3\"], \"isRdma\": true},\n"
		"{\"rootDevices\": [\"0000:c0:00.0\", \"0000:af:00.0\"]}]}]}");

	(void)state;
	assert_says(
		machine(), cfg,
		"rdma/a has no device on this node, so pods that ask for it cannot run here. Not here: rail0, rail1, 0000:c0:00.0. Network cards here: ens1f0 (3 VFs), ens2f0 (2 VFs), eno1 (no VFs).");
}

static void names_that_are_here_are_not_blamed(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\",\n"
		"\"selectors\": {\"vendors\": [\"8086\"], \"pfNames\": [\"ENS1F0\"],\n"
		"\"rootDevices\": [\"0000:5e:00.0\"]}}]}");

	(void)state;
	assert_says(
		machine(), cfg,
		"rdma/a has no device on this node, so pods that ask for it cannot run here. Network cards here: ens1f0 (3 VFs), ens2f0 (2 VFs), eno1 (no VFs).");
}

static void vfs_without_their_pf_and_cards_without_an_interface_are_listed(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"vendors\": [\"8086\"]}}]}");
	struct hw_inventory *inv = machine();

	(void)state;
	machine_fn(inv, "0000:3b:00.0")->netdev = NULL;
	machine_fn(inv, "0000:5e:00.1")->physfn = -1;
	machine_fn(inv, "0000:5e:00.2")->physfn = -1;
	machine_fn(inv, "0000:5e:00.0")->sriov_num = 0;
	assert_says(
		inv, cfg,
		"rdma/a has no device on this node, so pods that ask for it cannot run here. Network cards here: 0000:3b:00.0 (3 VFs), ens2f0 (no VFs), eno1 (no VFs), 2 VFs whose PF is not to be seen.");
}

static void take_all_rdma(struct hw_inventory *inv, bool vfs_only)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n_rdma; i++) {
		if (vfs_only && !inv->pci[inv->rdma[i].pci].is_vf)
			inv->rdma[n++] = inv->rdma[i];
	}
	inv->n_rdma = n;
}

static void a_node_without_rdma_is_not_meant(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	assert_true(pool_is_meant_for(inv));
	take_all_rdma(inv, false);
	inv->n_gpu = 1;
	assert_false(pool_is_meant_for(inv));
	hw_inventory_free(inv);
}

static void cards_without_vfs_are_meant_beside_gpus_only(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	take_all_rdma(inv, true);
	assert_false(pool_is_meant_for(inv));
	inv->n_gpu = 1;
	assert_true(pool_is_meant_for(inv));
	hw_inventory_free(inv);
}

static void an_rdma_device_of_no_card_does_not_count(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	inv->rdma[0].pci = -1; /* siw on a bridge */
	inv->n_rdma = 1;
	inv->n_gpu = 1;
	assert_false(pool_is_meant_for(inv));
	hw_inventory_free(inv);
}

static bool is_idle(struct hw_inventory *inv, const char *selectors)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": %s}]}", selectors);
	_cleanup_config_ struct config *cfg = machine_config(text);
	_cleanup_node_ struct node *node = node_new(inv, cfg, NULL);

	return pool_is_idle(node);
}

static void nothing_to_do_is_no_device_and_no_card_that_could_have_one(void **state)
{
	struct hw_inventory *inv;

	(void)state;
	assert_false(is_idle(machine(), "{\"isRdma\": true}"));
	assert_false(is_idle(machine(), "{\"vendors\": [\"8086\"]}"));
	inv = machine();
	take_all_rdma(inv, false);
	assert_true(is_idle(inv, "{\"isRdma\": true}"));
	inv = machine();
	take_all_rdma(inv, false);
	assert_false(is_idle(inv, "{\"vendors\": [\"15b3\"]}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_are_not_here_are_said_beside_those_that_are),
		cmocka_unit_test(names_that_are_here_are_not_blamed),
		cmocka_unit_test(vfs_without_their_pf_and_cards_without_an_interface_are_listed),
		cmocka_unit_test(a_node_without_rdma_is_not_meant),
		cmocka_unit_test(cards_without_vfs_are_meant_beside_gpus_only),
		cmocka_unit_test(an_rdma_device_of_no_card_does_not_count),
		cmocka_unit_test(nothing_to_do_is_no_device_and_no_card_that_could_have_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
