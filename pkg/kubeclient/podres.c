#include "kubeclient/podres.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "rpc/listen.h"
#include "rpc/rpc.h"

#define ANSWER_BYTES_MAX (16u << 20) /* as Kubernetes' own callers take */
#define BACKOFF_MS	 20
#define QUIET_CHECK_MS	 25
#define QUIET_MAX_MS	 500

/* A question under way. Outlives the client if that goes first. */
struct question {
	LIST_ENTRY(question) link;
	struct podres *p; /* NULL: gone, and the question has been answered */
	enum podres_kind kind;
	char *ns, *name; /* PODRES_ASK_GET */
	unsigned timeout_ms;
	int64_t until_ms;
	int64_t patient_until_ms; /* 0: it does not wait for a quiet moment, or no more */
	uint64_t epoch;		  /* of the kubelet that was asked, */
	uint64_t kubelet;	  /* and its number */
	int64_t asked_ms;	  /* when */
	bool probing;
	bool limited; /* it was rejected before: the last try may have come too late for an answer
		       */
	struct rpc_timer *timer; /* NULL: a call is under way */
	podres_done_fn done;
	void *arg;
};

struct subscriber {
	STAILQ_ENTRY(subscriber) link;
	podres_hear_fn hear;
	void *ctx;
};

struct podres {
	struct rpc *rpc;
	char *socket;
	struct socket_id id;	     /* of the socket that was asked last; ino 0: none */
	struct rpc_channel *channel; /* opened with the first question */
	enum podres_support support;
	uint64_t epoch;	 /* grows with every kubelet */
	unsigned random; /* of rand_r() */
	int64_t admission_until_ms;
	LIST_HEAD(, question) questions;
	STAILQ_HEAD(, subscriber) subscribers;
};

struct podres *kubeclient_podres_open(struct rpc *rpc, const char *socket)
{
	struct podres *p = xcalloc(1, sizeof(*p));

	p->rpc = rpc;
	p->socket = xstrdup(socket);
	p->random = (unsigned)clock_mono_ms() ^ (unsigned)getpid();
	LIST_INIT(&p->questions);
	STAILQ_INIT(&p->subscribers);
	return p;
}

void kubeclient_podres_subscribe(struct podres *p, podres_hear_fn hear, void *ctx)
{
	struct subscriber *s = STAILQ_FIRST(&p->subscribers);

	if (!hear) {
		while (s && s->ctx != ctx)
			s = STAILQ_NEXT(s, link);
		if (s)
			STAILQ_REMOVE(&p->subscribers, s, subscriber, link);
		free(s);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->hear = hear;
	s->ctx = ctx;
	STAILQ_INSERT_TAIL(&p->subscribers, s, link);
}

static uint64_t identity(const struct socket_id *id)
{
	const uint64_t parts[] = { (uint64_t)id->dev, (uint64_t)id->ino, (uint64_t)id->born_ns };

	if (!id->ino)
		return 0;
	return (str_checksum(parts, sizeof(parts)) & ((UINT64_C(1) << 53) - 1)) | 1;
}

void kubeclient_podres_reset(struct podres *p)
{
	p->support = PODRES_UNKNOWN;
	p->epoch++;
}

struct podres_state kubeclient_podres_state(const struct podres *p)
{
	return (struct podres_state) { p->support, p->epoch, identity(&p->id) };
}

/* --- the end of a question --- */

static void question_free(struct question *q)
{
	free(q->ns);
	free(q->name);
	free(q);
}

static void finish(struct question *q, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	static const struct pod_list none;
	const struct pods_said said = { .all = q->kind == PODRES_ASK_LIST,
					.ns = q->ns,
					.name = q->name,
					.pods = pods ? pods : &none,
					.asked_ms = q->asked_ms,
					.kubelet = q->kubelet };
	struct subscriber *s;

	LIST_REMOVE(q, link);
	/* Get of no pod only finds out whether there is Get: that is no news. */
	if (result != PODRES_FAILED && q->kind != PODRES_ASK_ALLOCATABLE &&
	    (q->kind != PODRES_ASK_GET || *q->name)) {
		STAILQ_FOREACH (s, &q->p->subscribers, link)
			s->hear(s->ctx, &said);
	}
	q->done(q->arg, result, pods, why);
	question_free(q);
}

static const char *method_of(const struct question *q)
{
	static const char *const names[] = { [PODRES_ASK_LIST] = "List",
					     [PODRES_ASK_GET] = "Get",
					     [PODRES_ASK_ALLOCATABLE] = "GetAllocatableResources" };

	return names[q->kind];
}

static void fail(struct question *q, const char *message)
{
	_cleanup_free_ char *why = xasprintf("%s: %s: %s", q->p->socket, method_of(q), message);

	finish(q, PODRES_FAILED, NULL, why);
}

static void fail_late(struct question *q)
{
	char message[64];

	snprintf(message, sizeof(message), "%s within %u ms",
		 q->limited ? "every answer was a rejection by the rate limit" : "no answer",
		 q->timeout_ms);
	fail(q, message);
}

/* --- answers --- */

static int decode(const struct question *q, struct bytes body, struct arena *a,
		  struct pod_list *ret, struct err *err)
{
	struct pod *pod;
	int r;

	if (q->kind == PODRES_ASK_LIST)
		return kubemsg_decode(&kubemsg_pod_list, body, a, ret, err);
	pod = arena_array(a, 1, sizeof(*pod));
	if (q->kind == PODRES_ASK_GET) {
		r = kubemsg_decode(&kubemsg_pod_get_reply, body, a, pod, err);
	} else {
		pod->ns = pod->name = "";
		pod->containers = arena_array(a, 1, sizeof(*pod->containers));
		pod->n_containers = 1;
		r = kubemsg_decode(&kubemsg_allocatable, body, a, pod->containers, err);
	}
	*ret = (struct pod_list) { pod, 1 };
	return r;
}

static void take(struct question *q, struct bytes body)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct pod_list pods;
	struct err err = { 0 };

	if (decode(q, body, a, &pods, &err) < 0)
		fail(q, err.msg);
	else
		finish(q, PODRES_OK, &pods, NULL);
}

