/*
 * NodePrepareResources: ResourceClaims of a pod → VFs for its containers. Asks for the claims and
 * the pod's spec, forms the parts that containers share, and lets late binding choose
 * (latebind_prepare()): all GPUs of the pod are known by then, whichever API gave them. On the rpc
 * thread.
 */
#ifndef RAILMATE_DRA_PREPARE_H
#define RAILMATE_DRA_PREPARE_H

#include "kubeapi/objects.h"
#include "kubemsg/dra.h"

struct draclaim_source;
struct latebind;
struct node;
struct prepares;
struct rpc;
struct tracker;

struct prepare_env {
	struct rpc *rpc;
	const char *driver; /* our name as a DRA driver */
	const char *node_name;
	/* kubeapi_objects_do(), with ctx its objects */
	void (*ask)(void *ctx, const struct api_request *request, api_done_fn done, void *arg);
	void *ctx;
	struct latebind *latebind;
	struct tracker *tracker;
	const struct draclaim_source *claims;
	const char *state;   /* the kubelet's checkpoint of claims; NULL: none */
	unsigned state_ms;   /* how often it is read; 0: 60000 */
	unsigned ask_ms;     /* how long the API server may take for each answer; 0: 2000 */
	unsigned timeout_ms; /* of late binding; 0: 10000 */
};

struct prepares *prepare_open(const struct prepare_env *env);
void prepare_update(struct prepares *p, struct node *node); /* a reference is taken */
/* Those under way end with an error first; NULL is fine. */
void prepare_close(struct prepares *p);

/* One result for each claim, in their order: its devices, or the sentence why not. Lives until the
 * return. */
typedef void (*prepare_done_fn)(void *arg, const struct dra_results *results);

/* done once, now or later. refs are copied. The same claim again gives the same devices. */
void prepare_claims(struct prepares *p, const struct dra_claim_refs *refs, prepare_done_fn done,
		    void *arg);
/* Their VFs are free when nothing uses them any more. done: when that is on disk, and what was
 * preparing them has ended. Claims that are not known are fine. */
void unprepare_claims(struct prepares *p, const struct dra_claim_refs *refs, prepare_done_fn done,
		      void *arg);

#endif
