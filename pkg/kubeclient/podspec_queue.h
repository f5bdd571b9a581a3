/*
 * Callers that wait for pod specs, for a source that asks one question at a time. Callers that come
 * while a question is under way share the next one: the one under way may not know their pods yet.
 * On the rpc thread.
 */
#ifndef RAILMATE_KUBECLIENT_PODSPEC_QUEUE_H
#define RAILMATE_KUBECLIENT_PODSPEC_QUEUE_H

#include <stdbool.h>
#include <sys/queue.h>

#include "kubemsg/podspec.h"

struct rpc;
struct spec_waiter;
LIST_HEAD(spec_waiters, spec_waiter);

struct spec_queue {
	struct rpc *rpc;
	/* "https://127.0.0.1:10250/pods": begins the sentence for a caller that waited too long */
	const char *what;
	/* Ask; kubeclient_queue_answer() follows, later. timeout_ms: no caller waits longer. */
	void (*begin)(void *ctx, unsigned timeout_ms);
	void (*cancel)(
		void *ctx); /* no caller waits for the one under way any more; NULL: let it run */
	void *ctx;
	struct spec_waiters asking, waiting;
	bool busy;
	/* Set by the owner: the next answer goes to the waiting callers, too, and no further
	 * question begins */
	bool ended;
};

/* A podspec_source's fetch. */
void kubeclient_queue_add(struct spec_queue *q, unsigned timeout_ms, podspec_done_fn done,
			  void *arg);
/* The one under way has ended: specs, or why not. Begins the next if a caller waits. */
void kubeclient_queue_answer(struct spec_queue *q, const struct spec_list *specs, const char *why);

#endif
