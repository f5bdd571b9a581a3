#include "pool/node.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "pool/pool-internal.h"
#include "topo/rails.h"
#include "topo/topo.h"

/* The node as it is allocated; `node` comes first, so both have one address. */
struct counted_node {
	struct node node;
	struct arena *arena; /* owns this struct, too */
	struct hw_inventory *inv;
	struct topo *topo;
	struct topo_rails *rails;
	atomic_uint refs;
};

/* A node while it is built. */
struct build {
	struct arena *arena;   /* the node's */
	struct arena *scratch; /* dies with the build */
	const struct hw_inventory *inv;
	const struct config *cfg;
	const struct node *previous;
	const struct node_seed *seeds; /* VFs that are held, beside those that previous has */
	size_t n_seeds;
	bool held_only; /* the seeds are all that is held, and nothing else stays where it was */
	const struct node_link *links;
	size_t n_links;
	struct nic *nics;
	size_t n_nics;
	int *nic_of; /* by PCI index; -1 */
	struct pfs pfs;
	struct bdf *with_vfs;
	size_t n_with_vfs;
	struct pool *pools, *shared;
	struct pool_dev **gone; /* by pool: devices that vanished */
	size_t *n_gone;

	const char **notes;
	size_t n_notes, cap_notes;
};

__attribute__((format(printf, 2, 3))) static void note(struct build *b, const char *fmt, ...)
{
	va_list ap;

	b->notes = xgrow(b->notes, &b->cap_notes, b->n_notes + 1, sizeof(*b->notes));
	va_start(ap, fmt);
	b->notes[b->n_notes++] = arena_vprintf(b->arena, fmt, ap);
	va_end(ap);
}

/* A driver that had made an RDMA device and is still bound keeps it, if out of sight: in a
 * container's namespace. Its netdev is in there with it: a netdev that is here, or came back, shows
 * that the device is gone. */
static bool rdma_is_away(const struct nic *nic)
{
	return nic->had_rdma && nic->rdma < 0 && !nic->fn->netdev;
}

/* The network function that the node before listed, or NULL. */
static struct nic *nic_of_id(const struct build *b, const char *id)
{
	struct bdf bdf;
	int pci;

	if (bdf_parse(id, &bdf) < 0)
		return NULL;
	pci = hw_find_pci(b->inv, bdf);
	return pci >= 0 && b->nic_of[pci] >= 0 ? &b->nics[b->nic_of[pci]] : NULL;
}

/* An RDMA device that it had is remembered as long as the driver is bound: a scan while a CNI
 * plugin moves things may see the netdev that is still here and the RDMA device that is no longer.
 */
static void remember(const struct build *b, struct nic *nic, const struct pool_dev *dev)
{
	nic->before = dev;
	nic->plain = dev->plain;
	nic->vhost_net = dev->vhost_net;
	nic->had_rdma = dev->had_rdma && dev->pci >= 0 && nic->fn->driver &&
			str_eq(nic->fn->driver, b->previous->inv->pci[dev->pci].driver);
	nic->rdma_away = rdma_is_away(nic);
	nic->away_name = dev->rdma_name;
	if (nic->rdma_away)
		nic->pkey = dev->pkey;
}

/* A device that a pool listed stays its own. */
static void keep_previous(struct build *b)
{
	for (size_t i = 0; b->previous && !b->held_only && i < b->cfg->n_pools; i++) {
		const struct pool *before = node_pool(b->previous, b->cfg->pools[i].resource);

		if (!before)
			continue;
		b->gone[i] = arena_array(b->scratch, before->n_devs, sizeof(**b->gone));
		for (size_t k = 0; k < before->n_devs; k++) {
			const struct pool_dev *dev = &before->devs[k];
			struct nic *nic = nic_of_id(b, dev->id);

			if (!nic) {
				b->gone[i][b->n_gone[i]++] = *dev;
				continue;
			}
			remember(b, nic, dev);
			nic->owner = (int)i;
			nic->left_over = dev->left_over;
		}
	}
}

