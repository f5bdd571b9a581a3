#include "kubeapi/kubeapi.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/transfer.h"
#include "rpc/rpc.h"

/* Who has asked. On the rpc thread. */
struct waiter {
	LIST_ENTRY(waiter) link;
	struct kubeapi *k;
	unsigned timeout_ms;
	podspec_done_fn done;
	void *arg;
	struct rpc_timer *timer;
};
LIST_HEAD(waiters, waiter);

struct kubeapi {
	struct rpc *rpc;
	struct podspec_source source;
	char *name, *url;
	struct transfer *transfer;
	struct waiters asking;	/* what is under way is for these */
	struct waiters waiting; /* these came later: it may not know their pods */
	bool busy, closed;
	struct answer *answer; /* from the transfer's thread to ours, while posted */
	atomic_bool posted;
};

static void kubeapi_free(struct kubeapi *k)
{
	free(k->name);
	free(k->url);
	free(k);
}

static void conclude(struct waiter *w, const struct spec_list *specs, const char *why)
{
	LIST_REMOVE(w, link);
	rpc_timer_cancel(w->timer);
	w->done(w->arg, specs, why);
	free(w);
}

static void conclude_all(struct waiters *list, const struct spec_list *specs, const char *why)
{
	while (!LIST_EMPTY(list))
		conclude(LIST_FIRST(list), specs, why);
}

static void move_all(struct waiters *from, struct waiters *to)
{
	LIST_INIT(to);
	while (!LIST_EMPTY(from)) {
		struct waiter *w = LIST_FIRST(from);

		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(to, w, link);
	}
}

static void begin(struct kubeapi *k)
{
	if (k->busy || LIST_EMPTY(&k->waiting))
		return;
	move_all(&k->waiting, &k->asking);
	k->busy = true;
	transfer_begin(k->transfer);
}

static void arrived(void *arg)
{
	struct kubeapi *k = arg;
	struct answer *a = STEAL(k->answer);
	struct spec_list list = { a->pods.v, a->pods.n };
	struct waiters asking;

	atomic_store(&k->posted, false);
	if (k->closed) {
		answer_free(a);
		kubeapi_free(k);
		return;
	}
	move_all(&k->asking, &asking); /* who asks from within done() waits for the next */
	k->busy = false;
	conclude_all(&asking, a->err.code ? NULL : &list, a->err.code ? a->err.msg : NULL);
	answer_free(a);
	begin(k);
}

static void on_answer(void *arg, struct answer *answer)
{
	struct kubeapi *k = arg;

	k->answer = answer;
	atomic_store(&k->posted, true);
	if (!rpc_post(k->rpc, arrived, k)) {
		answer_free(STEAL(k->answer));
		atomic_store(&k->posted, false);
	}
}

static void took_too_long(void *arg)
{
	struct waiter *w = arg;
	struct kubeapi *k = w->k;
	struct err err = { 0 };

	w->timer = NULL; /* gone */
	err_set(&err, ETIMEDOUT, "%s took longer than %u ms", k->url, w->timeout_ms);
	conclude(w, NULL, err.msg);
	if (k->busy && LIST_EMPTY(&k->asking))
		transfer_cancel(k->transfer);
}

static void fetch(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	struct kubeapi *k = ctx;
	struct waiter *w = xcalloc(1, sizeof(*w));

	*w = (struct waiter) { .k = k, .timeout_ms = timeout_ms, .done = done, .arg = arg };
	w->timer = rpc_after(k->rpc, timeout_ms, took_too_long, w);
	LIST_INSERT_HEAD(&k->waiting, w, link);
	begin(k);
}

int kubeapi_open(struct rpc *rpc, const struct kubeapi_options *opt, struct kubeapi **ret, struct err *err)
{
	struct kubeapi *k;

	if (!str_starts(opt->url, "https://"))
		return err_set(err, EINVAL, "'%s' does not begin with https://", opt->url);
	if (!opt->insecure && !opt->ca_file)
		return err_set(err, EINVAL, "%s: no file says whose certificates to take", opt->url);
	k = xcalloc(1, sizeof(*k));
	*k = (struct kubeapi) { .rpc = rpc, .name = xstrdup(opt->name), .url = xstrdup(opt->url) };
	k->source = (struct podspec_source) { .name = k->name, .fetch = fetch, .ctx = k };
	if (transfer_open(opt, on_answer, k, &k->transfer, err) < 0) {
		kubeapi_free(k);
		return -err->code;
	}
	*ret = k;
	return 0;
}

const struct podspec_source *kubeapi_source(const struct kubeapi *k)
{
	return &k->source;
}

void kubeapi_close(struct kubeapi *k)
{
	if (!k)
		return;
	conclude_all(&k->asking, NULL, "we are stopping");
	conclude_all(&k->waiting, NULL, "we are stopping");
	transfer_close(k->transfer);
	k->closed = true;
	if (!atomic_load(&k->posted)) /* else arrived() does it: what was posted still runs */
		kubeapi_free(k);
}
