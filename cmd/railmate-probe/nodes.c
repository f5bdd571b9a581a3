/* Verbs devices of VFs in sysfs. The kernel writes it; names that came from map.json hold no slash
 * (told.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "hw/driver.h"
#include "nodes.h"
#include "sysroot/sysroot.h"
#include "told.h"

#define CLASS "sys/class/infiniband_verbs"

int node_read(const struct sysroot *root, const char *name, struct node *ret)
{
	struct node node = { .number = 0 };
	unsigned major, minor;
	char text[32];
	int r;

	r = sysroot_read(root, node.ibdev, sizeof(node.ibdev), CLASS "/%s/ibdev", name);
	if (r < 0)
		return r;
	r = sysroot_read(root, text, sizeof(text), CLASS "/%s/dev", name);
	if (r < 0)
		return r;
	if (sscanf(text, "%u:%u", &major, &minor) != 2 || strlen(name) >= sizeof(node.name))
		return -EINVAL;
	strcpy(node.name, name);
	node.number = makedev(major, minor);
	*ret = node;
	return 0;
}

struct wanted {
	const struct sysroot *root;
	const char *hca;
	struct node *ret;
};

static int is_wanted(void *arg, const char *name)
{
	const struct wanted *w = arg;
	struct node node;

	if (node_read(w->root, name, &node) < 0 || !str_eq(node.ibdev, w->hca))
		return 0;
	*w->ret = node;
	return 1;
}

int node_of_vf(const struct sysroot *root, const struct told_vf *vf, struct node *ret)
{
	struct wanted w = { root, vf->hca, ret };
	int r = vf->hca ? sysroot_each(root, CLASS, is_wanted, &w) : 0;

	if (r < 0)
		return r;
	return r ? 0 : -ENOENT;
}

int node_provider(const struct sysroot *root, const struct told_vf *vf, char *buf, size_t size)
{
	const struct hw_driver *driver;
	const char *provider = NULL;
	char name[64];
	size_t n;

	if (!vf->hca)
		return -ENOENT;
	if (sysroot_link_name(root, name, sizeof(name), "sys/class/infiniband/%s/device/driver",
			      vf->hca) == 0 ||
	    sysroot_link_name(root, name, sizeof(name), "sys/bus/pci/devices/%s/driver", vf->bdf) ==
		    0)
		driver = hw_driver_find(name);
	else
		driver = hw_driver_of_rdma(vf->hca);
	/* Soft RDMA: rxe alone has the file `parent` (drivers/infiniband/sw/rxe/rxe_verbs.c). */
	if (sysroot_exists(root, "sys/class/infiniband/%s/parent", vf->hca))
		provider = "rxe";
	else if (driver && driver->rdma_prefix)
		provider = driver->rdma_prefix; /* "mlx5", "mana_" */
	n = provider ? strlen(provider) : 0;
	n -= n && provider[n - 1] == '_';
	if (!n || n >= size)
		return -ENOENT;
	memcpy(buf, provider, n);
	buf[n] = '\0';
	return 0;
}
