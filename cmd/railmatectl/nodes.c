#include "nodes.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "cluster.h"
#include "railmatectl.h"

int nodes_run(const char *node, const char *ns, const char *const *args)
{
	const struct kubectl k = { .parallel = KUBECTL_PARALLEL, .timeout_s = KUBECTL_TIMEOUT_S };
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	bool every = !strcmp(node, "all");
	struct cluster_pod *pods;
	size_t n, kept = 0;
	int r = cluster_pods(&k, ns, a, &pods, &n);
	struct kubectl_call *calls, *ended;
	int least = -1;

	if (r != EXIT_DONE)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (every || !strcmp(node, pods[i].node))
			pods[kept++] = pods[i];
	}
	if (!kept)
		return fail(EXIT_REFUSED,
			    "no railmate pod (label " CLUSTER_LABEL
			    ") in namespace %s runs on %s%s",
			    ns, every ? "any node" : "node ", every ? "" : node);
	calls = arena_array(a, kept, sizeof(*calls));
	ended = arena_array(a, kept, sizeof(*ended));
	for (size_t i = 0; i < kept; i++)
		calls[i].args = cluster_exec(&pods[i], ns, args, a);
	kubectl_run(&k, calls, kept, kubectl_keep, ended);
	for (size_t i = 0; i < kept; i++) {
		struct kubectl_call *call = &ended[i];
		int status = call->status;

		/* What it said, as if it had been asked here. */
		fprintf(stderr, "--- node %s\n", pods[i].node);
		if (status < 0)
			status = fail(EXIT_FAILED, "node %s: %s", pods[i].node, call->why);
		else
			kubectl_print_error(call);
		if (call->status >= 0 && print_out(&call->out) != EXIT_DONE)
			status = EXIT_FAILED;
		kubectl_call_done(call);
		if (least < 0 || status < least)
			least = status;
	}
	return least; /* the lowest exit status counts: it is there somewhere */
}
