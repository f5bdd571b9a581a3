#include "grant/grant-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render.h"
#include "sysroot/sysroot.h"
#include "render/topofile.h"

#define VERBS_DIR "sys/class/infiniband_verbs"

/* --- the container's VFs --- */

static bool is_late(const struct pool *pool)
{
	return pool->cfg->binding == BINDING_LATE;
}

static bool has_files(const struct pool *pool)
{
	return pool->cfg->is_rdma && (pool->cfg->profiles || pool->cfg->cufile);
}

/* The list ends with the call: its ids are not kept, the pool has them too. */
static struct ids vfs_of(const struct pool *pool, const struct ledger *ledger,
			 const struct ids *ids, struct arena *a)
{
	struct ids vfs = { arena_array(a, ids->n, sizeof(*vfs.v)), 0 };

	for (size_t i = 0; i < ids->n; i++) {
		const struct pool_dev *dev = pool_find(pool, ids->v[i]);
		const struct ledger_hold *hold =
			is_late(pool) ? ledger_find_slot(ledger, ids->v[i]) : NULL;

		if (hold && !hold->draining)
			vfs.v[vfs.n++] = arena_strdup(a, hold->vf);
		else if (dev && !is_late(pool))
			vfs.v[vfs.n++] = dev->id;
	}
	return vfs;
}

size_t grant_held_vfs(const struct node *node, const struct ledger *ledger,
		      const struct pod_container *c, struct arena *a, struct pool_vfs **ret)
{
	size_t n = 0;

	*ret = arena_array(a, c->n_held, sizeof(**ret));
	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *held = &c->held[i];
		const struct pool *pool = node_pool(node, held->resource);
		struct ids vfs;

		if (!pool)
			continue;
		vfs = vfs_of(pool, ledger, &held->ids, a);
		if (vfs.n)
			(*ret)[n++] = (struct pool_vfs) { pool, vfs };
	}
	return n;
}

size_t grant_functions(const struct node *node, const struct grant_container *c, struct arena *a,
		       struct bdf **ret)
{
	size_t n_ret = 0, max = 0;

	for (size_t i = 0; i < c->n_pool_vfs; i++)
		max += c->pool_vfs[i].vfs.n;
	*ret = arena_array(a, max, sizeof(**ret));
	for (size_t i = 0; i < c->n_pool_vfs; i++) {
		const struct pool *pool = c->pool_vfs[i].pool;

		for (size_t k = 0; pool->cfg->is_rdma && k < c->pool_vfs[i].vfs.n; k++) {
			const struct pool_dev *dev = pool_find(pool, c->pool_vfs[i].vfs.v[k]);

			if (dev && dev->pci >= 0 && pool_dev_is_rdma(pool, dev))
				(*ret)[n_ret++] = node->inv->pci[dev->pci].bdf;
		}
	}
	return n_ret;
}

/* --- RDMA devices that are out of sight --- */

struct verbs_search {
	const struct sysroot *root;
	const char *rdma;
	char uverbs[64];
};

/* The class of verbs devices is the same in every network namespace, unlike that of RDMA devices.
 */
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

/* By the name that it had when it was given. */
static void find_away(const struct contents_in *in, struct grant_dev *dev, struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(in->ledger, dev->dev->id);
	struct verbs_search s = { .root = in->root };

	if (!dev->rdma && hold && hold->rdma)
		dev->rdma = arena_strdup(a, hold->rdma);
	s.rdma = dev->rdma;
	if (s.rdma && sysroot_each(in->root, VERBS_DIR, is_its_node, &s) == 1)
		dev->uverbs = arena_strdup(a, s.uverbs);
}

/* --- grants --- */

static const struct vf_state *state_of(const struct contents_in *in, const struct pool_dev *dev)
{
	if (dev->pci < 0)
		return NULL;
	for (size_t i = 0; in->states && i < in->n_states; i++) {
		if (bdf_cmp(in->states[i].bdf, in->node->inv->pci[dev->pci].bdf) == 0)
			return &in->states[i];
	}
	return NULL;
}

static const struct grant_dev *probed_now(const struct contents_in *in, const struct pool_dev *dev)
{
	for (size_t i = 0; i < in->n_probed; i++) {
		if (in->probed[i].dev == dev)
			return &in->probed[i];
	}
	return NULL;
}

