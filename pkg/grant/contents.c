#include "grant/contents.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
#include "discover/sysroot.h"
#include "grant/grant.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render.h"
#include "render/topofile.h"

#define VERBS_DIR "sys/class/infiniband_verbs"

/* --- what it has --- */

static bool is_late(const struct pool *pool)
{
	return pool->cfg->binding == BINDING_LATE;
}

static struct ids bound_to(const struct ledger *ledger, const struct ids *slots, struct arena *a)
{
	struct ids vfs = { arena_array(a, slots->n, sizeof(*vfs.v)), 0 };

	for (size_t i = 0; i < slots->n; i++) {
		const struct ledger_hold *hold = ledger_find_slot(ledger, slots->v[i]);

		if (hold && !hold->draining)
			vfs.v[vfs.n++] = arena_strdup(a, hold->vf);
	}
	return vfs;
}

/* Ids of a list that ends with the call are not kept: the pool has them too. */
static struct ids known_to(const struct pool *pool, const struct ids *ids, struct arena *a)
{
	struct ids vfs = { arena_array(a, ids->n, sizeof(*vfs.v)), 0 };

	for (size_t i = 0; i < ids->n; i++) {
		const struct pool_dev *dev = pool_find(pool, ids->v[i]);

		if (dev)
			vfs.v[vfs.n++] = dev->id;
	}
	return vfs;
}

size_t contents_shares(const struct node *node, const struct ledger *ledger,
		       const struct pod_container *c, struct arena *a, struct share **ret)
{
	size_t n = 0;

	*ret = arena_array(a, c->n_held, sizeof(**ret));
	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *held = &c->held[i];
		const struct pool *pool = node_pool(node, held->resource);
		struct ids vfs;

		if (!pool)
			continue;
		vfs = is_late(pool) ? bound_to(ledger, &held->ids, a)
				    : known_to(pool, &held->ids, a);
		if (vfs.n)
			(*ret)[n++] = (struct share) { pool, vfs };
	}
	return n;
}

static size_t count(const struct share *shares, size_t n)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += shares[i].vfs.n;
	return total;
}

size_t contents_functions(const struct node *node, const struct share *shares, size_t n,
			  struct arena *a, struct bdf **ret)
{
	size_t n_ret = 0;

	*ret = arena_array(a, count(shares, n), sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; shares[i].pool->cfg->is_rdma && k < shares[i].vfs.n; k++) {
			const struct pool_dev *dev = pool_find(shares[i].pool, shares[i].vfs.v[k]);

			if (dev && dev->pci >= 0 && pool_dev_is_rdma(shares[i].pool, dev))
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

static const struct grant_dev *looked_at(const struct contents_in *in, const struct pool_dev *dev)
{
	for (size_t i = 0; i < in->n_looked; i++) {
		if (in->looked[i].dev == dev)
			return &in->looked[i];
	}
	return NULL;
}

/* So that map.json can stand for a ledger that was lost. */
static void tell_hold(const struct contents_in *in, struct grant_dev *dev, struct arena *a)
{
	const struct ledger_hold *hold = in->ledger ? ledger_find(in->ledger, dev->dev->id) : NULL;

	if (!hold)
		return;
	dev->slot = hold->slot ? arena_strdup(a, hold->slot) : NULL;
	dev->decision = hold->decision;
}

/* What a spec is to hold has to be there; what Allocate gave long ago has been judged already. */
static int dev_now(const struct contents_in *in, const struct pool *pool,
		   const struct pool_dev *dev, struct arena *a, struct grant_dev *ret,
		   struct err *err)
{
	const struct grant_dev *looked = looked_at(in, dev);
	const struct vf_state *state = state_of(in, dev);
	int r = 0;

	*ret = (struct grant_dev) { .dev = dev };
	if (state && state->uverbs) {
		ret->rdma = state->rdma;
		ret->uverbs = state->uverbs;
		grant_find_umads(in->node, pool, in->root, a, ret);
	} else if (looked) {
		*ret = *looked;
	} else {
		r = grant_look_at(in->node, pool, in->root, dev, a, ret, err);
		ret->dev = dev;
	}
	ret->state = state;
	tell_hold(in, ret, a);
	if (!pool_dev_is_rdma(pool, dev) || ret->uverbs)
		return is_late(pool) ? r : 0;
	if (dev->pci >= 0 && r != -ENODEV)
		find_away(in, ret, a);
	return is_late(pool) && !ret->uverbs ? r : 0;
}

static bool has(const struct ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->n; i++) {
		if (!strcmp(ids->v[i], id))
			return true;
	}
	return false;
}

/* Links are made to what is there: the node may have no such file. */
static const char *topology_of(const struct contents_in *in, const struct pool *pool)
{
	const char *name =
		in->rundir && contents_has_files(pool) ? topofile_name(in->node, pool->cfg) : NULL;

	return name && rundir_has(in->rundir, name) ? name : NULL;
}

static int grant_share(const struct contents_in *in, const struct share *share, struct arena *a,
		       struct grant *ret, struct err *err)
{
	const struct pool *pool = share->pool;
	struct grant_dev *devs = arena_array(a, share->vfs.n, sizeof(*devs));
	int *index = arena_array(a, share->vfs.n, sizeof(*index)), r;
	const char *topology = topology_of(in, pool);

