/*
 * The GID rule. What NCCL does is written here a second time, close to its source and from its own
 * variables' text, so that the renderer's picture of it is held against something.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "render/render-internal.h"
#include "support/slow.h"
#include "support/testarena.h"

#define VFS_MAX 4
#define SLOTS	12

/* --- NCCL, by its source (src/transport/net_ib/connect.cc, 2.30) --- */

#define UNDETERMINED (-1)

struct nccl_env {
	const char *index, *family, *version, *range;
};

static const uint8_t *nccl_gid(const struct gid_vf *vf, int index)
{
	static const uint8_t empty[16];

	for (size_t i = 0; i < vf->n_gids; i++) {
		if (vf->gids[i].index == index)
			return vf->gids[i].gid;
	}
	return empty;
}

/* What is read from gid_attrs/types; 0 leaves the variable as it is. */
static int nccl_version(const struct gid_vf *vf, int index)
{
	for (size_t i = 0; i < vf->n_gids; i++) {
		const char *type = vf->gids[i].type;

		if (vf->gids[i].index != index)
			continue;
		if (!strncmp(type, "IB/RoCE v1", 10) || !strncmp(type, "RoCE v1", 7))
			return 1;
		return strncmp(type, "RoCE v2", 7) ? 0 : 2;
	}
	return 0;
}

static uint32_t word(const uint8_t *gid, int i)
{
	return (uint32_t)gid[4 * i] << 24 | (uint32_t)gid[4 * i + 1] << 16 |
	       (uint32_t)gid[4 * i + 2] << 8 | gid[4 * i + 3];
}

static int nccl_family(const uint8_t *gid)
{
	bool mapped = !word(gid, 0) && !word(gid, 1) && word(gid, 2) == 0xffff;
	bool multicast = word(gid, 0) == 0xff0e0000 && !word(gid, 1) && word(gid, 2) == 0xffff;

	return mapped || multicast ? AF_INET : AF_INET6;
}

static uint32_t netmask(int bits)
{
	return (uint32_t)(0xffffffffu ^ (uint32_t)((UINT64_C(1) << (32 - bits)) - 1));
}

static bool nccl_matches(int family, const uint8_t *prefix, int bits, const uint8_t *gid)
{
	for (int i = 0; bits > 0 && i < 4;) {
		if (family == AF_INET) {
			if ((word(prefix, 0) ^ word(gid, 3)) & netmask(bits))
				break;
			bits = 0;
		} else if (bits >= 32) {
			if (word(prefix, i) != word(gid, i))
				break;
			bits -= 32;
			i++;
		} else {
			if ((word(prefix, i) ^ word(gid, i)) & netmask(bits))
				break;
			bits = 0;
		}
	}
	return bits == 0;
}

static bool nccl_is_valid(const uint8_t *gid)
{
	uint32_t rest = word(gid, 1) | word(gid, 2) | word(gid, 3);

	if (!(word(gid, 0) | rest) || (word(gid, 0) == 0xfe800000 && !rest))
		return false;
	return word(gid, 0) != 0xfe800000 || word(gid, 1) != 0;
}

/* Address and length; a range of the other family is ignored. */
static int nccl_range(const char *text, int family, uint8_t prefix[16])
{
	char copy[128], *slash;

	if (!text)
		return 0;
	snprintf(copy, sizeof(copy), "%s", text);
	slash = strchr(copy, '/');
	assert_non_null(slash);
	*slash = '\0';
	return inet_pton(family, copy, prefix) == 1 ? (int)strtol(slash + 1, NULL, 10) : 0;
}

