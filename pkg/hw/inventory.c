/*
 * The inventory of a machine: PCI addresses, questions to its tables, its end. discover
 * makes it; everybody else only reads.
 */
#include "hw/inventory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/bdf.h"
#include "hw/driver.h"

/* --- addresses --- */

/* Exactly min..max hex digits at *p; moves *p behind them. */
static int hex_field(const char **p, int min, int max, uint32_t *ret)
{
	uint32_t v = 0;
	int n = 0;

	/* The low half of a letter's code is 1 to 6, and only letters have the bit 0x40. */
	for (; n < max && isxdigit((unsigned char)**p); n++, (*p)++)
		v = v << 4 | ((uint32_t)(**p & 15) + (uint32_t)(**p >> 6) * 9);
	if (n < min)
		return -EINVAL;
	*ret = v;
	return 0;
}

int bdf_parse(const char *text, struct bdf *ret)
{
	uint32_t domain, bus, dev, fn;
	const char *p = text;

	if (hex_field(&p, 4, 8, &domain) < 0 || *p++ != ':' || hex_field(&p, 2, 2, &bus) < 0 ||
	    *p++ != ':' || hex_field(&p, 2, 2, &dev) < 0 || *p++ != '.' ||
	    hex_field(&p, 1, 1, &fn) < 0 || *p || dev > 31 || fn > 7)
		return -EINVAL;
	*ret = (struct bdf) { domain, (uint8_t)bus, (uint8_t)dev, (uint8_t)fn };
	return 0;
}

const char *bdf_format(struct bdf bdf, char buf[BDF_STRLEN])
{
	snprintf(buf, BDF_STRLEN, "%04x:%02x:%02x.%x", bdf.domain, bdf.bus, bdf.dev & 31u,
		 bdf.fn & 7u);
	return buf;
}

static uint64_t bdf_key(struct bdf b)
{
	return (uint64_t)b.domain << 32 | (uint64_t)b.bus << 16 | (uint64_t)b.dev << 8 | b.fn;
}

int bdf_cmp(struct bdf a, struct bdf b)
{
	uint64_t ka = bdf_key(a), kb = bdf_key(b);

	return ka < kb ? -1 : ka > kb;
}

struct hw_pci hw_pci_unknown(struct bdf bdf)
{
	return (struct hw_pci) { .bdf = bdf,
				 .parent = -1,
				 .numa = -1,
				 .physfn = -1,
				 .vf_index = -1,
				 .carrier = -1,
				 .acpi_index = -1,
				 .acs_ctrl = -1 };
}

const char *hw_pci_address(const struct hw_inventory *inv, int pci, struct arena *a)
{
	char text[BDF_STRLEN];

	return arena_strdup(a, bdf_format(inv->pci[pci].bdf, text));
}

const char *const *hw_gpu_addresses(const struct hw_inventory *inv, struct gpu_set gpus,
				    struct arena *a)
{
	const char **v = arena_array(a, gpus.n, sizeof(*v));

	for (size_t i = 0; i < gpus.n; i++)
		v[i] = hw_pci_address(inv, gpus.v[i], a);
	return v;
}

static int by_address(const void *bdf, const void *pci)
{
	return bdf_cmp(*(const struct bdf *)bdf, ((const struct hw_pci *)pci)->bdf);
}

int hw_find_pci(const struct hw_inventory *inv, struct bdf bdf)
{
	const struct hw_pci *f =
		inv->n_pci ? bsearch(&bdf, inv->pci, inv->n_pci, sizeof(*f), by_address) : NULL;

	return f ? (int)(f - inv->pci) : -1;
}

static int by_pci(const void *pci, const void *rdma)
{
	return *(const int *)pci - ((const struct hw_rdma *)rdma)->pci;
}

int hw_find_rdma(const struct hw_inventory *inv, int pci)
{
	size_t i = list_place(&pci, inv->rdma, inv->n_rdma, sizeof(*inv->rdma), by_pci);

	return pci >= 0 && i < inv->n_rdma && inv->rdma[i].pci == pci ? (int)i : -1;
}

int hw_find_gpu(const struct hw_inventory *inv, int pci)
{
	for (size_t i = 0; pci >= 0 && i < inv->n_gpu; i++) {
		if (inv->gpu[i].pci == pci)
			return (int)i;
	}
	return -1;
}

