/*
 * The requests of pods, from a source of pod specs: the API server (kubeapi, over HTTPS), or the
 * kubelet's Pods API (gRPC, where it has one). Data and the interface of a source; sources are
 * handed in by the daemon.
 */
#ifndef RAILMATE_KUBEMSG_PODSPEC_H
#define RAILMATE_KUBEMSG_PODSPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum spec_kind {
	SPEC_INIT,
	SPEC_SIDECAR, /* an init container with restartPolicy Always */
	SPEC_APP,
};

/* Of a device plugin: an extended resource ("vendor/name") that no DRA driver serves. */
struct spec_limit {
	const char *resource;
	int64_t count;
};
/* A part of a ResourceClaim in the pod's namespace, by the name that the claim has there. request
 * NULL: all of it. */
struct spec_claim {
	const char *claim, *request;
};
struct spec_container {
	const char *name;
	enum spec_kind kind;
	const struct spec_limit *limits;
	size_t n_limits;
	const struct spec_claim *claims;
	size_t n_claims; /* also those that the scheduler made of limits (DRAExtendedResource) */
};
/* One that has not ended: Succeeded and Failed pods are in no list. */
struct spec_pod {
	const char *ns, *name, *uid;
	bool deleted;	 /* has a deletionTimestamp */
	int64_t created; /* creationTimestamp, Unix seconds; 0 unknown (static pods) */
	/* Why its containers are not known, the end of a sentence: then the list has none of them;
	 * NULL: they are */
	const char *unread;
	const struct spec_container *containers;
	size_t n_containers; /* init containers first, in spec order */
};
struct spec_list {
	const struct spec_pod *v;
	size_t n;
};

/*
 * A list under construction. The text of a pod's author is bounded for each pod, so that it costs
 * no other pod anything: SPEC_POD_BYTES_MAX are 25 containers with five resources each. As many
 * pods as a node can run fit into SPEC_LIST_BYTES_MAX, whatever their authors wrote.
 */
#define SPEC_POD_BYTES_MAX  8192
#define SPEC_LIST_BYTES_MAX ((size_t)6 << 20)
#define SPEC_PARTS_MAX	    512 /* containers, or limits and parts of claims, that are looked at */
#define SPEC_CLAIMS_MAX	    128 /* ResourceClaims of a pod: names are searched one by one */

struct spec_pods {
	struct arena *arena; /* borrowed: the memory that the pods point to */
	struct spec_pod *v;  /* heap */
	size_t n, cap;
};

void kubemsg_podspec_done(struct spec_pods *pods);

/* A copy in the order of names, which kubemsg_podspec_find() needs. */
struct spec_list kubemsg_podspec_copy(const struct spec_list *specs, struct arena *a);
const struct spec_pod *kubemsg_podspec_find(const struct spec_list *specs, const char *ns,
					    const char *name); /* NULL: not in it */

/* specs NULL: could not be had, why is a sentence. Both live until the return. */
typedef void (*podspec_done_fn)(void *arg, const struct spec_list *specs, const char *why);

struct podspec_source {
	const char *name; /* "API server" */
	/* On the rpc thread; done exactly once, later, on the rpc thread, after timeout_ms at most.
	 */
	void (*fetch)(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg);
	void *ctx;
};

/*
 * The devices that a ResourceClaim was given, by request. PodResources shows every container that
 * has a part of a claim all of its devices (docs/design/kubelet.md §2.4), so the claim is asked
 * itself where containers share one. Data and the interface of a source; the daemon hands one in.
 */

/* request: "gpus", or "gpus/large" of a list of alternatives. */
struct draclaim_device {
	const char *request, *driver, *pool, *device;
	const char *share; /* the UID of its share of the device; NULL: it is not shared */
	int64_t vfs;	   /* the share's capacity "vfs"; 0: none */
	bool admin;	   /* adminAccess: other claims have the device as well */
};
/* A pod that may use the claim. */
struct draclaim_user {
	const char *pod, *uid;
};
struct draclaim {
	const char *name, *uid;
	bool deleted; /* has a deletionTimestamp */
	const struct draclaim_device *v;
	size_t n; /* 0: it is not allocated */
	const struct draclaim_user *users;
	size_t n_users;
};

struct draclaim kubemsg_draclaim_copy(const struct draclaim *claim, struct arena *a);

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
