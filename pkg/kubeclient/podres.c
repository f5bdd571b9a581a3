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
#include "kubeclient/socketfile.h"
#include "rpc/rpc.h"

#define ANSWER_BYTES_MAX (16u << 20) /* what Kubernetes' own callers take */
#define BACKOFF_MS	 20
#define QUIET_LOOK_MS	 25
#define QUIET_MAX_MS	 500

enum kind { ASK_LIST, ASK_GET, ASK_ALLOCATABLE };

/* A question under way. Outlives the client if that goes first. */
struct question {
	LIST_ENTRY(question) link;
	struct podres *p; /* NULL: gone, and the question has been answered */
	enum kind kind;
	char *ns, *name; /* ASK_GET */
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
	uint64_t epoch; /* grows with every kubelet */
	uint32_t random;
	int64_t admission_until_ms;
	LIST_HEAD(, question) questions;
	STAILQ_HEAD(, subscriber) subscribers;
};

struct podres *podres_open(struct rpc *rpc, const char *socket)
{
	struct podres *p = xcalloc(1, sizeof(*p));

	p->rpc = rpc;
	p->socket = xstrdup(socket);
	p->random = (uint32_t)clock_mono_ms() ^ (uint32_t)getpid();
	LIST_INIT(&p->questions);
	STAILQ_INIT(&p->subscribers);
	return p;
}

void podres_subscribe(struct podres *p, podres_hear_fn hear, void *ctx)
{
	struct subscriber *s = xcalloc(1, sizeof(*s));

	s->hear = hear;
	s->ctx = ctx;
	STAILQ_INSERT_TAIL(&p->subscribers, s, link);
}

void podres_unsubscribe(struct podres *p, void *ctx)
{
	struct subscriber *s = STAILQ_FIRST(&p->subscribers);

	while (s && s->ctx != ctx)
		s = STAILQ_NEXT(s, link);
	if (s)
		STAILQ_REMOVE(&p->subscribers, s, subscriber, link);
	free(s);
}

uint64_t podres_epoch(const struct podres *p)
{
	return p->epoch;
}

static uint64_t identity(const struct socket_id *id)
{
	uint64_t h = UINT64_C(14695981039346656037);
	const uint64_t parts[] = { (uint64_t)id->dev, (uint64_t)id->ino, (uint64_t)id->born_ns };

	if (!id->ino)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		h = (h ^ parts[i]) * UINT64_C(1099511628211);
		h ^= h >> 32;
	}
	return (h & ((UINT64_C(1) << 53) - 1)) | 1;
}

uint64_t podres_kubelet(const struct podres *p)
{
	return identity(&p->id);
}

void podres_reset(struct podres *p)
{
	p->support = PODRES_UNKNOWN;
	p->epoch++;
}

enum podres_support podres_support(const struct podres *p)
{
	return p->support;
}

/* --- the end of a question --- */

static void question_free(struct question *q)
{
	free(q->ns);
	free(q->name);
	free(q);
}

static void tell(const struct question *q, const struct pod_list *pods)
{
	static const struct pod_list none;
	const struct pods_said said = { .all = q->kind == ASK_LIST,
					.ns = q->ns,
					.name = q->name,
					.pods = pods ? pods : &none,
					.asked_ms = q->asked_ms,
					.kubelet = q->kubelet };
	struct subscriber *s;

	STAILQ_FOREACH (s, &q->p->subscribers, link)
		s->hear(s->ctx, &said);
}

/* Get of no pod only finds out whether there is Get. */
static bool is_news(const struct question *q, enum podres_result result)
{
	return result != PODRES_FAILED && q->kind != ASK_ALLOCATABLE &&
	       (q->kind != ASK_GET || *q->name);
}

static void finish(struct question *q, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	LIST_REMOVE(q, link);
	if (is_news(q, result))
		tell(q, pods);
	q->done(q->arg, result, pods, why);
	question_free(q);
}

static const char *method_of(const struct question *q)
{
	static const char *const names[] = { "List", "Get", "GetAllocatableResources" };

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
		 q->limited ? "nothing but rejections by rate limit" : "no answer", q->timeout_ms);
	fail(q, message);
}

/* --- answers --- */

static int decode(const struct question *q, struct bytes body, struct arena *a,
		  struct pod_list *ret, struct err *err)
{
	struct pod *pod;
	int r;

