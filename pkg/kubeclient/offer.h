/*
 * The kubelet's offer: the healthy devices of every device plugin, as the kubelet has them
 * (GetAllocatableResources of PodResources, free of side effects; docs/design/kubelet.md §2.1). One
 * question every few seconds serves all resources. On the rpc thread.
 */
#ifndef RAILMATE_KUBECLIENT_OFFER_H
#define RAILMATE_KUBECLIENT_OFFER_H

#include <stdint.h>

struct offer;
struct pod_container;
struct podres;
struct rpc;

/* offered: one container that holds all devices, or NULL where the kubelet gave no answer. It shows
 * the moment asked_ms (monotonic) or a later one, and lives until the return. */
typedef void (*offer_hear_fn)(void *ctx, const struct pod_container *offered, int64_t asked_ms);

/* podres is borrowed, and outlives the offer. Nothing is asked without a subscriber. */
struct offer *kubeclient_offer_open(struct rpc *rpc, struct podres *podres);
void kubeclient_offer_close(struct offer *o); /* no subscription is left; NULL is fine */
/* hear is called with every answer, never before the return. hear NULL ends the subscription of
 * ctx. */
void kubeclient_offer_subscribe(struct offer *o, offer_hear_fn hear, void *ctx);
/* Ask within so many milliseconds: a question that is under way does not count. */
void kubeclient_offer_look(struct offer *o, unsigned ms);

#endif
