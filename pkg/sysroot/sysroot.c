/*
 * Files below a root directory: opening and reading them, the names in a directory, and the walk
 * for kernels that cannot resolve a path in a root. Whoever reads the machine calls.
 */
#include "sysroot/sysroot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot-internal.h"

/* The names in a directory. */

void names_done(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
	*names = (struct names)NAMES_EMPTY;
}

void names_add(struct names *names, const char *name)
{
	names->v = xgrow(names->v, &names->cap, names->n + 1, sizeof(*names->v));
	names->v[names->n++] = xstrdup(name);
}

static int add_name(void *arg, const char *name)
{
	names_add(arg, name);
	return 0;
}

void names_sort(struct names *names)
{
	if (names->n > 1)
		qsort(names->v, names->n, sizeof(*names->v), list_by_string);
}

int names_of(const struct dir *d, struct names *ret)
{
	int r = dir_each(d, add_name, ret);

	names_sort(ret);
	return r;
}

int names_below(const struct dir *up, const char *sub, struct names *ret)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;
	int r = dir_open(up, sub, &d);

	return r < 0 ? r : names_of(&d, ret);
}

bool dir_is_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

/*
 * openat2(RESOLVE_IN_ROOT) for kernels before 5.6 and for seccomp profiles that deny it. Every
 * component is opened with O_PATH | O_NOFOLLOW below the directory before it; a link's text takes
 * the link's place in the rest of the path. ".." goes back to a descriptor we already hold, never
 * through the file system, and stops at the root; an absolute link starts at the root again. The
 * stack of descriptors is the path so far.
 */

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

/* Opens path below root->fd by walking it component by component, as the kernel does for
 * RESOLVE_IN_ROOT. */
static int resolve_in_root(int root_fd, const char *path, int flags)
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

/* A FIFO in a file's place must not block the daemon, a terminal must not become ours. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)

static int openat2_in_root(int fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve };
	long r;

	/* EAGAIN: a rename raced with "..", the kernel could not decide whether the path stays
	 * below the root. */
	for (int tries = 0; tries < 100; tries++) {
		r = syscall(SYS_openat2, fd, path, &how, sizeof(how));
		if (r >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return r < 0 ? -errno : (int)r;
}

int sysroot_open(const char *path, struct sysroot **ret, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat here, top;
	struct sysroot *root;
	int probe;

	if (fd < 0)
		return err_sys(err, "root directory '%s'", path);
	if (fstat(fd, &here) < 0 || stat("/", &top) < 0)
		return err_sys(err, "root directory '%s'", path);
	root = xcalloc(1, sizeof(*root));
	root->live = here.st_dev == top.st_dev && here.st_ino == top.st_ino;
	root->path = xstrdup(path);
	probe = openat2_in_root(fd, ".", O_PATH, RESOLVE_IN_ROOT);
	root->has_openat2 = probe >= 0;
	if (probe >= 0)
		close(probe);
	root->fd = fd;
	fd = -1;
	*ret = root;
	return 0;
}

void sysroot_close(struct sysroot *root)
{
	if (!root)
		return;
	close(root->fd);
	free(root->path);
	free(root);
}

const char *sysroot_path(const struct sysroot *root)
{
	return root->path;
}

bool sysroot_is_live(const struct sysroot *root)
{
	return root->live;
}

static int open_path(const struct sysroot *root, const char *path, int flags)
{
	int fd;

	path += strspn(path, "/");
	if (!*path)
		path = ".";
	if (root->has_openat2 && !root->live)
		return openat2_in_root(root->fd, path, flags, RESOLVE_IN_ROOT);
	if (!root->live)
		return resolve_in_root(root->fd, path, flags);
	fd = openat(root->fd, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static __attribute__((format(printf, 3, 0))) int
open_formatted(const struct sysroot *root, int flags, const char *fmt, va_list ap)
{
	char path[PATH_MAX];
	int n = vsnprintf(path, sizeof(path), fmt, ap);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return open_path(root, path, flags);
}

int sysroot_openat(const struct sysroot *root, int flags, const char *fmt, ...)
{
	va_list ap;
	int fd;

	va_start(ap, fmt);
	fd = open_formatted(root, flags, fmt, ap);
	va_end(ap);
	return fd;
}

/* NUL-terminate the text, without its last newline. */
static int finish_text(char *buf, int len)
{
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return len;
}

/* Until the end of the file: procfs hands out a long file in pieces. */
static int read_fd(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, buf + len, size - len);
		if (n > 0)
			len += (size_t)n;
	} while ((n > 0 && len < size) || (n < 0 && errno == EINTR));
	if (n < 0)
		return -errno;
	return len >= size ? -EFBIG : finish_text(buf, (int)len);
}

int sysroot_read(const struct sysroot *root, char *buf, size_t size, const char *fmt, ...)
{
	_cleanup_close_ int fd = -1;
	va_list ap;

	va_start(ap, fmt);
	fd = open_formatted(root, READ_FLAGS, fmt, ap);
	va_end(ap);
	return read_fd(fd, buf, size);
}

int sysroot_read_u64(const struct sysroot *root, int base, uint64_t *ret, const char *fmt, ...)
{
	_cleanup_close_ int fd = -1;
	char text[32];
	va_list ap;
	int n;

	va_start(ap, fmt);
	fd = open_formatted(root, READ_FLAGS, fmt, ap);
	va_end(ap);
	n = read_fd(fd, text, sizeof(text));
	if (n < 0)
		return n;
	return (size_t)n != strlen(text) ? -EINVAL : str_to_u64(text, base, UINT64_MAX, ret);
}

static int read_link(int fd, const char *name, char *buf, size_t size)
{
	ssize_t n = readlinkat(fd, name, buf, size);

	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return (int)n;
}

/* Last component of the link text in target, "" for "/". */
static int copy_last(const char *target, char *buf, size_t size)
{
	const char *slash = strrchr(target, '/');
	const char *name = slash ? slash + 1 : target;
	size_t n = strlen(name);

	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(buf, name, n + 1);
	return 0;
}

int sysroot_link_name(const struct sysroot *root, char *buf, size_t size, const char *fmt, ...)
{
	_cleanup_close_ int fd = -1;
	char target[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	fd = open_formatted(root, O_PATH | O_NOFOLLOW, fmt, ap);
	va_end(ap);
	if (fd < 0)
		return fd;
	/* With an empty name the kernel's error for a file that is not a link is ENOENT; the caller
	 * knows that it exists. */
	n = read_link(fd, "", target, sizeof(target));
	if (n == -ENOENT)
		return -EINVAL;
	return n < 0 ? n : copy_last(target, buf, size);
}

bool sysroot_exists(const struct sysroot *root, const char *fmt, ...)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	if (root->live)
		return faccessat(root->fd, path + strspn(path, "/"), F_OK, 0) == 0;
	fd = open_path(root, path, O_PATH);
	return fd >= 0;
}

int sysroot_each(const struct sysroot *root, const char *path,
		 int (*fn)(void *arg, const char *name), void *arg)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;
	int r = dir_open_path(root, path, &d);

	return r < 0 ? r : dir_each(&d, fn, arg);
}

