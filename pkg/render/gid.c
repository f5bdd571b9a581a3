/*
 * Which GID NCCL takes on a RoCE port, and which variables make it take a right one
 * (render-internal.h). Pure functions of tables; nccl.c has the tables of a container's VFs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/bdf.h"
#include "render/render-internal.h"
#include "render/render.h"

#define GID_V4_BITS 96 /* in front of a mapped IPv4 address */

bool gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

const char *gid_format(const uint8_t gid[16], struct arena *arena)
{
	char buf[INET6_ADDRSTRLEN];

	if (gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid + 12, buf, sizeof(buf));
	else
		inet_ntop(AF_INET6, gid, buf, sizeof(buf));
	return arena_strdup(arena, buf);
}

const char *gid_format_range(const uint8_t range[16], int bits, struct arena *arena)
{
	bool v4 = bits >= GID_V4_BITS && gid_is_ipv4(range);

	return arena_printf(arena, "%s/%d", gid_format(range, arena),
			    v4 ? bits - GID_V4_BITS : bits);
}

static bool gid_in_range(const uint8_t gid[16], const uint8_t range[16], int bits)
{
	size_t whole = (size_t)bits / 8;
	int rest = bits % 8;

	return !memcmp(gid, range, whole) &&
	       (!rest || !((gid[whole] ^ range[whole]) & (0xff00 >> rest)));
}

const struct gid_entry *gid_at(const struct gid_vf *vf, int index)
{
	for (size_t i = 0; i < vf->n_gids; i++) {
		if (vf->gids[i].index == index)
			return &vf->gids[i];
	}
	return NULL;
}

/* 0: the kernel reported none. */
static int version_of(const struct gid_entry *gid)
{
	if (gid && (str_starts(gid->type, "IB/RoCE v1") || str_starts(gid->type, "RoCE v1")))
		return 1;
	return gid && str_starts(gid->type, "RoCE v2") ? 2 : 0;
}

/* --- NCCL's choice --- */

static const uint8_t *bytes_of(const struct gid_entry *gid)
{
	static const uint8_t empty[16];

	return gid ? gid->gid : empty;
}

/* its family for NCCL */
/* A mapped address below the multicast prefix ff0e:: is IPv4 to NCCL too. */
static enum gid_family gid_nccl_family(const struct gid_entry *gid)
{
	static const uint8_t multicast[12] = { 0xff, 0x0e, [10] = 0xff, [11] = 0xff };
	const uint8_t *b = bytes_of(gid);

	return gid_is_ipv4(b) || !memcmp(b, multicast, sizeof(multicast)) ? GID_FAMILY_IPV4
									  : GID_FAMILY_IPV6;
}

/* Neither empty nor in fe80::/64, the only part of fe80::/10 that it knows. */
static bool nccl_valid(const struct gid_entry *gid)
{
	static const uint8_t empty[16], link_local[8] = { 0xfe, 0x80 };
	const uint8_t *b = bytes_of(gid);

	return memcmp(b, empty, sizeof(empty)) != 0 &&
	       memcmp(b, link_local, sizeof(link_local)) != 0;
}

/* Of an IPv4 range it compares the address alone. */
static bool nccl_in_range(const struct gid_entry *gid, const struct gid_env *env)
{
	const uint8_t *b = bytes_of(gid);

	if (!env->range_bits)
		return true;
	if (env->family == GID_FAMILY_IPV6)
		return gid_in_range(b, env->range, env->range_bits);
	return gid_in_range((const uint8_t[16]) { b[12], b[13], b[14], b[15] },
			    (const uint8_t[16]) { env->range[12], env->range[13], env->range[14],
						  env->range[15] },
			    env->range_bits - GID_V4_BITS);
}

enum step { STEP_KEEP, STEP_TAKE, STEP_UNDETERMINED };

/* Does the scan go over from `have` to `next`? */
static enum step nccl_step(const struct gid_env *env, const struct gid_entry *have,
			   const struct gid_entry *next)
{
	if (gid_nccl_family(next) != env->family || !nccl_in_range(next, env))
		return STEP_KEEP;
	if (gid_nccl_family(have) != env->family)
		return STEP_TAKE; /* unseen: not even whether there is a GID at all */
	if (!nccl_valid(next) || version_of(next) != env->roce_version)
		return STEP_KEEP;
	if (!nccl_valid(have))
		return STEP_TAKE;
	if (!version_of(have))
		return STEP_UNDETERMINED; /* it compares with a variable that nothing was written to
					   */
	return version_of(have) != env->roce_version ? STEP_TAKE : STEP_KEEP;
}