/* gid_tbl_len is that of the port; it must not matter whether a table of 12 has 256 slots. */
static int nccl_index(const struct gid_vf *vf, const struct nccl_env *env, int len)
{
	int family = env->family && !strcmp(env->family, "AF_INET6") ? AF_INET6 : AF_INET;
	int wanted = env->version ? atoi(env->version) : 2, index = 0;
	uint8_t prefix[16] = { 0 };
	int bits = nccl_range(env->range, family, prefix);

	if (env->index)
		return atoi(env->index);
	for (int next = 1; next < len; next++) {
		const uint8_t *gid = nccl_gid(vf, index), *candidate = nccl_gid(vf, next);
		bool match = nccl_matches(family, prefix, bits, candidate);

		if (nccl_family(candidate) != nccl_family(gid) &&
		    nccl_family(candidate) == family && match) {
			index = next;
			continue;
		}
		if (nccl_family(candidate) != family || !nccl_is_valid(candidate) || !match)
			continue;
		if (nccl_version(vf, next) != wanted)
			continue;
		if (nccl_is_valid(gid) && !nccl_version(vf, index))
			return UNDETERMINED;
		if (nccl_version(vf, index) != wanted || !nccl_is_valid(gid))
			index = next;
	}
	return index;
}

static struct nccl_env told(const struct gid_env *env)
{
	struct gid_decision decision = { .set = true, .env = *env };
	struct env_set set = { .arena = arena };

	put_gid_env(&decision, &set);
	return (struct nccl_env) { env_get(&set, "NCCL_IB_GID_INDEX"),
				   env_get(&set, "NCCL_IB_ADDR_FAMILY"),
				   env_get(&set, "NCCL_IB_ROCE_VERSION_NUM"),
				   env_get(&set, "NCCL_IB_ADDR_RANGE") };
}

/* --- candidates, once more --- */

static bool in_prefix(const uint8_t *gid, const uint8_t *prefix, int bits)
{
	for (int i = 0; i < bits; i++) {
		if (((gid[i / 8] ^ prefix[i / 8]) >> (7 - i % 8)) & 1)
			return false;
	}
	return true;
}

static bool is_v4(const uint8_t *gid)
{
	return !word(gid, 0) && !word(gid, 1) && word(gid, 2) == 0xffff;
}

static bool is_candidate(const struct gid_vf *vf, size_t i)
{
	const struct gid_entry *g = &vf->gids[i];
	static const uint8_t empty[16];

	if (!memcmp(g->gid, empty, 16) || g->gid[0] == 0xff ||
	    (g->gid[0] == 0xfe && g->gid[1] >> 6 == 2))
		return false;
	if (strcmp(g->type, vf->want.roce_version == 2 ? "RoCE v2" : "IB/RoCE v1") != 0)
		return false;
	if (vf->here && !vf->here[i])
		return false;
	if (vf->want.family != GID_FAMILY_ANY &&
	    (vf->want.family == GID_FAMILY_IPV4) != is_v4(g->gid))
		return false;
	return !vf->want.range || in_prefix(g->gid, vf->want.range, vf->want.range_bits);
}

static bool is_right(const struct gid_vf *vf, int index)
{
	for (size_t i = 0; i < vf->n_gids; i++) {
		if (vf->gids[i].index == index)
			return is_candidate(vf, i);
	}
	return false;
}

static bool all_right(const struct gid_vf *vfs, size_t n, const struct gid_env *env)
{
	struct nccl_env text = told(env);

	for (size_t i = 0; i < n; i++) {
		if (!is_right(&vfs[i], nccl_index(&vfs[i], &text, SLOTS)))
			return false;
	}
	return true;
}

static int only_index(const struct gid_vf *vf, enum gid_family family)
{
	int index = -1;

	for (size_t i = 0; i < vf->n_gids; i++) {
		if (!is_candidate(vf, i) || (family != GID_FAMILY_ANY &&
					     (family == GID_FAMILY_IPV4) != is_v4(vf->gids[i].gid)))
			continue;
		if (index >= 0)
			return -1;
		index = vf->gids[i].index;
	}
	return index;
}

static bool share_only_index(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	int index = only_index(&vfs[0], family);

	for (size_t i = 1; i < n; i++) {
		if (only_index(&vfs[i], family) != index)
			return false;
	}
	return index >= 0;
}

/* Some index is right on every VF. */
static bool share_index(const struct gid_vf *vfs, size_t n)
{
	for (int index = 0; index < SLOTS; index++) {
		size_t right = 0;

		for (size_t v = 0; v < n; v++)
			right += is_right(&vfs[v], index);
		if (right == n)
			return true;
	}
	return false;
}

