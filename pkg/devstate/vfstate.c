/*
 * What VFs are in the network namespaces where they are now. The thread that calls is in another
 * namespace afterwards (grant/vfprobe.c).
 */
#include "devstate/devstate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "devstate/devstate-internal.h"
#include "discover/discover.h"
#include "hw/bdf.h"
#include "hw/vfstate.h"
#include "netlink/netlink.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

struct netns_walk {
	size_t n_files;	  /* of the directory */
	size_t n_entered; /* but our own */
	int refused;	  /* errno of the first one that could not be entered; 0 none */
};

#define OWN "/proc/thread-self/ns/net"
#define SYS "/sys"

struct entry {
	char *name;
	struct timespec made;
};

struct entries {
	struct entry *v;
	size_t n, cap;
};

static void entries_done(struct entries *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].name);
	free(e->v);
}

/* A namespace's file is as old as the namespace. */
static int newest_first(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->made.tv_sec != b->made.tv_sec)
		return a->made.tv_sec < b->made.tv_sec ? 1 : -1;
	if (a->made.tv_nsec != b->made.tv_nsec)
		return a->made.tv_nsec < b->made.tv_nsec ? 1 : -1;
	return strcmp(a->name, b->name);
}

static bool enter(int dir, const char *name, const struct stat *own, struct netns_walk *walk)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != NSFS_MAGIC)
		return false;
	if (fstat(fd, &st) == 0 && st.st_dev == own->st_dev && st.st_ino == own->st_ino)
		return false;
	if (setns(fd, CLONE_NEWNET) == 0) {
		walk->n_entered++;
		return true;
	}
	if (!walk->refused)
		walk->refused = errno;
	return false;
}

static void close_dir(DIR **dir)
{
	closedir(*dir);
}

/*
 * Enters each namespace of the directory but our own, the newest first, until fn (called inside,
 * with the file's name) returns true. A file that is not a namespace, or goes away meanwhile, is
 * left out. -errno: the directory cannot be read.
 */
static int netns_each(const char *path, bool (*fn)(void *arg, const char *name), void *arg,
		      struct netns_walk *ret)
{
	_cleanup_(entries_done) struct entries entries = { NULL, 0, 0 };
	DIR *opened = opendir(path);
	struct stat own = { .st_ino = 0 }, st;
	const struct dirent *d;

	*ret = (struct netns_walk) { 0 };
	if (!opened)
		return -errno;
	_cleanup_(close_dir) DIR *dir = opened;
	if (stat(OWN, &own) < 0)
		return -errno;
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || fstatat(dirfd(dir), d->d_name, &st, 0) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		entries.v = xgrow(entries.v, &entries.cap, entries.n + 1, sizeof(*entries.v));
		entries.v[entries.n++] = (struct entry) { xstrdup(d->d_name), st.st_mtim };
	}
	if (entries.n)
		qsort(entries.v, entries.n, sizeof(*entries.v), newest_first);
	ret->n_files = entries.n;
	for (size_t i = 0; i < entries.n; i++) {
		if (enter(dirfd(dir), entries.v[i].name, &own, ret) && fn(arg, entries.v[i].name))
			break;
	}
	return 0;
}

/* --- inside --- */

/* The interfaces and addresses of the namespace we are in, for freeifaddrs(). -E2BIG: there are
 * more than NETNS_CROWD_MAX. */
static int netns_addresses(struct ifaddrs **ret)
{
	bool crowded;
	int r = netlink_is_crowded(NETNS_CROWD_MAX, &crowded, NULL);

	if (r < 0 || crowded)
		return r < 0 ? r : -E2BIG;
	return getifaddrs(ret) < 0 ? -errno : 0;
}

static int ask(const char *netdev, unsigned long request, struct ifreq *ifr)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	strncpy(ifr->ifr_name, netdev, IFNAMSIZ - 1);
	return ioctl(fd, request, ifr) < 0 ? -errno : 0;
}