int gid_nccl_picks(const struct gid_vf *vf, const struct gid_env *env)
{
	const struct gid_entry *have = gid_at(vf, 0), *end = vf->gids + vf->n_gids, *at = vf->gids;
	int picked = 0, last = vf->n_gids ? vf->gids[vf->n_gids - 1].index : -1,
	    len = vf->table_len > last + 1 ? vf->table_len : last + 1;

	if (env->index >= 0)
		return env->index;
	for (int i = 1; i < len; i++) {
		const struct gid_entry *next = NULL;

		while (at < end && at->index < i)
			at++;
		if (at < end && at->index == i)
			next = at;
		switch (nccl_step(env, have, next)) {
		case STEP_KEEP:
			break;
		case STEP_TAKE:
			have = next;
			picked = i;
			break;
		case STEP_UNDETERMINED:
			return -1;
		}
	}
	return picked;
}

/* --- candidates --- */

static bool is_routable(const struct gid_vf *vf, const struct gid_entry *g)
{
	static const uint8_t empty[16];

	return memcmp(g->gid, empty, sizeof(empty)) != 0 && g->gid[0] != 0xff &&
	       (g->gid[0] != 0xfe || (g->gid[1] & 0xc0) != 0x80); /* not link-local */
}

static bool is_of_version(const struct gid_vf *vf, const struct gid_entry *g)
{
	return version_of(g) == vf->want.roce_version;
}

static bool is_here(const struct gid_vf *vf, const struct gid_entry *g)
{
	return !vf->here || vf->here[g - vf->gids];
}

static bool is_of_family(const struct gid_vf *vf, const struct gid_entry *g)
{
	return vf->want.family == GID_FAMILY_ANY ||
	       (vf->want.family == GID_FAMILY_IPV4) == gid_is_ipv4(g->gid);
}

static bool is_in_range(const struct gid_vf *vf, const struct gid_entry *g)
{
	return !vf->want.range || gid_in_range(g->gid, vf->want.range, vf->want.range_bits);
}

/* In this order; the one that ends the search for a candidate is the reason why there is none. */
static const struct condition {
	bool (*holds)(const struct gid_vf *vf, const struct gid_entry *g);
	const char *no_gid;  /* the VF has … */
	const char *not_gid; /* the GID … */
} conditions[] = {
	{ is_routable, "only link-local GIDs: its network interface has no address",
	  "is link-local: give the network interface an address, or set gid to auto" },
	{ is_of_version, "no GID of the RoCE version that is asked for (roceVersion)",
	  "is not of the RoCE version that is asked for (roceVersion): name the other index of that address" },
	{ is_here, "only GIDs of addresses that are not in the container's network namespace",
	  "belongs to an address that is not in the container's network namespace" },
	{ is_of_family, "no GID of the address family that is asked for (gidFamily)",
	  "is not of the address family that is asked for (gidFamily)" },
	{ is_in_range, "no GID in the range that is asked for (gidRange)",
	  "is not in the range that is asked for (gidRange)" },
};

/* NULL: all hold. */
static const struct condition *fails(const struct gid_vf *vf, const struct gid_entry *g)
{
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
		if (!conditions[i].holds(vf, g))
			return &conditions[i];
	}
	return NULL;
}

bool gid_is_candidate(const struct gid_vf *vf, const struct gid_entry *gid)
{
	return !fails(vf, gid);
}

/* "no GID …": why this VF has no candidate; NULL: it has one. */
static const char *gid_lack(const struct gid_vf *vf)
{
	for (size_t c = 0; c < ARRAY_LEN(conditions); c++) {
		bool any = false;

		for (size_t i = 0; i < vf->n_gids; i++) {
			const struct condition *f = fails(vf, &vf->gids[i]);

			any |= !f || f > &conditions[c];
		}
		if (!any)
			return vf->n_gids ? conditions[c].no_gid
					  : "no GID at all: its network interface has no address";
	}
	return NULL;
}

/* --- fixed --- */

static const char *hint(const struct gid_vf *vfs, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (vfs[i].driver && vfs[0].driver && strcmp(vfs[i].driver, vfs[0].driver) != 0)
			return "; the VFs have different drivers, which lay out their tables differently";
	}
	return "";
}

int gid_check_fixed(const struct gid_vf *vfs, size_t n, int index, const char *pool,
		    struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct gid_vf *vf = &vfs[i];
		const struct gid_entry *g = gid_at(vf, index);
		const struct condition *f = g ? fails(vf, g) : NULL;

		if (vf->table_len && index >= vf->table_len)
			return err_set(
				err, EINVAL,
				"VF %s has no GID at index %d of %s, whose table ends at %d (gid is fixed:%d in the pool %s): set gid to auto",
				vf->id, index, vf->rdma, vf->table_len - 1, index, pool);
		if (!g)
			return err_set(
				err, EINVAL,
				"VF %s has no GID at index %d of %s (gid is fixed:%d in the pool %s): give its network interface an address, or set gid to auto%s",
				vf->id, index, vf->rdma, index, pool, hint(vfs, n));
		if (f)
			return err_set(
				err, EINVAL,
				"the GID at index %d of %s (VF %s; gid is fixed:%d in the pool %s) %s%s",
				index, vf->rdma, vf->id, index, pool, f->not_gid, hint(vfs, n));
	}
	return 0;
}