/* One candidate of every VF: that NCCL stays at index 0, and this happens to be right, is not built
 * upon. */
static bool all_within(const struct gid_vf *vfs, size_t n, const uint8_t *range, int bits)
{
	for (size_t v = 0; v < n; v++) {
		bool any = false;

		for (size_t i = 0; i < vfs[v].n_gids; i++)
			any |= is_candidate(&vfs[v], i) &&
			       in_prefix(vfs[v].gids[i].gid, range, bits);
		if (!any)
			return false;
	}
	return true;
}

/* Does any range of this length, around any candidate of any VF, make NCCL right everywhere? */
static bool some_range_works(const struct gid_vf *vfs, size_t n, enum gid_family family, int bits)
{
	for (size_t v = 0; v < n; v++) {
		for (size_t i = 0; i < vfs[v].n_gids; i++) {
			struct gid_env env = { .index = -1,
					       .family = family,
					       .roce_version = vfs[0].want.roce_version,
					       .range_bits = bits };

			if (!is_candidate(&vfs[v], i) ||
			    is_v4(vfs[v].gids[i].gid) != (family == GID_FAMILY_IPV4))
				continue;
			memcpy(env.range, vfs[v].gids[i].gid, 16);
			if (all_within(vfs, n, env.range, bits) && all_right(vfs, n, &env))
				return true;
		}
	}
	return false;
}

static bool all_have(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	for (size_t v = 0; v < n; v++) {
		bool any = false;

		for (size_t i = 0; i < vfs[v].n_gids; i++)
			any |= is_candidate(&vfs[v], i) &&
			       is_v4(vfs[v].gids[i].gid) == (family == GID_FAMILY_IPV4);
		if (!any)
			return false;
	}
	return true;
}

/* The length of the shortest range that works, that of the operator to begin with; -1: none does.
 */
static int shortest_range(const struct gid_vf *vfs, size_t n, enum gid_family family)
{
	const struct gid_want *want = &vfs[0].want;
	struct gid_env env = { .index = -1, .family = family, .roce_version = want->roce_version };

	if (!all_have(vfs, n, family))
		return -1;
	if (want->range) {
		memcpy(env.range, want->range, 16);
		env.range_bits = want->range_bits;
	}
	if (all_right(vfs, n, &env))
		return env.range_bits;
	for (int bits = env.range_bits + 1; bits <= 128; bits++) {
		if ((family == GID_FAMILY_IPV6 || bits > 96) &&
		    some_range_works(vfs, n, family, bits))
			return bits;
	}
	return -1;
}

/* --- random tables --- */

static uint64_t seed;

static unsigned draw(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % n;
}

/* Addresses of this container and of others, near to each other and not, and what is no address. */
static const char *const addresses[] = {
	"::ffff:10.0.0.7",
	"::ffff:10.0.0.6",
	"::ffff:10.0.1.7",
	"::ffff:192.168.5.1",
	"::ffff:10.0.0.135",
	"fd00::7",
	"fd00::6",
	"fd00:0:0:1::7",
	"2001:db8::1",
	"fe80::1",
	"fe80::1",
	"fe80:0:0:1::1",
	"::",
	"ff0e::ffff:10.0.0.7",
	"fe80::",
};

struct tables {
	struct gid_vf vfs[VFS_MAX];
	struct gid_entry gids[VFS_MAX][SLOTS];
	bool here[VFS_MAX][SLOTS];
	uint8_t range[16];
	size_t n;
};

