/*
 * The GPU plugin of this node, as its client: which GPUs will the container get that has its VFs
 * first? The plugin's own GetPreferredAllocation says it, without side effects by contract, if it
 * is asked what the kubelet will ask it: with the GPUs that are free, and how many the container
 * wants. On the rpc thread.
 *
 * Its socket lies in the kubelet's directories under a name of the vendor's choice. Sockets whose
 * names hold a word of the resource
 * ("nvidia-gpu.sock", "amd.com_gpu" for nvidia.com/gpu, amd.com/gpu) are asked, the best match
 * first, never one of our own; an answer that holds other ids than were offered, or another number
 * of them, shows that it is not the one. ListAndWatch would tell more, but a second stream harms:
 * NVIDIA's plugin hands each health event to one of its streams only, and keeps a stream that was
 * cancelled.
 */
#ifndef RAILMATE_KUBELET_GPUPLUGIN_H
#define RAILMATE_KUBELET_GPUPLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "kubelet/messages.h"

struct arena;
struct gpuplugin;
struct hw_inventory;
struct rpc;

/* dirs (borrowed, as socket is): where plugins have their sockets. socket: asked instead of any
 * other; NULL. */
struct gpuplugin *gpuplugin_open(struct rpc *rpc, const char *const *dirs, size_t n_dirs,
				 const char *socket);
void gpuplugin_close(
	struct gpuplugin *g); /* questions under way end first, without an answer; NULL is fine */

/* ids NULL: not known, why is a sentence; random: because the plugin has no preferences, the
 * kubelet will draw. Else they are some of those that were offered, as many as were asked for, each
 * once. Exactly once, never before the return. */
typedef void (*gpuplugin_done_fn)(void *arg, const struct ids *ids, bool random, const char *why);
void gpuplugin_prefer(struct gpuplugin *g, const char *resource, const struct ids *available,
		      size_t size, unsigned timeout_ms, gpuplugin_done_fn done, void *arg);

/* --- the question, pure --- */

struct gpu_question {
	const char *resource;
	struct ids free; /* by id; they live as long as what is allocatable */
};

/*
 * The free ids of a GPU resource: what is allocatable and nobody holds. resource NULL: the one with
 * the most GPUs, ours left out. nodes: only GPUs on these NUMA nodes (n_nodes 0: on all). false: no
 * prediction is possible, why is a sentence: no such GPUs, fewer free than wanted, or ids that
 * stand for a part of a GPU (MIG; time-sliced "…::n", which are handed out in no foreseeable
 * order).
 */
bool gpu_question_ask(const struct pod_container *allocatable, const struct pod_list *held,
		      const char *resource, const char *ours, size_t want, const int *nodes,
		      size_t n_nodes, const struct hw_inventory *inv, struct arena *a,
		      struct gpu_question *ret, const char **why);
/* Which GPUs these are: PCI indices, ascending; 0: not all of them are GPUs of this node, or two
 * are the same one. */
size_t gpu_question_gpus(const struct gpu_question *q, const struct ids *ids,
			 const struct hw_inventory *inv, struct arena *a, int **ret);

#endif
