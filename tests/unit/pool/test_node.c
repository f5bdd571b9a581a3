/* Pools as a whole: ownership, what changes from node to node, health, notes. */
#include "unit/pool/machine.h"

#include "config/config.h"
#include "pool/pool-internal.h"
#include "topo/topo.h"

static const char two_pools[] =
	"{\"resourceList\": ["
	"{\"resourceName\": \"ib\", \"selectors\": {\"linkTypes\": [\"infiniband\"], \"isRdma\": true}},"
	"{\"resourceName\": \"all\", \"selectors\": {\"isRdma\": true}}]}";

/* The reason of a device of the pool, which must be listed. */
static const char *reason(const struct node *node, const char *resource, const char *id)
{
	const struct pool_dev *dev = pool_find(node_pool(node, resource), id);

	assert_non_null(dev);
	return dev->reason ? dev->reason : "healthy";
}

static void the_built_in_pool_has_every_vf_with_rdma(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;
	const struct pool_dev *dev;

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_fn(inv, "0000:3b:00.3")->numa = 1;
	machine_fn(inv, "0000:5e:00.1")->numa = -1;
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/vf", "3b:00.1 3b:00.3 5e:00.1 5e:00.2");
	dev = pool_find(node_pool(node, "rdma/vf"), "0000:3b:00.3");
	assert_int_equal(dev->pci, machine_find(node->inv, "0000:3b:00.3"));
	assert_int_equal(dev->rdma, hw_find_rdma(node->inv, dev->pci));
	assert_int_equal(dev->numa, 1);
	assert_int_equal(pool_find(node_pool(node, "rdma/vf"), "0000:5e:00.1")->numa, -1);
	assert_int_equal(node->generation, 1);
	assert_ptr_equal(node->inv, inv);
	assert_non_null(node->topo);
	assert_int_equal(node->n_notes, 0);
}

static void the_first_pool_that_matches_owns(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);

	(void)state;
	assert_pool(node, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3");
	assert_pool(node, "rdma/all", "5e:00.1 5e:00.2 af:00.0");
	assert_int_equal(node->n_notes, 2);
	assert_note(node,
		    "rdma/all: matches 3 functions (first 0000:3b:00.1) that belong to rdma/ib");
	assert_note(
		node,
		"rdma/all: gives whole PFs to containers (1, first 0000:af:00.0): vfsOnly in its railmate object leaves them out, or takes them without this note");
}

/* af:00.0 is a PF that could have VFs, and has none. */
static void a_pool_that_is_written_for_railmate_has_vfs_only(void **state)
{
	static const char vfs[] = "3b:00.1 3b:00.2 3b:00.3 5e:00.1 5e:00.2",
			  all[] = "3b:00.1 3b:00.2 3b:00.3 5e:00.1 5e:00.2 af:00.0";
	static const struct {
		const char *members, *devices;
		size_t notes;
	} rows[] = {
		{ "\"selectors\": {\"isRdma\": true}", all, 1 },
		{ "\"selectors\": {\"isRdma\": true}, \"railmate\": {}", vfs, 0 },
		{ "\"railmate\": {}", vfs, 0 },
		{ "\"selectors\": {\"vendors\": [\"15b3\"]}, \"railmate\": {\"vfsOnly\": true}",
		  vfs, 0 },
		{ "\"selectors\": {\"isRdma\": true}, \"railmate\": {\"vfsOnly\": false}", all, 0 },
		{ "\"selectors\": [{\"pciAddresses\": [\"0000:af:00.0\"]}], \"railmate\": {}",
		  "af:00.0", 0 },
		{ "\"selectors\": [{\"pciAddresses\": [\"0000:af:00.0\"]}, {\"pfNames\": [\"ens2f0\"]}]",
		  "5e:00.1 5e:00.2 af:00.0", 0 },
		{ "\"selectors\": [{\"pciAddresses\": [\"0000:af:00.0\"]}, {\"isRdma\": true}], \"railmate\": {\"vfsOnly\": true}",
		  vfs, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"a\", %s}]}", rows[i].members);
		_cleanup_config_ struct config *cfg = machine_config(text);
		_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);

		assert_pool(node, "rdma/a", rows[i].devices);
		assert_int_equal(node->n_notes, rows[i].notes);
	}
}

