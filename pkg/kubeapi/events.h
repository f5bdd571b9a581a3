/*
 * Reports to the API server about this node and its pods: Events, and the condition
 * RDMALinksHealthy of the node, one after the other. Nothing waits for them; what is sent of Events
 * is decided by kubeapi/events-internal.h, and where the right or the server is missing, one line
 * of log says so.
 */
#ifndef RAILMATE_KUBEAPI_EVENTS_H
#define RAILMATE_KUBEAPI_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct events;
struct ledger;
struct node;
struct specs_options;
struct stats_placement;
struct uv_loop_s;

/* An Event about the node or a pod of it, for `kubectl describe` and `kubectl get events`. */
struct event {
	const char *node; /* this one; the subject of the Event, unless a pod is named */
	/* uid "" or NULL: not known; `kubectl describe pod` then does not show the Event */
	const char *ns, *pod, *uid;
	/* The part of that object whose state changes: "link 0000:18:00.0"; NULL: the note stays
	 * true */
	const char *about;
	bool normal;		     /* no warning */
	const char *action, *reason; /* "Discover", "PoolEmpty" */
	const char *note;	     /* for people; cut to the length that the API server takes */
	int64_t wall_ms;	     /* now */
};

/* Of the condition RDMALinksHealthy (events-internal.h). */
enum condition_status { CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

enum events_about { EVENTS_OFF, EVENTS_NODE, EVENTS_PODS }; /* PODS: the node's as well */

/* who: borrowed. condition: is it kept? NULL: there is nothing to send. [main thread] */
struct events *events_start(struct uv_loop_s *loop, const struct specs_options *who,
			    enum events_about about, bool condition);
/* Copied; node and wall_ms are filled in here. Unwanted ones are dropped. NULL is fine. [any
 * thread] */
void events_send(struct events *e, const struct event *event);
/* The state that was reported of event->about, of its object, is over: the same may be sent again.
 * NULL is fine. [any thread] */
void events_forget(struct events *e, const struct event *event);
/* The node condition as it is now, and again every five minutes; message is copied. NULL is fine.
 * [any thread] */
void events_condition(struct events *e, enum condition_status status, const char *message);
void events_stop(struct events *e); /* before the loop is closed; NULL is fine */
void events_free(struct events *e); /* when the loop is closed, and no thread sends; NULL is fine */

/* --- the Events --- */

/* Links of PFs that went down, came back, or are degraded since the node before; with the pods that
 * hold VFs of them. before may be NULL. */
void events_of_links(struct events *e, const struct ledger *ledger, const struct node *before,
		     const struct node *now);
/* All links of the PFs of pools, as the node condition. */
void events_condition_of_links(struct events *e, const struct node *node);
/* VFs of pools that lost their driver since the node before, which may be NULL. */
void events_of_drivers(struct events *e, const struct node *before, const struct node *now);
/* Pools without a device, on a node that pools are meant for (pool/node.h). */
void events_of_empty_pools(struct events *e, const struct node *node);
/* The kubelet offers other devices of the resource than its list has; problem NULL: not any more.
 */
void events_of_offer(struct events *e, const char *resource, const char *problem);
/* A container starts with its VFs. */
void events_of_placement(struct events *e, const struct stats_placement *p);

#endif
