/*
 * The daemon's local socket (control/control.h): a server on the main loop, for root only. Requests
 * are answered on the rpc thread. Clients are bounded in number, bytes and time; a slow or silent
 * one does not hold up the others.
 */
#ifndef RAILMATE_LOCALSOCKET_LOCALSOCKET_H
#define RAILMATE_LOCALSOCKET_LOCALSOCKET_H

#include "control/control.h"
#include "latebind/latebind.h"
#include "topo/rails.h"

struct arena;
struct localsocket;
struct err;
struct plugin_env;
struct rpc;
struct strbuf;
struct uv_loop_s;

/* The sources of answers; all on the rpc thread. */
struct localsocket_backend {
	void *ctx;
	/* done exactly once, now or later, on the rpc thread. */
	void (*bind)(void *ctx, const struct control_request *r, unsigned timeout_ms,
		     latebind_done_fn done, void *arg);
	/* The RDMA device of a VF that is bound; NULL: not known. Lives until the next change of
	 * the ledger. */
	const char *(*rdma)(void *ctx, const char *vf);
	/* The PCI address of a VF's PF; NULL: not known. In the arena. */
	const char *(*pf)(void *ctx, const char *vf, struct arena *a);
	struct topo_rail (*rail)(void *ctx, const char *vf);
	int (*ledger)(void *ctx, struct strbuf *out, struct err *err);
	int (*pools)(void *ctx, struct strbuf *out, struct err *err);
	int (*release)(void *ctx, const char *vf,
		       struct err *err); /* -ENOENT: no container holds it */
	/* 0: the pod of the request holds its VF; -ENOENT: no container; -EPERM: another pod. */
	int (*whose)(void *ctx, const struct control_request *r, struct err *err);
};

/* Ledger and late binding of the plugins, as they are when they are asked; env outlives it. */
struct localsocket_backend localsocket_backend_of(const struct plugin_env *env);

/*
 * Listens at path (mode 0600; its directory is made). When that fails, for instance because an
 * older daemon has not ended yet, it is logged and tried again and again: a device plugin works
 * without. path and all that the backend points to outlive it.
 */
struct localsocket *localsocket_open(struct uv_loop_s *loop, const char *path, struct rpc *rpc,
				     const struct localsocket_backend *backend);
/* Ends everything on the loop, which has to run once more afterwards. When the rpc thread has
 * ended. NULL is fine. */
void localsocket_close(struct localsocket *c);
void localsocket_free(struct localsocket *c); /* when the loop has run */

#endif