bool hw_is_data_direct(const struct hw_pci *f)
{
	return f->vendor == 0x15b3 && f->device == 0x2100;
}

int hw_pf_of(const struct hw_inventory *inv, int pci)
{
	if (pci < 0)
		return -1;
	return inv->pci[pci].is_vf ? inv->pci[pci].physfn : pci;
}

static int least_known(int a, int b)
{
	if (!a || !b)
		return a ? a : b;
	return a < b ? a : b;
}

struct hw_pcie hw_pcie_best(const struct hw_inventory *inv, int pci)
{
	const struct hw_pci *f = &inv->pci[pci], *up = f->parent >= 0 ? &inv->pci[f->parent] : NULL;

	return (struct hw_pcie) { least_known(f->link_mts_max, up ? up->link_mts_max : 0),
				  least_known(f->link_width_max, up ? up->link_width_max : 0) };
}

const struct hw_card *hw_find_card(const struct hw_inventory *inv, int pci)
{
	for (size_t i = 0; i < inv->n_card; i++) {
		if (inv->card[i].pci == pci)
			return &inv->card[i];
	}
	return NULL;
}

const struct hw_neighbor *hw_find_neighbor(const struct hw_inventory *inv, int pci)
{
	int pf = hw_pf_of(inv, pci);

	for (size_t i = 0; i < inv->n_neighbor; i++) {
		if (inv->neighbor[i].pci == (pf < 0 ? pci : pf))
			return &inv->neighbor[i];
	}
	return NULL;
}

bool hw_is_nic(const struct hw_pci *f)
{
	return f->class_code >> 16 == 0x02;
}

bool hw_is_pf(const struct hw_pci *f)
{
	return hw_is_nic(f) && !f->is_vf && f->sriov_total > 0;
}

bool hw_is_nic_vf(const struct hw_inventory *inv, int pci)
{
	const struct hw_driver *driver;
	const struct hw_pci *f;

	if (pci < 0 || !hw_is_nic(&inv->pci[pci]))
		return false;
	f = &inv->pci[pci];
	if (f->is_vf)
		return true;
	if (f->sriov_total > 0)
		return false;
	driver = hw_driver_of_id(f->vendor, f->device);
	if (driver)
		return driver->kind == HW_DRIVER_NIC;
	/* The Ethernet controller inside Intel's chipset: on the root bus of every desktop and many
	 * a server. */
	if (f->vendor == 0x8086 && f->bdf.bus == 0 && f->bdf.dev == 0x1f)
		return false;
	return inv->hypervisor || (f->has_root && f->parent < 0);
}

bool hw_is_own_nic(const struct hw_inventory *inv, int pci)
{
	const struct hw_pci *f = &inv->pci[pci];

	return hw_is_pf(f) || (f->physfn < 0 && hw_is_nic_vf(inv, pci));
}

void hw_put_rate(int mbps, struct strbuf *out)
{
	if (mbps % 1000)
		strbuf_printf(out, "%d.%d Gb/s", mbps / 1000, mbps % 1000 / 100);
	else
		strbuf_printf(out, "%d Gb/s", mbps / 1000);
}

const char *hw_link_name(enum hw_link link)
{
	static const char *const names[] = {
		[HW_LINK_UNKNOWN] = NULL,
		[HW_LINK_IB] = "infiniband",
		[HW_LINK_ETHERNET] = "ethernet",
	};

	return (size_t)link < ARRAY_LEN(names) ? names[link] : NULL;
}

static bool same_pci(const struct hw_pci *a, const struct hw_pci *b)
{
	return !bdf_cmp(a->bdf, b->bdf) && a->class_code == b->class_code &&
	       a->vendor == b->vendor && a->device == b->device && a->subvendor == b->subvendor &&
	       a->subdevice == b->subdevice && a->parent == b->parent &&
	       a->root_domain == b->root_domain && a->root_bus == b->root_bus &&
	       a->has_root == b->has_root && a->numa == b->numa && a->numa_above == b->numa_above &&
	       a->physfn == b->physfn && a->is_vf == b->is_vf && a->vf_index == b->vf_index &&
	       a->sriov_total == b->sriov_total && a->sriov_num == b->sriov_num &&
	       str_eq(a->driver, b->driver) && str_eq(a->netdev, b->netdev) &&
	       a->carrier == b->carrier && a->net_type == b->net_type &&
	       a->default_route == b->default_route && a->acpi_index == b->acpi_index &&
	       a->link_mts == b->link_mts && a->link_width == b->link_width &&
	       a->link_mts_max == b->link_mts_max && a->link_width_max == b->link_width_max &&
	       a->acs_ctrl == b->acs_ctrl && a->rate_mbps == b->rate_mbps;
}

