/* gid: auto. Which variables make NCCL take a GID that is a candidate, on every VF. */
#include "render/gid-internal.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "render/render-internal.h"

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
