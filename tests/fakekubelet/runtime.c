/* The container runtime, as far as it says who it is: the command `runtime`. It does not go down
 * with the kubelet. */
#include "kubelet.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"

static void on_version(void *ctx, struct rpc_call *call, struct bytes request)
{
	const struct kubelet *k = ctx;
	struct runtime_version v = { k->runtime_says[0], k->runtime_says[1] };

	(void)request;
	rpc_reply(call, RPC_OK, NULL, peer_encode_runtime_version(&v, rpc_call_arena(call)));
}

static void on_status(void *ctx, struct rpc_call *call, struct bytes request)
{
	const struct kubelet *k = ctx;
	const struct runtime_status s = { k->runtime_says[2], k->runtime_says[3] };

	(void)request;
	rpc_reply(call, RPC_OK, NULL, peer_encode_runtime_status(&s, rpc_call_arena(call)));
}

static void says(struct kubelet *k, size_t i, const char *word)
{
	free(k->runtime_says[i]);
	k->runtime_says[i] = word ? xstrdup(word) : NULL;
}

int runtime_serve(struct kubelet *k, const char *socket, const char *name, const char *version,
		  const char *config, const char *cni, struct err *err)
{
	static const struct rpc_method methods[] = {
		{ .path = PATH_RUNTIME_VERSION, .unary = on_version },
		{ .path = PATH_RUNTIME_STATUS, .unary = on_status }
	};

	says(k, 0, name);
	says(k, 1, version);
	says(k, 2, config);
	says(k, 3, cni);
	if (k->runtime)
		return 0;
	return rpc_server_open(k->rpc, socket, methods, ARRAY_LEN(methods), k, &k->runtime, err);
}
