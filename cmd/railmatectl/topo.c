/* railmatectl topo: the machine, for eyes. */
#include <stdio.h>
#include <string.h>

#include "ask_ledger.h"
#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "control/control.h"
#include "discover/discover.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "topo/hints.h"
#include "topo/rails.h"
#include "topo/topo.h"

/* The columns of the matrix: every PF, and every VF whose PF this machine does not see. */
struct columns {
	int *pci;
	size_t n;
	int netdev_width; /* of the longest name */
};

#define BDF_WIDTH 16

static void columns_done(struct columns *c)
{
	freep(&c->pci);
}

static struct columns find_columns(const struct hw_inventory *inv)
{
	struct columns c = { xcalloc(inv->n_pci, sizeof(int)), 0, 6 };

	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *f = &inv->pci[i];

		if (!hw_is_own_nic(inv, (int)i))
			continue;
		c.pci[c.n++] = (int)i;
		if (f->netdev && (int)strlen(f->netdev) > c.netdev_width)
			c.netdev_width = (int)strlen(f->netdev);
	}
	return c;
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

static const char *const link_names[] = {
	[GPU_LINK_UNKNOWN] = "?",
	[GPU_LINK_PCIE] = "PCIe",
	[GPU_LINK_XGMI] = "XGMI",
	[GPU_LINK_NVLINK] = "NVL",
};

static bool is_one_kind(const struct gpu_links *l)
{
	for (size_t i = 0; i < l->n * l->n; i++) {
		if (i / l->n != i % l->n && l->link[i] != l->link[1])
			return false;
	}
	return true;
}

static void put_link_matrix(const struct gpu_links *l, struct strbuf *out)
{
	strbuf_printf(out, "\n%-7s", "");
	for (size_t a = 0; a < l->n; a++)
		put_name(out, "GPU", a, a + 1 < l->n ? 7 : 0);
	strbuf_putc(out, '\n');
	for (size_t a = 0; a < l->n; a++) {
		put_name(out, "GPU", a, 7);
		for (size_t b = 0; b < l->n; b++)
			strbuf_printf(out, "%-*s", b + 1 < l->n ? 7 : 0,
				      a == b ? "-" : link_names[l->link[a * l->n + b]]);
		strbuf_putc(out, '\n');
	}
}

/* Most machines have one kind, so a line says it. */
static void put_gpu_links(const struct machine *m, struct arena *a, struct strbuf *out)
{
	static const char *const sentences[] = {
		[GPU_LINK_UNKNOWN] =
			"How GPUs reach each other is not visible without their vendor's library.\n",
		[GPU_LINK_PCIE] = "GPUs reach each other by PCIe.\n",
		[GPU_LINK_XGMI] = "GPUs reach each other by XGMI.\n",
		[GPU_LINK_NVLINK] = "GPUs reach each other by NVLink (NVSwitch).\n",
	};
	struct gpu_links l = discover_gpu_links(m->root, m->node->inv, a);

	if (l.n < 2)
		return;
	if (is_one_kind(&l))
		strbuf_puts(out, sentences[l.link[1]]);
	else
		put_link_matrix(&l, out);
}

static void put_matrix(const struct machine *m, const struct columns *c, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const struct hw_inventory *inv = m->node->inv;
	char buf[BDF_STRLEN];

	strbuf_printf(out, "%-7s", "");
	for (size_t k = 0; k < c->n; k++)
		put_name(out, "NIC", k, 7);
	strbuf_puts(out, "NUMA  PCI              GPU\n");
	for (size_t g = 0; g < inv->n_gpu; g++) {
		const struct hw_gpu *gpu = &inv->gpu[g];

		put_name(out, "GPU", g, 7);
		for (size_t k = 0; k < c->n; k++)
			strbuf_printf(
				out, "%-7s",
				topo_class_name(
					topo_between(m->node->topo, gpu->pci, c->pci[k]).class));
		put_numa(out, inv->pci[gpu->pci].numa);
		strbuf_printf(out, "%-*s %s\n", BDF_WIDTH, bdf_format(inv->pci[gpu->pci].bdf, buf),
			      gpu_name(m, gpu, a));
	}
	put_gpu_links(m, a, out);
	strbuf_putc(out, '\n');
}

