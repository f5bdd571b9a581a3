#include "kubeapi/apiserver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

int apiserver_url(char **ret, struct err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");

	if (!host || !*host)
		return err_set(err, EINVAL,
			       "KUBERNETES_SERVICE_HOST does not say where the API server is");
	*ret = xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
			 port && *port ? port : "443");
	return 0;
}

int apiserver_node(const char *given, const char **ret, struct err *err)
{
	static const char legal[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	const char *node = given ? given : getenv("NODE_NAME");

	if (!node || !*node)
		return err_set(err, EINVAL,
			       "neither --node-name nor NODE_NAME says which node this is");
	if (node[strspn(node, legal)])
		return err_set(err, EINVAL, "'%s' is not the name of a node", node);
	*ret = node;
	return 0;
}
