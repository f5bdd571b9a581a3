/*
 * Which elements the file has. Every GPU and every NIC is a leaf at the address by which NCCL looks
 * for it; above it stand the switches as NCCL sees them (each by its upstream port; root ports do
 * not count), or the one that the hints name. Facts: docs/design/nccl.md §2.4, §2.5, NCCL's
 * src/graph/xml.cc.
 */
#include "render/topofile.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/topofile-internal.h"
#include "topo/hints.h"
#include "topo/topo.h"

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

bool *topofile_nics(const struct topofile_in *in)
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
