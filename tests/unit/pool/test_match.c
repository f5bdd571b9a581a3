/* Selector semantics: config text against the machine of machine.h. */
#include "pool/pool-internal.h"
#include "unit/pool/machine.h"

struct row {
	const char *selectors, *devices;
};

#define VFS_IB	"3b:00.1 3b:00.2 3b:00.3"
#define VFS_ETH "5e:00.1 5e:00.2"
#define ALL	VFS_IB " " VFS_ETH " af:00.0"

static void check(struct hw_inventory *inv, const char *selectors, const char *devices)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": %s}]}", selectors);
	_cleanup_config_ struct config *cfg = machine_config(text);
	_cleanup_node_ struct node *node = node_new(inv, cfg, NULL);

	assert_pool(node, "rdma/a", devices);
}

static void check_all(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(machine(), rows[i].selectors, rows[i].devices);
}

static void without_selectors_every_vf_and_every_nic_without_vfs(void **state)
{
	static const struct row rows[] = { { "null", ALL },
					   { "{}", ALL },
					   { "{\"vendors\": []}", ALL } };

	(void)state;
	check_all(rows, ARRAY_LEN(rows));
}

static void ids_drivers_and_addresses(void **state)
{
	static const struct row rows[] = {
		{ "{\"vendors\": [\"15b3\"]}", ALL },
		{ "{\"vendors\": [\"8086\"]}", "" },
		{ "{\"vendors\": [\"8086\", \"15B3\"]}", ALL },
		{ "{\"devices\": [\"101d\"]}", "af:00.0" },
		{ "{\"devices\": [\"101e\"]}", VFS_IB " " VFS_ETH },
		{ "{\"drivers\": [\"mlx5_core\"]}", ALL },
		{ "{\"drivers\": [\"mlx5\", \"MLX5_CORE\"]}", "" },
		{ "{\"pciAddresses\": [\"0000:5E:00.2\", \"0000:3b:00.1\", \"0001:3b:00.2\"]}",
		  "3b:00.1 5e:00.2" },
		{ "{\"pciAddresses\": [\"0000:3b:00.0\", \"0000:b0:00.0\"]}", "" },
		{ "{\"acpiIndexes\": [\"101\"]}", "" },
	};

	(void)state;
	check_all(rows, ARRAY_LEN(rows));
}

static void acpi_index_is_the_functions_own(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	machine_fn(inv, "0000:af:00.0")->acpi_index = 7;
	check(inv, "{\"acpiIndexes\": [\"1\", \"7\"]}", "af:00.0");
}

static void pf_names_and_their_ranges(void **state)
{
	static const struct row rows[] = {
		{ "{\"pfNames\": [\"ens1f0\"]}", VFS_IB },
		{ "{\"pfNames\": [\"ENS1F0\"]}", VFS_IB },
		{ "{\"pfNames\": [\"ens1f\"]}", "" },
		{ "{\"pfNames\": [\"ens1f0#1\"]}", "3b:00.2" },
		{ "{\"pfNames\": [\"ens1f0#0,2-7\"]}", "3b:00.1 3b:00.3" },
		{ "{\"pfNames\": [\"ens1f0#8-9\"]}", "" },
		{ "{\"pfNames\": [\"ens2f0#1\", \"ens1f0#0-1\"]}", "3b:00.1 3b:00.2 5e:00.2" },
		/* The first entry of a name decides alone. */
		{ "{\"pfNames\": [\"ens1f0#0\", \"ens1f0#1-2\"]}", "3b:00.1" },
		{ "{\"pfNames\": [\"ens1f0#0\", \"ens1f0\"]}", "3b:00.1" },
		/* A NIC without VFs has no PF: it is no device, though it is what is named. */
		{ "{\"pfNames\": [\"eno1\"]}", "" },
		{ "{\"pfNames\": [\"eno1#0-7\"]}", "" },
	};

	(void)state;
	check_all(rows, ARRAY_LEN(rows));
}

static void root_devices_are_addresses_of_pfs(void **state)
{
	static const struct row rows[] = {
		{ "{\"rootDevices\": [\"0000:3B:00.0\"]}", VFS_IB },
		{ "{\"rootDevices\": [\"0000:5e:00.0#1\"]}", "5e:00.2" },
		{ "{\"rootDevices\": [\"0000:3b:00.0#2\", \"0000:3b:00.0\"]}", "3b:00.3" },
		{ "{\"rootDevices\": [\"0000:3b:00.1\"]}", "" },
		{ "{\"rootDevices\": [\"0000:af:00.0\"]}", "" },
	};

	(void)state;
	check_all(rows, ARRAY_LEN(rows));
}

static void link_types_are_those_of_the_pf(void **state)
{
	static const struct row rows[] = {
		{ "{\"linkTypes\": [\"infiniband\"]}", VFS_IB },
		{ "{\"linkTypes\": [\"ether\"]}", VFS_ETH " af:00.0" },
		{ "{\"linkTypes\": [\"ether\", \"infiniband\"]}", ALL },
	};

	(void)state;
	check_all(rows, ARRAY_LEN(rows));
}

