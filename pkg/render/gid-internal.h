/*
 * Which GID NCCL takes on a RoCE port, and which variables make it take a right one.
 * Pure; the reference is NCCL's ncclIbGetGidIndex() since 2.21.5 (docs/design/nccl.md §1.5): the
 * scan of the table, with its oddities, is followed step by step. Ports with the InfiniBand link
 * layer are not for these functions: NCCL takes no index there.
 */
#ifndef RAILMATE_RENDER_GID_INTERNAL_H
#define RAILMATE_RENDER_GID_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "hw/vfstate.h"

struct arena;
struct err;

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

#endif
