/* A container's GPUs as PCI functions, however the kubelet names them: devices of plugins, and of
 * DRA drivers. Pure. */
#ifndef RAILMATE_PODS_GPUS_H
#define RAILMATE_PODS_GPUS_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/inventory.h"
#include "kubemsg/messages.h"

struct arena;
struct node;

struct pods_gpus {
	int *v; /* PCI indices, ascending, each once */
	size_t n;
	size_t n_unknown;    /* ids and devices of GPUs, or parts of them, that are not in v */
	const char *unknown; /* a sentence: one cannot be identified (a MIG device); NULL: none */
	const char *driver;  /* the DRA driver that gives it GPUs, or parts of them; NULL: none */
};
/* Does the device's name, or one of its CDI names, tell which GPU of this node it is? */
bool pods_names_gpu(const struct hw_inventory *inv, const struct dynamic *d);
/* "2 GPUs", "3 GPUs or parts of them, of which 2 are not known". In the arena. */
const char *pods_say_gpus(struct gpu_set gpus, struct arena *a);
/* v: all but those that come as the resource `except`. */
struct pods_gpus pods_gpus(const struct node *node, const struct pod_container *c,
			   const char *except, struct arena *a);

/*
 * Of a claim's GPUs that c is shown: there are several, and they are perhaps not all its own, for
 * several containers of the pod have a part of the claim, and the kubelet shows each of them all
 * (docs/design/kubelet.md §2.4). Init containers, which it does not show, may have a part as well.
 */
enum pods_claim {
	PODS_CLAIM_ONE, /* or none */
	PODS_CLAIM_SEVERAL,
	PODS_CLAIM_SHARED,
};
enum pods_claim pods_claim_gpus(const struct node *node, const struct pod *pod,
				const struct pod_container *c, const char *claim);

#endif
