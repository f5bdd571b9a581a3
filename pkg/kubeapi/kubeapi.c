#include "kubeapi/kubeapi.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/transfer.h"
#include "kubeclient/podspec_queue.h"
#include "rpc/rpc.h"

struct kubeapi {
	struct rpc *rpc;
	struct podspec_source source;
	char *name, *url;
	struct transfer *transfer;
	struct spec_queue queue;
	bool closed;
	struct answer *answer; /* from the transfer's thread to ours, while posted */
	atomic_bool posted;
};

static void kubeapi_free(struct kubeapi *k)
{
	free(k->name);
	free(k->url);
	free(k);
}

static void arrived(void *arg)
{
	struct kubeapi *k = arg;
	struct answer *a = STEAL(k->answer);
	struct spec_list list = { a->pods.v, a->pods.n };

	atomic_store(&k->posted, false);
	if (k->closed) {
		answer_free(a);
		kubeapi_free(k);
		return;
	}
	spec_queue_answer(&k->queue, a->err.code ? NULL : &list, a->err.code ? a->err.msg : NULL);
	answer_free(a);
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

static void begin(void *ctx, unsigned timeout_ms)
{
	struct kubeapi *k = ctx;

	(void)timeout_ms; /* cancel() comes */
	transfer_begin(k->transfer, NULL);
}

static void cancel(void *ctx)
{
	struct kubeapi *k = ctx;

	transfer_cancel(k->transfer);
}

static void fetch(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	struct kubeapi *k = ctx;

	spec_queue_add(&k->queue, timeout_ms, done, arg);
}

int kubeapi_open(struct rpc *rpc, const struct kubeapi_options *opt, struct kubeapi **ret,
		 struct err *err)
{
	struct kubeapi *k;
	int r;

	if (!str_starts(opt->url, "https://"))
		return err_set(err, EINVAL, "'%s' does not begin with https://", opt->url);
	if (!opt->insecure && !opt->ca_file)
		return err_set(err, EINVAL, "%s: no file says whose certificates to take",
			       opt->url);
	k = xcalloc(1, sizeof(*k));
	*k = (struct kubeapi) { .rpc = rpc, .name = xstrdup(opt->name), .url = xstrdup(opt->url) };
	k->source = (struct podspec_source) { .name = k->name, .fetch = fetch, .ctx = k };
	k->queue = (struct spec_queue) {
		.rpc = rpc, .what = k->url, .begin = begin, .cancel = cancel, .ctx = k
	};
	r = transfer_open(opt, TRANSFER_PODS, on_answer, k, &k->transfer, err);
	if (r < 0) {
		kubeapi_free(k);
		return r;
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
	spec_queue_end(&k->queue, "we are stopping");
	transfer_close(k->transfer);
	k->closed = true;
	if (!atomic_load(&k->posted)) /* else arrived() does it: what was posted still runs */
		kubeapi_free(k);
}
