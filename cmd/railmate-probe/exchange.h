/*
 * Two railmate-probes agree on what to run: TCP, one message a line of JSON, version 1, each at
 * most EXCHANGE_MAX bytes, a time limit on every step, a shared token before anything else. A
 * foreign, malformed or late peer is refused with a sentence and takes nothing down.
 */
#ifndef RAILMATE_PROBE_EXCHANGE_H
#define RAILMATE_PROBE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

struct report;
struct told;

#define EXCHANGE_VERSION   1
#define EXCHANGE_MAX	   ((size_t)64 << 10)
#define EXCHANGE_PORT	   18525
#define EXCHANGE_TOKEN_MIN 8
#define EXCHANGE_TOKEN_MAX 128

struct peer_options {
	const char *host;  /* of the client; NULL: serve */
	int port;	   /* EXCHANGE_PORT */
	const char *token; /* never NULL; less than EXCHANGE_TOKEN_MIN characters are refused */
	bool gpu;	   /* from GPUs' memory to that of GPUs, each by its VF */
	bool crossed;	   /* other rails too, not only the same */
	bool isolation;	   /* what must fail: another P_Key, a foreign GID */
	bool once;	   /* the server ends after one client */
	double seconds;	   /* all runs together, about; 0: 8 */
	int wait_s;	  /* the client tries to connect for so long; the server waits so long for a
			     client, 0: for ever */
	int step_ms;	  /* limit of each message; 0: ten seconds */
	const char *root; /* of a test; NULL: "/" */
};

/* Listens, serves one client at a time with the container's own devices. 0, or a negative errno
 * with a finding. */
int peer_serve(const struct told *told, const struct peer_options *o, struct report *r);
/* Rail by rail, all rails at once, crossed and isolated on request; measures in the report. */
int peer_run(const struct told *told, const struct peer_options *o, struct report *r);

#endif
