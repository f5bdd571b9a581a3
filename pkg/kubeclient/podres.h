/*
 * PodResources: what every container of the node holds. One client for all resources; whoever asks,
 * everybody who subscribed is told what the kubelet said. On the rpc thread.
 *
 * List has a side effect in the kubelet (docs/design/kubelet.md §2.2: it can drop the reservation
 * of an allocation under way), Get has none: Get is preferred wherever the pod's name is known.
 */
#ifndef RAILMATE_KUBECLIENT_PODRES_H
#define RAILMATE_KUBECLIENT_PODRES_H

#include "kubemsg/messages.h"

struct podres;
struct rpc;

/* What this kubelet can do; known once it was asked. Get is there and works from 1.34 (GA 1.36);
 * UNIMPLEMENTED: older than 1.27. */
enum podres_support {
	PODRES_UNKNOWN,
	PODRES_NOTHING /* < 1.27: a List could bring it down */,
	PODRES_LIST,
	PODRES_GET
};

enum podres_result {
	PODRES_OK,
	PODRES_GONE,   /* Get: there is no such pod */
	PODRES_FAILED, /* not there, too slow, malformed, rate-limited to the end: why says which */
};

/* pods: a List's, or a Get's one pod; it lives until the return. Exactly once, never before the
 * asking function returned. */
typedef void (*podres_done_fn)(void *arg, enum podres_result result, const struct pod_list *pods,
			       const char *why);

struct podres *podres_open(struct rpc *rpc, const char *socket);
void podres_close(
	struct podres *p); /* questions under way end as PODRES_FAILED first; NULL is fine */
/* Another kubelet: forget what it can do. Questions notice by themselves that the socket is another
 * one. */
void podres_reset(struct podres *p);
enum podres_support podres_support(const struct podres *p);
uint64_t podres_epoch(const struct podres *p); /* grows with every kubelet */
/* A number of the kubelet process that was asked last, by its socket: below 2^53, the same after a
 * restart of ours; 0: not known. */
uint64_t podres_kubelet(const struct podres *p);
/* What the kubelet says of pods, one answer after the other, each before the done of its question;
 * said lives until the return. */
typedef void (*podres_hear_fn)(void *ctx, const struct pods_said *said);
void podres_subscribe(struct podres *p, podres_hear_fn hear, void *ctx);
void podres_unsubscribe(struct podres *p, void *ctx);
/* A rate-limited question is asked again, with jitter, as long as the time lasts. */
void podres_list(struct podres *p, unsigned timeout_ms, podres_done_fn done, void *arg);
/* The same when the kubelet does not wait for us: not while a container is under admission, which
 * the List could harm, but within half a second all the same; the time begins then. */
void podres_list_quietly(struct podres *p, unsigned timeout_ms, podres_done_fn done, void *arg);
/* A container is under admission: the kubelet has set devices aside, or will within this time, and
 * records them at its end. */
void podres_note_admission(struct podres *p, unsigned ms);
void podres_get(struct podres *p, const char *ns, const char *name, unsigned timeout_ms,
		podres_done_fn done, void *arg);
/* All healthy devices of all plugins, as one container without a name. */
void podres_allocatable(struct podres *p, unsigned timeout_ms, podres_done_fn done, void *arg);

#endif
