/* sysfs, procfs and LLDP neighbours below a root → struct hw_inventory. The only reader of the
 * machine's description: it changes nothing, and equal trees give equal inventories. */
#ifndef RAILMATE_DISCOVER_DISCOVER_H
#define RAILMATE_DISCOVER_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "hw/inventory.h"

struct arena;
struct err;
struct strbuf;
struct sysroot;

/* Is the VPD of this function read, on a machine with Data Direct? */
bool discover_reads_vpd(const struct hw_pci *f);

/* GPUs, when the configuration names none. */
extern const struct gpu_match gpu_match_default[];
extern const size_t gpu_match_default_n;

/*
 * Scan the machine below root. A device that cannot be read, contradicts itself or vanishes is left
 * out (or the one fact is) with a sentence in inv->notes; only an unusable root is an error. A tree
 * without PCI, NUMA or RDMA gives empty tables. gpus may be NULL: the built-in table. before: of
 * the scan before, unchanged for the call; facts that take long and do not change (VPD) are taken
 * from it, also that it could not be read; NULL: none. Any thread; the result belongs to the caller
 * (hw_inventory_free).
 */
int discover_host(const struct sysroot *root, const struct gpu_match *gpus, size_t n_gpus,
		  const struct hw_inventory *before, struct hw_inventory **ret, struct err *err);

/* Fills hw_rdma.pkey of all RDMA devices with an InfiniBand port: a question to the firmware each,
 * so not part of a scan. */
void discover_default_pkeys(const struct sysroot *root, struct hw_inventory *inv);
/* Fills hw_pci.acpi_index of all functions: a system call each, and hardly a pool selects by it. */
void discover_acpi_indexes(const struct sysroot *root, struct hw_inventory *inv);

/* The netdev on which a soft RDMA device sits; -ENOENT when it names none. */
int discover_soft_netdev(const struct sysroot *root, const char *rdma, char *buf, size_t size);
/* The ports of one device, now; a fact that cannot be read is unknown. */
void discover_rdma_ports(const struct sysroot *root, const char *rdma, struct arena *arena,
			 struct hw_rdma *ret);

/* How two GPUs reach each other; an element for each pair, in the order of inv->gpu. Not part of a
 * scan: no choice depends on it. */
#define KFD_NODES "sys/class/kfd/kfd/topology/nodes"
enum gpu_link { GPU_LINK_UNKNOWN, GPU_LINK_PCIE, GPU_LINK_XGMI, GPU_LINK_NVLINK };
struct gpu_links {
	size_t n;
	enum gpu_link *link; /* [a * n + b] */
};
struct gpu_links discover_gpu_links(const struct sysroot *root, const struct hw_inventory *inv,
				    struct arena *arena);

/* Sentence if libnuma on the live machine disagrees with the tables; empty buffer if it agrees or
 * root is not live. */
void discover_check_numa(const struct sysroot *root, const struct hw_inventory *inv,
			 struct strbuf *out);
/* "NVIDIA Corporation GH100 [H100 SXM5 80GB]" from pci.ids below root; NULL unknown. Heap string.
 */
char *discover_pci_name(const struct sysroot *root, uint16_t vendor, uint16_t device);

#endif
