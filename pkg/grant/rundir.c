#include "grant/grant-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/bdf.h"

#define PREFIX	  "vf-"
#define DIR_MODE  0755
#define FILE_MODE 0644
#define TEMPORARY ".new"
#define COPY_MAX  (1u << 20)

const char *grant_rundir_path(const char *rundir, const char *vf, struct arena *a)
{
	return arena_printf(a, "%s/" PREFIX "%s", rundir ? rundir : RUNDIR_DEFAULT, vf);
}

bool grant_rundir_has(const char *rundir, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", rundir, name);
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* --- directories --- */

static int refuse(const char *rundir, const char *what, const char *vf, int code, struct err *err)
{
	return err_set(err, code, "%s %s/" PREFIX "%s: %s", what, rundir, vf,
		       code == ENOTDIR || code == ELOOP ? "exists and is not a directory"
							: strerror(code));
}

/* A link in its place is not followed. An errno, or 0. */
static int make_one(const char *path)
{
	struct stat st;

	if (mkdir(path, DIR_MODE) == 0) /* whatever our umask is */
		return chmod(path, DIR_MODE) < 0 ? errno : 0;
	if (errno != EEXIST || lstat(path, &st) < 0)
		return errno;
	return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

/* Allocate waits for this: four system calls. */
int grant_rundir_make(const char *rundir, const char *vf, struct err *err)
{
	char path[PATH_MAX];
	int e, len = snprintf(path, sizeof(path), "%s/" PREFIX "%s/" RUNDIR_PROBE, rundir, vf);

	if (len >= (int)sizeof(path))
		return refuse(rundir, "make", vf, ENAMETOOLONG, err);
	len -= (int)strlen("/" RUNDIR_PROBE);
	path[len] = '\0';
	e = make_one(path);
	if (e == ENOENT && mkdir(rundir, DIR_MODE) == 0)
		e = make_one(path);
	path[len] = '/';
	if (!e)
		e = make_one(path);
	return e ? refuse(rundir, "make", vf, e, err) : 0;
}

static int try_open(int top, const char *vf)
{
	char name[64];

	snprintf(name, sizeof(name), PREFIX "%s", vf);
	return openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Allocate has made it, as a rule. */
static int open_dir(const char *rundir, int top, const char *vf, struct err *err)
{
	int e, fd = try_open(top, vf);

	if (fd < 0 && errno == ENOENT) {
		e = grant_rundir_make(rundir, vf, err);
		if (e < 0)
			return e;
		fd = try_open(top, vf);
	}
	return fd < 0 ? refuse(rundir, "open", vf, errno, err) : fd;
}

/* --- files --- */

static int write_file(int dir, const char *name, const char *temporary, const char *text,
		      size_t len)
{
	const struct file_new f = {
		.dir = dir, .name = name, .temporary = temporary, .mode = FILE_MODE
	};

	return file_write(&f, text, len, NULL);
}

/* All of an open regular file, malloc'ed and with a NUL behind it. */
static int read_whole(int fd, char **ret, size_t *ret_len)
{
	struct stat st;
	size_t len = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > (off_t)COPY_MAX)
		return -EFBIG;
	*ret = xcalloc(1, (size_t)st.st_size + 1);
	while (len < (size_t)st.st_size &&
	       (n = read(fd, *ret + len, (size_t)st.st_size - len)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	*ret_len = len;
	return 0;
}

/* It is written once and then replaced as a whole: a link keeps the old content. */
static int link_or_copy(int top, const char *from, int dir, const char *name, const char *temporary)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t len;
	int r;

	if (fstatat(top, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	unlinkat(dir, temporary, 0); /* of a railmated that was killed */
	if (!S_ISREG(st.st_mode) || linkat(top, from, dir, temporary, 0) < 0) {
		fd = openat(top, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		r = read_whole(fd, &text, &len);
		return r < 0 ? r : write_file(dir, name, temporary, text, len);
	}
	r = renameat(dir, temporary, dir, name) < 0 ? -errno : 0;
	unlinkat(dir, temporary, 0); /* two names of one file: rename() did nothing */
	return r;
}

int grant_rundir_write(const char *rundir, const char *vf, const struct rundir_file *files,
		       size_t n, struct err *err)
{
	_cleanup_close_ int top = open(rundir, O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;
	int e;

	if (top < 0 && errno == ENOENT && mkdir(rundir, DIR_MODE) == 0)
		top = open(rundir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_sys(err, "run directory %s", rundir);
	dir = open_dir(rundir, top, vf, err);
	if (dir < 0)
		return dir;
	for (size_t i = 0; i < n; i++) {
		const struct rundir_file *f = &files[i];
		char temporary[64];

		snprintf(temporary, sizeof(temporary), ".%s" TEMPORARY, f->name);
		if (f->text)
			e = write_file(dir, f->name, temporary, f->text, strlen(f->text));
		else if (f->same)
			e = link_or_copy(top, f->same, dir, f->name, temporary);
		else
			e = unlinkat(dir, f->name, 0) < 0 && errno != ENOENT ? -errno : 0;
		if (e < 0)
			return err_set(err, -e, "write %s/" PREFIX "%s/%s: %s", rundir, vf,
				       files[i].name, strerror(-e));
	}
	return 0;
}

/* --- removing --- */

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
#define _cleanup_dirp_ __attribute__((cleanup(close_dir)))

/* There are only files in it, and the empty directory. */
static void remove_dir(int top, const char *name)
{
	int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_dirp_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(fd, e->d_name,
				 strcmp(e->d_name, RUNDIR_PROBE) == 0 ? AT_REMOVEDIR : 0);
	}
	unlinkat(top, name, AT_REMOVEDIR);
}

/* The address of a directory of ours; NULL: another's. */
static const char *vf_of(const char *name)
{
	char text[BDF_STRLEN];
	struct bdf bdf;

	if (!str_starts(name, PREFIX) || bdf_parse(name + strlen(PREFIX), &bdf) < 0 ||
	    strcmp(bdf_format(bdf, text), name + strlen(PREFIX)) != 0)
		return NULL;
	return name + strlen(PREFIX);
}

void grant_rundir_sweep(const char *rundir, bool (*needs)(void *ctx, const char *vf), void *ctx)
{
	_cleanup_close_ int top = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_dirp_ DIR *dir = top < 0 ? NULL : fdopendir(fcntl(top, F_DUPFD_CLOEXEC, 0));
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		const char *vf = vf_of(e->d_name);

		if (vf && !needs(ctx, vf))
			remove_dir(top, e->d_name);
	}
}

static int read_text(int top, const char *dir, const char *name, char **ret)
{
	_cleanup_close_ int at = openat(top, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			    fd = -1;
	size_t len;

	if (at < 0)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return read_whole(fd, ret, &len);
}

bool grant_rundir_each(const char *rundir, const char *name,
		       void (*found)(void *ctx, const char *path, const char *text), void *ctx)
{
	_cleanup_close_ int top = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_dirp_ DIR *dir = NULL;
	const struct dirent *e;
	bool complete = true;

	if (top < 0)
		return errno == ENOENT ||
		       errno == ENOTDIR; /* there are no records, and there will be none */
	dir = fdopendir(fcntl(top, F_DUPFD_CLOEXEC, 0));
	if (!dir)
		return false;
	while (errno = 0, (e = readdir(dir))) {
		_cleanup_free_ char *text = NULL, *path = NULL;
		int e2;

		if (!vf_of(e->d_name))
			continue;
		e2 = read_text(top, e->d_name, name, &text);
		complete &= e2 == 0 || e2 == -ENOENT || e2 == -ENOTDIR || e2 == -EINVAL ||
			    e2 == -EFBIG || e2 == -ELOOP;
		path = xasprintf("%s/%s/%s", rundir, e->d_name, name);
		if (e2 == 0)
			found(ctx, path, text);
	}
	return complete && errno == 0;
}