static int pool_of_resource(const struct build *b, const char *resource)
{
	for (size_t i = 0; i < b->cfg->n_pools; i++) {
		if (str_eq(b->cfg->pools[i].resource, resource))
			return (int)i;
	}
	return -1;
}

/* A VF's facts of the node before go along to the pool that has it now. Off the bus, a VF stays
 * where it is held, or where it was. */
static void keep_held_of(struct build *b, const struct pool *before, size_t n_listed)
{
	for (size_t i = 0; i < before->n_devs; i++) {
		const struct pool_dev *dev = &before->devs[i];
		const struct node_seed *seed = NULL;
		struct nic *nic = nic_of_id(b, dev->id);
		int pool;

		for (size_t k = 0; k < b->n_seeds && !seed; k++) {
			if (!strcmp(b->seeds[k].vf, dev->id))
				seed = &b->seeds[k];
		}

		if (nic) {
			remember(b, nic, dev);
			if (seed)
				nic->owner = pool_of_resource(b, seed->resource);
			nic->left_over = seed != NULL;
			continue;
		}
		pool = pool_of_resource(b, seed ? seed->resource : before->cfg->resource);
		if (pool < 0 || (!seed && (dev->left_over || b->cfg->pools[pool].retired)))
			continue;
		if (!b->gone[pool])
			b->gone[pool] = arena_array(b->scratch, n_listed, sizeof(**b->gone));
		b->gone[pool][b->n_gone[pool]++] = *dev;
	}
}

/* No selector matches a function without a driver. */
static void keep_unusable(struct build *b)
{
	for (size_t i = 0; i < b->previous->n_pools; i++) {
		const struct pool *before = &b->previous->pools[i];
		int pool = pool_of_resource(b, before->cfg->resource);

		for (size_t k = 0; pool >= 0 && !b->cfg->pools[pool].retired && k < before->n_devs;
		     k++) {
			struct nic *nic = nic_of_id(b, before->devs[k].id);

			if (nic && nic->owner < 0 && !nic->usable)
				nic->owner = pool;
		}
	}
}

/* A VF that containers hold stays in its pool, too, in sight or not. */
static void keep_seeds(struct build *b)
{
	for (size_t i = 0; i < b->n_seeds; i++) {
		const struct node_seed *seed = &b->seeds[i];
		int pool = pool_of_resource(b, seed->resource);
		struct nic *nic = nic_of_id(b, seed->vf);

		if (pool < 0 || (nic && nic->before) || (!nic && b->previous))
			continue;
		if (nic) {
			nic->owner = pool;
			nic->left_over = b->held_only;
			/* As remember() has it, from the record of the time when it was given. */
			nic->had_rdma = (seed->rdma || b->cfg->pools[pool].is_rdma) &&
					nic->fn->driver &&
					(!seed->driver || str_eq(nic->fn->driver, seed->driver));
			nic->rdma_away = rdma_is_away(nic);
			nic->away_name = seed->rdma;
			continue;
		}
		if (!b->gone[pool])
			b->gone[pool] = arena_array(b->scratch, b->n_seeds, sizeof(**b->gone));
		b->gone[pool][b->n_gone[pool]++] = (struct pool_dev) { .id = seed->vf, .numa = -1 };
	}
}

static bool had_vfs(const struct build *b, struct bdf bdf)
{
	for (size_t i = 0; b->previous && i < b->previous->n_with_vfs; i++) {
		if (!bdf_cmp(b->previous->with_vfs[i], bdf))
			return true;
	}
	return false;
}

static void remember_vfs(struct build *b)
{
	b->with_vfs = arena_array(b->arena, b->n_nics, sizeof(*b->with_vfs));
	for (size_t i = 0; i < b->n_nics; i++) {
		struct nic *nic = &b->nics[i];

		nic->had_vfs = !nic->is_vf && (nic->fn->sriov_num || had_vfs(b, nic->fn->bdf));
		if (nic->had_vfs)
			b->with_vfs[b->n_with_vfs++] = nic->fn->bdf;
	}
}

