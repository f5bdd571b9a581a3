/* Shared by the files of this room. */
#ifndef RAILMATE_RENDER_INTERNAL_H
#define RAILMATE_RENDER_INTERNAL_H

#include "hw/bdf.h"
#include "render/gid-internal.h"
#include "render/render.h"

struct choose_pair;
struct json;
struct pool_config;
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

/* Appends to edits->envs; room for `max` entries was made by the caller. */
void add_env(struct edits *edits, const char *key, const char *value);

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
#define OWN_ENV_MAX 7						     /* of both */
void render_own_env(const struct grant *grant, struct env_set *set); /* both */

/* --- variables of all grants (grants_now()) --- */

/* The variables that the pools have to agree on: derived ones, then the operator's. */
int render_joined_env(const struct grant *grants, size_t n, struct env_set *set,
		      struct notes *notes, struct err *err);
/* NCCL_* but those about GIDs. */
void render_nccl_env(const struct grant *grants, size_t n, struct env_set *set,
		     struct notes *notes);
/* The variable's value in the operator's "env"; NULL: none. */
const char *policy_value(const struct pool_config *cfg, const char *name);
/* uverbs nodes, and rdma_cm, to edits->devs. */
void render_nodes(const struct grant *grants, size_t n, struct arena *arena, struct edits *edits);

#define GID_V4_BITS 96 /* in front of a mapped IPv4 address */
bool gid_in_range(const uint8_t gid[16], const uint8_t range[16], int bits);
enum gid_family gid_nccl_family(const struct gid_entry *gid); /* its family for NCCL */
/* "no GID …": why this VF has no candidate; NULL: it has one. */
const char *gid_lack(const struct gid_vf *vf);

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
/* The rail's port for the functions of gid.h. */
struct gid_vf gid_vf_of(const struct rail *rails, size_t n, size_t at, struct arena *arena);
void put_gid_env(const struct gid_decision *decision, struct env_set *set);

#endif
