/* Look-ups and comparisons over hand-made tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hw/inventory.h"

#define FUNCTION(bus_, class_, vendor_, device_)                                                   \
	{                                                                                          \
		.bdf = { 0, bus_, 0, 0 }, .class_code = class_, .vendor = vendor_,                 \
		.device = device_, .parent = -1, .numa = -1, .physfn = -1, .vf_index = -1          \
	}

static struct hw_pci functions[] = {
	FUNCTION(0x00, 0x060400, 0x8086, 0x352a), FUNCTION(0x1b, 0x030200, 0x10de, 0x2330),
	FUNCTION(0x1c, 0x020000, 0x15b3, 0x1021), FUNCTION(0x1d, 0x020000, 0x15b3, 0x101e),
	FUNCTION(0x1e, 0x030200, 0x10de, 0x2330), FUNCTION(0x1f, 0x010802, 0x144d, 0xa824),
	FUNCTION(0x20, 0x120000, 0x1002, 0x74a1),
};
enum { BRIDGE, GPU0, PF, VF, GPU1, NVME, AMD };

static struct hw_port ports[] = {
	{ .number = 1, .state = "ACTIVE", .link = HW_LINK_IB, .rate_mbps = 400000 }
};
static struct hw_rdma rdmas[] = {
	{ .name = "siw0", .pci = -1 },
	{ .name = "mlx5_0", .pci = PF, .ports = ports, .n_ports = 1 },
	{ .name = "mlx5_1", .pci = VF },
	{ .name = "mlx5_2", .pci = VF },
};
static struct hw_gpu gpus[] = {
	{ .pci = GPU0, .vendor = "NVIDIA", .uuid = "GPU-aaaa", .card = 1 },
	{ .pci = GPU1, .vendor = "NVIDIA", .uuid = "GPU-bbbb", .minor = 1, .card = 2 },
	{ .pci = AMD, .vendor = "AMD", .card = 12 },
};
static const int row[] = { 10, 21 };
static struct hw_numa numas[] = { { 0, row, "00000000,0000ffff" }, { 1, NULL, NULL } };

static struct hw_inventory machine(void)
{
	functions[PF].sriov_total = 8;
	functions[VF].is_vf = true;
	functions[VF].physfn = PF;
	return (struct hw_inventory) {
		.pci = functions,
		.n_pci = ARRAY_LEN(functions),
		.rdma = rdmas,
		.n_rdma = ARRAY_LEN(rdmas),
		.gpu = gpus,
		.n_gpu = ARRAY_LEN(gpus),
		.numa = numas,
		.n_numa = ARRAY_LEN(numas),
	};
}

static void finds_by_address_and_index(void **state)
{
	const struct hw_inventory inv = machine(), empty = { 0 };

	(void)state;
	for (int i = 0; i < (int)inv.n_pci; i++)
		assert_int_equal(hw_find_pci(&inv, functions[i].bdf), i);
	assert_int_equal(hw_find_pci(&inv, (struct bdf) { 1, 0x1b, 0, 0 }), -1);
	assert_int_equal(hw_find_pci(&empty, functions[0].bdf), -1);
	assert_int_equal(hw_find_rdma(&inv, PF), 1);
	assert_int_equal(hw_find_rdma(&inv, VF), 2);
	assert_int_equal(hw_find_rdma(&inv, GPU0), -1);
	assert_int_equal(hw_find_rdma(&inv, -1), -1);
	assert_int_equal(hw_find_gpu(&inv, GPU1), 1);
	assert_int_equal(hw_find_gpu(&inv, VF), -1);
	assert_int_equal(hw_find_gpu(&inv, -1), -1);
}

static void tells_nics_from_other_functions_with_vfs(void **state)
{
	const struct hw_inventory inv = machine();

	(void)state;
	assert_true(hw_is_nic(&functions[PF]) && hw_is_pf(&functions[PF]));
	assert_true(hw_is_nic(&functions[VF]) && !hw_is_pf(&functions[VF]));
	functions[NVME].sriov_total = 32;
	assert_false(hw_is_nic(&functions[NVME]) || hw_is_pf(&functions[NVME]));
	functions[NVME].sriov_total = 0;
	assert_true(hw_is_nic_vf(&inv, VF));
	assert_false(hw_is_nic_vf(&inv, PF));
	assert_false(hw_is_nic_vf(&inv, GPU0));
	assert_false(hw_is_nic_vf(&inv, -1));
}

static void takes_a_passed_through_nic_for_a_vf_but_no_emulated_one(void **state)
{
	struct hw_pci nic = FUNCTION(0x05, 0x020000, 0x15b3, 0x1021);
	struct hw_inventory inv = { .pci = &nic, .n_pci = 1 };
	static const uint16_t emulated[][2] = {
		{ 0x1af4, 0x1000 }, { 0x1af4, 0x1041 }, { 0x15ad, 0x07b0 }, { 0x8086, 0x100e },
		{ 0x8086, 0x10d3 }, { 0x10ec, 0x8139 }, { 0x5853, 0x0001 },
	};

	(void)state;
	nic.parent = 3;
	assert_false(hw_is_nic_vf(&inv, 0)); /* a plain NIC of a real machine */
	inv.hypervisor = true;
	assert_true(hw_is_nic_vf(&inv, 0));
	nic.sriov_total = 4;
	assert_false(hw_is_nic_vf(&inv, 0)); /* a whole PF given to the VM */
	nic.sriov_total = 0;
	for (size_t i = 0; i < ARRAY_LEN(emulated); i++) {
		nic.vendor = emulated[i][0];
		nic.device = emulated[i][1];
		assert_false(hw_is_nic_vf(&inv, 0));
	}
}