bool netns_function_of(const char *netdev, struct bdf *ret)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr = { .ifr_data = (void *)&info };

	if (ask(netdev, SIOCETHTOOL, &ifr) < 0)
		return false;
	info.bus_info[sizeof(info.bus_info) - 1] = '\0';
	return bdf_parse(info.bus_info, ret) == 0;
}

int netns_mtu_of(const char *netdev)
{
	struct ifreq ifr = { .ifr_mtu = 0 };

	return ask(netdev, SIOCGIFMTU, &ifr) < 0 ? 0 : ifr.ifr_mtu;
}

/* sysfs shows the network namespace of the thread that mounts it. The mount is in a mount namespace
 * of this thread's own, and ends with it. */
int netns_sysfs_open(struct sysroot **ret, struct err *err)
{
	static const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, "a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, "private mounts");
	if (mount("railmate", SYS, "sysfs", flags, NULL) < 0)
		return err_sys(err, "mount of sysfs");
	r = sysroot_open("/", ret, err);
	if (r < 0)
		umount2(SYS, MNT_DETACH);
	return r;
}

void netns_sysfs_close(struct sysroot *root)
{
	sysroot_close(root);
	umount2(SYS, MNT_DETACH);
}

#define DEVICES	   "sys/bus/pci/devices"
#define RDMA_DIR   "sys/class/infiniband"
#define NETNS_MODE "sys/module/ib_core/parameters/netns_mode"
#define IPOIB	   "sys/module/ib_ipoib"

struct probe {
	const struct netns_calls *calls;
	const struct sysroot *root;
	struct arena *arena;
	struct vf_state *states;
	size_t n, n_missing; /* whose netdev is not found yet */
	const char *crowded; /* a namespace that was not read because there is too much in it; NULL:
				none */
};

/* --- addresses --- */

/* IPv4 mapped, as a GID has it. */
static bool address_of(const struct ifaddrs *i, struct ip_addr *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *bytes, *mask = NULL;
	size_t n;

	if (!i->ifa_addr ||
	    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
		return false;
	n = i->ifa_addr->sa_family == AF_INET ? 4 : 16;
	bytes = n == 4 ? (const uint8_t *)&((const struct sockaddr_in *)(const void *)i->ifa_addr)
				 ->sin_addr
		       : ((const struct sockaddr_in6 *)(const void *)i->ifa_addr)
				 ->sin6_addr.s6_addr;
	if (i->ifa_netmask)
		mask = n == 4 ? (const uint8_t *)&(
					(const struct sockaddr_in *)(const void *)i->ifa_netmask)
					->sin_addr
			      : ((const struct sockaddr_in6 *)(const void *)i->ifa_netmask)
					->sin6_addr.s6_addr;
	*ret = (struct ip_addr) { .prefix = n == 4 ? 96 : 0 };
	memcpy(ret->addr, mapped, sizeof(mapped));
	memcpy(ret->addr + 16 - n, bytes, n);
	for (size_t k = 0; mask && k < n; k++)
		ret->prefix += __builtin_popcount(mask[k]);
	return true;
}

/* Those of the namespace we are in. */
static const struct ip_addr *addresses(const struct ifaddrs *all, struct arena *arena,
				       size_t *ret_n)
{
	struct ip_addr *v;
	size_t n = 0;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		n++;
	v = arena_array(arena, n, sizeof(*v));
	n = 0;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!address_of(i, &v[n]))
			continue;
		v[n++].netdev = arena_strdup(arena, i->ifa_name);
	}
	*ret_n = n;
	return v;
}

static void free_addresses(struct ifaddrs **all)
{
	if (*all)
		freeifaddrs(*all);
}

#define _cleanup_addresses_ __attribute__((cleanup(free_addresses)))

/* --- reading sysfs --- */

static void read_port(struct probe *l, const struct sysroot *root, struct vf_state *s)
{
	const struct hw_port *port;
	struct port_tables tables;
	struct hw_rdma rdma;

	discover_rdma_ports(root, s->rdma, l->arena, &rdma);
	if (!rdma.n_ports)
		return;
	port = &rdma.ports[0];
	for (size_t i = rdma.n_ports; i-- > 0;) {
		if (str_eq(rdma.ports[i].state, "ACTIVE"))
			port = &rdma.ports[i];
	}
	s->port = port->number;
	s->port_state = port->state;
	s->link = port->link;
	rdma_read_tables(root, s->rdma, s->port, l->arena, &tables);
	s->gids = tables.gids;
	s->n_gids = tables.n_gids;
	s->gid_table_len = tables.gid_table_len;
	s->pkeys = tables.pkeys;
	s->n_pkeys = tables.n_pkeys;
}