/* Functions that a pool matches and another one owns: one note per pair of pools. */
struct overlap {
	size_t n;
	const struct nic *first;
};

static void select_for_pool(struct build *b, size_t pool, struct overlap *by_owner)
{
	const struct pool_config *cfg = &b->cfg->pools[pool];
	char address[BDF_STRLEN];

	for (size_t i = 0; i < b->n_nics; i++) {
		struct nic *nic = &b->nics[i];
		const struct selector *item;

		if (!nic->usable || cfg->retired || !match_pool(cfg, nic, &item))
			continue;
		if (nic->fn->default_route) {
			note(b, "%s: %s (%s) carries the default route and is left out",
			     cfg->resource, bdf_format(nic->fn->bdf, address),
			     nic->fn->netdev ? nic->fn->netdev : "no name");
		} else if (nic->owner < 0 || nic->owner == (int)pool) {
			nic->owner = (int)pool;
			nic->selected = true;
			nic->named = match_names(item);
			nic->plain = cfg->is_rdma && item && !item->is_rdma;
			nic->vhost_net = item && item->need_vhost_net;
		} else if (!by_owner[nic->owner].n++) {
			by_owner[nic->owner].first = nic;
		}
	}
	for (size_t i = 0; i < b->cfg->n_pools; i++) {
		if (by_owner[i].n)
			note(b, "%s: matches %zu functions (first %s) that belong to %s",
			     cfg->resource, by_owner[i].n,
			     bdf_format(by_owner[i].first->fn->bdf, address),
			     b->cfg->pools[i].resource);
	}
}

static void add_nic(struct build *b, struct nic *nic, struct pool_dev *ret)
{
	const struct pool_config *cfg = &b->cfg->pools[nic->owner];
	struct health_view view = {
		.resource = cfg->resource,
		.driver = nic->fn->driver,
		.needs_rdma = cfg->is_rdma && !nic->plain,
		.has_rdma = nic_has_rdma(nic),
		.pf_address = nic->pf_address,
		.pf_netdev = nic->pf ? nic->pf->netdev : NULL,
		.carrier = nic->carrier,
		.port_state = nic->port_state,
		.selected = nic->selected || cfg->retired,
	};
	char address[BDF_STRLEN];

	/* Of several ports the one that counts. */
	for (size_t i = 0; i < b->n_links; i++) {
		const struct node_link *l = &b->links[i];

		if (str_eq(l->pf, nic->pf_address) && str_eq(l->resource, cfg->resource) &&
		    (!nic->unwell || l->unhealthy > nic->unwell->unhealthy))
			nic->unwell = l;
	}
	if (nic->unwell)
		ret->degraded = arena_strdup(b->arena, nic->unwell->degraded);
	view.degraded = nic->unwell && nic->unwell->unhealthy ? nic->unwell->degraded : NULL;

	ret->id = arena_strdup(b->arena, bdf_format(nic->fn->bdf, address));
	ret->pci = nic->pci;
	ret->pf = pfs_of(&b->pfs, nic->pci);
	ret->rdma = nic->rdma;
	ret->rdma_away = nic->rdma_away;
	ret->plain = nic->plain;
	ret->vhost_net = nic->vhost_net;
	ret->pkey = nic->pkey;
	ret->had_rdma = nic->had_rdma || nic->rdma >= 0;
	if (nic->rdma >= 0)
		ret->rdma_name = b->inv->rdma[nic->rdma].name;
	else if (nic->had_rdma)
		ret->rdma_name = arena_strdup(b->arena, nic->away_name);
	/* Of a function that no driver has it is not known whether it is selected. */
	ret->left_over = !nic->selected && (nic->left_over || nic->usable);
	ret->numa = nic->fn->numa;
	view.id = ret->id;
	health_judge(&view, b->arena, ret);
}

