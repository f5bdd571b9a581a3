/* Selector semantics of sriov-network-device-plugin: AND between selectors, OR inside one. */
#include "pool/pool-internal.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"

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
