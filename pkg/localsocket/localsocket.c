#include "localsocket/localsocket.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "rpc/listen.h"
#include "rpc/rpc.h"

#define SOCKET_MODE 0600
#define CLIENTS_MAX 32
/* A client sends its request at once; one bind may have to wait for the kubelet. */
#define REQUEST_MS 5000
#define WAIT_MS	   (LOCALSOCKET_BIND_MS + 2000)
#define REPLY_MS   5000
/* How often: is our socket removed, has an older daemon left its place? */
#define CHECK_MS	1000
#define CHECK_SERVED_MS 5000

struct localsocket {
	uv_loop_t *loop;
	const char *path;
	struct rpc *rpc;
	struct localsocket_backend backend;

	struct listen_socket listening; /* fd -1: not now */
	uv_poll_t *poll;		/* NULL: not now */
	uv_timer_t check_timer;
	unsigned failures; /* in a row: an older daemon that ends has the path for some more ms */

	LIST_HEAD(, client) clients;
	size_t n_clients;
	LIST_HEAD(, job) jobs; /* all that are not answered yet; main thread */

	uv_async_t wake;
	pthread_mutex_t lock;
	STAILQ_HEAD(, job) done; /* under the lock */
};

struct client {
	struct localsocket *c;
	LIST_ENTRY(client) link;
	uv_pipe_t pipe;
	uv_timer_t deadline;
	uv_write_t write;
	int handles; /* that are not closed yet */
	struct job *job;
	char *out;
	size_t n_in;
	char in[CONTROL_REQUEST_MAX];
};

/* One request on its way: main, rpc, main. */
struct job {
	struct localsocket *c;
	struct client *client; /* main thread; NULL: it went away */
	LIST_ENTRY(job) link;
	STAILQ_ENTRY(job) next;
	struct arena *arena;
	struct control_request request;
	struct strbuf reply;
};

/* --- on the rpc thread --- */

static void answered(void *arg, const struct control_reply *reply, const struct err *err)
{
	struct job *job = arg;
	struct localsocket *c = job->c;

	if (err)
		control_write_error(err, &job->reply);
	else
		control_write_reply(reply, &job->reply);
	pthread_mutex_lock(&c->lock);
	STAILQ_INSERT_TAIL(&c->done, job, next);
	pthread_mutex_unlock(&c->lock);
	uv_async_send(&c->wake);
}

static void run_job(void *arg)
{
	struct job *job = arg;
	const struct localsocket_backend *b = &job->c->backend;

	b->answer(b->ctx, &job->request, job->arena, answered, job);
}

/* --- on the main thread --- */

static void listen_again(struct localsocket *c);

static void free_job(struct job *job)
{
	LIST_REMOVE(job, link);
	strbuf_done(&job->reply);
	arena_free(job->arena);
	free(job);
}

static void on_closed(uv_handle_t *handle)
{
	struct client *cl = handle->data;
	struct localsocket *c = cl->c;

	if (--cl->handles)
		return;
	LIST_REMOVE(cl, link);
	c->n_clients--;
	free(cl->out);
	free(cl);
	listen_again(c);
}

static void end_client(struct client *cl)
{
	if (uv_is_closing((uv_handle_t *)&cl->pipe))
		return;
	if (cl->job)
		cl->job->client = NULL;
	uv_close((uv_handle_t *)&cl->pipe, on_closed);
	uv_close((uv_handle_t *)&cl->deadline, on_closed);
}

static void on_late_reader(uv_timer_t *timer)
{
	end_client(timer->data);
}

static void on_written(uv_write_t *write, int status)
{
	end_client(write->data);
}

static void reply(struct client *cl, struct strbuf *text)
{
	uv_buf_t buf = uv_buf_init(NULL, (unsigned)text->len);

	buf.base = cl->out = strbuf_steal(text);
	uv_read_stop((uv_stream_t *)&cl->pipe);
	uv_timer_start(&cl->deadline, on_late_reader, REPLY_MS, 0);
	cl->write.data = cl;
	if (uv_write(&cl->write, (uv_stream_t *)&cl->pipe, &buf, 1, on_written) < 0)
		end_client(cl);
}

