/* Shared by the files of this room. */
#ifndef RAILMATE_RENDER_INTERNAL_H
#define RAILMATE_RENDER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "hw/bdf.h"
#include "hw/vfstate.h"
#include "render/render.h"

struct arena;
struct choose_pair;
struct err;
struct json;
struct strbuf;

/* NCCL takes that many devices since 2.18.5; later ones are dropped silently
 * (docs/design/nccl.md §1.1). */
#define HCAS_MAX      32
#define PROFILES_NCCL (PROFILE_NCCL | PROFILE_RCCL)
#define ALL_PROFILES  (~0u) /* for pools of any profile, even none */

/* --- variables, one value a name, in name order --- */

struct env_set {
	struct arena *arena;
	struct kv *v;
	size_t n, room;
};

const char *env_get(const struct env_set *set, const char *key); /* NULL: not there */
bool env_put(struct env_set *set, const char *key,
	     const char *value); /* false: there already, and stays */
void env_put_all(struct env_set *set, const struct edits *edits);

/* --- sentences --- */

struct notes {
	struct arena *arena;
	const char **v;
	size_t n, room;
};

void add_note(
	struct notes *notes,
	const char *sentence); /* notes NULL: not needed; one that is there already is left out */

/* Names that share a cause: "A", "A and B", "A, B, C, D and 36 more". */
struct few {
	struct strbuf *text;
	size_t n;
	const char *last; /* not in the text yet */
};
void few_add(struct few *few, const char *name);
const char *few_end(struct few *few);

/* --- VFs --- */

/*
 * A VF. Rail order: by the address of the first GPU that the VF serves (VFs without a known GPU
 * come last), then by the address of its PF (its own, where the PF is not visible), then by its
 * own. So the i-th entry is the rail of the i-th GPU, in the order of PCI addresses, and nodes that
 * are built alike count alike: neither names of devices nor VF numbers take part.
 */
struct rail {
	const struct grant *grant;
	const struct grant_dev *dev;
	struct bdf gpu, pf, vf;
	bool has_gpu;
};

int rail_cmp(const void *a, const void *b);
/* Every VF, without an RDMA device too. */
size_t all_rails(const struct grant *grants, size_t n, struct arena *arena, struct rail **ret);
/* VFs with an RDMA device, of the pools with isRdma that have one of the profiles, or
 * ALL_PROFILES. */
size_t grant_rails(const struct grant *grants, size_t n, unsigned profiles, struct arena *arena,
		   const struct rail **ret);

/* The grants in the order of the configuration, with the names that the VFs have now
 * (grant_dev.state). */
/* "data_direct": the function that makes the VF so near to the GPU, if one does; pair NULL: no. */
void put_data_direct(struct json *j, const struct grant *grant, const struct choose_pair *pair);
struct grant *grants_now(const struct grant *grants, size_t n, struct arena *arena);

/* The port NCCL should use: the first ACTIVE one, else the first. */
int grant_port(const struct grant *grant, const struct grant_dev *dev);
/* Mbit/s that the VF may send: its port's rate, that of its PF's port while it is away, and no more
 * than its limit. 0: not known. */
int grant_rate(const struct grant *grant, const struct grant_dev *dev);
/* "mlx5_4:1" */
void put_hca(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev);
/* "/dev/infiniband/uverbs4" */
const char *verbs_node(const struct grant_dev *dev, struct arena *arena);
const char *umad_node(const char *umad, struct arena *arena);
#define VFIO_NODE      "/dev/vfio/vfio"
#define VHOST_NET_NODE "/dev/vhost-net"
#define TUN_NODE       "/dev/net/tun"
enum hw_link grant_link(const struct grant *grant, const struct grant_dev *dev);

/* --- variables of a grant --- */

/* PCIDEVICE_*: the variables of sriov-network-device-plugin. */
void render_peer_env(const struct grant *grant, struct arena *arena, struct edits *edits);
/* RAILMATE_*: the facts of the grant. */
void render_fact_env(const struct grant *grant, struct arena *arena, struct edits *edits);

/* --- variables of all grants (grants_now()) --- */

/* NCCL_* but those about GIDs. */
void render_nccl_env(const struct grant *grants, size_t n, struct env_set *set,
		     struct notes *notes);

/*
 * --- GIDs ---
 *
 * Which GID NCCL takes on a RoCE port, and which variables make it take a right one.
 * Pure; the reference is NCCL's ncclIbGetGidIndex() since 2.21.5 (docs/design/nccl.md §1.5): the
 * scan of the table, with its oddities, is followed step by step. Ports with the InfiniBand link
 * layer are not for these functions: NCCL takes no index there.
 */

/* The operator's wish. */
struct gid_want {
	enum gid_family family;
	int roce_version;     /* 1, 2 */
	const uint8_t *range; /* NULL: any */
	int range_bits;	      /* of 128, IPv4 mapped */
};

