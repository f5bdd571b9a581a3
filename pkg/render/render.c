/*
 * From grants to what a container gets: its VFs as they are now and in the order that lines up
 * across nodes, the variables and device nodes of one grant at Allocate, and those of all when it
 * starts.
 */
#include "render/render.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/render-internal.h"

#define OWN_ENV_MAX 7 /* of both */

/* The VFs of a container, as they are now and in the order that lines up across nodes. */

static const struct hw_rdma *grant_rdma(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_inventory *inv = grant->node->inv;
	size_t first = !dev->rdma || dev->dev->rdma < 0 ? inv->n_rdma : (size_t)dev->dev->rdma;

	for (size_t i = first; i < inv->n_rdma && inv->rdma[i].pci == dev->dev->pci; i++) {
		if (!strcmp(inv->rdma[i].name, dev->rdma))
			return &inv->rdma[i];
	}
	return NULL; /* renamed since the snapshot */
}

static const struct hw_port *grant_hw_port(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_rdma *rdma = grant_rdma(grant, dev);

	if (!rdma || !rdma->n_ports)
		return NULL;
	for (size_t i = 0; i < rdma->n_ports; i++) {
		if (str_eq(rdma->ports[i].state, "ACTIVE"))
			return &rdma->ports[i];
	}
	return &rdma->ports[0];
}

int grant_port(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_port *port = grant_hw_port(grant, dev);

	if (dev->state && dev->state->rdma && dev->state->port > 0)
		return dev->state->port;
	return port ? port->number : 1;
}

enum hw_link grant_link(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_port *port = grant_hw_port(grant, dev);

	if (dev->state && dev->state->link != HW_LINK_UNKNOWN)
		return dev->state->link;
	return port ? port->link : HW_LINK_UNKNOWN;
}

void put_hca(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev)
{
	strbuf_puts(b, dev->rdma);
	strbuf_putc(b, ':');
	strbuf_put_int(b, grant_port(grant, dev));
}

static const char *rdma_node(const char *name, struct arena *arena)
{
	static const char dir[] = "/dev/infiniband/";
	size_t len = strlen(name) + 1;
	char *path = arena_alloc(arena, sizeof(dir) - 1 + len);

	memcpy(path, dir, sizeof(dir) - 1);
	memcpy(path + sizeof(dir) - 1, name, len);
	return path;
}

const char *verbs_node(const struct grant_dev *dev, struct arena *arena)
{
	return rdma_node(dev->uverbs, arena);
}

const char *umad_node(const char *umad, struct arena *arena)
{
	return rdma_node(umad, arena);
}

/* --- as they are now --- */

static const struct grant_dev *devs_now(const struct grant *grant, struct arena *arena)
{
	struct grant_dev *devs = arena_array(arena, grant->n_devs, sizeof(*devs));

	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct vf_state *state = grant->devs[i].state;

		devs[i] = grant->devs[i];
		if (state && state->rdma)
			devs[i].rdma = state->rdma;
		if (state && state->uverbs)
			devs[i].uverbs = state->uverbs;
	}
	return devs;
}

/* Its place in the configuration; pools that are not of this node come last, as they were given. */
static size_t rank_of(const struct grant *grant)
{
	for (size_t i = 0; i < grant->node->n_pools; i++) {
		if (&grant->node->pools[i] == grant->pool)
			return i;
	}
	return grant->node->n_pools;
}

struct grant *grants_now(const struct grant *grants, size_t n, struct arena *arena)
{
	struct grant *now = arena_array(arena, n, sizeof(*now));

	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 0 && rank_of(&now[k - 1]) > rank_of(&grants[i]); k--)
			now[k] = now[k - 1];
		now[k] = grants[i];
		now[k].devs = devs_now(&grants[i], arena);
	}
	return now;
}

/* --- rails --- */

static struct rail rail_of(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_inventory *inv = grant->node->inv;
	struct rail rail = { .grant = grant, .dev = dev };

	if (dev->dev->pci >= 0) {
		const struct hw_pci *f = &inv->pci[dev->dev->pci];

		rail.vf = f->bdf;
		rail.pf = f->physfn >= 0 ? inv->pci[f->physfn].bdf : f->bdf;
	} else if (bdf_parse(dev->dev->id, &rail.vf) == 0) {
		rail.pf = rail.vf;
	}
	for (size_t i = 0; i < grant->n_pairs; i++) {
		const struct choose_pair *p = &grant->pairs[i];
		struct bdf gpu = inv->pci[p->gpu].bdf;

		if (strcmp(grant->pool->devs[p->dev].id, dev->dev->id) != 0 ||
		    (rail.has_gpu && bdf_cmp(rail.gpu, gpu) <= 0))
			continue;
		rail.gpu = gpu;
		rail.has_gpu = true;
	}
	return rail;
}

