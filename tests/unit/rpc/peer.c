#include "unit/rpc/peer.h"

#include <dirent.h>
#include <time.h>

struct bytes text(const char *s)
{
	return (struct bytes) { (const uint8_t *)s, strlen(s) };
}

static void echo(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	rpc_reply(call, RPC_OK, NULL, request);
}

static void refuse(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	rpc_reply(call, RPC_FAILED_PRECONDITION,
		  arena_printf(rpc_call_arena(call), "no %.*s", (int)request.len,
			       (const char *)request.data),
		  request);
}

static void hold(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct peer *p = ctx;

	(void)request;
	assert_true(p->n_held < ARRAY_LEN(p->held));
	p->held[p->n_held++] = call;
	sem_post(&p->event);
}

static void tell_agent(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	rpc_reply(call, RPC_OK, NULL, text(rpc_call_user_agent(call)));
}

static void stream_came(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	struct peer *p = ctx;

	assert_true(p->n_opened < ARRAY_LEN(p->streams));
	rpc_stream_set_data(stream, (void *)(uintptr_t)p->n_opened);
	p->streams[p->n_opened++] = stream;
	rpc_stream_send(stream, request);
	sem_post(&p->event);
}

static void stream_went(void *ctx, struct rpc_stream *stream)
{
	struct peer *p = ctx;
	uintptr_t i = (uintptr_t)rpc_stream_data(stream);

	assert_ptr_equal(p->streams[i], stream);
	p->streams[i] = NULL;
	p->n_closed++;
	sem_post(&p->event);
}

const struct rpc_method peer_methods[] = {
	{ .path = "/t.T/Echo", .unary = echo },
	{ .path = "/t.T/Refuse", .unary = refuse },
	{ .path = "/t.T/Hold", .unary = hold },
	{ .path = "/t.T/Agent", .unary = tell_agent },
	{ .path = "/t.T/Watch", .opened = stream_came, .closed = stream_went },
};

void wait_for(sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	while (sem_timedwait(sem, &until) < 0)
		if (errno != EINTR)
			fail_msg("nothing happened for 30 s");
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* --- things to do on the rpc thread --- */

static void open_server(void *arg)
{
	struct opening *o = arg;

	o->r = rpc_server_open(o->p->rpc, o->p->path, peer_methods, ARRAY_LEN(peer_methods), o->p,
			       &o->p->server, &o->err);
}

struct opening try_serve(struct peer *p)
{
	struct opening o = { .p = p };

	assert_true(rpc_run(p->rpc, open_server, &o));
	return o;
}

void serve(struct peer *p)
{
	struct opening o = try_serve(p);

	if (o.r < 0)
		fail_msg("%s", o.err.msg);
}

static void post_sem(void *arg)
{
	sem_post(arg);
}

struct closing {
	struct rpc_server *server;
	sem_t done;
};

static void close_server(void *arg)
{
	struct closing *c = arg;

	rpc_server_close(c->server, post_sem, &c->done);
}

void unserve(struct peer *p)
{
	struct closing c = { .server = STEAL(p->server) };

	sem_init(&c.done, 0, 0);
	assert_true(rpc_run(p->rpc, close_server, &c));
	wait_for(&c.done);
	sem_destroy(&c.done);
}

void open_channel(void *arg)
{
	struct peer *p = arg;

	p->channel = rpc_channel_open(p->rpc, p->path, 4 << 20);
}

void close_channel(void *arg)
{
	struct peer *p = arg;

	rpc_channel_close(STEAL(p->channel));
}

/* --- calls that wait --- */

static void answered(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct answer *a = arg;

	a->status = status;
	snprintf(a->message, sizeof(a->message), "%s", message);
	free(a->body);
	a->body = xcalloc(body.len + 1, 1);
	if (body.len)
		memcpy(a->body, body.data, body.len);
	a->len = body.len;
	a->times++;
	sem_post(&a->done);
}

void begin_call(void *arg)
{
	struct answer *a = arg;

	rpc_call_unary(a->p->channel, a->path, a->request, a->timeout_ms, answered, a);
}

void call_begin(struct answer *a, struct peer *p, const char *path, struct bytes request)
{
	*a = (struct answer) { .p = p, .path = path, .request = request, .timeout_ms = 30000 };
	sem_init(&a->done, 0, 0);
	assert_true(rpc_run(p->rpc, begin_call, a));
}

enum rpc_status call_end(struct answer *a)
{
	wait_for(&a->done);
	sem_destroy(&a->done);
	assert_int_equal(a->times, 1);
	return a->status;
}

enum rpc_status call(struct answer *a, struct peer *p, const char *path, struct bytes request)
{
	call_begin(a, p, path, request);
	return call_end(a);
}

void assert_echo(struct peer *p, const char *word)
{
	struct answer a;

	if (call(&a, p, "/t.T/Echo", text(word)) != RPC_OK)
		fail_msg("status %d: %s", a.status, a.message);
	assert_string_equal(a.body, word);
	free(a.body);
}

struct sockaddr_un unix_address(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path));
	return address;
}

int raw_connect(const char *path)
{
	struct sockaddr_un address = unix_address(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -errno;
}

size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

void assert_fds_fall_to(size_t limit)
{
	int calm = 0;

	for (int i = 0; i < 3000 && calm < 5; i++) {
		calm = count_fds() <= limit ? calm + 1 : 0;
		usleep(10000);
	}
	assert_int_equal(calm, 5);
}

/* --- a folder and a thread per test --- */

int peer_setup(void **state)
{
	struct peer *p = xcalloc(1, sizeof(*p));
	struct err err;

	snprintf(p->dir, sizeof(p->dir), "/tmp/railmate-rpc-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/plugin.sock", p->dir);
	sem_init(&p->event, 0, 0);
	if (rpc_start(&p->rpc, &err) < 0)
		fail_msg("%s", err.msg);
	*state = p;
	return 0;
}

int peer_setup_serving(void **state)
{
	struct peer *p;

	peer_setup(state);
	p = *state;
	serve(p);
	assert_true(rpc_run(p->rpc, open_channel, p));
	return 0;
}

int peer_teardown(void **state)
{
	struct peer *p = *state;

	rpc_stop(p->rpc);
	unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0);
	sem_destroy(&p->event);
	free(p);
	return 0;
}
