/*
 * From selectors to the devices of a resource: which functions a pool's selectors match, their PFs,
 * what health they have, and why a pool is empty. node.c makes a node of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "pool/pool-internal.h"

/* Selector semantics of sriov-network-device-plugin: AND between selectors, OR inside one. */

/* ARPHRD_* of linux/if_arp.h */
#define NET_ETHER      1
#define NET_INFINIBAND 32

static const char *link_of_port(const struct hw_inventory *inv, int rdma)
{
	if (rdma < 0 || !inv->rdma[rdma].n_ports)
		return NULL;
	switch (inv->rdma[rdma].ports[0].link) {
	case HW_LINK_ETHERNET:
		return "ether";
	case HW_LINK_IB:
		return "infiniband";
	default:
		return NULL;
	}
}

/* Of the port that serves: containers are given the first that is ACTIVE. */
static const char *state_of(const struct hw_rdma *rdma)
{
	for (size_t i = 0; i < rdma->n_ports; i++) {
		if (str_eq(rdma->ports[i].state, "ACTIVE"))
			return rdma->ports[i].state;
	}
	return rdma->n_ports ? rdma->ports[0].state : NULL;
}

/* The RDMA device that decides whether a PF serves; -1. With VF LAG the PFs of a bond have one of
 * them all, at the first PF: a cable may be out while its port is ACTIVE. */
static int rdma_of_pf(const struct hw_inventory *inv, int pf)
{
	int rdma = hw_find_rdma(inv, pf);

	for (int i = 0; rdma < 0 && pf >= 0 && i < (int)inv->n_pci; i++) {
		const struct hw_pci *a = &inv->pci[pf], *b = &inv->pci[i];

		if (i != pf && !b->is_vf && a->bdf.domain == b->bdf.domain &&
		    a->bdf.bus == b->bdf.bus && a->bdf.dev == b->bdf.dev &&
		    a->vendor == b->vendor && a->device == b->device &&
		    str_eq(a->driver, b->driver))
			rdma = hw_find_rdma(inv, i);
	}
	return rdma;
}

void nic_init(struct nic *nic, const struct hw_inventory *inv, int pci)
{
	const struct hw_pci *fn = &inv->pci[pci];
	int pf = fn->is_vf ? fn->physfn : pci;
	int pf_rdma = rdma_of_pf(inv, pf), type;

	*nic = (struct nic) {
		.pci = pci, .fn = fn, .pf = pf >= 0 ? &inv->pci[pf] : NULL, .owner = -1
	};
	if (nic->pf)
		bdf_format(nic->pf->bdf, nic->pf_address);
	nic->is_vf = hw_is_nic_vf(inv, pci);
	nic->usable = pool_candidate(inv, pci) && fn->driver;
	nic->rdma = hw_find_rdma(inv, pci);
	/* The type of the PF's netdev, else (no IPoIB) of its RDMA port. */
	type = fn->net_type ? fn->net_type : nic->pf ? nic->pf->net_type : 0;
	if (type == NET_ETHER || type == NET_INFINIBAND)
		nic->link = type == NET_ETHER ? "ether" : "infiniband";
	else
		nic->link = link_of_port(inv, nic->rdma);
	if (!nic->link)
		nic->link = link_of_port(inv, pf_rdma);
	nic->pkey = nic->rdma >= 0 ? inv->rdma[nic->rdma].pkey : 0;
	/* A VF that was passed through to this machine has no PF here, and its own link follows the
	 * changes made in a pod. */
	nic->carrier = nic->pf && (nic->pf != fn || !nic->is_vf) ? nic->pf->carrier : -1;
	nic->port_state = pf_rdma >= 0 ? state_of(&inv->rdma[pf_rdma]) : NULL;
}

bool nic_has_rdma(const struct nic *nic)
{
	return nic->rdma >= 0 || nic->rdma_away;
}

const char *nic_pf_name(const struct nic *nic)
{
	return nic->fn->is_vf && nic->pf ? nic->pf->netdev : NULL;
}

const char *nic_pf_address(const struct nic *nic)
{
	return nic->fn->is_vf && nic->pf ? nic->pf_address : NULL;
}

static bool has_id(const uint16_t *list, size_t n, uint16_t id)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i] == id)
			return true;
	}
	return !n;
}

static bool has_word(const char *const *list, size_t n, const char *word)
{
	return !n || list_has(list, n, word);
}