static void link_type_without_a_netdev_is_that_of_the_rdma_port(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	machine_fn(inv, "0000:3b:00.0")->net_type = 0;
	machine_fn(inv, "0000:5e:00.0")->net_type = 0;
	machine_take_rdma(inv, "0000:5e:00.1");
	check(inv, "{\"linkTypes\": [\"infiniband\"]}", VFS_IB);
	inv = machine();
	machine_fn(inv, "0000:5e:00.0")->net_type = 0;
	machine_take_rdma(inv, "0000:5e:00.1"); /* falls back on its PF's port */
	check(inv, "{\"linkTypes\": [\"ether\"]}", VFS_ETH " af:00.0");
	inv = machine();
	machine_fn(inv, "0000:5e:00.0")->net_type = 0;
	machine_take_rdma(inv, "0000:5e:00.1");
	machine_take_rdma(inv, "0000:5e:00.0");
	check(inv, "{\"linkTypes\": [\"ether\"]}", "5e:00.2 af:00.0");
}

static void pkeys_are_those_of_infiniband_vfs(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	machine_rdma(inv, "0000:3b:00.1")->pkey = 0x8001;
	machine_rdma(inv, "0000:3b:00.2")->pkey = 0xffff;
	check(inv, "{\"pKeys\": [\"0x8001\", \"0x7fff\"]}", "3b:00.1");
}

static void is_rdma_wants_an_rdma_device(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	machine_take_rdma(inv, "0000:3b:00.2");
	machine_take_rdma(inv, "0000:af:00.0");
	check(inv, "{\"isRdma\": true}", "3b:00.1 3b:00.3 " VFS_ETH);
	inv = machine();
	machine_take_rdma(inv, "0000:3b:00.2");
	check(inv, "{\"isRdma\": false}", ALL);
}

static void members_of_a_selector_narrow_and_selectors_add_up(void **state)
{
	static const struct row rows[] = {
		{ "{\"pfNames\": [\"ens1f0\"], \"devices\": [\"101d\"]}", "" },
		{ "{\"pfNames\": [\"ens1f0\"], \"pciAddresses\": [\"0000:3b:00.2\", \"0000:5e:00.1\"]}",
		  "3b:00.2" },
		{ "[{\"pfNames\": [\"ens1f0#0\"]}, {\"pfNames\": [\"ens1f0#2\"]}]",
		  "3b:00.1 3b:00.3" },
		{ "[{\"linkTypes\": [\"infiniband\"]}, {\"devices\": [\"101d\"]}]",
		  VFS_IB " af:00.0" },
		{ "[{\"pfNames\": [\"no\"]}, {}]", ALL },
	};

	(void)state;
	check_all(rows, ARRAY_LEN(rows));
}

static void a_vf_whose_pf_is_not_visible_has_no_pf_name(void **state)
{
	struct hw_inventory *inv = machine();

	(void)state;
	machine_fn(inv, "0000:3b:00.1")->physfn = -1;
	machine_fn(inv, "0000:3b:00.1")->netdev = "ens1f0";
	check(inv, "{\"pfNames\": [\"ens1f0\"]}", "3b:00.2 3b:00.3");
	inv = machine();
	machine_fn(inv, "0000:3b:00.1")->physfn = -1;
	check(inv, "{\"rootDevices\": [\"0000:3b:00.0\", \"0000:3b:00.1\"]}", "3b:00.2 3b:00.3");
	inv = machine();
	machine_fn(inv, "0000:3b:00.1")->physfn = -1;
	check(inv, "{\"linkTypes\": [\"infiniband\"]}", VFS_IB);
}

static void candidates_are_vfs_and_nics_without_vfs(void **state)
{
	static const struct {
		const char *address;
		bool candidate;
	} rows[] = {
		{ "0000:3a:00.0", false }, { "0000:3b:00.0", false }, { "0000:3b:00.1", true },
		{ "0000:5e:00.2", true },  { "0000:af:00.0", true },  { "0000:b0:00.0", false },
	};
	struct hw_inventory *inv = machine();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(pool_candidate(inv, machine_find(inv, rows[i].address)),
				 rows[i].candidate);
	assert_false(pool_candidate(inv, -1));
	hw_inventory_free(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_selectors_every_vf_and_every_nic_without_vfs),
		cmocka_unit_test(ids_drivers_and_addresses),
		cmocka_unit_test(acpi_index_is_the_functions_own),
		cmocka_unit_test(pf_names_and_their_ranges),
		cmocka_unit_test(root_devices_are_addresses_of_pfs),
		cmocka_unit_test(link_types_are_those_of_the_pf),
		cmocka_unit_test(link_type_without_a_netdev_is_that_of_the_rdma_port),
		cmocka_unit_test(pkeys_are_those_of_infiniband_vfs),
		cmocka_unit_test(is_rdma_wants_an_rdma_device),
		cmocka_unit_test(members_of_a_selector_narrow_and_selectors_add_up),
		cmocka_unit_test(a_vf_whose_pf_is_not_visible_has_no_pf_name),
		cmocka_unit_test(candidates_are_vfs_and_nics_without_vfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
