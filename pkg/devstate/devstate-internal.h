/* devstate_vfs() with its ways into namespaces as parameters, so that a test can have
 * namespaces without VFs. */
#ifndef RAILMATE_DEVSTATE_DEVSTATE_INTERNAL_H
#define RAILMATE_DEVSTATE_DEVSTATE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "devstate/devstate.h"
#include "hw/bdf.h"

struct err;
struct sysroot;

struct netns_calls {
	bool live; /* namespaces of this machine are those of the root's */
	bool (*function_of)(const char *netdev, struct bdf *ret);
	int (*sysfs_open)(struct sysroot **ret, struct err *err);
	void (*sysfs_close)(struct sysroot *root);
};

int devstate_vfs_by(const struct netns_calls *calls, const struct sysroot *root,
		    const char *netns_dir, const struct bdf *bdfs, size_t n, struct arena *arena,
		    struct vf_state *ret, struct err *err);

/* Network namespaces that are files of a directory, and sysfs as one of them sees it. The thread
 * that uses this is in another namespace afterwards. */

/* The processes in a namespace decide how much there is to read; NCCL uses no more than this of
 * anything. */
#define NETNS_CROWD_MAX 4096

/* The PCI function of a network interface of the namespace we are in; false: it has none. */
bool netns_function_of(const char *netdev, struct bdf *ret);
int netns_mtu_of(const char *netdev); /* 0 unknown */

/*
 * The live machine with the sysfs of the namespace we are in: a fresh one over /sys, in a mount
 * namespace of this thread's own. To be closed before the next namespace is entered.
 */
int netns_sysfs_open(struct sysroot **ret, struct err *err);
void netns_sysfs_close(struct sysroot *root);

/* Reads of devstate.c that vfstate.c does as well, in another network namespace. */

/* Both tables of a port, now: GIDs without empty slots, P_Keys index by index. Empty where there is
 * no such port. */
struct port_tables {
	struct gid_entry *gids;
	size_t n_gids;
	int gid_table_len; /* slots */
	uint16_t *pkeys;
	size_t n_pkeys;
};
void rdma_read_tables(const struct sysroot *root, const char *rdma, int port, struct arena *arena,
		      struct port_tables *ret);
/* The verbs device that serves ret->rdma, by the class of all of them. */
void find_class_uverbs(const struct sysroot *root, struct function_now *ret);

#endif
