/*
 * ResourceClaims from the API server: the devices that a claim was given. One question after the
 * other, on a thread ("kubeapi") and a connection that begin with the first.
 */
#ifndef RAILMATE_KUBEAPI_KUBECLAIMS_INTERNAL_H
#define RAILMATE_KUBEAPI_KUBECLAIMS_INTERNAL_H

#include "kubemsg/draclaim.h"

struct kubeapi_options;
struct kubeclaims;
struct rpc;

/* opt is copied; its url is that of the server: "https://10.96.0.1:443". */
struct kubeclaims *kubeapi_claims_new(struct rpc *rpc, const struct kubeapi_options *opt);
const struct draclaim_source *
kubeapi_claims_source(const struct kubeclaims *k); /* NULL gives NULL */
/* Questions under way end as failed first. On the rpc thread; not from a done. NULL is fine. */
void kubeapi_claims_free(struct kubeclaims *k);

#endif
