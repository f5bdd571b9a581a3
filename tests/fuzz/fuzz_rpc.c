/* room: rpc */
/*
 * Any bytes at a socket that is served, as HTTP/2 or not: an answer or an end, and the next client
 * is served. The first byte says how they come: with HTTP/2's greeting before them, past the guard
 * or through it, in one piece or in two. The server stays open.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
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

#define GREETING "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"
/* A stream that is left open, or more calls than the guard lets in: it ends when we do. */
#define PATIENCE_MS 2

enum { BARE = 1, GUARDED = 2, IN_TWO = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rpc *rpc;
static char dir[] = "/tmp/fuzz-rpc-XXXXXX";
static char paths[2][64]; /* without and with a guard */

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
	rmdir(dir);
}

static void begin(void)
{
	struct err err = { 0 };

	assert(mkdtemp(dir));
	for (int i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
	if (rpc_start(&rpc, &err) < 0)
		abort();
	rpc_run(rpc, serve, NULL);
	atexit(end);
}

static int dial(bool guarded)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, paths[guarded], strlen(paths[guarded]) + 1);
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
	fd = dial(how & GUARDED);
	if (!(how & BARE))
		put(fd, GREETING, sizeof(GREETING) - 1);
	put(fd, data, first);
	put(fd, data + first, size - first);
	shutdown(fd, SHUT_WR);
	read_all(fd);
	close(fd);
	return 0;
}