/* The port of one VF. */
struct gid_vf {
	const char *id, *rdma; /* for sentences */
	const char *driver;    /* NULL: not known */
	struct gid_want want;
	const struct gid_entry *gids;
	size_t n_gids; /* in index order, no empty slots */
	/* Entry by entry: is its address in the container's namespace? NULL: not known, all
	 * count */
	const bool *here;
	int table_len; /* slots; 0: not known */
};

/* The variables that NCCL gets. */
struct gid_env {
	int index;		/* NCCL_IB_GID_INDEX; -1: not set, NCCL's own choice by the rest */
	enum gid_family family; /* IPv4, NCCL's default, or IPv6 */
	int roce_version;
	uint8_t range[16];
	int range_bits; /* of 128, IPv4 mapped; 0: none */
};

bool gid_is_ipv4(const uint8_t gid[16]); /* mapped into ::ffff:0:0/96 */
/* "10.0.0.7", "fd00::1" */
const char *gid_format(const uint8_t gid[16], struct arena *arena);
/* "10.0.0.0/8" */
const char *gid_format_range(const uint8_t range[16], int bits, struct arena *arena);

/* The first bits of the address. */
void gid_set_range(struct gid_env *env, const uint8_t address[16], int bits);

/* NULL: empty slot. */
const struct gid_entry *gid_at(const struct gid_vf *vf, int index);
/* Is it one that the VF may use, and that was asked for: its address routable and in the container,
 * family, range and version right? */
bool gid_is_candidate(const struct gid_vf *vf, const struct gid_entry *gid);
/* The index NCCL ends up with; 0, as a rule useless, if nothing suits. -1: NCCL itself does not
 * determine it. */
int gid_nccl_picks(const struct gid_vf *vf, const struct gid_env *env);

/*
 * gid: auto. An index where every VF has exactly one candidate and it is the same, else the least
 * that makes NCCL's own choice a candidate on every VF, else the first index where every VF has
 * one. False: nothing does; *ret_why is a sentence.
 */
bool gid_auto(const struct gid_vf *vfs, size_t n, struct arena *arena, struct gid_env *ret,
	      const char **ret_why);
/*
 * Do two VFs end up with addresses of different networks, though each has one of the other's? Their
 * places in vfs. A network is an IPv4 /24 or an IPv6 /64 here: the tables have no prefix lengths.
 */
bool gid_networks_differ(const struct gid_vf *vfs, size_t n, const struct gid_env *env,
			 size_t *ret_a, size_t *ret_b);
/* gid: fixed:N. -EINVAL with the reason why this cannot work; `pool` is for the sentence. */
int gid_check_fixed(const struct gid_vf *vfs, size_t n, int index, const char *pool,
		    struct err *err);

/* The decision about the GIDs of some rails. */
struct gid_decision {
	bool set; /* NCCL gets a variable: env */
	struct gid_env env;
	/* All of them have the GID that is taken there; -1: no such index, or not known */
	int index;
};

/* -EINVAL: gid: fixed:N that cannot work. Where tables are not known, the operator's own words are
 * all that is set. */
int decide_gids(const struct rail *rails, size_t n, struct arena *arena, struct gid_decision *ret,
		struct notes *notes, struct err *err);
/* Do the rail's tables, as they are known now, stay? In a pod's own network they are made after
 * Allocate. */
bool gids_known(const struct rail *rail);
/* The rail's port for the functions of gid.c. */
struct gid_vf gid_vf_of(const struct rail *rails, size_t n, size_t at, struct arena *arena);
void put_gid_env(const struct gid_decision *decision, struct env_set *set);

/*
 * --- libraries beside NCCL (docs/design/nccl.md §5.1, §5.2, §5.3) ---
 *
 * Of NCCL's own only the P_Key's value is from here. A variable names the VFs of those pools that
 * have its profile. Choices that are the operator's only (traffic class, transports, …) are policy
 * (config/policy.h) and pass through the pool's "env"; the two sets of names are disjoint.
 */

#define PROFILE_ENV_MAX 13 /* so many variables at most: room for them is made by the caller */

/*
 * Appended to ret->envs, unsorted. `grants` are all the RDMA pools of the container that are known
 * (one at Allocate), VFs with an RDMA device only are named, in rail order. gid_index: the RoCE GID
 * index that is right for every VF of them, -1 if none is or it is not known yet. mscclpp and ofi
 * take index 0, a link-local one, without it.
 */
void render_profile_env(const struct grant *grants, size_t n, int gid_index, struct arena *arena,
			struct edits *ret);

/*
 * Does a container of this pool get /dev/infiniband/rdma_cm? As sriov-network-device-plugin always
 * gives it, so does a pool that names no profiles, and "none". A pool that names them gives it when
 * one of them connects by it: ucx, ofi, oneccl.
 */
bool render_wants_rdma_cm(const struct pool_config *cfg);

#endif
