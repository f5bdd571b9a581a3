/* An Event about the node, for `kubectl describe node` and `kubectl get events -n kube-system`. */
#ifndef RAILMATE_KUBEAPI_EVENT_H
#define RAILMATE_KUBEAPI_EVENT_H

#include <stdint.h>

struct strbuf;

/* Where it is sent, behind the API server's address. That of a node may be there or in default;
 * kube-system is where railmate is, so that its right is to this namespace alone. */
#define EVENT_PATH "/apis/events.k8s.io/v1/namespaces/kube-system/events"

struct event {
	const char *node;
	const char *action, *reason; /* "Discover", "PoolEmpty" */
	const char *note; /* for people; what the API server does not take of it is cut off */
	int64_t wall_ms;  /* now */
};

/*
 * A warning, as JSON. Its name follows from everything but the time: the API server keeps an Event
 * for an hour, and who sends the same one again within it is told that it is there (HTTP 409).
 */
void event_write(const struct event *e, struct strbuf *out);

#endif
