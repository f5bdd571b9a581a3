/*
 * The topology file: the elements of a node, how they are written (docs/design/nccl.md §2.2, §2.3),
 * when the file is better than what NCCL finds by itself (§2.5), and which one a pool gets.
 */
#include "render/topofile.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "topo/topo.h"
#include "topo/rails.h"

/* NCCL reads up to 256 elements per process, and adds its own (docs/design/nccl.md §2.2). */
#define TOPOFILE_ELEMENTS_MAX 199
#define TOPOFILE_KIDS_MAX     128 /* of one element, in older releases; 640 since */
#define TOPOFILE_STRING_MAX   253 /* of a value */

struct element {
	struct bdf bdf;
	uint32_t class_code;
	struct hw_pcie link;
	const struct hw_pci *ids; /* of a switch; NULL: not known */
	int group;		  /* of the hints, if it is their switch; -1 */
	int parent;		  /* element; -1: directly at the CPU */
	int cpu;		  /* index, if parent is -1 */
};

struct net {
	int element;
	const char *name;
	int speed_mbps;	     /* 0: not known */
	struct topo_rail at; /* rail -1: not known */
};

/* A NUMA node. Devices without a known node get a number below zero, one for each root complex. */
struct cpu {
	int id;
	int pci; /* with id < 0: a function of the root complex */
};

struct topofile_build {
	const struct topofile_in *in;
	struct arena *arena;
	struct element v[TOPOFILE_ELEMENTS_MAX + 1];
	struct net nets[TOPOFILE_ELEMENTS_MAX + 1];
	struct cpu cpus[TOPOFILE_ELEMENTS_MAX + 1];
	size_t n, n_nets, n_cpus;
	bool full; /* one of the tables */
	const char **notes;
	size_t n_notes, cap_notes;
};

/* How the elements are written (docs/design/nccl.md §2.2, §2.3): one a line, in address order, so
 * that equal input gives equal bytes. */

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

static bool *topofile_nics(const struct topofile_in *in);

/* The word for a link of that many MT/s; NULL: NCCL has none. */
static const char *link_speed(int mts)
{
	for (size_t i = 0; i < ARRAY_LEN(link_speeds); i++) {
		if (link_speeds[i].mts == mts)
			return link_speeds[i].word;
	}
	return NULL;
}

/* May it stand as a value: printable ASCII without quotes and the special characters of XML, as
 * NCCL knows no entities? */
static bool topofile_is_plain(const char *value)
{
	size_t n = 0;

	while (value[n] >= ' ' && value[n] < 0x7f && !strchr("\"'<>&", value[n]))
		n++;
	return n && !value[n] && n <= TOPOFILE_STRING_MAX;
}

/* Are all attributes known that NCCL wants of a <cpu>? It completes only that of a rank's own GPU.
 */
static bool topofile_knows_cpu(const struct hw_cpu *cpu)
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

/* Every element, as text. */
static void topofile_put(struct topofile_build *b, struct strbuf *out)
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

/* Is the file better than NCCL's own detection (docs/design/nccl.md §2.5), and which version does a
 * container get? */

/* Functions that share a reason. */
struct reason {
	size_t n;
	struct bdf first;
};

static void count(struct reason *r, const struct hw_pci *f)
{
	if (!r->n++)
		r->first = f->bdf;
}

/* "0000:12:00.1 and 3 more <rest>" */
static void put_functions(struct strbuf *why, const struct reason *r, const char *one,
			  const char *many)
{
	char address[BDF_STRLEN];

	if (!r->n)
		return;
	strbuf_printf(why, "%s%s", why->len ? "; " : "", bdf_format(r->first, address));
	if (r->n > 1)
		strbuf_printf(why, " and %zu more", r->n - 1);
	strbuf_printf(why, " %s", r->n > 1 ? many : one);
}

struct reasons {
	struct reason elsewhere, limited, path;
	struct reason known, above,
		unknown; /* NUMA nodes: by the function itself, by a bridge above, by neither */
};

/* NCCL reads the numa_node of the upstream port of the uppermost switch, else of the function. */
static void judge_node(const struct hw_inventory *inv, const struct topo *topo, int pci,
		       struct reasons *r)
{
	const struct hw_pci *top = &inv->pci[pci];
	int up = top->parent;

