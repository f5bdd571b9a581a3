/*
 * A VF as it is the moment a container starts: in whatever network namespace its netdev and its
 * RDMA device are by then (the sandbox and the CNI plugins are done when PreStartContainer comes;
 * docs/design/nccl.md §1.6).
 *
 * Namespaces are files below a directory (/run/netns: containerd and CRI-O bind them there). To
 * look into one takes CAP_SYS_ADMIN; without it, and where the directory is not there, the state in
 * the host's own namespace is reported: with RDMA devices in shared mode that is the GID table too.
 */
#ifndef RAILMATE_DEVSTATE_VFSTATE_H
#define RAILMATE_DEVSTATE_VFSTATE_H

#include <stddef.h>

#include "hw/vfstate.h"

struct arena;
struct err;
struct sysroot;

/*
 * Looks at each function, in the host's namespace and, for those that are not there, in the
 * namespaces below netns_dir (newest first; NULL: none). Changes namespaces: the calling thread
 * must be one that ends afterwards (grant/vfprobe.h). A namespace that goes away meanwhile is as if
 * it had never been. -ENOENT: a function is gone from the bus. Never waits for another thread.
 */
int devstate_vfs(const struct sysroot *root, const char *netns_dir, const struct bdf *bdfs,
		 size_t n, struct arena *arena, struct vf_state *ret, struct err *err);

#endif