/* The kubelet knows errors by their text only. */
static bool says_not_found(enum rpc_status status, const char *message)
{
	return status == RPC_NOT_FOUND || (status == RPC_UNKNOWN && strstr(message, "not found"));
}

static bool is_silence(enum rpc_status status)
{
	return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
	       status == RPC_CANCELLED || status == RPC_RESOURCE_EXHAUSTED;
}

/*
 * Learns from an answer to Get about its kubelet. Get came with 1.27 (and is known even where it is
 * switched off). A List at the wrong moment could bring kubelets of that time down (issue #119560):
 * older ones are never asked for one.
 */
static void learn(struct podres *p, enum rpc_status status, const char *message)
{
	if (status == RPC_UNIMPLEMENTED)
		p->support = PODRES_NOTHING;
	else if (status == RPC_OK || says_not_found(status, message))
		p->support = PODRES_GET;
	else if (!is_silence(status))
		p->support = PODRES_LIST;
}

static void ask(struct question *q);

static void ask_again(void *arg)
{
	struct question *q = arg;

	q->timer = NULL;
	ask(q);
}

static int64_t time_left(const struct question *q)
{
	return q->until_ms - clock_mono_ms();
}

/* All clients of the node share one limit: a rejected one is asked again while there is time. */
static void retry(struct question *q, const char *message)
{
	struct podres *p = q->p;
	unsigned ms;

	q->limited = true;
	ms = BACKOFF_MS / 2 + (unsigned)rand_r(&p->random) % BACKOFF_MS;
	if (ms < time_left(q))
		q->timer = rpc_after(p->rpc, ms, ask_again, q);
	else
		fail(q, message);
}

static void answered(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct question *q = arg;
	struct podres *p = q->p;

	if (!p) {
		question_free(q);
		return;
	}
	if (!message)
		message = "";
	if ((q->probing || q->kind == PODRES_ASK_GET) && q->epoch == p->epoch)
		learn(p, status, message);
	if (status == RPC_RESOURCE_EXHAUSTED && strstr(message, "rate limit"))
		retry(q, message);
	else if (q->probing && !is_silence(status))
		ask(q);
	else if (status == RPC_OK)
		take(q, body);
	else if (q->kind == PODRES_ASK_GET && says_not_found(status, message))
		finish(q, PODRES_GONE, NULL, message);
	else if (status == RPC_DEADLINE_EXCEEDED)
		fail_late(q);
	else
		fail(q, message);
}

/* --- questions --- */

