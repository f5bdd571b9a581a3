/*
 * A grant → variables, device nodes and files of the container. Pure: facts in, edits out. Output
 * is sorted and free of doubles, so equal grants give equal bytes. Everything is allocated in the
 * arena; every string is valid UTF-8.
 */
#ifndef RAILMATE_RENDER_RENDER_H
#define RAILMATE_RENDER_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "align/choose.h"
#include "hw/edits.h"

struct arena;
struct err;
struct gid_entry;
struct json;
struct node;
struct pool;
struct user_io;
struct vf_state;

/* The members of the arrays `devices` and `mounts` as every program of ours prints them. */
void render_json_devices(const struct edits *edits, struct json *j);
void render_json_mounts(const struct edits *edits, struct json *j);

/* One VF as it is now (devstate_function), not as the snapshot remembers it. */
struct grant_dev {
	const struct pool_dev *dev;
	const char *rdma;	    /* NULL: none */
	const char *uverbs;	    /* NULL: none */
	const struct user_io *user; /* NULL: not bound to a user-space driver */
	const char *const *umads;
	size_t n_umads; /* "umad4"; only looked for when the pool has umad */
	const struct gid_entry *gids;
	size_t n_gids; /* of port 1; only read when the pool's gid mode needs it */
	/* Its state when its container starts; NULL: not probed yet (Allocate) */
	const struct vf_state *state;
	const char *slot;  /* that the kubelet knows it by; NULL: its address */
	uint64_t decision; /* that chose it; 0: not known */
};

struct grant {
	const struct node *node;
	const struct pool *pool;
	const struct grant_dev *devs;
	size_t n_devs; /* in address order */
	const struct choose_pair *pairs;
	size_t n_pairs;	       /* known GPU pairs; 0: GPUs unknown */
	const char *topo_file; /* value of NCCL_TOPO_FILE, a path in the container; NULL: none */
	bool files;	       /* the container gets RENDER_DIR: NCCL_CONF_FILE */
	/* render_grant() only: without joint variables (render_needs_conf_only()) */
	bool conf_only;
	/* render_grant() of shared HCAs only: the grants of all such resources of the node, this
	 * one's too. A container may have a share of each, and the kubelet keeps one value of a
	 * variable */
	const struct grant *beside;
	size_t n_beside;
	/* render_container() only: variables of this pool alone came by Allocate already */
	bool joined_only;
};

/* The directory with the files of a container, as the container sees it, and the files in it. */
#define RENDER_DIR	   "/run/railmate"
#define RENDER_CONF_NAME   "nccl.conf"
#define RENDER_MAP_NAME	   "map.json"
#define RENDER_CUFILE_NAME "cufile.json"

/* Allocate: one pool. -EINVAL etc. with a sentence for the pod's status, e.g. a fixed GID index
 * that cannot work. */
int render_grant(const struct grant *grant, struct arena *arena, struct edits *ret,
		 struct err *err);
/*
 * Does more than one pool of this node set variables that all pools of a container have to agree on
 * (NCCL_IB_HCA, …)? The kubelet would keep a random one of two values, so none is given at
 * Allocate: nccl.conf carries them alone. For early pools; late ones have no such conflict, for
 * every CDI spec of a container carries the same.
 */
bool render_needs_conf_only(const struct node *node);

/* --- a container: all its pools together, when it starts --- */

struct container {
	const char *ns, *pod, *name; /* NULL: not known */
	const char *uid;	     /* of the pod; NULL or "": not known */
	const struct grant *grants;
	size_t n; /* one a pool; any order, each pool once */
	/* Sentences for map.json: the caller's, of facts that could not be read, and those that
	 * render_container() returned */
	const char *const *notes;
	size_t n_notes;
};

/*
 * The variables as they are right now, from grant_dev.state: the union of all pools, sorted, one
 * value a name. Device nodes are the union too. `ret_notes`: omissions and their reasons, sentences
 * for map.json and the log. -EINVAL with a sentence: `gid: fixed:N` that cannot work.
 */
int render_container(const struct container *c, struct arena *arena, struct edits *ret_env,
		     const char *const **ret_notes, size_t *ret_n_notes, struct err *err);
/* nccl.conf: the NCCL_ and RCCL_ variables of `env` in NCCL's own dialect, but NCCL_CONF_FILE. */
const char *render_nccl_conf(const struct edits *env, struct arena *arena);
/* map.json, version 1 (railmatectl(1)). */
const char *render_map(const struct container *c, struct arena *arena);
/* cufile.json for GPUDirect Storage: the IPv4 addresses of the VFs. NULL: no pool of the container
 * asks for it. */
const char *render_cufile(const struct container *c, struct arena *arena);

/* NPWG device-info file (spec 1.1.0): name below the devinfo directory, and its JSON; with the
 * VF's rail, where that is known. */
const char *render_devinfo_name(const struct pool *pool, const struct pool_dev *dev,
				struct arena *arena);
const char *render_devinfo(const struct node *node, const struct pool *pool,
			   const struct pool_dev *dev, struct arena *arena);
/* "rdma/vf" → "PCIDEVICE_RDMA_VF" (the peer's rule: upper case, '.' and '/' become '_', '-' stays).
 */
const char *render_env_name(const char *prefix, const char *resource, const char *suffix,
			    struct arena *arena);

#endif
