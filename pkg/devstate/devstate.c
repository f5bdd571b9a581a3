/*
 * What a device is at this moment: its port and VF counters, whether its link is well, its device
 * nodes, and the facts that a scan leaves out. Files below a root and netlink; any thread.
 */
#include "devstate/devstate.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "devstate/devstate-internal.h"
#include "discover/discover.h"
#include "hw/bdf.h"
#include "hw/driver.h"
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "hw/vfstate.h"
#include "netlink/netlink.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

#define PKEY_TABLE_MAX 1024

/* The kernel's counters of the ports of NICs. */

#define COUNTERS_MAX 128 /* of a folder; drivers have some 60 */
#define NAME_SIZE    64

/* One folder under way. */
struct folder {
	const struct sysroot *root;
	char path[256];
	struct arena *arena;
	struct hw_counter *v;
	size_t n;
};

/* lifespan is the time that the driver keeps a reading, and no counter. */
static int add_counter(void *arg, const char *name)
{
	struct folder *d = arg;
	uint64_t value;

	if (!strcmp(name, "lifespan") || strlen(name) >= NAME_SIZE ||
	    sysroot_read_u64(d->root, 10, &value, "%s/%s", d->path, name) < 0)
		return 0;
	d->v[d->n++] = (struct hw_counter) { arena_strdup(d->arena, name), value };
	return d->n == COUNTERS_MAX;
}

static int by_name(const void *x, const void *y)
{
	const struct hw_counter *a = x, *b = y;

	return strcmp(a->name, b->name);
}

static struct hw_counter *read_folder(const struct sysroot *root, const char *rdma, int port,
				      const char *name, struct arena *arena, size_t *ret_n)
{
	struct hw_counter found[COUNTERS_MAX];
	struct folder d = { .root = root, .arena = arena, .v = found };

	snprintf(d.path, sizeof(d.path), "sys/class/infiniband/%s/ports/%d/%s", rdma, port, name);
	sysroot_each(root, d.path, add_counter, &d);
	if (d.n)
		qsort(d.v, d.n, sizeof(*d.v), by_name);
	*ret_n = d.n;
	return arena_copy(arena, found, d.n * sizeof(*found));
}

static bool is_counted(const struct hw_inventory *inv, const struct hw_rdma *rdma)
{
	return rdma->pci >= 0 && hw_is_own_nic(inv, rdma->pci);
}

/* A PF that has VFs and no RDMA device: its driver has none, or the module of it is not loaded. */
static bool is_plain(const struct hw_inventory *inv, int pci)
{
	const struct hw_pci *f = &inv->pci[pci];

	return hw_is_pf(f) && f->sriov_num > 0 && f->netdev && hw_find_rdma(inv, pci) < 0;
}

static void read_netdev(const struct sysroot *root, const char *netdev, struct arena *arena,
			struct hw_port_stats *s)
{
	struct hw_pauses pauses;
	uint64_t changes;

	if (sysroot_read_u64(root, 10, &changes, "sys/class/net/%s/carrier_changes", netdev) == 0)
		s->carrier_changes = (int64_t)changes;
	if (sysroot_is_live(root) && netlink_pauses(netdev, &pauses, NULL) == 0)
		s->pauses = arena_copy(arena, &pauses, sizeof(pauses));
}

struct hw_port_stats *devstate_port_stats(const struct sysroot *root,
					  const struct hw_inventory *inv, struct arena *arena,
					  size_t *ret_n)
{
	struct hw_port_stats *v;
	size_t n = 0;

	for (size_t i = 0; i < inv->n_rdma; i++)
		n += is_counted(inv, &inv->rdma[i]) ? inv->rdma[i].n_ports : 0;
	for (size_t i = 0; i < inv->n_pci; i++)
		n += is_plain(inv, (int)i);
	v = arena_array(arena, n, sizeof(*v));
	*ret_n = 0;
	for (size_t i = 0; i < inv->n_rdma; i++) {
		const struct hw_rdma *rdma = &inv->rdma[i];

		for (size_t k = 0; is_counted(inv, rdma) && k < rdma->n_ports; k++) {
			struct hw_port_stats *s = &v[(*ret_n)++];
			int port = rdma->ports[k].number;

			*s = (struct hw_port_stats) { .pci = rdma->pci,
						      .rdma = (int)i,
						      .port = port,
						      .carrier_changes = -1 };
			s->standard = read_folder(root, rdma->name, port, "counters", arena,
						  &s->n_standard);
			s->driver = read_folder(root, rdma->name, port, "hw_counters", arena,
						&s->n_driver);
			/* The name of an interface is known of the first port only. */
			if (rdma->netdev && port == 1)
				read_netdev(root, rdma->netdev, arena, s);
		}
	}
	for (size_t i = 0; i < inv->n_pci; i++) {
		struct hw_port_stats *s;

		if (!is_plain(inv, (int)i))
			continue;
		s = &v[(*ret_n)++];
		*s = (struct hw_port_stats) {
			.pci = (int)i, .rdma = -1, .port = 1, .carrier_changes = -1
		};
		read_netdev(root, inv->pci[i].netdev, arena, s);
	}
	return v;
}

/*
 * How often did the link of a PF go down, and how many errors does it count? A handful of files
 * rather than all of them: some drivers ask the firmware for each.
 * Documentation/ABI/testing/sysfs-class-net, Documentation/ABI/stable/sysfs-class-infiniband.
 */

static const char *const error_files[] = {
	"counters/symbol_error",
	"counters/link_error_recovery",
	"counters/port_rcv_errors",
	"counters/local_link_integrity_errors",
	"counters/excessive_buffer_overrun_errors",
	"hw_counters/rx_icrc_encapsulated",
};