static int dev_cmp(const void *a, const void *b)
{
	return pool_id_cmp(((const struct pool_dev *)a)->id, ((const struct pool_dev *)b)->id);
}

static void fill_pools(struct build *b)
{
	size_t n_pools = b->cfg->n_pools;
	struct pool_dev **devs = arena_array(b->scratch, n_pools, sizeof(*devs));
	size_t *n = arena_array(b->scratch, n_pools, sizeof(*n));

	for (size_t i = 0; i < b->n_nics; i++) {
		if (b->nics[i].owner >= 0)
			n[b->nics[i].owner]++;
	}
	for (size_t i = 0; i < n_pools; i++) {
		devs[i] = arena_array(b->arena, n[i] + b->n_gone[i], sizeof(**devs));
		n[i] = 0;
		/* It keeps its id and its NUMA node: the only change in the kubelet's list is that
		 * it is not healthy. */
		for (; n[i] < b->n_gone[i]; n[i]++) {
			const struct pool_dev *before = &b->gone[i][n[i]];
			const struct health_view view = { .id = arena_strdup(b->arena, before->id),
							  .gone = true };

			devs[i][n[i]] = (struct pool_dev) { .id = view.id,
							    .pci = -1,
							    .pf = pfs_still(&b->pfs, before->pf),
							    .rdma = -1,
							    .numa = before->numa };
			/* Its PF has fewer VFs than before, or others. */
			devs[i][n[i]].left_over = devs[i][n[i]].pf && !devs[i][n[i]].pf->missing;
			health_judge(&view, b->arena, &devs[i][n[i]]);
		}
	}
	for (size_t i = 0; i < b->n_nics; i++) {
		int owner = b->nics[i].owner;

		if (owner >= 0)
			add_nic(b, &b->nics[i], &devs[owner][n[owner]++]);
	}
	for (size_t i = 0; i < n_pools; i++) {
		qsort(devs[i], n[i], sizeof(**devs), dev_cmp);
		b->pools[i] = (struct pool) { &b->cfg->pools[i], devs[i], n[i] };
	}
}

/* A function whose VFs or whose own interface is in use serves as well; one that a container can
 * hold does not. */
static void fill_shared(struct build *b)
{
	b->shared = arena_array(b->arena, b->cfg->n_shared, sizeof(*b->shared));
	for (size_t i = 0; i < b->cfg->n_shared; i++) {
		const struct pool_config *cfg = &b->cfg->shared[i];
		struct pool_dev *devs = arena_array(b->arena, b->n_nics, sizeof(*devs)),
				*dev = devs;
		size_t n;

		for (size_t k = 0; k < b->n_nics; k++) {
			const struct nic *nic = &b->nics[k];
			const struct selector *item;
			struct health_view view = { .driver = nic->fn->driver,
						    .resource = cfg->resource,
						    .has_rdma = true,
						    .pf_address = nic->pf_address,
						    .pf_netdev = nic->pf ? nic->pf->netdev : NULL,
						    .carrier = nic->carrier,
						    .port_state = nic->port_state,
						    .selected = true };
			struct node_pf *pf;
			char address[BDF_STRLEN];

			if (!nic->fn->driver || nic->owner >= 0 || !nic_has_rdma(nic) ||
			    !match_pool(cfg, nic, &item))
				continue;
			view.id = arena_strdup(b->arena, bdf_format(nic->fn->bdf, address));
			pf = pfs_of(&b->pfs, nic->pci);
			if (pf)
				pfs_share(&b->pfs, pf, cfg->resource);
			*dev = (struct pool_dev) { .id = view.id,
						   .pci = nic->pci,
						   .pf = pf,
						   .rdma = nic->rdma,
						   .had_rdma = true,
						   .numa = nic->fn->numa };
			if (nic->rdma >= 0)
				dev->rdma_name = b->inv->rdma[nic->rdma].name;
			health_judge(&view, b->arena, dev);
			dev++;
		}
		n = (size_t)(dev - devs);
		if (n)
			qsort(devs, n, sizeof(*devs), dev_cmp);
		b->shared[i] = (struct pool) { cfg, devs, n };
		if (!n)
			note(b, "%s: no HCA matches", cfg->resource);
	}
}