static void takes_a_nic_on_a_root_bus_for_a_vf_unless_it_is_the_chipsets(void **state)
{
	struct hw_pci nic = FUNCTION(0x00, 0x020700, 0x15b3, 0x1021);
	const struct hw_inventory inv = { .pci = &nic, .n_pci = 1 };

	(void)state;
	assert_false(hw_is_nic_vf(&inv, 0)); /* where it sits is not known */
	nic.has_root = true;
	assert_true(hw_is_nic_vf(&inv, 0));
	nic.vendor = 0x8086;
	nic.bdf.dev = 0x1f;
	nic.bdf.fn = 6;
	assert_false(hw_is_nic_vf(&inv, 0));
}

static void takes_a_nic_with_the_id_of_a_vf_for_one_wherever_it_sits(void **state)
{
	struct hw_pci nic = FUNCTION(0x05, 0x020700, 0x15b3, 0x101e);
	const struct hw_inventory inv = { .pci = &nic, .n_pci = 1 };

	(void)state;
	nic.has_root = true;
	nic.parent = 3; /* a root port of the VM's own */
	assert_true(hw_is_nic_vf(&inv, 0));
	nic.class_code = 0x010802;
	assert_false(hw_is_nic_vf(&inv, 0));
}

static void understands_the_ids_of_gpu_plugins(void **state)
{
	const struct hw_inventory inv = machine();
	static const struct {
		const char *resource, *id;
		int pci;
	} cases[] = {
		{ "nvidia.com/gpu", "GPU-bbbb", GPU1 },
		{ "nvidia.com/gpu", "GPU-bbbb::3", GPU1 },
		{ "nvidia.com/gpu", "GPU-BBBB", GPU1 },
		{ "nvidia.com/gpu", "GPU-cccc", -1 },
		{ "nvidia.com/gpu", "MIG-aaaa", -1 },
		{ "nvidia.com/gpu", "1", GPU1 },
		{ "nvidia.com/gpu.shared", "0::7", GPU0 },
		{ "nvidia.com/gpu", "2", -1 },
		{ "nvidia.com/mig-1g.10gb", "0", -1 },
		{ "nvidia.com/gpu", "0:1", -1 },
		{ "amd.com/gpu", "0000:20:00.0", AMD },
		{ "amd.com/gpu", "0", AMD },
		{ "any/thing", "00000000:1B:00.0", GPU0 },
		{ "any/thing", "0000:1c:00.0", -1 },
		{ "any/thing", "0", -1 },
		{ NULL, "0", -1 },
		{ "gpu.intel.com/i915", "card12-3", AMD },
		{ "gpu.intel.com/i915", "card3-0", -1 },
		{ "gpu.intel.com/i915", "card", -1 },
		{ "gpu.intel.com/i915", "card999999999999999-0", -1 },
		{ "nvidia.com/gpu", "nvidia1", GPU1 },
		{ "nvidia.com/gpu", "nvidia0/gi3", GPU0 },
		{ "nvidia.com/gpu", "nvidia1/vgpu0", GPU1 },
		{ "nvidia.com/gpu", "nvidia7", -1 },
		{ "nvidia.com/gpu", "nvidia", -1 },
		{ "nvidia.com/gpu", "nvidiactl", -1 },
		{ "any/thing", "0000:1b:00.0-slice-2", GPU0 },
		{ "any/thing", "0000:1c:00.0-slice-2", -1 },
		{ "any/thing", "amdgpu_xcp_0", -1 },
		{ "nvidia.com/gpu", "", -1 },
		{ "nvidia.com/gpu",
		  "GPU-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		  -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(hw_gpu_of_id(&inv, cases[i].resource, cases[i].id), cases[i].pci);
}

/* Equal content in other memory is the same machine; each changed fact makes another. */
static void notices_every_changed_table(void **state)
{
	const struct hw_inventory a = machine();
	struct hw_inventory b = a;
	struct hw_pci other_pci[ARRAY_LEN(functions)];
	struct hw_rdma other_rdma[ARRAY_LEN(rdmas)];
	struct hw_port other_port = ports[0];
	struct hw_gpu other_gpu[ARRAY_LEN(gpus)];
	struct hw_numa other_numa[ARRAY_LEN(numas)];
	int other_row[] = { 10, 21 };
	char cpumap[] = "00000000,0000ffff";
	char state_word[] = "ACTIVE";

	(void)state;
	for (size_t i = 0; i < a.n_pci; i++)
		other_pci[i] = functions[i];
	for (size_t i = 0; i < a.n_rdma; i++)
		other_rdma[i] = rdmas[i];
	for (size_t i = 0; i < a.n_gpu; i++)
		other_gpu[i] = gpus[i];
	for (size_t i = 0; i < a.n_numa; i++)
		other_numa[i] = numas[i];
	other_port.state = state_word;
	other_rdma[1].ports = &other_port;
	other_numa[0].distance = other_row;
	other_numa[0].cpumap = cpumap;
	b.pci = other_pci;
	b.rdma = other_rdma;
	b.gpu = other_gpu;
	b.numa = other_numa;
	assert_true(hw_inventory_same(&a, &b));
	other_pci[VF].driver = "vfio-pci";
	assert_false(hw_inventory_same(&a, &b));
	other_pci[VF].driver = NULL;
	state_word[0] = 'X';
	assert_false(hw_inventory_same(&a, &b));
	state_word[0] = 'A';
	other_gpu[2].uuid = "GPU-dddd";
	assert_false(hw_inventory_same(&a, &b));
	other_gpu[2].uuid = NULL;
	other_row[1] = 20;
	assert_false(hw_inventory_same(&a, &b));
	other_numa[0].distance = NULL;
	assert_false(hw_inventory_same(&a, &b));
	other_numa[0].distance = row;
	b.n_gpu--;
	assert_false(hw_inventory_same(&a, &b));
	b.n_gpu++;
	b.notes = (const char *[]) { "a note" };
	b.n_notes = 1;
	assert_true(hw_inventory_same(&a, &b));
}

static void names_links(void **state)
{
	(void)state;
	assert_string_equal(hw_link_name(HW_LINK_IB), "infiniband");
	assert_string_equal(hw_link_name(HW_LINK_ETHERNET), "ethernet");
	assert_null(hw_link_name(HW_LINK_UNKNOWN));
	hw_inventory_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_address_and_index),
		cmocka_unit_test(tells_nics_from_other_functions_with_vfs),
		cmocka_unit_test(takes_a_passed_through_nic_for_a_vf_but_no_emulated_one),
		cmocka_unit_test(takes_a_nic_on_a_root_bus_for_a_vf_unless_it_is_the_chipsets),
		cmocka_unit_test(takes_a_nic_with_the_id_of_a_vf_for_one_wherever_it_sits),
		cmocka_unit_test(understands_the_ids_of_gpu_plugins),
		cmocka_unit_test(notices_every_changed_table),
		cmocka_unit_test(names_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
