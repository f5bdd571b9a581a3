/*
 * RDMA devices. A hardware device is found below its function; the class directories come second, for soft
 * devices (rxe, siw), which live below sys/devices/virtual and name a netdev only. No names are kept
 * between scans: a uverbs number may move to another device when one is re-created.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

#define CLASS	    "sys/class/infiniband"
#define CLASS_VERBS "sys/class/infiniband_verbs"
#define MAX_PORTS   32

void parse_dev(const char *text, int *ret_major, int *ret_minor)
{
	char major[16] = "";
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : sizeof(major);
	uint64_t a, b;

	*ret_major = *ret_minor = -1;
	if (n >= sizeof(major))
		return;
	memcpy(major, text, n);
	if (str_to_u64(major, 10, INT_MAX, &a) < 0 || str_to_u64(colon + 1, 10, INT_MAX, &b) < 0)
		return;
	*ret_major = (int)a;
	*ret_minor = (int)b;
}

static enum hw_link read_link_layer(struct scan *s, const struct dir *port)
{
	char text[32];
	int n = dir_read(port, "link_layer", text, sizeof(text));

	if (n < 0)
		return HW_LINK_UNKNOWN;
	if (str_eq(text, "InfiniBand"))
		return HW_LINK_IB;
	if (str_eq(text, "Ethernet"))
		return HW_LINK_ETHERNET;
	scan_note_value(s, port, "link_layer", text);
	return HW_LINK_UNKNOWN;
}

/* "400 Gb/sec (4X NDR)" */
static int read_rate(struct scan *s, const struct dir *port)
{
	char text[64];
	int mbps = 0, n = dir_read(port, "rate", text, sizeof(text));

	if (n < 0)
		return 0;
	if (parse_thousandths(text, "Gb/sec", &mbps) < 0)
		scan_note_value(s, port, "rate", text);
	return mbps;
}

/* Ports count from 1 without gaps (include/rdma/ib_verbs.h, rdma_for_each_port). */
static void read_ports(struct scan *s, const struct dir *ib, struct hw_rdma *rec)
{
	struct hw_port ports[MAX_PORTS];
	char name[16];
	size_t n = 0;

	for (; n < MAX_PORTS; n++) {
		_cleanup_dir_ struct dir port = DIR_CLOSED;

		snprintf(name, sizeof(name), "ports/%zu", n + 1);
		if (dir_open(ib, name, &port) < 0)
			break;
		ports[n] = (struct hw_port) {
			.number = (int)n + 1,
			.state = scan_word(s, &port, "state"),
			.phys_state = scan_word(s, &port, "phys_state"),
			.link = read_link_layer(s, &port),
			.rate_mbps = read_rate(s, &port),
		};
	}
	rec->n_ports = n;
	rec->ports = arena_copy(s->arena, ports, n * sizeof(*ports));
}

static struct hw_rdma *add_rdma(struct scan *s, const char *name, int pci)
{
	struct hw_rdma *rec;

	s->rdma = xgrow(s->rdma, &s->cap_rdma, s->n_rdma + 1, sizeof(*s->rdma));
	rec = &s->rdma[s->n_rdma++];
	*rec = (struct hw_rdma) {
		.name = arena_strdup(s->arena, name), .pci = pci, .major = -1, .minor = -1
	};
	return rec;
}

static void set_uverbs(struct scan *s, const struct dir *verbs, const char *name, struct hw_rdma *rec)
{
	char path[NAME_MAX + 8], text[32];

	rec->uverbs = arena_strdup(s->arena, name);
	snprintf(path, sizeof(path), "%s/dev", name);
	if (dir_read(verbs, path, text, sizeof(text)) < 0)
		return;
	parse_dev(text, &rec->major, &rec->minor);
	if (rec->major < 0)
		scan_note_value(s, verbs, path, text);
}

/* Which of the n records at recs does this uverbs device serve? With one of each there is no question. */
static struct hw_rdma *match_uverbs(const struct dir *verbs, const char *name, struct hw_rdma *recs, size_t n,
				    bool alone)
{
	char path[NAME_MAX + 8], text[NAME_MAX + 2];

	if (alone && n == 1)
		return recs;
	snprintf(path, sizeof(path), "%s/ibdev", name);
	if (dir_read(verbs, path, text, sizeof(text)) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (!recs[i].uverbs && str_eq(recs[i].name, text))
			return &recs[i];
	}
	return NULL;
}

static void read_function_uverbs(struct scan *s, const struct dir *dev, struct hw_rdma *recs, size_t n)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir verbs = DIR_CLOSED;

	if (!n || dir_open(dev, "infiniband_verbs", &verbs) < 0 || names_of(&verbs, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		struct hw_rdma *rec = match_uverbs(&verbs, names.v[i], recs, n, names.n == 1);

		if (rec)
			set_uverbs(s, &verbs, names.v[i], rec);
	}
}