/* Entries of pfNames (by_address: of rootDevices) that decide for no function, or do not take it.
 */
static void note_unused(struct build *b, const char *resource, const struct pf_selector *list,
			size_t n, bool by_address)
{
	bool *used = arena_array(b->scratch, n, sizeof(*used));

	for (size_t i = 0; n && i < b->n_nics; i++) {
		const struct nic *nic = &b->nics[i];
		const char *name = by_address ? nic_pf_address(nic) : nic_pf_name(nic);
		const struct pf_selector *entry =
			nic->usable ? match_deciding(list, n, name) : NULL;

		if (entry && match_index(entry, nic->fn->vf_index))
			used[entry - list] = true;
	}
	for (size_t i = 0; i < n; i++) {
		if (!used[i])
			note(b, "%s: '%s'%s in %s matches no function", resource, list[i].name,
			     list[i].n_ranges ? " with its range" : "",
			     by_address ? "rootDevices" : "pfNames");
	}
}

static void note_empty(struct build *b, const struct pool_config *cfg)
{
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;

	note(b, "%s: no function matches", cfg->resource);
	if (match_explain(cfg, b->nics, b->n_nics, b->scratch, &why))
		note(b, "%s: %s", cfg->resource, strbuf_str(&why));
}

/* A container that gets a PF has the whole card: that is to be meant. */
static void note_pfs(struct build *b, size_t pool)
{
	const struct pool_config *cfg = &b->cfg->pools[pool];
	const struct nic *first = NULL;
	char address[BDF_STRLEN];
	size_t n = 0;

	for (size_t i = 0; i < b->n_nics && cfg->pfs == PFS_NOTED; i++) {
		const struct nic *nic = &b->nics[i];

		if (nic->owner != (int)pool || !nic->selected || nic->is_vf || nic->named ||
		    !nic->fn->sriov_total)
			continue;
		first = n++ ? first : nic;
	}
	if (n)
		note(b,
		     "%s: gives whole PFs to containers (%zu, first %s): vfsOnly in its railmate object leaves them out, or takes them without this note",
		     cfg->resource, n, bdf_format(first->fn->bdf, address));
}

/* Notes of keys that do nothing on this machine, or more than is meant. */
static void note_idle(struct build *b)
{
	for (size_t i = 0; i < b->cfg->n_pools; i++) {
		const struct pool_config *cfg = &b->cfg->pools[i];

		if (cfg->retired)
			continue;
		for (size_t k = 0; k < cfg->n_selectors; k++) {
			const struct selector *s = &cfg->selectors[k];

			note_unused(b, cfg->resource, s->pf_names, s->n_pf_names, false);
			note_unused(b, cfg->resource, s->root_devices, s->n_root_devices, true);
		}
		if (!b->pools[i].n_devs)
			note_empty(b, cfg);
		note_pfs(b, i);
	}
}

static int pf_name_cmp(const void *a, const void *b)
{
	const struct nic *x = *(const struct nic *const *)a, *y = *(const struct nic *const *)b;
	int order = strcasecmp(x->fn->netdev, y->fn->netdev);

	return order ? order : x->pci - y->pci;
}

/* A kernel's names of netdevs are unique; in a tree with one name twice, pfNames is ambiguous. */
static void note_same_names(struct build *b)
{
	const struct nic **pfs = arena_array(b->scratch, b->n_nics, sizeof(*pfs));
	size_t n = 0;

	for (size_t i = 0; i < b->n_nics; i++) {
		if (b->nics[i].pf == b->nics[i].fn && b->nics[i].fn->netdev)
			pfs[n++] = &b->nics[i];
	}
	qsort(pfs, n, sizeof(*pfs), pf_name_cmp);
	for (size_t i = 1; i < n; i++) {
		if (!strcasecmp(pfs[i - 1]->fn->netdev, pfs[i]->fn->netdev))
			note(b, "%s and %s have one netdev name, %s: pfNames matches both",
			     pfs[i - 1]->pf_address, pfs[i]->pf_address, pfs[i]->fn->netdev);
	}
}

