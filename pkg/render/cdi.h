/*
 * CDI specs: how a container gets the VFs that were bound to its slots (docs/design/kubelet.md §4).
 * One spec a container, so that all its devices appear by one rename; it is named after the lowest
 * of its slots. Version 0.5.0 of the format, without annotations: containerd 1.7 knows no later
 * one. Pure.
 */
#ifndef RAILMATE_RENDER_CDI_H
#define RAILMATE_RENDER_CDI_H

#include <stddef.h>

#include "render/render.h"

#define CDI_KIND    "railmate.io/vf"
#define CDI_VERSION "0.5.0"

/* "rdma_vf-n0-3" → "railmate.io/vf=rdma_vf-n0-3" */
const char *cdi_device(const char *slot, struct arena *arena);
/* → "railmate.io-vf_rdma_vf-n0-3.json" */
const char *cdi_file_name(const char *slot, struct arena *arena);
/* The way back; NULL: not a file of ours. */
const char *cdi_slot_of_file(const char *name, struct arena *arena);

/* All variables, sorted; of two values of one name the first stays. */
struct edits cdi_join(const struct edits *v, size_t n, struct arena *arena);

/* A device of a spec: the nodes that a container gets for this slot. */
struct cdi_entry {
	const char *slot;
	struct edits edits;
};

/* The spec's text: variables and mounts, which the runtime applies once, and a device a slot. cdi
 * names of the edits are left out. */
const char *render_cdi(const struct edits *common, const struct cdi_entry *v, size_t n,
		       struct arena *arena);

#endif