static bool same_rdma(const struct hw_rdma *a, const struct hw_rdma *b)
{
	if (!str_eq(a->name, b->name) || a->pci != b->pci || !str_eq(a->dir, b->dir) ||
	    a->soft != b->soft || !str_eq(a->uverbs, b->uverbs) || !str_eq(a->netdev, b->netdev) ||
	    a->pkey != b->pkey || a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->n_ports; i++) {
		const struct hw_port *p = &a->ports[i], *q = &b->ports[i];

		if (p->number != q->number || !str_eq(p->state, q->state) ||
		    !str_eq(p->phys_state, q->phys_state) || p->link != q->link ||
		    p->rate_mbps != q->rate_mbps)
			return false;
	}
	return true;
}

bool hw_inventory_same(const struct hw_inventory *a, const struct hw_inventory *b)
{
	bool same = a->n_pci == b->n_pci && a->n_rdma == b->n_rdma && a->n_gpu == b->n_gpu &&
		    a->n_card == b->n_card && a->n_neighbor == b->n_neighbor &&
		    a->n_numa == b->n_numa && a->hypervisor == b->hypervisor &&
		    a->has_rdma_cm == b->has_rdma_cm && a->has_vhost_net == b->has_vhost_net;

	for (size_t i = 0; same && i < a->n_pci; i++)
		same = same_pci(&a->pci[i], &b->pci[i]);
	for (size_t i = 0; same && i < a->n_rdma; i++)
		same = same_rdma(&a->rdma[i], &b->rdma[i]);
	for (size_t i = 0; same && i < a->n_gpu; i++) {
		const struct hw_gpu *g = &a->gpu[i], *h = &b->gpu[i];

		same = g->pci == h->pci && str_eq(g->vendor, h->vendor) &&
		       str_eq(g->model, h->model) && str_eq(g->uuid, h->uuid) &&
		       g->minor == h->minor && g->card == h->card && g->only_mig == h->only_mig;
	}
	same = same && a->n_mig == b->n_mig;
	for (size_t i = 0; same && i < a->n_mig; i++)
		same = str_eq(a->mig[i].id, b->mig[i].id) && a->mig[i].pci == b->mig[i].pci;
	same = same && a->n_part == b->n_part;
	for (size_t i = 0; same && i < a->n_part; i++)
		same = a->part[i].number == b->part[i].number && a->part[i].pci == b->part[i].pci;
	for (size_t i = 0; same && i < a->n_card; i++) {
		const struct hw_card *c = &a->card[i], *d = &b->card[i];

		same = c->pci == d->pci && str_eq(c->name, d->name) &&
		       str_eq(c->serial, d->serial) && str_eq(c->board, d->board) &&
		       str_eq(c->vuid, d->vuid) && c->direct == d->direct;
	}
	for (size_t i = 0; same && i < a->n_neighbor; i++) {
		const struct hw_neighbor *n = &a->neighbor[i], *o = &b->neighbor[i];

		same = n->pci == o->pci && str_eq(n->name, o->name) && str_eq(n->port, o->port);
	}
	for (size_t i = 0; same && i < a->n_numa; i++) {
		const struct hw_numa *m = &a->numa[i], *n = &b->numa[i];

		same = m->id == n->id && !m->distance == !n->distance &&
		       str_eq(m->cpumap, n->cpumap) &&
		       (!m->distance ||
			!memcmp(m->distance, n->distance, a->n_numa * sizeof(*m->distance)));
	}
	return same;
}

/* "amdgpu_xcp_N" */
static int gpu_of_part(const struct hw_inventory *inv, const char *number)
{
	int part;

	for (size_t i = 0; i < inv->n_part && str_to_int(number, &part) == 0; i++) {
		if (inv->part[i].number == part)
			return inv->part[i].pci;
	}
	return -1;
}

static int gpu_of_uuid(const struct hw_inventory *inv, const char *uuid, size_t len)
{
	for (size_t i = 0; i < inv->n_gpu; i++) {
		const char *its = inv->gpu[i].uuid;

		if (its && strlen(its) == len && !strncasecmp(its, uuid, len))
			return inv->gpu[i].pci;
	}
	return -1;
}