/* VF LAG: af:00.0 and af:00.1 are a bond, and have one RDMA device; a cable is out. */
static void the_rdma_port_of_a_bond_decides(void **state)
{
	static const struct {
		int carrier;
		const char *state, *driver, *devices;
	} rows[] = {
		{ 0, "ACTIVE", "mlx5_core", "5e:00.1 5e:00.2" },
		{ 0, "DOWN", "mlx5_core", "5e:00.1! 5e:00.2!" },
		{ 1, "ACTIVE", "mlx5_core", "5e:00.1 5e:00.2" },
		{ 0, "ACTIVE", "bnxt_en", "5e:00.1! 5e:00.2!" }, /* another card */
	};
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"pfNames\": [\"eno2\"], \"isRdma\": true}}]}");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hw_inventory *inv = machine();
		struct hw_pci *leg = machine_fn(inv, "0000:b0:00.0");
		_cleanup_node_ struct node *node = NULL;

		*leg = *machine_fn(inv, "0000:af:00.0");
		leg->bdf.fn = 1;
		leg->netdev = "eno2";
		leg->sriov_num = 2;
		leg->carrier = rows[i].carrier;
		leg->driver = rows[i].driver;
		machine_fn(inv, "0000:5e:00.1")->physfn = (int)(leg - inv->pci);
		machine_fn(inv, "0000:5e:00.2")->physfn = (int)(leg - inv->pci);
		((struct hw_port *)machine_rdma(inv, "0000:af:00.0")->ports)->state = rows[i].state;
		node = node_new(inv, cfg, NULL);
		assert_pool(node, "rdma/a", rows[i].devices);
	}
}

static void an_empty_pool_names_the_key_that_leaves_nothing(void **state)
{
	static const struct {
		const char *selectors, *note;
	} rows[] = {
		{ "{\"vendors\": [\"15b3\"], \"devices\": [\"1234\"]}",
		  "rdma/a: devices matches none of the 6 functions that the keys before leave: they have 101e, 101d" },
		{ "{\"drivers\": [\"vfio-pci\"]}",
		  "rdma/a: drivers matches none of the 6 functions that the keys before leave: they have mlx5_core" },
		{ "{\"linkTypes\": [\"infiniband\"], \"pfNames\": [\"ens2f0\"]}",
		  "rdma/a: linkTypes matches none of the 2 functions that the keys before leave: they have ether" },
		{ "{\"pfNames\": [\"ens1f0#7\"]}",
		  "rdma/a: pfNames matches none of the 6 functions that the keys before leave: they have ens1f0, ens2f0, none" },
		{ "{\"pciAddresses\": [\"0000:01:00.0\"]}",
		  "rdma/a: pciAddresses matches none of the 6 functions that the keys before leave" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": %s}]}",
			rows[i].selectors);
		_cleanup_config_ struct config *cfg = machine_config(text);
		_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);

		assert_pool(node, "rdma/a", "");
		assert_note(node, "rdma/a: no function matches");
		assert_note(node, rows[i].note);
	}
}

/* What a scan sees while sriov_numvfs is 0. */
static struct hw_inventory *without_vfs(void)
{
	struct hw_inventory *inv = machine();

	machine_fn(inv, "0000:5e:00.0")->sriov_num = 0;
	machine_take_pci(inv, "0000:5e:00.2");
	machine_take_pci(inv, "0000:5e:00.1");
	return inv;
}

static void a_pf_whose_vfs_are_made_anew_is_no_device(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"linkTypes\": [\"ether\"], \"isRdma\": true}},{\"resourceName\": \"b\", \"selectors\": {\"pciAddresses\": [\"0000:5e:00.0\"]}}]}");
	_cleanup_config_ struct config *named = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"b\", \"selectors\": {\"pciAddresses\": [\"0000:5e:00.0\"]}}]}");
	_cleanup_config_ struct config *only = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"linkTypes\": [\"ether\"], \"isRdma\": true}},{\"resourceName\": \"c\", \"selectors\": {}, \"railmate\": {\"vfsOnly\": false}}]}");
	_cleanup_node_ struct node *first = node_new(machine(), only, NULL),
				   *second = node_new(without_vfs(), only, first),
				   *third = node_new(without_vfs(), only, second),
				   *fourth = node_new(machine(), only, third),
				   *asked = node_new(without_vfs(), cfg, first),
				   *alone = node_new(without_vfs(), named, NULL);

	(void)state;
	assert_pool(first, "rdma/a", "5e:00.1 5e:00.2 af:00.0");
	assert_pool(second, "rdma/a", "5e:00.1! 5e:00.2! af:00.0");
	assert_pool(third, "rdma/a", "5e:00.1! 5e:00.2! af:00.0");
	assert_pool(third, "rdma/c", "3b:00.1 3b:00.2 3b:00.3");
	assert_pool(fourth, "rdma/a", "5e:00.1 5e:00.2 af:00.0");
	assert_pool(asked, "rdma/b", "5e:00.0");
	assert_pool(alone, "rdma/b", "5e:00.0");
}

static bool is_rdma(const struct node *node, const char *id)
{
	const struct pool *pool = node_pool(node, "rdma/a");

	return pool_dev_is_rdma(pool, pool_find(pool, id));
}

static void the_item_that_selected_it_says_if_it_is_rdma(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": [\n"
		"{\"pfNames\": [\"ens1f0#0\"]}, {\"pfNames\": [\"ens1f0\"], \"isRdma\": true},\n"
		"{\"pfNames\": [\"ens2f0\"]}]}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *first = NULL, *second = NULL;

	(void)state;
	machine_take_rdma(inv, "0000:5e:00.2");
	first = node_new(inv, cfg, NULL);
	assert_pool(first, "rdma/a", "3b:00.1 3b:00.2 3b:00.3 5e:00.1 5e:00.2");
	assert_false(is_rdma(first, "0000:3b:00.1"));
	assert_true(is_rdma(first, "0000:3b:00.2"));
	assert_false(is_rdma(first, "0000:5e:00.1"));
	assert_false(is_rdma(first, "0000:5e:00.2"));
	/* What is not selected any more stays what it was. */
	inv = machine();
	machine_fn(inv, "0000:3b:00.0")->netdev = "ens9";
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/a", "3b:00.1! 3b:00.2! 3b:00.3! 5e:00.1 5e:00.2");
	assert_false(is_rdma(second, "0000:3b:00.1"));
	assert_true(is_rdma(second, "0000:3b:00.2"));
}

