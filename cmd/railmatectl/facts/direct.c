/*
 * The five functions are declared here, not taken from rdma-core's headers: those of Debian 12 are
 * of v44, and the last one came with v54 (libmlx5 MLX5_1.25). Sources: rdma-core,
 * libibverbs/verbs.h and mlx5dv_get_data_direct_sysfs_path(3).
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "facts/direct.h"
#include "facts/gather.h"
#include "hw/inventory.h"

struct ibv_device;
struct ibv_context;

struct verbs {
	struct ibv_device **(*get_device_list)(int *n);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*get_path)(struct ibv_context *context, char *buf, size_t size); /* 0 or errno */
};

/* ISO C has no conversion of an object pointer to a function's; POSIX has it so. */
static bool find_symbol(void *library, const char *name, void *ret)
{
	void *symbol = dlsym(library, name);

	memcpy(ret, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load(const char *libibverbs, const char *libmlx5, struct verbs *v)
{
	void *verbs = dlopen(libibverbs, RTLD_NOW | RTLD_LOCAL);
	void *mlx5 = verbs ? dlopen(libmlx5, RTLD_NOW | RTLD_LOCAL) : NULL;

	return mlx5 && find_symbol(verbs, "ibv_get_device_list", &v->get_device_list) &&
	       find_symbol(verbs, "ibv_free_device_list", &v->free_device_list) &&
	       find_symbol(verbs, "ibv_get_device_name", &v->get_device_name) &&
	       find_symbol(verbs, "ibv_open_device", &v->open_device) &&
	       find_symbol(verbs, "ibv_close_device", &v->close_device) &&
	       find_symbol(mlx5, "mlx5dv_get_data_direct_sysfs_path", &v->get_path);
}

/* The path is "/devices/pci0009:00/0009:00:00.0/…/0009:03:00.0". */
static void ask_device(const struct verbs *v, struct ibv_device *device,
		       struct facts_direct_nic *nic, struct arena *arena)
{
	struct ibv_context *context;
	char path[PATH_MAX] = "", *last;
	int r;

	errno = 0;
	context = v->open_device(device);
	if (!context) {
		nic->why = arena_printf(arena, "its RDMA device cannot be opened: %s",
					strerror(errno ? errno : EIO));
		return;
	}
	r = v->get_path(context, path, sizeof(path) - 1);
	v->close_device(context);
	last = strrchr(path, '/');
	if (r == ENODEV) {
		nic->answer = FACTS_DIRECT_NONE;
	} else if (r) {
		nic->why = arena_printf(arena, "libmlx5 cannot say its data direct function: %s",
					strerror(r));
	} else if (bdf_parse(last ? last + 1 : path, &nic->bdf) == 0) {
		nic->answer = FACTS_DIRECT_FOUND;
	} else {
		str_printable(path, strlen(path), "");
		nic->why = arena_printf(arena, "libmlx5 names '%s', which is not a PCI function",
					path);
	}
}

const struct facts_direct *facts_ask_libmlx5(const struct hw_inventory *inv, const char *libibverbs,
					     const char *libmlx5, struct arena *arena)
{
	struct facts_direct_nic *nics = arena_array(arena, inv->n_card, sizeof(*nics));
	struct facts_direct *ret;
	struct ibv_device **list;
	size_t n_nics = 0;
	struct verbs v;
	int n = 0;

	for (size_t i = 0; i < inv->n_card; i++) {
		if (!hw_is_data_direct(&inv->pci[inv->card[i].pci]))
			nics[n_nics++] = (struct facts_direct_nic) { .pci = inv->card[i].pci };
	}
	if (!n_nics || !load(libibverbs, libmlx5, &v))
		return NULL;
	list = v.get_device_list(&n);
	for (size_t i = 0; i < n_nics; i++) {
		int rdma = hw_find_rdma(inv, nics[i].pci), k = list && rdma >= 0 ? 0 : n;

		nics[i].why = "it has no RDMA device here";
		while (k < n && !str_eq(v.get_device_name(list[k]), inv->rdma[rdma].name))
			k++;
		if (k < n)
			ask_device(&v, list[k], &nics[i], arena);
	}
	if (list)
		v.free_device_list(list);
	ret = arena_alloc(arena, sizeof(*ret));
	*ret = (struct facts_direct) { nics, n_nics };
	return ret;
}
