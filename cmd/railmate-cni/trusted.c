/*
 * Files and directories that decide which programs run as root. Only those are read that root alone
 * can have written. A user who runs this program by hand, as tests do, is as good as root: it is
 * not set-user-ID.
 */
#include "cni.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#define TRUSTED_MAX (4 << 20)

static int check_owner(int fd, const char *path, mode_t type, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at %s", path);
	if ((st.st_mode & S_IFMT) != type)
		return err_set(err, EBADMSG, "%s is not a %s", path,
			       type == S_IFDIR ? "directory" : "regular file");
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(err, EPERM, "%s is not trusted: it belongs to user %u, not to root",
			       path, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(
			err, EPERM,
			"%s is not trusted: others than root may write it (mode %04o); chmod go-w %s",
			path, (unsigned)st.st_mode & 07777, path);
	return 0;
}

int trusted_open_dir(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_sys(err, "open %s", path);
	r = check_owner(fd, path, S_IFDIR, err);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int trusted_read(int dir, const char *name, const char *path, struct arena *a, const char **ret,
		 size_t *ret_len, struct err *err)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char *text;
	int r;

	if (fd < 0)
		return errno == ELOOP ? err_set(err, EPERM,
						"%s is not trusted: it is a symbolic link", path)
				      : err_sys(err, "open %s", path);
	r = check_owner(fd, path, S_IFREG, err);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || st.st_size > TRUSTED_MAX)
		return err_set(err, EBADMSG, "%s is larger than %d bytes", path, TRUSTED_MAX);
	text = arena_alloc(a, (size_t)st.st_size + 1);
	if (read(fd, text, (size_t)st.st_size) != st.st_size)
		return err_sys(err, "read %s", path);
	*ret = text;
	*ret_len = (size_t)st.st_size;
	return 0;
}
