#include "kubeapi/kubeapi.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/transfer.h"
#include "kubeclient/podspec_queue.h"
#include "rpc/rpc.h"

struct kubeapi {
	struct podspec_source source;
	char *name, *url;
	struct transfer *transfer;
	struct spec_queue queue;
};

static void kubeapi_free(struct kubeapi *k)
{
	free(k->name);
	free(k->url);
	free(k);
}

static void on_answer(void *arg, struct answer *a)
{
	struct kubeapi *k = arg;
	struct spec_list list = { a->pods.list.v, a->pods.list.n };

	kubeclient_queue_answer(&k->queue, a->err.code ? NULL : &list,
				a->err.code ? a->err.msg : NULL);
	kubeapi_answer_free(a);
}

static void begin(void *ctx, unsigned timeout_ms)
{
	struct kubeapi *k = ctx;

	(void)timeout_ms; /* cancel() comes */
	kubeapi_transfer_begin(k->transfer, NULL);
}

static void cancel(void *ctx)
{
	struct kubeapi *k = ctx;

	kubeapi_transfer_cancel(k->transfer);
}

static void fetch(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	struct kubeapi *k = ctx;

	kubeclient_queue_add(&k->queue, timeout_ms, done, arg);
}

int kubeapi_open(struct rpc *rpc, const struct kubeapi_options *opt, struct kubeapi **ret,
		 struct err *err)
{
	struct kubeapi *k;
	int r;

	if (!str_starts(opt->url, "https://"))
		return err_set(err, EINVAL, "'%s' does not begin with https://", opt->url);
	if (!opt->ca_file)
		return err_set(err, EINVAL, "%s: no file says whose certificates to take",
			       opt->url);
	k = xcalloc(1, sizeof(*k));
	*k = (struct kubeapi) { .name = xstrdup(opt->name), .url = xstrdup(opt->url) };
	k->source = (struct podspec_source) { .name = k->name, .fetch = fetch, .ctx = k };
	k->queue = (struct spec_queue) {
		.rpc = rpc, .what = k->url, .begin = begin, .cancel = cancel, .ctx = k
	};
	r = kubeapi_transfer_open(opt, TRANSFER_PODS, rpc, on_answer, k, &k->transfer, err);
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
	k->queue.ended = true;
	kubeclient_queue_answer(&k->queue, NULL, "railmated is stopping");
	kubeapi_transfer_close(k->transfer);
	kubeapi_free(k);
}
