/*
 * The devices that a ResourceClaim was given, by request. PodResources shows every container that
 * has a part of a claim all of its devices (docs/design/kubelet.md §2.4), so the claim is asked
 * itself where containers share one. Data and the interface of a source; the daemon hands one in.
 */
#ifndef RAILMATE_KUBEMSG_DRACLAIM_H
#define RAILMATE_KUBEMSG_DRACLAIM_H

#include <stddef.h>

/* request: "gpus", or "gpus/large" of a list of alternatives. */
struct draclaim_device {
	const char *request, *driver, *pool, *device;
};
struct draclaim {
	const struct draclaim_device *v;
	size_t n;
};

/* claim NULL: it could not be had, why is a sentence. Both live until the return. */
typedef void (*draclaim_done_fn)(void *arg, const struct draclaim *claim, const char *why);

struct draclaim_source {
	/* On the rpc thread; done exactly once, later, on the rpc thread, after timeout_ms at most.
	 */
	void (*fetch)(void *ctx, const char *ns, const char *name, unsigned timeout_ms,
		      draclaim_done_fn done, void *arg);
	void *ctx;
};

#endif