static void call(struct question *q)
{
	static const char *const paths[] = { [PODRES_ASK_LIST] = PATH_POD_LIST,
					     [PODRES_ASK_GET] = PATH_POD_GET,
					     [PODRES_ASK_ALLOCATABLE] = PATH_ALLOCATABLE };
	_cleanup_arena_ struct arena *a = arena_new(256);
	struct bytes request = { NULL, 0 };
	int64_t left = time_left(q);

	if (q->probing || q->kind == PODRES_ASK_GET)
		request = kubemsg_encode(
			&kubemsg_pod_get_request,
			&(struct pod_name) { q->ns ? q->ns : "", q->name ? q->name : "" }, a);
	if (!q->p->channel)
		q->p->channel = rpc_channel_open(q->p->rpc, q->p->socket, ANSWER_BYTES_MAX);
	rpc_call_unary(q->p->channel, q->probing ? PATH_POD_GET : paths[q->kind], request,
		       left > 1 ? (unsigned)left : 1, answered, q);
}

static bool is_harmful(const struct question *q)
{
	return q->p->support == PODRES_NOTHING && q->kind != PODRES_ASK_ALLOCATABLE;
}

static void ask(struct question *q)
{
	int64_t now_ms = clock_mono_ms();
	struct podres *p = q->p;
	struct socket_id id;

	/* A kubelet that has just started answers here before its other sockets show that it is
	 * another one. */
	if (rpc_socket_id(p->socket, &id) && !rpc_socket_same(&id, &p->id)) {
		if (p->id.ino)
			kubeclient_podres_reset(p);
		p->id = id;
	}
	if (is_harmful(q)) {
		fail(q, "this kubelet is older than 1.27");
		return;
	}
	/* No admission of another plugin is known to us; for our own resources this is the rule. */
	if (now_ms < q->patient_until_ms && now_ms < p->admission_until_ms) {
		q->until_ms += QUIET_CHECK_MS;
		q->timer = rpc_after(p->rpc, QUIET_CHECK_MS, ask_again, q);
		return;
	}
	q->epoch = p->epoch;
	q->kubelet = identity(&p->id);
	q->asked_ms = clock_mono_ms();
	q->probing = q->kind == PODRES_ASK_LIST && p->support == PODRES_UNKNOWN;
	call(q);
}

void kubeclient_podres_ask(struct podres *p, const struct podres_question *asked,
			   podres_done_fn done, void *arg)
{
	struct question *q = xcalloc(1, sizeof(*q));
	int64_t now = clock_mono_ms();

	q->p = p;
	q->kind = asked->kind;
	if (q->kind == PODRES_ASK_LIST_QUIETLY) {
		q->kind = PODRES_ASK_LIST;
		q->patient_until_ms = now + QUIET_MAX_MS;
	} else if (q->kind == PODRES_ASK_GET) {
		q->ns = xstrdup(asked->ns);
		q->name = xstrdup(asked->name);
	}
	q->timeout_ms = asked->timeout_ms;
	q->until_ms = now + asked->timeout_ms;
	q->done = done;
	q->arg = arg;
	LIST_INSERT_HEAD(&p->questions, q, link);
	/* An answer that is known already still comes later. */
	if (is_harmful(q))
		q->timer = rpc_after(p->rpc, 0, ask_again, q);
	else
		ask(q);
}

void kubeclient_podres_note_admission(struct podres *p, unsigned ms)
{
	int64_t until = clock_mono_ms() + ms;

	if (p->admission_until_ms < until)
		p->admission_until_ms = until;
}

/* One that waits for a timer ends here; one whose call is under way is freed when that comes back.
 */
static void abandon(struct question *q)
{
	_cleanup_free_ char *why =
		xasprintf("%s: %s: railmated is stopping", q->p->socket, method_of(q));

	LIST_REMOVE(q, link);
	q->p = NULL;
	q->done(q->arg, PODRES_FAILED, NULL, why);
	if (!q->timer)
		return;
	rpc_timer_cancel(q->timer);
	question_free(q);
}

void kubeclient_podres_close(struct podres *p)
{
	struct question *q;
	struct subscriber *s;

	if (!p)
		return;
	while ((q = LIST_FIRST(&p->questions)))
		abandon(q);
	while ((s = STAILQ_FIRST(&p->subscribers))) {
		STAILQ_REMOVE_HEAD(&p->subscribers, link);
		free(s);
	}
	rpc_channel_close(p->channel);
	free(p->socket);
	free(p);
}