	if (topo_place(topo, pci) != pci || topo_group_of(topo, pci) >= 0)
		return;
	for (int n = 0; up >= 0 && inv->pci[up].parent >= 0 && n < 64; n++) {
		top = &inv->pci[up];
		up = top->parent;
	}
	if (top->numa_above)
		count(&r->above, &inv->pci[pci]);
	else
		count(top->numa < 0 ? &r->unknown : &r->known, &inv->pci[pci]);
}

static void judge(const struct hw_inventory *inv, const struct topo *topo, int pci,
		  struct reasons *r)
{
	const struct hw_pci *f = &inv->pci[pci];
	struct bdf merged = topo_nccl_address(f->bdf, true),
		   place = inv->pci[topo_place(topo, pci)].bdf;

	judge_node(inv, topo, pci, r);
	if (!f->has_root)
		count(&r->path, f);
	if (hw_find_gpu(inv, pci) >= 0)
		return;
	/* NCCL with its default looks for a VF in its PF's slot, or so it thinks. */
	place.fn = 0;
	if (hw_is_nic_vf(inv, pci) && (bdf_cmp(merged, place) || hw_find_pci(inv, merged) < 0))
		count(&r->elsewhere, f);
	if (f->rate_mbps)
		count(&r->limited, f);
}

bool topofile_needed(const struct topofile_in *in, struct strbuf *why)
{
	const struct hw_inventory *inv = in->inv;
	const struct topo *topo = in->topo;
	const struct topo_hints *hints = topo_hints_used(topo);
	_cleanup_free_ bool *nics = topofile_nics(in);
	struct reasons r = { 0 };
	size_t before = why->len;

	if (hints)
		strbuf_printf(
			why,
			"%sthis virtual machine hides its PCIe switches, and %s describes them",
			why->len ? "; " : "", hints->source);
	for (int i = 0; i < (int)inv->n_pci; i++) {
		if (nics[i] || hw_find_gpu(inv, i) >= 0)
			judge(inv, topo, i, &r);
	}
	put_functions(why, &r.elsewhere, "is a VF that NCCL does not look for at its PF",
		      "are VFs that NCCL does not look for at their PFs");
	put_functions(why, &r.limited, "has a rate limit, which NCCL does not see",
		      "have a rate limit, which NCCL does not see");
	/* Without a second node it is wrong only to give some functions' node and not others'. */
	if (!topo_one_node(topo) || r.known.n)
		put_functions(why, r.above.n || !topo_one_node(topo) ? &r.above : &r.unknown,
			      "has no NUMA node by the firmware",
			      "have no NUMA node by the firmware");
	put_functions(why, &r.path, "has no way to a root complex in sysfs",
		      "have no way to a root complex in sysfs");
	if (why->len > before)
		return true;
	strbuf_printf(
		why, "%s%s", why->len ? "; " : "",
		topo_flattened_vm(topo)
			? "this virtual machine hides its PCIe switches, and no topology hints describe them"
			: "NCCL finds everything of this node by itself");
	return false;
}

int topofile_wanted(const struct node *node, const struct pool_config *pool)
{
	const struct topofile_in in = topofile_in(node, 0);
	const struct hw_inventory *inv = node->inv;
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	bool only_amd = inv->n_gpu > 0;

	if (!(pool->profiles & (PROFILE_NCCL | PROFILE_RCCL)) ||
	    pool->topology_file == TOPOLOGY_FILE_NEVER)
		return 0;
	if (pool->topology_file == TOPOLOGY_FILE_AUTO && !topofile_needed(&in, &why))
		return 0;
	for (size_t i = 0; i < inv->n_gpu; i++)
		only_amd &= str_eq(inv->gpu[i].vendor, "AMD");
	return !(pool->profiles & PROFILE_NCCL) || only_amd ? 2 : 1;
}