static void set_rdma(struct probe *l, const struct sysroot *root, const struct function_now *now,
		     struct vf_state *s)
{
	if (!now->rdma[0])
		return;
	s->rdma = arena_strdup(l->arena, now->rdma);
	if (now->uverbs[0])
		s->uverbs = arena_strdup(l->arena, now->uverbs);
	read_port(l, root, s);
}

/*
 * The class of verbs devices is the same in every network namespace: it still names an RDMA device
 * that was moved away.
 */
static void read_verbs(struct probe *l, struct vf_state *s)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_dir_ struct dir dev = DIR_CLOSED;
	char path[64], addr[BDF_STRLEN], rdma[64];

	snprintf(path, sizeof(path), DEVICES "/%s/infiniband_verbs", bdf_format(s->bdf, addr));
	if (dir_open_path(l->root, path, &dev) < 0 || names_of(&dev, &names) < 0 || names.n != 1)
		return;
	if (sysroot_read(l->root, rdma, sizeof(rdma), "%s/%s/ibdev", path, names.v[0]) <= 0)
		return;
	s->rdma = arena_strdup(l->arena, rdma);
	s->uverbs = arena_strdup(l->arena, names.v[0]);
}

/* --- the host --- */

static int probe_here(struct probe *l, struct bdf bdf, int exclusive, struct vf_state *s,
		      struct err *err)
{
	_cleanup_names_ struct names netdevs = NAMES_EMPTY;
	_cleanup_dir_ struct dir dev = DIR_CLOSED;
	char path[64], addr[BDF_STRLEN];
	struct function_now now;
	uint64_t mtu;
	int r = devstate_function(l->root, bdf, &now, err);

	if (r < 0)
		return r;
	*s = (struct vf_state) {
		.bdf = bdf, .seen = VF_SEEN_HOST, .port = 1, .exclusive = exclusive
	};
	set_rdma(l, l->root, &now, s);
	snprintf(path, sizeof(path), DEVICES "/%s", bdf_format(bdf, addr));
	if (!dir_open_path(l->root, path, &dev) && names_below(&dev, "net", &netdevs) >= 0 &&
	    netdevs.n)
		s->netdev = arena_strdup(l->arena, netdevs.v[0]);
	if (s->netdev &&
	    sysroot_read_u64(l->root, 10, &mtu, "sys/class/net/%s/mtu", s->netdev) == 0 &&
	    mtu <= INT_MAX)
		s->mtu = (int)mtu;
	/* Without a driver it has no interface anywhere; one for InfiniBand has none but IPoIB's.
	 */
	if (!s->netdev && (s->rdma && s->link == HW_LINK_IB ? sysroot_exists(l->root, IPOIB)
							    : now.driver[0] != '\0'))
		s->seen = s->rdma ? VF_SEEN_OUTSIDE : VF_SEEN_NOTHING;
	l->n_missing += s->seen != VF_SEEN_HOST;
	return 0;
}

static void set_addresses_here(struct probe *l)
{
	_cleanup_addresses_ struct ifaddrs *all = NULL;
	const struct ip_addr *v;
	size_t n;

	if (!l->calls->live || l->n_missing == l->n || getifaddrs(&all) < 0)
		return;
	v = addresses(all, l->arena, &n);
	for (size_t i = 0; i < l->n; i++) {
		struct vf_state *s = &l->states[i];

		if (s->seen != VF_SEEN_HOST)
			continue;
		s->addrs = v;
		s->n_addrs = n;
		s->addrs_known = true;
	}
}

/* --- in a namespace --- */

