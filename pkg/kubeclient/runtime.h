/*
 * Questions to the container runtime over CRI: does it give a container the CDI devices that we
 * name? Asked before a pool that binds late is registered, because a runtime without CDI ignores
 * the names silently. And: does one of its CNI plugins hand the device ids of containers on to
 * other plugins, which cannot read slots? On the rpc thread.
 */
#ifndef RAILMATE_KUBECLIENT_RUNTIME_H
#define RAILMATE_KUBECLIENT_RUNTIME_H

struct rpc;
struct runtime;

enum runtime_cdi {
	RUNTIME_CDI, /* it does */
	RUNTIME_NO_CDI,
	/* Not known: no socket, none that speaks CRI, a runtime that we do not know */
	RUNTIME_CDI_UNKNOWN,
	RUNTIME_SILENT, /* a socket is there, without an answer (yet) */
};

enum runtime_cni {
	RUNTIME_CNI_UNKNOWN,
	RUNTIME_CNI_KEEPS_IDS,	/* none of its CNI plugins is known to */
	RUNTIME_CNI_PASSES_IDS, /* Multus, DANM: to the plugins that the pod's networks name */
};

/* Sentences: without an end; they live until the callback returns. */
struct runtime_answer {
	enum runtime_cdi cdi;
	const char *sentence; /* the finding; NULL: RUNTIME_CDI */
	const char *name;     /* "containerd 2.1.9"; NULL: no answer yet */
	enum runtime_cni cni;
	const char *cni_sentence; /* the finding; NULL: RUNTIME_CNI_KEEPS_IDS */
};
typedef void (*runtime_done_fn)(void *arg, const struct runtime_answer *answer);

/* socket: the runtime's; NULL: those below root that runtimes have by default, and the first one
 * that answers is it. Opens nothing yet. */
struct runtime *kubeclient_runtime_open(struct rpc *rpc, const char *root, const char *socket);
/* done exactly once, never before the return. Each socket has timeout_ms for each of two calls. */
void kubeclient_runtime_ask(struct runtime *r, unsigned timeout_ms, runtime_done_fn done,
			    void *arg);
void kubeclient_runtime_close(
	struct runtime *r); /* open questions end as RUNTIME_SILENT; NULL is fine */

#endif
