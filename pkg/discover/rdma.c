/*
 * Devices of a class and the functions they belong to, the RDMA devices among them with their
 * ports, and the rate limits of VFs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"
#include "hw/driver.h"
#include "hw/vfadmin.h"
#include "netlink/netlink.h"

/* Which netdevs and RDMA devices belong to which function, from the texts of the class directories'
 * links. */

static const struct {
	const char *dir, *folder;
} classes[CLASS_MAX] = {
	[CLASS_NET] = { "sys/class/net", "net" },
	[CLASS_RDMA] = { "sys/class/infiniband", "infiniband" },
	[CLASS_VERBS] = { "sys/class/infiniband_verbs", "infiniband_verbs" },
};

/* Cuts the last component off; NULL when nothing is left. */
static char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

struct filling {
	struct scan *s;
	const struct dir *dir;
	enum class_kind kind;
};

static int add_link(void *arg, const char *name)
{
	struct filling *f = arg;
	struct class_map *map = &f->s->classes[f->kind];
	const char *last = NULL, *folder, *addr;
	char target[PATH_MAX];
	struct bdf bdf;

	/* "…/<address>/<folder>/<name>" */
	if (dir_link(f->dir, name, target, sizeof(target)) >= 0)
		last = cut_last(target);
	folder = last ? cut_last(target) : NULL;
	addr = folder ? cut_last(target) : NULL;
	if (!addr || strcmp(last, name) != 0 || strcmp(folder, classes[f->kind].folder) != 0 ||
	    bdf_parse(addr, &bdf) < 0) {
		names_add(&map->others, name);
		return 0;
	}
	map->links = xgrow(map->links, &map->cap, map->n + 1, sizeof(*map->links));
	map->links[map->n++] =
		(struct class_link) { .bdf = bdf, .name = arena_strdup(f->s->arena, name) };
	return 0;
}

static int by_function(const void *a, const void *b)
{
	const struct class_link *la = a, *lb = b;
	int c = bdf_cmp(la->bdf, lb->bdf);

	return c ? c : strcmp(la->name, lb->name);
}

void scan_classes(struct scan *s)
{
	for (int kind = 0; kind < CLASS_MAX; kind++) {
		_cleanup_dir_ struct dir dir = DIR_CLOSED;
		struct class_map *map = &s->classes[kind];
		struct filling f = { s, &dir, (enum class_kind)kind };

		if (dir_open_path(s->root, classes[kind].dir, &dir) < 0)
			continue;
		dir_each(&dir, add_link, &f);
		if (map->n > 1)
			qsort(map->links, map->n, sizeof(*map->links), by_function);
	}
}

void classes_done(struct scan *s)
{
	for (int kind = 0; kind < CLASS_MAX; kind++) {
		free(s->classes[kind].links);
		names_done(&s->classes[kind].others);
	}
}

static int by_address(const void *bdf, const void *link)
{
	return bdf_cmp(*(const struct bdf *)bdf, ((const struct class_link *)link)->bdf);
}

int scan_class_names(struct scan *s, enum class_kind kind, const struct dir *dev, struct bdf bdf,
		     struct names *ret)
{
	struct class_map *map = &s->classes[kind];
	size_t first = list_place(&bdf, map->links, map->n, sizeof(*map->links), by_address);

	for (size_t i = first; i < map->n && !bdf_cmp(map->links[i].bdf, bdf); i++) {
		map->links[i].taken = true;
		names_add(ret, map->links[i].name);
	}
	return ret->n ? 0 : names_below(dev, classes[kind].folder, ret);
}

/* Entries that no function took, in name order. */
static void scan_class_rest(const struct scan *s, enum class_kind kind, struct names *ret)
{
	const struct class_map *map = &s->classes[kind];

	for (size_t i = 0; i < map->n; i++) {
		if (!map->links[i].taken)
			names_add(ret, map->links[i].name);
	}
	for (size_t i = 0; i < map->others.n; i++)
		names_add(ret, map->others.v[i]);
	names_sort(ret);
}