/* One that was found in the namespace we are in. */
struct finding {
	struct probe *l;
	const char *name; /* of the namespace's file */
	const struct ifaddrs *all;
	const struct ip_addr *addrs;
	size_t n_addrs;
	struct sysroot *sysfs; /* of the namespace; opened when it is needed */
	struct err err;	       /* why it cannot be */
};

struct soft_search {
	const struct sysroot *root;
	const char *netdev;
	char guid[20];
	struct function_now now;
};

/* Names of interfaces are a namespace's own: the address identifies it. */
static int is_soft_of(void *arg, const char *rdma)
{
	struct soft_search *s = arg;
	char text[64];

	if (strlen(rdma) >= sizeof(s->now.rdma) ||
	    sysroot_exists(s->root, RDMA_DIR "/%s/device", rdma) ||
	    discover_soft_netdev(s->root, rdma, text, sizeof(text)) < 0 ||
	    !str_eq(text, s->netdev) ||
	    sysroot_read(s->root, text, sizeof(text), RDMA_DIR "/%s/node_guid", rdma) < 0 ||
	    !str_eq(text, s->guid))
		return 0;
	strcpy(s->now.rdma, rdma);
	return 1;
}

static void find_soft(struct finding *f, struct vf_state *s)
{
	struct soft_search search = { .root = f->l->root, .netdev = s->netdev };

	/* The identifier that the kernel makes of a MAC address, as sysfs writes it. */
	for (const struct ifaddrs *i = f->all; i && !*search.guid; i = i->ifa_next) {
		const struct sockaddr_ll *ll = (const void *)i->ifa_addr;

		if (ll && ll->sll_family == AF_PACKET && ll->sll_halen == 6 &&
		    !strcmp(i->ifa_name, s->netdev))
			snprintf(search.guid, sizeof(search.guid),
				 "%02x%02x:%02xff:fe%02x:%02x%02x", ll->sll_addr[0] ^ 2,
				 ll->sll_addr[1], ll->sll_addr[2], ll->sll_addr[3], ll->sll_addr[4],
				 ll->sll_addr[5]);
	}
	if (!*search.guid || sysroot_each(search.root, RDMA_DIR, is_soft_of, &search) != 1)
		return;
	find_class_uverbs(search.root, &search.now);
	set_rdma(f->l, f->l->root, &search.now, s);
}

/* The RDMA device went along with the interface. */
static void find_moved(struct finding *f, struct vf_state *s)
{
	const struct sysroot *sysfs;
	struct function_now now;

	if (!f->sysfs && !f->err.code)
		f->l->calls->sysfs_open(&f->sysfs, &f->err);
	sysfs = f->sysfs;
	if (sysfs && devstate_function(sysfs, s->bdf, &now, NULL) == 0)
		set_rdma(f->l, sysfs, &now, s);
	if (!s->rdma)
		read_verbs(f->l, s);
	if (sysfs)
		return;
	s->seen = VF_SEEN_OUTSIDE;
	s->netns = NULL;
	s->why = arena_printf(
		f->l->arena,
		"its RDMA device is in the network namespace %s, whose sysfs cannot be seen: %s",
		f->name, f->err.msg);
}

static void found(struct finding *f, const char *netdev, struct vf_state *s)
{
	struct probe *l = f->l;

	if (!f->addrs)
		f->addrs = addresses(f->all, l->arena, &f->n_addrs);
	s->seen = VF_SEEN_POD;
	s->netns = arena_strdup(l->arena, f->name);
	s->netdev = arena_strdup(l->arena, netdev);
	s->mtu = netns_mtu_of(netdev);
	s->addrs = f->addrs;
	s->n_addrs = f->n_addrs;
	s->addrs_known = true;
	if (!s->rdma)
		find_soft(f, s);
	if (!s->rdma && s->exclusive == 1)
		find_moved(f, s);
	l->n_missing--;
}

