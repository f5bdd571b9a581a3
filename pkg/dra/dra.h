/*
 * The DRA driver (resource.k8s.io): pools whose VFs pods get by ResourceClaims, explicit ones or
 * those that the scheduler makes of limits. Its parts: the offer to schedulers (slices.h,
 * publish.h), the kubelet's calls (server.h), and the claims of a pod (prepare.h). Late binding
 * chooses and gives the VFs. On the rpc thread.
 */
#ifndef RAILMATE_DRA_DRA_H
#define RAILMATE_DRA_DRA_H

#include <stdbool.h>
#include <stddef.h>

struct dra;
struct draclaim_source;
struct kubeapi_objects;
struct latebind;
struct node;
struct rpc;
struct tracker;
struct vf_state;

/* Borrowed; strings outlive it. */
struct dra_env {
	struct rpc *rpc;
	const char *driver, *node_name, *kubelet_root;
	const char *plugin_dir; /* kubelet.sock is there */
	/* The second one for questions of NodePrepareResources, which wait for no other request */
	struct kubeapi_objects *objects, *questions;
	struct latebind *latebind;
	struct tracker *tracker;
	const struct draclaim_source *claims; /* NULL: none */
};

struct dra *dra_open(const struct dra_env *env);
/* A new node (a reference is taken). The first one opens the sockets and publishes. */
void dra_update(struct dra *d, struct node *node);
void dra_relist(struct dra *d); /* holds have changed */
/* VFs of a container, as they are now. */
void dra_seen(struct dra *d, const struct vf_state *v, size_t n);
void dra_check(struct dra *d); /* something happened in the kubelet's directories. Cheap */
/* The slices stay: claims in use keep their devices over a restart. NULL is fine. */
void dra_close(struct dra *d);

/* Why pods do not get VFs, a phrase; NULL: the kubelet has registered the driver, and the slices
 * are published. Until the next event. */
const char *dra_problem(struct dra *d);

#endif
