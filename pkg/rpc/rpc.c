/*
 * The rpc thread: its timers, the work that it gives to threads of its own, its mailbox, start and
 * stop. Everything else of this room runs on it.
 */
#include "rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <grpc/support/time.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "rpc/guard-internal.h"
#include "rpc/rpc-internal.h"

/* One-shot timers of the rpc thread: a binary heap whose head is the deadline of the completion
 * queue. */

struct rpc_timer {
	struct rpc *rpc;
	uint64_t due_ns, sequence;
	size_t index; /* in the heap */
	void (*fn)(void *arg);
	void *arg;
};

static bool earlier(const struct rpc_timer *a, const struct rpc_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void place(struct timers *t, size_t i, struct rpc_timer *timer)
{
	t->heap[i] = timer;
	timer->index = i;
}

static void sift_up(struct timers *t, size_t i)
{
	struct rpc_timer *timer = t->heap[i];

	for (; i && earlier(timer, t->heap[(i - 1) / 2]); i = (i - 1) / 2)
		place(t, i, t->heap[(i - 1) / 2]);
	place(t, i, timer);
}

static void sift_down(struct timers *t, size_t i)
{
	struct rpc_timer *timer = t->heap[i];
	size_t child;

	while ((child = 2 * i + 1) < t->n) {
		if (child + 1 < t->n && earlier(t->heap[child + 1], t->heap[child]))
			child++;
		if (!earlier(t->heap[child], timer))
			break;
		place(t, i, t->heap[child]);
		i = child;
	}
	place(t, i, timer);
}

struct rpc_timer *rpc_after(struct rpc *rpc, unsigned ms, void (*fn)(void *arg), void *arg)
{
	struct timers *t = &rpc->timers;
	struct rpc_timer *timer = xcalloc(1, sizeof(*timer));

	assert(rpc_on_thread(rpc));
	*timer = (struct rpc_timer) { .rpc = rpc, .fn = fn, .arg = arg, .sequence = t->sequence++ };
	timer->due_ns = (uint64_t)clock_mono_ns() + (uint64_t)ms * 1000000u;
	t->heap = xgrow(t->heap, &t->cap, t->n + 1, sizeof(*t->heap));
	t->heap[t->n] = timer;
	sift_up(t, t->n++);
	return timer;
}

void rpc_timer_cancel(struct rpc_timer *timer)
{
	struct timers *t;
	struct rpc_timer *last;

	if (!timer)
		return;
	assert(rpc_on_thread(timer->rpc));
	t = &timer->rpc->timers;
	assert(t->heap[timer->index] == timer);
	last = t->heap[--t->n];
	if (last != timer) {
		place(t, timer->index, last);
		sift_up(t, timer->index);
		sift_down(t, last->index);
	}
	free(timer);
}

/* of the earliest */
static gpr_timespec timers_deadline(const struct timers *t)
{
	uint64_t due = t->n ? t->heap[0]->due_ns : 0;

	if (!t->n)
		return gpr_inf_future(GPR_CLOCK_MONOTONIC);
	return (gpr_timespec) { .tv_sec = (int64_t)(due / 1000000000u),
				.tv_nsec = (int32_t)(due % 1000000000u),
				.clock_type = GPR_CLOCK_MONOTONIC };
}

/* runs timers that are due */
/* Only timers set before this began: a timer of 0 ms that sets itself again must not keep the
 * thread here. */
static void timers_run(struct timers *t)
{
	uint64_t now = t->n ? (uint64_t)clock_mono_ns() : 0, limit = t->sequence;

	while (t->n && t->heap[0]->due_ns <= now && t->heap[0]->sequence < limit) {
		struct rpc_timer timer = *t->heap[0];

		rpc_timer_cancel(t->heap[0]);
		timer.fn(timer.arg);
	}
}

/* frees the rest without running them */
static void timers_done(struct timers *t)
{
	while (t->n)
		free(t->heap[--t->n]);
	free(t->heap);
}

/* --- work that may block --- */

struct rpc_work {
	const struct rpc_work_kind *kind;
	void *arg;
	struct rpc_work **slot; /* NULL: cancelled */

	pthread_mutex_t lock;
	struct rpc *rpc; /* NULL: cancelled, the thread frees it */
	bool refused;	 /* ended() will not run: rpc stops */
};

static void work_free(struct rpc_work *w)
{
	w->kind->free(w->arg);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void ended(void *arg)
{
	struct rpc_work *w = arg;

	/* The thread may not have let go of it yet. */
	pthread_mutex_lock(&w->lock);
	pthread_mutex_unlock(&w->lock);
	if (w->slot) {
		*w->slot = NULL;
		w->kind->done(w->arg);
	}
	work_free(w);
}

static void *run(void *arg)
{
	struct rpc_work *w = arg;
	bool mine;

	w->kind->run(w->arg);
	pthread_mutex_lock(&w->lock);
	mine = !w->rpc;
	w->refused = !mine && !rpc_post(w->rpc, ended, w);
	pthread_mutex_unlock(&w->lock);
	if (mine)
		work_free(w);
	return NULL;
}

int rpc_work_start(struct rpc *rpc, const struct rpc_work_kind *kind, void *arg,
		   struct rpc_work **slot)
{
	struct rpc_work *w = xcalloc(1, sizeof(*w));
	pthread_t thread;
	int r;

	assert(!*slot);
	*w = (struct rpc_work) { .kind = kind, .arg = arg, .slot = slot, .rpc = rpc };
	pthread_mutex_init(&w->lock, NULL);
	*slot = w;
	r = thread_start(&thread, kind->name, kind->stack_bytes, run, w);
	if (r == 0) {
		pthread_detach(thread);
		return 0;
	}
	*slot = NULL;
	pthread_mutex_destroy(&w->lock);
	free(w);
	return r;
}

void rpc_work_cancel(struct rpc_work **slot)
{
	struct rpc_work *w = STEAL(*slot);
	bool mine;

	if (!w)
		return;
	w->slot = NULL;
	pthread_mutex_lock(&w->lock);
	w->rpc = NULL;
	mine = w->refused;
	pthread_mutex_unlock(&w->lock);
	if (mine)
		work_free(w);
}

/* The rpc thread: start, mailbox, loop, stop. */

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
