/*
 * The daemon's local socket (control/control.h): a server on the main loop, for root only. Requests
 * are answered on the rpc thread. Clients are bounded in number, bytes and time; a slow or silent
 * one does not hold up the others.
 */
#ifndef RAILMATE_LOCALSOCKET_LOCALSOCKET_H
#define RAILMATE_LOCALSOCKET_LOCALSOCKET_H

#include "control/control.h"

struct arena;
struct localsocket;
struct err;
struct plugin_env;
struct rpc;
struct uv_loop_s;

/* err NULL: reply is the answer; else why there is none. */
typedef void (*localsocket_done_fn)(void *arg, const struct control_reply *reply,
				    const struct err *err);

/* The source of answers, on the rpc thread. */
struct localsocket_backend {
	void *ctx;
	/* done exactly once, now or later, on the rpc thread; a bind within LOCALSOCKET_BIND_MS.
	 * The request and the arena live until then. */
	void (*answer)(void *ctx, const struct control_request *r, struct arena *a,
		       localsocket_done_fn done, void *arg);
};
#define LOCALSOCKET_BIND_MS 10000 /* a client's own timeouts are longer */

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