static void draw_table(struct tables *t, size_t v)
{
	static const char *const types[] = { "RoCE v2", "IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "" };
	unsigned kinds = draw(3) ? 4 : 5, span = 2 + draw(ARRAY_LEN(addresses) - 1);
	struct gid_vf *vf = &t->vfs[v];

	for (int slot = 0; slot < SLOTS; slot++) {
		struct gid_entry *g = &t->gids[v][vf->n_gids];
		const char *text = addresses[draw(span)];

		if (!draw(3))
			continue;
		if (!slot && draw(4))
			text = "fe80::1";
		g->index = slot;
		assert_int_equal(inet_pton(AF_INET6, text, g->gid), 1);
		snprintf(g->type, sizeof(g->type), "%s", types[draw(kinds)]);
		t->here[v][vf->n_gids++] = draw(3) == 0;
	}
}

static void draw_tables(struct tables *t)
{
	static const char *const ranges[] = { "::ffff:10.0.0.0", "fd00::" };
	enum gid_family family = (enum gid_family)draw(3);
	bool ranged = family != GID_FAMILY_ANY && !draw(3), known = draw(3) != 0;
	int version = draw(4) ? 2 : 1;

	memset(t, 0, sizeof(*t));
	t->n = 1 + draw(VFS_MAX);
	inet_pton(AF_INET6, ranges[family == GID_FAMILY_IPV6], t->range);
	for (size_t v = 0; v < t->n; v++) {
		t->vfs[v] =
			(struct gid_vf) { .id = "0000:3b:00.2",
					  .rdma = "mlx5_4",
					  .gids = t->gids[v],
					  .here = known ? t->here[v] : NULL,
					  .want = { .family = family, .roce_version = version } };
		if (ranged) {
			t->vfs[v].want.range = t->range;
			t->vfs[v].want.range_bits = family == GID_FAMILY_IPV4 ? 96 + 16 : 16;
		}
		draw_table(t, v);
	}
}

enum outcome { OUT_INDEX, OUT_SHARED, OUT_PLAIN, OUT_RANGE, OUT_NOTHING, OUT_MAX };

static void check_nothing(const struct tables *t, const char *why)
{
	assert_non_null(why);
	assert_false(share_index(t->vfs, t->n));
	for (int f = GID_FAMILY_IPV4; f <= GID_FAMILY_IPV6; f++) {
		const struct gid_want *want = &t->vfs[0].want;

		if (want->family != GID_FAMILY_ANY && (int)want->family != f)
			continue;
		assert_false(share_only_index(t->vfs, t->n, (enum gid_family)f));
		assert_int_equal(shortest_range(t->vfs, t->n, (enum gid_family)f), -1);
	}
}

/* What is told is right on every VF, an index is the only one or the last resort, a range the
 * shortest; silence has a reason. */
static enum outcome check(const struct tables *t)
{
	const struct gid_want *want = &t->vfs[0].want;
	struct gid_env env;
	const char *why = NULL;

	if (!gid_auto(t->vfs, t->n, arena, &env, &why)) {
		check_nothing(t, why);
		return OUT_NOTHING;
	}
	assert_true(all_right(t->vfs, t->n, &env));
	if (env.index >= 0) {
		if (share_only_index(t->vfs, t->n, GID_FAMILY_IPV4) ||
		    share_only_index(t->vfs, t->n, GID_FAMILY_IPV6) ||
		    share_only_index(t->vfs, t->n, GID_FAMILY_ANY))
			return OUT_INDEX;
		assert_int_equal(shortest_range(t->vfs, t->n, GID_FAMILY_IPV4), -1);
		assert_int_equal(shortest_range(t->vfs, t->n, GID_FAMILY_IPV6), -1);
		return OUT_SHARED;
	}
	assert_false(share_only_index(t->vfs, t->n, env.family));
	assert_int_equal(env.range_bits, shortest_range(t->vfs, t->n, env.family));
	return env.range_bits > (want->range ? want->range_bits : 0) ? OUT_RANGE : OUT_PLAIN;
}

static void whatever_is_told_is_right_on_every_vf(void **state)
{
	size_t seen[OUT_MAX] = { 0 };

	(void)state;
	seed = 20261121;
	for (int i = 0; i < chance_rounds(20000); i++) {
		struct tables t;

		draw_tables(&t);
		seen[check(&t)]++;
		if (i % 500 == 499) {
			arena_free(arena);
			arena = arena_new(0);
		}
	}
	for (size_t i = 0; i < OUT_MAX; i++)
		assert_true(seen[i] > (size_t)chance_rounds(100));
}

/* Every pair of tables of three slots. */
static void small_tables_are_all_right(void **state)
{
	static const struct {
		const char *address, *type;
		bool here;
	} kinds[] = {
		{ NULL, "", false },
		{ "fe80::1", "RoCE v2", false },
		{ "::ffff:10.0.0.7", "IB/RoCE v1", true },
		{ "::ffff:10.0.0.7", "RoCE v2", true },
		{ "::ffff:10.0.0.6", "RoCE v2", false },
		{ "fd00::7", "RoCE v2", true },
	};
	enum { KINDS = ARRAY_LEN(kinds), TABLES = KINDS * KINDS * KINDS };

	(void)state;
	for (int pair = 0; pair < TABLES * TABLES; pair++) {
		struct tables t = { .n = 2 };

		for (int v = 0, rest = pair; v < 2; v++) {
			t.vfs[v] = (struct gid_vf) { .id = "0000:3b:00.2",
						     .rdma = "mlx5_4",
						     .gids = t.gids[v],
						     .here = t.here[v],
						     .want = { .roce_version = 2 } };
			for (int slot = 0; slot < 3; slot++, rest /= KINDS) {
				struct gid_entry *g = &t.gids[v][t.vfs[v].n_gids];

				if (!kinds[rest % KINDS].address)
					continue;
				g->index = slot;
				inet_pton(AF_INET6, kinds[rest % KINDS].address, g->gid);
				strcpy(g->type, kinds[rest % KINDS].type);
				t.here[v][t.vfs[v].n_gids++] = kinds[rest % KINDS].here;
			}
		}
		check(&t);
		if (pair % 500 == 499) {
			arena_free(arena);
			arena = arena_new(0);
		}
	}
}

static void the_length_of_the_table_is_without_influence(void **state)
{
	(void)state;
	seed = 7;
	for (int i = 0; i < 3000; i++) {
		struct gid_env env;
		struct nccl_env text;
		struct tables t;
		const char *why;

		draw_tables(&t);
		if (!gid_auto(t.vfs, t.n, arena, &env, &why))
			continue;
		text = told(&env);
		for (size_t v = 0; v < t.n; v++)
			assert_true(
				is_right(&t.vfs[v], nccl_index(&t.vfs[v], &text, GID_TABLE_MAX)));
	}
}

static void the_scan_is_that_of_nccl(void **state)
{
	(void)state;
	seed = 4711;
	for (int i = 0; i < chance_rounds(20000); i++) {
		struct gid_env env = { .index = -1, .roce_version = draw(3) ? 2 : 1 };
		struct nccl_env text;
		struct tables t;

		draw_tables(&t);
		env.family = draw(2) ? GID_FAMILY_IPV4 : GID_FAMILY_IPV6;
		inet_pton(AF_INET6, addresses[draw(4) + (env.family == GID_FAMILY_IPV6 ? 5 : 0)],
			  env.range);
		env.range_bits = draw(2)			 ? 0
				 : env.family == GID_FAMILY_IPV4 ? 96 + (int)draw(33)
								 : (int)draw(129);
		t.vfs[0].table_len = SLOTS;
		text = told(&env);
		assert_int_equal(gid_nccl_picks(&t.vfs[0], &env),
				 nccl_index(&t.vfs[0], &text, SLOTS));
		if (i % 500 == 499) {
			arena_free(arena);
			arena = arena_new(0);
		}
	}
}

/* --- tables as they are met --- */

#define LL(i, type)                                                                                \
	{                                                                                          \
		(i), { 0xfe, 0x80, [15] = 1 }, (type), "net1"                                      \
	}
#define V4(i, type, c, d)                                                                          \
	{                                                                                          \
		(i), { [10] = 0xff, [11] = 0xff, 10, 0, (c), (d) }, (type), "net1"                 \
	}
#define V6(i, type, last)                                                                          \
	{                                                                                          \
		(i), { 0xfd, [15] = (last) }, (type), "net1"                                       \
	}
#define ROCE1 "IB/RoCE v1"
#define ROCE2 "RoCE v2"

static const struct gid_entry usual[] = { LL(0, ROCE1), LL(1, ROCE2), V4(2, ROCE1, 0, 1),
					  V4(3, ROCE2, 0, 1) };
static const struct gid_entry added_again[] = { LL(0, ROCE1), LL(1, ROCE2), V4(4, ROCE1, 0, 1),
						V4(5, ROCE2, 0, 1) };
static const struct gid_entry v2_only[] = { LL(0, ROCE2), V4(1, ROCE2, 0, 1) };
static const struct gid_entry only_v6[] = { LL(0, ROCE1), LL(1, ROCE2), V6(2, ROCE1, 1),
					    V6(3, ROCE2, 1) };
static const struct gid_entry both[] = { LL(0, ROCE1),	  LL(1, ROCE2),	      V6(2, ROCE1, 1),
					 V6(3, ROCE2, 1), V4(4, ROCE1, 0, 1), V4(5, ROCE2, 0, 1) };
static const struct gid_entry link_local[] = { LL(0, ROCE1), LL(1, ROCE2) };
static const struct gid_entry two_addresses[] = { LL(0, ROCE1),		LL(1, ROCE2),
						  V4(2, ROCE1, 0, 1),	V4(3, ROCE2, 0, 1),
						  V4(4, ROCE1, 1, 200), V4(5, ROCE2, 1, 200) };
static const struct gid_entry only_v1[] = { LL(0, ROCE1), V4(1, ROCE1, 0, 1) };

#define VF(table)                                                                                  \
	{                                                                                          \
		.id = "0000:3b:00.2", .rdma = "mlx5_4", .gids = (table),                           \
		.n_gids = ARRAY_LEN(table), .want = {                                              \
			.roce_version = 2                                                          \
		}                                                                                  \
	}

static void assert_told(const struct gid_vf *vfs, size_t n, const char *index, const char *family,
			const char *range)
{
	struct gid_env env;
	struct nccl_env text;
	const char *why = NULL;

	assert_true(gid_auto(vfs, n, arena, &env, &why));
	text = told(&env);
	assert_true(str_eq(text.index, index));
	assert_true(str_eq(text.family, family));
	assert_true(str_eq(text.range, range));
}

static const char *why_nothing(const struct gid_vf *vfs, size_t n)
{
	struct gid_env env;
	const char *why = NULL;

	assert_false(gid_auto(vfs, n, arena, &env, &why));
	return why;
}

static void one_address_gives_its_index_wherever_it_is(void **state)
{
	struct gid_vf vf[] = { VF(usual), VF(added_again), VF(v2_only), VF(only_v6) };
	static const char *const index[] = { "3", "5", "1", "3" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vf); i++)
		assert_told(&vf[i], 1, index[i], NULL, NULL);
}