void scan_function_rdma(struct scan *s, const struct dir *dev, int pci, const char *netdev)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir ibs = DIR_CLOSED;
	size_t first = s->n_rdma;

	if (dir_open(dev, "infiniband", &ibs) < 0 || names_of(&ibs, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_dir_ struct dir ib = DIR_CLOSED;
		struct hw_rdma *rec;

		if (dir_open(&ibs, names.v[i], &ib) < 0)
			continue;
		rec = add_rdma(s, names.v[i], pci);
		rec->netdev = netdev;
		read_ports(s, &ib, rec);
	}
	read_function_uverbs(s, dev, s->rdma + first, s->n_rdma - first);
}

int rdma_soft_netdev(const struct sysroot *root, const char *rdma, char *buf, size_t size)
{
	int n = sysroot_read(root, buf, size, CLASS "/%s/parent", rdma);

	if (n <= 0)
		n = sysroot_read(root, buf, size, CLASS "/%s/ports/1/gid_attrs/ndevs/0", rdma);
	return n > 0 && is_file_name(buf) ? 0 : -ENOENT;
}

static int function_of_netdev(const struct scan *s, const char *netdev)
{
	struct hw_inventory view = { .pci = s->pci, .n_pci = s->n_pci };
	char target[NAME_MAX + 1];
	struct bdf bdf;

	if (!sysroot_link_name(s->root, target, sizeof(target), "sys/class/net/%s/device", netdev) &&
	    !bdf_parse(target, &bdf))
		return hw_find_pci(&view, bdf);
	for (size_t i = 0; i < s->n_pci; i++) {
		if (str_eq(s->pci[i].netdev, netdev))
			return (int)i;
	}
	return -1;
}

/* A netdev of this name, if it is in our network namespace: a foreign one may only share the name. */
static void place_soft(struct scan *s, const char *name, struct hw_rdma *rec)
{
	char netdev[64];

	rec->soft = true;
	if (rdma_soft_netdev(s->root, name, netdev, sizeof(netdev)) < 0 ||
	    !sysroot_exists(s->root, "sys/class/net/%s", netdev))
		return;
	rec->netdev = arena_strdup(s->arena, netdev);
	rec->pci = function_of_netdev(s, netdev);
}

static void place_by_device(struct scan *s, const char *target, struct hw_rdma *rec)
{
	struct hw_inventory view = { .pci = s->pci, .n_pci = s->n_pci };
	struct bdf bdf;

	if (!bdf_parse(target, &bdf))
		rec->pci = hw_find_pci(&view, bdf);
	if (rec->pci >= 0)
		rec->netdev = s->pci[rec->pci].netdev;
	else
		scan_note(s, "RDMA device %s: its device '%.40s' is no PCI function of this machine",
			  rec->name, target);
}

static void add_class_device(struct scan *s, const struct dir *class, const char *name)
{
	_cleanup_dir_ struct dir ib = DIR_CLOSED;
	char target[NAME_MAX + 1];
	struct hw_rdma *rec;
	int r = dir_open(class, name, &ib);

	if (r < 0) {
		if (r != -ENOTDIR) /* "abi_version" beside the links */
			scan_note(s, "RDMA device %s: cannot be opened: %s; skipped", name, strerror(-r));
		return;
	}
	rec = add_rdma(s, name, -1);
	read_ports(s, &ib, rec);
	if (!dir_link_name(&ib, "device", target, sizeof(target)))
		place_by_device(s, target, rec);
	else
		place_soft(s, name, rec);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted list of what the records have under `uverbs` or `name`. */
static const char **known(const struct scan *s, bool uverbs, size_t *ret_n)
{
	const char **list = xcalloc(s->n_rdma, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < s->n_rdma; i++) {
		const char *text = uverbs ? s->rdma[i].uverbs : s->rdma[i].name;

		if (text)
			list[n++] = text;
	}
	qsort(list, n, sizeof(*list), by_name);
	*ret_n = n;
	return list;
}

static bool is_known(const char *const *list, size_t n, const char *name)
{
	return bsearch(&name, list, n, sizeof(*list), by_name);
}

static void scan_class_devices(struct scan *s)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir class = DIR_CLOSED;
	_cleanup_free_ const char **have = NULL;
	size_t n;

	if (dir_open_path(s->root, CLASS, &class) < 0 || names_of(&class, &names) < 0)
		return;
	have = known(s, false, &n);
	for (size_t i = 0; i < names.n; i++) {
		if (!is_known(have, n, names.v[i]))
			add_class_device(s, &class, names.v[i]);
	}
}

static void scan_class_verbs(struct scan *s)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir class = DIR_CLOSED;
	_cleanup_free_ const char **have = NULL;
	size_t n;

	if (dir_open_path(s->root, CLASS_VERBS, &class) < 0 || names_of(&class, &names) < 0)
		return;
	have = known(s, true, &n);
	for (size_t i = 0; i < names.n; i++) {
		struct hw_rdma *rec;

		if (!str_starts(names.v[i], "uverbs") || is_known(have, n, names.v[i]))
			continue;
		rec = match_uverbs(&class, names.v[i], s->rdma, s->n_rdma, false);
		if (rec)
			set_uverbs(s, &class, names.v[i], rec);
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
