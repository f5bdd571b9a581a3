#include "pool/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/pool-internal.h"

bool pool_candidate(const struct hw_inventory *inv, int pci)
{
	if (pci < 0 || !hw_is_nic(&inv->pci[pci]))
		return false;
	return hw_is_nic_vf(inv, pci) || !inv->pci[pci].sriov_num;
}

int pool_id_cmp(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	return n != m ? (n < m ? -1 : 1) : strcmp(a, b);
}

static const struct pool *find(const struct pool *pools, size_t n, const char *resource)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(pools[i].cfg->resource, resource))
			return &pools[i];
	}
	return NULL;
}

const struct pool *node_pool(const struct node *n, const char *resource)
{
	return find(n->pools, n->n_pools, resource);
}

const struct pool *node_shared(const struct node *n, const char *resource)
{
	return find(n->shared, n->n_shared, resource);
}

const struct node_pf *node_pf(const struct node *n, const char *address)
{
	for (size_t i = 0; i < n->n_pfs; i++) {
		if (str_eq(n->pfs[i].address, address))
			return &n->pfs[i];
	}
	return NULL;
}

static int by_id(const void *id, const void *dev)
{
	return pool_id_cmp(id, ((const struct pool_dev *)dev)->id);
}

const struct pool_dev *pool_find(const struct pool *p, const char *id)
{
	return p->n_devs ? bsearch(id, p->devs, p->n_devs, sizeof(*p->devs), by_id) : NULL;
}

static bool env_is(const struct pool_config *cfg, const char *name, const char *values)
{
	for (size_t i = 0; i < cfg->n_env; i++) {
		const char *value = cfg->env[i].value;

		if (!strcmp(cfg->env[i].name, name))
			return *value && strchr(values, *value) && strcmp(value, "on") != 0;
	}
	return false;
}

bool pool_uses_direct(const struct pool *p)
{
	/* By the first letter of the value: 0 or 00, n, no or off. */
	static const struct {
		unsigned profiles;
		const char *name, *off;
	} libraries[] = {
		{ PROFILE_NCCL | PROFILE_RCCL, "NCCL_IB_DATA_DIRECT", "0" },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", "0no" },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", "1t" },
	};
	/* "none" leaves the library open: NCCL without our variables finds it by itself. */
	unsigned profiles = p->cfg && p->cfg->profiles ? p->cfg->profiles : PROFILE_NCCL;

	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		if (profiles & libraries[i].profiles &&
		    !(p->cfg && env_is(p->cfg, libraries[i].name, libraries[i].off)))
			return true;
	}
	return false;
}

struct topo_path pool_between(const struct pool *p, const struct topo *t, int a, int b)
{
	return pool_uses_direct(p) ? topo_between(t, a, b) : topo_between_functions(t, a, b);
}

struct topo_rail pool_nccl_rail(const struct pool *p, const struct topo_rails *rails, int pci)
{
	bool said = p->cfg->nccl_rails == NCCL_RAILS_ALWAYS ||
		    (p->cfg->nccl_rails == NCCL_RAILS_AUTO && topo_rails_are_named(rails));

	return said ? topo_rails_of(rails, pci) : (struct topo_rail) { -1, -1 };
}

bool pool_planes_fit(const struct topo_rail *v, size_t n)
{
	int seen[POOL_NCCL_PLANES_MAX];
	size_t n_seen = 0;

	for (size_t i = 0; i < n; i++) {
		int plane = v[i].rail >= 0 ? v[i].plane : -1;
		size_t k = 0;

		while (k < n_seen && seen[k] != plane)
			k++;
		if (k < n_seen)
			continue;
		if (n_seen == POOL_NCCL_PLANES_MAX)
			return false;
		seen[n_seen++] = plane;
	}
	return true;
}

bool pool_dev_is_rdma(const struct pool *p, const struct pool_dev *dev)
{
	return p->cfg->is_rdma && !dev->plain;
}

bool pool_dev_is_pf(const struct node *n, const struct pool_dev *dev)
{
	return dev->pci >= 0 && !hw_is_nic_vf(n->inv, dev->pci);
}

static int reported_numa(const struct pool *p, const struct pool_dev *d)
{
	return p->cfg->exclude_topology ? -1 : d->numa;
}

bool pool_same_list(const struct pool *a, const struct pool *b)
{
	if (a->n_devs != b->n_devs)
		return false;
	for (size_t i = 0; i < a->n_devs; i++) {
		const struct pool_dev *x = &a->devs[i], *y = &b->devs[i];

		if (!str_eq(x->id, y->id) || x->healthy != y->healthy ||
		    reported_numa(a, x) != reported_numa(b, y))
			return false;
	}
	return true;
}
