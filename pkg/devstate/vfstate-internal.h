/* devstate_vfs() with its ways into namespaces as parameters, so that a test can have
 * namespaces without VFs. */
#ifndef RAILMATE_DEVSTATE_VFSTATE_INTERNAL_H
#define RAILMATE_DEVSTATE_VFSTATE_INTERNAL_H

#include "devstate/netns-internal.h"
#include "devstate/vfstate.h"

struct netns_calls {
	bool live; /* namespaces of this machine are those of the root's */
	bool (*function_of)(const char *netdev, struct bdf *ret);
	int (*sysfs_open)(struct sysroot **ret, struct err *err);
	void (*sysfs_close)(struct sysroot *root);
};

int devstate_vfs_by(const struct netns_calls *calls, const struct sysroot *root,
		    const char *netns_dir, const struct bdf *bdfs, size_t n, struct arena *arena,
		    struct vf_state *ret, struct err *err);

#endif
