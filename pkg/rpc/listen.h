/* Unix sockets to listen on that take over only what refuses connections, and remove only
 * themselves. */
#ifndef RAILMATE_RPC_LISTEN_H
#define RAILMATE_RPC_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct listen_socket {
	int fd;
	dev_t dev;
	ino_t ino;
};

/* -EADDRINUSE: another process listens there; -EEXIST: what is there is no socket. The descriptor
 * does not block. */
int listen_open(const char *path, mode_t mode, struct listen_socket *ret, struct err *err);
bool listen_intact(const struct listen_socket *l, const char *path);
void listen_close(struct listen_socket *l,
		  const char *path); /* unlinks path if it is still this socket */

#endif