static void vfs_whose_tables_differ_are_left_to_nccl(void **state)
{
	struct gid_vf vfs[] = { VF(usual), VF(added_again), VF(v2_only), VF(both) };

	(void)state;
	assert_told(vfs, 4, NULL, NULL, NULL);
	vfs[0].want.family = vfs[3].want.family = GID_FAMILY_IPV4;
	assert_told(vfs, 4, NULL, NULL, NULL);
}

static void ipv6_is_named_where_it_is_all_there_is(void **state)
{
	struct gid_vf vfs[] = { VF(only_v6), VF(both) };
	static const struct gid_entry late[] = { LL(0, ROCE2), V6(1, ROCE2, 1) };
	struct gid_vf others[] = { VF(only_v6), VF(late) };

	(void)state;
	assert_told(vfs, 2, "3", NULL, NULL);
	assert_told(others, 2, NULL, "AF_INET6", NULL);
}

static void ipv4_on_one_and_ipv6_on_another_needs_one_index(void **state)
{
	struct gid_vf vfs[] = { VF(usual), VF(only_v6) };
	struct gid_vf apart[] = { VF(v2_only), VF(only_v6) };

	(void)state;
	assert_told(vfs, 2, "3", NULL, NULL);
	assert_non_null(strstr(why_nothing(apart, 2), "IPv4"));
}

