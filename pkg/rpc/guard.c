#include "rpc/guard-internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#define FRAME_HEAD 9
#define FRAME_MAX  16384 /* RFC 9113 §4.2, unless we announced more */
#define BUFFER	   4096
#define PREFACE	   24
#define ROUNDS	   64 /* of a guard, before another has its turn */

enum {
	FRAME_DATA,
	FRAME_HEADERS,
	FRAME_PRIORITY,
	FRAME_RST,
	FRAME_SETTINGS,
	FRAME_PUSH,
	FRAME_PING,
	FRAME_GOAWAY,
	FRAME_WINDOW,
	FRAME_CONTINUATION
};
#define END_STREAM  1
#define END_HEADERS 4

struct frame {
	uint32_t len, stream;
	uint8_t type, flags;
};

/* One direction. */
struct lane {
	struct guard *of;
	int from, to;
	uint8_t buf[BUFFER];
	size_t begin, allowed,
		end; /* begin ≤ allowed ≤ end: bytes that may go on, bytes received */
	size_t body; /* of the frame that is under way, still to come */
	bool dry;    /* nothing comes any more */
};

struct guard {
	LIST_ENTRY(guard) link;
	uint64_t id;
	enum guard_of of;
	struct lane in, out; /* from the peer, to the peer */
	enum guard_state state;
	atomic_bool trusted;
	uint32_t open[CALLS_MAX]; /* of a client */
	size_t n_open;
	uint32_t last;	/* stream that was opened */
	uint32_t block; /* stream whose headers go on in the next frame; 0: none */
	size_t block_bytes;
	int64_t credit, credited_ms;
};

struct guard *guard_new(int peer, enum guard_of of, int *ret_inner)
{
	struct guard *g;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		close(peer);
		return NULL;
	}
	g = xcalloc(1, sizeof(*g));
	g->of = of;
	g->in = (struct lane) { .of = g, .from = peer, .to = pair[0] };
	g->out = (struct lane) { .of = g, .from = pair[0], .to = peer };
	*(of == GUARD_OF_CLIENT ? &g->in.body : &g->out.body) = PREFACE;
	g->credit = CREDIT_MAX;
	*ret_inner = pair[1];
	return g;
}

void guard_trust(struct guard *g)
{
	atomic_store(&g->trusted, true);
}

/* Also for copies of the descriptor. */
void guard_free(struct guard *g)
{
	shutdown(g->in.from, SHUT_RDWR);
	close(g->in.from);
	close(g->in.to);
	free(g);
}

/* --- frames --- */

enum step { MOVED, STUCK, PAUSED, BROKEN };

static void stream_ended(struct guard *g, uint32_t stream)
{
	for (size_t i = 0; i < g->n_open; i++)
		if (g->open[i] == stream) {
			g->open[i] = g->open[--g->n_open];
			return;
		}
}

static int64_t cost_of(const struct guard *g, const struct frame *f, bool opens)
{
	bool asked = g->of == GUARD_OF_SERVER;
	int64_t cost = opens ? 1 + COST_STREAM : 1;

	switch (f->type) {
	case FRAME_DATA:
		return cost + f->len / (asked ? COST_BYTES_ASKED : COST_BYTES);
	case FRAME_HEADERS:
	case FRAME_CONTINUATION:
		return cost + f->len / (asked ? COST_BYTES_HEADERS_ASKED : COST_BYTES_HEADERS);
	case FRAME_SETTINGS:
	case FRAME_PING:
	case FRAME_GOAWAY:
		cost = COST_ANSWERED;
		break;
	}
	return cost + f->len / COST_BYTES;
}

/* A block of headers comes whole, and the limit of its size holds from the beginning. */
static bool is_block_in_order(struct guard *g, const struct frame *f)
{
	const size_t most = g->of == GUARD_OF_CLIENT ? HEADERS_MAX_CALL : HEADERS_MAX;
	bool continues = f->type == FRAME_CONTINUATION;

	if (continues ? !g->block || f->stream != g->block : g->block != 0)
		return false;
	if (!continues && f->type != FRAME_HEADERS)
		return true;
	g->block_bytes = (continues ? g->block_bytes : 0) + FRAME_HEAD + f->len;
	g->block = f->flags & END_HEADERS ? 0 : f->stream;
	return g->block_bytes <= FRAME_HEAD + most;
}

/* No frame is of a stream that its side has not opened yet (RFC 9113 §5.1), and none is pushed. */
static bool is_stream_known(const struct guard *g, const struct frame *f, bool opens)
{
	if (f->type == FRAME_PUSH)
		return false;
	return opens ? f->stream % 2 : f->stream <= g->last || f->type == FRAME_PRIORITY;
}