const char *topofile_name(const struct node *node, const struct pool_config *pool)
{
	_cleanup_arena_ struct arena *arena = NULL;
	const struct topofile_in in = topofile_in(node, topofile_wanted(node, pool));
	struct topofile_out out;

	if (!in.version)
		return NULL;
	arena = arena_new(64 * 1024);
	if (topofile_render(&in, arena, &out, NULL) < 0)
		return NULL;
	return in.version == 2 ? TOPOFILE_RCCL : TOPOFILE_NCCL;
}

/*
 * Which elements the file has. Every GPU and every NIC is a leaf at the address by which NCCL looks
 * for it; above it stand the switches as NCCL sees them (each by its upstream port; root ports do
 * not count), or the one that the hints name. Facts: docs/design/nccl.md §2.4, §2.5, NCCL's
 * src/graph/xml.cc.
 */

#define CHAIN_MAX  64
#define SWITCH	   0x060400
#define DOMAIN_MAX 0xffff /* four digits: NCCL's addresses have no room for more */

/* The device of a function in the pools; NULL: none. */
static const struct pool_dev *find_dev(const struct topofile_in *in, int pci,
				       const struct pool **ret_pool)
{
	for (size_t i = 0; i < in->n_pools; i++) {
		for (size_t k = 0; k < in->pools[i].n_devs; k++) {
			if (in->pools[i].devs[k].pci != pci)
				continue;
			*ret_pool = &in->pools[i];
			return &in->pools[i].devs[k];
		}
	}
	return NULL;
}

/* The device of a function that is in a container; NULL: there is none that we know of. */
static const struct pool_dev *dev_away(const struct topofile_in *in, int pci)
{
	const struct pool *pool;
	const struct pool_dev *dev = find_dev(in, pci, &pool);

	return dev && dev->rdma_away ? dev : NULL;
}

/*
 * By PCI index: is it a NIC that NCCL could use, which is a PF or VF where it or a VF of the same
 * PF has an RDMA device? So it does not change while containers have some of them. A heap array.
 */
static bool *topofile_nics(const struct topofile_in *in)
{
	const struct hw_inventory *inv = in->inv;
	_cleanup_free_ bool *is_place = xcalloc(inv->n_pci + 1, sizeof(*is_place));
	bool *ret = xcalloc(inv->n_pci + 1, sizeof(*ret));

	for (size_t i = 0; i < inv->n_rdma; i++) {
		if (inv->rdma[i].pci >= 0)
			is_place[topo_place(in->topo, inv->rdma[i].pci)] = true;
	}
	for (size_t i = 0; i < in->n_pools; i++) {
		for (size_t k = 0; k < in->pools[i].n_devs; k++) {
			const struct pool_dev *dev = &in->pools[i].devs[k];

			if (dev->pci >= 0 && dev->rdma_away)
				is_place[topo_place(in->topo, dev->pci)] = true;
		}
	}
	for (int i = 0; i < (int)inv->n_pci; i++)
		ret[i] = is_place[topo_place(in->topo, i)] &&
			 (hw_is_pf(&inv->pci[i]) || hw_is_nic_vf(inv, i));
	return ret;
}

__attribute__((format(printf, 2, 3))) static void note(struct topofile_build *b, const char *fmt,
						       ...)
{
	va_list ap;

	b->notes = xgrow(b->notes, &b->cap_notes, b->n_notes + 1, sizeof(*b->notes));
	va_start(ap, fmt);
	b->notes[b->n_notes++] = arena_vprintf(b->arena, fmt, ap);
	va_end(ap);
}

/* --- CPUs --- */

/* `top` is the uppermost function of a way. Where there is one NUMA node only, it is there. */
static int cpu_of(struct topofile_build *b, int top)
{
	const struct hw_inventory *inv = b->in->inv;
	const struct hw_pci *f = &inv->pci[top];
	int numa = topo_numa(b->in->topo, top), unknown = 0;
	bool known = numa >= 0 || topo_one_node(b->in->topo);

	if (known && numa < 0 && inv->n_numa)
		numa = inv->numa[0].id;
	for (size_t i = 0; known && numa < 0 && i < inv->n_pci; i++)
		numa = inv->pci[i].numa;
	for (size_t i = 0; i < b->n_cpus; i++) {
		const struct hw_pci *other = &inv->pci[b->cpus[i].pci];
		bool same_root = f->has_root && other->has_root
					 ? f->root_domain == other->root_domain &&
						   f->root_bus == other->root_bus
					 : f == other;

		if (known ? b->cpus[i].id == numa : b->cpus[i].id < 0 && same_root)
			return (int)i;
		unknown += b->cpus[i].id < 0;
	}
	if (b->n_cpus == ARRAY_LEN(b->cpus)) {
		b->full = true;
		return 0;
	}
	b->cpus[b->n_cpus] = (struct cpu) { known ? numa : -1 - unknown, top };
	return (int)b->n_cpus++;
}