/*
 * RDMA devices. A hardware device is found below its function; the class directories come second,
 * for soft devices (rxe, siw), which live below sys/devices/virtual and name a netdev only. No
 * names are kept between scans: a uverbs number may move to another device when one is re-created.
 */

#define RDMA_DIR  "sys/class/infiniband"
#define VERBS_DIR "sys/class/infiniband_verbs"
#define MAX_PORTS 32
#define MAX_PATH  (2 * NAME_MAX) /* of a device's file, from its function's directory */

/* A directory "<dir>/<prefix>ports", or that of a PF whose single port a VF shares. */
struct port_source {
	const struct dir *dir;
	const char *prefix;
	const struct hw_port *shared; /* NULL: none */
};

static void port_file(const struct port_source *src, int port, const char *file,
		      char path[MAX_PATH])
{
	snprintf(path, MAX_PATH, "%sports/%d%s%s", src->prefix, port, *file ? "/" : "", file);
}

static enum hw_link read_link_layer(struct scan *s, const struct port_source *src, int port)
{
	char text[32], path[MAX_PATH];

	if (src->shared && src->shared->link != HW_LINK_UNKNOWN)
		return src->shared->link;
	port_file(src, port, "link_layer", path);
	if (dir_read(src->dir, path, text, sizeof(text)) < 0)
		return HW_LINK_UNKNOWN;
	if (str_eq(text, "InfiniBand"))
		return HW_LINK_IB;
	if (str_eq(text, "Ethernet"))
		return HW_LINK_ETHERNET;
	scan_note_value(s, src->dir, path, text);
	return HW_LINK_UNKNOWN;
}

static bool has_folder(const struct dir *dir, const char *path)
{
	_cleanup_close_ int fd = dir_openat(dir, path, O_PATH | O_DIRECTORY);

	return fd >= 0;
}

static bool read_port(struct scan *s, const struct port_source *src, int number,
		      struct hw_port *ret)
{
	static const struct hw_port none = { .number = 0 };
	const struct hw_port *shared = src->shared ? src->shared : &none;
	char path[MAX_PATH], text[64];

	*ret = (struct hw_port) { .number = number,
				  .phys_state = shared->phys_state,
				  .rate_mbps = shared->rate_mbps };
	port_file(src, number, "state", path);
	if (scan_word(s, src->dir, path, &ret->state) == -ENOENT) {
		port_file(src, number, "", path);
		if (!has_folder(src->dir, path))
			return false;
	}
	if (!ret->phys_state) {
		port_file(src, number, "phys_state", path);
		scan_word(s, src->dir, path, &ret->phys_state);
	}
	ret->link = read_link_layer(s, src, number);
	if (ret->rate_mbps)
		return true;
	port_file(src, number, "rate", path); /* "400 Gb/sec (4X NDR)" */
	if (dir_read(src->dir, path, text, sizeof(text)) >= 0 &&
	    parse_thousandths(text, "Gb/sec", &ret->rate_mbps) < 0)
		scan_note_value(s, src->dir, path, text);
	return true;
}

/* Ports count from 1 without gaps (include/rdma/ib_verbs.h, rdma_for_each_port); a VF has no more
 * than its PF. */
static void read_ports(struct scan *s, const struct port_source *src, struct hw_rdma *rec)
{
	struct hw_port ports[MAX_PORTS];
	int n = 0, max = src->shared ? 1 : MAX_PORTS;

	while (n < max && read_port(s, src, n + 1, &ports[n]))
		n++;
	rec->n_ports = (size_t)n;
	rec->ports = arena_copy(s->arena, ports, (size_t)n * sizeof(*ports));
}

void discover_rdma_ports(const struct sysroot *root, const char *rdma, struct arena *arena,
			 struct hw_rdma *ret)
{
	struct scan s = { .root = root, .arena = arena };
	_cleanup_dir_ struct dir ib = DIR_CLOSED;
	char path[MAX_PATH];