static bool has_address(const struct bdf *list, size_t n, struct bdf bdf)
{
	for (size_t i = 0; i < n; i++) {
		if (!bdf_cmp(list[i], bdf))
			return true;
	}
	return !n;
}

const struct pf_selector *match_deciding(const struct pf_selector *list, size_t n, const char *name)
{
	for (size_t i = 0; name && i < n; i++) {
		if (!strcasecmp(list[i].name, name))
			return &list[i];
	}
	return NULL;
}

bool match_index(const struct pf_selector *entry, int vf_index)
{
	for (size_t i = 0; i < entry->n_ranges; i++) {
		if (entry->ranges[i].first <= vf_index && vf_index <= entry->ranges[i].last)
			return true;
	}
	return !entry->n_ranges;
}

static bool has_pf(const struct pf_selector *list, size_t n, const char *name, int vf_index)
{
	const struct pf_selector *entry = match_deciding(list, n, name);

	return !n || (entry && match_index(entry, vf_index));
}

bool match_names(const struct selector *s)
{
	return s && (s->n_addresses || s->n_acpi_indexes);
}

/* A PF whose VFs are being made anew has none for a moment. */
static bool may_be(const struct pool_config *cfg, const struct selector *s, const struct nic *nic)
{
	if (nic->is_vf || cfg->shares)
		return true;
	if (cfg->pfs == PFS_NEVER)
		return false;
	return match_names(s) || (cfg->pfs != PFS_NAMED && !nic->had_vfs);
}

#define NIC_HAS(name, test)                                                                        \
	static bool name(const struct selector *s, const struct nic *nic)                          \
	{                                                                                          \
		return test;                                                                       \
	}

NIC_HAS(has_vendor, has_id(s->vendors, s->n_vendors, nic->fn->vendor))
NIC_HAS(has_device, has_id(s->devices, s->n_devices, nic->fn->device))
NIC_HAS(has_driver, has_word(s->drivers, s->n_drivers, nic->fn->driver))
NIC_HAS(has_bdf, has_address(s->addresses, s->n_addresses, nic->fn->bdf))
NIC_HAS(has_acpi,
	!s->n_acpi_indexes || list_has_int(s->acpi_indexes, s->n_acpi_indexes, nic->fn->acpi_index))
NIC_HAS(has_pf_name, has_pf(s->pf_names, s->n_pf_names, nic_pf_name(nic), nic->fn->vf_index))
NIC_HAS(has_root,
	has_pf(s->root_devices, s->n_root_devices, nic_pf_address(nic), nic->fn->vf_index))
NIC_HAS(has_link, has_word(s->link_types, s->n_link_types, nic->link))
NIC_HAS(has_if_name, has_word(s->if_names, s->n_if_names, nic->fn->netdev))
NIC_HAS(has_pkey, !s->n_pkeys || (nic->pkey && has_id(s->pkeys, s->n_pkeys, nic->pkey)))
NIC_HAS(has_rdma, !s->is_rdma || nic_has_rdma(nic))

static const char *hex(uint16_t id, struct arena *a)
{
	return arena_printf(a, "%04x", id);
}

static const char *value_of(const char *key, const struct nic *nic, struct arena *a)
{
	const char *value = NULL;

	if (!strcmp(key, "vendors"))
		return hex(nic->fn->vendor, a);
	if (!strcmp(key, "devices"))
		return hex(nic->fn->device, a);
	if (!strcmp(key, "drivers"))
		value = nic->fn->driver;
	else if (!strcmp(key, "pfNames"))
		value = nic_pf_name(nic);
	else if (!strcmp(key, "rootDevices"))
		value = nic_pf_address(nic);
	else if (!strcmp(key, "linkTypes"))
		value = nic->link;
	return value ? value : "none";
}

/* In the order of docs/configuration.md. */
static const struct {
	const char *key;
	bool (*holds)(const struct selector *s, const struct nic *nic);
	bool said; /* value_of() has the value of a function */
} conditions[] = {
	{ "vendors", has_vendor, true },    { "devices", has_device, true },
	{ "drivers", has_driver, true },    { "pciAddresses", has_bdf, false },
	{ "acpiIndexes", has_acpi, false }, { "pfNames", has_pf_name, true },
	{ "rootDevices", has_root, true },  { "linkTypes", has_link, true },
	{ "ifNames", has_if_name, false },  { "pKeys", has_pkey, false },
	{ "isRdma", has_rdma, false },
};

