/* Facts that a scan leaves out, as they cost a question to the firmware or a system call a device,
 * and hardly a pool selects by them. */
#include <stdint.h>

#include "base/str.h"
#include "discover/discover.h"
#include "sysroot/sysroot.h"

#define DEVICES	 "sys/bus/pci/devices"
#define RDMA_DIR "sys/class/infiniband"

void discover_default_pkeys(const struct sysroot *root, struct hw_inventory *inv)
{
	for (size_t i = 0; i < inv->n_rdma; i++) {
		struct hw_rdma *rdma = &inv->rdma[i];
		char text[16];
		uint64_t key;

		if (!rdma->n_ports || rdma->ports[0].link != HW_LINK_IB)
			continue;
		if (sysroot_read(root, text, sizeof(text), RDMA_DIR "/%s/ports/%d/pkeys/0",
				 rdma->name, rdma->ports[0].number) > 0 &&
		    !str_to_u64(text, 16, UINT16_MAX, &key))
			rdma->pkey = (uint16_t)key;
	}
}

void discover_acpi_indexes(const struct sysroot *root, struct hw_inventory *inv)
{
	char text[16], addr[BDF_STRLEN];
	int index;

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (sysroot_read(root, text, sizeof(text), DEVICES "/%s/acpi_index",
				 bdf_format(inv->pci[i].bdf, addr)) > 0 &&
		    !str_to_int(str_trim(text), &index) && index >= 0)
			inv->pci[i].acpi_index = index;
	}
}
