#include "kubeclient/offer.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/pending.h"
#include "kubeclient/podres.h"
#include "rpc/rpc.h"

#define EVERY_MS  5000
#define ANSWER_MS 2000

struct subscriber {
	STAILQ_ENTRY(subscriber) link;
	offer_hear_fn hear;
	void *ctx;
};

struct offer {
	struct rpc *rpc;
	struct podres *podres;
	struct rpc_timer *timer; /* NULL: a question is under way, or there is no subscriber */
	struct pending *asked;
	int64_t asked_ms, due_ms; /* the question before; the next one */
	STAILQ_HEAD(, subscriber) subscribers;
};

struct offer *kubeclient_offer_open(struct rpc *rpc, struct podres *podres)
{
	struct offer *o = xcalloc(1, sizeof(*o));

	*o = (struct offer) { .rpc = rpc, .podres = podres };
	STAILQ_INIT(&o->subscribers);
	return o;
}

void kubeclient_offer_close(struct offer *o)
{
	if (!o)
		return;
	pending_cancel(&o->asked);
	rpc_timer_cancel(o->timer);
	free(o);
}

static void ask(void *arg);

static void arm(struct offer *o)
{
	int64_t left = o->due_ms - clock_mono_ms();

	rpc_timer_cancel(STEAL(o->timer));
	if (!o->asked && !STAILQ_EMPTY(&o->subscribers))
		o->timer = rpc_after(o->rpc, left > 0 ? (unsigned)left : 0, ask, o);
}

static void answered(void *arg, enum podres_result result, const struct pod_list *pods,
		     const char *why)
{
	struct offer *o = pending_end(arg);
	struct subscriber *s, *next;

	if (!o)
		return;
	for (s = STAILQ_FIRST(&o->subscribers); s; s = next) {
		next = STAILQ_NEXT(s, link);
		s->hear(s->ctx, result == PODRES_OK ? pods->v[0].containers : NULL, o->asked_ms);
	}
	arm(o);
}

static void ask(void *arg)
{
	struct offer *o = arg;

	o->timer = NULL;
	o->asked_ms = clock_mono_ms();
	o->due_ms = o->asked_ms + EVERY_MS;
	kubeclient_podres_ask(o->podres,
			      &(struct podres_question) { .kind = PODRES_ASK_ALLOCATABLE,
							  .timeout_ms = ANSWER_MS },
			      answered, pending_new(o, &o->asked));
}

void kubeclient_offer_look(struct offer *o, unsigned ms)
{
	int64_t due_ms = clock_mono_ms() + ms;

	if (due_ms >= o->due_ms)
		return;
	o->due_ms = due_ms;
	arm(o);
}

void kubeclient_offer_subscribe(struct offer *o, offer_hear_fn hear, void *ctx)
{
	struct subscriber *s = STAILQ_FIRST(&o->subscribers);

	if (hear) {
		if (!s)
			o->due_ms = clock_mono_ms() + EVERY_MS;
		s = xcalloc(1, sizeof(*s));
		*s = (struct subscriber) { .hear = hear, .ctx = ctx };
		STAILQ_INSERT_TAIL(&o->subscribers, s, link);
	} else {
		while (s && s->ctx != ctx)
			s = STAILQ_NEXT(s, link);
		if (s)
			STAILQ_REMOVE(&o->subscribers, s, subscriber, link);
		free(s);
	}
	arm(o);
}
