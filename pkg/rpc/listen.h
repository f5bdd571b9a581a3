/* Listening unix sockets: one replaces only a socket that refuses connections, and removes only
 * itself. */
#ifndef RAILMATE_RPC_LISTEN_H
#define RAILMATE_RPC_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct rpc_peer;

struct listen_socket {
	int fd;
	dev_t dev;
	ino_t ino;
};

/* -EADDRINUSE: another process listens there; -EEXIST: there is a file that is no socket. The
 * descriptor does not block. */
int listen_open(const char *path, mode_t mode, struct listen_socket *ret, struct err *err);
bool listen_intact(const struct listen_socket *l, const char *path);
void listen_close(struct listen_socket *l,
		  const char *path); /* unlinks path if it is still this socket */

/* Unix socket files of others: which one is it, and does a program accept there? */

/* Which socket file this is. An inode number alone may come back at once. */
struct socket_id {
	dev_t dev;
	ino_t ino;
	int64_t born_ns; /* creation, or the last change where the file system does not know it */
};

bool rpc_socket_id(const char *path, struct socket_id *ret); /* false: no socket there */
bool rpc_socket_same(const struct socket_id *a, const struct socket_id *b);
/* Does the socket accept? A plain connect() shows it in microseconds, a gRPC channel slowly.
 * Unknown is true: the call itself fails then, with a sentence. ret_peer: the process that listens;
 * set where the connection was made. */
bool rpc_socket_accepts(const char *path, struct rpc_peer *ret_peer);

#endif
