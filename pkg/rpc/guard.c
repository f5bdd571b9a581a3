#include "rpc/guard-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "rpc/limits-internal.h"

#define FRAME_HEAD 9
#define FRAME_MAX  16384 /* RFC 9113 §4.2, unless we announced more */
#define BUFFER	   4096
#define PREFACE	   24

enum { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_RST = 3 };
#define END_STREAM 1

struct frame {
	uint32_t len, stream;
	uint8_t type, flags;
};

/* One direction. */
struct lane {
	int from, to;
	uint8_t buf[BUFFER];
	size_t begin, allowed, end; /* begin ≤ allowed ≤ end: what may go on, and what came */
	size_t body;		    /* of the frame that is under way, still to come */
	bool dry;		    /* nothing comes any more */
};

struct guard {
	struct lane in, out; /* to us, to the peer */
	uint32_t open[CALLS_MAX], last;
	size_t n_open, most;
	int64_t credit, credited_ms;
	bool trusted;
};

struct guard *guard_new(int peer, int *ret_inner)
{
	struct guard *g;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		close(peer);
		return NULL;
	}
	g = xcalloc(1, sizeof(*g));
	g->in = (struct lane) { .from = peer, .to = pair[0], .body = PREFACE };
	g->out = (struct lane) { .from = pair[0], .to = peer };
	g->most = CALLS_OTHER;
	g->credit = CREDIT_MAX;
	*ret_inner = pair[1];
	return g;
}

int guard_peer(const struct guard *g)
{
	return g->in.from;
}

int guard_inner(const struct guard *g)
{
	return g->in.to;
}

void guard_trust(struct guard *g)
{
	g->trusted = true;
	g->most = CALLS_MAX;
}

void guard_free(struct guard *g)
{
	close(guard_peer(g));
	close(guard_inner(g));
	free(g);
}

/* --- streams --- */

static void stream_ended(struct guard *g, uint32_t stream)
{
	for (size_t i = 0; i < g->n_open; i++)
		if (g->open[i] == stream) {
			g->open[i] = g->open[--g->n_open];
			return;
		}
}

enum step { MOVED, STUCK, PAUSED, BROKEN };

/* Frames of the peer. A new stream waits for the end of another one, and that comes the other way.
 */
static enum step let_in(struct guard *g, const struct frame *f)
{
	bool opens = f->type == FRAME_HEADERS && f->stream > g->last;
	int64_t cost = 1 + f->len / COST_BYTES + (opens ? COST_STREAM : 0);

	if (opens && g->n_open == g->most)
		return STUCK;
	if (!g->trusted && g->credit < cost)
		return PAUSED;
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
	if (f->type == FRAME_RST ||
	    ((f->type == FRAME_DATA || f->type == FRAME_HEADERS) && f->flags & END_STREAM))
		stream_ended(g, f->stream);
	return MOVED;
}

/* --- bytes --- */

/* What may go on of what came. */
static enum step allow(struct guard *g, struct lane *l,
		       enum step (*may)(struct guard *, const struct frame *))
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
		verdict = may(g, &f);
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
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? STUCK : BROKEN;
	if (n == 0) {
		l->dry = true;
		return STUCK;
	}
	l->end += (size_t)n;
	return MOVED;
}

static enum step empty(struct lane *l)
{
	ssize_t n;

	if (l->begin == l->allowed)
		return STUCK;
	n = send(l->to, &l->buf[l->begin], l->allowed - l->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? STUCK : BROKEN;
	l->begin += (size_t)n;
	return MOVED;
}

static enum step pump(struct guard *g, struct lane *l,
		      enum step (*may)(struct guard *, const struct frame *))
{
	for (;;) {
		enum step filled = fill(l), allowed = allow(g, l, may), emptied = empty(l);

		if (filled == BROKEN || allowed == BROKEN || emptied == BROKEN)
			return BROKEN;
		if (filled != MOVED && emptied != MOVED)
			return allowed;
	}
}

bool guard_pump(struct guard *g, int64_t now_ms, bool *ret_paused)
{
	enum step in, out;

	g->credit += (now_ms - g->credited_ms) * CREDIT_A_MS;
	if (g->credit > CREDIT_MAX)
		g->credit = CREDIT_MAX;
	g->credited_ms = now_ms;
	out = pump(g, &g->out, let_out); /* first: it ends streams */
	in = pump(g, &g->in, let_in);
	if (in == BROKEN || out == BROKEN || g->out.dry)
		return false;
	if (g->in.dry && g->in.begin == g->in.end)
		shutdown(g->in.to, SHUT_WR);
	*ret_paused = in == PAUSED;
	return true;
}