	*ret = (struct hw_rdma) { .name = rdma, .pci = -1 };
	snprintf(path, sizeof(path), RDMA_DIR "/%s", rdma);
	if (!dir_is_name(rdma) || dir_open_path(root, path, &ib) < 0)
		return;
	read_ports(&s, &(struct port_source) { .dir = &ib, .prefix = "" }, ret);
	free(s.notes);
}

static struct hw_rdma *add_rdma(struct scan *s, const char *name, int pci)
{
	struct hw_rdma *rec;

	s->rdma = xgrow(s->rdma, &s->cap_rdma, s->n_rdma + 1, sizeof(*s->rdma));
	rec = &s->rdma[s->n_rdma++];
	*rec = (struct hw_rdma) { .name = arena_strdup(s->arena, name), .pci = pci };
	return rec;
}

/* Which of the n records at recs does this uverbs device serve? */
static struct hw_rdma *match_uverbs(const struct dir *verbs, const char *prefix, const char *name,
				    struct hw_rdma *recs, size_t n)
{
	char path[MAX_PATH], text[NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s%s/ibdev", prefix, name);
	if (dir_read(verbs, path, text, sizeof(text)) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (!recs[i].uverbs && str_eq(recs[i].name, text))
			return &recs[i];
	}
	return NULL;
}

#define VERBS_PREFIX "infiniband_verbs/"

static void read_function_uverbs(struct scan *s, const struct dir *dev, struct bdf bdf,
				 struct hw_rdma *recs, size_t n)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;

	if (!n || scan_class_names(s, CLASS_VERBS, dev, bdf, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		/* With one of each there is no question. */
		struct hw_rdma *rec = names.n == 1 && n == 1 ? recs
							     : match_uverbs(dev, VERBS_PREFIX,
									    names.v[i], recs, n);

		if (rec)
			rec->uverbs = arena_strdup(s->arena, names.v[i]);
	}
}

/* A link has "../../../devices/pci0000:00/…" seen from sys/bus/pci/devices, a record as seen from
 * sys. */
#define UP_TO_SYS "../../../"

void scan_function_rdma(struct scan *s, const struct dir *dev, const struct hw_pci *f, int pci,
			int pf, const char *device_link)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	const struct hw_inventory view = { .rdma = s->rdma, .n_rdma = s->n_rdma };
	struct port_source src = { .dir = dev };
	int pf_rdma = hw_find_rdma(&view, pf);
	size_t first = s->n_rdma;
	char prefix[NAME_MAX + 16];

