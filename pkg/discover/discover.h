/* sysfs and procfs below a root → struct hw_inventory. The only reader of the machine's
 * description. */
#ifndef RAILMATE_DISCOVER_DISCOVER_H
#define RAILMATE_DISCOVER_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "hw/gpumatch.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"

struct arena;
struct err;
struct hw_port_stats;
struct hw_vf_stats;
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
 * without PCI, NUMA or RDMA gives empty tables. gpus may be NULL: the built-in table. Any thread;
 * the result belongs to the caller (hw_inventory_free).
 */
int discover_host(const struct sysroot *root, const struct gpu_match *gpus, size_t n_gpus,
		  struct hw_inventory **ret, struct err *err);
/*
 * The same, of a machine that was looked at before: what takes long and does not change (VPD) is
 * taken from that inventory, also that it could not be read. before: NULL, or unchanged for the
 * call.
 */
int discover_host_again(const struct sysroot *root, const struct gpu_match *gpus, size_t n_gpus,
			const struct hw_inventory *before, struct hw_inventory **ret,
			struct err *err);

/*
 * Look at one function again, now: its driver, first RDMA device and uverbs node, never from a
 * cache. -ENOENT: the function is gone. Strings live in the struct.
 */
struct function_now {
	char driver[64]; /* "" none */
	char rdma[64];	 /* "" none */
	char uverbs[64]; /* "" none */
	int physfn;	 /* 1: has a physfn link */
};
int discover_function_now(const struct sysroot *root, struct bdf bdf, struct function_now *ret,
			  struct err *err);

/* How user space reaches a function. false: the driver (NULL: none) is no user-space driver. */
bool discover_user_io(const struct sysroot *root, struct bdf bdf, const char *driver,
		      struct user_io *ret);

/* The MAD nodes of a function's RDMA device, one a port: "umad4". How many. */
#define UMADS_MAX     8
#define UMAD_NAME_MAX 16
size_t discover_umads(const struct sysroot *root, struct bdf bdf, const char *rdma,
		      char ret[UMADS_MAX][UMAD_NAME_MAX]);

/* The GID table of a port, without empty slots. Entries whose type cannot be read have type "". */
int discover_gids(const struct sysroot *root, const char *rdma, int port,
		  struct gid_entry ret[GID_TABLE_MAX], size_t *ret_n, struct err *err);
/* The P_Key table of a port: non-zero entries in index order; returns their number (at most max).
 */
size_t discover_pkeys(const struct sysroot *root, const char *rdma, int port, uint16_t *ret,
		      size_t max);

/* What the kernel counts of the link of a PF; -1: it does not. */
struct link_counts {
	int64_t netdev_downs,
		port_downs; /* how often its interface, its first RDMA port went down */
	int64_t errors; /* of the first RDMA port: symbols, packets, buffers, checksums; the sum */
};
struct link_counts discover_link_counts(const struct sysroot *root, const struct hw_inventory *inv,
					int pci);

/* Fills hw_rdma.pkey of all RDMA devices with an InfiniBand port: a question to the firmware each,
 * so not part of a scan. */
void discover_default_pkeys(const struct sysroot *root, struct hw_inventory *inv);
/* Fills hw_pci.acpi_index of all functions: a system call each, and hardly a pool selects by it. */
void discover_acpi_indexes(const struct sysroot *root, struct hw_inventory *inv);

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

/* What the kernel counts of every port of every NIC (of PFs, and of VFs whose PF is not visible),
 * as it is now; its drivers may ask the firmware, so not part of a scan. In the order of inv->rdma.
 */
struct hw_port_stats *discover_port_stats(const struct sysroot *root,
					  const struct hw_inventory *inv, struct arena *arena,
					  size_t *ret_n);

/*
 * What is counted of these VFs (indices into inv->pci), in their order: their traffic, which the PF
 * is asked for, on the live machine; and what their own RDMA devices count of errors and
 * congestion, where they are in sight and there are no more than DISCOVER_VF_COUNTERS of them.
 */
#define DISCOVER_VF_COUNTERS 128
struct hw_vf_stats *discover_vf_stats(const struct sysroot *root, const struct hw_inventory *inv,
				      const int *vfs, size_t n, struct arena *arena);

/* Sentence if libnuma on the live machine disagrees with the tables; empty buffer if it agrees or
 * root is not live. */
void discover_check_numa(const struct sysroot *root, const struct hw_inventory *inv,
			 struct strbuf *out);
/* "NVIDIA Corporation GH100 [H100 SXM5 80GB]" from pci.ids below root; NULL unknown. Heap string.
 */
char *discover_pci_name(const struct sysroot *root, uint16_t vendor, uint16_t device);

#endif
