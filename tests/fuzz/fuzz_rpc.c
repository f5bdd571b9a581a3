/* room: rpc */
/*
 * Any bytes at a socket that is served, as HTTP/2 or not: an answer or an end, and the next client
 * is served. Or any bytes as the answer of a server to a call of ours, which ends. The first byte
 * says how they come: with HTTP/2's greeting before them, past the guard or through it, in one
 * piece or in two, from a server. Ours stays open.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "rpc/rpc.h"

#define SETTINGS "\0\0\0\x04\0\0\0\0\0"
#define GREETING "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" SETTINGS
/* A stream that is left open, or more calls than the guard lets in: it ends when we do. */
#define PATIENCE_MS 2

#define CALL_MS 20

enum { BARE = 1, GUARDED = 2, IN_TWO = 4, OF_SERVER = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rpc *rpc;
static char dir[] = "/tmp/fuzz-rpc-XXXXXX";
static char paths[3][64]; /* without and with a guard; the server that we ask */
static int listener;
static sem_t answered;

static void echo(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)rpc_call_user_agent(call);
	rpc_reply(call, RPC_OK, NULL, request);
}

static void refuse(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	rpc_reply(call, RPC_NOT_FOUND, "no such thing", (struct bytes) { NULL, 0 });
}

static void opened(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	(void)ctx;
	rpc_stream_send(stream, request);
	rpc_stream_send(stream, request);
	if (request.len % 2)
		rpc_stream_end(stream, RPC_OK, NULL);
}

static void closed(void *ctx, struct rpc_stream *stream)
{
	(void)ctx;
	(void)stream;
}

static const struct rpc_method methods[] = {
	{ .path = "/t/E", .unary = echo },
	{ .path = "/t/R", .unary = refuse },
	{ .path = "/t/W", .opened = opened, .closed = closed },
};

static void done(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	(void)body;
	assert(status == RPC_OK || message);
	rpc_channel_close(arg);
	sem_post(&answered);
}

static void ask(void *arg)
{
	struct rpc_channel *ch = rpc_channel_open(rpc, paths[2], 65536);

	(void)arg;
	rpc_call_unary(ch, "/t/E", (struct bytes) { NULL, 0 }, CALL_MS, done, ch);
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, path, strlen(path) + 1);
	return address;
}

static void listen_as_server(void)
{
	struct sockaddr_un address = address_of(paths[2]);

	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 1) < 0)
		abort();
	sem_init(&answered, 0, 0);
}

static void serve(void *arg)
{
	struct rpc_server *s;
	struct err err = { 0 };

	(void)arg;
	if (rpc_server_open(rpc, paths[0], methods, ARRAY_LEN(methods), NULL, &s, &err) < 0 ||
	    rpc_server_open_guarded(rpc, paths[1], methods, ARRAY_LEN(methods), NULL, &s, &err) <
		    0) {
		fprintf(stderr, "furpc: %s\n", err.msg);
		abort();
	}
}

static void end(void)
{
	rpc_stop(rpc);
	close(listener);
	unlink(paths[2]);
	rmdir(dir);
}

static void begin(void)
{
	struct err err = { 0 };

	assert(mkdtemp(dir));
	for (int i = 0; i < 3; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
	if (rpc_start(&rpc, &err) < 0)
		abort();
	rpc_run(rpc, serve, NULL);
	listen_as_server();
	atexit(end);
}

static int dial(bool guarded)
{
	struct sockaddr_un address = address_of(paths[guarded]);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		abort();
	return fd;
}

static void put(int fd, const void *data, size_t len)
{
	ssize_t n = len ? send(fd, data, len, MSG_NOSIGNAL) : 0;

	(void)n; /* it may have been cut off by now */
}

/* Until the other side has closed, or has nothing more to say. */
static void read_all(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[4096];

	while (poll(&p, 1, PATIENCE_MS) > 0 && recv(fd, buf, sizeof(buf), 0) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned how;
	size_t first;
	int fd;

	if (!size || size > 32768)
		return 0;
	if (!rpc)
		begin();
	how = *data++;
	size--;
	first = how & IN_TWO ? size / 2 : size;
	if (how & OF_SERVER) {
		rpc_run(rpc, ask, NULL);
		fd = accept(listener, NULL, NULL);
	} else {
		fd = dial(how & GUARDED);
	}
	if (!(how & BARE) && how & OF_SERVER)
		put(fd, SETTINGS, sizeof(SETTINGS) - 1);
	else if (!(how & BARE))
		put(fd, GREETING, sizeof(GREETING) - 1);
	put(fd, data, first);
	put(fd, data + first, size - first);
	shutdown(fd, SHUT_WR);
	read_all(fd);
	close(fd);
	while (how & OF_SERVER && sem_wait(&answered) < 0)
		assert(errno == EINTR);
	return 0;
}
