/*
 * NCCL's variables. Source of every rule: NCCL 2.30 src/transport/net_ib/{init,connect}.cc and the kernel's
 * drivers/infiniband/core/cache.c, as collected in the reference page nccl.md §1.
 */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render-internal.h"

/* MAX_IB_DEVS since NCCL 2.18.5; later entries are dropped without a word. */
#define HCAS_MAX 32

/*
 * "=dev:port,…": '=' asks for whole names (without it mlx5_1 also takes mlx5_10), the port is explicit, VFs
 * come in address order. An empty list would match every HCA of the node, so it is never written.
 */
static void put_hcas(const struct grant *grant, struct arena *arena, struct edits *edits)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < grant->n_devs && n < HCAS_MAX; i++) {
		if (!grant->devs[i].rdma)
			continue;
		strbuf_putc(&b, n++ ? ',' : '=');
		put_hca(&b, grant, &grant->devs[i]);
	}
	if (n)
		add_env(edits, "NCCL_IB_HCA", arena_strdup(arena, strbuf_str(&b)));
}

static const struct gid_entry *gid_at(const struct grant_dev *dev, int index)
{
	for (size_t i = 0; i < dev->n_gids; i++) {
		if (dev->gids[i].index == index)
			return &dev->gids[i];
	}
	return NULL;
}

static bool is_ipv4_mapped(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* The GID that NCCL would take: the first routable RoCE v2 one, IPv4 before IPv6; -1 if there is none. */
static int best_gid(const struct grant_dev *dev)
{
	int v6 = -1;

	for (size_t i = 0; i < dev->n_gids; i++) {
		const struct gid_entry *g = &dev->gids[i];

		if (strcmp(g->type, "RoCE v2") || is_link_local(g->gid))
			continue;
		if (is_ipv4_mapped(g->gid))
			return g->index;
		if (v6 < 0)
			v6 = g->index;
	}
	return v6;
}

/* On InfiniBand NCCL ignores the index; a mixed grant has no index that is right for all. */
static bool all_ethernet(const struct grant *grant)
{
	for (size_t i = 0; i < grant->n_devs; i++) {
		if (grant_link(grant, &grant->devs[i]) != HW_LINK_ETHERNET)
			return false;
	}
	return grant->n_devs > 0;
}

/* Only when the table is final (host network) and every VF agrees. */
static int auto_gid(const struct grant *grant)
{
	int index;

	if (grant->pool->cfg->network != NETWORK_HOST)
		return -1;
	index = best_gid(&grant->devs[0]);
	for (size_t i = 1; i < grant->n_devs; i++) {
		if (best_gid(&grant->devs[i]) != index)
			return -1;
	}
	return index;
}

/* In a pod's own network the table is made after Allocate and the index is the operator's word; on the host
 * it is checked. */
static int check_fixed_gid(const struct grant *grant, struct err *err)
{
	const struct pool_config *cfg = grant->pool->cfg;

	if (cfg->network != NETWORK_HOST)
		return 0;
	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct grant_dev *dev = &grant->devs[i];

		if (!gid_at(dev, cfg->gid_index))
			return err_set(err, EINVAL,
				       "VF %s has no GID at index %d of %s (gid is fixed:%d in the pool %s): "
				       "give its "
				       "network interface an address, or set gid to auto",
				       dev->dev->id, cfg->gid_index, dev->rdma, cfg->gid_index,
				       cfg->resource);
	}
	return 0;
}

static int put_gid(const struct grant *grant, struct arena *arena, struct edits *edits, struct err *err)
{
	const struct pool_config *cfg = grant->pool->cfg;
	int index, r;

	if (cfg->gid == GID_OFF || !all_ethernet(grant))
		return 0;
	if (cfg->gid == GID_FIXED) {
		r = check_fixed_gid(grant, err);
		if (r < 0)
			return r;
		index = cfg->gid_index;
	} else {
		index = auto_gid(grant);
	}
	if (index >= 0)
		add_env(edits, "NCCL_IB_GID_INDEX", arena_printf(arena, "%d", index));
	return 0;
}

int render_nccl_env(const struct grant *grant, struct arena *arena, struct edits *edits, struct err *err)
{
	put_hcas(grant, arena, edits);
	return put_gid(grant, arena, edits, err);
}