static void note_all(struct build *b, const char *const *notes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		note(b, "%s", notes[i]);
}

static const struct node_link *copy_links(const struct node_parts *parts, struct arena *arena)
{
	struct node_link *v =
		arena_copy(arena, parts->links, parts->n_links * sizeof(*parts->links));

	for (size_t i = 0; i < parts->n_links; i++) {
		v[i].resource = arena_strdup(arena, v[i].resource);
		v[i].pf = arena_strdup(arena, v[i].pf);
		v[i].degraded = arena_strdup(arena, v[i].degraded);
	}
	return v;
}

static bool is_same_link(const struct node_link *a, const struct node_link *b)
{
	return str_eq(a->resource, b->resource) && str_eq(a->pf, b->pf) && a->port == b->port &&
	       a->trouble == b->trouble && a->unhealthy == b->unhealthy &&
	       str_eq(a->degraded, b->degraded);
}

static bool is_same(const struct node *a, const struct node *b)
{
	if (a->cfg != b->cfg || a->n_pools != b->n_pools || a->n_links != b->n_links ||
	    !hw_inventory_same(a->inv, b->inv))
		return false;
	for (size_t i = 0; i < a->n_pools; i++) {
		if (!pool_same_list(&a->pools[i], &b->pools[i]))
			return false;
	}
	for (size_t i = 0; i < a->n_links; i++) {
		if (!is_same_link(&a->links[i], &b->links[i]))
			return false;
	}
	for (size_t i = 0; i < a->n_shared && i < b->n_shared; i++) {
		if (!pool_same_list(&a->shared[i], &b->shared[i]))
			return false;
	}
	return a->n_shared == b->n_shared;
}

static void build_pools(struct build *b)
{
	size_t n_pools = b->cfg->n_pools, n_listed = 0; /* by the node before, in all pools */
	struct overlap *by_owner = arena_array(b->scratch, n_pools, sizeof(*by_owner));

	b->pools = arena_array(b->arena, n_pools, sizeof(*b->pools));
	b->gone = arena_array(b->scratch, n_pools, sizeof(*b->gone));
	b->n_gone = arena_array(b->scratch, n_pools, sizeof(*b->n_gone));
	b->nics = arena_array(b->scratch, b->inv->n_pci, sizeof(*b->nics));
	b->nic_of = arena_array(b->scratch, b->inv->n_pci, sizeof(*b->nic_of));
	for (size_t i = 0; i < b->inv->n_pci; i++) {
		b->nic_of[i] = -1;
		if (!hw_is_nic(&b->inv->pci[i]))
			continue;
		b->nic_of[i] = (int)b->n_nics;
		nic_init(&b->nics[b->n_nics++], b->inv, (int)i);
	}
	remember_vfs(b);
	keep_previous(b);
	for (size_t i = 0; b->held_only && b->previous && i < b->previous->n_pools; i++)
		n_listed += b->previous->pools[i].n_devs;
	for (size_t i = 0; b->held_only && b->previous && i < b->previous->n_pools; i++)
		keep_held_of(b, &b->previous->pools[i], n_listed);
	keep_seeds(b);
	/* In the order of the configuration: the first pool that matches owns. */
	for (size_t i = 0; i < n_pools; i++) {
		memset(by_owner, 0, n_pools * sizeof(*by_owner));
		select_for_pool(b, i, by_owner);
	}
	if (b->held_only && b->previous)
		keep_unusable(b);
	pfs_begin(&b->pfs, b->scratch);
	fill_pools(b);
	fill_shared(b);
	pfs_end(&b->pfs, b->cfg, b->pools);
	note_idle(b);
	note_same_names(b);
	for (size_t i = 0; i < n_pools && !b->inv->has_vhost_net; i++) {
		bool wanted = false;

		for (size_t k = 0; k < b->pools[i].n_devs; k++)
			wanted |= b->pools[i].devs[k].vhost_net;
		if (wanted)
			note(b,
			     "%s: needVhostNet is true and this node has no /dev/vhost-net or no /dev/net/tun (modprobe vhost_net tun): containers get neither",
			     b->cfg->pools[i].resource);
	}
}

