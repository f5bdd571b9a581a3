/*
 * Pod specs from the API server, over HTTPS with the service account's token: its list of the pods
 * of one node, page by page. A thread of its own ("kubeapi") talks, through libcurl, and reads the
 * answer pod by pod; the connection stays open for the next question.
 *
 * Every fetch asks anew: a pod is admitted within milliseconds of its arrival, and an older answer
 * does not know it. Those that come while one is under way share the next.
 */
#ifndef RAILMATE_KUBEAPI_KUBEAPI_H
#define RAILMATE_KUBEAPI_KUBEAPI_H

struct err;

struct kubeapi_options {
	const char *name; /* of the source, for people: "API server" */
	const char *url;  /* https:// */
	/* Read anew for each fetch, because tokens rotate; NULL: none is sent. With one the process
	 * leaves no core. */
	const char *token_file;
	const char *ca_file; /* who may have signed the server's certificate; only these */
};

/* The API server's address and our identity there, as a pod finds them: addresses in the
 * environment, a folder with token and ca.crt. */

/* https://HOST:PORT, from $KUBERNETES_SERVICE_HOST, an IPv6 address in brackets, and _PORT. Heap.
 */
int apiserver_url(char **ret, struct err *err);
/* given, or $NODE_NAME; borrowed. */
int apiserver_node(const char *given, const char **ret, struct err *err);

#endif
