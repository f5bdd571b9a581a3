#include "grant/grant-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "hw/driver.h"
#include "hw/inventory.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "sysroot/sysroot.h"

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

void grant_find_umads(const struct node *node, const struct pool *pool, const struct sysroot *root,
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

int grant_probe_now(const struct node *node, const struct pool *pool, const struct sysroot *root,
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
		grant_find_umads(node, pool, root, a, ret);
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

void grant_find_pairs(struct grant *grant, const int *devs, struct gpu_set gpus, struct arena *a)
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
		grant.n_devs += grant_probe_now(node, pool, root, &pool->devs[i], a,
						&devs[grant.n_devs], err) == 0;
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
		r = grant_probe_now(node, pool, root, &pool->devs[picks[i]], a, &devs[i], err);
		if (r < 0)
			return r;
	}
	grant.devs = devs;
	grant_find_pairs(&grant, picks, gpus, a);
	*ret = grant;
	return 0;
}