/* gid: auto. Which variables make NCCL take a GID that is a candidate, on every VF. */

/* A candidate of this family, or of any. */
static bool is_of(const struct gid_vf *vf, const struct gid_entry *g, enum gid_family family)
{
	return g && gid_is_candidate(vf, g) &&
	       (family == GID_FAMILY_ANY || (family == GID_FAMILY_IPV4) == gid_is_ipv4(g->gid));
}

/* Of one family, or GID_FAMILY_ANY; *ret_last is one of them. */
static size_t count_candidates(const struct gid_vf *vf, enum gid_family family,
			       const struct gid_entry **ret_last)
{
	size_t count = 0;

	for (size_t i = 0; i < vf->n_gids; i++) {
		const struct gid_entry *g = &vf->gids[i];

		if (!is_of(vf, g, family))
			continue;
		*ret_last = g;
		count++;
	}
	return count;
}

static bool all_have_one(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	const struct gid_entry *g;

	for (size_t i = 0; i < n; i++) {
		if (!count_candidates(&vfs[i], family, &g))
			return false;
	}
	return n > 0;
}

/* Where every VF has exactly one candidate, all at the same place; -1. */
static int common_index(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	int index = -1;

	for (size_t i = 0; i < n; i++) {
		const struct gid_entry *g = NULL;

		if (count_candidates(&vfs[i], family, &g) != 1 || (i && g->index != index))
			return -1;
		index = g->index;
	}
	return index;
}

/* The first index where every VF has a candidate, perhaps beside others; -1. */
static int shared_index(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	for (size_t i = 0; n && i < vfs[0].n_gids; i++) {
		int index = vfs[0].gids[i].index;
		size_t k = 0;

		while (k < n && is_of(&vfs[k], gid_at(&vfs[k], index), family))
			k++;
		if (k == n)
			return index;
	}
	return -1;
}

static bool right_for_all(const struct gid_vf *vfs, size_t n, const struct gid_env *env)
{
	for (size_t i = 0; i < n; i++) {
		const struct gid_entry *g = gid_at(&vfs[i], gid_nccl_picks(&vfs[i], env));

		if (!g || !gid_is_candidate(&vfs[i], g))
			return false;
	}
	return true;
}

void gid_set_range(struct gid_env *env, const uint8_t gid[16], int bits)
{
	for (int i = 0; i < 16; i++) {
		int keep = bits - 8 * i;

		env->range[i] = keep >= 8  ? gid[i]
				: keep > 0 ? gid[i] & (uint8_t)(0xff00 >> keep)
					   : 0;
	}
	env->range_bits = bits;
}

/* The candidates of one VF, of one family. */
struct candidates {
	const struct gid_entry **v;
	size_t n;
};

static const struct candidates *list_candidates(const struct gid_vf *vfs, size_t n,
						enum gid_family family, struct arena *arena)
{
	struct candidates *lists = arena_array(arena, n, sizeof(*lists));

	for (size_t i = 0; i < n; i++) {
		lists[i].v = arena_array(arena, vfs[i].n_gids, sizeof(*lists[i].v));
		for (size_t k = 0; k < vfs[i].n_gids; k++) {
			const struct gid_entry *g = &vfs[i].gids[k];

			if (gid_is_candidate(&vfs[i], g) && gid_nccl_family(g) == family)
				lists[i].v[lists[i].n++] = g;
		}
	}
	return lists;
}

static bool holds_one(const struct candidates *list, size_t n, const struct gid_env *env)
{
	for (size_t i = 0; i < n; i++) {
		if (gid_in_range(list->v[i]->gid, env->range, env->range_bits))
			return true;
	}
	return false;
}

/*
 * The shortest range inside that of the operator that holds a candidate of every VF and with which
 * NCCL is right everywhere. So it holds one of the VF that has the fewest, too.
 */
static bool find_range(const struct gid_vf *vfs, size_t n, struct arena *arena, struct gid_env *env)
{
	const struct candidates *lists = list_candidates(vfs, n, env->family, arena), *few = lists;
	int from = env->family == GID_FAMILY_IPV4 ? GID_V4_BITS : 0;

	for (size_t i = 1; i < n; i++)
		few = lists[i].n < few->n ? &lists[i] : few;
	if (env->range_bits > from)
		from = env->range_bits;
	for (int bits = from + 1; bits <= 128; bits++) {
		for (size_t i = 0; i < few->n; i++) {
			size_t k = 0;

			gid_set_range(env, few->v[i]->gid, bits);
			if (holds_one(few, i, env))
				continue; /* tried with an earlier one */
			while (k < n && holds_one(&lists[k], lists[k].n, env))
				k++;
			if (k == n && right_for_all(vfs, n, env))
				return true;
		}
	}
	return false;
}