/* Devices for a spec have to be there; those that Allocate gave have been judged already. */
static int dev_now(const struct contents_in *in, const struct pool *pool,
		   const struct pool_dev *dev, struct arena *a, struct grant_dev *ret,
		   struct err *err)
{
	const struct grant_dev *probed = probed_now(in, dev);
	const struct vf_state *state = state_of(in, dev);
	const struct ledger_hold *hold = in->ledger ? ledger_find(in->ledger, dev->id) : NULL;
	int r = 0;

	*ret = (struct grant_dev) { .dev = dev };
	if (state && state->uverbs) {
		ret->rdma = state->rdma;
		ret->uverbs = state->uverbs;
		grant_find_umads(in->node, pool, in->root, a, ret);
	} else if (probed) {
		*ret = *probed;
	} else {
		r = grant_probe_now(in->node, pool, in->root, dev, a, ret, err);
		ret->dev = dev;
	}
	ret->state = state;
	if (hold) { /* so that map.json can stand for a ledger that was lost */
		ret->slot = hold->slot ? arena_strdup(a, hold->slot) : NULL;
		ret->decision = hold->decision;
	}
	if (!pool_dev_is_rdma(pool, dev) || ret->uverbs)
		return is_late(pool) ? r : 0;
	if (dev->pci >= 0 && r != -ENODEV)
		find_away(in, ret, a);
	return is_late(pool) && !ret->uverbs ? r : 0;
}

/* Links are made to existing files: the node may have none. */
static const char *topology_of(const struct contents_in *in, const struct pool *pool)
{
	const char *name =
		in->rundir && has_files(pool) ? topofile_name(in->node, pool->cfg) : NULL;

	return name && grant_rundir_has(in->rundir, name) ? name : NULL;
}

static int grant_of_pool(const struct contents_in *in, const struct pool_vfs *pool_vfs,
			 struct arena *a, struct grant *ret, struct err *err)
{
	const struct pool *pool = pool_vfs->pool;
	struct grant_dev *devs = arena_array(a, pool_vfs->vfs.n, sizeof(*devs));
	int *index = arena_array(a, pool_vfs->vfs.n, sizeof(*index)), r;
	const char *topology = topology_of(in, pool);

	*ret = (struct grant) { .node = in->node,
				.pool = pool,
				.devs = devs,
				.files = in->rundir && has_files(pool),
				.joined_only = in->cdi && !is_late(pool) };
	if (topology)
		ret->topo_file = arena_printf(a, RENDER_DIR "/%s", topology);
	for (size_t i = 0; i < pool->n_devs; i++) {
		if (!list_has(pool_vfs->vfs.v, pool_vfs->vfs.n, pool->devs[i].id))
			continue;
		r = dev_now(in, pool, &pool->devs[i], a, &devs[ret->n_devs], err);
		if (r < 0)
			return r;
		index[ret->n_devs++] = (int)i;
	}
	grant_find_pairs(ret, index, in->container->gpus, a);
	return 0;
}

/* --- */

static void render_files(const struct contents_in *in, struct container *c, struct arena *a,
			 struct contents *ret)
{
	static const char *const topologies[] = { TOPOFILE_NCCL, TOPOFILE_RCCL };
	struct rundir_file *files = arena_array(a, 5, sizeof(*files));
	size_t n = 0;

	files[n++] = (struct rundir_file) { .name = RENDER_CONF_NAME,
					    .text = render_nccl_conf(&ret->env, a) };
	files[n++] = (struct rundir_file) { .name = RENDER_MAP_NAME, .text = render_map(c, a) };
	files[n++] =
		(struct rundir_file) { .name = RENDER_CUFILE_NAME, .text = render_cufile(c, a) };
	for (size_t i = 0; i < 2; i++, n++) {
		files[n] = (struct rundir_file) { .name = topologies[i] };
		for (size_t k = 0; k < in->container->n_pool_vfs; k++) {
			if (str_eq(topology_of(in, in->container->pool_vfs[k].pool), topologies[i]))
				files[n].same = topologies[i];
		}
	}
	ret->files = files;
	ret->n_files = n;
}

