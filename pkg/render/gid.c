#include "render/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define V4_BITS 96 /* in front of a mapped IPv4 address */

bool gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

bool gid_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
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
	bool v4 = bits >= V4_BITS && gid_is_ipv4(range);

	return arena_printf(arena, "%s/%d", gid_format(range, arena), v4 ? bits - V4_BITS : bits);
}

static bool in_range(const uint8_t gid[16], const uint8_t range[16], int bits)
{
	size_t whole = (size_t)bits / 8;
	int rest = bits % 8;

	return !memcmp(gid, range, whole) && (!rest || !((gid[whole] ^ range[whole]) & (0xff00 >> rest)));
}

const struct gid_entry *gid_at(const struct gid_vf *vf, int index)
{
	for (size_t i = 0; i < vf->n_gids; i++) {
		if (vf->gids[i].index == index)
			return &vf->gids[i];
	}
	return NULL;
}

/* 0: the kernel did not say. */
static int version_of(const struct gid_entry *gid)
{
	if (gid && (str_starts(gid->type, "IB/RoCE v1") || str_starts(gid->type, "RoCE v1")))
		return 1;
	return gid && str_starts(gid->type, "RoCE v2") ? 2 : 0;
}

/* --- what NCCL does --- */

static const uint8_t *bytes_of(const struct gid_entry *gid)
{
	static const uint8_t empty[16];

	return gid ? gid->gid : empty;
}

/* A mapped address below the multicast prefix ff0e:: is IPv4 to NCCL too. */
static enum gid_family nccl_family(const struct gid_entry *gid)
{
	static const uint8_t multicast[12] = { 0xff, 0x0e, [10] = 0xff, [11] = 0xff };
	const uint8_t *b = bytes_of(gid);

	return gid_is_ipv4(b) || !memcmp(b, multicast, sizeof(multicast)) ? GID_FAMILY_IPV4 : GID_FAMILY_IPV6;
}

/* Neither empty nor in fe80::/64, the only part of fe80::/10 that it knows. */
static bool nccl_valid(const struct gid_entry *gid)
{
	static const uint8_t empty[16], link_local[8] = { 0xfe, 0x80 };
	const uint8_t *b = bytes_of(gid);

	return memcmp(b, empty, sizeof(empty)) != 0 && memcmp(b, link_local, sizeof(link_local)) != 0;
}

/* Of an IPv4 range it compares the address alone. */
static bool nccl_in_range(const struct gid_entry *gid, const struct gid_env *env)
{
	const uint8_t *b = bytes_of(gid);

	if (!env->range_bits)
		return true;
	if (env->family == GID_FAMILY_IPV6)
		return in_range(b, env->range, env->range_bits);
	return in_range(
		(const uint8_t[16]) { b[12], b[13], b[14], b[15] },
		(const uint8_t[16]) { env->range[12], env->range[13], env->range[14], env->range[15] },
		env->range_bits - V4_BITS);
}

enum step { STEP_KEEP, STEP_TAKE, STEP_UNDETERMINED };

/* Does the scan go over from `have` to `next`? */
static enum step nccl_step(const struct gid_env *env, const struct gid_entry *have,
			   const struct gid_entry *next)
{
	if (nccl_family(next) != env->family || !nccl_in_range(next, env))
		return STEP_KEEP;
	if (nccl_family(have) != env->family)
		return STEP_TAKE; /* unseen: not even whether there is a GID at all */
	if (!nccl_valid(next) || version_of(next) != env->roce_version)
		return STEP_KEEP;
	if (!nccl_valid(have))
		return STEP_TAKE;
	if (!version_of(have))
		return STEP_UNDETERMINED; /* it compares with a variable that nothing was written to */
	return version_of(have) != env->roce_version ? STEP_TAKE : STEP_KEEP;
}

static int table_len(const struct gid_vf *vf)
{
	int last = vf->n_gids ? vf->gids[vf->n_gids - 1].index + 1 : 0;

	return vf->table_len > last ? vf->table_len : last;
}

