/*
 * Pod specs from the kubelet's Pods API, <kubelet-root>/pods-api/pods-api.sock (KEP-4188; alpha and
 * off in 1.36): no token, no right, no certificate, and half a millisecond. On the rpc thread.
 */
#ifndef RAILMATE_KUBECLIENT_PODSAPI_H
#define RAILMATE_KUBECLIENT_PODSAPI_H

#include "kubemsg/podspec.h"

struct podsapi;
struct rpc;

struct podsapi *podsapi_new(struct rpc *rpc,
			    const char *socket); /* opens nothing yet [any thread] */
const struct podspec_source *podsapi_source(const struct podsapi *p); /* [any thread] */
/* Fetches under way end as failed first. Not from a done; NULL is fine. */
void podsapi_free(struct podsapi *p);

#endif
