#include "render/gid-internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "render/render-internal.h"

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

bool gid_in_range(const uint8_t gid[16], const uint8_t range[16], int bits)
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

/* A mapped address below the multicast prefix ff0e:: is IPv4 to NCCL too. */
enum gid_family gid_nccl_family(const struct gid_entry *gid)
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

	(void)vf;
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

const char *gid_lack(const struct gid_vf *vf)
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
