/*
 * railmatectl topo: the machine, for eyes. No table is wider than COLUMNS: a matrix is broken into
 * several, and a fact that is only worth a column when it is odd gets a line then. --wide breaks
 * nothing and leaves nothing out.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
#include "doctor/doctor.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "topo/topo.h"
#include "topo/rails.h"

#define COLUMNS	   100
#define BDF_WIDTH  16
#define NAME_WIDTH 7 /* "GPU10" and two blanks */

/* The NICs of the tables: every PF, and every VF whose PF this machine does not see. */
struct nics {
	int *pci;
	size_t n;
	int rdma_width, netdev_width; /* of the longest names */
};

struct page {
	const struct machine *m;
	const struct hw_inventory *inv;
	struct nics nics;
	struct gpu_links links;
	bool wide;
	struct arena *a;
};

/* The first RDMA device of a function. */
static const char *rdma_name(const struct hw_inventory *inv, int pci)
{
	int rdma = hw_find_rdma(inv, pci);

	return rdma >= 0 ? inv->rdma[rdma].name : "-";
}

static void widen(int *width, const char *name)
{
	if (name && (int)strlen(name) > *width)
		*width = (int)strlen(name);
}

static size_t count_vfs(const struct hw_inventory *inv, int pf)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n_pci; i++)
		n += inv->pci[i].physfn == pf && hw_is_nic_vf(inv, (int)i);
	return n;
}

static void put_name(struct strbuf *out, const char *kind, size_t i, int width)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%zu", kind, i);
	strbuf_printf(out, "%-*s", width, name);
}

static void put_numa(struct strbuf *out, int numa)
{
	if (numa < 0)
		strbuf_printf(out, "%-6s", "-");
	else
		strbuf_printf(out, "%-6d", numa);
}

const char *gpu_name(const struct machine *m, const struct hw_gpu *gpu, struct arena *a)
{
	const struct hw_pci *f = &m->node->inv->pci[gpu->pci];
	_cleanup_free_ char *listed =
		gpu->model ? NULL : discover_pci_name(m->root, f->vendor, f->device);

	return gpu->model ? gpu->model : listed ? arena_strdup(a, listed) : gpu->vendor;
}

static void put_gpu(const struct page *p, size_t g, struct strbuf *out)
{
	const struct hw_gpu *gpu = &p->inv->gpu[g];
	char buf[BDF_STRLEN];

	put_numa(out, p->inv->pci[gpu->pci].numa);
	strbuf_printf(out, "%-*s %s\n", BDF_WIDTH, bdf_format(p->inv->pci[gpu->pci].bdf, buf),
		      gpu_name(p->m, gpu, p->a));
}

#define GPU_HEAD "NUMA  PCI              GPU\n"

/* --- a row a GPU, a column a device --- */

struct matrix {
	const struct page *p;
	const char *kind; /* of the columns */
	size_t n;
	const char *(*name)(const struct page *p, size_t col); /* NULL: the number is all */
	const char *(*cell)(const struct page *p, size_t gpu, size_t col);
	bool with_gpus; /* further columns: those of put_gpu() */
};

static int column_width(const struct matrix *x, size_t col)
{
	int width = NAME_WIDTH - 1;

	if (x->name)
		widen(&width, x->name(x->p, col));
	return width + 1;
}

static void put_cell(const struct matrix *x, size_t col, size_t end, const char *text,
		     struct strbuf *out)
{
	bool last = col + 1 == end && !x->with_gpus;

	strbuf_printf(out, "%-*s", last ? 0 : column_width(x, col), text);
}

static void put_head(const struct matrix *x, size_t first, size_t end, struct strbuf *out)
{
	char number[32];

	strbuf_printf(out, "%-*s", NAME_WIDTH, "");
	for (size_t col = first; col < end; col++) {
		snprintf(number, sizeof(number), "%s%zu", x->kind, col);
		put_cell(x, col, end, number, out);
	}
	strbuf_puts(out, x->with_gpus ? GPU_HEAD : "\n");
	if (!x->name)
		return;
	strbuf_printf(out, "%-*s", NAME_WIDTH, "");
	for (size_t col = first; col < end; col++)
		strbuf_printf(out, "%-*s", col + 1 < end ? column_width(x, col) : 0,
			      x->name(x->p, col));
	strbuf_putc(out, '\n');
}

