/* All pools of a container → its variables, one value each, and its device nodes. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/profiles-internal.h"
#include "render/render-internal.h"

#define RDMA_CM "/dev/infiniband/rdma_cm"
/* Those that get a GID index. */
#define PROFILES_INDEXED (PROFILE_MSCCLPP | PROFILE_OFI | PROFILE_ONECCL)

/* --- the operator's variables --- */

const char *policy_value(const struct pool_config *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->n_env; i++) {
		if (!strcmp(cfg->env[i].name, name))
			return cfg->env[i].value;
	}
	return NULL;
}

static void put_policy_of(const struct grant *grants, size_t at, struct env_set *set,
			  struct notes *notes)
{
	const struct pool_config *cfg = grants[at].pool->cfg;

	for (size_t i = 0; i < cfg->n_env; i++) {
		const char *name = cfg->env[i].name, *value = cfg->env[i].value, *taken;
		const struct pool_config *before;
		size_t first = 0;

		if (env_put(set, name, value))
			continue;
		/* The first pool with the variable, whose value counts, unless railmate set it. */
		while (first < at && !policy_value(grants[first].pool->cfg, name))
			first++;
		before = first < at ? grants[first].pool->cfg : NULL;
		taken = env_get(set, name);
		if (!strcmp(taken, value))
			continue;
		add_note(
			notes,
			before ? arena_printf(set->arena,
					      "%s is %s in the pool %s and %s in %s: %s is taken",
					      name, taken, before->resource, value, cfg->resource,
					      taken)
			       : arena_printf(
					 set->arena,
					 "%s is %s in the pool %s, but railmate finds that it has to be %s: that is taken",
					 name, value, cfg->resource, taken));
	}
}

/* --- variables that railmate derives --- */

/* A CDI spec holds every variable itself; and the file takes the place of one in the user's home.
 */
static void put_files(const struct grant *grants, size_t n, struct env_set *set)
{
	for (size_t i = 0; i < n; i++) {
		bool rdma = false;

		for (size_t k = 0; k < grants[i].n_devs; k++)
			rdma |= pool_dev_is_rdma(grants[i].pool, grants[i].devs[k].dev);
		if (!rdma || !(grants[i].pool->cfg->profiles & PROFILES_NCCL))
			continue;
		if (grants[i].files && grants[i].pool->cfg->binding == BINDING_EARLY)
			env_put(set, "NCCL_CONF_FILE", RENDER_DIR "/" RENDER_CONF_NAME);
		if (grants[i].topo_file)
			env_put(set, "NCCL_TOPO_FILE", grants[i].topo_file);
	}
}

int render_joined_env(const struct grant *grants, size_t n, struct env_set *set,
		      struct notes *notes, struct err *err)
{
	struct edits edits = { .envs = arena_array(set->arena, PROFILE_ENV_MAX,
						   sizeof(struct kv)) };
	struct gid_decision nccl, all;
	const struct rail *rails;
	size_t count;
	int r;

	render_nccl_env(grants, n, set, notes);
	count = grant_rails(grants, n, PROFILES_NCCL, set->arena, &rails);
	r = decide_gids(rails, count, set->arena, &nccl, notes, err);
	if (r < 0)
		return r;
	put_gid_env(&nccl, set);
	count = grant_rails(grants, n, PROFILES_INDEXED, set->arena, &rails);
	r = decide_gids(rails, count, set->arena, &all, NULL, err);
	if (r < 0)
		return r;
	render_profile_env(grants, n, all.index, set->arena, &edits);
	env_put_all(set, &edits);
	put_files(grants, n, set);
	for (size_t i = 0; i < n; i++)
		put_policy_of(grants, i, set, notes);
	return 0;
}

/* --- variables of one pool --- */

void render_own_env(const struct grant *grant, struct env_set *set)
{
	struct edits edits = { .envs = arena_array(set->arena, OWN_ENV_MAX, sizeof(struct kv)) };

	if (!grant->pool->cfg->shares)
		render_peer_env(grant, set->arena, &edits);
	render_fact_env(grant, set->arena, &edits);
	assert(edits.n_envs <= OWN_ENV_MAX);
	env_put_all(set, &edits);
}

/* --- device nodes --- */

static void add_mapped_node(struct edits *edits, const char *host, const char *container)
{
	for (size_t i = 0; i < edits->n_devs; i++) {
		if (!strcmp(edits->devs[i].host, host))
			return;
	}
	edits->devs[edits->n_devs++] = (struct devnode) { host, container, "rw" };
}

static void add_node(struct edits *edits, const char *path)
{
	add_mapped_node(edits, path, path);
}

/*
 * Of each VF /dev/infiniband/uverbsN, or the nodes that its user-space driver needs; then rdma_cm,
 * vhost-net and tun. umad only where the pool has it, never issm: they allow MAD sending
 * (docs/design/nccl.md §1.2).
 */
void render_nodes(const struct grant *grants, size_t n, struct arena *arena, struct edits *edits)
{
	bool rdma_cm = false, vhost_net = false;
	size_t max = 4; /* vfio, rdma_cm, vhost-net, tun */

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < grants[i].n_devs; k++)
			max += 2 + grants[i].devs[k].n_umads;
	}
	edits->devs = arena_array(arena, max, sizeof(*edits->devs));
	for (size_t i = 0; i < n; i++) {
		const struct grant *grant = &grants[i];

		for (size_t k = 0; k < grant->n_devs; k++) {
			const struct grant_dev *dev = &grant->devs[k];

			vhost_net |= dev->dev->vhost_net && grant->node->inv->has_vhost_net;
			if (dev->user && dev->user->vfio)
				add_node(edits, VFIO_NODE);
			if (dev->user && dev->user->node[0])
				add_mapped_node(edits, dev->user->host, dev->user->node);
			if (!dev->uverbs || !pool_dev_is_rdma(grant->pool, dev->dev))
				continue;
			for (size_t u = 0; u < dev->n_umads; u++)
				add_node(edits, umad_node(dev->umads[u], arena));
			add_node(edits, verbs_node(dev, arena));
			rdma_cm |= grant->node->inv->has_rdma_cm &&
				   render_wants_rdma_cm(grant->pool->cfg);
		}
	}
	if (rdma_cm)
		add_node(edits, RDMA_CM);
	if (vhost_net) {
		add_node(edits, VHOST_NET_NODE);
		add_node(edits, TUN_NODE);
	}
}