/* A NIC that pods share by macvlan has the GIDs of all of them in one table. */
static void gids_of_other_pods_are_kept_out_by_the_shortest_range(void **state)
{
	static const struct gid_entry shared[] = { LL(0, ROCE1),	LL(1, ROCE2),
						   V4(2, ROCE2, 0, 4),	V4(3, ROCE2, 0, 7),
						   V4(4, ROCE2, 0, 13), V4(6, ROCE2, 0, 6) };
	bool ours[] = { false, false, false, true, false, false },
	     two[] = { false, false, false, true, false, true };
	struct gid_vf vf = VF(shared);

	(void)state;
	vf.here = ours;
	assert_told(&vf, 1, "3", NULL, NULL); /* the only one that is ours */
	vf.here = two;
	assert_told(&vf, 1, NULL, NULL, "10.0.0.6/31");
}

static void several_addresses_are_left_to_nccl_and_to_the_range_of_the_operator(void **state)
{
	static const uint8_t range[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 1, 0 };
	struct gid_vf vf = VF(two_addresses);

	(void)state;
	assert_told(&vf, 1, NULL, NULL, NULL);
	vf.want = (struct gid_want) { GID_FAMILY_IPV4, 2, range, 96 + 24 };
	assert_told(&vf, 1, "5", NULL, NULL);
	vf.want.range_bits = 96 + 8;
	assert_told(&vf, 1, NULL, NULL, "10.0.0.0/8");
}

