/*
 * kubectl as the way to a cluster: every way to log in that the operator's kubeconfig names (exec
 * plugins, OIDC, certificates), and the streams of exec, are its business. Several processes run
 * beside each other, each with a time limit and a bounded output, in one loop on the calling
 * thread.
 */
#ifndef RAILMATE_CMD_KUBECTL_H
#define RAILMATE_CMD_KUBECTL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define KUBECTL_PARALLEL      16
#define KUBECTL_PARALLEL_MAX  256
#define KUBECTL_TIMEOUT_S     30
#define KUBECTL_TIMEOUT_MAX_S 86400
#define KUBECTL_OUTPUT_MAX    (16u << 20) /* bytes of an answer that is kept in memory */

struct kubectl {
	const char *context, *kubeconfig; /* handed on; NULL: kubectl's own */
	unsigned parallel;		  /* processes at once */
	unsigned timeout_s;		  /* of each process; 0: none */
	bool must_finish;		  /* a signal ends neither it nor us: to clean up */
};

/* Zero-initialised but for what follows "kubectl". */
struct kubectl_call {
	const char *const *args; /* NULL at the end */
	const char *input;	 /* its standard input; NULL: empty */
	const char *path;	 /* a new file that gets its output in place of out; NULL */
	size_t most;		/* bytes of output; what is longer ends it. 0: KUBECTL_OUTPUT_MAX */
	size_t bytes;		/* of output that came */
	int status;		/* its exit status; -1: it has none, and why says so */
	struct strbuf out, err; /* err: the first bytes of its standard error */
	char why[160];
};

/* Called once for each call, in the order in which they end; out and err are freed afterwards,
 * unless they are taken away with strbuf_steal(). */
typedef void (*kubectl_done_fn)(void *arg, struct kubectl_call *call, size_t index);

/* All calls, and what became of each; SIGINT and SIGTERM end those that run, and keep the others
 * from being begun. False: such a signal came. */
bool kubectl_run(const struct kubectl *k, struct kubectl_call *calls, size_t n,
		 kubectl_done_fn done, void *arg);
/* For kubectl_run(), arg an array of n calls: each goes there, kubectl_call_done() is the caller's.
 */
void kubectl_keep(void *arg, struct kubectl_call *call, size_t index);
/* One call; out and err are the caller's: kubectl_call_done(). */
bool kubectl_run_one(const struct kubectl *k, struct kubectl_call *call);
void kubectl_call_done(struct kubectl_call *call);
/* Of "kubectl exec": is the exit status that of the program in the container? Otherwise there was
 * none, and kubectl_put_why() has kubectl's own reason. */
bool kubectl_has_run(const struct kubectl_call *call);
/* What it said on standard error, to ours; without what kubectl adds to it. */
void kubectl_print_error(struct kubectl_call *call);
/* Why it failed, in words, without a full stop: what it said on standard error, else its status. */
void kubectl_put_why(const struct kubectl_call *call, struct strbuf *out);

#endif
