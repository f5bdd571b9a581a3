#include "kubeapi/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/transfer-internal.h"
#include "rpc/rpc.h"

struct ask {
	TAILQ_ENTRY(ask) link;
	struct kubeapi_objects *o;
	char *method, *url, *accept, *type, *body;
	char *why; /* it cannot be asked; NULL: it can */
	unsigned timeout_ms;
	api_done_fn done;
	void *arg;
	struct rpc_timer *timer;
};

TAILQ_HEAD(asks, ask);

struct kubeapi_objects {
	struct rpc *rpc;
	char *url, *token_file, *ca_file;
	struct transfer *transfer; /* NULL before the first request */
	struct asks asks;	   /* in the order of the calls */
	struct asks refused; /* answered by a timer: never before kubeapi_objects_do() returns */
	struct ask *asked;   /* the one under way; NULL: none, or it was given up */
	bool busy;
};

bool kubeapi_objects_is_name(const char *s)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";

	return s && *s && *s != '.' && !s[strspn(s, legal)];
}

static void conclude(struct ask *q, long status, struct bytes body, const char *why)
{
	struct kubeapi_objects *o = q->o;

	TAILQ_REMOVE(q->why ? &o->refused : &o->asks, q, link);
	if (o->asked == q)
		o->asked = NULL;
	rpc_timer_cancel(q->timer);
	q->done(q->arg, status, body, why);
	free(q->method);
	free(q->url);
	free(q->accept);
	free(q->type);
	free(q->body);
	free(q->why);
	free(q);
}

static void begin_next(struct kubeapi_objects *o)
{
	struct ask *q = TAILQ_FIRST(&o->asks);

	if (o->busy || !q)
		return;
	o->asked = q;
	o->busy = true;
	kubeapi_transfer_begin(o->transfer, &(struct transfer_request) { .method = q->method,
									 .url = q->url,
									 .accept = q->accept,
									 .type = q->type,
									 .body = q->body });
}

static void on_answer(void *arg, struct answer *a)
{
	const struct bytes body = { (const uint8_t *)a->body.s, a->body.len };
	struct kubeapi_objects *o = arg;

	o->busy = false;
	if (o->asked)
		conclude(o->asked, a->status, a->err.code ? (struct bytes) { 0 } : body,
			 a->err.code ? a->err.msg : NULL);
	kubeapi_answer_free(a);
	begin_next(o);
}

static void give_up(void *arg)
{
	struct ask *q = arg;
	struct err err = { 0 };

	q->timer = NULL; /* gone */
	err_set(&err, ETIMEDOUT, "%s took longer than %u ms", q->url, q->timeout_ms);
	if (q->o->asked == q)
		kubeapi_transfer_cancel(q->o->transfer);
	conclude(q, 0, (struct bytes) { 0 }, q->why ? q->why : err.msg);
}

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

void kubeapi_objects_do(struct kubeapi_objects *o, const struct api_request *r, api_done_fn done,
			void *arg)
{
	const struct kubeapi_options opt = { .token_file = o->token_file, .ca_file = o->ca_file };
	struct ask *q = xcalloc(1, sizeof(*q));
	struct err err = { 0 };

	*q = (struct ask) { .o = o,
			    .method = copy(r->method),
			    .url = xasprintf("%s%s", o->url, r->path ? r->path : ""),
			    .accept = copy(r->accept),
			    .type = copy(r->type),
			    .body = copy(r->body),
			    .timeout_ms = r->timeout_ms,
			    .done = done,
			    .arg = arg };
	if (!r->path)
		q->why = xstrdup("a name of that object is not one that Kubernetes has");
	else if (!o->transfer && kubeapi_transfer_open(&opt, TRANSFER_OBJECTS, o->rpc, on_answer, o,
						       &o->transfer, &err) < 0)
		q->why = xstrdup(err.msg);
	q->timer = rpc_after(o->rpc, q->why ? 0 : r->timeout_ms, give_up, q);
	TAILQ_INSERT_TAIL(q->why ? &o->refused : &o->asks, q, link);
	begin_next(o);
}

int kubeapi_objects_open(struct rpc *rpc, const char *service_account, struct kubeapi_objects **ret,
			 struct err *err)
{
	_cleanup_free_ char *token = xasprintf("%s/token", service_account), *url = NULL;
	struct kubeapi_objects *o;
	int r = apiserver_url(&url, err);

	if (r < 0)
		return r;
	if (access(token, R_OK) < 0)
		return err_sys(err, "open the token %s", token);
	o = xcalloc(1, sizeof(*o));
	*o = (struct kubeapi_objects) { .rpc = rpc,
					.url = STEAL(url),
					.token_file = STEAL(token),
					.ca_file = xasprintf("%s/ca.crt", service_account) };
	TAILQ_INIT(&o->asks);
	TAILQ_INIT(&o->refused);
	*ret = o;
	return 0;
}

static void end_all(struct asks *list)
{
	while (!TAILQ_EMPTY(list))
		conclude(TAILQ_FIRST(list), 0, (struct bytes) { 0 }, "railmated is stopping");
}

void kubeapi_objects_close(struct kubeapi_objects *o)
{
	if (!o)
		return;
	o->busy = true; /* none begins any more */
	end_all(&o->asks);
	end_all(&o->refused);
	if (o->transfer)
		kubeapi_transfer_close(o->transfer);
	free(o->url);
	free(o->token_file);
	free(o->ca_file);
	free(o);
}
