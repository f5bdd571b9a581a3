/*
 * What a container gets: at Allocate, and as its VFs are when it starts. plugin and latebind ask;
 * render makes the text.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "grant/grant-internal.h"
#include "hw/driver.h"
#include "hw/inventory.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "render/render.h"
#include "render/topofile.h"
#include "sysroot/sysroot.h"

/* --- at Allocate --- */

#define ECHO_MAX 64

/* An id of a request as a message may show it: short, printable, and still UTF-8. */
static const char *echo(const char *id, struct arena *a)
{
	size_t len = strlen(id), n = len;
	char *s;

	if (n > ECHO_MAX) {
		n = ECHO_MAX;
		while (n && !str_utf8_valid(id, n))
			n--;
	}
	s = arena_printf(a, "%.*s%s", (int)n, id, n < len ? "..." : "");
	for (char *p = s; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}
	return s;
}

static int refuse_gone(const struct pool_dev *dev, struct err *err)
{
	return err_set(err, ENODEV,
		       "VF %s is gone from this node: were the PF's VFs removed (sriov_numvfs)?",
		       dev->id);
}

static int refuse_unusable(const struct hw_inventory *inv, const struct pool_dev *dev,
			   const struct function_now *now, struct err *err)
{
	int pf = inv->pci[dev->pci].physfn;
	const char *pf_driver = pf >= 0 ? inv->pci[pf].driver : NULL;
	const char *want = pf_driver ? hw_driver_of_vfs(pf_driver) : "its network driver";
	const struct hw_driver *known = hw_driver_find(now->driver);
	const struct hw_driver *example = known && known->rdma_module ? known : &hw_drivers[0];

	if (!now->driver[0])
		return err_set(
			err, EIO,
			"VF %s has no driver: bind it to %s (echo %s > /sys/bus/pci/drivers_probe)",
			dev->id, want, dev->id);
	if (hw_driver_is_user_space(now->driver) || (pf >= 0 && strcmp(want, now->driver) != 0))
		return err_set(
			err, EIO,
			"VF %s is bound to %s, which has no RDMA device: bind it to %s (echo %s > /sys/bus/pci/devices/%s/driver/unbind; echo %s > /sys/bus/pci/drivers_probe) or select drivers in the pool",
			dev->id, now->driver, want, dev->id, dev->id, dev->id);
	if (!now->rdma[0])
		return err_set(
			err, EIO,
			"VF %s is bound to %s but has no RDMA device: load the driver's RDMA module (%s for %s), or see whether a container's network namespace holds it (rdma system show)",
			dev->id, now->driver, example->rdma_module, example->name);
	return err_set(
		err, EIO,
		"VF %s has the RDMA device %s but no verbs node: load ib_uverbs (modprobe ib_uverbs)",
		dev->id, now->rdma);
}

static int probe_again(const struct node *node, const struct pool *pool, const struct sysroot *root,
		       const struct pool_dev *dev, struct arena *a, struct grant_dev *ret,
		       struct err *err)
{
	struct function_now now;
	struct user_io user;
	int r;

	r = devstate_function(root, node->inv->pci[dev->pci].bdf, &now, err);
	if (r == -ENOENT)
		return refuse_gone(dev, err);
	if (r < 0)
		return err_wrap(err, "VF %s", dev->id);
	if (pool_dev_is_rdma(pool, dev) && (!now.rdma[0] || !now.uverbs[0]))
		return refuse_unusable(node->inv, dev, &now, err);
	ret->rdma = now.rdma[0] ? arena_strdup(a, now.rdma) : NULL;
	ret->uverbs = now.uverbs[0] ? arena_strdup(a, now.uverbs) : NULL;
	if (devstate_user_io(root, node->inv->pci[dev->pci].bdf, now.driver, &user))
		ret->user = arena_copy(a, &user, sizeof(user));
	return 0;
}

/* The MAD nodes of dev, if its pool has umad; dev->rdma is known. */
static void find_umads(const struct node *node, const struct pool *pool, const struct sysroot *root,
		       struct arena *a, struct grant_dev *dev)
{
	char names[UMADS_MAX][UMAD_NAME_MAX];
	const char **v;