static void put_matrix(const struct matrix *x, struct strbuf *out)
{
	for (size_t first = 0, end; first < x->n; first = end) {
		int width = NAME_WIDTH;

		end = first; /* one column at least, however narrow the page */
		do
			width += column_width(x, end++);
		while (end < x->n && (x->p->wide || width + column_width(x, end) <= COLUMNS));
		if (first)
			strbuf_putc(out, '\n');
		put_head(x, first, end, out);
		for (size_t g = 0; g < x->p->inv->n_gpu; g++) {
			put_name(out, "GPU", g, NAME_WIDTH);
			for (size_t col = first; col < end; col++)
				put_cell(x, col, end, x->cell(x->p, g, col), out);
			if (x->with_gpus)
				put_gpu(x->p, g, out);
			else
				strbuf_putc(out, '\n');
		}
	}
}

static const char *nic_name(const struct page *p, size_t nic)
{
	return rdma_name(p->inv, p->nics.pci[nic]);
}

static const char *nic_class(const struct page *p, size_t gpu, size_t nic)
{
	return topo_class_name(
		topo_between(p->m->node->topo, p->inv->gpu[gpu].pci, p->nics.pci[nic]).class);
}

static const char *gpu_link(const struct page *p, size_t gpu, size_t other)
{
	static const char *const names[] = {
		[GPU_LINK_UNKNOWN] = "?",
		[GPU_LINK_PCIE] = "PCIe",
		[GPU_LINK_XGMI] = "XGMI",
		[GPU_LINK_NVLINK] = "NVL",
	};

	return gpu == other ? "-" : names[p->links.link[gpu * p->links.n + other]];
}

/* Most machines have one kind, so a line is enough. */
static void put_gpu_links(const struct page *p, struct strbuf *out)
{
	static const char *const sentences[] = {
		[GPU_LINK_UNKNOWN] =
			"How GPUs reach each other is not visible without their vendor's library.\n",
		[GPU_LINK_PCIE] = "GPUs reach each other by PCIe.\n",
		[GPU_LINK_XGMI] = "GPUs reach each other by XGMI.\n",
		[GPU_LINK_NVLINK] = "GPUs reach each other by NVLink (NVSwitch).\n",
	};
	const struct gpu_links *l = &p->links;
	bool one_kind = true;

	if (l->n < 2)
		return;
	for (size_t i = 0; i < l->n * l->n; i++)
		one_kind = one_kind && (i / l->n == i % l->n || l->link[i] == l->link[1]);
	if (one_kind) {
		strbuf_puts(out, sentences[l->link[1]]);
		return;
	}
	strbuf_putc(out, '\n');
	put_matrix(&(struct matrix) { p, "GPU", l->n, NULL, gpu_link, false }, out);
}

static void put_board(const struct page *p, struct strbuf *out)
{
	static const struct {
		const char *type, *sentence;
	} boards[] = {
		{ "DMA", "GPUs have data direct functions of NICs beside them" },
		{ "inline", "each GPU is behind the switch of its NIC" },
		{ "NUMA", "GPUs and NICs meet in the CPU" },
	};
	const char *type = doctor_board_of_gpus(p->inv);

	for (size_t i = 0; i < ARRAY_LEN(boards); i++) {
		if (str_eq(type, boards[i].type))
			strbuf_printf(out, "Board of type %s: %s.\n", type, boards[i].sentence);
	}
}

/* --- NICs --- */

static void put_link(const struct hw_inventory *inv, int pci, int width, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf cell = STRBUF_INIT;
	int rdma = hw_find_rdma(inv, pci);

	if (rdma >= 0 && inv->rdma[rdma].n_ports) {
		const struct hw_port *port = &inv->rdma[rdma].ports[0];
		const char *link = hw_link_name(port->link);

		strbuf_printf(&cell, "%s %s", link ? link : "?", port->state ? port->state : "?");
		if (port->rate_mbps) {
			strbuf_putc(&cell, ' ');
			hw_put_rate(port->rate_mbps, &cell);
		}
	} else {
		strbuf_puts(&cell, inv->pci[pci].carrier < 0 ? "-"
				   : inv->pci[pci].carrier   ? "up"
							     : "down");
	}
	strbuf_printf(out, "%-*s", width, strbuf_str(&cell));
}

static bool is_slow(const struct hw_pci *f)
{
	return f->link_mts && (f->link_mts < f->link_mts_max || f->link_width < f->link_width_max);
}

/* The slot: current speed and width, and the possible ones when those are more. */
static void put_slot(const struct hw_pci *f, int width, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf cell = STRBUF_INIT;

	if (!f->link_mts || !f->link_width)
		strbuf_putc(&cell, '-');
	else
		strbuf_printf(&cell, "%g GT/s x%d", f->link_mts / 1000.0, f->link_width);
	if (is_slow(f))
		strbuf_printf(&cell, " of %g x%d", f->link_mts_max / 1000.0, f->link_width_max);
	strbuf_printf(out, "%-*s", width, strbuf_str(&cell));
}