static void put_link(const struct hw_inventory *inv, int pci, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf cell = STRBUF_INIT;
	int rdma = hw_find_rdma(inv, pci);

	if (rdma >= 0 && inv->rdma[rdma].n_ports) {
		const struct hw_port *port = &inv->rdma[rdma].ports[0];
		const char *link = hw_link_name(port->link);

		strbuf_printf(&cell, "%s %s ", link ? link : "?", port->state ? port->state : "?");
		if (port->rate_mbps)
			hw_put_rate(port->rate_mbps, &cell);
	} else {
		strbuf_puts(&cell, inv->pci[pci].carrier < 0 ? "-"
				   : inv->pci[pci].carrier   ? "up"
							     : "down");
	}
	strbuf_printf(out, "%-29s", strbuf_str(&cell));
}

/* The slot: current speed and width, and what it could be when that is more. */
static void put_slot(const struct hw_pci *f, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf cell = STRBUF_INIT;

	if (!f->link_mts || !f->link_width)
		strbuf_putc(&cell, '-');
	else
		strbuf_printf(&cell, "%g GT/s x%d", f->link_mts / 1000.0, f->link_width);
	if (f->link_mts && (f->link_mts < f->link_mts_max || f->link_width < f->link_width_max))
		strbuf_printf(&cell, " of %g x%d", f->link_mts_max / 1000.0, f->link_width_max);
	strbuf_printf(out, "%-24s", strbuf_str(&cell));
}

static void put_rdma_range(const struct hw_inventory *inv, int pf, struct strbuf *out)
{
	const char *first = NULL, *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < inv->n_rdma; i++) {
		int pci = inv->rdma[i].pci;

		if (pci < 0 || (pci != pf && inv->pci[pci].physfn != pf) ||
		    (pci == pf && hw_is_pf(&inv->pci[pf])))
			continue;
		if (!n++)
			first = inv->rdma[i].name;
		last = inv->rdma[i].name;
	}
	if (!n)
		strbuf_puts(out, hw_is_pf(&inv->pci[pf]) && !count_vfs(inv, pf) ? "no VFs"
										: "no RDMA device");
	else if (n == 1)
		strbuf_puts(out, first);
	else
		strbuf_printf(out, "%s … %s (%zu)", first, last, n);
}

/* Where GPUs meet the NIC, if that is not at its own address. */
static void put_direct(const struct machine *m, const struct columns *c, struct strbuf *out)
{
	char buf[BDF_STRLEN];

	for (size_t k = 0; k < c->n; k++) {
		int direct = topo_direct(m->node->topo, c->pci[k]);

		if (direct < 0)
			continue;
		put_name(out, "NIC", k, 7);
		strbuf_printf(out, "meets GPUs via data direct %s\n",
			      bdf_format(m->node->inv->pci[direct].bdf, buf));
	}
}

/* "3", with planes "3.1". */
static void put_rail(const struct machine *m, int pci, struct strbuf *out)
{
	struct topo_rail at = topo_rails_of(m->node->rails, pci);
	char text[32] = "-";

	if (at.rail >= 0)
		snprintf(text, sizeof(text), at.plane >= 0 ? "%d.%d" : "%d", at.rail, at.plane);
	strbuf_printf(out, "%-6s", text);
}

static void put_nics(const struct machine *m, const struct columns *c, struct strbuf *out)
{
	const struct hw_inventory *inv = m->node->inv;
	char buf[BDF_STRLEN];

	strbuf_printf(out, "%-7s%-*s %-*s %-6s%-6s%-8s %-29s%-24s%s\n", "", BDF_WIDTH, "PCI",
		      c->netdev_width, "netdev", "NUMA", "rail", "VFs", "port", "slot",
		      "VFs' RDMA devices");
	for (size_t k = 0; k < c->n; k++) {
		const struct hw_pci *f = &inv->pci[c->pci[k]];
		char vfs[24];

		put_name(out, "NIC", k, 7);
		strbuf_printf(out, "%-*s %-*s ", BDF_WIDTH, bdf_format(f->bdf, buf),
			      c->netdev_width, f->netdev ? f->netdev : "-");
		put_numa(out, f->numa);
		put_rail(m, c->pci[k], out);
		if (hw_is_pf(f))
			snprintf(vfs, sizeof(vfs), "%zu/%d", count_vfs(inv, c->pci[k]),
				 f->sriov_total);
		else
			snprintf(vfs, sizeof(vfs), "is a VF");
		strbuf_printf(out, "%-8s ", vfs);
		put_link(inv, c->pci[k], out);
		put_slot(f, out);
		put_rdma_range(inv, c->pci[k], out);
		strbuf_putc(out, '\n');
	}
	put_direct(m, c, out);
	strbuf_putc(out, '\n');
}