	if (!pool->cfg->umad || !dev->rdma || dev->dev->pci < 0 ||
	    !pool_dev_is_rdma(pool, dev->dev))
		return;
	dev->n_umads = devstate_umads(root, node->inv->pci[dev->dev->pci].bdf, dev->rdma, names);
	v = arena_array(a, dev->n_umads, sizeof(*v));
	for (size_t i = 0; i < dev->n_umads; i++)
		v[i] = arena_strdup(a, names[i]);
	dev->umads = v;
}

/* One VF as it is now, in the host's network namespace. */
static int probe_now(const struct node *node, const struct pool *pool, const struct sysroot *root,
		     const struct pool_dev *dev, struct arena *a, struct grant_dev *ret,
		     struct err *err)
{
	const struct hw_rdma *rdma = dev->rdma >= 0 ? &node->inv->rdma[dev->rdma] : NULL;
	struct gid_entry gids[GID_TABLE_MAX];
	int r = 0;

	*ret = (struct grant_dev) { .dev = dev };
	if (dev->pci < 0)
		return refuse_gone(dev, err);
	/*
	 * One look-up, through the RDMA device to its neighbour, proves that both of the snapshot's
	 * names still belong to this very function: the numbers of uverbs nodes are handed out anew
	 * whenever a device moves between network namespaces, and a device can be renamed. Not by
	 * way of sys/bus/pci/devices: following a link takes the kernel as long as all the rest.
	 */
	if (rdma && rdma->dir && rdma->uverbs &&
	    sysroot_exists(root, "sys/%s/infiniband/%s/../../infiniband_verbs/%s", rdma->dir,
			   rdma->name, rdma->uverbs)) {
		ret->rdma = rdma->name;
		ret->uverbs = rdma->uverbs;
	} else {
		r = probe_again(node, pool, root, dev, a, ret, err);
	}
	if (r == 0)
		find_umads(node, pool, root, a, ret);
	/* A GID index is promised or checked only where the table is final already: in the host's
	 * network. */
	if (r < 0 || !ret->rdma || !pool_dev_is_rdma(pool, dev) ||
	    pool->cfg->network != NETWORK_HOST || pool->cfg->gid == GID_OFF)
		return r;
	/* A table that cannot be read is an empty one: the renderer decides whether that matters.
	 */
	if (devstate_gids(root, ret->rdma, 1, gids, &ret->n_gids, NULL) < 0)
		ret->n_gids = 0;
	ret->gids = arena_copy(a, gids, ret->n_gids * sizeof(*gids));
	return 0;
}

/* Pool indices, ascending, each once: the kubelet sends ids in the order of a Go map. picks has
 * room for all ids. */
static int pick_asked(const struct pool *pool, const struct ids *ids, int *picks, size_t *ret_n,
		      struct arena *a, struct err *err)
{
	for (size_t i = 0; i < ids->n; i++) {
		const struct pool_dev *dev = pool_find(pool, ids->v[i]);

		if (!dev)
			return err_set(
				err, ENOENT,
				"device '%s' is not in the pool %s of this node: was the configuration changed?",
				echo(ids->v[i], a), pool->cfg->resource);
		picks[i] = (int)(dev - pool->devs);
	}
	*ret_n = list_unique_int(picks, ids->n);
	return 0;
}

/* Pairs the GPUs with the VFs of the grant; devs: its VFs by their index in the pool. */
static void find_pairs(struct grant *grant, const int *devs, struct gpu_set gpus, struct arena *a)
{
	struct choose_in in = { .node = grant->node,
				.pool = grant->pool,
				.available = devs,
				.n_available = grant->n_devs,
				.want = grant->n_devs,
				.gpus = gpus };
	struct choose_out out;

	if (!gpus.n)
		return;
	out = align_pairs(&in, devs, grant->n_devs, a);
	grant->pairs = out.pairs;
	grant->n_pairs = out.n_pairs;
}

/* --- HCAs that containers share --- */