struct names {
	const char *first, *last;
	size_t n;
};

/* The RDMA devices of a PF's VFs, or of a VF whose PF is not visible. */
static struct names vf_rdma(const struct hw_inventory *inv, int nic)
{
	struct names names = { 0 };

	for (size_t i = 0; i < inv->n_rdma; i++) {
		int pci = inv->rdma[i].pci;

		if (pci < 0 || (pci != nic && inv->pci[pci].physfn != nic) ||
		    (pci == nic && hw_is_pf(&inv->pci[nic])))
			continue;
		if (!names.n++)
			names.first = inv->rdma[i].name;
		names.last = inv->rdma[i].name;
	}
	return names;
}

static void put_nic(const struct page *p, size_t nic, struct strbuf *out)
{
	int pci = p->nics.pci[nic];
	const struct hw_pci *f = &p->inv->pci[pci];
	char buf[BDF_STRLEN], vfs[24] = "is a VF";
	struct topo_rail at = topo_rails_of(p->m->node->rails, pci);
	char rail[32] = "-";

	put_name(out, "NIC", nic, NAME_WIDTH);
	strbuf_printf(out, "%-*s %-*s %-*s ", p->nics.rdma_width, nic_name(p, nic), BDF_WIDTH,
		      bdf_format(f->bdf, buf), p->nics.netdev_width, f->netdev ? f->netdev : "-");
	put_numa(out, f->numa);
	if (at.rail >= 0) /* "3", with planes "3.1" */
		snprintf(rail, sizeof(rail), at.plane >= 0 ? "%d.%d" : "%d", at.rail, at.plane);
	strbuf_printf(out, "%-6s", rail);
	if (hw_is_pf(f))
		snprintf(vfs, sizeof(vfs), "%zu/%d", count_vfs(p->inv, pci), f->sriov_total);
	strbuf_printf(out, "%-8s ", vfs);
	put_link(p->inv, pci, p->wide ? 29 : 0, out);
	if (p->wide) {
		struct names names = vf_rdma(p->inv, pci);

		put_slot(f, 24, out);
		if (!names.n)
			strbuf_puts(out, hw_is_pf(f) && !count_vfs(p->inv, pci) ? "no VFs"
										: "no RDMA device");
		else if (names.n == 1)
			strbuf_puts(out, names.first);
		else
			strbuf_printf(out, "%s … %s (%zu)", names.first, names.last, names.n);
	}
	strbuf_putc(out, '\n');
}

/* Its VPD. */
static void put_card(const struct hw_card *card, size_t nic, struct strbuf *out)
{
	if (!card || !(card->name || card->serial))
		return;
	put_name(out, "NIC", nic, NAME_WIDTH);
	strbuf_printf(out, "is %s", card->name ? card->name : "a card");
	if (card->serial)
		strbuf_printf(out, ", serial number %s", card->serial);
	strbuf_putc(out, '\n');
}

static void put_nics(const struct page *p, struct strbuf *out)
{
	strbuf_printf(out, "%-*s%-*s %-*s %-*s %-6s%-6s%-8s %-*s", NAME_WIDTH, "",
		      p->nics.rdma_width, "RDMA", BDF_WIDTH, "PCI", p->nics.netdev_width, "netdev",
		      "NUMA", "rail", "VFs", p->wide ? 29 : 0, "port");
	if (p->wide)
		strbuf_printf(out, "%-24s%s", "slot", "VFs' RDMA devices");
	strbuf_putc(out, '\n');
	for (size_t nic = 0; nic < p->nics.n; nic++)
		put_nic(p, nic, out);
	for (size_t nic = 0; nic < p->nics.n && !p->wide; nic++) {
		int pci = p->nics.pci[nic];

		/* Facts with a column of --wide, for the NICs where they are worth a line. */
		if (is_slow(&p->inv->pci[pci])) {
			put_name(out, "NIC", nic, NAME_WIDTH);
			strbuf_puts(out, "has a slower slot than it could use: ");
			put_slot(&p->inv->pci[pci], 0, out);
			strbuf_putc(out, '\n');
		}
		if (count_vfs(p->inv, pci) && !vf_rdma(p->inv, pci).n) {
			put_name(out, "NIC", nic, NAME_WIDTH);
			strbuf_puts(out, "has VFs without an RDMA device\n");
		}
	}
	for (size_t nic = 0; nic < p->nics.n; nic++) {
		const struct hw_neighbor *at = hw_find_neighbor(p->inv, p->nics.pci[nic]);
		int direct = topo_direct(p->m->node->topo, p->nics.pci[nic]);

		if (p->wide)
			put_card(hw_find_card(p->inv, p->nics.pci[nic]), nic, out);
		if (at) {
			put_name(out, "NIC", nic, NAME_WIDTH);
			strbuf_printf(out, "is connected to switch %s, port %s\n", at->name,
				      at->port);
		}
		/* Where GPUs meet the NIC, if that is not at its own address. */
		if (direct >= 0) {
			char buf[BDF_STRLEN];

			put_name(out, "NIC", nic, NAME_WIDTH);
			strbuf_printf(out, "meets GPUs via data direct %s\n",
				      bdf_format(p->inv->pci[direct].bdf, buf));
		}
	}
	strbuf_putc(out, '\n');
}

