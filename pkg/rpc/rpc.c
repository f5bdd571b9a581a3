/* The rpc thread: start, mailbox, loop, stop. */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <grpc/support/time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "rpc/limits-internal.h"

static _Thread_local const struct rpc *current;

bool rpc_on_thread(const struct rpc *rpc)
{
	return current == rpc;
}

enum rpc_status rpc_status_of(int code)
{
	static const struct {
		int code;
		enum rpc_status status;
	} table[] = {
		{ 0, RPC_OK },
		{ EBADMSG, RPC_INVALID_ARGUMENT },
		{ EILSEQ, RPC_INVALID_ARGUMENT },
		{ EINVAL, RPC_INVALID_ARGUMENT },
		{ ENOENT, RPC_NOT_FOUND },
		{ ENODEV, RPC_NOT_FOUND },
		{ EBUSY, RPC_FAILED_PRECONDITION },
		{ EIO, RPC_FAILED_PRECONDITION },
		{ EAGAIN, RPC_UNAVAILABLE },
		{ ENOSYS, RPC_UNIMPLEMENTED },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].code == code)
			return table[i].status;
	return RPC_INTERNAL;
}

/* --- mailbox --- */

static void wake(struct rpc *rpc)
{
	grpc_call_error r = grpc_call_start_batch(rpc->wake_call, NULL, 0, &rpc->kick, NULL);

	assert(r == GRPC_CALL_OK);
	(void)r;
}

void rpc_set_user_agent(struct rpc *rpc, const char *name)
{
	rpc->user_agent = name;
}

bool rpc_post(struct rpc *rpc, void (*fn)(void *arg), void *arg)
{
	struct mailbox *m = &rpc->mail;
	bool taken, kick;

	pthread_mutex_lock(&m->lock);
	taken = !m->closed;
	kick = taken && !m->kicked;
	if (taken) {
		m->items = xgrow(m->items, &m->cap, m->n + 1, sizeof(*m->items));
		m->items[m->n++] = (struct mail) { .fn = fn, .arg = arg };
		m->kicked = true;
	}
	pthread_mutex_unlock(&m->lock);
	/* At most one kick is in the queue, and the queue stays open until it was taken out. */
	if (kick)
		wake(rpc);
	return taken;
}

struct wait {
	void (*fn)(void *arg);
	void *arg;
	sem_t ran;
};

static void run_waited(void *arg)
{
	struct wait *w = arg;

	w->fn(w->arg);
	sem_post(&w->ran);
}

bool rpc_run(struct rpc *rpc, void (*fn)(void *arg), void *arg)
{
	struct wait w = { .fn = fn, .arg = arg };
	bool posted;

	assert(!rpc_on_thread(rpc));
	sem_init(&w.ran, 0, 0);
	posted = rpc_post(rpc, run_waited, &w);
	while (posted && sem_wait(&w.ran) < 0)
		assert(errno == EINTR);
	sem_destroy(&w.ran);
	return posted;
}

/* Takes the letters out before it runs them: they may post more. Returns whether the box is closed.
 */
static bool mailbox_drain(struct mailbox *m)
{
	struct mail *items;
	bool closed;
	size_t n;

	pthread_mutex_lock(&m->lock);
	items = STEAL(m->items);
	n = m->n;
	m->n = m->cap = 0;
	m->kicked = false;
	closed = m->closed;
	pthread_mutex_unlock(&m->lock);
	for (size_t i = 0; i < n; i++)
		items[i].fn(items[i].arg);
	free(items);
	return closed;
}

/* --- the thread --- */

static void kicked(void *owner, bool ok)
{
	struct rpc *rpc = owner;
	struct rpc_server *s;
	struct rpc_channel *ch;

	(void)ok;
	if (!mailbox_drain(&rpc->mail))
		return;
	rpc->stopping = true;
	LIST_FOREACH (s, &rpc->servers, link)
		if (!s->closing)
			server_shut(s);
	for (ch = LIST_FIRST(&rpc->channels); ch; ch = channel_next(ch))
		channel_cancel_calls(ch);
}

/* Servers that were gone before their owner closed them: done() comes here. It may close more of
 * them. */
static void release_gone(struct rpc *rpc)
{
	struct rpc_server *s = LIST_FIRST(&rpc->servers);

	while (s)
		if (s->released && !server_alive(s)) {
			server_release(s);
			s = LIST_FIRST(&rpc->servers);
		} else {
			s = LIST_NEXT(s, link);
		}
}

/* Is anything of ours still to come out of the queue? */
static bool busy(const struct rpc *rpc)
{
	struct rpc_server *s;
	struct rpc_channel *ch;

	LIST_FOREACH (s, &rpc->servers, link)
		if (server_alive(s))
			return true;
	for (ch = LIST_FIRST(&rpc->channels); ch; ch = channel_next(ch))
		if (channel_busy(ch))
			return true;
	return false;
}

/* Handles that their owners never gave back, once no callback can run any more. */
static void free_left_overs(struct rpc *rpc)
{
	struct rpc_channel *ch;
	struct rpc_server *s;

	orphans_free(rpc);
	while ((s = LIST_FIRST(&rpc->servers)))
		server_release(s);
	while ((ch = LIST_FIRST(&rpc->channels)))
		channel_free(ch);
	timers_done(&rpc->timers);
}

static void close_queue(struct rpc *rpc)
{
	grpc_event event;

	grpc_call_unref(rpc->wake_call);
	grpc_channel_destroy(rpc->lame);
	grpc_completion_queue_shutdown(rpc->queue);
	do {
		event = grpc_completion_queue_next(rpc->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC),
						   NULL);
		assert(event.type == GRPC_QUEUE_SHUTDOWN);
	} while (event.type != GRPC_QUEUE_SHUTDOWN);
	grpc_completion_queue_destroy(rpc->queue);
}