/* A new stream waits for the end of another one, and that comes the other way. */
static enum step let_in(struct guard *g, const struct frame *f)
{
	bool trusted = atomic_load(&g->trusted);
	bool opens = g->of == GUARD_OF_CLIENT && f->type == FRAME_HEADERS && f->stream > g->last;
	int64_t cost = trusted ? 0 : cost_of(g, f, opens);

	if (opens && g->n_open >= (trusted ? CALLS_MAX : CALLS_OTHER))
		return STUCK;
	if (g->credit < cost)
		return PAUSED;
	if (!is_stream_known(g, f, opens) || !is_block_in_order(g, f))
		return BROKEN;
	g->credit -= cost;
	if (opens) {
		g->last = f->stream;
		g->open[g->n_open++] = f->stream;
	}
	if (f->type == FRAME_RST)
		stream_ended(g, f->stream);
	return MOVED;
}

static enum step let_out(struct guard *g, const struct frame *f)
{
	if (g->of == GUARD_OF_SERVER) {
		if (f->type == FRAME_HEADERS && f->stream > g->last)
			g->last = f->stream;
	} else if (f->type == FRAME_RST ||
		   ((f->type == FRAME_DATA || f->type == FRAME_HEADERS) && f->flags & END_STREAM)) {
		stream_ended(g, f->stream);
	}
	return MOVED;
}

/* --- bytes --- */

/* Decides which received bytes may go on. */
static enum step allow(struct lane *l, enum step (*may)(struct guard *, const struct frame *))
{
	enum step verdict;

	while (l->allowed < l->end) {
		size_t left = l->end - l->allowed, n = left < l->body ? left : l->body;
		const uint8_t *b;
		struct frame f;

		l->allowed += n;
		l->body -= n;
		if (n)
			continue;
		if (left < FRAME_HEAD)
			return STUCK;
		b = &l->buf[l->allowed];
		f = (struct frame) { .len = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2],
				     .type = b[3],
				     .flags = b[4],
				     .stream = (uint32_t)(b[5] & 0x7f) << 24 |
					       (uint32_t)b[6] << 16 | (uint32_t)b[7] << 8 | b[8] };
		if (f.len > FRAME_MAX)
			return BROKEN;
		verdict = may(l->of, &f);
		if (verdict != MOVED)
			return verdict;
		l->allowed += FRAME_HEAD;
		l->body = f.len;
	}
	return STUCK;
}

static enum step fill(struct lane *l)
{
	ssize_t n;

	memmove(l->buf, &l->buf[l->begin], l->end - l->begin);
	l->end -= l->begin;
	l->allowed -= l->begin;
	l->begin = 0;
	if (l->dry || l->end == BUFFER)
		return STUCK;
	n = recv(l->from, &l->buf[l->end], BUFFER - l->end, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return STUCK;
	if (n <= 0) {
		l->dry = true;
		return STUCK;
	}
	l->end += (size_t)n;
	return MOVED;
}

/* Where the reader is gone it is thrown away: the other lane still has the bytes written before. */
static enum step empty(struct lane *l)
{
	ssize_t n;

	if (l->begin == l->allowed)
		return STUCK;
	n = send(l->to, &l->buf[l->begin], l->allowed - l->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return STUCK;
	l->begin = n < 0 ? l->allowed : l->begin + (size_t)n;
	return MOVED;
}

static enum step pump(struct lane *l, enum step (*may)(struct guard *, const struct frame *))
{
	for (int i = 0; i < ROUNDS; i++) {
		enum step filled = fill(l), allowed = allow(l, may), emptied = empty(l);

		if (allowed == BROKEN)
			return BROKEN;
		if (filled != MOVED && emptied != MOVED)
			return allowed;
	}
	return MOVED;
}

/* Nothing comes in while the peer does not read: gRPC would keep all that it has to answer. */
enum guard_state guard_pump(struct guard *g, int64_t now_ms)
{
	enum step in = STUCK, out;