int rail_cmp(const void *a, const void *b)
{
	const struct rail *x = a, *y = b;
	int r = x->has_gpu && y->has_gpu ? bdf_cmp(x->gpu, y->gpu) : y->has_gpu - x->has_gpu;

	if (r == 0)
		r = bdf_cmp(x->pf, y->pf);
	return r ? r : bdf_cmp(x->vf, y->vf);
}

size_t all_rails(const struct grant *grants, size_t n, struct arena *arena, struct rail **ret)
{
	size_t max = 0, count = 0;
	struct rail *rails;

	for (size_t i = 0; i < n; i++)
		max += grants[i].n_devs;
	rails = arena_array(arena, max, sizeof(*rails));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < grants[i].n_devs; k++)
			rails[count++] = rail_of(&grants[i], &grants[i].devs[k]);
	}
	qsort(rails, count, sizeof(*rails), rail_cmp);
	*ret = rails;
	return count;
}

static bool takes_part(const struct pool_config *cfg, unsigned profiles)
{
	return cfg->is_rdma && (profiles == ALL_PROFILES || (cfg->profiles & profiles));
}

size_t grant_rails(const struct grant *grants, size_t n, unsigned profiles, struct arena *arena,
		   const struct rail **ret)
{
	struct rail *rails = NULL;
	size_t all = 0, count = 0;

	/* Most pools have one profile of many: a profile that no pool has is not worth sorting. */
	for (size_t i = 0; i < n && !all; i++) {
		if (takes_part(grants[i].pool->cfg, profiles))
			all = all_rails(grants, n, arena, &rails);
	}
	for (size_t i = 0; i < all; i++) {
		if (count && rails[count - 1].grant != rails[i].grant &&
		    str_eq(rails[count - 1].dev->rdma, rails[i].dev->rdma))
			continue; /* several resources share it */
		if (rails[i].dev->rdma &&
		    pool_dev_is_rdma(rails[i].grant->pool, rails[i].dev->dev) &&
		    takes_part(rails[i].grant->pool->cfg, profiles))
			rails[count++] = rails[i];
	}
	*ret = rails;
	return count;
}

/* All pools of a container → its variables, one value each, and its device nodes. */

#define RDMA_CM "/dev/infiniband/rdma_cm"
/* Those that get a GID index. */
#define PROFILES_INDEXED (PROFILE_MSCCLPP | PROFILE_OFI | PROFILE_ONECCL)

/* --- the operator's variables --- */

/* The variable's value in the operator's "env"; NULL: none. */
static const char *policy_value(const struct pool_config *cfg, const char *name)
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

/* The variables that the pools have to agree on: derived ones, then the operator's. */
static int joined_env(const struct grant *grants, size_t n, struct env_set *set,
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

/* both */
static void own_env(const struct grant *grant, struct env_set *set)
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

/* uverbs nodes, and rdma_cm, to edits->devs. */
/*
 * Of each VF /dev/infiniband/uverbsN, or the nodes that its user-space driver needs; then rdma_cm,
 * vhost-net and tun. umad only where the pool has it, never issm: they allow MAD sending
 * (docs/design/nccl.md §1.2).
 */
static void nodes(const struct grant *grants, size_t n, struct arena *arena, struct edits *edits)
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

const char *render_env_name(const char *prefix, const char *resource, const char *suffix,
			    struct arena *arena)
{
	char *name =
		arena_printf(arena, "%s_%s%s%s", prefix, resource, suffix[0] ? "_" : "", suffix);

	for (char *p = name; *p; p++) {
		if (*p == '.' || *p == '/')
			*p = '_';
		else
			*p = (char)toupper((unsigned char)*p);
	}
	return name;
}

/* The kernel's own device names are plain words; one that is not would change the meaning of a list
 * or a path. */
static bool plain_name(const char *s)
{
	if (!*s || *s == '.' || strlen(s) > 63)
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_-.", *s))
			return false;
	}
	return true;
}

static int check_names(const struct grant *grant, struct err *err)
{
	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct grant_dev *d = &grant->devs[i];

		if ((d->rdma && !plain_name(d->rdma)) || (d->uverbs && !plain_name(d->uverbs)))
			return err_set(
				err, EIO,
				"VF %s: the kernel gives its RDMA device a name that cannot be passed on",
				d->dev->id);
	}
	return 0;
}

/* --- Allocate --- */

/*
 * A variable of the environment wins over nccl.conf, which is written when the container starts. So
 * variables that are only known by then, or only for all pools of the container together, stay out
 * of the environment.
 */
