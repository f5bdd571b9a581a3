#include "kubeclient/kubeclient-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "rpc/rpc.h"

struct spec_waiter {
	LIST_ENTRY(spec_waiter) link;
	struct spec_queue *queue;
	unsigned timeout_ms;
	podspec_done_fn done;
	void *arg;
	struct rpc_timer *timer;
};

static void conclude_all(struct spec_waiters *list, const struct spec_list *specs, const char *why)
{
	struct spec_waiter *w;

	while ((w = LIST_FIRST(list))) {
		LIST_REMOVE(w, link);
		rpc_timer_cancel(w->timer);
		w->done(w->arg, specs, why);
		free(w);
	}
}

static void move_all(struct spec_waiters *from, struct spec_waiters *to)
{
	LIST_INIT(to);
	while (!LIST_EMPTY(from)) {
		struct spec_waiter *w = LIST_FIRST(from);

		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(to, w, link);
	}
}

static void begin(struct spec_queue *q)
{
	unsigned longest = 0;
	struct spec_waiter *w;

	if (q->busy || LIST_EMPTY(&q->waiting))
		return;
	move_all(&q->waiting, &q->asking);
	LIST_FOREACH (w, &q->asking, link)
		longest = w->timeout_ms > longest ? w->timeout_ms : longest;
	q->busy = true;
	q->begin(q->ctx, longest);
}

static void took_too_long(void *arg)
{
	struct spec_waiter *w = arg;
	struct spec_queue *q = w->queue;
	struct err err = { 0 };
	bool last;

	w->timer = NULL; /* gone */
	err_set(&err, ETIMEDOUT, "%s took longer than %u ms", q->what, w->timeout_ms);
	LIST_REMOVE(w, link);
	last = q->busy && LIST_EMPTY(&q->asking);
	if (last && q->cancel)
		q->cancel(q->ctx);
	w->done(w->arg, NULL, err.msg);
	free(w);
}

void kubeclient_queue_add(struct spec_queue *q, unsigned timeout_ms, podspec_done_fn done,
			  void *arg)
{
	struct spec_waiter *w = xcalloc(1, sizeof(*w));

	*w = (struct spec_waiter) {
		.queue = q, .timeout_ms = timeout_ms, .done = done, .arg = arg
	};
	w->timer = rpc_after(q->rpc, timeout_ms, took_too_long, w);
	LIST_INSERT_HEAD(&q->waiting, w, link);
	begin(q);
}

void kubeclient_queue_answer(struct spec_queue *q, const struct spec_list *specs, const char *why)
{
	struct spec_waiters asking;

	move_all(&q->asking, &asking); /* a question from within done() waits for the next answer */
	q->busy = q->ended;
	conclude_all(&asking, specs, why);
	if (q->ended)
		conclude_all(&q->waiting, specs, why);
	else
		begin(q);
}

bool kubeclient_queue_is_awaited(const struct spec_queue *q)
{
	return !LIST_EMPTY(&q->asking);
}