bool match_pool(const struct pool_config *cfg, const struct nic *nic, const struct selector **ret)
{
	*ret = NULL;
	if (!cfg->n_selectors)
		return may_be(cfg, NULL, nic) && (!cfg->is_rdma || nic_has_rdma(nic));
	for (size_t i = 0; i < cfg->n_selectors && !*ret; i++) {
		const struct selector *s = &cfg->selectors[i];
		bool all = may_be(cfg, s, nic);

		for (size_t k = 0; all && k < ARRAY_LEN(conditions); k++)
			all = conditions[k].holds(s, nic);
		if (all)
			*ret = s;
	}
	return *ret != NULL;
}

#define SHOWN_MAX 4

/* The values of the functions that are left, each once. */
static void put_values(const char *key, const struct nic *nics, const bool *left, size_t n,
		       struct arena *a, struct strbuf *out)
{
	const char *seen[SHOWN_MAX];
	size_t n_seen = 0;

	for (size_t i = 0; i < n && n_seen < SHOWN_MAX; i++) {
		const char *value = left[i] ? value_of(key, &nics[i], a) : NULL;

		if (!value || list_has(seen, n_seen, value))
			continue;
		strbuf_printf(out, "%s%s", n_seen ? ", " : ": they have ", value);
		seen[n_seen++] = value;
	}
}

/* The functions that could be devices of the pool, without its selectors. */
static size_t begin(const struct pool_config *cfg, const struct selector *s, const struct nic *nics,
		    bool *left, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		left[i] = nics[i].usable && nics[i].owner < 0 && may_be(cfg, s, &nics[i]);
		count += left[i];
	}
	return count;
}

bool match_explain(const struct pool_config *cfg, const struct nic *nics, size_t n, struct arena *a,
		   struct strbuf *out)
{
	const struct selector *s = cfg->selectors;
	bool *left = arena_array(a, n, sizeof(*left));
	size_t before = cfg->n_selectors == 1 ? begin(cfg, s, nics, left, n) : 0;

	for (size_t k = 0; before && k < ARRAY_LEN(conditions); k++) {
		size_t count = 0;

		for (size_t i = 0; i < n; i++)
			count += left[i] && conditions[k].holds(s, &nics[i]);
		if (!count) {
			strbuf_printf(
				out,
				"%s matches none of the %zu functions that the keys before leave",
				conditions[k].key, before);
			if (conditions[k].said)
				put_values(conditions[k].key, nics, left, n, a, out);
			return true;
		}
		for (size_t i = 0; i < n; i++)
			left[i] = left[i] && conditions[k].holds(s, &nics[i]);
		before = count;
	}
	return false;
}

/* --- the devices of a pool --- */

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

/* As libraries spell a switch. Another word turns nothing on or off. */
static bool is_switched(const char *value, bool on)
{
	static const char *const words[2][4] = { { "n", "no", "off", "false" },
						 { "y", "yes", "on", "true" } };
	int number;

	if (str_to_int(value, &number) == 0)
		return (number != 0) == on;
	for (size_t i = 0; i < ARRAY_LEN(words[on]); i++) {
		if (!strcasecmp(value, words[on][i]))
			return true;
	}
	return false;
}

static bool env_switches(const struct pool_config *cfg, const char *name, bool on)
{
	for (size_t i = 0; cfg && i < cfg->n_env; i++) {
		if (!strcmp(cfg->env[i].name, name))
			return is_switched(cfg->env[i].value, on);
	}
	return false;
}