	g->credit += (now_ms - g->credited_ms) * CREDIT_A_MS;
	if (g->credit > CREDIT_MAX)
		g->credit = CREDIT_MAX;
	g->credited_ms = now_ms;
	out = pump(&g->out, let_out); /* first: it ends streams */
	if (g->out.begin == g->out.allowed)
		in = pump(&g->in, let_in);
	if (in == BROKEN || out == BROKEN || g->out.dry)
		return GUARD_ENDED;
	/* A part of a frame's head is all that there is of it. */
	if (g->in.dry && g->in.begin == g->in.allowed && g->in.end - g->in.begin < FRAME_HEAD)
		shutdown(g->in.to, SHUT_WR);
	if (in == MOVED || out == MOVED)
		return GUARD_HAS_MORE;
	return in == PAUSED ? GUARD_PAUSES : GUARD_WAITS;
}

/* --- all of them --- */

struct guards {
	int epoll;
	pthread_mutex_t lock; /* of the list: none is freed by others than the thread */
	LIST_HEAD(, guard) guards;
	uint64_t last;
};

int guards_new(struct guards **ret, struct err *err)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct guards *s;

	if (epoll < 0)
		return err_sys(err, "open an event descriptor");
	s = xcalloc(1, sizeof(*s));
	s->epoll = epoll;
	pthread_mutex_init(&s->lock, NULL);
	LIST_INIT(&s->guards);
	*ret = s;
	return 0;
}

/* A copy of a descriptor would have events still. */
static void end(struct guards *s, struct guard *g)
{
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, g->in.from, NULL);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, g->out.from, NULL);
	pthread_mutex_lock(&s->lock);
	LIST_REMOVE(g, link);
	pthread_mutex_unlock(&s->lock);
	guard_free(g);
}

void guards_free(struct guards *s)
{
	struct guard *g;

	if (!s)
		return;
	while ((g = LIST_FIRST(&s->guards)))
		end(s, g);
	close(s->epoll);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int guards_fd(const struct guards *s)
{
	return s->epoll;
}

/* Edges; the first one comes at once, for there is room to write. */
static bool watch(const struct guards *s, struct lane *l, int op)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				 .data.ptr = l };

	return epoll_ctl(s->epoll, op, l->from, &e) == 0;
}

int guards_add(struct guards *s, int peer, enum guard_of of, uint64_t *ret_id)
{
	int inner;
	struct guard *g = guard_new(peer, of, &inner);
	bool watched;

	if (!g)
		return -1;
	/* The thread neither finds it nor has an event of it before it is complete. */
	pthread_mutex_lock(&s->lock);
	*ret_id = g->id = ++s->last;
	watched = watch(s, &g->in, EPOLL_CTL_ADD) && watch(s, &g->out, EPOLL_CTL_ADD);
	if (!watched)
		g->state = GUARD_ENDED; /* there may be an event already: the thread frees it */
	LIST_INSERT_HEAD(&s->guards, g, link);
	pthread_mutex_unlock(&s->lock);
	if (watched)
		return inner;
	close(inner);
	return -1;
}

void guards_trust(struct guards *s, uint64_t id)
{
	struct guard *g;

	pthread_mutex_lock(&s->lock);
	LIST_FOREACH (g, &s->guards, link)
		if (g->id == id) {
			guard_trust(g);
			watch(s, &g->in, EPOLL_CTL_MOD); /* it may have paused: an edge again */
		}
	pthread_mutex_unlock(&s->lock);
}

/* A client that is gone wants no answer; a server may have answered first. */
static void happened(const struct epoll_event *e)
{
	struct lane *l = e->data.ptr;
	struct guard *g = l->of;

	if (g->of == GUARD_OF_CLIENT && l == &g->in && e->events & (EPOLLHUP | EPOLLERR))
		g->state = GUARD_ENDED;
	else if (g->state == GUARD_WAITS)
		g->state = GUARD_HAS_MORE;
}

int guards_run(struct guards *s)
{
	struct epoll_event events[16];
	int n = epoll_wait(s->epoll, events, ARRAY_LEN(events), 0), wait_ms = -1;
	int64_t now_ms = clock_mono_ms();
	struct guard *g, *next;

	/* A guard that is watched is in the list once the lock was taken. */
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < n; i++)
		happened(&events[i]);
	g = LIST_FIRST(&s->guards);
	pthread_mutex_unlock(&s->lock);
	for (; g; g = next) {
		next = LIST_NEXT(g, link);
		if (g->state == GUARD_HAS_MORE || g->state == GUARD_PAUSES)
			g->state = guard_pump(g, now_ms);
		if (g->state == GUARD_ENDED)
			end(s, g);
		else if (g->state == GUARD_HAS_MORE)
			wait_ms = 0;
		else if (g->state == GUARD_PAUSES && wait_ms < 0)
			wait_ms = GUARD_PAUSE_MS;
	}
	return wait_ms;
}
