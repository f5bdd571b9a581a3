/*
 * The state of a device at this moment, for an answer that depends on it: nothing here comes from
 * an earlier scan. devstate_vfs() reads a VF in the network namespace of a pod. Any thread.
 */
#ifndef RAILMATE_DEVSTATE_DEVSTATE_H
#define RAILMATE_DEVSTATE_DEVSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "hw/vfstate.h"

struct arena;
struct err;
struct hw_inventory;
struct hw_port_stats;
struct hw_vf_stats;
struct sysroot;

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
int devstate_function(const struct sysroot *root, struct bdf bdf, struct function_now *ret,
		      struct err *err);

/* How user space reaches a function. false: the driver (NULL: none) is not a user-space driver. */
bool devstate_user_io(const struct sysroot *root, struct bdf bdf, const char *driver,
		      struct user_io *ret);

/* The MAD nodes of a function's RDMA device, one a port: "umad4". Returns their number. */
#define UMADS_MAX     8
#define UMAD_NAME_MAX 16
size_t devstate_umads(const struct sysroot *root, struct bdf bdf, const char *rdma,
		      char ret[UMADS_MAX][UMAD_NAME_MAX]);

/* The GID table of a port, without empty slots. Entries whose type cannot be read have type "". */
int devstate_gids(const struct sysroot *root, const char *rdma, int port,
		  struct gid_entry ret[GID_TABLE_MAX], size_t *ret_n, struct err *err);
/* The P_Key table of a port: non-zero entries in index order; returns their number (at most max).
 */
size_t devstate_pkeys(const struct sysroot *root, const char *rdma, int port, uint16_t *ret,
		      size_t max);

/* The kernel's counters of a link of a PF; -1: not counted. */
struct link_counts {
	/* How often the interface (of the first port) and the RDMA port went down */
	int64_t netdev_downs, port_downs;
	int64_t errors; /* of the RDMA port: symbols, packets, buffers, checksums; the sum */
};
/* port: index into the ports of its RDMA device; 0 also where it has none. */
struct link_counts devstate_link_counts(const struct sysroot *root, const struct hw_inventory *inv,
					int pci, size_t port);

/* The kernel's counters of every port of every NIC (of PFs, and of VFs whose PF is not visible), as
 * they are now; drivers may ask the firmware, so not part of a scan. In the order of inv->rdma,
 * then PFs with VFs and without an RDMA device, in that of inv->pci. */
struct hw_port_stats *devstate_port_stats(const struct sysroot *root,
					  const struct hw_inventory *inv, struct arena *arena,
					  size_t *ret_n);

/*
 * Counters of these VFs (indices into inv->pci), in their order: their traffic, which the PF is
 * asked for, on the live machine; and errors and congestion as their own RDMA devices count them,
 * where they are in sight and there are no more than DEVSTATE_VF_COUNTERS of them.
 */
#define DEVSTATE_VF_COUNTERS 128
struct hw_vf_stats *devstate_vf_stats(const struct sysroot *root, const struct hw_inventory *inv,
				      const int *vfs, size_t n, struct arena *arena);

/*
 * A VF as it is the moment a container starts: in whatever network namespace its netdev and its
 * RDMA device are by then (the sandbox and the CNI plugins are done when PreStartContainer comes;
 * docs/design/nccl.md §1.6).
 *
 * Namespaces are files below a directory (/run/netns: containerd and CRI-O bind them there). To
 * look into one takes CAP_SYS_ADMIN; without it, and where the directory is not there, the state in
 * the host's own namespace is reported: with RDMA devices in shared mode that is the GID table too.
 */

/*
 * Looks at each function, in the host's namespace and, for those that are not there, in the
 * namespaces below netns_dir (newest first; NULL: none). Changes namespaces: the calling thread
 * must be one that ends afterwards (grant/vfprobe.h). A namespace that goes away meanwhile is as if
 * it had never been. -ENOENT: a function is gone from the bus. Never waits for another thread.
 */
int devstate_vfs(const struct sysroot *root, const char *netns_dir, const struct bdf *bdfs,
		 size_t n, struct arena *arena, struct vf_state *ret, struct err *err);

#endif
