/* One device, looked at again when an answer depends on it: nothing here comes from an earlier
 * scan. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "devstate/now-internal.h"
#include "discover/discover.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

#define DEVICES	  "sys/bus/pci/devices"
#define RDMA_DIR  "sys/class/infiniband"
#define VERBS_DIR "sys/class/infiniband_verbs"

static bool copy_text(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (n >= size)
		return false;
	memcpy(dst, src, n + 1);
	return true;
}

/* A soft RDMA device on one of the function's netdevs. */
static void find_soft(const struct sysroot *root, const struct dir *dev, struct function_now *ret)
{
	_cleanup_names_ struct names netdevs = NAMES_EMPTY, rdmas = NAMES_EMPTY;
	_cleanup_dir_ struct dir class = DIR_CLOSED;
	char parent[64];

	if (names_below(dev, "net", &netdevs) < 0 || !netdevs.n ||
	    dir_open_path(root, RDMA_DIR, &class) < 0 || names_of(&class, &rdmas) < 0)
		return;
	for (size_t i = 0; i < rdmas.n; i++) {
		if (sysroot_exists(root, RDMA_DIR "/%s/device", rdmas.v[i]) ||
		    discover_soft_netdev(root, rdmas.v[i], parent, sizeof(parent)) < 0)
			continue;
		for (size_t k = 0; k < netdevs.n; k++) {
			if (str_eq(parent, netdevs.v[k]) &&
			    copy_text(ret->rdma, sizeof(ret->rdma), rdmas.v[i]))
				return;
		}
	}
}

/* The uverbs device of a directory whose file names this RDMA device. */
static bool find_uverbs(const struct dir *verbs, const struct names *names,
			struct function_now *ret)
{
	char path[NAME_MAX + 8], text[80];

	for (size_t i = 0; i < names->n; i++) {
		snprintf(path, sizeof(path), "%s/ibdev", names->v[i]);
		if (dir_read(verbs, path, text, sizeof(text)) < 0 || !str_eq(text, ret->rdma) ||
		    !copy_text(ret->uverbs, sizeof(ret->uverbs), names->v[i]))
			continue;
		return true;
	}
	return false;
}

void find_class_uverbs(const struct sysroot *root, struct function_now *ret)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir class = DIR_CLOSED;

	if (!dir_open_path(root, VERBS_DIR, &class) && names_of(&class, &names) >= 0)
		find_uverbs(&class, &names, ret);
}

static void read_uverbs(const struct sysroot *root, const struct dir *dev, struct function_now *ret)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir own = DIR_CLOSED;
	char path[NAME_MAX + 8], text[80];

	if (!dir_open(dev, "infiniband_verbs", &own) && names_of(&own, &names) >= 0 &&
	    !find_uverbs(&own, &names, ret) && names.n == 1) {
		/* The only one, without an ibdev file: there is no other it could be. */
		snprintf(path, sizeof(path), "%s/ibdev", names.v[0]);
		if (dir_read(&own, path, text, sizeof(text)) == -ENOENT)
			copy_text(ret->uverbs, sizeof(ret->uverbs), names.v[0]);
	}
	if (!*ret->uverbs)
		find_class_uverbs(root, ret);
}

int devstate_function(const struct sysroot *root, struct bdf bdf, struct function_now *ret,
		      struct err *err)
{
	_cleanup_names_ struct names rdmas = NAMES_EMPTY;
	struct function_now now = { .driver = "" };
	_cleanup_dir_ struct dir dev = DIR_CLOSED;
	char path[64], addr[BDF_STRLEN], text[16];
	int r;

	snprintf(path, sizeof(path), DEVICES "/%s", bdf_format(bdf, addr));
	r = dir_open_path(root, path, &dev);
	if (r < 0)
		return err_set(err, -r, "PCI function %s %s", addr,
			       r == -ENOENT ? "is gone" : strerror(-r));
	if (dir_link_name(&dev, "driver", now.driver, sizeof(now.driver)) < 0)
		now.driver[0] = '\0';
	r = dir_link(&dev, "physfn", text, sizeof(text));
	now.physfn = r >= 0 || r == -ENAMETOOLONG;
	if (names_below(&dev, "infiniband", &rdmas) >= 0 && rdmas.n)
		copy_text(now.rdma, sizeof(now.rdma), rdmas.v[0]);
	else
		find_soft(root, &dev, &now);
	if (*now.rdma)
		read_uverbs(root, &dev, &now);
	*ret = now;
	return 0;
}

/* "fe80:0000:…": eight groups of four digits. */
static int parse_gid(const char *text, uint8_t gid[16])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < 16; i++) {
		const char *high = *text ? strchr(digits, tolower((unsigned char)*text++)) : NULL;
		const char *low =
			high && *text ? strchr(digits, tolower((unsigned char)*text++)) : NULL;

		if (!low)
			return -EINVAL;
		gid[i] = (uint8_t)((high - digits) << 4 | (low - digits));
		if (i % 2 && i < 15 && *text++ != ':')
			return -EINVAL;
	}
	return *text ? -EINVAL : 0;
}