	*ret = (struct grant) { .node = in->node,
				.pool = pool,
				.devs = devs,
				.files = in->rundir && contents_has_files(pool),
				.joined_only = in->cdi && !is_late(pool) };
	if (topology)
		ret->topo_file = arena_printf(a, RENDER_DIR "/%s", topology);
	for (size_t i = 0; i < pool->n_devs; i++) {
		if (!has(&share->vfs, pool->devs[i].id))
			continue;
		r = dev_now(in, pool, &pool->devs[i], a, &devs[ret->n_devs], err);
		if (r < 0)
			return r;
		index[ret->n_devs++] = (int)i;
	}
	grant_find_pairs(ret, index, in->gpus, in->n_gpus, a);
	return 0;
}

/* --- */

static const char *doubt_of(const struct contents_in *in, struct arena *a)
{
	char bdf[BDF_STRLEN];

	if (in->why)
		return in->why;
	for (size_t i = 0; i < in->n_states; i++) {
		if (in->states[i].why)
			return arena_printf(a, "%s: %s", bdf_format(in->states[i].bdf, bdf),
					    in->states[i].why);
	}
	return NULL;
}

static bool wants(const struct contents_in *in, const char *topology)
{
	for (size_t i = 0; i < in->n_shares; i++) {
		if (str_eq(topology_of(in, in->shares[i].pool), topology))
			return true;
	}
	return false;
}

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
	for (size_t i = 0; i < 2; i++)
		files[n++] = (struct rundir_file) { .name = topologies[i],
						    .same = wants(in, topologies[i]) ? topologies[i]
										     : NULL };
	ret->files = files;
	ret->n_files = n;
}

/* What render_container() has to say comes after what we could not find out. */
static void take_notes(const struct contents_in *in, const char *const *notes, size_t n,
		       struct container *c, struct arena *a)
{
	const char **all = arena_array(a, n + 1, sizeof(*all));

	if (in->why)
		all[c->n_notes++] = in->why;
	for (size_t i = 0; i < n; i++)
		all[c->n_notes++] = notes[i];
	c->notes = all;
}

int contents_render(const struct contents_in *in, struct arena *a, struct contents *ret,
		    struct err *err)
{
	struct grant *grants = arena_array(a, in->n_shares, sizeof(*grants));
	struct container c = { .ns = in->owner.ns,
			       .pod = in->owner.pod,
			       .name = in->owner.container,
			       .uid = in->owner.uid,
			       .grants = grants,
			       .n = in->n_shares };
	const char *const *notes;
	size_t n_notes;
	int r;

	for (size_t i = 0; i < in->n_shares; i++) {
		r = grant_share(in, &in->shares[i], a, &grants[i], err);
		if (r < 0)
			return r;
	}
	*ret = (struct contents) { .doubt = doubt_of(in, a) };
	r = render_container(&c, a, &ret->env, &notes, &n_notes, err);
	if (r < 0)
		return r;
	take_notes(in, notes, n_notes, &c, a);
	if (in->rundir)
		render_files(in, &c, a, ret);
	return 0;
}

int contents_nodes(const struct contents_in *in, const struct pool *pool, const char *vf,
		   struct arena *a, struct edits *ret, struct err *err)
{
	const struct share share = { pool, { &vf, 1 } };
	struct grant grant;
	struct edits all;
	int r = grant_share(in, &share, a, &grant, err);

	if (r == 0)
		r = render_grant(&grant, a, &all, err);
	if (r == 0)
		*ret = (struct edits) { .devs = all.devs, .n_devs = all.n_devs };
	return r;
}

/* --- directories --- */

bool contents_has_files(const struct pool *pool)
{
	return pool->cfg->is_rdma && (pool->cfg->profiles || pool->cfg->cufile);
}

const char *contents_lowest(const struct ids *vfs)
{
	const char *lowest = vfs->v[0];

	for (size_t i = 1; i < vfs->n; i++) {
		if (ledger_vf_cmp(vfs->v[i], lowest) < 0)
			lowest = vfs->v[i];
	}
	return lowest;
}

struct bindmount contents_mount(const struct rundir *r, const char *vf, struct arena *a)
{
	return (struct bindmount) { rundir_path(r, vf, a), RENDER_DIR, true };
}

const char *contents_lowest_late(const struct share *shares, size_t n)
{
	const char *lowest = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *vf = contents_lowest(&shares[i].vfs);

		if (is_late(shares[i].pool) && contents_has_files(shares[i].pool) &&
		    (!lowest || ledger_vf_cmp(vf, lowest) < 0))
			lowest = vf;
	}
	return lowest;
}

int contents_write(struct rundir *r, const struct share *shares, size_t n, const struct contents *c,
		   struct err *err)
{
	const char *late = contents_lowest_late(shares, n);
	int e = late ? rundir_write(r, late, c->files, c->n_files, err) : 0;

	for (size_t i = 0; e == 0 && i < n; i++) {
		if (!is_late(shares[i].pool) && contents_has_files(shares[i].pool))
			e = rundir_write(r, contents_lowest(&shares[i].vfs), c->files, c->n_files,
					 err);
	}
	return e;
}