static bool is_for_file(const struct grant *grant, const struct kv *kv)
{
	const struct pool_config *cfg = grant->pool->cfg;
	const char *policy = policy_value(cfg, kv->key);
	bool contradicted = false;

	if (!grant->files || cfg->binding != BINDING_EARLY || !strcmp(kv->key, "NCCL_CONF_FILE"))
		return false;
	/* Another pool of the node with devices has another value: the kubelet would keep a random
	 * one of the two. */
	for (size_t i = 0; policy && i < grant->node->n_pools; i++) {
		const struct pool *pool = &grant->node->pools[i];
		const char *other = pool->n_devs ? policy_value(pool->cfg, kv->key) : NULL;

		contradicted |= other && strcmp(other, policy) != 0;
	}
	if (policy)
		return grant->conf_only && str_starts(kv->key, "NCCL_") && contradicted;
	if (!strcmp(kv->key, "NCCL_IB_ADDR_FAMILY") && cfg->gid_family != GID_FAMILY_IPV6)
		return true;
	return grant->conf_only || !strcmp(kv->key, "NCCL_IB_ADDR_RANGE");
}

/*
 * Lists of HCAs name those of all shared resources, so that a container with shares of several uses
 * all of them, whichever value the kubelet keeps. The libraries look for these names among the
 * devices whose nodes the container has.
 */
static void join_shares(const struct grant *grant, struct arena *arena, struct env_set *set)
{
	const struct grant *now = grants_now(grant->beside, grant->n_beside, arena);
	struct env_set all = { .arena = arena };
	struct edits edits = { .envs = arena_array(arena, PROFILE_ENV_MAX, sizeof(struct kv)) };
	const struct rail *rails;

	for (size_t i = 0; i < grant->n_beside; i++) {
		if (check_names(&now[i], NULL) < 0)
			return;
	}
	if (grant_rails(now, grant->n_beside, ALL_PROFILES, arena, &rails) > HCAS_MAX)
		return; /* its own could be among those that NCCL leaves out */
	render_nccl_env(now, grant->n_beside, &all, NULL);
	render_profile_env(now, grant->n_beside, -1, arena, &edits);
	env_put_all(&all, &edits);
	for (size_t i = 0; i < set->n; i++) {
		const char *value = env_get(&all, set->v[i].key);

		if (value && !policy_value(grant->pool->cfg, set->v[i].key))
			set->v[i].value = value;
	}
}

int render_grant(const struct grant *grant, struct arena *arena, struct edits *ret, struct err *err)
{
	const struct grant *now = grants_now(grant, 1, arena);
	struct env_set set = { .arena = arena }, joined = { .arena = arena };
	struct edits edits = { 0 };
	int r;

	r = check_names(now, err);
	if (r == 0)
		r = joined_env(now, 1, &joined, NULL, err);
	if (r < 0)
		return r;
	if (grant->n_beside > 1)
		join_shares(grant, arena, &joined);
	own_env(now, &set);
	for (size_t i = 0; i < joined.n; i++) {
		if (!is_for_file(grant, &joined.v[i]))
			env_put(&set, joined.v[i].key, joined.v[i].value);
	}
	nodes(now, 1, arena, &edits);
	edits.envs = set.v;
	edits.n_envs = set.n;
	*ret = edits;
	return 0;
}

/* Two pools with one of the profiles: the kubelet would have to merge their variables. */
bool render_needs_conf_only(const struct node *node)
{
	static const unsigned owners[] = { PROFILES_NCCL,   PROFILE_UCX, PROFILE_NVSHMEM,
					   PROFILE_MSCCLPP, PROFILE_OFI, PROFILE_ONECCL };

	for (size_t k = 0; k < ARRAY_LEN(owners); k++) {
		size_t count = 0;

		for (size_t i = 0; i < node->n_pools; i++) {
			const struct pool_config *cfg = node->pools[i].cfg;

			count += node->pools[i].n_devs && cfg->is_rdma &&
				 cfg->binding == BINDING_EARLY && (cfg->profiles & owners[k]);
		}
		if (count > 1)
			return true;
	}
	return false;
}

/* --- a container --- */

int render_container(const struct container *c, struct arena *arena, struct edits *ret_env,
		     const char *const **ret_notes, size_t *ret_n_notes, struct err *err)
{
	const struct grant *now = grants_now(c->grants, c->n, arena);
	struct env_set set = { .arena = arena };
	struct notes notes = { .arena = arena };
	struct edits edits = { 0 };
	int r;

	for (size_t i = 0; i < c->n; i++) {
		r = check_names(&now[i], err);
		if (r < 0)
			return r;
		for (size_t k = 0; k < now[i].n_devs; k++) {
			const struct grant_dev *dev = &now[i].devs[k];

			/* The part of a VF's state that could not be read. */
			if (dev->state && dev->state->why)
				add_note(&notes, arena_printf(arena, "VF %s: %s", dev->dev->id,
							      dev->state->why));
		}
		if (!now[i].joined_only)
			own_env(&now[i], &set);
	}
	r = joined_env(now, c->n, &set, &notes, err);
	if (r < 0)
		return r;
	nodes(now, c->n, arena, &edits);
	edits.envs = set.v;
	edits.n_envs = set.n;
	*ret_env = edits;
	*ret_notes = notes.v;
	*ret_n_notes = notes.n;
	return 0;
}
