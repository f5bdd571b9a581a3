/* The PFs behind the devices of pools, also those that are missing, with their facts of the node
 * before. */
#include "pool/pool-internal.h"

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"

void pfs_begin(struct pfs *t, struct arena *scratch)
{
	size_t n = t->previous ? t->previous->n_pfs : 0;

	for (size_t i = 0; i < t->inv->n_pci; i++)
		n += hw_is_nic(&t->inv->pci[i]) && hw_pf_of(t->inv, (int)i) == (int)i;
	t->v = arena_array(t->arena, n, sizeof(*t->v));
	t->of = arena_array(scratch, t->inv->n_pci, sizeof(*t->of));
}

static const struct node_pf *find(const struct node_pf *v, size_t n, const char *address)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(v[i].address, address))
			return &v[i];
	}
	return NULL;
}

static const struct node_pf *find_before(const struct pfs *t, const char *address)
{
	return t->previous ? find(t->previous->pfs, t->previous->n_pfs, address) : NULL;
}

static bool was_up(const struct node_pf *before, int number)
{
	for (size_t i = 0; before && i < before->n_ports; i++) {
		if (before->ports[i].number == number)
			return before->ports[i].was_up;
	}
	return false;
}

/* As the health of VFs is judged (health.c). An interface is known of the first port only. */
static int is_up(const struct hw_port *port, bool first, int carrier)
{
	if (str_eq(port->state, "ACTIVE"))
		return 1;
	return first ? carrier : str_eq(port->state, "DOWN") ? 0 : -1;
}

static void add_ports(struct pfs *t, struct node_pf *pf, const struct node_pf *before)
{
	int rdma = hw_find_rdma(t->inv, pf->pci), carrier = t->inv->pci[pf->pci].carrier;
	size_t n = rdma < 0 ? 0 : t->inv->rdma[rdma].n_ports;
	struct node_port *ports = arena_array(t->arena, n ? n : 1, sizeof(*ports));
	bool any_up = false;

	ports[0].up = carrier;
	for (size_t i = 0; i < n; i++) {
		const struct hw_port *port = &t->inv->rdma[rdma].ports[i];

		ports[i].number = port->number;
		ports[i].up = is_up(port, i == 0, carrier);
		any_up |= ports[i].up == 1;
	}
	pf->n_ports = n ? n : 1;
	for (size_t i = 0; i < pf->n_ports; i++) {
		ports[i].was_up = ports[i].up == 1 || was_up(before, ports[i].number);
		/* Of two ports one is often not used. */
		if (ports[i].up == 0 && any_up && !ports[i].was_up)
			ports[i].up = -1;
	}
	pf->rdma = rdma < 0 ? NULL : t->inv->rdma[rdma].name;
	pf->ports = ports;
}

/* Its facts of before; its links are down. */
static void add_missing(struct pfs *t, struct node_pf *pf, const struct node_pf *before)
{
	size_t n = before ? before->n_ports : 1;
	struct node_port *ports = arena_array(t->arena, n, sizeof(*ports));

	for (size_t i = 0; before && i < n; i++)
		ports[i] =
			(struct node_port) { before->ports[i].number, 0, before->ports[i].was_up };
	if (before) {
		pf->netdev = arena_strdup(t->arena, before->netdev);
		pf->rdma = arena_strdup(t->arena, before->rdma);
	}
	pf->ports = ports;
	pf->n_ports = n;
	pf->missing = pf->pci < 0 ? "is gone from the PCI bus" : "has no driver";
}

static struct node_pf *add(struct pfs *t, const char *address, int pci)
{
	const struct node_pf *before = find_before(t, address);
	struct node_pf *pf = &t->v[t->n++];

	*pf = (struct node_pf) { .address = arena_strdup(t->arena, address), .pci = pci };
	if (pci >= 0)
		t->of[pci] = pf;
	if (pci < 0 || !t->inv->pci[pci].driver) {
		add_missing(t, pf, before);
	} else {
		pf->netdev = t->inv->pci[pci].netdev;
		add_ports(t, pf, before);
	}
	return pf;
}

struct node_pf *pfs_of(struct pfs *t, int pci)
{
	int pf = hw_pf_of(t->inv, pci);
	char address[BDF_STRLEN];

	if (pf < 0 || !hw_is_nic(&t->inv->pci[pf]))
		return NULL;
	return t->of[pf] ? t->of[pf] : add(t, bdf_format(t->inv->pci[pf].bdf, address), pf);
}

struct node_pf *pfs_still(struct pfs *t, const struct node_pf *before)
{
	const struct node_pf *known = before ? find(t->v, t->n, before->address) : NULL;
	struct bdf bdf;
	int pci;

	if (known || !before)
		return (struct node_pf *)known;
	pci = bdf_parse(before->address, &bdf) < 0 ? -1 : hw_find_pci(t->inv, bdf);
	if (pci >= 0 && hw_is_nic(&t->inv->pci[pci]))
		return pfs_of(t, pci);
	return add(t, before->address, -1);
}

void pfs_share(struct pfs *t, struct node_pf *pf, const char *resource)
{
	const char **list;

	if (list_has(pf->shared, pf->n_shared, resource))
		return;
	list = arena_array(t->arena, pf->n_shared + 1, sizeof(*list));
	for (size_t i = 0; i < pf->n_shared; i++)
		list[i] = pf->shared[i];
	list[pf->n_shared++] = resource;
	pf->shared = list;
}

/* Do the selectors of the pool still name it, as far as they name PFs? */
static bool names(const struct pool_config *cfg, const struct node_pf *pf)
{
	for (size_t i = 0; i < cfg->n_selectors; i++) {
		const struct selector *s = &cfg->selectors[i];

		if ((!s->n_pf_names || match_deciding(s->pf_names, s->n_pf_names, pf->netdev)) &&
		    (!s->n_root_devices ||
		     match_deciding(s->root_devices, s->n_root_devices, pf->address)) &&
		    (!s->n_if_names || list_has(s->if_names, s->n_if_names, pf->netdev)))
			return true;
	}
	return !cfg->n_selectors;
}

/* An HCA that is missing is in no list of shared ones. */
static void keep_shared(struct pfs *t, const struct config *cfg, const struct node_pf *before)
{
	for (size_t i = 0; i < cfg->n_shared; i++) {
		const struct pool_config *pool = &cfg->shared[i];
		struct bdf bdf;
		int pci = bdf_parse(before->address, &bdf) < 0 ? -1 : hw_find_pci(t->inv, bdf);

		if ((pci >= 0 && t->inv->pci[pci].driver) || !names(pool, before) ||
		    !list_has(before->shared, before->n_shared, pool->resource))
			continue;
		pfs_share(t, pfs_still(t, before), pool->resource);
	}
}

void pfs_end(struct pfs *t, const struct config *cfg, const struct pool *pools)
{
	for (size_t i = 0; t->previous && i < t->previous->n_pfs; i++)
		keep_shared(t, cfg, &t->previous->pfs[i]);
	for (size_t i = 0; i < t->n; i++)
		t->v[i].wanted = !t->v[i].missing || t->v[i].n_shared;
	for (size_t i = 0; i < cfg->n_pools; i++) {
		for (size_t k = 0; k < pools[i].n_devs; k++) {
			struct node_pf *pf = (struct node_pf *)pools[i].devs[k].pf;

			if (pf && !pf->wanted)
				pf->wanted = cfg->pools[i].retired || names(&cfg->pools[i], pf);
		}
	}
}
