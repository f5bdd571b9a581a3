/* Messages of the services that the kubelet calls in a DRA driver. As messages.h has it. */
#ifndef RAILMATE_KUBEMSG_DRA_H
#define RAILMATE_KUBEMSG_DRA_H

#include "kubemsg/messages.h"

/* Of the v1 service of Kubernetes 1.34, and of that of 1.32: one has the messages of the other. */
#define PATH_DRA_PREPARE   "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define PATH_DRA_UNPREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"
#define PATH_DRA_PREPARE_V1BETA1                                                                   \
	"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources"
#define PATH_DRA_UNPREPARE_V1BETA1                                                                 \
	"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources"
#define PATH_DRA_HEALTH		 "/v1.DRAResourceHealth/NodeWatchResources"	  /* 1.37 */
#define PATH_DRA_HEALTH_V1ALPHA1 "/v1alpha1.DRAResourceHealth/NodeWatchResources" /* 1.34 */

/* A ResourceClaim, and some of them. */
struct dra_claim_ref {
	const char *ns, *uid, *name;
};
struct dra_claim_refs {
	struct dra_claim_ref *v;
	size_t n;
};

/* A device that was prepared. requests: names of the claim's requests; none: of all. */
struct dra_device {
	struct ids requests, cdi;
	const char *pool, *device, *share; /* share NULL: none */
};
/* What became of a claim. error NULL: good; else the devices count for nothing. */
struct dra_result {
	const char *uid, *error;
	const struct dra_device *v;
	size_t n;
};
struct dra_results {
	const struct dra_result *v;
	size_t n;
};

enum dra_state { DRA_UNKNOWN, DRA_HEALTHY, DRA_UNHEALTHY };
/* timeout_s: how long the kubelet believes it without hearing it again; 0: its default, 30 s. */
struct dra_health {
	const char *pool, *device, *message; /* message NULL: none; 1,024 characters are read */
	int health;			     /* enum dra_state */
	int64_t since_s, timeout_s;	     /* since_s: Unix time */
};
struct dra_health_list {
	const struct dra_health *v;
	size_t n;
};

/* To be read: */
extern const struct kubemsg_type kubemsg_dra_claims; /* struct dra_claim_refs: of both calls */
/* To be written: */
extern const struct kubemsg_type kubemsg_dra_prepare_reply;   /* struct dra_results */
extern const struct kubemsg_type kubemsg_dra_unprepare_reply; /* struct dra_results */
extern const struct kubemsg_type kubemsg_dra_health;	      /* struct dra_health_list */

#endif
