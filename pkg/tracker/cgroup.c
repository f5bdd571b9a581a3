#include "tracker/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* The kubelet's own root, its "kubepods", a QoS class, the pod; with room for a deeper root. */
#define DEPTH_MAX 8

/* Both names a pod's cgroup can end in. */
struct pod_names {
	char *plain, *systemd;
	bool recognised; /* there is a cgroup of a kubelet */
};

/* The text of a small file; -errno. */
static int read_text(int fd, const char *file, char *buf, size_t size)
{
	_cleanup_close_ int f = openat(fd, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = f >= 0 ? read(f, buf, size - 1) : -1;

	buf[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : 0;
}

static bool is_absent(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

/* CRI-O leaves the process of a sandbox out, so that the one thread may be a container's. */
static bool is_of_crio(int fd)
{
	DIR *dir = fdopendir(dup(fd));
	struct dirent *e;
	bool found = !dir;

	while (!found && (e = readdir(dir)))
		found = !strncmp(e->d_name, "crio-", strlen("crio-"));
	if (dir)
		closedir(dir);
	return found;
}

static int walk(int fd, struct pod_names *p, int depth);

/* One that is gone by now has no process. */
static int enter(int fd, const char *name, struct pod_names *p, int depth)
{
	_cleanup_close_ int child = -1;
	char events[128], pids[32];
	int a, b;

	/* Without pods: units of systemd, and groups that containers made. */
	if (*name == '.' || str_ends(name, ".service") || str_ends(name, ".scope") ||
	    str_ends(name, ".mount"))
		return 0;
	child = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (child < 0)
		return is_absent(-errno) ? 0 : -errno;
	p->recognised |= strstr(name, "kubepods") != NULL;
	if (strcmp(name, p->plain) != 0 && !str_ends(name, p->systemd))
		return walk(dup(child), p, depth + 1);
	/*
	 * Both count the processes of child cgroups and of all process namespaces; cgroup.procs
	 * shows a daemon in a container only those of its own namespace. A cgroup that is gone by
	 * now has no process.
	 */
	a = read_text(child, "cgroup.events", events, sizeof(events));
	b = read_text(child, "pids.current", pids, sizeof(pids));
	if (strtoul(pids, NULL, 10) == 1 && !is_of_crio(child))
		return TRACKER_POD_IS_SANDBOX;
	if (strstr(events, "populated 1") || strtoul(pids, NULL, 10) > 0)
		return 1;
	/* Another runtime may have been told another cgroup for the pod's processes than this one.
	 */
	if (a == 0 || b == 0)
		return is_of_crio(child) ? TRACKER_POD_IS_EMPTY : 0;
	return is_absent(a) && is_absent(b) ? 0 : is_absent(a) ? b : a;
}

/* Takes fd. */
static int walk(int fd, struct pod_names *p, int depth)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool empty = false;
	int r = 0;

	if (!dir) {
		r = -errno;
		closep(&fd);
		return r;
	}
	while (r == 0 && depth < DEPTH_MAX) {
		errno = 0;
		e = readdir(dir);
		if (!e) {
			r = -errno;
			break;
		}
		if (e->d_type == DT_DIR)
			r = enter(fd, e->d_name, p, depth);
		/* one with a process outweighs it: of another driver, or the true one beside a
		 * tenant's */
		if (r == TRACKER_POD_IS_EMPTY) {
			empty = true;
			r = 0;
		}
	}
	closedir(dir);
	if (is_absent(r))
		r = 0;
	return r == 0 && empty ? TRACKER_POD_IS_EMPTY : r;
}

int tracker_pod_runs(const char *dir, const char *uid)
{
	_cleanup_free_ char *plain = xasprintf("pod%s", uid),
			    *systemd = xasprintf("-pod%s.slice", uid);
	struct pod_names names = { plain, systemd, false };
	_cleanup_close_ int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int tree, r;

	if (top < 0)
		return -errno;
	/* Version 1 has one tree a controller; of them the kubelet needs, and counts in, that of
	 * the process numbers. */
	tree = openat(top, faccessat(top, "cgroup.controllers", F_OK, 0) == 0 ? "." : "pids",
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree < 0)
		return -errno;
	for (char *c = systemd + strlen("-pod"); *c; c++) {
		if (*c == '-')
			*c = '_';
	}
	r = walk(tree, &names, 0);
	return r == 0 && !names.recognised ? -ENODATA : r;
}