/* A node without pools is shown as it could be used. */
static bool any_uses_direct(const struct build *b)
{
	bool any = !b->cfg->n_pools;

	for (size_t i = 0; i < b->cfg->n_pools; i++)
		any |= pool_uses_direct(&b->pools[i]);
	return any;
}

struct node *node_make(struct hw_inventory *inv, const struct node_parts *parts)
{
	_cleanup_arena_ struct arena *scratch = arena_new(64 * 1024);
	const struct config *cfg = parts->cfg;
	struct arena *arena = arena_new(64 * 1024);
	struct counted_node *c = arena_alloc(arena, sizeof(*c));
	const char *const *notes;
	size_t n;
	struct build b = { .arena = arena,
			   .scratch = scratch,
			   .inv = inv,
			   .cfg = cfg,
			   .previous = parts->previous,
			   .pfs = { .arena = arena, .inv = inv, .previous = parts->previous },
			   .seeds = parts->seeds,
			   .n_seeds = parts->n_seeds,
			   .held_only = parts->held_only,
			   .links = parts->links,
			   .n_links = parts->n_links };

	build_pools(&b);
	c->arena = arena;
	c->inv = inv;
	c->topo = topo_new(inv, cfg->hints);
	if (!any_uses_direct(&b))
		topo_forget_direct(c->topo);
	c->rails = topo_rails_new(c->topo, cfg->rails, cfg->n_rails);
	notes = topo_notes(c->topo, &n);
	note_all(&b, notes, n);
	notes = topo_rails_notes(c->rails, &n);
	note_all(&b, notes, n);
	atomic_init(&c->refs, 1);
	c->node = (struct node) { .inv = inv,
				  .topo = c->topo,
				  .rails = c->rails,
				  .cfg = config_ref(cfg),
				  .pools = b.pools,
				  .n_pools = cfg->n_pools,
				  .shared = b.shared,
				  .n_shared = cfg->n_shared,
				  .links = copy_links(parts, arena),
				  .n_links = parts->n_links,
				  .with_vfs = b.with_vfs,
				  .n_with_vfs = b.n_with_vfs,
				  .pfs = b.pfs.v,
				  .n_pfs = b.pfs.n };
	c->node.notes = arena_copy(arena, b.notes, b.n_notes * sizeof(*b.notes));
	c->node.n_notes = b.n_notes;
	free(b.notes);
	c->node.generation = 1;
	if (parts->previous)
		c->node.generation =
			parts->previous->generation + !is_same(&c->node, parts->previous);
	return &c->node;
}

bool node_has_left_over(const struct node *n)
{
	for (size_t i = 0; i < n->n_pools; i++) {
		if (n->pools[i].cfg->retired)
			return true;
		for (size_t k = 0; k < n->pools[i].n_devs; k++) {
			if (n->pools[i].devs[k].left_over)
				return true;
		}
	}
	return false;
}

struct node *node_ref(struct node *n)
{
	atomic_fetch_add_explicit(&((struct counted_node *)n)->refs, 1, memory_order_relaxed);
	return n;
}

struct node *node_unref(struct node *n)
{
	struct counted_node *c = (struct counted_node *)n;

	if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) {
		topo_rails_free(c->rails);
		topo_free(c->topo);
		hw_inventory_free(c->inv);
		config_free((struct config *)c->node.cfg);
		arena_free(c->arena);
	}
	return NULL;
}