static void put_legend(const struct machine *m, struct strbuf *out)
{
	strbuf_putc(out, '\n');
	strbuf_put_wrapped(
		out, "",
		"PIX one PCIe switch · PXB several switches · PHB the same host bridge · NODE the same NUMA node · SYS another NUMA node",
		COLUMNS);
	if (topo_flattened_vm(m->node->topo)) {
		const struct topo_hints *hints = topo_hints_used(m->node->topo);
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

		strbuf_puts(&text,
			    "This is a virtual machine that does not show its PCIe switches");
		if (hints)
			strbuf_printf(&text,
				      ". What lies below one switch is known from elsewhere: %s.",
				      hints->source);
		else
			strbuf_puts(&text, ": PHB and NODE say nothing about the real distance.");
		strbuf_put_wrapped(out, "", strbuf_str(&text), COLUMNS);
	}
}

void topo_text(const struct machine *m, bool wide, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct page p = { .m = m, .inv = m->node->inv, .wide = wide, .a = a };

	p.nics = (struct nics) { arena_array(a, p.inv->n_pci + 1, sizeof(int)), 0, 6, 6 };
	for (size_t i = 0; i < p.inv->n_pci; i++) {
		if (!hw_is_own_nic(p.inv, (int)i))
			continue;
		p.nics.pci[p.nics.n++] = (int)i;
		widen(&p.nics.rdma_width, rdma_name(p.inv, (int)i));
		widen(&p.nics.netdev_width, p.inv->pci[i].netdev);
	}
	p.links = discover_gpu_links(m->root, p.inv, a);
	if (p.inv->n_gpu) {
		if (!p.wide || !p.nics.n) {
			strbuf_printf(out, "%-*s" GPU_HEAD, NAME_WIDTH, "");
			for (size_t g = 0; g < p.inv->n_gpu; g++) {
				put_name(out, "GPU", g, NAME_WIDTH);
				put_gpu(&p, g, out);
			}
			strbuf_putc(out, '\n');
		}
		put_matrix(&(struct matrix) { &p, "NIC", p.nics.n, nic_name, nic_class, p.wide },
			   out);
		put_gpu_links(&p, out);
		put_board(&p, out);
		strbuf_putc(out, '\n');
	} else {
		strbuf_puts(out, "no GPUs\n\n");
	}
	if (p.nics.n)
		put_nics(&p, out);
	else
		strbuf_puts(out, "no NICs with SR-IOV\n\n");
	for (size_t i = 0; i < m->node->n_pools; i++) {
		const struct pool *pool = &m->node->pools[i];
		size_t healthy = 0, pfs = 0;

		for (size_t k = 0; k < pool->n_devs; k++) {
			healthy += pool->devs[k].healthy;
			pfs += pool_dev_is_pf(m->node, &pool->devs[k]);
		}
		strbuf_printf(out, "pool %s:", pool->cfg->resource);
		if (pfs < pool->n_devs || !pfs)
			strbuf_printf(out, " %zu VFs%s", pool->n_devs - pfs, pfs ? " and" : "");
		if (pfs)
			strbuf_printf(out, " %zu whole PF%s", pfs, pfs == 1 ? "" : "s");
		strbuf_printf(out, ", %zu healthy\n", healthy);
		for (size_t k = 0; k < pool->n_devs; k++) {
			if (!pool->devs[k].healthy)
				strbuf_put_wrapped(out, "  ", pool->devs[k].reason, COLUMNS);
		}
	}
	if (p.inv->n_gpu && p.nics.n)
		put_legend(m, out);
}
