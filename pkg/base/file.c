#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

static int fail(const struct file_new *f, const char *verb, const char *name, int code,
		struct err *err)
{
	return err_set(err, code, "%s %s%s%s: %s", verb, f->dir_name ? f->dir_name : "",
		       f->dir_name ? "/" : "", name, strerror(code));
}

/* A write to a full disk may be short; only the next one fails with the reason. */
static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int write_temporary(const struct file_new *f, const void *data, size_t len)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_close_ int fd = openat(f->dir, f->temporary, flags, f->mode);
	int r;

	if (fd < 0 && errno == EEXIST && unlinkat(f->dir, f->temporary, 0) == 0)
		fd = openat(f->dir, f->temporary, flags, f->mode);
	if (fd < 0)
		return -errno;
	r = fchmod(fd, f->mode) < 0 ? -errno : write_all(fd, data, len);
	if (r == 0 && f->synced && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(f->dir, f->temporary, 0);
	return r;
}

int file_write(const struct file_new *f, const void *data, size_t len, struct err *err)
{
	int r = write_temporary(f, data, len), code;

	if (r < 0)
		return fail(f, "write", f->temporary, -r, err);
	r = f->only_new ? linkat(f->dir, f->temporary, f->dir, f->name, 0)
			: renameat(f->dir, f->temporary, f->dir, f->name);
	code = r < 0 ? errno : 0;
	/* The temporary name is gone afterwards, in either case. */
	if (code || f->only_new)
		unlinkat(f->dir, f->temporary, 0);
	return code ? fail(f, f->only_new ? "make" : "replace", f->name, code, err) : 0;
}

int file_sync_dir(int dir, const char *name, struct err *err)
{
	return fsync(dir) < 0 ? err_sys(err, "write the directory %s", name) : 0;
}

int file_make_dirs(const char *path, mode_t mode, struct err *err)
{
	_cleanup_free_ char *part = xstrdup(path);

	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(part, 0755); /* a failure shows at the last one */
		*slash = '/';
	}
	if (mkdir(part, mode) < 0 && errno != EEXIST)
		return err_sys(err, "make %s", path);
	return 0;
}

static int stat_nearest(const char *path, struct stat *ret)
{
	_cleanup_free_ char *at = xstrdup(path);
	char *slash;

	while (stat(at, ret) < 0) {
		slash = strrchr(at, '/');
		if (errno != ENOENT || !slash || slash == at)
			return -ENOENT;
		*slash = '\0';
	}
	return 0;
}

bool file_is_in_image(const char *root, const char *path)
{
	struct statfs fs;
	struct stat top, here;

	return statfs(root, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC &&
	       stat(root, &top) == 0 && stat_nearest(path, &here) == 0 && here.st_dev == top.st_dev;
}
