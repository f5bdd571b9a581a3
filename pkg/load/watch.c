/*
 * Edges that say "something changed": inotify on directories, kernel uevents, rtnetlink. reload.c
 * and daemon look at the thing itself then.
 */
#include "load/watch.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "load/watch-internal.h"
#include "netlink/netlink.h"

/*
 * A directory that may come and go: inotify on it, or on its nearest ancestor while it does not
 * exist. One watch at a time, moved along as folders appear and vanish; events of an older one have
 * its number and are ignored.
 */

#define COMES_AND_GOES (IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM)
#define GONE	       (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)

struct watch_dir {
	char *path;
	int fd, wd; /* wd -1: nothing is watched */
	bool there; /* the watch is on the directory itself */
	bool files; /* writing in it matters, too, and every name does */
};

/* The kubelet writes its checkpoint through a temporary file on every message of ours: no reason to
 * wake up. */
bool dir_name_matters(const char *name)
{
	if (name[0] == '.' && isdigit((unsigned char)name[1]))
		return name[1 + strspn(name + 1, "0123456789")] != '\0';
	return !str_eq(name, "kubelet_internal_checkpoint");
}

/* In place: "/a/b" to "/a", "/a" to "/", "a" to ".". False when there is nothing above. */
static bool climb(char *path)
{
	char *slash = strrchr(path, '/');

	if (str_eq(path, "/") || str_eq(path, "."))
		return false;
	if (!slash)
		strcpy(path, ".");
	else if (slash == path)
		path[1] = '\0';
	else
		*slash = '\0';
	return true;
}

static int add_watch(const struct watch_dir *w, const char *path)
{
	int wd = inotify_add_watch(w->fd, path,
				   COMES_AND_GOES | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR |
					   (w->files ? IN_CLOSE_WRITE : 0));

	return wd < 0 ? -errno : wd;
}

/* Watch the deepest folder on the way to the path that can be watched. Returns the error of the
 * path itself. */
static int watch_nearest(struct watch_dir *w)
{
	_cleanup_free_ char *path = xstrdup(w->path);
	int first = add_watch(w, path), wd = first;

	while (wd < 0 && climb(path))
		wd = add_watch(w, path);
	if (w->wd >= 0 && w->wd != wd)
		inotify_rm_watch(w->fd, w->wd);
	w->wd = wd < 0 ? -1 : wd;
	w->there = first >= 0;
	return first < 0 ? first : 0;
}

/* Once more after an ancestor was taken: the next folder may have come before the watch was there
 * to see it. Every round either ends or has got nearer, or the folders come and go faster than we
 * look. */
static int arm(struct watch_dir *w)
{
	int r = watch_nearest(w), before = -1;

	while (r == -ENOENT && w->wd != before) {
		before = w->wd;
		r = watch_nearest(w);
	}
	return r;
}

static int open_watch(const char *dir, bool files, struct watch_dir **ret, struct err *err)
{
	struct watch_dir *w;
	size_t len = strlen(dir);
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), r;

	if (fd < 0)
		return err_sys(err, "watch %s: start inotify", dir);
	w = xcalloc(1, sizeof(*w));
	while (len > 1 && dir[len - 1] == '/')
		len--;
	*w = (struct watch_dir) {
		.path = xasprintf("%.*s", (int)len, dir), .fd = fd, .wd = -1, .files = files
	};
	r = arm(w);
	if ((r < 0 && r != -ENOENT) || w->wd < 0) {
		watch_dir_close(w);
		return err_set(err, -r, "watch %s: %s", dir, strerror(-r));
	}
	*ret = w;
	return 0;
}

int watch_dir_open(const char *dir, struct watch_dir **ret, struct err *err)
{
	return open_watch(dir, false, ret, err);
}

int watch_dir_open_files(const char *dir, struct watch_dir **ret, struct err *err)
{
	return open_watch(dir, true, ret, err);
}

int watch_dir_fd(const struct watch_dir *w)
{
	return w->fd;
}

struct seen {
	bool matters, rearm;
};