static int gpu_of_mig(const struct hw_inventory *inv, const char *id)
{
	const char *uuid = id + strlen("MIG-");

	if (str_starts(uuid, "GPU-")) /* of drivers before R470 */
		return gpu_of_uuid(inv, uuid, strcspn(uuid, "/"));
	for (size_t i = 0; i < inv->n_mig; i++) {
		if (!strcasecmp(inv->mig[i].id, id))
			return inv->mig[i].pci;
	}
	for (size_t i = 0; i < inv->n_gpu; i++) {
		if (inv->gpu[i].only_mig)
			return inv->gpu[i].pci;
	}
	return -1;
}

/* "nvidiaN", and behind a slash a share of it. */
static int gpu_of_minor(const struct hw_inventory *inv, char *number)
{
	int minor;

	number[strcspn(number, "/")] = '\0';
	if (str_to_int(number, &minor) < 0 || minor < 0)
		return -1;
	for (size_t i = 0; i < inv->n_gpu; i++) {
		if (inv->gpu[i].minor == minor && str_eq(inv->gpu[i].vendor, "NVIDIA"))
			return inv->gpu[i].pci;
	}
	return -1;
}

/* The GPU itself, or that of which the function is a VF. */
static int gpu_of_address(const struct hw_inventory *inv, struct bdf bdf)
{
	int pci = hw_find_pci(inv, bdf);

	if (hw_find_gpu(inv, pci) < 0 && pci >= 0)
		pci = inv->pci[pci].physfn;
	return hw_find_gpu(inv, pci) < 0 ? -1 : pci;
}

/* "cardN-M": M is the number of a share of the card. */
static int gpu_of_card(const struct hw_inventory *inv, const char *number)
{
	char digits[12] = "";
	size_t n = strcspn(number, "-");
	int card;

	if (n >= sizeof(digits))
		return -1;
	memcpy(digits, number, n);
	if (str_to_int(digits, &card) < 0 || card < 0)
		return -1;
	for (size_t i = 0; i < inv->n_gpu; i++) {
		if (inv->gpu[i].card == card)
			return inv->gpu[i].pci;
	}
	return -1;
}

/* Resources whose plugin may count its vendor's GPUs. The name may go on: "nvidia.com/gpu.shared".
 */
static const struct {
	const char *resource, *vendor;
} gpu_resources[] = {
	{ "nvidia.com/gpu", "NVIDIA" },
	{ "amd.com/gpu", "AMD" },
	{ "gpu.intel.com/", "Intel" },
};

int hw_gpu_of_id(const struct hw_inventory *inv, const char *resource, const char *id)
{
	const char *replica = strstr(id, "::"), *vendor = NULL;
	char plain[80] = "";
	size_t n = replica ? (size_t)(replica - id) : strlen(id);
	struct bdf bdf;
	uint64_t index;
	char *slice;

	if (n >= sizeof(plain))
		return -1;
	memcpy(plain, id, n);
	if (str_starts(plain, "GPU-"))
		return gpu_of_uuid(inv, plain, n);
	if (str_starts(plain, "MIG-"))
		return gpu_of_mig(inv, plain);
	slice = strstr(plain, "-slice-");
	if (slice)
		*slice = '\0';
	if (!bdf_parse(plain, &bdf))
		return gpu_of_address(inv, bdf);
	if (str_starts(plain, "amdgpu_xcp_"))
		return gpu_of_part(inv, plain + strlen("amdgpu_xcp_"));
	if (str_starts(plain, "nvidia"))
		return gpu_of_minor(inv, plain + strlen("nvidia"));
	if (str_starts(plain, "card"))
		return gpu_of_card(inv, plain + strlen("card"));
	if (str_to_u64(plain, 10, 4096, &index) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(gpu_resources) && resource; i++) {
		if (str_starts(resource, gpu_resources[i].resource))
			vendor = gpu_resources[i].vendor;
	}
	for (size_t i = 0; i < inv->n_gpu && vendor; i++) {
		if (str_eq(inv->gpu[i].vendor, vendor) && !index--)
			return inv->gpu[i].pci;
	}
	return -1;
}

void hw_inventory_free(struct hw_inventory *inv)
{
	if (inv)
		arena_free(inv->arena);
}
