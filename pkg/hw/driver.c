/*
 * Facts: pci.ids; in the kernel the id tables of drivers/net/ethernet and drivers/vfio/pci, and
 * ib_register_device() in drivers/infiniband/hw; rate files: MLNX_OFED, Intel's out-of-tree
 * drivers.
 */
#include "hw/driver.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { RATE_MLNX_OFED, RATE_INTEL };

/* MLNX_OFED has a max_tx_rate, too: a text that explains how to write it. So its file comes first.
 */
const struct hw_rate_file hw_rate_files[] = {
	[RATE_MLNX_OFED] = { "config", "MaxTxRate" },
	[RATE_INTEL] = { "max_tx_rate", NULL },
};
const size_t hw_rate_files_n = ARRAY_LEN(hw_rate_files);

#define IDS(...)                                                                                   \
	.ids = (const struct hw_nic_id[]) { __VA_ARGS__ },                                         \
	.n_ids = ARRAY_LEN(((const struct hw_nic_id[]) { __VA_ARGS__ }))

const struct hw_driver hw_drivers[] = {
	{ .name = "mlx5_core",
	  .rdma_module = "mlx5_ib",
	  .rdma_prefix = "mlx5",
	  .rate = &hw_rate_files[RATE_MLNX_OFED],
	  .quirks = HW_QUIRK_NVSHMEM_DEFAULT | HW_QUIRK_ECN_IN_SYSFS,
	  IDS({ 0x15b3, 0x1012 }, { 0x15b3, 0x1014 },	 /* Connect-IB, ConnectX-4 */
	      { 0x15b3, 0x1016 }, { 0x15b3, 0x1018 },	 /* ConnectX-4 Lx, ConnectX-5 */
	      { 0x15b3, 0x101a }, { 0x15b3, 0x101c },	 /* ConnectX-5 Ex, ConnectX-6 */
	      { 0x15b3, 0x101e }, { 0x15b3, 0xa2d3 }) }, /* any later one, BlueField */
	{ .name = "mlx4_core",
	  .rdma_module = "mlx4_ib",
	  .rdma_prefix = "mlx4",
	  IDS({ 0x15b3, 0x1004 }) }, /* ConnectX-3 */
	{ .name = "ice",
	  .vf = "iavf",
	  .rdma_module = "irdma",
	  .rdma_prefix = "irdma",
	  .rate = &hw_rate_files[RATE_INTEL],
	  IDS({ 0x8086, 0x1889 }, { 0x8086, 0x0dd5 }) }, /* adaptive VF: E810 and later */
	{ .name = "i40e",
	  .vf = "iavf",
	  .rdma_module = "irdma",
	  .rdma_prefix = "irdma",
	  .rate = &hw_rate_files[RATE_INTEL],
	  IDS({ 0x8086, 0x154c }, { 0x8086, 0x1571 }, { 0x8086, 0x37cd }) }, /* 700 series */
	{ .name = "ixgbe",
	  .vf = "ixgbevf",
	  IDS({ 0x8086, 0x10ed }, { 0x8086, 0x1515 }, { 0x8086, 0x1565 }) },
	{ .name = "igb", .vf = "igbvf", IDS({ 0x8086, 0x10ca }, { 0x8086, 0x1520 }) },
	{ .name = "bnxt_en",
	  .rdma_module = "bnxt_re",
	  .rdma_prefix = "bnxt_re",
	  IDS({ 0x14e4, 0x1606 }, { 0x14e4, 0x1609 }, { 0x14e4, 0x16c1 }, { 0x14e4, 0x16d3 },
	      { 0x14e4, 0x16dc }, { 0x14e4, 0x1806 }, { 0x14e4, 0x1807 }, { 0x14e4, 0x1808 },
	      { 0x14e4, 0x1809 }) }, /* NetXtreme-E */
	{ .name = "cxgb4", .vf = "cxgb4vf", .rdma_module = "iw_cxgb4", .rdma_prefix = "cxgb4_" },
	{ .name = "qede",
	  .rdma_module = "qedr",
	  .rdma_prefix = "qedr",
	  IDS({ 0x1077, 0x1664 }, { 0x1077, 0x8090 }) }, /* FastLinQ */
	{ .name = "hinic", IDS({ 0x19e5, 0x375e }) },	 /* Hi1822 */
	{ .name = "hns3",
	  .rdma_module = "hns_roce_hw_v2",
	  .rdma_prefix = "hns_",
	  IDS({ 0x19e5, 0xa22e }, { 0x19e5, 0xa22f }) },
	{ .name = "mana", .rdma_module = "mana_ib", .rdma_prefix = "mana_" },
	{ .name = "ionic",
	  .rdma_module = "ionic_rdma",
	  .rdma_prefix = "ionic_",
	  IDS({ 0x1dd8, 0x1003 }) }, /* DSC */
	{ .name = "efa",
	  .rdma_module = "efa",
	  .rdma_prefix = "efa_",
	  IDS({ 0x1d0f, 0xefa0 }, { 0x1d0f, 0xefa1 }, { 0x1d0f, 0xefa2 }, { 0x1d0f, 0xefa3 }) },

	{ .name = "virtio-pci", .kind = HW_DRIVER_EMULATED, IDS({ 0x1af4, HW_DEVICE_ANY }) },
	{ .name = "vmxnet3",
	  .kind = HW_DRIVER_EMULATED,
	  IDS({ 0x15ad, 0x07b0 }, { 0x15ad, 0x0720 }) }, /* vmxnet, too */
	{ .name = "e1000",
	  .kind = HW_DRIVER_EMULATED,
	  IDS({ 0x8086, 0x100e }, { 0x8086, 0x100f }) }, /* QEMU, VMware */
	{ .name = "e1000e", .kind = HW_DRIVER_EMULATED, IDS({ 0x8086, 0x10d3 }) },
	{ .name = "e100", .kind = HW_DRIVER_EMULATED, IDS({ 0x8086, 0x1209 }, { 0x8086, 0x1229 }) },
	{ .name = "8139cp", .kind = HW_DRIVER_EMULATED, IDS({ 0x10ec, 0x8139 }) },
	{ .name = "ne2k-pci", .kind = HW_DRIVER_EMULATED, IDS({ 0x10ec, 0x8029 }) },
	{ .name = "pcnet32", .kind = HW_DRIVER_EMULATED, IDS({ 0x1022, 0x2000 }) },
	{ .name = "tulip",
	  .kind = HW_DRIVER_EMULATED,
	  IDS({ 0x1011, 0x0009 }, { 0x1011, 0x0019 }) }, /* Hyper-V, QEMU */
	{ .name = "xen-platform-pci", .kind = HW_DRIVER_EMULATED, IDS({ 0x5853, HW_DEVICE_ANY }) },
	{ .name = "gve", .kind = HW_DRIVER_EMULATED, IDS({ 0x1ae0, 0x0042 }) },

	{ .name = "vfio-pci", .kind = HW_DRIVER_VFIO },
	{ .name = "mlx5_vfio_pci", .kind = HW_DRIVER_VFIO },
	{ .name = "hisi_acc_vfio_pci", .kind = HW_DRIVER_VFIO },
	{ .name = "virtio_vfio_pci", .kind = HW_DRIVER_VFIO },
	{ .name = "nvgrace_gpu_vfio_pci", .kind = HW_DRIVER_VFIO },
	{ .name = "igb_uio", .kind = HW_DRIVER_UIO },
	{ .name = "uio_pci_generic", .kind = HW_DRIVER_UIO },
	{ .name = "uio", .kind = HW_DRIVER_UIO },
	{ .name = "pci-stub", .kind = HW_DRIVER_STUB },
};
const size_t hw_drivers_n = ARRAY_LEN(hw_drivers);