/* --- switches --- */

static int find(const struct topofile_build *b, struct bdf bdf)
{
	for (size_t i = 0; i < b->n; i++) {
		if (!bdf_cmp(b->v[i].bdf, bdf))
			return (int)i;
	}
	return -1;
}

/* Full: everything further lands in the last one, and the file is refused. */
static int add(struct topofile_build *b, const struct element *e)
{
	if (b->n == ARRAY_LEN(b->v)) {
		b->full = true;
		return (int)b->n - 1;
	}
	b->v[b->n] = *e;
	return (int)b->n++;
}

static int add_switch(struct topofile_build *b, int pci, int parent, int cpu)
{
	const struct hw_pci *f = &b->in->inv->pci[pci];
	const struct element e = { .bdf = f->bdf,
				   .class_code = SWITCH,
				   .link = hw_pcie_best(b->in->inv, pci),
				   .ids = f->vendor ? f : NULL,
				   .group = -1,
				   .parent = parent,
				   .cpu = cpu };
	int known = find(b, f->bdf);

	return known >= 0 ? known : add(b, &e);
}

/* Where a leaf hangs: an element, or -1 and a CPU. */
struct spot {
	int parent, cpu;
};

/* Root ports have no bridge above, upstream ports an odd number of them. A loop has none, as in the
 * topo room. */
static struct spot spot_below_switches(struct topofile_build *b, int place)
{
	const struct hw_inventory *inv = b->in->inv;
	int above[CHAIN_MAX], up = inv->pci[place].parent; /* nearest first */
	struct spot spot = { -1, -1 };
	size_t n = 0;

	for (; up >= 0 && n < CHAIN_MAX; up = inv->pci[up].parent)
		above[n++] = up;
	if (up >= 0)
		n = 0;
	spot.cpu = cpu_of(b, n >= 2 ? above[n - 2] : place);
	for (size_t depth = 1; depth < n; depth += 2)
		spot.parent = add_switch(b, above[n - 1 - depth], spot.parent, spot.cpu);
	return spot;
}

/* Its address is one that no machine has: the last devices of the last buses of the last domain. */
static struct spot spot_in_group(struct topofile_build *b, int place, int group)
{
	const struct topo_hints *hints = topo_hints_used(b->in->topo);
	struct element e = { .bdf = { DOMAIN_MAX, 0xff, 1, 0 },
			     .class_code = SWITCH,
			     .link = { hints->link_mts, hints->link_width },
			     .group = group,
			     .parent = -1 };

	for (size_t i = 0; i < b->n; i++) {
		if (b->v[i].group == group)
			return (struct spot) { (int)i, -1 };
	}
	while (find(b, e.bdf) >= 0 || hw_find_pci(b->in->inv, e.bdf) >= 0) {
		if (++e.bdf.dev > 0x1f) {
			e.bdf.dev = 1;
			e.bdf.bus--;
		}
	}
	e.cpu = cpu_of(b, place);
	return (struct spot) { add(b, &e), -1 };
}

/* --- leaves --- */

/* The function at that address, which has to exist for NCCL to look it up, is of the same NIC, or
 * in its slot. */
static bool is_own(const struct topofile_build *b, struct bdf bdf, int place)
{
	const struct hw_inventory *inv = b->in->inv;
	int there = hw_find_pci(inv, bdf);
	struct bdf of_place = inv->pci[place].bdf;

	if (there < 0)
		return false;
	if (topo_place(b->in->topo, there) == place)
		return true;
	of_place.fn = bdf.fn;
	return !bdf_cmp(of_place, bdf);
}

