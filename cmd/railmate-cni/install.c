#include "cni.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

static int copy(int from, int to, const char *path, struct err *err)
{
	char chunk[65536];
	ssize_t n;

	while ((n = read(from, chunk, sizeof(chunk))) > 0) {
		errno = ENOSPC; /* a short write leaves it as it was */
		if (write(to, chunk, (size_t)n) != n)
			return err_sys(err, "write %s", path);
	}
	if (n < 0)
		return err_sys(err, "read railmate-cni");
	if (fchmod(to, 0755) < 0 || fsync(to) < 0)
		return err_sys(err, "write %s", path);
	return 0;
}

int install_into(const char *dir, struct err *err)
{
	_cleanup_free_ char *path = xasprintf("%s/railmate-cni", dir);
	_cleanup_free_ char *temporary = xasprintf("%s/.railmate-cni.%d", dir, (int)getpid());
	_cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = -1;
	int r;

	if (from < 0)
		return err_sys(err, "open railmate-cni itself");
	to = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (to < 0)
		return err_sys(err, "make %s", temporary);
	r = copy(from, to, temporary, err);
	if (r == 0 && rename(temporary, path) < 0)
		r = err_sys(err, "replace %s", path);
	if (r < 0)
		unlink(temporary);
	return r;
}