const struct hw_driver *hw_driver_find(const char *name)
{
	for (size_t i = 0; name && i < hw_drivers_n; i++) {
		if (str_eq(hw_drivers[i].name, name) || str_eq(hw_drivers[i].vf, name))
			return &hw_drivers[i];
	}
	return NULL;
}

const char *hw_driver_of_vfs(const char *pf)
{
	const struct hw_driver *d = hw_driver_find(pf);

	return d && d->vf ? d->vf : pf;
}

bool hw_driver_is_user_space(const char *name)
{
	const struct hw_driver *d = hw_driver_find(name);

	return d && d->kind >= HW_DRIVER_VFIO;
}

const struct hw_driver *hw_driver_of_rdma(const char *rdma)
{
	for (size_t i = 0; i < hw_drivers_n; i++) {
		if (hw_drivers[i].rdma_prefix && str_starts(rdma, hw_drivers[i].rdma_prefix))
			return &hw_drivers[i];
	}
	return NULL;
}

const struct hw_driver *hw_driver_of_id(uint16_t vendor, uint16_t device)
{
	for (size_t i = 0; i < hw_drivers_n; i++) {
		const struct hw_driver *d = &hw_drivers[i];

		for (size_t k = 0; k < d->n_ids; k++) {
			if (d->ids[k].vendor == vendor &&
			    (d->ids[k].device == HW_DEVICE_ANY || d->ids[k].device == device))
				return d;
		}
	}
	return NULL;
}

/* "MaxTxRate  : 25000", among other lines. */
const char *hw_rate_line(const struct hw_rate_file *file, const char *text)
{
	size_t n = strlen(file->line);
	const char *at = text;

	while (at && strncmp(at, file->line, n) != 0)
		at = str_next_line(at);
	return at;
}