static void a_node_without_vhost_net_is_noted(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"needVhostNet\": true}}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *without = node_new(machine(), cfg, NULL), *with = NULL;

	(void)state;
	assert_note(
		without,
		"rdma/a: needVhostNet is true and this node has no /dev/vhost-net or no /dev/net/tun (modprobe vhost_net tun): containers get neither");
	inv->has_vhost_net = true;
	with = node_new(inv, cfg, NULL);
	assert_int_equal(with->n_notes, without->n_notes - 1);
}

static void a_pkey_is_remembered_while_the_rdma_device_is_away(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"pKeys\": [\"0x8001\"]}}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *first = NULL, *second = NULL;

	(void)state;
	machine_rdma(inv, "0000:3b:00.1")->pkey = 0x8001;
	first = node_new(inv, cfg, NULL);
	inv = machine();
	machine_take_rdma(inv, "0000:3b:00.1");
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/a", "3b:00.1");
}

static void shared_hcas_are_those_that_no_container_holds(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"pfNames\": [\"ens1f0\"]}}]}");
	static const uint16_t vendors[] = { 0x15b3 };
	const struct selector all = { .vendors = vendors, .n_vendors = 1, .is_rdma = true };
	const char *const names[] = { "ens2f0", "eno1" };
	const struct selector named = { .if_names = names, .n_if_names = 2, .is_rdma = true };
	const struct pool_config shared[] = {
		{ .resource = "rdma/all",
		  .shares = 3,
		  .is_rdma = true,
		  .selectors = &all,
		  .n_selectors = 1 },
		{ .resource = "rdma/named",
		  .shares = 3,
		  .is_rdma = true,
		  .selectors = &named,
		  .n_selectors = 1 },
	};
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	cfg->shared = shared;
	cfg->n_shared = ARRAY_LEN(shared);
	machine_fn(inv, "0000:5e:00.0")->default_route = true;
	node = node_new(inv, cfg, NULL);
	assert_int_equal(node->n_shared, 2);
	assert_null(node_pool(node, "rdma/all"));
	assert_int_equal(node_shared(node, "rdma/all")->n_devs,
			 5); /* two PFs with VFs, one without, two VFs */
	assert_int_equal(node_shared(node, "rdma/named")->n_devs, 2);
	assert_string_equal(node_shared(node, "rdma/named")->devs[0].id, "0000:5e:00.0");
	assert_true(node_shared(node, "rdma/named")->devs[0].healthy);
}

static void an_empty_machine_gives_empty_pools(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	inv->n_pci = inv->n_rdma = 0;
	node = node_new(inv, cfg, NULL);
	assert_int_equal(node->n_pools, 2);
	assert_pool(node, "rdma/ib", "");
	assert_note(node, "rdma/ib: no function matches");
	assert_null(node_pool(node, "rdma/vf"));
	assert_null(pool_find(node_pool(node, "rdma/ib"), "0000:3b:00.1"));
}

static void a_function_with_the_default_route_is_left_out(void **state)
{
	_cleanup_config_ struct config *cfg =
		machine_config("{\"resourceList\": [{\"resourceName\": \"a\"}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_fn(inv, "0000:af:00.0")->default_route = true;
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/a", "3b:00.1 3b:00.2 3b:00.3 5e:00.1 5e:00.2");
	assert_note(node, "rdma/a: 0000:af:00.0 (eno1) carries the default route and is left out");
}

static void a_function_without_driver_does_not_enter_a_pool(void **state)
{
	_cleanup_config_ struct config *cfg =
		machine_config("{\"resourceList\": [{\"resourceName\": \"a\"}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_fn(inv, "0000:3b:00.2")->driver = NULL;
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/a", "3b:00.1 3b:00.3 5e:00.1 5e:00.2 af:00.0");
}

static void selectors_that_do_nothing_are_noted(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"pfNames\": [\"ens1f0#0-1\",\n"
		"\"ens1f0#2\", \"ens2f0#8-15\", \"eno1\", \"ens9\"]}}, {\"resourceName\": \"b\",\n"
		"\"selectors\": {\"rootDevices\": [\"0000:01:00.0\"]}}]}");
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);

	(void)state;
	assert_pool(node, "rdma/a", "3b:00.1 3b:00.2");
	assert_int_equal(node->n_notes, 7);
	assert_note(node, "rdma/a: 'eno1' in pfNames matches no function");
	assert_note(node, "rdma/a: 'ens1f0' with its range in pfNames matches no function");
	assert_note(node, "rdma/a: 'ens2f0' with its range in pfNames matches no function");
	assert_note(node, "rdma/a: 'ens9' in pfNames matches no function");
	assert_note(node, "rdma/b: '0000:01:00.0' in rootDevices matches no function");
	assert_note(node, "rdma/b: no function matches");
}

