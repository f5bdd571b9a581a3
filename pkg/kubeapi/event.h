/* An Event about the node or a pod of it, for `kubectl describe` and `kubectl get events`. */
#ifndef RAILMATE_KUBEAPI_EVENT_H
#define RAILMATE_KUBEAPI_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct strbuf;

/* The path for Events of the node, behind the API server's address. They may be in kube-system or
 * in default: in the former, where railmate is, so that its right is to this namespace alone. */
#define EVENT_PATH "/apis/events.k8s.io/v1/namespaces/kube-system/events"

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

/* The path for this Event, as EVENT_PATH; a pod's is in its namespace. Heap; NULL: the namespace
 * cannot have that name. */
char *kubeapi_event_path(const struct event *e);

/*
 * Writes the Event as JSON. Its name follows from its content: the API server keeps an Event for an
 * hour, and answers HTTP 409 when the same one is sent again within it. An Event about a state that
 * changes has its time in the name, too: a link that goes down again is another Event.
 */
void kubeapi_event_write(const struct event *e, struct strbuf *out);

#endif
