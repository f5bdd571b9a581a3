/*
 * By which variables each library gets its devices. Sources, beside docs/design/nccl.md §5.1:
 * NCCL's env.rst (NCCL_IB_PKEY_VALUE), libfabric pull request 12262 (lists in FI_VERBS_DEVICE_NAME
 * since 2026; before, one name or prefix), UCX uct_ib_iface_config_table (PKEY without the
 * membership bit), NVSHMEM nvshmemt_check_hca_prefix().
 */
#include "render/profiles-internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/driver.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render-internal.h"

#define PKEY_PARTITION 0x7fff /* without the bit for full membership */

/* The VFs of the pools that have one of these profiles, in rail order. */
struct hcas {
	const struct grant *grants;
	size_t n_grants;
	unsigned profiles;
	int gid_index;
	const struct rail *v;
	size_t n;
	struct arena *arena;
};

static bool takes_part(const struct hcas *h, const struct grant *grant)
{
	return grant->pool->cfg->is_rdma && (grant->pool->cfg->profiles & h->profiles);
}

static const char *names(const struct hcas *h)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < h->n; i++)
		strbuf_printf(&b, "%s%s", i ? "," : "", h->v[i].dev->rdma);
	return arena_strdup(h->arena, strbuf_str(&b));
}

/* How many characters all names begin with. */
static size_t common_length(const struct hcas *h)
{
	const char *first = h->v[0].dev->rdma;
	size_t len = strlen(first);

	for (size_t i = 1; i < h->n; i++) {
		size_t same = 0;

		while (same < len && first[same] == h->v[i].dev->rdma[same])
			same++;
		len = same;
	}
	return len;
}

static void add_index(const struct hcas *h, const char *name, struct edits *ret)
{
	if (h->gid_index >= 0)
		add_env(ret, name, arena_printf(h->arena, "%d", h->gid_index));
}

/* With the operator's interfaces of each pool, unless an earlier pool has the same. */
static void put_devices(const struct hcas *h, struct edits *ret)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < h->n; i++) {
		if (i)
			strbuf_putc(&b, ',');
		put_hca(&b, h->v[i].grant, h->v[i].dev);
	}
	for (size_t i = 0; i < h->n_grants; i++) {
		const char *more = h->grants[i].pool->cfg->ucx_devices;
		size_t k = 0;

		while (k < i && !(takes_part(h, &h->grants[k]) &&
				  str_eq(h->grants[k].pool->cfg->ucx_devices, more)))
			k++;
		if (more && k == i && takes_part(h, &h->grants[i]))
			strbuf_printf(&b, ",%s", more);
	}
	add_env(ret, "UCX_NET_DEVICES", arena_strdup(h->arena, strbuf_str(&b)));
}

/* One partition for all, on InfiniBand; -1 if there is none. */
static int common_pkey(const struct hcas *h)
{
	int pkey = h->v[0].grant->pool->cfg->pkey;

	for (size_t i = 0; i < h->n; i++) {
		if (h->v[i].grant->pool->cfg->pkey != pkey ||
		    grant_link(h->v[i].grant, h->v[i].dev) != HW_LINK_IB)
			return -1;
	}
	return pkey;
}

/* NCCL 2.31 and newer finds the place in each port's table itself, wherever the subnet manager put
 * it. */
static void put_nccl(const struct hcas *h, struct edits *ret)
{
	int pkey = common_pkey(h);

	if (pkey > 0)
		add_env(ret, "NCCL_IB_PKEY_VALUE",
			arena_printf(h->arena, "0x%04x", (unsigned)pkey));
}

static void put_ucx(const struct hcas *h, struct edits *ret)
{
	int pkey = common_pkey(h);

	put_devices(h, ret);
	if (pkey > 0)
		add_env(ret, "UCX_IB_PKEY",
			arena_printf(h->arena, "0x%04x", (unsigned)pkey & PKEY_PARTITION));
}

/* The pools have the same GID settings, and all VFs have RoCE's. */
static bool one_kind_of_gid(const struct hcas *h)
{
	const struct pool_config *a = h->v[0].grant->pool->cfg;

	for (size_t i = 0; i < h->n; i++) {
		const struct pool_config *b = h->v[i].grant->pool->cfg;

		if (a->gid_family != b->gid_family || a->roce_version != b->roce_version ||
		    !str_eq(a->gid_range, b->gid_range) ||
		    grant_link(h->v[i].grant, h->v[i].dev) != HW_LINK_ETHERNET)
			return false;
	}
	return true;
}

/*
 * The prefix is a filter on names. Letters only: the same on every node, and a part of a name is
 * enough. Which GPU uses which VF NVSHMEM finds out itself, and only the VFs of the container can
 * be opened: NVSHMEM_HCA_LIST would replace its topology by a plain round robin. It chooses GIDs as
 * NCCL does, and gets the operator's settings.
 */
