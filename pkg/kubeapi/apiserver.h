/* The API server's address and our identity there, as a pod finds them: addresses in the
 * environment, a folder with token and ca.crt. */
#ifndef RAILMATE_KUBEAPI_APISERVER_H
#define RAILMATE_KUBEAPI_APISERVER_H

struct err;

/* https://HOST:PORT, from $KUBERNETES_SERVICE_HOST, an IPv6 address in brackets, and _PORT. Heap.
 */
int apiserver_url(char **ret, struct err *err);
/* given, or $NODE_NAME; borrowed. */
int apiserver_node(const char *given, const char **ret, struct err *err);

#endif