static void put_pools(const struct machine *m, struct strbuf *out)
{
	for (size_t i = 0; i < m->node->n_pools; i++) {
		const struct pool *p = &m->node->pools[i];
		size_t healthy = 0;

		for (size_t k = 0; k < p->n_devs; k++)
			healthy += p->devs[k].healthy;
		strbuf_printf(out, "pool %s: %zu VFs, %zu healthy\n", p->cfg->resource, p->n_devs,
			      healthy);
		for (size_t k = 0; k < p->n_devs; k++) {
			if (!p->devs[k].healthy)
				strbuf_printf(out, "  %s\n", p->devs[k].reason);
		}
	}
}

static void put_flattened(const struct machine *m, struct strbuf *out)
{
	const struct topo_hints *hints = topo_hints_used(m->node->topo);

	if (!topo_flattened_vm(m->node->topo))
		return;
	strbuf_puts(out, "This is a virtual machine that does not show its PCIe switches");
	if (hints)
		strbuf_printf(out, ". What lies below one switch is known from elsewhere: %s.\n",
			      hints->source);
	else
		strbuf_puts(out, ": PHB and NODE say nothing about the real distance.\n");
}

static void put_legend(const struct machine *m, struct strbuf *out)
{
	strbuf_puts(out,
		    "\nPIX one PCIe switch · PXB several switches · PHB the same host bridge · "
		    "NODE the same NUMA node · SYS another NUMA node\n");
	put_flattened(m, out);
}

void topo_text(const struct machine *m, struct strbuf *out)
{
	_cleanup_(columns_done) struct columns c = find_columns(m->node->inv);
	const struct hw_inventory *inv = m->node->inv;

	if (inv->n_gpu)
		put_matrix(m, &c, out);
	else
		strbuf_puts(out, "no GPUs\n\n");
	if (c.n)
		put_nics(m, &c, out);
	else
		strbuf_puts(out, "no NICs with SR-IOV\n\n");
	put_pools(m, out);
	if (inv->n_gpu && c.n)
		put_legend(m, out);
}

/* What --root names is another machine: the daemon of this one is asked of it only if it is named,
 * too. */
static const struct ledger_source *find_holders(const struct machine *m,
						struct ledger_source *source)
{
	if (!source->socket && !source->state_dir && strcmp(m->root_path, "/") != 0)
		return NULL;
	if (!source->socket)
		source->socket = CONTROL_SOCKET;
	if (!source->state_dir)
		source->state_dir = STATE_DIR;
	return source;
}

enum form { FORM_TEXT, FORM_JSON, FORM_SVG, FORM_XML };

static int print_form(struct machine *m, enum form form, bool rccl, struct ledger_source *source)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	int r = machine_open(m);

	if (r == EXIT_DONE && form == FORM_XML)
		r = topo_xml(m, rccl, &out);
	if (r != EXIT_DONE)
		return r;
	if (form == FORM_TEXT)
		topo_text(m, &out);
	else if (form == FORM_JSON)
		topo_json(m, &out);
	else if (form == FORM_SVG)
		topo_svg(m, find_holders(m, source), &out);
	return print_out(&out);
}

int cmd_topo(int argc, char **argv)
{
	_cleanup_(machine_close) struct machine m = { .root_path = "/" };
	bool json = false, svg = false, xml = false, rccl = false;
	struct ledger_source source = { 0 };
	const struct word words[] = {
		{ "root", &m.root_path, NULL },
		{ "config", &m.config_path, NULL },
		{ "topology-hints", &m.hints_path, NULL },
		{ "json", NULL, &json },
		{ "svg", NULL, &svg },
		{ "control-socket", &source.socket, NULL },
		{ "state-dir", &source.state_dir, NULL },
		{ "nccl-xml", NULL, &xml },
		{ "rccl", NULL, &rccl },
	};
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r != EXIT_DONE)
		return r;
	if (json + svg + xml > 1)
		return fail(EXIT_USAGE,
			    "--json, --svg and --nccl-xml exclude each other: one at a time");
	if (rccl && !xml)
		return fail(EXIT_USAGE, "--rccl is for --nccl-xml");
	if ((source.socket || source.state_dir) && !svg)
		return fail(EXIT_USAGE, "--control-socket and --state-dir are for --svg");
	return print_form(&m,
			  xml	 ? FORM_XML
			  : svg	 ? FORM_SVG
			  : json ? FORM_JSON
				 : FORM_TEXT,
			  rccl, &source);
}
