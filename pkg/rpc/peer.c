/* The process at the other end of a unix socket. */
#include "rpc/rpc.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"

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
