/*
 * Which Events wait to be sent, and when the next one may be: not the same one twice within ten
 * minutes, no more than 64 at a time, 25 at once and one in 10 s after that. Of a thing that
 * changes (event.about) the newest counts: it is the same only as the last one about that thing,
 * and takes the place of one that was not sent yet. The caller has the clock and the lock.
 */
#ifndef RAILMATE_KUBEAPI_EVENTS_INTERNAL_H
#define RAILMATE_KUBEAPI_EVENTS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "kubeapi/events.h"

struct strbuf;

#define EVENTS_QUEUE_MAX  64
#define EVENTS_RECENT_MAX 128
/* As the clients of Kubernetes: a burst of 25 about one object, then one in 5 minutes; here for
 * the whole node, one in 10 s. */
#define EVENTS_BURST	 25
#define EVENTS_REFILL_MS 10000
#define EVENTS_SAME_MS	 600000

struct events_item {
	STAILQ_ENTRY(events_item) next;
	struct event event; /* its strings are the item's */
	uint64_t thing;	    /* its subject, with its object; 0: none that changes */
	bool condition;	    /* of the node: its note is the message */
	enum condition_status status;
	int64_t since_ms; /* of a condition */
};

void events_item_free(struct events_item *item);

struct events_queue {
	STAILQ_HEAD(, events_item) items;
	size_t n;
	struct {
		uint64_t hash, thing;
		int64_t at_ms; /* 0: no entry */
	} recent[EVENTS_RECENT_MAX];
	size_t next_recent;
	unsigned tokens;
	int64_t refilled_ms;
};

void events_queue_init(struct events_queue *q, int64_t now_ms);
/* Copied. false: it is not wanted. */
bool events_queue_put(struct events_queue *q, const struct event *e, int64_t now_ms);
/* The report about its thing is not true any more: the same may be sent again. */
void events_queue_forget(struct events_queue *q, const struct event *e);
/* NULL: nothing may be sent now; in *ret_wait_ms when to ask again, 0: after the next put. */
struct events_item *events_queue_take(struct events_queue *q, int64_t now_ms, int64_t *ret_wait_ms);
void events_queue_drop(struct events_queue *q, bool pods); /* all about pods, or the node */

/* The path for Events of the node, behind the API server's address. They may be in kube-system or
 * in default: in the former, where railmate is, so that its right is to this namespace alone. */
#define EVENT_PATH "/apis/events.k8s.io/v1/namespaces/kube-system/events"
/* The path for this Event, as EVENT_PATH; a pod's is in its namespace. Heap; NULL: the namespace
 * cannot have that name. */
char *kubeapi_event_path(const struct event *e);

/*
 * Writes the Event as JSON. Its name follows from its content: the API server keeps an Event for an
 * hour, and answers HTTP 409 when the same one is sent again within it. An Event about a state that
 * changes has its time in the name, too: a link that goes down again is another Event.
 */
void kubeapi_event_write(const struct event *e, struct strbuf *out);

struct condition {
	const char *node;
	enum condition_status status;
	const char *message;
	int64_t since_ms, now_ms; /* wall clock; since: of the present status */
};

/* The path for the patch, behind the API server's address. Heap; NULL: no node can have that name.
 */
char *kubeapi_condition_path(const char *node);
void kubeapi_condition_write(const struct condition *c, struct strbuf *out);

#endif
