/* An Event about the node or a pod of it, for `kubectl describe` and `kubectl get events`. */
#ifndef RAILMATE_KUBEAPI_EVENT_H
#define RAILMATE_KUBEAPI_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct strbuf;

/* Where it is sent, behind the API server's address. That of a node may be there or in default;
 * kube-system is where railmate is, so that its right is to this namespace alone. */
#define EVENT_PATH "/apis/events.k8s.io/v1/namespaces/kube-system/events"

struct event {
	const char *node; /* this one; what the Event is about, unless a pod is named */
	/* uid "" or NULL: not known; `kubectl describe pod` then does not show the Event */
	const char *ns, *pod, *uid;
	/* What of that object it is about, where that changes: "link 0000:18:00.0"; NULL: what is
	 * said stays so */
	const char *about;
	bool normal;		     /* no warning */
	const char *action, *reason; /* "Discover", "PoolEmpty" */
	const char *note; /* for people; what the API server does not take of it is cut off */
	int64_t wall_ms;  /* now */
};

/* Where it is sent, as EVENT_PATH: a pod's into its namespace. Heap; NULL: that is not a name of
 * one.
 */
char *kubeapi_event_path(const struct event *e);

/*
 * As JSON. Its name follows from what it says: the API server keeps an Event for an hour, and
 * answers HTTP 409 when the same one is sent again within it. That about a thing which
 * changes is of its time, too: a link that goes down again is another Event.
 */
void kubeapi_event_write(const struct event *e, struct strbuf *out);

#endif