static void judge(const struct watch_dir *w, const struct inotify_event *event, struct seen *seen)
{
	if (event->mask & IN_Q_OVERFLOW) {
		seen->matters = seen->rearm = true;
		return;
	}
	if (event->wd != w->wd)
		return;
	if (event->mask & GONE) {
		seen->matters |= w->there;
		seen->rearm = true;
	} else if (!w->there) {
		seen->rearm = true;
	} else {
		seen->matters |= w->files || dir_name_matters(event->len ? event->name : "");
	}
}

static bool read_events(const struct watch_dir *w, struct seen *seen)
{
	_Alignas(struct inotify_event) char buf[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	ssize_t n = read(w->fd, buf, sizeof(buf));

	for (char *p = buf; n > 0 && p < buf + n;) {
		const struct inotify_event *event = (const void *)p;

		judge(w, event, seen);
		p += sizeof(*event) + event->len;
	}
	return n > 0;
}

/* A directory that came or went is a change by itself: its files were not seen coming or going. */
bool watch_dir_drain(struct watch_dir *w)
{
	struct seen seen = { 0 };
	bool was_there = w->there;

	while (read_events(w, &seen))
		;
	if (seen.rearm) {
		arm(w);
		seen.matters |= w->there || was_there;
	}
	return seen.matters;
}

void watch_dir_close(struct watch_dir *w)
{
	if (!w)
		return;
	closep(&w->fd);
	free(w->path);
	free(w);
}

/* Kernel uevents and rtnetlink: two feeds of "hardware changed". */

/* The kernel multicasts its uevents to group 1; udev's go to 2. */
#define UEVENT_GROUP_KERNEL 1

bool uevent_matters(const char *buf, size_t len)
{
	static const char *const subsystems[] = { "pci", "net", "infiniband", "infiniband_verbs" };
	static const char key[] = "SUBSYSTEM=";
	const char *end = buf + len, *stop, *value;

	if (!memchr(buf, '@', strnlen(buf, len)))
		return false;
	for (const char *p = buf; p < end; p = stop + 1) {
		stop = memchr(p, '\0', (size_t)(end - p));
		if (!stop)
			return false;
		if (!str_starts(p, key))
			continue;
		value = p + sizeof(key) - 1;
		for (size_t i = 0; i < ARRAY_LEN(subsystems); i++)
			if (str_eq(value, subsystems[i]))
				return true;
		return false;
	}
	return false;
}

static bool matters(const char *buf, size_t len, watch_down_fn *down, void *ctx)
{
	return uevent_matters(buf, len);
}

static const struct source {
	const char *name;
	int bus;
	unsigned groups;
	bool (*matters)(const char *buf, size_t len, watch_down_fn *down, void *ctx);
} sources[] = {
	{ "kernel uevents", NETLINK_KOBJECT_UEVENT, UEVENT_GROUP_KERNEL, matters },
	{ "link changes", NETLINK_ROUTE, RTMGRP_LINK, netlink_reports_link },
};

struct watch_hw {
	struct netlink_feed *feeds[ARRAY_LEN(sources)]; /* NULL: could not be opened */
};

int watch_hw_open(struct watch_hw **ret, struct err *err)
{
	struct watch_hw *w = xcalloc(1, sizeof(*w));

	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		netlink_feed_open(sources[i].bus, sources[i].groups, sources[i].name, &w->feeds[i],
				  err);
	*ret = w;
	return 0;
}

int watch_hw_fd(const struct watch_hw *w, int which)
{
	assert(which == 0 || which == 1);
	return w->feeds[which] ? netlink_feed_fd(w->feeds[which]) : -1;
}

/* A message that was lost (ENOBUFS) or did not fit (ENOSPC: a PF with many VFs) was a change. */
bool watch_hw_drain(struct watch_hw *w, int which, watch_down_fn *down, void *ctx)
{
	_Alignas(struct nlmsghdr) char buf[8192];
	bool changed = false;
	ssize_t n;

	assert(which == 0 || which == 1);
	while (w->feeds[which]) {
		n = netlink_feed_read(w->feeds[which], buf, sizeof(buf));
		if (n == -EAGAIN)
			break;
		if (n < 0 && n != -ENOBUFS && n != -ENOSPC)
			return true;
		changed |= n < 0 || sources[which].matters(buf, (size_t)n, down, ctx);
	}
	return changed;
}

void watch_hw_close(struct watch_hw *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < ARRAY_LEN(w->feeds); i++)
		netlink_feed_close(w->feeds[i]);
	free(w);
}
