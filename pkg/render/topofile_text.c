/* How the elements are written (docs/design/nccl.md §2.2, §2.3): one a line, in address order, so
 * that equal input gives equal bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "render/topofile-internal.h"
#include "render/topofile.h"

/* NCCL's default for a link without a speed in sysfs. */
#define MTS_UNKNOWN   8000
#define WIDTH_UNKNOWN 16

static const struct {
	int mts;
	const char *word;
} link_speeds[] = {
	{ 2500, "2.5 GT/s PCIe" },   { 5000, "5.0 GT/s PCIe" },	  { 8000, "8.0 GT/s PCIe" },
	{ 16000, "16.0 GT/s PCIe" }, { 32000, "32.0 GT/s PCIe" }, { 64000, "64.0 GT/s PCIe" },
};

/* The word for a link of that many MT/s; NULL: NCCL has none. */
static const char *link_speed(int mts)
{
	for (size_t i = 0; i < ARRAY_LEN(link_speeds); i++) {
		if (link_speeds[i].mts == mts)
			return link_speeds[i].word;
	}
	return NULL;
}

bool topofile_is_plain(const char *value)
{
	size_t n = 0;

	while (value[n] >= ' ' && value[n] < 0x7f && !strchr("\"'<>&", value[n]))
		n++;
	return n && !value[n] && n <= TOPOFILE_STRING_MAX;
}

bool topofile_knows_cpu(const struct hw_cpu *cpu)
{
	if (!cpu->arch || strcmp(cpu->arch, "x86_64"))
		return cpu->arch;
	return cpu->vendor && topofile_is_plain(cpu->vendor) && cpu->family >= 0 && cpu->model >= 0;
}

/* The kernel adds the extended family to the base of 15; NCCL and RCCL, which know processors by
 * CPUID alone, shift it (docs/design/nccl.md §2.3). */
static int nccl_family(int family)
{
	return family > 15 ? 15 + ((family - 15) << 4) : family;
}

/*
 * The node's CPUs, as NCCL would read them. A rank completes only the <cpu> of its own GPU, and
 * from 2.22.3 on the ranks' trees are joined: a node is one only where all attributes agree, so
 * none may be left to NCCL. A node without CPUs that are known has an empty list, with which NCCL
 * binds nothing. Words of CPUs that no machine of this kind has stand first; they go where the rest
 * would not fit.
 */
static void put_cpu(struct strbuf *out, int id, const struct hw_inventory *inv)
{
	const struct hw_cpu *cpu = &inv->cpu;
	const char *map = NULL;

	for (size_t i = 0; i < inv->n_numa; i++) {
		if (inv->numa[i].id == id)
			map = inv->numa[i].cpumap;
	}
	while (map && strlen(map) > TOPOFILE_STRING_MAX && map[strspn(map, "0")] == ',')
		map += strspn(map, "0") + 1;
	if (!map || strlen(map) > TOPOFILE_STRING_MAX || map[strspn(map, "0123456789abcdef,")])
		map = "";
	strbuf_printf(out, "  <cpu numaid=\"%d\" affinity=\"%s\" arch=\"%s\"", id, map, cpu->arch);
	if (cpu->vendor)
		strbuf_printf(out, " vendor=\"%s\" familyid=\"%d\" modelid=\"%d\"", cpu->vendor,
			      nccl_family(cpu->family), cpu->model);
	strbuf_puts(out, ">\n");
}

/* complete: NCCL will not look into sysfs for missing attributes. */
static void put_link(struct strbuf *out, struct hw_pcie link, bool complete)
{
	const char *speed = link_speed(link.mts);

	if (!speed && complete)
		speed = link_speed(MTS_UNKNOWN);
	if (link.width <= 0 && complete)
		link.width = WIDTH_UNKNOWN;
	if (speed)
		strbuf_printf(out, " link_speed=\"%s\"", speed);
	if (link.width > 0)
		strbuf_printf(out, " link_width=\"%d\"", link.width);
}