static void put_nvshmem(const struct hcas *h, struct edits *ret)
{
	const struct pool_config *cfg = h->v[0].grant->pool->cfg;
	const char *first = h->v[0].dev->rdma;
	const struct hw_driver *driver = hw_driver_of_rdma(first);
	size_t len = common_length(h), letters = 0;

	while (letters < len && !isdigit((unsigned char)first[letters]))
		letters++;
	if (letters && !(driver && driver->quirks & HW_QUIRK_NVSHMEM_DEFAULT))
		add_env(ret, "NVSHMEM_HCA_PREFIX",
			arena_printf(h->arena, "%.*s", (int)letters, first));
	if (!one_kind_of_gid(h))
		return;
	if (cfg->gid_family == GID_FAMILY_IPV6)
		add_env(ret, "NVSHMEM_IB_ADDR_FAMILY", "AF_INET6");
	if (cfg->gid_range)
		add_env(ret, "NVSHMEM_IB_ADDR_RANGE", cfg->gid_range);
	if (cfg->roce_version == 1)
		add_env(ret, "NVSHMEM_IB_ROCE_VERSION_NUM", "1");
}

/* A GPU and a VF it may use. */
struct reach {
	struct bdf gpu;
	struct topo_path path;
	size_t vf; /* of the rails */
};

static int reach_cmp(const void *a, const void *b)
{
	const struct reach *x = a, *y = b;
	int r = bdf_cmp(x->gpu, y->gpu);

	return r ? r : (x->vf > y->vf) - (x->vf < y->vf);
}

/* By GPU, then in rail order. */
static struct reach *reaches(const struct hcas *h, size_t *ret_n)
{
	struct reach *out;
	size_t max = 0;

	*ret_n = 0;
	for (size_t i = 0; i < h->n_grants; i++)
		max += h->grants[i].n_pairs;
	out = arena_array(h->arena, max, sizeof(*out));
	for (size_t i = 0; i < h->n_grants; i++) {
		const struct grant *grant = &h->grants[i];

		for (size_t k = 0; k < grant->n_pairs; k++) {
			const struct choose_pair *p = &grant->pairs[k];
			const char *id = grant->pool->devs[p->dev].id;
			size_t vf = 0;

			while (vf < h->n && !str_eq(h->v[vf].dev->dev->id, id))
				vf++;
			if (vf < h->n)
				out[(*ret_n)++] =
					(struct reach) { grant->node->inv->pci[p->gpu].bdf, p->path,
							 vf };
		}
	}
	qsort(out, *ret_n, sizeof(*out), reach_cmp);
	return out;
}

/* The i-th name is the device of the i-th GPU: one a GPU, in the order of the GPUs. That is the
 * nearest, of those as near the one used by the fewest GPUs. */
static const char *names_by_gpu(const struct hcas *h)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	size_t *used = arena_array(h->arena, h->n, sizeof(*used)), n, i = 0;
	const struct reach *all = reaches(h, &n);

	if (!n)
		return names(h);
	while (i < n) {
		const struct reach *best = &all[i], *first = best;

		for (; i < n && bdf_cmp(first->gpu, all[i].gpu) == 0; i++) {
			int x = topo_rank(all[i].path.class), y = topo_rank(best->path.class);

			if (x != y ? x < y : used[all[i].vf] < used[best->vf])
				best = &all[i];
		}
		used[best->vf]++;
		strbuf_printf(&b, "%s%s", b.len ? "," : "", h->v[best->vf].dev->rdma);
	}
	return arena_strdup(h->arena, strbuf_str(&b));
}

static void put_mscclpp(const struct hcas *h, struct edits *ret)
{
	add_env(ret, "MSCCLPP_HCA_DEVICES", names_by_gpu(h));
	add_index(h, "MSCCLPP_IB_GID_INDEX", ret);
}

/* A common prefix of all names is understood by every libfabric; a list is not, and an old one
 * would find no device. */
static void put_ofi(const struct hcas *h, struct edits *ret)
{
	size_t len = common_length(h);

	if (len)
		add_env(ret, "FI_VERBS_DEVICE_NAME",
			arena_printf(h->arena, "%.*s", (int)len, h->v[0].dev->rdma));
	add_index(h, "FI_VERBS_GID_IDX", ret);
}

static void put_oneccl(const struct hcas *h, struct edits *ret)
{
	add_env(ret, "CCL_MNIC", "local");
	add_env(ret, "CCL_MNIC_NAME", names(h));
}

void render_profile_env(const struct grant *grants, size_t n, int gid_index, struct arena *arena,
			struct edits *ret)
{
	static const struct {
		unsigned profiles;
		void (*put)(const struct hcas *h, struct edits *ret);
	} rows[] = {
		{ PROFILES_NCCL, put_nccl },
		{ PROFILE_UCX, put_ucx },
		{ PROFILE_NVSHMEM, put_nvshmem },
		{ PROFILE_MSCCLPP, put_mscclpp },
		{ PROFILE_OFI | PROFILE_ONECCL, put_ofi },
		{ PROFILE_ONECCL, put_oneccl },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hcas h = { .grants = grants,
				  .n_grants = n,
				  .profiles = rows[i].profiles,
				  .gid_index = gid_index,
				  .arena = arena };

		h.n = grant_rails(grants, n, h.profiles, arena, &h.v);
		if (h.n)
			rows[i].put(&h, ret);
	}
}

bool render_wants_rdma_cm(const struct pool_config *cfg)
{
	unsigned by_cm = PROFILE_UCX | PROFILE_OFI | PROFILE_ONECCL;

	return !cfg->profiles_named || !cfg->profiles || (cfg->profiles & by_cm);
}
