/* Listening unix sockets: one replaces only a socket that refuses connections, and removes only
 * itself. */
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

/* -EADDRINUSE: another process listens there; -EEXIST: there is a file that is no socket. The
 * descriptor does not block. */
int listen_open(const char *path, mode_t mode, struct listen_socket *ret, struct err *err);
bool listen_intact(const struct listen_socket *l, const char *path);
void listen_close(struct listen_socket *l,
		  const char *path); /* unlinks path if it is still this socket */

#endif
