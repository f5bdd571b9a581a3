/* The table of NIC drivers: what each row says, and that no two say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/driver.h"

static void finds_a_driver_by_its_name_and_that_of_its_vfs(void **state)
{
	static const struct {
		const char *name, *vfs, *module;
	} cases[] = {
		{ "mlx5_core", "mlx5_core", "mlx5_ib" },
		{ "mlx4_core", "mlx4_core", "mlx4_ib" },
		{ "ice", "iavf", "irdma" },
		{ "i40e", "iavf", "irdma" },
		{ "igb", "igbvf", NULL },
		{ "ixgbe", "ixgbevf", NULL },
		{ "cxgb4", "cxgb4vf", "iw_cxgb4" },
		{ "bnxt_en", "bnxt_en", "bnxt_re" },
		{ "hns3", "hns3", "hns_roce_hw_v2" },
		{ "ionic", "ionic", "ionic_rdma" },
		{ "qede", "qede", "qedr" },
		{ "efa", "efa", "efa" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct hw_driver *d = hw_driver_find(cases[i].name);

		assert_non_null(d);
		assert_int_equal(d->kind, HW_DRIVER_NIC);
		assert_true(str_eq(d->rdma_module, cases[i].module));
		assert_string_equal(hw_driver_of_vfs(cases[i].name), cases[i].vfs);
		assert_true(str_eq(hw_driver_find(cases[i].vfs)->rdma_module, cases[i].module));
	}
	assert_null(hw_driver_find("mlx5"));
	assert_null(hw_driver_find(NULL));
	assert_string_equal(hw_driver_of_vfs("some_nic"), "some_nic");
}

static void knows_the_drivers_that_hand_devices_to_user_space(void **state)
{
	static const char *const user[] = { "vfio-pci",
					    "mlx5_vfio_pci",
					    "hisi_acc_vfio_pci",
					    "virtio_vfio_pci",
					    "nvgrace_gpu_vfio_pci",
					    "igb_uio",
					    "uio_pci_generic",
					    "uio",
					    "pci-stub" };
	static const char *const kernel[] = { "mlx5_core", "iavf", "virtio-pci", "nvidia", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(user); i++)
		assert_true(hw_driver_is_user_space(user[i]));
	for (size_t i = 0; i < ARRAY_LEN(kernel); i++)
		assert_false(hw_driver_is_user_space(kernel[i]));
	assert_false(hw_driver_is_user_space(NULL));
}

static void finds_a_driver_by_its_rdma_device(void **state)
{
	(void)state;
	assert_string_equal(hw_driver_of_rdma("mlx5_4")->name, "mlx5_core");
	assert_string_equal(hw_driver_of_rdma("mlx5_bond_0")->name, "mlx5_core");
	assert_string_equal(hw_driver_of_rdma("bnxt_re0")->name, "bnxt_en");
	assert_null(hw_driver_of_rdma("rocep59s0f0"));
	assert_null(hw_driver_of_rdma(""));
	assert_true(hw_driver_of_rdma("mlx5_0")->quirks & HW_QUIRK_NVSHMEM_DEFAULT);
	assert_false(hw_driver_of_rdma("mlx4_0")->quirks & HW_QUIRK_NVSHMEM_DEFAULT);
}

static void finds_a_driver_by_an_id(void **state)
{
	(void)state;
	assert_string_equal(hw_driver_of_id(0x15b3, 0x101e)->name, "mlx5_core");
	assert_string_equal(hw_driver_of_id(0x8086, 0x1889)->vf, "iavf");
	assert_null(hw_driver_of_id(0x15b3, 0x1021)); /* a PF's */
	assert_int_equal(hw_driver_of_id(0x1af4, 0x1041)->kind, HW_DRIVER_EMULATED);
	assert_int_equal(hw_driver_of_id(0x15ad, 0x0720)->kind, HW_DRIVER_EMULATED);
	assert_null(hw_driver_of_id(0x15ad, 0x0820)); /* VMware's paravirtual RDMA */
}

static void shows_where_rates_are(void **state)
{
	(void)state;
	assert_string_equal(hw_driver_find("mlx5_core")->rate->name, "config");
	assert_string_equal(hw_driver_find("mlx5_core")->rate->line, "MaxTxRate");
	assert_string_equal(hw_driver_find("ice")->rate->name, "max_tx_rate");
	assert_null(hw_driver_find("ice")->rate->line);
}

/* Only drivers of PFs may share the driver of their VFs, and its module with it. */
static void no_two_rows_say_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < hw_drivers_n; i++) {
		const struct hw_driver *d = &hw_drivers[i];

		assert_ptr_equal(hw_driver_find(d->name), d);
		assert_int_equal(!d->rdma_module, !d->rdma_prefix);
		assert_true(d->kind == HW_DRIVER_NIC || (!d->vf && !d->rdma_module));
		for (size_t k = 0; k < d->n_ids; k++)
			assert_ptr_equal(hw_driver_of_id(d->ids[k].vendor, d->ids[k].device), d);
		if (d->vf)
			assert_true(str_eq(hw_driver_find(d->vf)->rdma_module, d->rdma_module));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_driver_by_its_name_and_that_of_its_vfs),
		cmocka_unit_test(knows_the_drivers_that_hand_devices_to_user_space),
		cmocka_unit_test(finds_a_driver_by_its_rdma_device),
		cmocka_unit_test(finds_a_driver_by_an_id),
		cmocka_unit_test(shows_where_rates_are),
		cmocka_unit_test(no_two_rows_say_the_same),
	};

	return cmocka_run_group_tests_name("hw/driver", tests, NULL, NULL);
}