	if (q->kind == ASK_LIST)
		return kubemsg_decode_pod_list(body, a, ret, err);
	pod = arena_array(a, 1, sizeof(*pod));
	if (q->kind == ASK_GET) {
		r = kubemsg_decode_pod_get_reply(body, a, pod, err);
	} else {
		pod->ns = pod->name = "";
		pod->containers = arena_array(a, 1, sizeof(*pod->containers));
		pod->n_containers = 1;
		r = kubemsg_decode_allocatable(body, a, pod->containers, err);
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
 * What an answer to Get tells of its kubelet. Get came with 1.27 (and says so even where it is
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

/* All clients of the node share one limit: what it rejects is asked again while there is time. */
static void retry(struct question *q, const char *message)
{
	struct podres *p = q->p;
	unsigned ms;

	q->limited = true;
	p->random = p->random * 1664525u + 1013904223u;
	ms = BACKOFF_MS / 2 + (p->random >> 16) % BACKOFF_MS;
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
	if ((q->probing || q->kind == ASK_GET) && q->epoch == p->epoch)
		learn(p, status, message);
	if (status == RPC_RESOURCE_EXHAUSTED && strstr(message, "rate limit"))
		retry(q, message);
	else if (q->probing && !is_silence(status))
		ask(q);
	else if (status == RPC_OK)
		take(q, body);
	else if (q->kind == ASK_GET && says_not_found(status, message))
		finish(q, PODRES_GONE, NULL, message);
	else if (status == RPC_DEADLINE_EXCEEDED)
		fail_late(q);
	else
		fail(q, message);
}

/* --- questions --- */

static void call(struct question *q)
{
	static const char *const paths[] = { PATH_POD_LIST, PATH_POD_GET, PATH_ALLOCATABLE };
	_cleanup_arena_ struct arena *a = arena_new(256);
	struct bytes request = { NULL, 0 };
	int64_t left = time_left(q);

	if (q->probing || q->kind == ASK_GET)
		request = kubemsg_encode_pod_get_request(q->ns ? q->ns : "", q->name ? q->name : "",
							 a);
	if (!q->p->channel)
		q->p->channel = rpc_channel_open(q->p->rpc, q->p->socket, ANSWER_BYTES_MAX);
	rpc_call_unary(q->p->channel, q->probing ? PATH_POD_GET : paths[q->kind], request,
		       left > 1 ? (unsigned)left : 1, answered, q);
}

/* A kubelet that has just started answers here before its other sockets tell us that it is another
 * one. */
static void look_at_socket(struct podres *p)
{
	struct socket_id now;

	if (!socket_look(p->socket, &now) || socket_same(&now, &p->id))
		return;
	if (p->id.ino)
		podres_reset(p);
	p->id = now;
}

static bool is_harmful(const struct question *q)
{
	return q->p->support == PODRES_NOTHING && q->kind != ASK_ALLOCATABLE;
}

static bool must_wait(const struct question *q)
{
	int64_t now = clock_mono_ms();

	return now < q->patient_until_ms && now < q->p->admission_until_ms;
}

/* Nobody else's admission is known to us; for our own resources this is the rule. */
static void wait_for_quiet(struct question *q)
{
	q->until_ms += QUIET_LOOK_MS;
	q->timer = rpc_after(q->p->rpc, QUIET_LOOK_MS, ask_again, q);
}

static void ask(struct question *q)
{
	look_at_socket(q->p);
	if (is_harmful(q)) {
		fail(q, "this kubelet is older than 1.27");
		return;
	}
	if (must_wait(q)) {
		wait_for_quiet(q);
		return;
	}
	q->epoch = q->p->epoch;
	q->kubelet = podres_kubelet(q->p);
	q->asked_ms = clock_mono_ms();
	q->probing = q->kind == ASK_LIST && q->p->support == PODRES_UNKNOWN;
	call(q);
}

static struct question *question_new(struct podres *p, enum kind kind, unsigned timeout_ms,
				     podres_done_fn done, void *arg)
{
	struct question *q = xcalloc(1, sizeof(*q));

	q->p = p;
	q->kind = kind;
	q->timeout_ms = timeout_ms;
	q->until_ms = clock_mono_ms() + timeout_ms;
	q->done = done;
	q->arg = arg;
	LIST_INSERT_HEAD(&p->questions, q, link);
	return q;
}

static void begin(struct question *q)
{
	/* An answer that is known already still comes later. */
	if (is_harmful(q))
		q->timer = rpc_after(q->p->rpc, 0, ask_again, q);
	else
		ask(q);
}

void podres_list(struct podres *p, unsigned timeout_ms, podres_done_fn done, void *arg)
{
	begin(question_new(p, ASK_LIST, timeout_ms, done, arg));
}

void podres_list_quietly(struct podres *p, unsigned timeout_ms, podres_done_fn done, void *arg)
{
	struct question *q = question_new(p, ASK_LIST, timeout_ms, done, arg);

	q->patient_until_ms = clock_mono_ms() + QUIET_MAX_MS;
	begin(q);
}

void podres_note_admission(struct podres *p, unsigned ms)
{
	int64_t until = clock_mono_ms() + ms;

	if (p->admission_until_ms < until)
		p->admission_until_ms = until;
}

void podres_get(struct podres *p, const char *ns, const char *name, unsigned timeout_ms,
		podres_done_fn done, void *arg)
{
	struct question *q = question_new(p, ASK_GET, timeout_ms, done, arg);

	q->ns = xstrdup(ns);
	q->name = xstrdup(name);
	begin(q);
}

void podres_allocatable(struct podres *p, unsigned timeout_ms, podres_done_fn done, void *arg)
{
	begin(question_new(p, ASK_ALLOCATABLE, timeout_ms, done, arg));
}

/* One that waits for a timer ends here; one whose call is under way is freed when that comes back.
 */
static void abandon(struct question *q)
{
	_cleanup_free_ char *why = xasprintf("%s: %s: we are stopping", q->p->socket, method_of(q));

	LIST_REMOVE(q, link);
	q->p = NULL;
	q->done(q->arg, PODRES_FAILED, NULL, why);
	if (!q->timer)
		return;
	rpc_timer_cancel(q->timer);
	question_free(q);
}

void podres_close(struct podres *p)
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