static void refuse(struct client *cl, int code, const char *why)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };

	err_set(&err, code, "%s", why);
	control_write_error(&err, &text);
	reply(cl, &text);
}

static void on_late_request(uv_timer_t *timer)
{
	refuse(timer->data, ETIMEDOUT, "no request came in time");
}

/* An answer that comes later has no client and is dropped. */
static void on_late_answer(uv_timer_t *timer)
{
	struct client *cl = timer->data;

	cl->job->client = NULL;
	cl->job = NULL;
	refuse(cl, ETIMEDOUT, "railmated did not get ready with it in time");
}

static void start_job(struct client *cl, size_t len)
{
	struct localsocket *c = cl->c;
	struct job *job = xcalloc(1, sizeof(*job));
	struct err err = { 0 };

	*job = (struct job) { .c = c, .client = cl, .arena = arena_new(CONTROL_REQUEST_MAX) };
	LIST_INSERT_HEAD(&c->jobs, job, link);
	if (control_read_request(cl->in, len, job->arena, &job->request, &err) < 0) {
		free_job(job);
		refuse(cl, err.code, err.msg);
	} else if (!rpc_post(c->rpc, run_job, job)) {
		free_job(job);
		refuse(cl, EAGAIN, "railmated is stopping");
	} else {
		cl->job = job;
		uv_read_stop((uv_stream_t *)&cl->pipe);
		uv_timer_start(&cl->deadline, on_late_answer, WAIT_MS, 0);
	}
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	struct client *cl = handle->data;

	*ret = uv_buf_init(cl->in + cl->n_in, (unsigned)(sizeof(cl->in) - cl->n_in));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct client *cl = stream->data;
	char *end;

	if (n == 0)
		return;
	if (n < 0) {
		end_client(cl);
		return;
	}
	end = memchr(cl->in + cl->n_in, '\n', (size_t)n);
	cl->n_in += (size_t)n;
	if (end)
		start_job(cl, (size_t)(end - cl->in));
	else if (cl->n_in == sizeof(cl->in))
		refuse(cl, EMSGSIZE, "the request is too long");
}

static void on_wake(uv_async_t *wake)
{
	struct localsocket *c = wake->data;
	struct job *job;

	for (;;) {
		pthread_mutex_lock(&c->lock);
		job = STAILQ_FIRST(&c->done);
		if (job)
			STAILQ_REMOVE_HEAD(&c->done, next);
		pthread_mutex_unlock(&c->lock);
		if (!job)
			return;
		if (job->client) {
			job->client->job = NULL;
			reply(job->client, &job->reply);
		}
		free_job(job);
	}
}

/* As the mode of the socket has it; checked here, too, because the mode can be changed. */
static bool may_ask(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	return peer.uid == 0 || peer.uid == geteuid();
}

