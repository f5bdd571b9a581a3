/*
 * Listening unix sockets. gRPC's own listener unlinks whatever socket is at its path, when it opens
 * and when it closes, also a live one of another process; ours takes over only a socket that
 * refuses connections, and removes only itself.
 */
#include "rpc/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

static int make_address(const char *path, struct sockaddr_un *ret, struct err *err)
{
	size_t len = strlen(path), limit = sizeof(ret->sun_path) - 1;

	if (!len)
		return err_set(err, EINVAL, "the path of a socket is empty");
	if (len > limit)
		return err_set(err, ENAMETOOLONG, "socket path %s has %zu bytes, the limit is %zu",
			       path, len, limit);
	*ret = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(ret->sun_path, path, len + 1);
	return 0;
}

static int open_socket(struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? err_sys(err, "open a unix socket") : fd;
}

/* Only a refused connection proves that no program listens: a full backlog or another socket type
 * does not. */
static int probe(const struct sockaddr_un *address, struct err *err)
{
	_cleanup_close_ int fd = open_socket(err);

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	    errno == EAGAIN || errno == EPROTOTYPE)
		return err_set(err, EADDRINUSE, "another process is listening on %s",
			       address->sun_path);
	if (errno != ECONNREFUSED && errno != ENOENT)
		return err_sys(err, "find out whether %s is in use", address->sun_path);
	return 0;
}

static int remove_old(const struct sockaddr_un *address, struct err *err)
{
	const char *path = address->sun_path;
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "look at %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, EEXIST, "%s is in the way and is not a socket", path);
	r = probe(address, err);
	if (r < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT)
		return err_sys(err, "remove the stale socket %s", path);
	return 0;
}

int listen_open(const char *path, mode_t mode, struct listen_socket *ret, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un address;
	struct stat st;
	int r;

	r = make_address(path, &address, err);
	if (r < 0)
		return r;
	r = remove_old(&address, err);
	if (r < 0)
		return r;
	fd = open_socket(err);
	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return err_sys(err, "bind %s", path);
	/* The mode is set before listen(), so no program can connect with the one that the umask
	 * gave. */
	if (chmod(path, mode) < 0 || lstat(path, &st) < 0)
		return err_sys(err, "%s vanished while it was set up", path);
	if (listen(fd, SOMAXCONN) < 0)
		return err_sys(err, "listen on %s", path);
	*ret = (struct listen_socket) { .fd = fd, .dev = st.st_dev, .ino = st.st_ino };
	fd = -1;
	return 0;
}

bool listen_intact(const struct listen_socket *l, const char *path)
{
	struct stat st;

	return l->fd >= 0 && lstat(path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

void listen_close(struct listen_socket *l, const char *path)
{
	if (listen_intact(l, path))
		unlink(path);
	closep(&l->fd);
	l->fd = -1;
}