/* One that does not work leaves the others. */
static struct grant hcas_of(const struct node *node, const struct pool *pool,
			    const struct sysroot *root, struct arena *a, struct err *err)
{
	struct grant_dev *devs = arena_array(a, pool->n_devs, sizeof(*devs));
	struct grant grant = { .node = node, .pool = pool, .devs = devs };

	for (size_t i = 0; i < pool->n_devs; i++)
		grant.n_devs += probe_now(node, pool, root, &pool->devs[i], a, &devs[grant.n_devs],
					  err) == 0;
	return grant;
}

static int of_shared(struct grant *grant, const struct ids *ids, const struct sysroot *root,
		     struct arena *a, struct err *err)
{
	const struct pool *pool = grant->pool;
	struct grant *all;
	uint64_t number;

	for (size_t i = 0; i < ids->n; i++) {
		if (str_to_u64(ids->v[i], 10, UINT32_MAX, &number) < 0 ||
		    number >= pool->cfg->shares)
			return err_set(err, ENOENT, "device '%s' is not one of the %u shares of %s",
				       echo(ids->v[i], a), pool->cfg->shares, pool->cfg->resource);
	}
	if (!pool->n_devs)
		return err_set(err, ENODEV, "%s has no HCA on this node", pool->cfg->resource);
	*grant = hcas_of(grant->node, pool, root, a, err);
	if (!grant->n_devs)
		return -EIO; /* the sentence is the last one's */
	all = arena_array(a, grant->node->n_shared, sizeof(*all));
	for (size_t i = 0; i < grant->node->n_shared; i++)
		all[i] = hcas_of(grant->node, &grant->node->shared[i], root, a, NULL);
	grant->beside = all;
	grant->n_beside = grant->node->n_shared;
	return 0;
}

/* --- */

int grant_of_ids(const struct node *node, const struct pool *pool, const struct ids *ids,
		 const struct sysroot *root, struct gpu_set gpus, struct arena *a,
		 struct grant *ret, struct err *err)
{
	struct grant grant = { .node = node, .pool = pool };
	struct grant_dev *devs;
	int *picks, r;

	if (!ids->n)
		return err_set(err, EINVAL, "the request for %s names no device",
			       pool->cfg->resource);
	if (pool->cfg->shares) {
		r = of_shared(&grant, ids, root, a, err);
		if (r == 0)
			*ret = grant;
		return r;
	}
	picks = arena_array(a, ids->n, sizeof(*picks));
	r = pick_asked(pool, ids, picks, &grant.n_devs, a, err);
	if (r < 0)
		return r;
	devs = arena_array(a, grant.n_devs, sizeof(*devs));
	for (size_t i = 0; i < grant.n_devs; i++) {
		r = probe_now(node, pool, root, &pool->devs[picks[i]], a, &devs[i], err);
		if (r < 0)
			return r;
	}
	grant.devs = devs;
	find_pairs(&grant, picks, gpus, a);
	*ret = grant;
	return 0;
}

/* --- when it starts --- */

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
		find_umads(in->node, pool, in->root, a, ret);
	} else if (probed) {
		*ret = *probed;
	} else {
		r = probe_now(in->node, pool, in->root, dev, a, ret, err);
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
	find_pairs(ret, index, in->container->gpus, a);
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

/* The program comes last into the folder. A folder that somebody removed is mounted into no
 * container, which could not start. */
static bool has_probe(const char *rundir, const char *probe, const struct grant_container *c,
		      struct arena *a)
{
	bool wanted = false;

	for (size_t i = 0; i < c->n_pool_vfs; i++)
		wanted |= has_files(c->pool_vfs[i].pool) && c->pool_vfs[i].pool->cfg->probe;
	return wanted && probe &&
	       (!rundir || access(arena_printf(a, "%s/" PROBE_PROGRAM, probe), F_OK) == 0);
}

int grant_make_directory(const char *rundir, const char *probe, const struct grant_container *c,
			 struct arena *a, struct bindmount ret[GRANT_MOUNTS], struct err *err)
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
	ret[0] = (struct bindmount) { grant_rundir_path(rundir, vf, a), RENDER_DIR, true };
	if (!has_probe(rundir, probe, c, a))
		return 1;
	ret[1] = (struct bindmount) { probe, RENDER_DIR "/" RUNDIR_PROBE, true };
	return 2;
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
