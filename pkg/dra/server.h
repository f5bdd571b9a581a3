/*
 * The kubelet's side of a DRA driver: two sockets, the driver's own and the one that the kubelet's
 * plugin watcher finds, the calls that prepare and unprepare claims, and streams of the health of
 * devices (docs/design/kubelet.md §5.6). A socket that was removed is opened again. On the rpc
 * thread.
 */
#ifndef RAILMATE_DRA_SERVER_H
#define RAILMATE_DRA_SERVER_H

#include <stdbool.h>

#include "kubemsg/dra.h"

struct draserver;
struct draserver_call;
struct rpc;

/* Strings are borrowed, and outlive the server. */
struct draserver_env {
	struct rpc *rpc;
	const char *kubelet_root; /* "/var/lib/kubelet": plugins/, plugins_registry/ */
	const char *plugin_dir;	  /* kubelet.sock is there: who the kubelet is */
	const char *driver;
	/* Each is answered by draserver_reply(), at once or later; the claims live until then. */
	void (*prepare)(void *ctx, struct draserver_call *call, const struct dra_claim_refs *refs);
	void (*unprepare)(void *ctx, struct draserver_call *call,
			  const struct dra_claim_refs *refs);
	/* The kubelet has registered the driver, or has not; also false: a socket cannot be opened
	 * (yet), once for each error. */
	void (*registered)(void *ctx, bool yes, const char *error);
	/* The kubelet that registered the driver does not watch health as 1.37 does: once for each
	 * registration */
	void (*old)(void *ctx);
	unsigned settle_ms; /* how long after the registration that is known; 0: 5 s */
	void *ctx;
};

struct draserver *draserver_open(const struct draserver_env *env);
void draserver_check(struct draserver *s);		 /* are both sockets there? Cheap */
bool draserver_is_registered(const struct draserver *s); /* with the kubelet that runs */
/* The health of all devices, to every stream; before the first call the kubelet knows none. */
void draserver_health(struct draserver *s, const struct dra_health_list *list);
/* One result for each claim of the call. Also after draserver_close(): it is dropped. */
void draserver_reply(struct draserver_call *call, const struct dra_results *results);
/* Streams and calls end, the sockets are removed; the kubelet unregisters the driver. NULL is fine.
 */
void draserver_close(struct draserver *s);

#endif
