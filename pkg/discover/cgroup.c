#include "discover/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
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
};

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !strcmp(s + n - k, end);
}

static bool is_pod(const struct pod_names *p, const char *name)
{
	return !strcmp(name, p->plain) || ends_with(name, p->systemd);
}

/* Where no pod is: what systemd runs, and what containers made. */
static bool is_pruned(const char *name)
{
	return ends_with(name, ".service") || ends_with(name, ".scope") || ends_with(name, ".mount");
}

/* The text of a small file, "" if there is none. */
static const char *read_text(int fd, const char *file, char *buf, size_t size)
{
	_cleanup_close_ int f = openat(fd, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = f >= 0 ? read(f, buf, size - 1) : 0;

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

/*
 * Both count what is below, too, and whoever asks: cgroup.procs hides the processes of other process
 * namespaces from a daemon in a container.
 */
static bool has_processes(int fd)
{
	char text[128];

	return strstr(read_text(fd, "cgroup.events", text, sizeof(text)), "populated 1") ||
	       strtoul(read_text(fd, "pids.current", text, sizeof(text)), NULL, 10) > 0;
}

static bool walk(int fd, const struct pod_names *p, int depth);

static bool enter(int fd, const char *name, const struct pod_names *p, int depth)
{
	_cleanup_close_ int child = -1;

	if (*name == '.' || is_pruned(name))
		return false;
	child = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (child < 0)
		return false;
	return is_pod(p, name) ? has_processes(child) : walk(dup(child), p, depth + 1);
}

/* Takes fd. */
static bool walk(int fd, const struct pod_names *p, int depth)
{
	DIR *dir = fdopendir(fd);
	bool runs = false;
	struct dirent *e;

	if (!dir) {
		closep(&fd);
		return false;
	}
	while (!runs && depth < DEPTH_MAX && (e = readdir(dir))) {
		if (e->d_type == DT_DIR)
			runs = enter(fd, e->d_name, p, depth);
	}
	closedir(dir);
	return runs;
}

/* Version 1 has one tree a controller; of them the kubelet needs, and counts in, that of the process numbers.
 */
static int open_tree(const char *dir)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return openat(fd, faccessat(fd, "cgroup.controllers", F_OK, 0) == 0 ? "." : "pids",
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool cgroup_pod_runs(const char *dir, const char *uid)
{
	_cleanup_free_ char *plain = xasprintf("pod%s", uid), *systemd = xasprintf("-pod%s.slice", uid);
	const struct pod_names names = { plain, systemd };
	int tree = open_tree(dir);

	for (char *c = systemd + strlen("-pod"); *c; c++) {
		if (*c == '-')
			*c = '_';
	}
	return tree >= 0 && walk(tree, &names, 0);
}