	/* The port of a PF that has just one. */
	if (pf_rdma >= 0 && s->rdma[pf_rdma].n_ports == 1)
		src.shared = s->rdma[pf_rdma].ports;
	if (scan_class_names(s, CLASS_RDMA, dev, f->bdf, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		struct hw_rdma *rec = add_rdma(s, names.v[i], pci);

		rec->netdev = f->netdev;
		if (device_link && str_starts(device_link, UP_TO_SYS))
			rec->dir = device_link + strlen(UP_TO_SYS);
		snprintf(prefix, sizeof(prefix), "infiniband/%s/", names.v[i]);
		src.prefix = prefix;
		read_ports(s, &src, rec);
		if (!rec->n_ports && !has_folder(dev, prefix))
			s->n_rdma--; /* gone since its class was listed */
	}
	read_function_uverbs(s, dev, f->bdf, s->rdma + first, s->n_rdma - first);
}

int discover_soft_netdev(const struct sysroot *root, const char *rdma, char *buf, size_t size)
{
	int n = sysroot_read(root, buf, size, RDMA_DIR "/%s/parent", rdma);

	if (n <= 0)
		n = sysroot_read(root, buf, size, RDMA_DIR "/%s/ports/1/gid_attrs/ndevs/0", rdma);
	return n > 0 && dir_is_name(buf) ? 0 : -ENOENT;
}

/* A netdev of this name, if it is in our network namespace: a foreign one may only share the name.
 */
static void place_soft(struct scan *s, const char *name, struct hw_rdma *rec)
{
	char netdev[64], target[NAME_MAX + 1];
	struct bdf bdf;

	rec->soft = true;
	if (discover_soft_netdev(s->root, name, netdev, sizeof(netdev)) < 0 ||
	    !sysroot_exists(s->root, "sys/class/net/%s", netdev))
		return;
	rec->netdev = arena_strdup(s->arena, netdev);
	if (!sysroot_link_name(s->root, target, sizeof(target), "sys/class/net/%s/device",
			       netdev) &&
	    !bdf_parse(target, &bdf)) {
		rec->pci = scan_find(s, bdf);
		return;
	}
	for (size_t i = 0; i < s->n_pci && rec->pci < 0; i++) {
		if (str_eq(s->pci[i].netdev, netdev))
			rec->pci = (int)i;
	}
}

static void add_class_device(struct scan *s, const struct dir *class, const char *name)
{
	_cleanup_dir_ struct dir ib = DIR_CLOSED;
	char target[NAME_MAX + 1];
	struct hw_rdma *rec;
	struct bdf bdf;
	int r = dir_open(class, name, &ib);

	if (r < 0) {
		if (r != -ENOTDIR) /* "abi_version" beside the links */
			scan_note(s, "RDMA device %s: cannot be opened: %s; skipped", name,
				  strerror(-r));
		return;
	}
	rec = add_rdma(s, name, -1);
	read_ports(s, &(struct port_source) { .dir = &ib, .prefix = "" }, rec);
	if (dir_link_name(&ib, "device", target, sizeof(target))) {
		place_soft(s, name, rec);
		return;
	}
	if (!bdf_parse(target, &bdf))
		rec->pci = scan_find(s, bdf);
	if (rec->pci >= 0)
		rec->netdev = s->pci[rec->pci].netdev;
	else
		scan_note(
			s,
			"RDMA device %s: its device '%.40s' is not a PCI function of this machine",
			rec->name, target);
}

/* Sorted list of the records' `uverbs` or `name`. */
static const char **known(const struct scan *s, bool uverbs, size_t *ret_n)
{
	const char **list = xcalloc(s->n_rdma, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < s->n_rdma; i++) {
		const char *text = uverbs ? s->rdma[i].uverbs : s->rdma[i].name;

		if (text)
			list[n++] = text;
	}
	qsort(list, n, sizeof(*list), list_by_string);
	*ret_n = n;
	return list;
}

static void scan_class_devices(struct scan *s)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir class = DIR_CLOSED;
	_cleanup_free_ const char **have = NULL;
	size_t n;

	scan_class_rest(s, CLASS_RDMA, &names);
	if (!names.n || dir_open_path(s->root, RDMA_DIR, &class) < 0)
		return;
	have = known(s, false, &n);
	for (size_t i = 0; i < names.n; i++) {
		if (!list_has_sorted(have, n, names.v[i]))
			add_class_device(s, &class, names.v[i]);
	}
}

static void scan_class_verbs(struct scan *s)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir class = DIR_CLOSED;
	_cleanup_free_ const char **have = NULL;
	size_t n;

	scan_class_rest(s, CLASS_VERBS, &names);
	if (!names.n || dir_open_path(s->root, VERBS_DIR, &class) < 0)
		return;
	have = known(s, true, &n);
	for (size_t i = 0; i < names.n; i++) {
		struct hw_rdma *rec;

		if (!str_starts(names.v[i], "uverbs") || list_has_sorted(have, n, names.v[i]))
			continue;
		rec = match_uverbs(&class, "", names.v[i], s->rdma, s->n_rdma);
		if (rec)
			rec->uverbs = arena_strdup(s->arena, names.v[i]);
	}
}

static int by_place(const void *a, const void *b)
{
	const struct hw_rdma *ra = a, *rb = b;

	return ra->pci != rb->pci ? (ra->pci < rb->pci ? -1 : 1) : strcmp(ra->name, rb->name);
}

void scan_class_rdma(struct scan *s)
{
	scan_class_devices(s);
	scan_class_verbs(s);
	if (s->n_rdma > 1)
		qsort(s->rdma, s->n_rdma, sizeof(*s->rdma), by_place);
}