static void put_nets(const struct topofile_build *b, int element, int indent, struct strbuf *out)
{
	strbuf_printf(out, "%*s<nic>\n", indent, "");
	for (size_t i = 0; i < b->n_nets; i++) {
		if (b->nets[i].element != element)
			continue;
		strbuf_printf(out, "%*s<net name=\"%s\"", indent + 2, "", b->nets[i].name);
		if (b->nets[i].speed_mbps)
			strbuf_printf(out, " speed=\"%d\"", b->nets[i].speed_mbps);
		if (b->nets[i].at.rail >= 0)
			strbuf_printf(out, " rail=\"%d\"", b->nets[i].at.rail);
		if (b->nets[i].at.rail >= 0 && b->nets[i].at.plane >= 0)
			strbuf_printf(out, " plane=\"%d\"", b->nets[i].at.plane);
		strbuf_puts(out, "/>\n");
	}
	strbuf_printf(out, "%*s</nic>\n", indent, "");
}

static bool has_nets(const struct topofile_build *b, int element)
{
	for (size_t i = 0; i < b->n_nets; i++) {
		if (b->nets[i].element == element)
			return true;
	}
	return false;
}

/* NCCL completes the tree above the GPUs and NICs that it finds by their address, not above a <net>
 * that stands in the file. */
static bool leads_to_net(const struct topofile_build *b, int element)
{
	for (size_t i = 0; i < b->n_nets; i++) {
		for (int up = b->nets[i].element; up >= 0; up = b->v[up].parent) {
			if (up == element)
				return true;
		}
	}
	return false;
}

/* order: the elements by address. Depth is that of the bridges, which CHAIN_MAX bounds. */
static void put_element(const struct topofile_build *b, const int *order, int element, int indent,
			struct strbuf *out)
{
	const struct element *e = &b->v[element];
	const struct hw_pci *f = e->ids;
	char busid[BDF_STRLEN];
	bool empty = !has_nets(b, element);

	for (size_t i = 0; i < b->n; i++)
		empty &= b->v[i].parent != element;
	strbuf_printf(out, "%*s<pci busid=\"%s\" class=\"0x%06x\"", indent, "",
		      bdf_format(e->bdf, busid), e->class_code);
	put_link(out, e->link, leads_to_net(b, element));
	/* NCCL counts the two levels of some switches as one, by these. All four: only some ranks
	 * would add the rest. */
	if (f)
		strbuf_printf(
			out,
			" vendor=\"0x%04x\" device=\"0x%04x\" subsystem_vendor=\"0x%04x\" subsystem_device=\"0x%04x\"",
			f->vendor, f->device, f->subvendor, f->subdevice);
	if (empty) {
		strbuf_puts(out, "/>\n");
		return;
	}
	strbuf_puts(out, ">\n");
	if (has_nets(b, element))
		put_nets(b, element, indent + 2, out);
	for (size_t i = 0; i < b->n; i++) {
		if (b->v[order[i]].parent == element)
			put_element(b, order, order[i], indent + 2, out);
	}
	strbuf_printf(out, "%*s</pci>\n", indent, "");
}

static int by_address(const void *x, const void *y, void *arg)
{
	const struct topofile_build *b = arg;

	return bdf_cmp(b->v[*(const int *)x].bdf, b->v[*(const int *)y].bdf);
}

/* Nodes by number, and behind them the devices without a known node. */
static int by_id(const void *x, const void *y, void *arg)
{
	const struct topofile_build *b = arg;
	int i = b->cpus[*(const int *)x].id, k = b->cpus[*(const int *)y].id;

	if ((i < 0) != (k < 0))
		return i < 0 ? 1 : -1;
	return i < 0 ? k - i : i - k;
}

static int *order_of(struct topofile_build *b, size_t n,
		     int (*compare)(const void *, const void *, void *))
{
	int *order = arena_array(b->arena, n + 1, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = (int)i;
	qsort_r(order, n, sizeof(*order), compare, b);
	return order;
}

void topofile_put(struct topofile_build *b, struct strbuf *out)
{
	const int *elements = order_of(b, b->n, by_address), *cpus = order_of(b, b->n_cpus, by_id);

	strbuf_printf(out, "<system version=\"%d\">\n", b->in->version);
	for (size_t c = 0; c < b->n_cpus; c++) {
		put_cpu(out, b->cpus[cpus[c]].id, b->in->inv);
		for (size_t i = 0; i < b->n; i++) {
			const struct element *e = &b->v[elements[i]];

			if (e->parent < 0 && e->cpu == cpus[c])
				put_element(b, elements, elements[i], 4, out);
		}
		strbuf_puts(out, "  </cpu>\n");
	}
	strbuf_puts(out, "</system>\n");
}
