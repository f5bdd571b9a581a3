/* Device nodes beside the verbs node: of user-space drivers, and of MAD. Looked at when an answer
 * depends on them. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "devstate/devstate.h"
#include "hw/driver.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

#define DEVICES	  "sys/bus/pci/devices"
#define MAD_CLASS "sys/class/infiniband_mad"

/* A number as the kernel prints it, and nothing else. */
static bool is_number(const char *s)
{
	return *s && strlen(s) <= 10 && strspn(s, "0123456789") == strlen(s);
}

/* Without an IOMMU the group has a name, and its node is called noiommu-N; user space looks for N
 * all the same. */
static void find_group(const struct sysroot *root, const char *addr, struct user_io *ret)
{
	char group[16], name[32];

	if (sysroot_link_name(root, group, sizeof(group), DEVICES "/%s/iommu_group", addr) < 0 ||
	    !is_number(group))
		return;
	snprintf(ret->node, sizeof(ret->node), "/dev/vfio/%s", group);
	if (sysroot_read(root, name, sizeof(name), DEVICES "/%s/iommu_group/name", addr) > 0 &&
	    str_eq(name, "vfio-noiommu"))
		snprintf(ret->host, sizeof(ret->host), "/dev/vfio/noiommu-%s", group);
	else
		snprintf(ret->host, sizeof(ret->host), "%s", ret->node);
}

static void find_uio(const struct sysroot *root, const char *addr, struct user_io *ret)
{
	_cleanup_dir_ struct dir dev = DIR_CLOSED;
	_cleanup_names_ struct names names = NAMES_EMPTY;
	char path[64];

	snprintf(path, sizeof(path), DEVICES "/%s", addr);
	if (dir_open_path(root, path, &dev) < 0 || names_below(&dev, "uio", &names) < 0 || !names.n)
		return;
	if (!str_starts(names.v[0], "uio") || !is_number(names.v[0] + strlen("uio")))
		return;
	snprintf(ret->node, sizeof(ret->node), "/dev/%s", names.v[0]);
	snprintf(ret->host, sizeof(ret->host), "%s", ret->node);
}

bool devstate_user_io(const struct sysroot *root, struct bdf bdf, const char *driver,
		      struct user_io *ret)
{
	const struct hw_driver *known = hw_driver_find(driver);
	char addr[BDF_STRLEN];

	if (!known || (known->kind != HW_DRIVER_VFIO && known->kind != HW_DRIVER_UIO))
		return false;
	*ret = (struct user_io) { .vfio = known->kind == HW_DRIVER_VFIO };
	(ret->vfio ? find_group : find_uio)(root, bdf_format(bdf, addr), ret);
	return true;
}

/* Those of a directory of MAD devices that belong to the RDMA device. */
static size_t umads_of(const struct dir *mad, const char *rdma, char ret[UMADS_MAX][UMAD_NAME_MAX])
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	char path[NAME_MAX + 8], text[80];
	size_t n = 0;

	names_of(mad, &names);
	for (size_t i = 0; i < names.n && n < UMADS_MAX; i++) {
		if (!str_starts(names.v[i], "umad") || !is_number(names.v[i] + strlen("umad")) ||
		    strlen(names.v[i]) >= UMAD_NAME_MAX)
			continue;
		snprintf(path, sizeof(path), "%s/ibdev", names.v[i]);
		if (dir_read(mad, path, text, sizeof(text)) > 0 && str_eq(text, rdma))
			strcpy(ret[n++], names.v[i]);
	}
	return n;
}

size_t devstate_umads(const struct sysroot *root, struct bdf bdf, const char *rdma,
		      char ret[UMADS_MAX][UMAD_NAME_MAX])
{
	_cleanup_dir_ struct dir own = DIR_CLOSED, class = DIR_CLOSED;
	char path[80], addr[BDF_STRLEN];
	size_t n = 0;

	snprintf(path, sizeof(path), DEVICES "/%s/infiniband_mad", bdf_format(bdf, addr));
	if (!dir_open_path(root, path, &own))
		n = umads_of(&own, rdma, ret);
	if (!n && !dir_open_path(root, MAD_CLASS, &class))
		n = umads_of(&class, rdma, ret);
	return n;
}