/*
 * Rate limits of VFs, which an administrator sets on their PF. Some drivers show them in files of
 * the PF, sriov/<index>/ (hw/driver.h). The kernel's own drivers have no such files; the running
 * kernel is asked then, once for all VFs of a PF.
 */

#define DEVICES "sys/bus/pci/devices"

/* -ENOENT: it has no rate. */
static int read_file(struct scan *s, const struct dir *sriov, int index,
		     const struct hw_rate_file *file, int *ret)
{
	char path[64], text[1024], *value = text;

	snprintf(path, sizeof(path), "%d/%s", index, file->name);
	if (dir_read(sriov, path, text, sizeof(text)) < 0)
		return -ENOENT;
	if (file->line) {
		const char *line = hw_rate_line(file, text);

		value = line ? strchr(line, ':') : NULL;
		if (!value)
			return -ENOENT;
		value++;
		value[strcspn(value, "\n")] = '\0';
	}
	if (!str_to_int(str_trim(value), ret) && *ret >= 0)
		return 0;
	if (!file->line)
		return -ENOENT; /* explains to a person how to write one */
	scan_note_value(s, sriov, path, str_trim(value));
	return -EINVAL;
}

/* The first VF of the PF behind `after`; NULL: no more. */
static struct hw_pci *next_vf(struct scan *s, int pf, struct hw_pci *after)
{
	for (struct hw_pci *f = after ? after + 1 : s->pci; f < s->pci + s->n_pci; f++) {
		if (f->physfn == pf && f->vf_index >= 0)
			return f;
	}
	return NULL;
}

/* False: there are no files about it. */
static bool take_files(struct scan *s, int pf)
{
	_cleanup_dir_ struct dir sriov = DIR_CLOSED;
	const struct hw_driver *driver = hw_driver_find(s->pci[pf].driver);
	char path[sizeof(DEVICES) + BDF_STRLEN + 16], addr[BDF_STRLEN];
	bool found = false;

	snprintf(path, sizeof(path), DEVICES "/%s/sriov", bdf_format(s->pci[pf].bdf, addr));
	if (dir_open_path(s->root, path, &sriov) < 0)
		return false;
	for (struct hw_pci *vf = next_vf(s, pf, NULL); vf; vf = next_vf(s, pf, vf)) {
		int rate, r = -ENOENT;

		for (size_t i = 0; r == -ENOENT && i < hw_rate_files_n; i++) {
			if (!driver || !driver->rate || driver->rate == &hw_rate_files[i])
				r = read_file(s, &sriov, vf->vf_index, &hw_rate_files[i], &rate);
		}
		if (r == 0)
			vf->rate_mbps = rate;
		found |= r != -ENOENT;
	}
	return found;
}

static void take_answer(struct scan *s, int pf)
{
	_cleanup_arena_ struct arena *arena = arena_new(16 * 1024);
	const struct hw_vf_admin *vfs = NULL;
	struct err err = { 0 };
	size_t n = 0;
	int r = netlink_vfs(s->pci[pf].netdev, arena, &vfs, &n, &err);

	if (r < 0 && r != -ENODEV && r != -ENOTSUP)
		scan_note(s, "%s; their rate limits are unknown", err.msg);
	for (struct hw_pci *vf = next_vf(s, pf, NULL); vf && n; vf = next_vf(s, pf, vf)) {
		/* By index as a rule, so the first try hits. */
		size_t i = (size_t)vf->vf_index < n && vfs[vf->vf_index].index == vf->vf_index
				   ? (size_t)vf->vf_index
				   : 0;

		while (i < n && vfs[i].index != vf->vf_index)
			i++;
		if (i < n && vfs[i].max_mbps > 0)
			vf->rate_mbps = vfs[i].max_mbps;
	}
}

void scan_rates(struct scan *s)
{
	for (size_t i = 0; i < s->n_pci; i++) {
		const struct hw_pci *f = &s->pci[i];

		if (f->sriov_num > 0 && hw_is_pf(f) && !take_files(s, (int)i) && f->netdev &&
		    sysroot_is_live(s->root))
			take_answer(s, (int)i);
	}
}
