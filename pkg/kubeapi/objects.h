/*
 * Requests about objects of the API server: any method, one after the other over one connection,
 * with a thread of its own ("kubeapi"). On the rpc thread.
 */
#ifndef RAILMATE_KUBEAPI_OBJECTS_H
#define RAILMATE_KUBEAPI_OBJECTS_H

#include <stdbool.h>

#include "base/bytes.h"

struct err;
struct kubeapi_objects;
struct rpc;

/* Copied. */
struct api_request {
	const char *method;	 /* "GET" */
	const char *path;	 /* "/apis/resource.k8s.io/v1/…"; NULL: it has a bad name */
	const char *accept;	 /* NULL: Kubernetes' protobuf */
	const char *type, *body; /* "application/json"; NULL: none */
	unsigned timeout_ms;	 /* from here to the answer */
};

/* status: of HTTP, 0: there was no answer. why: a sentence; NULL: it was done, and body is the
 * answer. All live until the return. */
typedef void (*api_done_fn)(void *arg, long status, struct bytes body, const char *why);

/* service_account: a folder with token and ca.crt. An error: no server is known, or no token is
 * there. Before rpc is busy, on any thread. */
int kubeapi_objects_open(struct rpc *rpc, const char *service_account, struct kubeapi_objects **ret,
			 struct err *err);
/* done once, later. The first one loads libcurl. */
void kubeapi_objects_do(struct kubeapi_objects *o, const struct api_request *request,
			api_done_fn done, void *arg);
/* Requests under way end as failed first. Not from a done. NULL is fine. */
void kubeapi_objects_close(struct kubeapi_objects *o);
/* May it stand in a path: has it what names in Kubernetes are made of? */
bool kubeapi_objects_is_name(const char *s);

#endif
