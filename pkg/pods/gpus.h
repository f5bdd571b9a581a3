/* A container's GPUs as PCI functions, however the kubelet names them: devices of plugins, and what
 * DRA drivers gave. Pure. */
#ifndef RAILMATE_PODS_GPUS_H
#define RAILMATE_PODS_GPUS_H

#include <stdbool.h>
#include <stddef.h>

#include "kubemsg/messages.h"

struct arena;
struct hw_inventory;
struct node;

/* All but those that come as the resource `except`: PCI indices, ascending, each once. */
size_t gpus_held(const struct node *node, const struct pod_container *c, const char *except,
		 struct arena *a, int **ret);
/* Does it have one that cannot be told apart (a MIG device)? A sentence, or NULL. */
const char *gpus_unknown(const struct node *node, const struct pod_container *c, struct arena *a);
int gpus_of_dynamic(const struct hw_inventory *inv, const struct dynamic *d); /* -1: none */
/* The DRA driver that gives it GPUs, or parts of them; NULL: none does. */
const char *gpus_driver(const struct node *node, const struct pod_container *c);
bool gpus_are_several(const struct node *node, const struct pod_container *c,
		      const char *claim); /* of this claim */
/*
 * Are the claim's GPUs that c is shown perhaps not all its own? Several containers of the pod have
 * a part of the claim, it has several GPUs, and the kubelet shows each of them all
 * (docs/design/kubelet.md §2.4). Init containers, which it does not show, may have a part as well.
 */
bool gpus_are_shared(const struct node *node, const struct pod *pod, const struct pod_container *c,
		     const char *claim);

#endif
