/*
 * openat2(RESOLVE_IN_ROOT) for kernels before 5.6 and for seccomp profiles that deny it. Every
 * component is opened with O_PATH | O_NOFOLLOW below the directory before it; a link's text takes
 * the link's place in the rest of the path. ".." goes back to a descriptor we already hold, never
 * through the file system, and stops at the root; an absolute link starts at the root again. The
 * stack of descriptors is the path so far.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "sysroot/sysroot-internal.h"

#define MAX_DEPTH 64
#define MAX_LINKS 40 /* as in the kernel */

struct walk {
	int root_fd;
	int fds[MAX_DEPTH];
	int depth, links;
	char rest[PATH_MAX];
};

static int current(const struct walk *w)
{
	return w->depth ? w->fds[w->depth - 1] : w->root_fd;
}

static void climb_to(struct walk *w, int depth)
{
	while (w->depth > depth && w->depth > 0)
		close(w->fds[--w->depth]);
}

static bool is_last(const struct walk *w)
{
	return !w->rest[strspn(w->rest, "/")];
}

static int follow(struct walk *w, int link_fd)
{
	char target[PATH_MAX], joined[PATH_MAX];
	ssize_t n = readlinkat(link_fd, "", target, sizeof(target));
	int len;

	if (n < 0)
		return -errno;
	if ((size_t)n >= sizeof(target))
		return -ENAMETOOLONG;
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	target[n] = '\0';
	len = snprintf(joined, sizeof(joined), "%s/%s", target, w->rest);
	if ((size_t)len >= sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(w->rest, joined, (size_t)len + 1);
	if (target[0] == '/')
		climb_to(w, 0);
	return 0;
}

/* One component that is neither "." nor "..". 1: it was the last, and *ret is the result. */
static int step(struct walk *w, const char *name, int flags, int *ret)
{
	_cleanup_close_ int fd = openat(current(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode) && !(is_last(w) && (flags & O_NOFOLLOW)))
		return follow(w, fd);
	if (is_last(w)) {
		*ret = openat(current(w), name, flags | O_NOFOLLOW | O_CLOEXEC);
		return *ret < 0 ? -errno : 1;
	}
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (w->depth == MAX_DEPTH)
		return -ENAMETOOLONG;
	w->fds[w->depth++] = fd;
	fd = -1;
	return 0;
}

static int walk_path(struct walk *w, int flags, int *ret)
{
	char name[NAME_MAX + 1];
	size_t n;
	int r;

	for (;;) {
		/* Repeated slashes count as one. */
		const char *p = w->rest + strspn(w->rest, "/");

		n = strcspn(p, "/");
		if (!n)
			break;
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, p, n);
		name[n] = '\0';
		memmove(w->rest, p + n, strlen(p + n) + 1);
		if (!strcmp(name, "."))
			continue;
		if (!strcmp(name, "..")) {
			climb_to(w, w->depth - 1);
			continue;
		}
		r = step(w, name, flags, ret);
		if (r)
			return r;
	}
	*ret = openat(current(w), ".", flags | O_CLOEXEC);
	return *ret < 0 ? -errno : 1;
}

int resolve_in_root(int root_fd, const char *path, int flags)
{
	struct walk w = { .root_fd = root_fd };
	size_t n = strlen(path);
	int fd = -1, r;

	if (!n)
		return -ENOENT;
	if (n >= sizeof(w.rest))
		return -ENAMETOOLONG;
	memcpy(w.rest, path, n + 1);
	r = walk_path(&w, flags, &fd);
	climb_to(&w, 0);
	return r < 0 ? r : fd;
}
