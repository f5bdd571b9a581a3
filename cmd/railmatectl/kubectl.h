/*
 * kubectl as the way to a cluster: it does every login that the operator's kubeconfig names (exec
 * plugins, OIDC, certificates), and the streams of exec. Several processes run beside each other,
 * each with a time limit and a bounded output, in one loop on the calling thread.
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
#define KUBECTL_ARGS	      40
#define KUBECTL_OUTPUT_MAX    (16u << 20) /* bytes of an answer */

struct kubectl {
	const char *context, *kubeconfig; /* handed on; NULL: kubectl's own */
	unsigned parallel;		  /* processes at once */
	unsigned timeout_s;		  /* of each process */
};

/* Zero-initialised but for args, input, to_file and most; or for why, of a call that is not to be
 * made. */
struct kubectl_call {
	const char
		*args[KUBECTL_ARGS]; /* the words after "kubectl", but for NULLs; none: see why */
	const char *input;	     /* its standard input; NULL: none */
	bool to_file; /* the output becomes fd, a file without a name, in place of out */
	size_t most;  /* bytes of output; more end the process. 0: KUBECTL_OUTPUT_MAX */
	size_t bytes; /* of output that came; above 0 fd counts */
	int fd;
	int status;		/* its exit status; -1: it has none */
	struct strbuf out, err; /* err: the first bytes of its standard error */
	char why[512];		/* why it failed, if it did: a sentence without a full stop */
};

/* Makes all calls; kubectl_call_done() frees the results. SIGINT and SIGTERM end the running
 * processes, and keep the others from being begun. */
void kubectl_run(const struct kubectl *k, struct kubectl_call *calls, size_t n);
void kubectl_call_done(struct kubectl_call *call);
/* Of "kubectl exec": is the exit status that of the program in the container? If not, the program
 * did not run, and why is kubectl's own reason. */
bool kubectl_has_run(const struct kubectl_call *call);
/* Prints the program's standard error to ours, without kubectl's own lines. */
void kubectl_print_error(struct kubectl_call *call);
/* Sets why from the call's standard error; kubectl_run() has done so. */
void kubectl_find_why(struct kubectl_call *call);

#endif