static void what_nccl_leaves_to_chance_is_not_relied_on(void **state)
{
	static const struct gid_entry odd[] = { V4(0, "", 0, 9), V4(1, ROCE2, 0, 1),
						V4(2, ROCE2, 0, 2) };
	struct gid_vf vf = VF(odd);
	struct gid_env env = { .index = -1, .family = GID_FAMILY_IPV4, .roce_version = 2 };

	(void)state;
	assert_int_equal(gid_nccl_picks(&vf, &env), -1);
	assert_told(&vf, 1, "1", NULL, NULL);
}

/* The address of another container, which NCCL's scan would take, is as near to ours as it gets. */
static void an_index_that_all_share_is_told_where_nothing_else_is_right(void **state)
{
	static const struct gid_entry first[] = { LL(0, ROCE2), V4(1, ROCE2, 0, 9),
						  V4(2, ROCE2, 0, 8), V4(3, ROCE2, 0, 9) };
	static const struct gid_entry second[] = { LL(0, ROCE2), V4(2, ROCE2, 0, 9),
						   V4(3, ROCE2, 0, 8), V6(4, ROCE2, 1) };
	static const bool here_first[] = { false, false, true, true },
			  here_second[] = { false, true, false, true };
	struct gid_vf vfs[] = { VF(first), VF(second) };

	(void)state;
	vfs[0].here = here_first;
	vfs[1].here = here_second;
	assert_told(vfs, 2, "2", NULL, NULL);
}

static void silence_has_a_reason(void **state)
{
	static const uint8_t range[16] = { [10] = 0xff, [11] = 0xff, 192, 168 };
	static const bool none_here[] = { false, false, false, false };
	struct gid_vf vf = VF(usual), local = VF(link_local), v1 = VF(only_v1),
		      empty = { .id = "0000:3b:00.2", .rdma = "mlx5_4" };

	(void)state;
	assert_non_null(strstr(why_nothing(&local, 1), "VF 0000:3b:00.2 has only link-local GIDs"));
	assert_non_null(strstr(why_nothing(&v1, 1), "roceVersion"));
	assert_non_null(strstr(why_nothing(&empty, 1), "no GID at all"));
	vf.here = none_here;
	assert_non_null(strstr(why_nothing(&vf, 1), "namespace"));
	vf.here = NULL;
	vf.want.family = GID_FAMILY_IPV6;
	assert_non_null(strstr(why_nothing(&vf, 1), "gidFamily"));
	vf.want = (struct gid_want) { GID_FAMILY_IPV4, 2, range, 96 + 16 };
	assert_non_null(strstr(why_nothing(&vf, 1), "gidRange"));
}

static void version_1_is_asked_for_by_its_variable(void **state)
{
	struct gid_vf vfs[] = { VF(usual), VF(only_v1) };
	struct gid_env env;
	const char *why;

	(void)state;
	vfs[0].want.roce_version = vfs[1].want.roce_version = 1;
	assert_true(gid_auto(vfs, 2, arena, &env, &why));
	assert_string_equal(told(&env).version, "1");
	assert_null(told(&env).index);
}