static int64_t read_port(const struct sysroot *root, const struct hw_rdma *rdma, size_t port,
			 const char *file)
{
	uint64_t value;

	if (sysroot_read_u64(root, 10, &value, "sys/class/infiniband/%s/ports/%d/%s", rdma->name,
			     rdma->ports[port].number, file) < 0 ||
	    value > INT64_MAX)
		return -1;
	return (int64_t)value;
}

struct link_counts devstate_link_counts(const struct sysroot *root, const struct hw_inventory *inv,
					int pci, size_t port)
{
	const struct hw_pci *pf = &inv->pci[pci];
	struct link_counts ret = { -1, -1, -1 };
	int rdma = hw_find_rdma(inv, pci);
	uint64_t downs;

	if (!port && pf->netdev &&
	    sysroot_read_u64(root, 10, &downs, "sys/class/net/%s/carrier_down_count", pf->netdev) ==
		    0)
		ret.netdev_downs = (int64_t)downs;
	if (rdma >= 0 && port < inv->rdma[rdma].n_ports) {
		ret.port_downs = read_port(root, &inv->rdma[rdma], port, "counters/link_downed");
		for (size_t i = 0; i < ARRAY_LEN(error_files); i++) {
			int64_t value = read_port(root, &inv->rdma[rdma], port, error_files[i]);

			if (value >= 0)
				ret.errors = ret.errors < 0		      ? value
					     : value > INT64_MAX - ret.errors ? INT64_MAX
									      : ret.errors + value;
		}
	}
	return ret;
}

/* Counters of VFs, of their PFs and of their own RDMA devices. */

/*
 * Of some 60 counters of a driver those that show which containers a bad link or a congested
 * network affects. Most drivers read all of them at once (lifespan), but each is a file. Names of:
 * drivers/infiniband/hw (mlx5/counters.c, bnxt_re/hw_counters.c, irdma/verbs.c).
 */
static const char *const counter_names[] = {
	"RetransSegs",
	"RxECNMrkd",
	"cnpHandled",
	"cnpSent",
	"duplicate_request",
	"implied_nak_seq_err",
	"local_ack_timeout_err",
	"max_retry_exceeded",
	"np_cnp_sent",
	"np_ecn_marked_roce_packets",
	"out_of_buffer",
	"out_of_sequence",
	"packet_seq_err",
	"res_oos_drop_count",
	"rnr_nak_retry_err",
	"rnr_naks_rcvd",
	"roce_adp_retrans",
	"rp_cnp_handled",
	"rx_cnp_pkts",
	"rx_ecn_marked_pkts",
	"rx_icrc_encapsulated",
	"seq_err_naks_rcvd",
	"to_retransmits",
	"tx_cnp_pkts",
};

static void read_counters(const struct sysroot *root, const struct hw_rdma *rdma,
			  struct hw_vf_stats *s, struct arena *arena)
{
	struct hw_counter found[ARRAY_LEN(counter_names)];
	_cleanup_dir_ struct dir dir = DIR_CLOSED;
	char path[256], text[32];

	snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/%d/hw_counters", rdma->name,
		 rdma->ports[0].number);
	if (dir_open_path(root, path, &dir) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(counter_names); i++) {
		uint64_t value;

		if (dir_read(&dir, counter_names[i], text, sizeof(text)) > 0 &&
		    str_to_u64(text, 10, UINT64_MAX, &value) == 0)
			found[s->n_driver++] = (struct hw_counter) { counter_names[i], value };
	}
	s->driver = arena_copy(arena, found, s->n_driver * sizeof(*found));
}

/* Of all VFs of this PF that are asked for. */
static void read_traffic(const struct hw_inventory *inv, int pf, struct hw_vf_stats *v, size_t n,
			 struct arena *arena)
{
	const struct netlink_vf_traffic *traffic;
	size_t n_traffic;

	if (!inv->pci[pf].netdev ||
	    netlink_vf_traffic(inv->pci[pf].netdev, (size_t)inv->pci[pf].sriov_num, arena, &traffic,
			       &n_traffic, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct hw_pci *f = &inv->pci[v[i].pci];

		for (size_t k = 0; f->physfn == pf && k < n_traffic; k++) {
			if (traffic[k].index != f->vf_index)
				continue;
			v[i].has_traffic = true;
			v[i].received = traffic[k].received;
			v[i].sent = traffic[k].sent;
		}
	}
}

struct hw_vf_stats *devstate_vf_stats(const struct sysroot *root, const struct hw_inventory *inv,
				      const int *vfs, size_t n, struct arena *arena)
{
	struct hw_vf_stats *v = arena_array(arena, n, sizeof(*v));
	bool *asked = arena_array(arena, inv->n_pci, sizeof(*asked));

	for (size_t i = 0; i < n; i++)
		v[i].pci = vfs[i];
	for (size_t i = 0; i < n; i++) {
		int pf = inv->pci[vfs[i]].physfn, rdma = hw_find_rdma(inv, vfs[i]);

		if (pf >= 0 && !asked[pf] && sysroot_is_live(root)) {
			asked[pf] = true;
			read_traffic(inv, pf, v, n, arena);
		}
		if (rdma >= 0 && inv->rdma[rdma].n_ports && n <= DEVSTATE_VF_COUNTERS)
			read_counters(root, &inv->rdma[rdma], &v[i], arena);
	}
	return v;
}

/* Device nodes beside the verbs node: of user-space drivers, and of MAD. Looked at when an answer
 * depends on them. */

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

/* One device, looked at again when an answer depends on it: nothing here comes from an earlier
 * scan. */

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