bool pool_uses_direct(const struct pool *p)
{
	static const struct {
		unsigned profiles;
		const char *name;
		bool off; /* the value without Data Direct */
	} libraries[] = {
		{ PROFILE_NCCL | PROFILE_RCCL, "NCCL_IB_DATA_DIRECT", false },
		{ PROFILE_UCX, "UCX_IB_DIRECT_NIC", false },
		{ PROFILE_NVSHMEM, "NVSHMEM_DISABLE_DATA_DIRECT", true },
	};
	/* "none" leaves the library open: NCCL without our variables finds it by itself. */
	unsigned profiles = p->cfg && p->cfg->profiles ? p->cfg->profiles : PROFILE_NCCL;

	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		if (profiles & libraries[i].profiles &&
		    !env_switches(p->cfg, libraries[i].name, libraries[i].off))
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

const char *pool_dev_place(const struct pool_dev *dev)
{
	return dev->pf ? dev->pf->address : dev->id;
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

/* The PFs behind the devices of pools, also those that are missing, with their facts of the node
 * before. */

void pfs_begin(struct pfs *t, struct arena *scratch)
{
	size_t n = t->previous ? t->previous->n_pfs : 0;

	for (size_t i = 0; i < t->inv->n_pci; i++)
		n += hw_is_nic(&t->inv->pci[i]) && hw_pf_of(t->inv, (int)i) == (int)i;
	t->v = arena_array(t->arena, n, sizeof(*t->v));
	t->of = arena_array(scratch, t->inv->n_pci, sizeof(*t->of));
}

static const struct node_pf *find_pf(const struct node_pf *v, size_t n, const char *address)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(v[i].address, address))
			return &v[i];
	}
	return NULL;
}

static const struct node_pf *find_before(const struct pfs *t, const char *address)
{
	return t->previous ? find_pf(t->previous->pfs, t->previous->n_pfs, address) : NULL;
}

static bool was_up(const struct node_pf *before, int number)
{
	for (size_t i = 0; before && i < before->n_ports; i++) {
		if (before->ports[i].number == number)
			return before->ports[i].was_up;
	}
	return false;
}

/* As the health of VFs is judged (below). An interface is known of the first port only. */
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
	const struct node_pf *known = before ? find_pf(t->v, t->n, before->address) : NULL;
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

/*
 * The health rule. A VF is judged by its PF, never by its own netdev or port: those may be in a
 * container, and look down or absent from here. An unknown state is healthy. An ACTIVE RDMA port is
 * a link in any state of the netdev: on InfiniBand fabrics that use no IPoIB the interface is
 * simply off, and of a function's two ports one is enough. A port that is DOWN while its carrier is
 * up, or unknown, is no verdict either: it may be administratively closed, or wait for its subnet
 * manager, while its VFs serve.
 */

void health_judge(const struct health_view *v, struct arena *arena, struct pool_dev *dev)
{
	const char *begin = v->pf_netdev ? " (" : "", *end = v->pf_netdev ? ")" : "";
	const char *netdev = v->pf_netdev ? v->pf_netdev : "";

	dev->fault = POOL_FAULT_NONE;
	dev->reason = NULL;
	if (v->gone) {
		dev->fault = POOL_FAULT_GONE;
		dev->reason = arena_printf(arena, "%s: is gone from the PCI bus", v->id);
	} else if (!v->driver) {
		dev->fault = POOL_FAULT_NO_DRIVER;
		dev->reason = arena_printf(arena, "%s: no driver is bound to it", v->id);
	} else if (v->needs_rdma && !v->has_rdma) {
		dev->fault = POOL_FAULT_NO_RDMA;
		dev->reason = arena_printf(arena, "%s: is bound to %s and has no RDMA device",
					   v->id, v->driver);
	} else if (v->carrier == 0 && !str_eq(v->port_state, "ACTIVE")) {
		dev->fault = POOL_FAULT_LINK_DOWN;
		dev->reason = arena_printf(arena, "%s: the link of its PF %s%s%s%s is down%s%s",
					   v->id, v->pf_address, begin, netdev, end,
					   v->port_state ? ", its RDMA port is " : "",
					   v->port_state ? v->port_state : "");
	} else if (v->degraded) {
		dev->fault = POOL_FAULT_LINK_DEGRADED;
		dev->reason = arena_printf(arena, "%s: the link of its PF %s%s%s%s %s", v->id,
					   v->pf_address, begin, netdev, end, v->degraded);
	} else if (!v->selected) {
		dev->fault = POOL_FAULT_NOT_SELECTED;
		dev->reason =
			arena_printf(arena, "%s: the selectors of %s do not match it any more",
				     v->id, v->resource);
	}
	dev->healthy = !dev->fault;
}

/* --- changes for the worse --- */

int node_port_was_up(const struct node_pf *before, const struct node_pf *now,
		     const struct node_port *port)
{
	if (before->missing)
		return port->was_up;
	for (size_t i = 0; i < before->n_ports; i++) {
		if (before->ports[i].number == port->number ||
		    (before->n_ports == 1 && now->n_ports == 1))
			return before->ports[i].up;
	}
	return -1;
}

