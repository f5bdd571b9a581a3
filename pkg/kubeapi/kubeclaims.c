#include "kubeapi/kubeclaims-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/mem.h"
#include "kubeapi/transfer.h"
#include "rpc/rpc.h"

struct question {
	TAILQ_ENTRY(question) link;
	struct kubeclaims *k;
	char *url;
	char *why; /* it could not be asked; NULL: it could */
	unsigned timeout_ms;
	draclaim_done_fn done;
	void *arg;
	struct rpc_timer *timer;
};

TAILQ_HEAD(questions, question);

struct kubeclaims {
	struct rpc *rpc;
	struct draclaim_source source;
	char *url, *token_file, *ca_file;
	struct transfer *transfer;  /* NULL before the first question */
	struct questions questions; /* in their order */
	struct questions refused;   /* answered by a timer: never from within fetch() */
	struct question *asked;	    /* the one under way; NULL: none, or its caller has given up */
	bool busy;
};

static void conclude(struct question *q, const struct draclaim *claim, const char *why)
{
	struct kubeclaims *k = q->k;

	TAILQ_REMOVE(q->why ? &k->refused : &k->questions, q, link);
	if (k->asked == q)
		k->asked = NULL;
	rpc_timer_cancel(q->timer);
	q->done(q->arg, claim, why);
	free(q->why);
	free(q->url);
	free(q);
}

static void begin_next(struct kubeclaims *k)
{
	struct question *q = TAILQ_FIRST(&k->questions);

	if (k->busy || !k->transfer || !q)
		return;
	k->asked = q;
	k->busy = true;
	kubeapi_transfer_begin(k->transfer, q->url);
}

static void on_answer(void *arg, struct answer *a)
{
	struct kubeclaims *k = arg;
	const struct draclaim claim = { a->claims.v, a->claims.n };

	k->busy = false;
	if (k->asked && a->err.code)
		conclude(k->asked, NULL, a->err.msg);
	else if (k->asked && !a->claims.n_claims)
		conclude(k->asked, NULL, "the API server knows no such claim");
	else if (k->asked)
		conclude(k->asked, &claim, NULL);
	kubeapi_answer_free(a);
	begin_next(k);
}

static void give_up(void *arg)
{
	struct question *q = arg;
	struct err err = { 0 };

	q->timer = NULL; /* gone */
	err_set(&err, ETIMEDOUT, "%s took longer than %u ms", q->url, q->timeout_ms);
	if (q->k->asked == q)
		kubeapi_transfer_cancel(q->k->transfer);
	conclude(q, NULL, q->why ? q->why : err.msg);
}

/* Names as Kubernetes has them; anything else does not get into a URL. */
static bool is_name(const char *s)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";

	return *s && !s[strspn(s, legal)];
}

static void fetch(void *ctx, const char *ns, const char *name, unsigned timeout_ms,
		  draclaim_done_fn done, void *arg)
{
	struct kubeclaims *k = ctx;
	const struct kubeapi_options opt = {
		.name = "claims", .url = k->url, .token_file = k->token_file, .ca_file = k->ca_file
	};
	struct question *q = xcalloc(1, sizeof(*q));
	struct err err = { 0 };
	int r = 0;

	*q = (struct question) { .k = k, .timeout_ms = timeout_ms, .done = done, .arg = arg };
	q->url = xasprintf(
		"%s/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims?fieldSelector=metadata.name%%3D%s",
		k->url, ns, name);
	if (!is_name(ns) || !is_name(name))
		r = err_set(&err, EINVAL, "'%s/%s' is not the name of a claim", ns, name);
	else if (!k->transfer)
		r = kubeapi_transfer_open(&opt, TRANSFER_CLAIMS, k->rpc, on_answer, k, &k->transfer,
					  &err);
	if (r < 0)
		q->why = xstrdup(err.msg);
	q->timer =
		rpc_after(k->rpc, r < 0 ? 0 : timeout_ms, give_up, q); /* never before the return */
	TAILQ_INSERT_TAIL(r < 0 ? &k->refused : &k->questions, q, link);
	begin_next(k);
}

struct kubeclaims *kubeapi_claims_new(struct rpc *rpc, const struct kubeapi_options *opt)
{
	struct kubeclaims *k = xcalloc(1, sizeof(*k));

	*k = (struct kubeclaims) { .rpc = rpc,
				   .url = xstrdup(opt->url),
				   .token_file = xstrdup(opt->token_file),
				   .ca_file = xstrdup(opt->ca_file) };
	k->source = (struct draclaim_source) { .fetch = fetch, .ctx = k };
	TAILQ_INIT(&k->questions);
	TAILQ_INIT(&k->refused);
	return k;
}

const struct draclaim_source *kubeapi_claims_source(const struct kubeclaims *k)
{
	return k ? &k->source : NULL;
}

static void conclude_all(struct questions *list)
{
	while (!TAILQ_EMPTY(list))
		conclude(TAILQ_FIRST(list), NULL, "railmated is stopping");
}

void kubeapi_claims_free(struct kubeclaims *k)
{
	if (!k)
		return;
	k->busy = true; /* none begins any more */
	conclude_all(&k->questions);
	conclude_all(&k->refused);
	if (k->transfer)
		kubeapi_transfer_close(k->transfer);
	free(k->url);
	free(k->token_file);
	free(k->ca_file);
	free(k);
}
