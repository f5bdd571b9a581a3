#include "kubeapi/queue-internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void end_event(struct event *e)
{
	free((char *)e->ns);
	free((char *)e->pod);
	free((char *)e->uid);
	free((char *)e->about);
	free((char *)e->action);
	free((char *)e->reason);
	free((char *)e->note);
}

static struct event copy_event(const struct event *e)
{
	return (struct event) { .ns = copy(e->ns),
				.pod = copy(e->pod),
				.uid = copy(e->uid),
				.about = copy(e->about),
				.normal = e->normal,
				.action = copy(e->action),
				.reason = copy(e->reason),
				.note = copy(e->note),
				.wall_ms = e->wall_ms };
}

static uint64_t hash_of(const struct event *e, const char *first, const char *second)
{
	_cleanup_free_ char *all =
		xasprintf("%s\n%s\n%s\n%s\n%s", e->pod ? e->ns : "", e->pod ? e->pod : "",
			  e->uid ? e->uid : "", first, second);

	return str_hash(all);
}

static uint64_t thing_of(const struct event *e)
{
	return e->about ? hash_of(e, "about", e->about) : 0;
}

struct events_item *events_item_new(const struct event *e)
{
	struct events_item *item = xcalloc(1, sizeof(*item));

	item->event = copy_event(e);
	item->thing = thing_of(e);
	return item;
}

void events_item_free(struct events_item *item)
{
	end_event(&item->event);
	free(item);
}

void events_queue_init(struct events_queue *q, int64_t now_ms)
{
	*q = (struct events_queue) { .tokens = EVENTS_BURST, .refilled_ms = now_ms };
	STAILQ_INIT(&q->items);
}

/* Of a thing the last Event about it; else that Event itself. -1: none. */
static int find_recent(const struct events_queue *q, uint64_t hash, uint64_t thing)
{
	for (int i = 0; i < EVENTS_RECENT_MAX; i++) {
		if (q->recent[i].at_ms && q->recent[i].thing == thing &&
		    (thing || q->recent[i].hash == hash))
			return i;
	}
	return -1;
}

static bool was_said(const struct events_queue *q, int at, uint64_t hash, int64_t now_ms)
{
	return at >= 0 && q->recent[at].hash == hash &&
	       now_ms - q->recent[at].at_ms < EVENTS_SAME_MS;
}

static struct events_item *find_waiting(struct events_queue *q, uint64_t thing)
{
	struct events_item *item;

	STAILQ_FOREACH (item, &q->items, next) {
		if (thing && item->thing == thing)
			return item;
	}
	return NULL;
}

bool events_queue_put(struct events_queue *q, const struct event *e, int64_t now_ms)
{
	uint64_t hash = hash_of(e, e->reason, e->note), thing = thing_of(e);
	struct events_item *waiting = find_waiting(q, thing);
	int at = find_recent(q, hash, thing);

	if (was_said(q, at, hash, now_ms) || (!waiting && q->n >= EVENTS_QUEUE_MAX))
		return false;
	if (at < 0) {
		at = (int)q->next_recent;
		q->next_recent = (q->next_recent + 1) % EVENTS_RECENT_MAX;
	}
	q->recent[at].hash = hash;
	q->recent[at].thing = thing;
	q->recent[at].at_ms = now_ms;
	if (waiting) {
		end_event(&waiting->event);
		waiting->event = copy_event(e);
		return true;
	}
	waiting = events_item_new(e);
	STAILQ_INSERT_TAIL(&q->items, waiting, next);
	q->n++;
	return true;
}

void events_queue_forget(struct events_queue *q, const struct event *e)
{
	int at = find_recent(q, 0, thing_of(e));

	if (at >= 0)
		q->recent[at].at_ms = 0;
}

static void refill(struct events_queue *q, int64_t now_ms)
{
	int64_t n = (now_ms - q->refilled_ms) / EVENTS_REFILL_MS;

	q->refilled_ms += n * EVENTS_REFILL_MS;
	q->tokens = n >= EVENTS_BURST - q->tokens ? EVENTS_BURST : q->tokens + (unsigned)n;
}

struct events_item *events_queue_take(struct events_queue *q, int64_t now_ms, int64_t *ret_wait_ms)
{
	struct events_item *item = STAILQ_FIRST(&q->items);

	refill(q, now_ms);
	*ret_wait_ms = item && !q->tokens ? q->refilled_ms + EVENTS_REFILL_MS - now_ms : 0;
	if (!item || !q->tokens)
		return NULL;
	STAILQ_REMOVE_HEAD(&q->items, next);
	q->n--;
	q->tokens--;
	return item;
}

void events_queue_drop(struct events_queue *q, bool pods)
{
	struct events_item *item = STAILQ_FIRST(&q->items), *next;

	for (; item; item = next) {
		next = STAILQ_NEXT(item, next);
		if ((item->event.pod != NULL) != pods)
			continue;
		STAILQ_REMOVE(&q->items, item, events_item, next);
		q->n--;
		events_item_free(item);
	}
}
