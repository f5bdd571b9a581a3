#include "kubeclient/podsapi.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubeclient/kubeclient-internal.h"
#include "kubemsg/messages.h"
#include "rpc/rpc.h"

/* Pods are a few kilobytes each, and a node runs some hundred. Of a larger answer, which tenants
 * can bring about, gRPC and we would have a copy each; where it is refused another source is asked.
 */
#define LIST_BYTES_MAX (8u << 20)
/* The kubelet answers 100 questions a second, of all clients together, and refuses the others, and
 * those with too large an answer. */
#define RATE_PAUSE_MS 15
#define RATE_TRIES    5
#define GRACE_MS      20 /* the queue answers those that wait, before the call ends */

struct podsapi {
	struct rpc *rpc;
	char *socket;
	struct podspec_source source;
	struct spec_queue queue;
	struct rpc_channel *channel; /* NULL before the first question */
	struct rpc_timer *again;
	unsigned timeout_ms, tries;
	bool calling, freed;
};

static void dispose(struct podsapi *p)
{
	free(p->socket);
	free(p);
}

static void listed(void *arg, enum rpc_status status, const char *message, struct bytes body);

static void call(void *arg)
{
	struct podsapi *p = arg;

	p->again = NULL;
	p->calling = true;
	if (!p->channel)
		p->channel = rpc_channel_open(p->rpc, p->socket, LIST_BYTES_MAX);
	rpc_call_unary(p->channel, PATH_PODS_LIST, (struct bytes) { NULL, 0 }, p->timeout_ms,
		       listed, p);
}

static void listed(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct podsapi *p = arg;
	struct spec_list list;
	struct err err = { 0 };

	p->calling = false;
	if (p->freed) {
		dispose(p);
		return;
	}
	if (status == RPC_RESOURCE_EXHAUSTED && ++p->tries < RATE_TRIES &&
	    kubeclient_queue_is_awaited(&p->queue)) {
		p->again = rpc_after(p->rpc, RATE_PAUSE_MS, call, p);
		return;
	}
	if (status == RPC_OK)
		kubemsg_decode(&kubemsg_pod_specs, body, a, &list, &err);
	else
		err_set(&err, EIO, "%s", message);
	if (status == RPC_DEADLINE_EXCEEDED) /* we were held up: both times are over by now */
		err_set(&err, ETIMEDOUT, "%s took longer than %u ms", p->socket,
			p->timeout_ms - GRACE_MS);
	else if (err.code)
		err_wrap(&err, "%s", p->socket);
	kubeclient_queue_answer(&p->queue, err.code ? NULL : &list, err.code ? err.msg : NULL);
}

static void begin(void *ctx, unsigned timeout_ms)
{
	struct podsapi *p = ctx;

	p->timeout_ms = timeout_ms + GRACE_MS;
	p->tries = 0;
	call(p);
}

static void fetch(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	struct podsapi *p = ctx;

	kubeclient_queue_add(&p->queue, timeout_ms, done, arg);
}

struct podspec_source *kubeclient_podsapi_open(struct rpc *rpc, const char *socket)
{
	struct podsapi *p = xcalloc(1, sizeof(*p));

	*p = (struct podsapi) { .rpc = rpc, .socket = xstrdup(socket) };
	p->source =
		(struct podspec_source) { .name = "kubelet Pods API", .fetch = fetch, .ctx = p };
	p->queue = (struct spec_queue) { .rpc = rpc, .what = p->socket, .begin = begin, .ctx = p };
	return &p->source;
}

void kubeclient_podsapi_close(struct podspec_source *source)
{
	struct podsapi *p = source ? source->ctx : NULL;

	if (!p)
		return;
	p->queue.ended = true;
	kubeclient_queue_answer(&p->queue, NULL, "railmated is stopping");
	rpc_timer_cancel(p->again);
	p->freed = true;
	rpc_channel_close(p->channel);
	if (!p->calling) /* else listed() does it */
		dispose(p);
}