int gid_nccl_picks(const struct gid_vf *vf, const struct gid_env *env)
{
	const struct gid_entry *have = gid_at(vf, 0), *end = vf->gids + vf->n_gids, *at = vf->gids;
	int picked = 0, len = table_len(vf);

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

/* --- what is a candidate --- */

static bool is_routable(const struct gid_vf *vf, const struct gid_entry *g)
{
	static const uint8_t empty[16];

	(void)vf;
	return memcmp(g->gid, empty, sizeof(empty)) != 0 && g->gid[0] != 0xff && !gid_is_link_local(g->gid);
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
	return !vf->want.range || in_range(g->gid, vf->want.range, vf->want.range_bits);
}

/* In this order; what ends the search for a candidate is the reason why there is none. */
static const struct condition {
	bool (*holds)(const struct gid_vf *vf, const struct gid_entry *g);
	const char *no_gid;  /* the VF has … */
	const char *not_gid; /* the GID … */
} conditions[] = {
	{ is_routable, "only link-local GIDs: its network interface has no address",
	  "is link-local: give the network interface an address, or set gid to auto" },
	{ is_of_version, "no GID of the RoCE version that is asked for (roceVersion)",
	  "is not of the RoCE version that is asked for (roceVersion): name the other index of that "
	  "address" },
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

/* Of one family, or GID_FAMILY_ANY; *ret_last is one of them. */
static size_t count_candidates(const struct gid_vf *vf, enum gid_family family,
			       const struct gid_entry **ret_last)
{
	size_t count = 0;

	for (size_t i = 0; i < vf->n_gids; i++) {
		const struct gid_entry *g = &vf->gids[i];

		if (!gid_is_candidate(vf, g) ||
		    (family != GID_FAMILY_ANY && (family == GID_FAMILY_IPV4) != gid_is_ipv4(g->gid)))
			continue;
		*ret_last = g;
		count++;
	}
	return count;
}

/* --- auto --- */

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

		env->range[i] = keep >= 8 ? gid[i] : keep > 0 ? gid[i] & (uint8_t)(0xff00 >> keep) : 0;
	}
	env->range_bits = bits;
}

/* The candidates of one VF, of one family. */
struct candidates {
	const struct gid_entry **v;
	size_t n;
};

static const struct candidates *list_candidates(const struct gid_vf *vfs, size_t n, enum gid_family family,
						struct arena *arena)
{
	struct candidates *lists = arena_array(arena, n, sizeof(*lists));

	for (size_t i = 0; i < n; i++) {
		lists[i].v = arena_array(arena, vfs[i].n_gids, sizeof(*lists[i].v));
		for (size_t k = 0; k < vfs[i].n_gids; k++) {
			const struct gid_entry *g = &vfs[i].gids[k];

			if (gid_is_candidate(&vfs[i], g) && nccl_family(g) == family)
				lists[i].v[lists[i].n++] = g;
		}
	}
	return lists;
}

static const struct candidates *shortest(const struct candidates *lists, size_t n)
{
	const struct candidates *best = &lists[0];

	for (size_t i = 1; i < n; i++) {
		if (lists[i].n < best->n)
			best = &lists[i];
	}
	return best;
}

static bool holds_one(const struct candidates *list, size_t n, const struct gid_env *env)
{
	for (size_t i = 0; i < n; i++) {
		if (in_range(list->v[i]->gid, env->range, env->range_bits))
			return true;
	}
	return false;
}

static bool holds_one_of_each(const struct candidates *lists, size_t n, const struct gid_env *env)
{
	for (size_t i = 0; i < n; i++) {
		if (!holds_one(&lists[i], lists[i].n, env))
			return false;
	}
	return true;
}

/*
 * The shortest range inside that of the operator that holds a candidate of every VF and with which NCCL is
 * right everywhere. So it holds one of the VF that has the fewest, too.
 */
static bool find_range(const struct gid_vf *vfs, size_t n, struct arena *arena, struct gid_env *env)
{
	const struct candidates *lists = list_candidates(vfs, n, env->family, arena),
				*few = shortest(lists, n);
	int from = env->family == GID_FAMILY_IPV4 ? V4_BITS : 0;

	if (env->range_bits > from)
		from = env->range_bits;
	for (int bits = from + 1; bits <= 128; bits++) {
		for (size_t i = 0; i < few->n; i++) {
			gid_set_range(env, few->v[i]->gid, bits);
			if (!holds_one(few, i, env) && holds_one_of_each(lists, n, env) &&
			    right_for_all(vfs, n, env))
				return true;
		}
	}
	return false;
}