void dir_path(const struct dir *d, char *buf, size_t size)
{
	size_t n;

	if (!d->up) {
		snprintf(buf, size, "%s", d->name);
		return;
	}
	dir_path(d->up, buf, size);
	n = strlen(buf);
	snprintf(buf + n, size - n, "/%s", d->name);
}

int dir_open_path(const struct sysroot *root, const char *path, struct dir *ret)
{
	int fd = open_path(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

	if (fd < 0)
		return fd;
	*ret = (struct dir) { root, NULL, path, fd };
	return 0;
}

int dir_open(const struct dir *up, const char *name, struct dir *ret)
{
	int fd = dir_openat(up, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

	if (fd < 0)
		return fd;
	*ret = (struct dir) { up->root, up, name, fd };
	return 0;
}

void dir_close(const struct dir *d)
{
	closep(&d->fd);
}

/* Through the root, for the rare name that is a link. */
static int open_from_root(const struct dir *d, const char *name, int flags)
{
	char path[PATH_MAX];

	dir_path(d, path, sizeof(path));
	return sysroot_openat(d->root, flags, "%s/%s", path, name);
}

int dir_openat(const struct dir *d, const char *name, int flags)
{
	int fd;

	if (d->root->live) {
		fd = openat(d->fd, name, flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (strchr(name, '/')) {
		if (!d->root->has_openat2)
			return open_from_root(d, name, flags);
		fd = openat2_in_root(d->fd, name, flags, RESOLVE_NO_SYMLINKS);
	} else {
		fd = openat(d->fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	/* O_DIRECTORY fails with ENOTDIR where O_NOFOLLOW alone fails with ELOOP. */
	if (fd == -ELOOP || fd == -ENOTDIR)
		return open_from_root(d, name, flags);
	return fd;
}

int dir_read(const struct dir *d, const char *name, char *buf, size_t size)
{
	_cleanup_close_ int fd = dir_openat(d, name, READ_FLAGS);
	ssize_t n;

	if (fd < 0)
		return fd;
	/* A sysfs attribute and a regular file come whole, up to their end, in one read(). */
	n = read(fd, buf, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -EFBIG;
	return finish_text(buf, (int)n);
}

int dir_link(const struct dir *d, const char *name, char *buf, size_t size)
{
	return read_link(d->fd, name, buf, size);
}

int dir_link_name(const struct dir *d, const char *name, char *buf, size_t size)
{
	char target[PATH_MAX];
	int n = dir_link(d, name, target, sizeof(target));

	return n < 0 ? n : copy_last(target, buf, size);
}

int dir_each(const struct dir *d, int (*fn)(void *arg, const char *name), void *arg)
{
	_Alignas(struct dirent64) char buf[8192];
	ssize_t n;
	int r;

	while ((n = getdents64(d->fd, buf, sizeof(buf))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(buf + at);

			at += e->d_reclen;
			if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
				continue;
			r = fn(arg, e->d_name);
			if (r)
				return r;
		}
	}
	return n < 0 ? -errno : 0;
}