/* --- fixed --- */

static const char *refused(const struct gid_vf *vfs, size_t n, int index)
{
	static struct err err;

	err = (struct err) { 0 };
	assert_int_equal(gid_check_fixed(vfs, n, index, "rdma/vf", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "mlx5_4"));
	assert_non_null(strstr(err.msg, "rdma/vf"));
	return err.msg;
}

static void a_fixed_index_that_works_is_taken(void **state)
{
	struct gid_vf vfs[] = { VF(usual), VF(two_addresses) };

	(void)state;
	assert_int_equal(gid_check_fixed(vfs, 2, 3, "rdma/vf", NULL), 0);
	assert_int_equal(gid_check_fixed(vfs, 0, 3, "rdma/vf", NULL), 0);
}

static void a_fixed_index_that_cannot_work_is_refused_with_the_reason(void **state)
{
	static const bool foreign[] = { true, true, true, false };
	static const uint8_t range[16] = { [10] = 0xff, [11] = 0xff, 192, 168 };
	struct gid_vf vf = VF(usual), mixed[] = { VF(usual), VF(v2_only) };

	(void)state;
	assert_non_null(strstr(refused(&vf, 1, 7), "has no GID at index 7"));
	vf.table_len = 6;
	assert_non_null(strstr(refused(&vf, 1, 7), "ends at 5"));
	assert_non_null(strstr(refused(&vf, 1, 5), "has no GID at index 5"));
	assert_non_null(strstr(refused(&vf, 1, 1), "link-local"));
	assert_non_null(strstr(refused(&vf, 1, 2), "RoCE version"));
	vf.here = foreign;
	assert_non_null(strstr(refused(&vf, 1, 3), "not in the container's network namespace"));
	vf.here = NULL;
	vf.want.family = GID_FAMILY_IPV6;
	assert_non_null(strstr(refused(&vf, 1, 3), "gidFamily"));
	vf.want = (struct gid_want) { GID_FAMILY_IPV4, 2, range, 96 + 16 };
	assert_non_null(strstr(refused(&vf, 1, 3), "gidRange"));
	mixed[0].driver = "mlx5_core";
	mixed[1].driver = "irdma";
	assert_non_null(strstr(refused(mixed, 2, 3), "different drivers"));
}

static void addresses_and_ranges_read_as_nccl_reads_them(void **state)
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, 10, 1, 2, 3 },
			     v6[16] = { 0xfd, [15] = 1 };

	(void)state;
	assert_string_equal(gid_format(v4, arena), "10.1.2.3");
	assert_string_equal(gid_format(v6, arena), "fd00::1");
	assert_string_equal(gid_format_range(v4, 128, arena), "10.1.2.3/32");
	assert_string_equal(gid_format_range(v6, 64, arena), "fd00::1/64");
	assert_string_equal(gid_format_range(v6, 128, arena), "fd00::1/128");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, arena_set_up, arena_tear_down)
	const struct CMUnitTest tests[] = {
		T(the_scan_is_that_of_nccl),
		T(whatever_is_told_is_right_on_every_vf),
		T(small_tables_are_all_right),
		T(the_length_of_the_table_is_without_influence),
		T(one_address_gives_its_index_wherever_it_is),
		T(vfs_whose_tables_differ_are_left_to_nccl),
		T(ipv6_is_named_where_it_is_all_there_is),
		T(ipv4_on_one_and_ipv6_on_another_needs_one_index),
		T(gids_of_other_pods_are_kept_out_by_the_shortest_range),
		T(several_addresses_are_left_to_nccl_and_to_the_range_of_the_operator),
		T(what_nccl_leaves_to_chance_is_not_relied_on),
		T(an_index_that_all_share_is_told_where_nothing_else_is_right),
		T(silence_has_a_reason),
		T(version_1_is_asked_for_by_its_variable),
		T(a_fixed_index_that_works_is_taken),
		T(a_fixed_index_that_cannot_work_is_refused_with_the_reason),
		T(addresses_and_ranges_read_as_nccl_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
