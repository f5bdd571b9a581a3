/*
 * A grant → what the container gets. Pure: facts in, edits out. Output is sorted and free of doubles, so
 * equal grants give equal bytes. Everything is allocated in the arena; every string is valid UTF-8.
 */
#ifndef RAILMATE_RENDER_RENDER_H
#define RAILMATE_RENDER_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "align/choose.h"

struct arena;
struct err;
struct gid_entry;
struct json;
struct node;
struct pool;
struct vf_state;

struct kv { const char *key, *value; };
struct devnode { const char *host, *container, *permissions; };
struct bindmount { const char *host, *container; bool read_only; };

struct edits {
	struct kv *envs;		size_t n_envs;	/* sorted by key */
	struct devnode *devs;		size_t n_devs;
	struct bindmount *mounts;	size_t n_mounts;
	const char **cdi;		size_t n_cdi;	/* names of CDI devices, "vendor/class=name" */
};

/* The members of the arrays `devices` and `mounts` as every program of ours prints them. */
void edits_json_devices(const struct edits *edits, struct json *j);
void edits_json_mounts(const struct edits *edits, struct json *j);

/* One VF as it is now (discover_function_now), not as the snapshot remembers it. */
struct grant_dev {
	const struct pool_dev *dev;
	const char *rdma;	/* NULL: none */
	const char *uverbs;	/* NULL: none */
	const struct gid_entry *gids;	size_t n_gids;	/* of port 1; only read when the pool's gid mode needs it */
	const struct vf_state *state;	/* what it is when its container starts; NULL: not looked at yet (Allocate) */
};

struct grant {
	const struct node *node;
	const struct pool *pool;
	const struct grant_dev *devs;	size_t n_devs;	/* in address order */
	const struct choose_pair *pairs; size_t n_pairs; /* known GPU pairs; 0: GPUs unknown */
};

/* -EINVAL etc. with a sentence for the pod's status, e.g. a fixed GID index that cannot work. */
int render_grant(const struct grant *grant, struct arena *arena, struct edits *ret, struct err *err);

/* NPWG device-info file (spec 1.1.0): name below the devinfo directory, and its JSON. */
const char *render_devinfo_name(const struct pool *pool, const struct pool_dev *dev, struct arena *arena);
const char *render_devinfo(const struct node *node, const struct pool *pool, const struct pool_dev *dev,
			   struct arena *arena);
/* "rdma/vf" → "PCIDEVICE_RDMA_VF" (the peer's rule: upper case, '.' and '/' become '_', '-' stays). */
const char *render_env_name(const char *prefix, const char *resource, const char *suffix, struct arena *arena);

#endif
