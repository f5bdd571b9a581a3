/*
 * Pod specs from the kubelet's Pods API, <kubelet-root>/pods-api/pods-api.sock (KEP-4188; alpha and
 * off in 1.36): no token, no right, no certificate, and half a millisecond. On the rpc thread.
 */
#ifndef RAILMATE_KUBECLIENT_PODSAPI_H
#define RAILMATE_KUBECLIENT_PODSAPI_H

#include "kubemsg/podspec.h"

struct rpc;

/* Opens nothing yet. [any thread] */
struct podspec_source *kubeclient_podsapi_open(struct rpc *rpc, const char *socket);
/* Fetches under way end as failed first. Not from a done; NULL is fine. */
void kubeclient_podsapi_close(struct podspec_source *source);

#endif
