#include "rpc/socketfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "rpc/rpc.h"

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
