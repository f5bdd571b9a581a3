/* Unix sockets: to listen on, the files of others, and the process at the other end. */
#include "rpc/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "rpc/rpc.h"

/*
 * Listening unix sockets. gRPC's own listener unlinks whatever socket is at its path, when it opens
 * and when it closes, also a live one of another process; ours takes over only a socket that
 * refuses connections, and removes only itself.
 */

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

/* --- socket files of others --- */

bool rpc_socket_id(const char *path, struct socket_id *ret)
{
	const struct statx_timestamp *t;
	struct statx st;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) < 0 ||
	    !S_ISSOCK(st.stx_mode))
		return false;
	t = st.stx_mask & STATX_BTIME ? &st.stx_btime : &st.stx_ctime;
	*ret = (struct socket_id) { makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino,
				    t->tv_sec * 1000000000 + t->tv_nsec };
	return true;
}

bool rpc_socket_same(const struct socket_id *a, const struct socket_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->born_ns == b->born_ns;
}

bool rpc_socket_accepts(const char *path, struct rpc_peer *ret_peer)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return true;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return errno != ECONNREFUSED;
	rpc_peer_of(fd, ret_peer);
	return true;
}

/* The process at the other end of a unix socket. */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

/* From Linux 6.9 on, the inode of a process descriptor is the process's own and is never used
 * again. */
static uint64_t process_number(int fd)
{
	_cleanup_close_ int process = -1;
	socklen_t len = sizeof(process);
	struct statfs fs;
	struct stat st;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &len) < 0) {
		process = -1;
		return 0;
	}
	if (fstatfs(process, &fs) < 0 || fs.f_type != PID_FS_MAGIC || fstat(process, &st) < 0)
		return 0;
	return st.st_ino;
}

bool rpc_peer_of(int fd, struct rpc_peer *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	*ret = (struct rpc_peer) { .uid = cred.uid, .pid = cred.pid };
	if (!cred.pid)
		ret->number = process_number(fd);
	return true;
}

enum rpc_kin rpc_peer_compare(const struct rpc_peer *a, const struct rpc_peer *b)
{
	if (a->uid != b->uid || a->pid != b->pid)
		return RPC_PEER_OTHER;
	if (a->pid)
		return RPC_PEER_SAME;
	if (!a->number || !b->number)
		return RPC_PEER_UNKNOWN;
	return a->number == b->number ? RPC_PEER_SAME : RPC_PEER_OTHER;
}
