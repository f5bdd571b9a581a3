/* One-shot timers of the rpc thread: a binary heap whose head is the deadline of the completion
 * queue. */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <grpc/support/time.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

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

gpr_timespec timers_deadline(const struct timers *t)
{
	uint64_t due = t->n ? t->heap[0]->due_ns : 0;

	if (!t->n)
		return gpr_inf_future(GPR_CLOCK_MONOTONIC);
	return (gpr_timespec) { .tv_sec = (int64_t)(due / 1000000000u),
				.tv_nsec = (int32_t)(due % 1000000000u),
				.clock_type = GPR_CLOCK_MONOTONIC };
}

/* Only timers set before this began: a timer of 0 ms that sets itself again must not keep the
 * thread here. */
void timers_run(struct timers *t)
{
	uint64_t now = t->n ? (uint64_t)clock_mono_ns() : 0, limit = t->sequence;

	while (t->n && t->heap[0]->due_ns <= now && t->heap[0]->sequence < limit) {
		struct rpc_timer timer = *t->heap[0];

		rpc_timer_cancel(t->heap[0]);
		timer.fn(timer.arg);
	}
}

void timers_done(struct timers *t)
{
	while (t->n)
		free(t->heap[--t->n]);
	free(t->heap);
}