static bool probe_inside(void *arg, const char *name)
{
	struct probe *l = arg;
	_cleanup_addresses_ struct ifaddrs *all = NULL;
	struct finding f = { .l = l, .name = name };
	int r;

	r = netns_addresses(&all);
	if (r == -E2BIG && !l->crowded)
		l->crowded = arena_strdup(l->arena, name);
	if (r < 0)
		return false;
	f.all = all;
	for (const struct ifaddrs *i = all; i && l->n_missing; i = i->ifa_next) {
		struct vf_state *s = l->states, *end = l->states + l->n;
		struct bdf bdf;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET ||
		    !l->calls->function_of(i->ifa_name, &bdf))
			continue;
		while (s < end &&
		       (s->seen == VF_SEEN_HOST || s->netdev || bdf_cmp(s->bdf, bdf) != 0))
			s++;
		if (s < end)
			found(&f, i->ifa_name, s);
	}
	if (f.sysfs)
		l->calls->sysfs_close(f.sysfs);
	return !l->n_missing;
}

/* --- */

static const char *why_missing(const struct probe *l, const char *dir,
			       const struct netns_walk *walk, int r)
{
	if (!l->calls->live)
		return "its network interface is not here, and namespaces are those of another machine";
	if (!dir)
		return "its network interface is in another network namespace, and none is looked into";
	if (r < 0)
		return arena_printf(
			l->arena,
			"its network interface is in another network namespace, and %s: %s", dir,
			strerror(-r));
	if (walk->refused)
		return arena_printf(
			l->arena,
			"its network interface is in another network namespace, which cannot be entered: %s%s",
			strerror(walk->refused),
			walk->refused == EPERM ? " (it takes CAP_SYS_ADMIN)" : "");
	if (l->crowded)
		return arena_printf(
			l->arena,
			"its network interface is in another network namespace, and %s was not read: it has more than %d addresses or interfaces",
			l->crowded, NETNS_CROWD_MAX);
	if (walk->n_files && !walk->n_entered)
		return arena_printf(
			l->arena,
			"its network interface is in another network namespace, and no file of %s is one: is it mounted with the propagation HostToContainer?",
			dir);
	return arena_printf(l->arena,
			    "its network interface is in none of the %zu network namespaces of %s",
			    walk->n_entered, dir);
}

int devstate_vfs_by(const struct netns_calls *calls, const struct sysroot *root,
		    const char *netns_dir, const struct bdf *bdfs, size_t n, struct arena *arena,
		    struct vf_state *ret, struct err *err)
{
	struct probe l = { calls, root, arena, ret, n, 0, NULL };
	struct netns_walk walk = { 0 };
	const char *why;
	int exclusive = -1, r;
	char mode[8];

	/* "share device among net namespaces" */
	if (sysroot_read(root, mode, sizeof(mode), NETNS_MODE) >= 0)
		exclusive = str_eq(mode, "N") ? 1 : str_eq(mode, "Y") ? 0 : -1;

	for (size_t i = 0; i < n; i++) {
		r = probe_here(&l, bdfs[i], exclusive, &ret[i], err);
		if (r < 0)
			return r;
	}
	set_addresses_here(&l);
	if (!l.n_missing)
		return 0;
	r = calls->live && netns_dir ? netns_each(netns_dir, probe_inside, &l, &walk) : 0;
	if (!l.n_missing)
		return 0;
	why = why_missing(&l, netns_dir, &walk, r);
	for (struct vf_state *s = ret; s < ret + n; s++) {
		if (s->seen == VF_SEEN_HOST || s->netdev)
			continue;
		/* InfiniBand without an IPoIB interface, or moved without one: nothing is missing
		 * but the interface. */
		if (s->rdma && s->link == HW_LINK_IB) {
			s->seen = VF_SEEN_HOST;
			continue;
		}
		if (!s->rdma)
			read_verbs(&l, s);
		s->why = why;
	}
	return 0;
}

int devstate_vfs(const struct sysroot *root, const char *netns_dir, const struct bdf *bdfs,
		 size_t n, struct arena *arena, struct vf_state *ret, struct err *err)
{
	const struct netns_calls calls = { sysroot_is_live(root), netns_function_of,
					   netns_sysfs_open, netns_sysfs_close };

	return devstate_vfs_by(&calls, root, netns_dir, bdfs, n, arena, ret, err);
}