/* The operator's wish, where all pools have the same; a range that is none for this family is left
 * out. */
static struct gid_env wanted(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	const struct gid_want *want = &vfs[0].want;
	struct gid_env env = { .index = -1, .family = family, .roce_version = want->roce_version };
	bool ranged = want->range && want->range_bits &&
		      (family == GID_FAMILY_IPV4) ==
			      (want->range_bits >= GID_V4_BITS && gid_is_ipv4(want->range));

	for (size_t i = 1; ranged && i < n; i++) {
		const struct gid_want *other = &vfs[i].want;

		ranged = other->range && other->range_bits == want->range_bits &&
			 !memcmp(other->range, want->range, sizeof(uint8_t[16]));
	}
	if (ranged)
		gid_set_range(&env, want->range, want->range_bits);
	return env;
}

static bool try_family(const struct gid_vf *vfs, size_t n, enum gid_family family,
		       struct arena *arena, struct gid_env *ret)
{
	struct gid_env env;

	if (!all_have_one(vfs, n, family))
		return false;
	env = wanted(vfs, n, family);
	env.index = common_index(vfs, n, family);
	if (env.index < 0 && !right_for_all(vfs, n, &env) && !find_range(vfs, n, arena, &env))
		return false;
	*ret = env;
	return true;
}

bool gid_auto(const struct gid_vf *vfs, size_t n, struct arena *arena, struct gid_env *ret,
	      const char **ret_why)
{
	static const enum gid_family families[] = { GID_FAMILY_IPV4, GID_FAMILY_IPV6,
						    GID_FAMILY_ANY };
	int index;

	if (try_family(vfs, n, GID_FAMILY_IPV4, arena, ret) ||
	    try_family(vfs, n, GID_FAMILY_IPV6, arena, ret))
		return true;
	index = common_index(vfs, n, GID_FAMILY_ANY); /* not one family, but one place */
	/* NCCL's own scan misses it, or takes something else on another VF: so it gets the index.
	 */
	for (size_t i = 0; index < 0 && i < ARRAY_LEN(families); i++)
		index = shared_index(vfs, n, families[i]);
	if (index >= 0) {
		*ret = wanted(vfs, n, GID_FAMILY_IPV4);
		ret->index = index;
		return true;
	}
	*ret_why =
		all_have_one(vfs, n, GID_FAMILY_IPV4) || all_have_one(vfs, n, GID_FAMILY_IPV6)
			? "no GID setting is right for all VFs: their tables hold GIDs that are not this container's, or of another RoCE version, and no address range (NCCL_IB_ADDR_RANGE) separates them"
			: "no GID setting is right for all VFs: some have only IPv4 addresses, some only IPv6, and NCCL takes one family";
	for (size_t i = 0; i < n; i++) {
		const char *reason = gid_lack(&vfs[i]);

		if (!reason)
			continue;
		*ret_why = arena_printf(arena, "NCCL finds no usable GID on %s: VF %s has %s",
					vfs[i].rdma, vfs[i].id, reason);
		break;
	}
	return false;
}

/* --- networks --- */

#define NETWORK_V4 (GID_V4_BITS + 24)
#define NETWORK_V6 64

static bool same_network(const uint8_t a[16], const uint8_t b[16])
{
	return gid_is_ipv4(a) == gid_is_ipv4(b) &&
	       gid_in_range(a, b, gid_is_ipv4(a) ? NETWORK_V4 : NETWORK_V6);
}

/* Has the VF a candidate of that family's network? */
static bool has_of_network(const struct gid_vf *vf, const uint8_t gid[16])
{
	for (size_t i = 0; i < vf->n_gids; i++) {
		if (gid_is_candidate(vf, &vf->gids[i]) && same_network(vf->gids[i].gid, gid))
			return true;
	}
	return false;
}

bool gid_networks_differ(const struct gid_vf *vfs, size_t n, const struct gid_env *env,
			 size_t *ret_a, size_t *ret_b)
{
	for (size_t i = 1; i < n; i++) {
		for (size_t k = 0; k < i; k++) {
			const struct gid_entry *a = gid_at(&vfs[k], gid_nccl_picks(&vfs[k], env)),
					       *b = gid_at(&vfs[i], gid_nccl_picks(&vfs[i], env));

			if (!a || !b || same_network(a->gid, b->gid) ||
			    !has_of_network(&vfs[i], a->gid) || !has_of_network(&vfs[k], b->gid))
				continue;
			*ret_a = k;
			*ret_b = i;
			return true;
		}
	}
	return false;
}