static void *rpc_thread(void *arg)
{
	struct rpc *rpc = arg;

	pthread_setname_np(pthread_self(), "rpc");
	current = rpc;
	while (!rpc->stopping || busy(rpc)) {
		const grpc_event event =
			grpc_completion_queue_next(rpc->queue, timers_deadline(&rpc->timers), NULL);
		const struct tag *tag = event.tag;

		assert(event.type != GRPC_QUEUE_SHUTDOWN);
		if (event.type == GRPC_OP_COMPLETE)
			tag->fn(tag->owner, event.success);
		timers_run(&rpc->timers);
		if (rpc->stopping)
			release_gone(rpc);
	}
	free_left_overs(rpc);
	close_queue(rpc);
	return NULL;
}

/* --- connections --- */

grpc_arg argument(const char *key, int value)
{
	return (grpc_arg) { .type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value };
}

/*
 * A compressed message is not inflated: its call ends. The buffer that
 * reads go into keeps its size: a flood of frames is then worked off in small pieces, between which
 * calls of others come. Without the probe the window of a connection does not grow. A peer that has
 * died is seen by the end of its connection: nothing has to be sent for it.
 */
size_t arguments(grpc_arg *ret, int max_receive, grpc_resource_quota *quota)
{
	const grpc_arg all[] = {
		argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, max_receive),
		argument(GRPC_ARG_MAX_METADATA_SIZE, HEADERS_MAX),
		argument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
			 1 << GRPC_COMPRESS_NONE),
		argument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0),
		argument(GRPC_ARG_ENABLE_CHANNELZ, 0),
		argument(GRPC_ARG_HTTP2_BDP_PROBE, 0),
		argument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX),
		argument(GRPC_ARG_TCP_READ_CHUNK_SIZE, 4096),
		argument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 8192),
		{ .type = GRPC_ARG_POINTER,
		  .key = (char *)GRPC_ARG_RESOURCE_QUOTA,
		  .value.pointer = { quota, grpc_resource_quota_arg_vtable() } },
	};

	_Static_assert(ARRAY_LEN(all) == ARGUMENTS_MAX, "their number");
	memcpy(ret, all, sizeof(all));
	return ARRAY_LEN(all);
}

/* --- start and stop --- */

/*
 * A GRPC_POLL_STRATEGY that gRPC does not know aborts the process, and GRPC_TRACE floods standard
 * error: they are not set for us on purpose. NONE, because gRPC's own lines about broken peers have
 * another format than ours and nothing that a status does not have.
 */
static void clean_environment(void)
{
	char name[128];

	for (char **e = environ; *e;) {
		size_t len = strcspn(*e, "=");

		if (!str_starts(*e, "GRPC_") || len >= sizeof(name)) {
			e++;
			continue;
		}
		memcpy(name, *e, len);
		name[len] = '\0';
		unsetenv(name);
		e = environ;
	}
	setenv("GRPC_VERBOSITY", "NONE", 1);
}

/*
 * Once per process, and never undone: grpc_shutdown() waits up to 10 s for a poller of its own (a
 * thread that gRPC starts when a peer does not read), and the memory that it would free is bounded.
 */
static void start_grpc(void)
{
	clean_environment();
	grpc_init();
}

static int start_threads(struct rpc *rpc, struct err *err)
{
	int r = guards_new(&rpc->guards, err);

	if (r < 0)
		return r;
	r = acceptor_start(rpc, &rpc->acceptor, err);
	if (r < 0)
		return r;
	r = pthread_create(&rpc->thread, NULL, rpc_thread, rpc);
	if (r) {
		acceptor_stop(rpc->acceptor);
		return err_set(err, r, "start the thread rpc: error %d", r);
	}
	return 0;
}

static void destroy(struct rpc *rpc)
{
	guards_free(rpc->guards);
	pthread_mutex_destroy(&rpc->mail.lock);
	free(rpc->mail.items);
	free(rpc);
}

int rpc_start(struct rpc **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rpc *rpc = xcalloc(1, sizeof(*rpc));
	grpc_slice method;
	sigset_t all, before;
	int r;

	pthread_mutex_init(&rpc->mail.lock, NULL);
	/* gRPC's threads and ours inherit the mask: signals stay with the caller's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_once(&once, start_grpc);
	method = grpc_slice_from_static_string("/wake");
	rpc->kick = (struct tag) { kicked, rpc };
	rpc->queue = grpc_completion_queue_create_for_next(NULL);
	rpc->lame = grpc_lame_client_channel_create("unix:wake", GRPC_STATUS_INTERNAL,
						    "the wake-up channel");
	rpc->wake_call = grpc_channel_create_call(rpc->lame, NULL, 0, rpc->queue, method, NULL,
						  gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	r = start_threads(rpc, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		close_queue(rpc);
		destroy(rpc);
		return r;
	}
	*ret = rpc;
	return 0;
}

void rpc_stop(struct rpc *rpc)
{
	struct mailbox *m;
	bool kick;

	if (!rpc)
		return;
	assert(!rpc_on_thread(rpc));
	m = &rpc->mail;
	pthread_mutex_lock(&m->lock);
	assert(!m->closed);
	m->closed = true;
	kick = !m->kicked;
	m->kicked = true;
	pthread_mutex_unlock(&m->lock);
	if (kick)
		wake(rpc);
	pthread_join(rpc->thread, NULL);
	acceptor_stop(rpc->acceptor);
	destroy(rpc);
}