static bool lacks_driver(const struct pool_dev *dev)
{
	return dev->fault == POOL_FAULT_NO_DRIVER || dev->fault == POOL_FAULT_NO_RDMA;
}

size_t pool_lost_drivers(const struct pool *before, const struct pool *now,
			 const struct pool_dev **ret_first)
{
	size_t n = 0;

	for (size_t i = 0; i < now->n_devs; i++) {
		const struct pool_dev *dev = &now->devs[i], *old;

		if (!lacks_driver(dev))
			continue;
		old = pool_find(before, dev->id);
		if (old && !lacks_driver(old) && n++ == 0)
			*ret_first = dev;
	}
	return n;
}

/* --- why a pool is empty --- */

bool pool_is_meant_for(const struct hw_inventory *inv)
{
	bool cards = false;

	for (size_t i = 0; i < inv->n_rdma; i++) {
		int pci = inv->rdma[i].pci;

		if (pci >= 0 && hw_is_nic_vf(inv, pci))
			return true;
		cards |= pci >= 0 && hw_is_nic(&inv->pci[pci]) && hw_is_pf(&inv->pci[pci]);
	}
	return cards && inv->n_gpu;
}

static bool has_devices(const struct pool *pools, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pools[i].n_devs)
			return true;
	}
	return false;
}

bool pool_is_idle(const struct node *node)
{
	return !has_devices(node->pools, node->n_pools) &&
	       !has_devices(node->shared, node->n_shared) && !pool_is_meant_for(node->inv);
}

/* "A: x, y." */
struct enumeration {
	struct strbuf *out;
	const char *title;
	bool begun;
};

static void enumerate(struct enumeration *e, const char *name)
{
	if (e->begun)
		strbuf_printf(e->out, ", %s", name);
	else
		strbuf_printf(e->out, " %s: %s", e->title, name);
	e->begun = true;
}

static void end_enumeration(const struct enumeration *e)
{
	if (e->begun)
		strbuf_putc(e->out, '.');
}

static void say_if_missing(const struct hw_inventory *inv, const char *name, struct enumeration *e)
{
	struct bdf bdf;

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (inv->pci[i].netdev && !strcasecmp(inv->pci[i].netdev, name))
			return;
	}
	if (bdf_parse(name, &bdf) < 0 || hw_find_pci(inv, bdf) < 0)
		enumerate(e, name);
}

void pool_say_empty(const struct node *node, const struct pool *pool, struct strbuf *out)
{
	struct enumeration missing = { .out = out, .title = "Not here" };
	struct enumeration cards = { .out = out, .title = "Network cards here" };
	char text[BDF_STRLEN + 64], address[BDF_STRLEN];
	const struct hw_inventory *inv = node->inv;
	int alone = 0;

	strbuf_printf(out,
		      "%s has no device on this node, so pods that ask for it cannot run here.",
		      pool->cfg->resource);
	for (size_t i = 0; i < pool->cfg->n_selectors; i++) {
		const struct selector *s = &pool->cfg->selectors[i];

		for (size_t k = 0; k < s->n_pf_names; k++)
			say_if_missing(node->inv, s->pf_names[k].name, &missing);
		for (size_t k = 0; k < s->n_root_devices; k++)
			say_if_missing(node->inv, s->root_devices[k].name, &missing);
		for (size_t k = 0; k < s->n_if_names; k++)
			say_if_missing(node->inv, s->if_names[k], &missing);
	}
	end_enumeration(&missing);
	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *fn = &inv->pci[i];
		char vfs[16];

		if (!hw_is_nic(fn))
			continue;
		alone += hw_is_nic_vf(inv, (int)i) && fn->physfn < 0;
		if (!hw_is_pf(fn) || (!fn->sriov_num && hw_find_rdma(inv, (int)i) < 0))
			continue;
		snprintf(vfs, sizeof(vfs), "%d", fn->sriov_num);
		snprintf(text, sizeof(text), "%s (%s VF%s)",
			 fn->netdev ? fn->netdev : bdf_format(fn->bdf, address),
			 fn->sriov_num ? vfs : "no", fn->sriov_num == 1 ? "" : "s");
		enumerate(&cards, text);
	}
	snprintf(text, sizeof(text), "%d VF%s whose PF is not to be seen", alone,
		 alone == 1 ? "" : "s");
	if (alone)
		enumerate(&cards, text);
	end_enumeration(&cards);
}
