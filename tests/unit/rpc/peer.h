/* What the tests of this room share: a folder, an rpc thread, an echo server on it, and calls that
 * wait. */
#ifndef RAILMATE_TESTS_RPC_PEER_H
#define RAILMATE_TESTS_RPC_PEER_H

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "rpc/rpc.h"

struct peer {
	char dir[64], path[128];
	struct rpc *rpc;
	struct rpc_server *server;
	struct rpc_channel *channel;
	/* what the handlers saw */
	struct rpc_call *held[64];
	size_t n_held;
	struct rpc_stream *streams[8];
	size_t n_opened, n_closed;
	sem_t event; /* posted by "hold" and by opened() and closed() */
};

struct bytes text(const char *s);

/* Echo, Refuse, Hold, Agent, and the stream Watch, of /t.T. */
extern const struct rpc_method peer_methods[5];

void wait_for(sem_t *sem);
uint64_t now_ms(void);

/* --- things to do on the rpc thread --- */

struct opening {
	struct peer *p;
	int r;
	struct err err;
};

struct opening try_serve(struct peer *p);
void serve(struct peer *p);

void unserve(struct peer *p);
void open_channel(void *arg);
void close_channel(void *arg);

/* --- calls that wait --- */

struct answer {
	struct peer *p;
	const char *path;
	struct bytes request;
	unsigned timeout_ms;
	sem_t done;
	unsigned times;
	enum rpc_status status;
	char message[512], *body;
	size_t len;
};

void begin_call(void *arg);
void begin_call(void *answer); /* on the rpc thread */
void call_begin(struct answer *a, struct peer *p, const char *path, struct bytes request);
enum rpc_status call_end(struct answer *a);
/* The caller frees a->body. */
enum rpc_status call(struct answer *a, struct peer *p, const char *path, struct bytes request);
void assert_echo(struct peer *p, const char *word);
struct sockaddr_un unix_address(const char *path);
/* A client that knows nothing of gRPC. */
int raw_connect(const char *path);
size_t count_fds(void);
/* Connections come and end behind the back of the caller, and some are not accepted yet: wait until
 * no more than `limit` are left, for a while. */
void assert_fds_fall_to(size_t limit);

/* --- a folder and a thread per test --- */

int peer_setup(void **state);
int peer_setup_serving(void **state);
int peer_teardown(void **state);

#endif