int grant_render(const struct contents_in *in, struct arena *a, struct contents *ret,
		 struct err *err)
{
	const struct grant_container *who = in->container;
	struct grant *grants = arena_array(a, who->n_pool_vfs, sizeof(*grants));
	struct container c = { .ns = who->owner.ns,
			       .pod = who->owner.pod,
			       .name = who->owner.container,
			       .uid = who->owner.uid,
			       .grants = grants,
			       .n = who->n_pool_vfs };
	const char *const *notes, **all;
	char bdf[BDF_STRLEN];
	size_t n_notes;
	int r;

	for (size_t i = 0; i < who->n_pool_vfs; i++) {
		r = grant_of_pool(in, &who->pool_vfs[i], a, &grants[i], err);
		if (r < 0)
			return r;
	}
	*ret = (struct contents) { .doubt = in->why };
	for (size_t i = 0; !ret->doubt && i < in->n_states; i++) {
		if (in->states[i].why)
			ret->doubt = arena_printf(a, "%s: %s", bdf_format(in->states[i].bdf, bdf),
						  in->states[i].why);
	}
	r = render_container(&c, a, &ret->env, &notes, &n_notes, err);
	if (r < 0)
		return r;
	/* Notes of render_container() come after those of facts that could not be read. */
	all = arena_array(a, n_notes + 1, sizeof(*all));
	if (in->why)
		all[c.n_notes++] = in->why;
	for (size_t i = 0; i < n_notes; i++)
		all[c.n_notes++] = notes[i];
	c.notes = all;
	if (in->rundir)
		render_files(in, &c, a, ret);
	return 0;
}

int grant_nodes(const struct contents_in *in, const struct pool *pool, const char *vf,
		struct arena *a, struct edits *ret, struct err *err)
{
	const struct pool_vfs pool_vfs = { pool, { &vf, 1 } };
	struct grant grant;
	struct edits all;
	int r = grant_of_pool(in, &pool_vfs, a, &grant, err);

	if (r == 0)
		r = render_grant(&grant, a, &all, err);
	if (r == 0)
		*ret = (struct edits) { .devs = all.devs, .n_devs = all.n_devs };
	return r;
}

/* --- directories --- */

static const char *lowest_of(const struct ids *vfs)
{
	const char *lowest = vfs->v[0];

	for (size_t i = 1; i < vfs->n; i++) {
		if (ledger_vf_cmp(vfs->v[i], lowest) < 0)
			lowest = vfs->v[i];
	}
	return lowest;
}

/* Of all late pools that have files; NULL: none. */
static const char *lowest_late(const struct grant_container *c)
{
	const char *lowest = NULL;

	for (size_t i = 0; i < c->n_pool_vfs; i++) {
		const struct pool_vfs *of = &c->pool_vfs[i];
		const char *vf = lowest_of(&of->vfs);

		if (is_late(of->pool) && has_files(of->pool) &&
		    (!lowest || ledger_vf_cmp(vf, lowest) < 0))
			lowest = vf;
	}
	return lowest;
}

static bool is_early_with_files(const struct pool_vfs *of)
{
	return !is_late(of->pool) && has_files(of->pool);
}

int grant_make_directory(const char *rundir, const struct grant_container *c, struct arena *a,
			 struct bindmount *ret, struct err *err)
{
	const char *vf = lowest_late(c);
	int e;

	if (!vf && c->n_pool_vfs && is_early_with_files(c->pool_vfs))
		vf = lowest_of(&c->pool_vfs->vfs);
	if (!vf)
		return 0;
	e = rundir ? grant_rundir_make(rundir, vf, err) : 0;
	if (e < 0)
		return e;
	*ret = (struct bindmount) { grant_rundir_path(rundir, vf, a), RENDER_DIR, true };
	return 1;
}

int grant_write(const char *rundir, const struct grant_container *c,
		const struct contents *contents, struct err *err)
{
	const char *late = lowest_late(c);
	int e = late ? grant_rundir_write(rundir, late, contents->files, contents->n_files, err)
		     : 0;

	for (size_t i = 0; e == 0 && i < c->n_pool_vfs; i++) {
		if (is_early_with_files(&c->pool_vfs[i]))
			e = grant_rundir_write(rundir, lowest_of(&c->pool_vfs[i].vfs),
					       contents->files, contents->n_files, err);
	}
	return e;
}