static bool same_range(const struct gid_want *a, const struct gid_want *b)
{
	return (!a->range && !b->range) || (a->range && b->range && a->range_bits == b->range_bits &&
					    !memcmp(a->range, b->range, sizeof(uint8_t[16])));
}

/* What the operator wants, where all pools want the same; a range that is none for this family is left out.
 */
static struct gid_env wanted(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	const struct gid_want *want = &vfs[0].want;
	struct gid_env env = { .index = -1, .family = family, .roce_version = want->roce_version };
	bool ranged =
		want->range && want->range_bits &&
		(family == GID_FAMILY_IPV4) == (want->range_bits >= V4_BITS && gid_is_ipv4(want->range));

	for (size_t i = 1; i < n; i++)
		ranged &= same_range(want, &vfs[i].want);
	if (ranged)
		gid_set_range(&env, want->range, want->range_bits);
	return env;
}

static bool try_family(const struct gid_vf *vfs, size_t n, enum gid_family family, struct arena *arena,
		       struct gid_env *ret)
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

/* Why this VF has no candidate. */
static const char *lack(const struct gid_vf *vf)
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

static const char *why_not(const struct gid_vf *vfs, size_t n, struct arena *arena)
{
	for (size_t i = 0; i < n; i++) {
		const char *reason = lack(&vfs[i]);

		if (reason)
			return arena_printf(arena, "NCCL finds no usable GID on %s: VF %s has %s",
					    vfs[i].rdma, vfs[i].id, reason);
	}
	if (!all_have_one(vfs, n, GID_FAMILY_IPV4) && !all_have_one(vfs, n, GID_FAMILY_IPV6))
		return "no GID setting is right for all VFs: some have only IPv4 addresses, some only IPv6, "
		       "and NCCL takes "
		       "one family";
	return "no GID setting is right for all VFs: their tables hold GIDs that are not this container's, "
	       "or of another "
	       "RoCE version, and no address range (NCCL_IB_ADDR_RANGE) tells them apart";
}

bool gid_auto(const struct gid_vf *vfs, size_t n, struct arena *arena, struct gid_env *ret,
	      const char **ret_why)
{
	int index;

	if (try_family(vfs, n, GID_FAMILY_IPV4, arena, ret) ||
	    try_family(vfs, n, GID_FAMILY_IPV6, arena, ret))
		return true;
	index = common_index(vfs, n, GID_FAMILY_ANY); /* not one family, but one place */
	if (index >= 0) {
		*ret = wanted(vfs, n, GID_FAMILY_IPV4);
		ret->index = index;
		return true;
	}
	*ret_why = why_not(vfs, n, arena);
	return false;
}

/* --- fixed --- */

static bool mixed_drivers(const struct gid_vf *vfs, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (vfs[i].driver && vfs[0].driver && strcmp(vfs[i].driver, vfs[0].driver) != 0)
			return true;
	}
	return false;
}

static const char *hint(const struct gid_vf *vfs, size_t n)
{
	return mixed_drivers(vfs, n)
		       ? "; the VFs have different drivers, which lay out their tables differently"
		       : "";
}

int gid_check_fixed(const struct gid_vf *vfs, size_t n, int index, const char *pool, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct gid_vf *vf = &vfs[i];
		const struct gid_entry *g = gid_at(vf, index);
		const struct condition *f = g ? fails(vf, g) : NULL;

		if (vf->table_len && index >= vf->table_len)
			return err_set(
				err, EINVAL,
				"VF %s has no GID at index %d of %s, whose table ends at %d (gid is fixed:%d "
				"in the pool %s): set gid to auto",
				vf->id, index, vf->rdma, vf->table_len - 1, index, pool);
		if (!g)
			return err_set(err, EINVAL,
				       "VF %s has no GID at index %d of %s (gid is fixed:%d in the pool %s): "
				       "give its "
				       "network interface an address, or set gid to auto%s",
				       vf->id, index, vf->rdma, index, pool, hint(vfs, n));
		if (f)
			return err_set(
				err, EINVAL,
				"the GID at index %d of %s (VF %s; gid is fixed:%d in the pool %s) %s%s",
				index, vf->rdma, vf->id, index, pool, f->not_gid, hint(vfs, n));
	}
	return 0;
}