/* Numbers that are names in a directory, sorted; a heap array. */
static int *numbers_below(const struct dir *up, const char *sub, size_t *ret_n)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	int *list, v;
	size_t n = 0;

	names_below(up, sub, &names);
	list = xcalloc(names.n, sizeof(*list));
	for (size_t i = 0; i < names.n; i++) {
		if (!str_to_int(names.v[i], &v) && v >= 0)
			list[n++] = v;
	}
	qsort(list, n, sizeof(*list), list_by_int);
	*ret_n = n;
	return list;
}

static int open_port(const struct sysroot *root, const char *rdma, int port, char path[PATH_MAX],
		     struct dir *ret)
{
	if (!dir_is_name(rdma) || strlen(rdma) > NAME_MAX)
		return -EINVAL;
	snprintf(path, PATH_MAX, RDMA_DIR "/%s/ports/%d", rdma, port);
	return dir_open_path(root, path, ret);
}

/* Empty slots are left out; ret_len counts them. */
static void read_gids(const struct dir *port, struct gid_entry ret[GID_TABLE_MAX], size_t *ret_n,
		      int *ret_len)
{
	static const uint8_t empty[16];
	_cleanup_free_ int *indices = NULL;
	char name[48], text[64];
	size_t n, found = 0;

	indices = numbers_below(port, "gids", &n);
	for (size_t i = 0; i < n && found < GID_TABLE_MAX; i++) {
		struct gid_entry *gid = &ret[found];

		*gid = (struct gid_entry) { .index = indices[i] };
		snprintf(name, sizeof(name), "gids/%d", indices[i]);
		if (dir_read(port, name, text, sizeof(text)) < 0 || parse_gid(text, gid->gid) < 0 ||
		    !memcmp(gid->gid, empty, sizeof(empty)))
			continue;
		snprintf(name, sizeof(name), "gid_attrs/types/%d", indices[i]);
		if (dir_read(port, name, gid->type, sizeof(gid->type)) < 0)
			gid->type[0] = '\0';
		snprintf(name, sizeof(name), "gid_attrs/ndevs/%d", indices[i]);
		if (dir_read(port, name, gid->ndev, sizeof(gid->ndev)) < 0)
			gid->ndev[0] = '\0';
		found++;
	}
	*ret_n = found;
	*ret_len = n ? indices[n - 1] + 1 : 0;
}

int devstate_gids(const struct sysroot *root, const char *rdma, int port,
		  struct gid_entry ret[GID_TABLE_MAX], size_t *ret_n, struct err *err)
{
	_cleanup_dir_ struct dir dir = DIR_CLOSED;
	char path[PATH_MAX];
	int len, r = open_port(root, rdma, port, path, &dir);

	if (r < 0)
		return err_set(err, -r, "GID table of %s port %d: %s", rdma, port, strerror(-r));
	read_gids(&dir, ret, ret_n, &len);
	return 0;
}

/* Index by index, 0 where a slot is empty or unreadable; returns their number. */
static size_t read_pkeys(const struct dir *port, uint16_t *ret, size_t max)
{
	_cleanup_free_ int *indices = NULL;
	char name[32], text[16];
	size_t n, len = 0;
	uint64_t key;

	indices = numbers_below(port, "pkeys", &n);
	for (size_t i = 0; i < n && (size_t)indices[i] < max; i++) {
		while (len <= (size_t)indices[i])
			ret[len++] = 0;
		snprintf(name, sizeof(name), "pkeys/%d", indices[i]);
		if (dir_read(port, name, text, sizeof(text)) > 0 &&
		    !str_to_u64(text, 16, UINT16_MAX, &key))
			ret[len - 1] = (uint16_t)key;
	}
	return len;
}

size_t devstate_pkeys(const struct sysroot *root, const char *rdma, int port, uint16_t *ret,
		      size_t max)
{
	_cleanup_dir_ struct dir dir = DIR_CLOSED;
	uint16_t table[PKEY_TABLE_MAX];
	char path[PATH_MAX];
	size_t n, found = 0;

	if (open_port(root, rdma, port, path, &dir) < 0)
		return 0;
	n = read_pkeys(&dir, table, PKEY_TABLE_MAX);
	for (size_t i = 0; i < n && found < max; i++) {
		if (table[i])
			ret[found++] = table[i];
	}
	return found;
}

void rdma_read_tables(const struct sysroot *root, const char *rdma, int port, struct arena *arena,
		      struct port_tables *ret)
{
	_cleanup_dir_ struct dir dir = DIR_CLOSED;
	struct gid_entry gids[GID_TABLE_MAX];
	uint16_t pkeys[PKEY_TABLE_MAX];
	char path[PATH_MAX];

	*ret = (struct port_tables) { 0 };
	if (open_port(root, rdma, port, path, &dir) < 0)
		return;
	read_gids(&dir, gids, &ret->n_gids, &ret->gid_table_len);
	ret->gids = arena_copy(arena, gids, ret->n_gids * sizeof(*gids));
	ret->n_pkeys = read_pkeys(&dir, pkeys, PKEY_TABLE_MAX);
	ret->pkeys = arena_copy(arena, pkeys, ret->n_pkeys * sizeof(*pkeys));
}