static void two_pfs_of_one_name_both_match_with_a_note(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"pfNames\": [\"ens1f0#1\"]}}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_fn(inv, "0000:5e:00.0")->netdev = "ens1f0";
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/a", "3b:00.2 5e:00.2");
	assert_note(
		node,
		"0000:3b:00.0 and 0000:5e:00.0 have one netdev name, ens1f0: pfNames matches both");
}

static void a_vanished_device_stays_listed(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;
	struct hw_inventory *inv = machine();
	const struct pool_dev *dev;

	(void)state;
	machine_fn(inv, "0000:3b:00.2")->numa = 1;
	first = node_new(inv, cfg, NULL);
	inv = machine();
	machine_take_pci(inv, "0000:3b:00.2");
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/ib", "3b:00.1 3b:00.2! 3b:00.3");
	assert_string_equal(reason(second, "rdma/ib", "0000:3b:00.2"),
			    "0000:3b:00.2: is gone from the PCI bus");
	dev = pool_find(node_pool(second, "rdma/ib"), "0000:3b:00.2");
	assert_int_equal(dev->pci, -1);
	assert_int_equal(dev->rdma, -1);
	assert_int_equal(dev->numa, 1);
	assert_int_equal(second->generation, 2);

	inv = machine();
	machine_take_pci(inv, "0000:3b:00.2");
	machine_take_pci(inv, "0000:3b:00.1");
	third = node_new(inv, cfg, second);
	assert_pool(third, "rdma/ib", "3b:00.1! 3b:00.2! 3b:00.3");

	fourth = node_new(machine(), cfg, third);
	assert_pool(fourth, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3");
	assert_int_equal(fourth->generation, 4);
}

static void an_address_that_became_another_thing_is_gone(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *first = node_new(machine(), cfg, NULL), *second = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_fn(inv, "0000:3b:00.2")->class_code = 0x010802;
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/ib", "3b:00.1 3b:00.2! 3b:00.3");
	assert_int_equal(pool_find(node_pool(second, "rdma/ib"), "0000:3b:00.2")->pci, -1);
}

static void a_device_that_lost_its_driver_stays_listed(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *first = node_new(machine(), cfg, NULL), *second = NULL,
				   *third = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.1");
	machine_fn(inv, "0000:3b:00.1")->driver = NULL;
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_fn(inv, "0000:3b:00.2")->driver = "vfio-pci";
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/ib", "3b:00.1! 3b:00.2! 3b:00.3");
	assert_string_equal(reason(second, "rdma/ib", "0000:3b:00.1"),
			    "0000:3b:00.1: no driver is bound to it");
	assert_string_equal(reason(second, "rdma/ib", "0000:3b:00.2"),
			    "0000:3b:00.2: is bound to vfio-pci and has no RDMA device");
	assert_true(pool_find(node_pool(second, "rdma/ib"), "0000:3b:00.1")->pci >= 0);

	/* Bound again, but the RDMA device has not come: it is not in a container, it is not there.
	 */
	inv = machine();
	machine_take_rdma(inv, "0000:3b:00.1");
	machine_take_rdma(inv, "0000:3b:00.2");
	third = node_new(inv, cfg, second);
	assert_pool(third, "rdma/ib", "3b:00.1! 3b:00.2! 3b:00.3");
	assert_string_equal(reason(third, "rdma/ib", "0000:3b:00.1"),
			    "0000:3b:00.1: is bound to mlx5_core and has no RDMA device");
}

static void an_rdma_device_in_a_container_does_not_make_unhealthy(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *node = node_new(machine(), cfg, NULL);

	(void)state;
	/* Away over several scans: the memory of it must not fade. */
	for (int i = 0; i < 3; i++) {
		struct hw_inventory *inv = machine();
		struct node *next;

		machine_take_rdma(inv, "0000:3b:00.2");
		next = node_new(inv, cfg, node);
		node_unref(node);
		node = next;
		assert_pool(node, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3");
		assert_true(pool_find(node_pool(node, "rdma/ib"), "0000:3b:00.2")->rdma_away);
		assert_int_equal(pool_find(node_pool(node, "rdma/ib"), "0000:3b:00.2")->rdma, -1);
		assert_int_equal(node->generation, 2);
	}
}

/* As when the namespace of a container ends that had made a soft RDMA device of its own in there.
 */
static void a_netdev_that_came_back_without_its_rdma_device_tells_that_it_is_gone(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *first = node_new(machine(), cfg, NULL), *second = NULL,
				   *third = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.2");
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3");

	inv = machine();
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_fn(inv, "0000:3b:00.2")->netdev = "ens1f0v1";
	third = node_new(inv, cfg, second);
	assert_pool(third, "rdma/ib", "3b:00.1 3b:00.2! 3b:00.3");
	assert_string_equal(reason(third, "rdma/ib", "0000:3b:00.2"),
			    "0000:3b:00.2: is bound to mlx5_core and has no RDMA device");
}

/* We were not there when the RDMA device went into the container: the ledger was. */
static void what_was_held_before_a_restart_stays_listed(void **state)
{
	static const struct node_seed seeds[] = {
		{ "rdma/ib", "0000:3b:00.1", "mlx5_1", "mlx5_core" }, /* RDMA device away */
		{ "rdma/ib", "0000:3b:00.2", "mlx5_2", "mlx5_core" }, /* here */
		{ "rdma/ib", "0000:3b:00.3", "mlx5_3", "mlx5_core" }, /* now with another driver */
		{ "rdma/ib", "0000:77:00.1", "mlx5_9", "mlx5_core" }, /* not on the bus */
		{ "rdma/other", "0000:5e:00.1", "mlx5_5", NULL },
	};
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *unseeded = NULL, *first = NULL, *second = NULL;
	struct hw_inventory *inv[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		inv[i] = machine();
		machine_take_rdma(inv[i], "0000:3b:00.1");
		machine_take_rdma(inv[i], "0000:3b:00.3");
		machine_fn(inv[i], "0000:3b:00.3")->driver = "vfio-pci";
	}
	unseeded = node_new(inv[0], cfg, NULL);
	assert_pool(unseeded, "rdma/ib", "3b:00.2");
	first = node_new_seeded(inv[1], cfg, NULL, seeds, ARRAY_LEN(seeds));
	assert_pool(first, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3! 77:00.1!");
	assert_true(pool_find(node_pool(first, "rdma/ib"), "0000:3b:00.1")->rdma_away);
	assert_int_equal(first->generation, 1);
	second = node_new(inv[2], cfg, first);
	assert_pool(second, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3! 77:00.1!");
	assert_int_equal(second->generation, 1);
}

/* While it moves: the RDMA device is gone, the netdev not yet. */
static void a_scan_in_the_middle_of_a_move_is_forgotten(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *first = node_new(machine(), cfg, NULL), *second = NULL,
				   *third = NULL, *fourth = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_fn(inv, "0000:3b:00.2")->netdev = "ens1f0v1";
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/ib", "3b:00.1 3b:00.2! 3b:00.3");
	inv = machine();
	machine_take_rdma(inv, "0000:3b:00.2");
	third = node_new(inv, cfg, second);
	assert_pool(third, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3");
	assert_true(pool_find(node_pool(third, "rdma/ib"), "0000:3b:00.2")->rdma_away);
	/* with another driver it is another device */
	inv = machine();
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_fn(inv, "0000:3b:00.2")->driver = "vfio-pci";
	fourth = node_new(inv, cfg, third);
	assert_pool(fourth, "rdma/ib", "3b:00.1 3b:00.2! 3b:00.3");
}

/* The ledger was lost: what the kubelet says comes after the first node. */
static void what_is_held_comes_to_light_later(void **state)
{
	static const struct node_seed seeds[] = {
		{ "rdma/ib", "0000:3b:00.1", NULL, "mlx5_core" }, /* RDMA device away */
		{ "rdma/ib", "0000:3b:00.2", NULL, "mlx5_core" }, /* listed already */
		{ "rdma/ib", "0000:77:00.1", NULL, NULL }, /* not on the bus, and never was */
	};
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *first = NULL, *second = NULL, *third = NULL;
	struct hw_inventory *inv[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		inv[i] = machine();
		if (i < 2)
			machine_take_rdma(inv[i], "0000:3b:00.1");
	}
	first = node_new(inv[0], cfg, NULL);
	assert_pool(first, "rdma/ib", "3b:00.2 3b:00.3");
	second = node_new_seeded(inv[1], cfg, first, seeds, ARRAY_LEN(seeds));
	assert_pool(second, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3");
	assert_true(pool_find(node_pool(second, "rdma/ib"), "0000:3b:00.1")->rdma_away);
	assert_false(pool_find(node_pool(second, "rdma/ib"), "0000:3b:00.2")->rdma_away);
	assert_int_equal(second->generation, 2);
	third = node_new_seeded(inv[2], cfg, second, seeds, ARRAY_LEN(seeds));
	assert_pool(third, "rdma/ib", "3b:00.1 3b:00.2 3b:00.3");
	assert_false(pool_find(node_pool(third, "rdma/ib"), "0000:3b:00.1")->rdma_away);
}

static void a_device_that_is_not_selected_any_more_stays_listed(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\",\n"
		"\"selectors\": [{\"pfNames\": [\"ens1f0\"]},\n"
		"{\"pciAddresses\": [\"0000:af:00.0\"]}]},{\"resourceName\": \"b\",\n"
		"\"selectors\": {\"pfNames\": [\"ens9\"]}}]}");
	_cleanup_node_ struct node *first = node_new(machine(), cfg, NULL), *second = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	machine_fn(inv, "0000:3b:00.0")->netdev = "ens9";
	machine_fn(inv, "0000:af:00.0")->sriov_num = 4;
	second = node_new(inv, cfg, first);
	assert_pool(second, "rdma/a", "3b:00.1! 3b:00.2! 3b:00.3! af:00.0!");
	assert_pool(second, "rdma/b", "");
	assert_string_equal(reason(second, "rdma/a", "0000:3b:00.1"),
			    "0000:3b:00.1: the selectors of rdma/a do not match it any more");
	assert_note(second,
		    "rdma/b: matches 3 functions (first 0000:3b:00.1) that belong to rdma/a");
}

static void a_new_configuration_keeps_pools_of_the_same_name(void **state)
{
	_cleanup_config_ struct config *before = machine_config(two_pools);
	_cleanup_config_ struct config *after = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"new\", \"selectors\": {\"pfNames\": [\"ens1f0\", \"ens2f0\"]}},{\"resourceName\": \"all\"}]}");
	_cleanup_node_ struct node *first = node_new(machine(), before, NULL);
	_cleanup_node_ struct node *second = node_new(machine(), after, first);

	(void)state;
	assert_pool(second, "rdma/new", "3b:00.1 3b:00.2 3b:00.3");
	assert_pool(second, "rdma/all", "5e:00.1 5e:00.2 af:00.0");
	assert_null(node_pool(second, "rdma/ib"));
	assert_int_equal(second->generation, 2);
}

static void a_pf_without_carrier_takes_its_vfs_down(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_fn(inv, "0000:3b:00.0")->carrier = 0;
	((struct hw_port *)machine_rdma(inv, "0000:3b:00.0")->ports)->state = "DOWN";
	machine_fn(inv, "0000:5e:00.0")->carrier = -1;
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/vf", "3b:00.1! 3b:00.2! 3b:00.3! 5e:00.1 5e:00.2");
	assert_string_equal(
		reason(node, "rdma/vf", "0000:3b:00.1"),
		"0000:3b:00.1: the link of its PF 0000:3b:00.0 (ens1f0) is down, its RDMA port is DOWN");
}

static void a_degraded_link_is_unhealthy_only_where_the_pool_says_so(void **state)
{
	static const struct node_link links[] = {
		{ "rdma/vf", "0000:3b:00.0", "goes down too often", false, 1, 0, 0 },
		{ "rdma/vf", "0000:5e:00.0", "counts too many errors", true, 1, 0, 0 },
		{ "rdma/other", "0000:3b:00.0", "is slower than it was", true, 1, 0, 0 },
	};
	_cleanup_config_ struct config *cfg = config_default();
	struct node_parts parts = { .cfg = cfg, .links = links, .n_links = 3 };
	_cleanup_node_ struct node *node = node_make(machine(), &parts), *next = NULL;
	const struct pool_dev *dev = pool_find(node_pool(node, "rdma/vf"), "0000:3b:00.1");

	(void)state;
	assert_pool(node, "rdma/vf", "3b:00.1 3b:00.2 3b:00.3 5e:00.1! 5e:00.2!");
	assert_string_equal(dev->degraded, "goes down too often");
	assert_string_equal(
		reason(node, "rdma/vf", "0000:5e:00.1"),
		"0000:5e:00.1: the link of its PF 0000:5e:00.0 (ens2f0) counts too many errors");
	parts = (struct node_parts) {
		.cfg = cfg, .previous = node, .links = &links[1], .n_links = 1
	};
	next = node_make(machine(), &parts);
	assert_int_equal(next->generation, node->generation + 1); /* for whoever shows it */
	assert_true(pool_same_list(&node->pools[0], &next->pools[0]));
}

static void an_active_port_is_a_link_though_ipoib_is_off(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_fn(inv, "0000:3b:00.0")->carrier = 0;
	((struct hw_port *)machine_rdma(inv, "0000:3b:00.0")->ports)->state = "ACTIVE";
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/vf", "3b:00.1 3b:00.2 3b:00.3 5e:00.1 5e:00.2");
}

static void a_vf_is_not_judged_by_its_own_netdev_or_port(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_fn(inv, "0000:3b:00.1")->carrier = 0;
	((struct hw_port *)machine_rdma(inv, "0000:3b:00.2")->ports)->state = "DOWN";
	/* A passed-through VF: no PF here. */
	machine_fn(inv, "0000:5e:00.1")->is_vf = false;
	machine_fn(inv, "0000:5e:00.1")->physfn = -1;
	machine_fn(inv, "0000:5e:00.1")->carrier = 0;
	/* The PF's port is closed, its carrier is up. */
	((struct hw_port *)machine_rdma(inv, "0000:5e:00.0")->ports)->state = "DOWN";
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/vf", "3b:00.1 3b:00.2 3b:00.3 5e:00.1 5e:00.2");
}

static void a_nic_without_vfs_is_judged_by_its_own_carrier(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"devices\": [\"101d\"]}}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_fn(inv, "0000:af:00.0")->carrier = 0;
	((struct hw_port *)machine_rdma(inv, "0000:af:00.0")->ports)->state = "DOWN";
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/a", "af:00.0!");
}

static void a_pool_without_rdma_takes_any_driver(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"drivers\": [\"vfio-pci\"]}}]}");
	struct hw_inventory *inv = machine();
	_cleanup_node_ struct node *node = NULL;

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_fn(inv, "0000:3b:00.2")->driver = "vfio-pci";
	node = node_new(inv, cfg, NULL);
	assert_pool(node, "rdma/a", "3b:00.2");
	assert_false(pool_find(node_pool(node, "rdma/a"), "0000:3b:00.2")->rdma_away);
}

static void the_generation_grows_only_with_a_change(void **state)
{
	_cleanup_config_ struct config *cfg = machine_config(two_pools);
	_cleanup_node_ struct node *first = node_new(machine(), cfg, NULL);
	_cleanup_node_ struct node *same = node_new(machine(), cfg, first), *other = NULL;
	struct hw_inventory *inv = machine();

	(void)state;
	assert_int_equal(same->generation, first->generation);
	machine_fn(inv, "0000:b0:00.0")->numa = 1;
	other = node_new(inv, cfg, same);
	assert_int_equal(other->generation, first->generation + 1);
}

static void lists_are_the_same_when_the_kubelet_would_hear_the_same(void **state)
{
	struct pool_config plain = { .resource = "a" },
			   excluded = { .resource = "a", .exclude_topology = true };
	struct pool_dev base = { .id = "0000:3b:00.1", .healthy = true, .numa = 1 };
	struct pool_dev moved = base, ill = base, other = base, renumbered = base;
	struct pool one = { &plain, &base, 1 }, none = { &plain, NULL, 0 };
	struct pool a;

	(void)state;
	moved.numa = 0;
	ill.healthy = false;
	other.id = "0000:3b:00.2";
	renumbered.pci = renumbered.rdma = 7;
	assert_true(pool_same_list(&one, &one));
	assert_false(pool_same_list(&one, &none));
	a = (struct pool) { &plain, &moved, 1 };
	assert_false(pool_same_list(&one, &a));
	a = (struct pool) { &plain, &ill, 1 };
	assert_false(pool_same_list(&one, &a));
	a = (struct pool) { &plain, &other, 1 };
	assert_false(pool_same_list(&one, &a));
	a = (struct pool) { &plain, &renumbered, 1 };
	assert_true(pool_same_list(&one, &a));
	a = (struct pool) { &excluded, &base, 1 };
	assert_false(pool_same_list(&one, &a));
}

static void finds_ids_exactly(void **state)
{
	static const char *const strangers[] = { "",	     "0000:3B:00.1",	    "0000:3b:00.1 ",
						 "3b:00.1",  "0000:3b:00.9",	    "00000:3b:00.1",
						 "\xff\xfe", "ffffffffffffffffffff" };
	struct pool_config cfg = { .resource = "a" };
	struct pool_dev devs[] = {
		{ .id = "0000:3b:00.1" },  { .id = "0001:00:00.0" },  { .id = "ffff:ff:1f.7" },
		{ .id = "10000:00:00.0" }, { .id = "10000:e1:00.2" },
	};
	struct pool pool = { &cfg, devs, ARRAY_LEN(devs) };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(devs); i++)
		assert_ptr_equal(pool_find(&pool, devs[i].id), &devs[i]);
	for (size_t i = 0; i < ARRAY_LEN(strangers); i++)
		assert_null(pool_find(&pool, strangers[i]));
}

static void wide_domains_are_sorted_behind_short_ones(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();
	_cleanup_node_ struct node *first = NULL, *second = NULL;
	struct hw_inventory *inv = machine();
	const struct pool *pool;

	(void)state;
	machine_fn(inv, "0000:5e:00.1")->bdf.domain = 0x9000;
	machine_fn(inv, "0000:5e:00.2")->bdf.domain = 0x10000;
	/* Address order again: both are behind af and b0 now. */
	for (int i = 6; i < 8; i++) {
		struct hw_pci vf = inv->pci[i], back = inv->pci[i + 2];

		inv->pci[i] = back;
		inv->pci[i + 2] = vf;
	}
	inv->rdma[5].pci = 8;
	inv->rdma[6].pci = 9;
	inv->rdma[7].pci = 6;
	{
		struct hw_rdma af = inv->rdma[7];

		inv->rdma[7] = inv->rdma[6];
		inv->rdma[6] = inv->rdma[5];
		inv->rdma[5] = af;
	}
	first = node_new(inv, cfg, NULL);
	pool = node_pool(first, "rdma/vf");
	assert_string_equal(pool->devs[pool->n_devs - 2].id, "9000:5e:00.1");
	assert_string_equal(pool->devs[pool->n_devs - 1].id, "10000:5e:00.2");
	assert_non_null(pool_find(pool, "10000:5e:00.2"));

	/* And when they vanish among others that stay. */
	second = node_new(machine(), cfg, first);
	pool = node_pool(second, "rdma/vf");
	assert_int_equal(pool->n_devs, 7);
	assert_string_equal(pool->devs[6].id, "10000:5e:00.2");
	assert_false(pool->devs[6].healthy);
}

static void a_node_lives_until_its_last_reference(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();
	struct node *node = node_new(machine(), cfg, NULL);

	(void)state;
	assert_ptr_equal(node_ref(node), node);
	assert_null(node_unref(node));
	assert_pool(node, "rdma/vf", "3b:00.1 3b:00.2 3b:00.3 5e:00.1 5e:00.2");
	assert_null(node_unref(node));
	assert_null(node_unref(NULL));
}

static void libraries_turn_data_direct_off_each_in_its_words(void **state)
{
	static const struct {
		unsigned profiles;
		const char *name, *value;
		bool used;
	} rows[] = {
		{ PROFILE_NCCL, "NCCL_IB_DATA_DIRECT", "0", false },
		{ PROFILE_NCCL, "NCCL_IB_DATA_DIRECT", "00", false },
		{ PROFILE_NCCL, "NCCL_IB_DATA_DIRECT", "01", true },
		{ PROFILE_NCCL, "NCCL_IB_DATA_DIRECT", "2", true },
		{ PROFILE_RCCL, "NCCL_IB_DATA_DIRECT", "", true },
		{ PROFILE_UCX, "NCCL_IB_DATA_DIRECT", "0", true },
		{ PROFILE_UCX | PROFILE_NCCL, "UCX_IB_DIRECT_NIC", "n", true },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "0", false },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "No", false },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "off", false },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "N", false },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "on", true },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "On", true },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "one", true },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "none", true },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", "1", false },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", "TRUE", false },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", "yes", false },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", "false", true },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", "0", true },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", "try", true },
		{ PROFILE_OFI, "NCCL_IB_DATA_DIRECT", "1", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_env env = { rows[i].name, rows[i].value };
		const struct pool_config cfg = { .profiles = rows[i].profiles,
						 .env = &env,
						 .n_env = 1 };

		if (pool_uses_direct(&(struct pool) { .cfg = &cfg }) != rows[i].used)
			fail_msg("%s=%s", rows[i].name, rows[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries_turn_data_direct_off_each_in_its_words),
		cmocka_unit_test(the_built_in_pool_has_every_vf_with_rdma),
		cmocka_unit_test(the_first_pool_that_matches_owns),
		cmocka_unit_test(a_pool_that_is_written_for_railmate_has_vfs_only),
		cmocka_unit_test(a_pf_whose_vfs_are_made_anew_is_no_device),
		cmocka_unit_test(the_rdma_port_of_a_bond_decides),
		cmocka_unit_test(an_empty_pool_names_the_key_that_leaves_nothing),
		cmocka_unit_test(the_item_that_selected_it_says_if_it_is_rdma),
		cmocka_unit_test(a_node_without_vhost_net_is_noted),
		cmocka_unit_test(a_pkey_is_remembered_while_the_rdma_device_is_away),
		cmocka_unit_test(shared_hcas_are_those_that_no_container_holds),
		cmocka_unit_test(an_empty_machine_gives_empty_pools),
		cmocka_unit_test(a_function_with_the_default_route_is_left_out),
		cmocka_unit_test(a_function_without_driver_does_not_enter_a_pool),
		cmocka_unit_test(selectors_that_do_nothing_are_noted),
		cmocka_unit_test(two_pfs_of_one_name_both_match_with_a_note),
		cmocka_unit_test(a_vanished_device_stays_listed),
		cmocka_unit_test(an_address_that_became_another_thing_is_gone),
		cmocka_unit_test(a_device_that_lost_its_driver_stays_listed),
		cmocka_unit_test(an_rdma_device_in_a_container_does_not_make_unhealthy),
		cmocka_unit_test(
			a_netdev_that_came_back_without_its_rdma_device_tells_that_it_is_gone),
		cmocka_unit_test(what_was_held_before_a_restart_stays_listed),
		cmocka_unit_test(a_scan_in_the_middle_of_a_move_is_forgotten),
		cmocka_unit_test(what_is_held_comes_to_light_later),
		cmocka_unit_test(a_device_that_is_not_selected_any_more_stays_listed),
		cmocka_unit_test(a_new_configuration_keeps_pools_of_the_same_name),
		cmocka_unit_test(a_pf_without_carrier_takes_its_vfs_down),
		cmocka_unit_test(a_degraded_link_is_unhealthy_only_where_the_pool_says_so),
		cmocka_unit_test(an_active_port_is_a_link_though_ipoib_is_off),
		cmocka_unit_test(a_vf_is_not_judged_by_its_own_netdev_or_port),
		cmocka_unit_test(a_nic_without_vfs_is_judged_by_its_own_carrier),
		cmocka_unit_test(a_pool_without_rdma_takes_any_driver),
		cmocka_unit_test(the_generation_grows_only_with_a_change),
		cmocka_unit_test(lists_are_the_same_when_the_kubelet_would_hear_the_same),
		cmocka_unit_test(finds_ids_exactly),
		cmocka_unit_test(wide_domains_are_sorted_behind_short_ones),
		cmocka_unit_test(a_node_lives_until_its_last_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
