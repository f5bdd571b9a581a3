/*
 * Of the room, which asks others and decides nothing (a question ends once, with an answer or a
 * sentence), the client of PodResources: the devices of every container. One for all resources;
 * each answer goes to all subscribers, whichever of them asked. On the rpc thread.
 *
 * List has a side effect in the kubelet (docs/design/kubelet.md §2.2: it can drop the reservation
 * of an allocation under way), Get has none: Get is preferred wherever the pod's name is known.
 */
#ifndef RAILMATE_KUBECLIENT_PODRES_H
#define RAILMATE_KUBECLIENT_PODRES_H

#include "kubemsg/messages.h"

struct podres;
struct rpc;

/* The abilities of this kubelet; known once it was asked. Get is there and works from 1.34 (GA
 * 1.36); UNIMPLEMENTED: older than 1.27. */
enum podres_support {
	PODRES_UNKNOWN,
	PODRES_NOTHING /* < 1.27: a List could bring it down */,
	PODRES_LIST,
	PODRES_GET
};

enum podres_result {
	PODRES_OK,
	PODRES_GONE,   /* Get: there is no such pod */
	PODRES_FAILED, /* not there, too slow, malformed, rate-limited to the end (why) */
};

/* pods: a List's, or a Get's one pod; it lives until the return. Exactly once, never before the
 * asking function returned. */
typedef void (*podres_done_fn)(void *arg, enum podres_result result, const struct pod_list *pods,
			       const char *why);

struct podres *kubeclient_podres_open(struct rpc *rpc, const char *socket);
void kubeclient_podres_close(
	struct podres *p); /* questions under way end as PODRES_FAILED first; NULL is fine */
/* Another kubelet: forget the abilities of the former one. Questions notice by themselves that the
 * socket is another one. */
void kubeclient_podres_reset(struct podres *p);
struct podres_state {
	enum podres_support support;
	uint64_t epoch; /* grows with every kubelet */
	/* A number of the kubelet process that was asked last, by its socket: below 2^53, the same
	 * after a restart of ours; 0: not known. */
	uint64_t kubelet;
};
struct podres_state kubeclient_podres_state(const struct podres *p);
/* The kubelet's answers about pods, one after the other, each before the done of its question; the
 * argument said lives until the return. */
typedef void (*podres_hear_fn)(void *ctx, const struct pods_said *said);
/* hear NULL: ends the subscription of ctx. */
void kubeclient_podres_subscribe(struct podres *p, podres_hear_fn hear, void *ctx);
enum podres_kind {
	PODRES_ASK_LIST,
	/* A List that the kubelet does not wait for: it waits, half a second at most, until no
	 * container is under admission, which a List could harm. The timeout begins with the List.
	 */
	PODRES_ASK_LIST_QUIETLY,
	PODRES_ASK_GET,
	/* All healthy devices of all plugins, as one container without a name. */
	PODRES_ASK_ALLOCATABLE,
};
struct podres_question {
	enum podres_kind kind;
	const char *ns, *name; /* of PODRES_ASK_GET */
	/* For so long a question that is rate-limited is asked again, with jitter */
	unsigned timeout_ms;
};
void kubeclient_podres_ask(struct podres *p, const struct podres_question *q, podres_done_fn done,
			   void *arg);
/* A container is under admission: the kubelet has set devices aside, or will within this time, and
 * records them at its end. */
void kubeclient_podres_note_admission(struct podres *p, unsigned ms);

#endif