/* The leaf at an address with the place's facts; -1: the address is free or another function's. */
static int claim(struct topofile_build *b, struct bdf bdf, int place)
{
	const struct topo_hints *hints = topo_hints_used(b->in->topo);
	struct spot spot;
	struct element e;
	int known = find(b, bdf), group = topo_group_of(b->in->topo, place);

	if (!is_own(b, bdf, place))
		return -1;
	spot = group >= 0 ? spot_in_group(b, place, group) : spot_below_switches(b, place);
	if (known >= 0)
		return b->v[known].parent == spot.parent &&
				       (spot.parent >= 0 || b->v[known].cpu == spot.cpu)
			       ? known
			       : -1;
	e = (struct element) { .bdf = bdf,
			       .class_code = b->in->inv->pci[place].class_code,
			       .link = hw_pcie_best(b->in->inv, place),
			       .group = -1,
			       .parent = spot.parent,
			       .cpu = spot.cpu };
	/* A VM may know nothing of its links. */
	if (hints && group >= 0) {
		e.link.mts = e.link.mts ? e.link.mts : hints->link_mts;
		e.link.width = e.link.width ? e.link.width : hints->link_width;
	}
	return add(b, &e);
}

static void add_net(struct topofile_build *b, int pci, int element, const char *name)
{
	const struct pool *pool;
	struct topo_rail rail = { -1, -1 };

	if (!topofile_is_plain(name)) {
		note(b, "the RDMA device '%s' is left out: NCCL's parser cannot read its name",
		     name);
		return;
	}
	if (b->n_nets == ARRAY_LEN(b->nets)) {
		b->full = true;
		return;
	}
	if (find_dev(b->in, pci, &pool))
		rail = pool_nccl_rail(pool, b->in->rails, pci);
	b->nets[b->n_nets++] = (struct net) { element, name, b->in->inv->pci[pci].rate_mbps, rail };
}

/* suffix: NCCL's addition to the names. */
static void add_nets(struct topofile_build *b, int pci, int element, const char *suffix)
{
	const struct hw_inventory *inv = b->in->inv;
	const struct pool_dev *away = dev_away(b->in, pci);
	int i = hw_find_rdma(inv, pci);

	for (; i >= 0 && (size_t)i < inv->n_rdma && inv->rdma[i].pci == pci; i++) {
		if (!inv->rdma[i].soft)
			add_net(b, pci, element,
				arena_printf(b->arena, "%s%s", inv->rdma[i].name, suffix));
	}
	if (away && away->rdma_name)
		add_net(b, pci, element, arena_printf(b->arena, "%s%s", away->rdma_name, suffix));
}

static bool is_described(struct topofile_build *b, int pci)
{
	char address[BDF_STRLEN];

	if (b->in->inv->pci[pci].bdf.domain <= DOMAIN_MAX)
		return true;
	note(b, "%s is left out: NCCL has no name for a PCI domain of more than four digits",
	     bdf_format(b->in->inv->pci[pci].bdf, address));
	return false;
}

/*
 * A NIC is at the address that NCCL derives from the NIC's own: with NCCL_IB_MERGE_VFS=0, which the
 * container of a VF that needs it gets, and with the default, which a container can restore. Where
 * neither is the NIC's own, it is at its PF, found by its name.
 */
static void add_nic(struct topofile_build *b, int pci)
{
	const struct hw_pci *f = &b->in->inv->pci[pci];
	int place = topo_place(b->in->topo, pci), direct = topo_direct(b->in->topo, pci);
	bool merges = topo_vf_merges(b->in->inv, pci),
	     hidden = topo_group_of(b->in->topo, place) >= 0;
	int merged = claim(b, topo_nccl_address(f->bdf, true), place), plain = -1, looked;

	if (!merges || hidden)
		plain = claim(b, topo_nccl_address(f->bdf, false), place);
	looked = merges ? merged : plain;
	if (looked >= 0 && !f->rate_mbps)
		return;
	if (hw_find_rdma(b->in->inv, pci) < 0 && !dev_away(b->in, pci))
		return;
	if (looked < 0)
		looked = claim(b, b->in->inv->pci[place].bdf, place);
	add_nets(b, pci, looked, "");
	/* With Data Direct it has a second name and place, which NCCL takes from 2.27 on. */
	if (direct >= 0 && is_described(b, direct))
		add_nets(b, pci, claim(b, b->in->inv->pci[direct].bdf, direct), "_dma");
}

