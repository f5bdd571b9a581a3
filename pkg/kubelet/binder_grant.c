/* Bound VFs → what the container gets: as early binding gives it, for all late pools of the container
 * together. */
#include "kubelet/binder-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
#include "discover/sysroot.h"
#include "hw/inventory.h"
#include "kubelet/answer.h"
#include "kubelet/keeper.h"
#include "pool/node.h"
#include "render/cdi.h"

#define VERBS_DIR "sys/class/infiniband_verbs"

static struct ids vfs_of_pool(const struct binding *c, const struct pool *pool, struct arena *a)
{
	struct ids ids = { arena_array(a, c->n_slots, sizeof(*ids.v)), 0 };

	for (size_t i = 0; i < c->n_slots; i++) {
		if (c->slots[i].pool == pool)
			ids.v[ids.n++] = c->slots[i].dev->id;
	}
	return ids;
}

/* --- RDMA devices that a CNI plugin has moved into the pod already --- */

struct verbs_search {
	const struct sysroot *root;
	const char *rdma;
	char uverbs[64];
};

/* The class of verbs devices is the same in every network namespace, unlike that of RDMA devices. */
static int is_its_node(void *arg, const char *name)
{
	struct verbs_search *s = arg;
	char rdma[64];

	if (strlen(name) >= sizeof(s->uverbs) ||
	    sysroot_read(s->root, rdma, sizeof(rdma), VERBS_DIR "/%s/ibdev", name) < 0 ||
	    !str_eq(rdma, s->rdma))
		return 0;
	strcpy(s->uverbs, name);
	return 1;
}

static struct grant_dev away_dev(const struct binder *b, const struct pool_dev *dev, struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(keeper_ledger(b->env.keeper), dev->id);
	struct verbs_search s = { .root = b->env.root };
	struct grant_dev d = { .dev = dev };
	struct function_now now;

	if (discover_function_now(b->env.root, b->node->inv->pci[dev->pci].bdf, &now, NULL) < 0)
		return d;
	s.rdma = now.rdma[0] ? now.rdma : hold ? hold->rdma : NULL;
	if (!s.rdma)
		return d;
	d.rdma = arena_strdup(a, s.rdma);
	if (now.uverbs[0])
		d.uverbs = arena_strdup(a, now.uverbs);
	else if (sysroot_each(b->env.root, VERBS_DIR, is_its_node, &s) == 1)
		d.uverbs = arena_strdup(a, s.uverbs);
	return d;
}

/* False: one of them is really not there. */
static bool grant_away(const struct binder *b, const struct binding *c, const struct pool *pool,
		       const struct ids *vfs, struct arena *a, struct edits *ret)
{
	struct grant_dev *devs = arena_array(a, vfs->n, sizeof(*devs));
	struct grant grant = { .node = c->node, .pool = pool, .devs = devs };
	int *index = arena_array(a, vfs->n, sizeof(*index));
	struct choose_in in = { .node = c->node, .pool = pool, .gpus = c->gpus, .n_gpus = c->n_gpus };
	struct choose_out out;

	for (size_t i = 0; i < pool->n_devs; i++) {
		bool ours = false;

		for (size_t k = 0; k < vfs->n; k++)
			ours |= !strcmp(vfs->v[k], pool->devs[i].id);
		if (!ours)
			continue;
		index[grant.n_devs] = (int)i;
		devs[grant.n_devs] = away_dev(b, &pool->devs[i], a);
		if (!devs[grant.n_devs++].uverbs)
			return false;
	}
	if (c->n_gpus) {
		out = choose_pairs(&in, index, grant.n_devs, a);
		grant.pairs = out.pairs;
		grant.n_pairs = out.n_pairs;
	}
	return render_grant(&grant, a, ret, NULL) == 0;
}

/* --- */

static int grant_vfs(const struct binder *b, const struct binding *c, const struct pool *pool,
		     const struct ids *vfs, struct arena *a, struct edits *ret, struct err *err)
{
	int r = answer_allocate(c->node, pool, vfs, b->env.root, c->gpus, c->n_gpus, a, ret, err);

	if (r == -EIO && pool->cfg->is_rdma && grant_away(b, c, pool, vfs, a, ret))
		return 0;
	return r;
}

static bool is_first_of_pool(const struct binding *c, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (c->slots[i].pool == c->slots[at].pool)
			return false;
	}
	return true;
}

/* What NCCL is told of VFs that were bound early: Allocate set it, and this spec would hide it. */
static size_t grant_early(const struct binder *b, const struct binding *c, struct edits *ret, struct arena *a)
{
	size_t n = 0;

	for (size_t i = 0; c->container && i < c->container->n_held; i++) {
		const struct held *held = &c->container->held[i];
		const struct pool *pool = node_pool(c->node, held->resource);
		struct edits all, *nccl = &ret[n];

		if (!pool || pool->cfg->binding == BINDING_LATE ||
		    answer_allocate(c->node, pool, &held->ids, b->env.root, c->gpus, c->n_gpus, a, &all,
				    NULL) < 0)
			continue;
		*nccl = (struct edits) { .envs = arena_array(a, all.n_envs, sizeof(*nccl->envs)) };
		for (size_t k = 0; k < all.n_envs; k++) {
			if (str_starts(all.envs[k].key, "NCCL_"))
				nccl->envs[nccl->n_envs++] = all.envs[k];
		}
		n++;
	}
	return n;
}

int grant_container(const struct binder *b, const struct binding *c, struct arena *a, struct edits *ret_env,
		    struct edits *ret_nodes, struct err *err)
{
	size_t n_held = c->container ? c->container->n_held : 0, n = 0;
	struct edits *pools = arena_array(a, c->n_slots + n_held, sizeof(*pools));
	int r;

	for (size_t i = 0; i < c->n_slots; i++) {
		const struct binding_slot *slot = &c->slots[i];
		struct ids all = vfs_of_pool(c, slot->pool, a),
			   one = { arena_copy(a, &slot->dev->id, sizeof(slot->dev->id)), 1 };

		r = is_first_of_pool(c, i) ? grant_vfs(b, c, slot->pool, &all, a, &pools[n++], err) : 0;
		if (r == 0)
			r = grant_vfs(b, c, slot->pool, &one, a, &ret_nodes[i], err);
		if (r < 0)
			return r;
	}
	n += grant_early(b, c, &pools[n], a);
	*ret_env = cdi_join(pools, n, a);
	return 0;
}