static void admit(struct localsocket *c, int fd)
{
	struct client *cl = xcalloc(1, sizeof(*cl));
	bool welcome = may_ask(fd);

	cl->c = c;
	cl->handles = 2;
	LIST_INSERT_HEAD(&c->clients, cl, link);
	c->n_clients++;
	uv_pipe_init(c->loop, &cl->pipe, 0);
	uv_timer_init(c->loop, &cl->deadline);
	cl->pipe.data = cl->deadline.data = cl;
	if (uv_pipe_open(&cl->pipe, fd) < 0) {
		close(fd);
		end_client(cl);
	} else if (!welcome) {
		refuse(cl, EACCES, "only root may ask railmated");
	} else {
		uv_timer_start(&cl->deadline, on_late_request, REQUEST_MS, 0);
		uv_read_start((uv_stream_t *)&cl->pipe, give_room, on_read);
	}
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct localsocket *c = poll->data;
	int fd;

	while (c->n_clients < CLIENTS_MAX) {
		fd = accept4(c->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			admit(c, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			return;
		break; /* no descriptor is left: not now, rather than finding the same connection
			  for ever */
	}
	uv_poll_stop(
		poll); /* they wait in the backlog until a client has gone, or check_served() */
}

static void listen_again(struct localsocket *c)
{
	if (c->poll && c->n_clients < CLIENTS_MAX && !uv_is_active((uv_handle_t *)c->poll))
		uv_poll_start(c->poll, UV_READABLE, on_connection);
}

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

static void stop_listening(struct localsocket *c)
{
	if (!c->poll)
		return;
	uv_close((uv_handle_t *)c->poll, free_handle);
	c->poll = NULL;
	listen_close(&c->listening, c->path);
}

static void make_directory(const char *path)
{
	_cleanup_free_ char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');

	if (slash && slash != dir) {
		*slash = '\0';
		mkdir(dir, 0755); /* a failure shows at the socket */
	}
}

static int start_listening(struct localsocket *c, struct err *err)
{
	int r;

	make_directory(c->path);
	r = listen_open(c->path, SOCKET_MODE, &c->listening, err);
	if (r < 0)
		return r;
	c->poll = xcalloc(1, sizeof(*c->poll));
	uv_poll_init(c->loop, c->poll, c->listening.fd);
	c->poll->data = c;
	listen_again(c);
	return 0;
}

static void check_served(struct localsocket *c)
{
	struct err err = { 0 };

	if (c->poll && !listen_intact(&c->listening, c->path)) {
		log_info("control", "the control socket was removed or replaced socket=%s",
			 c->path);
		stop_listening(c);
	}
	if (!c->poll && start_listening(c, &err) < 0) {
		if (++c->failures == 2)
			log_warn(
				"control",
				"railmatectl explain and railmate-cni cannot ask this daemon for now socket=%s error=%s",
				c->path, err.msg);
	} else if (c->failures) {
		if (c->failures > 1)
			log_info(
				"control",
				"railmatectl explain and railmate-cni can ask this daemon socket=%s",
				c->path);
		c->failures = 0;
	}
	listen_again(c);
}

static void on_check(uv_timer_t *timer)
{
	struct localsocket *c = timer->data;
	bool served;

	check_served(c);
	served = c->poll && uv_is_active((uv_handle_t *)c->poll);
	uv_timer_start(
		timer, on_check,
		clock_coarse_ms((int64_t)uv_now(c->loop), served ? CHECK_SERVED_MS : CHECK_MS), 0);
}

struct localsocket *localsocket_open(uv_loop_t *loop, const char *path, struct rpc *rpc,
				     const struct localsocket_backend *backend)
{
	struct localsocket *c = xcalloc(1, sizeof(*c));

	*c = (struct localsocket) {
		.loop = loop, .path = path, .rpc = rpc, .backend = *backend, .listening.fd = -1
	};
	LIST_INIT(&c->clients);
	LIST_INIT(&c->jobs);
	STAILQ_INIT(&c->done);
	pthread_mutex_init(&c->lock, NULL);
	uv_async_init(loop, &c->wake, on_wake);
	uv_timer_init(loop, &c->check_timer);
	c->wake.data = c->check_timer.data = c;
	signal(SIGPIPE, SIG_IGN); /* libuv writes to clients that may be gone */
	on_check(&c->check_timer);
	return c;
}

void localsocket_close(struct localsocket *c)
{
	struct client *cl;

	if (!c)
		return;
	stop_listening(c);
	uv_close((uv_handle_t *)&c->check_timer, NULL);
	uv_close((uv_handle_t *)&c->wake, NULL);
	LIST_FOREACH (cl, &c->clients, link)
		end_client(cl);
}

void localsocket_free(struct localsocket *c)
{
	struct job *job, *next;

	if (!c)
		return;
	for (job = LIST_FIRST(&c->jobs); job; job = next) {
		next = LIST_NEXT(job, link);
		free_job(job);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}
