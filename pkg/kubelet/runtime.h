/*
 * What the container runtime says of itself over CRI: will it give a container the CDI devices that we name? Asked before a pool that
 * binds late is registered, for a runtime that cannot ignores the names without a word. On the rpc thread.
 */
#ifndef RAILMATE_KUBELET_RUNTIME_H
#define RAILMATE_KUBELET_RUNTIME_H

#include "base/bytes.h"

struct arena;
struct err;
struct rpc;
struct runtime;

enum runtime_cdi {
	RUNTIME_CDI,	     /* it does */
	RUNTIME_NO_CDI,
	RUNTIME_CDI_UNKNOWN, /* it cannot be told: no socket, none that speaks CRI, a runtime that we do not know */
	RUNTIME_SILENT,	     /* a socket is there, and nobody answers (yet) */
};

/* socket: the runtime's; NULL: those below root that runtimes have by default, and the first one that answers is it. Opens nothing yet. */
struct runtime *runtime_open(struct rpc *rpc, const char *root, const char *socket);
/* done exactly once, never before the return; sentence: what was found, without an end, for all but RUNTIME_CDI. Each socket has
 * timeout_ms for each of two calls. */
void runtime_ask(struct runtime *r, unsigned timeout_ms,
		 void (*done)(void *arg, enum runtime_cdi answer, const char *sentence), void *arg);
void runtime_close(struct runtime *r); /* what is asked ends as RUNTIME_SILENT; NULL is fine */

/*
 * The decision alone. config: what containerd tells of its configuration, as JSON; NULL not known. ret_sentence: "containerd 1.6.20 …",
 * in the arena.
 */
enum runtime_cdi runtime_judge(const char *name, const char *version, const char *config, struct arena *a, const char **ret_sentence);

/* The messages, both ways: the runtime of the tests speaks through this header, too. */
#define PATH_RUNTIME_VERSION "/runtime.v1.RuntimeService/Version"
#define PATH_RUNTIME_STATUS  "/runtime.v1.RuntimeService/Status"

struct runtime_version {
	const char *name, *version;
};
struct bytes msg_encode_runtime_version(const struct runtime_version *v, struct arena *a);
int msg_decode_runtime_version(struct bytes in, struct arena *a, struct runtime_version *ret, struct err *err);
struct bytes msg_encode_runtime_status_request(struct arena *a); /* verbose */
struct bytes msg_encode_runtime_status(const char *config, struct arena *a); /* NULL: none is told */
int msg_decode_runtime_status(struct bytes in, struct arena *a, const char **ret_config, struct err *err); /* NULL: there is none */

#endif