static void add_all(struct topofile_build *b)
{
	const struct hw_inventory *inv = b->in->inv;
	_cleanup_free_ bool *nics = topofile_nics(b->in);

	for (size_t i = 0; i < inv->n_gpu; i++) {
		int pci = inv->gpu[i].pci;

		if (is_described(b, pci))
			claim(b, inv->pci[pci].bdf, pci);
	}
	for (int i = 0; i < (int)inv->n_pci && !b->full; i++) {
		if (nics[i] && is_described(b, i))
			add_nic(b, i);
	}
}

static void check_planes(struct topofile_build *b)
{
	struct topo_rail at[ARRAY_LEN(b->nets)];

	for (size_t i = 0; i < b->n_nets; i++)
		at[i] = b->nets[i].at;
	if (pool_planes_fit(at, b->n_nets))
		return;
	for (size_t i = 0; i < b->n_nets; i++)
		b->nets[i].at.plane = -1;
	note(b,
	     "planes are left out: there are more than %d of them, with which NCCL would not start",
	     POOL_NCCL_PLANES_MAX);
}

/* For NCCL's tables. A NIC has one element more, <nic>, for its nets. */
static bool is_too_large(const struct topofile_build *b)
{
	size_t n = 1 + b->n_cpus + b->n + b->n_nets;
	size_t kids[3][TOPOFILE_ELEMENTS_MAX + 1] = { { 0 } }; /* of <cpu>, <pci>, <nic> */

	for (size_t i = 0; i < b->n; i++) {
		const struct element *e = &b->v[i];

		kids[e->parent >= 0][e->parent >= 0 ? e->parent : e->cpu]++;
	}
	for (size_t i = 0; i < b->n_nets; i++) {
		if (kids[2][b->nets[i].element]++)
			continue;
		kids[1][b->nets[i].element]++;
		n++;
	}
	for (size_t i = 0; i < ARRAY_LEN(kids[0]); i++) {
		if (kids[0][i] > TOPOFILE_KIDS_MAX || kids[1][i] > TOPOFILE_KIDS_MAX ||
		    kids[2][i] > TOPOFILE_KIDS_MAX)
			return true;
	}
	return b->full || n > TOPOFILE_ELEMENTS_MAX;
}

static int write_text(struct topofile_build *b, struct strbuf *out, struct err *err)
{
	if (!b->n && b->n_notes)
		return err_set(err, ENODATA, "%s", b->notes[0]);
	if (!b->n)
		return err_set(err, ENODATA, "there is neither a GPU nor an RDMA NIC");
	if (is_too_large(b))
		return err_set(
			err, E2BIG,
			"this node has too many GPUs, switches and NICs for NCCL: more than %d elements, or %d in one",
			TOPOFILE_ELEMENTS_MAX, TOPOFILE_KIDS_MAX);
	topofile_put(b, out);
	return 0;
}

struct topofile_in topofile_in(const struct node *node, int version)
{
	return (struct topofile_in) { node->inv,   node->topo,	  version,
				      node->pools, node->n_pools, node->rails };
}

int topofile_render(const struct topofile_in *in, struct arena *arena, struct topofile_out *ret,
		    struct err *err)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct topofile_build *b = arena_alloc(arena, sizeof(*b));
	int r;

	assert(in->version == 1 || in->version == 2);
	if (!topofile_knows_cpu(&in->inv->cpu))
		return err_set(
			err, ENODATA,
			"/proc/cpuinfo does not name the processor (vendor, family, model), and NCCL takes no topology file without them");
	b->in = in;
	b->arena = arena;
	add_all(b);
	check_planes(b);
	r = write_text(b, &out, err);
	if (r == 0) {
		ret->text = arena_strdup(arena, strbuf_str(&out));
		ret->notes = arena_copy(arena, b->notes, b->n_notes * sizeof(*b->notes));
		ret->n_notes = b->n_notes;
	}
	free(b->notes);
	return r;
}
