/*
 * The GPU plugin of this node, as its client: which GPUs will the container get that has its VFs
 * first? The plugin's own GetPreferredAllocation tells, without side effects by contract, if it
 * gets the question that the kubelet will ask: with the GPUs that are free, and how many the
 * container wants. On the rpc thread.
 *
 * Its socket lies in the kubelet's directories under a name of the vendor's choice. Sockets whose
 * names hold a word of the resource ("nvidia-gpu.sock", "amd.com_gpu" for nvidia.com/gpu,
 * amd.com/gpu) are asked, the best match first, never one of our own; an answer that holds other
 * ids than were offered, or another number of them, shows that it is not the one. ListAndWatch
 * would show more, but a second stream harms: NVIDIA's plugin hands each health event to one of its
 * streams only, and keeps a stream that was cancelled.
 */
#ifndef RAILMATE_KUBECLIENT_GPUPLUGIN_H
#define RAILMATE_KUBECLIENT_GPUPLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "kubemsg/messages.h"

struct gpuplugin;
struct rpc;

/* dirs (borrowed, as socket is): where plugins have their sockets. socket: asked instead of any
 * other; NULL. */
struct gpuplugin *kubeclient_gpuplugin_open(struct rpc *rpc, const char *const *dirs, size_t n_dirs,
					    const char *socket);
void kubeclient_gpuplugin_close(
	struct gpuplugin *g); /* questions under way end first, without an answer; NULL is fine */

/* ids NULL: not known, why is a sentence; random: because the plugin has no preferences, the
 * kubelet will draw. Else they are some of those that were offered, as many as were asked for, each
 * once. Exactly once, never before the return. */
typedef void (*gpuplugin_done_fn)(void *arg, const struct ids *ids, bool random, const char *why);
void kubeclient_gpuplugin_prefer(struct gpuplugin *g, const char *resource,
				 const struct ids *available, size_t size, unsigned timeout_ms,
				 gpuplugin_done_fn done, void *arg);

#endif
