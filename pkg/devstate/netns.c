#include "devstate/netns-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "netlink/netlink.h"
#include "sysroot/sysroot.h"

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

int netns_each(const char *path, bool (*fn)(void *arg, const char *name), void *arg,
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

int netns_addresses(struct ifaddrs **ret)
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
