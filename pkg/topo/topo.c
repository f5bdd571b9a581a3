/*
 * Path classes: the functions of a machine as spots of a tree, the operator's hints of switches
 * that a virtual machine hides, the distance of two spots, and the rails of ports.
 */
#include "topo/topo.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "topo/rails.h"

/* The facts that a question about a function needs, in one cache line's reach. */
struct spot {
	int place;     /* the visible PF of a VF, else the function */
	int up;	       /* next bridge, -1 on the root bus */
	int16_t depth; /* bridges above */
	/* Sub-switches among itself and the bridges above that count with their parent */
	int16_t fused;
	int direct; /* data direct function of a NIC that is its own place; -1: none */
	int numa;
	int group; /* of the hints; -1: none. A VF's is its place's */
	bool is_fused;
};

struct topo {
	const struct hw_inventory *inv;
	struct spot *spots;
	const struct topo_hints *hints; /* that count; NULL: none */
	char **notes;
	size_t n_notes, cap_notes;
	bool one_node; /* at most one known NUMA node */
	bool flattened;
};

/* --- the operator's hints --- */

__attribute__((format(printf, 2, 3))) static void note(struct topo *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	t->notes = xgrow(t->notes, &t->cap_notes, t->n_notes + 1, sizeof(*t->notes));
	t->notes[t->n_notes++] = text;
}

static void place_in_group(struct topo *t, struct bdf bdf, int group, bool gpu)
{
	const struct topo_hints *h = t->hints;
	int pci = hw_find_pci(t->inv, bdf), numa = h->groups[group].numa;
	char address[BDF_STRLEN];
	struct spot *spot;

	bdf_format(bdf, address);
	if (pci < 0) {
		note(t, "%s: %s is not on this machine", h->source, address);
		return;
	}
	if (gpu ? hw_find_gpu(t->inv, pci) < 0 : !hw_is_nic(&t->inv->pci[pci])) {
		note(t, "%s: %s is not a %s", h->source, address, gpu ? "GPU" : "NIC");
		return;
	}
	spot = &t->spots[t->spots[pci].place];
	if (spot->group >= 0 && spot->group != group) {
		note(t, "%s: %s is in one group and its PF in another; the first counts", h->source,
		     address);
		return;
	}
	spot->group = group;
	if (numa >= 0)
		spot->numa = numa;
}

/* The operator's hints, or else the instance type's, into the groups and nodes of the spots. */
static void apply_hints(struct topo *t, const struct topo_hints *hints)
{
	if (hints && !t->flattened) {
		note(t, "%s: not used: this machine does not hide its PCIe switches",
		     hints->source);
		return;
	}
	t->hints = hints ? hints : t->flattened ? topo_shape(t->inv) : NULL;
	for (size_t i = 0; t->hints && i < t->hints->n_groups; i++) {
		const struct topo_group *g = &t->hints->groups[i];

		for (size_t k = 0; k < g->n_gpus; k++)
			place_in_group(t, g->gpus[k], (int)i, true);
		for (size_t k = 0; k < g->n_nics; k++)
			place_in_group(t, g->nics[k], (int)i, false);
	}
}

const struct topo_hints *topo_hints_used(const struct topo *t)
{
	return t->hints;
}

int topo_group_of(const struct topo *t, int pci)
{
	assert(pci >= 0 && (size_t)pci < t->inv->n_pci);
	return t->spots[t->spots[pci].place].group;
}

int topo_numa(const struct topo *t, int pci)
{
	return t->spots[pci].numa;
}

bool topo_one_node(const struct topo *t)
{
	return t->one_node;
}

const char *const *topo_notes(const struct topo *t, size_t *ret_n)
{
	*ret_n = t->n_notes;
	return (const char *const *)t->notes;
}

/* Where NCCL takes a VF to be. Facts: NCCL, src/transport/net_ib/init.cc, ncclIbGetPciPath(). */

static bool same_device(struct bdf a, struct bdf b)
{
	return a.domain == b.domain && a.bus == b.bus && a.dev == b.dev;
}

struct bdf topo_nccl_address(struct bdf bdf, bool merge)
{
	bdf.fn = 0;
	if (merge)
		bdf.dev = 0;
	return bdf;
}

bool topo_vf_merges(const struct hw_inventory *inv, int vf)
{
	const struct hw_pci *f = &inv->pci[vf], *place = f->physfn >= 0 ? &inv->pci[f->physfn] : f;
	struct bdf merged = topo_nccl_address(f->bdf, true);

	if (same_device(merged, f->bdf))
		return true; /* it makes no difference */
	return same_device(merged, place->bdf) && hw_find_pci(inv, merged) >= 0;
}

/* A chain of more bridges than this is a loop: it is cut, so that nothing below it can hang. */
#define MAX_CHAIN 64

/*
 * Switches that show themselves as two levels although any port reaches any other at full speed.
 * Subsystem ids are compared under 0xf000. Facts: NCCL, src/graph/topo.cc, getBcmGen().
 */
static const struct two_level {
	uint16_t vendor, device, subvendor;
	uint16_t upper, lower; /* subsystem device of the parent switch and of the sub-switch */
} two_level_switches[] = {
	{ 0x1000, 0xc010, 0x1000, 0xa000, 0xa000 }, /* Broadcom PEX88000, Gen4 */
	{ 0x1000, 0xc030, 0x1000, 0x0000, 0x1000 }, /* Broadcom PEX89000, Gen5 */
};

static const struct {
	const char *name;
	int rank;
} classes[TOPO_CLASS_MAX] = {
	[TOPO_SELF] = { "SELF", 0 }, [TOPO_PIX] = { "PIX", 0 },	  [TOPO_PXB] = { "PXB", 1 },
	[TOPO_PHB] = { "PHB", 2 },   [TOPO_NODE] = { "NODE", 3 }, [TOPO_SYS] = { "SYS", 4 },
};

int topo_rank(enum topo_class c)
{
	assert(c < TOPO_CLASS_MAX);
	return classes[c].rank;
}

const char *topo_class_name(enum topo_class c)
{
	assert(c < TOPO_CLASS_MAX);
	return classes[c].name;
}

size_t topo_pairs_at_best(const size_t got[TOPO_CLASS_MAX], const size_t best[TOPO_CLASS_MAX])
{
	size_t all = 0, same = 0, rank = 0, best_rank = 0;

	for (int c = 0; c < TOPO_CLASS_MAX; c++) {
		all += got[c];
		same += got[c] < best[c] ? got[c] : best[c];
		rank += got[c] * (size_t)classes[c].rank;
		best_rank += best[c] * (size_t)classes[c].rank;
	}
	return rank <= best_rank ? all : same;
}

static bool is_level(const struct hw_pci *f, const struct two_level *s, uint16_t subdevice)
{
	if (f->vendor != s->vendor || f->device != s->device)
		return false;
	if (f->subvendor == 0 && f->subdevice == 0)
		return true; /* not readable: the device id has to do */
	return f->subvendor == s->subvendor && (f->subdevice & 0xf000) == subdevice;
}

static bool is_two_level(const struct hw_pci *upper, const struct hw_pci *lower)
{
	for (size_t i = 0; i < ARRAY_LEN(two_level_switches); i++) {
		const struct two_level *s = &two_level_switches[i];

		if (is_level(upper, s, s->upper) && is_level(lower, s, s->lower))
			return true;
	}
	return false;
}

/* Fill in the spots of a function and of the bridges above it, from the top down. */
static void place_chain(struct topo *t, int pci)
{
	struct spot *s = &t->spots[pci];
	const struct hw_pci *f = &t->inv->pci[pci];
	int length = 0, upper;

	if (s->place >= 0)
		return;
	for (int up = f->parent; up >= 0 && length <= MAX_CHAIN; up = t->inv->pci[up].parent)
		length++;
	s->place = f->physfn >= 0 ? f->physfn : pci;
	s->numa = f->numa;
	s->up = length > MAX_CHAIN ? -1 : f->parent;
	if (s->up < 0)
		return;
	place_chain(t, s->up);
	s->depth = (int16_t)length;
	s->fused = t->spots[s->up].fused;
	/*
	 * Below a root port (depth 0) upstream ports have odd depths, downstream ports even ones. A
	 * sub-switch is its upstream port; the parent switch's is two bridges up. A parent that was
	 * itself fused into its own parent takes no sub-switch: NCCL marks it.
	 */
	upper = t->spots[s->up].up;
	s->is_fused = s->depth % 2 && upper >= 0 && t->spots[upper].up >= 0 &&
		      !t->spots[upper].is_fused && is_two_level(&t->inv->pci[upper], f);
	if (s->is_fused)
		s->fused++;
}

int topo_place(const struct topo *t, int pci)
{
	return t->spots[pci].place;
}

bool topo_is_fused(const struct topo *t, int pci)
{
	return t->spots[pci].is_fused;
}

/*
 * Switches between a function and the one that is common to both sides. A switch is an upstream
 * port and a downstream port; the first downstream port belongs to the common switch itself.
 */
static int switches_to(const struct topo *t, int pci, int common)
{
	const struct spot *s = &t->spots[pci];
	int between = s->depth - t->spots[common].depth - 1;
	int switches = between > 1 ? between / 2 : 0; /* ⌈(between − 1) / 2⌉ */
	int fused = s->up >= 0 ? t->spots[s->up].fused - t->spots[common].fused : 0;

	return fused < switches ? switches - fused : 0;
}

static enum topo_class across_roots(const struct topo *t, int a, int b)
{
	int na = t->spots[a].numa, nb = t->spots[b].numa;

	if (na >= 0 && na == nb)
		return TOPO_NODE;
	if (na >= 0 && nb >= 0)
		return TOPO_SYS;
	return t->one_node ? TOPO_NODE : TOPO_SYS;
}

static struct topo_path between_spots(const struct topo *t, int a, int b)
{
	struct topo_path path = { TOPO_SELF, -1, false };
	const struct hw_pci *fa = &t->inv->pci[a], *fb = &t->inv->pci[b];
	bool same_root = fa->has_root && fb->has_root && fa->root_domain == fb->root_domain &&
			 fa->root_bus == fb->root_bus;
	int common = t->spots[a].up, other = t->spots[b].up;

	/* The lower one goes up, until both are at the bridge above a and b; -1: there is none. */
	while (common != other) {
		if (common < 0 || other < 0)
			common = other = -1;
		else if (t->spots[common].depth > t->spots[other].depth)
			common = t->spots[common].up;
		else
			other = t->spots[other].up;
	}
	if (common >= 0 && t->spots[common].up >= 0) {
		path.bridges = 1 + switches_to(t, a, common) + switches_to(t, b, common);
		path.class = path.bridges == 1 ? TOPO_PIX : TOPO_PXB;
	} else if (common >= 0 || same_root) {
		path.class = TOPO_PHB;
	} else {
		path.class = a == b ? TOPO_PHB : across_roots(t, a, b);
	}
	return path;
}

static void take_nearer(struct topo_path *path, struct topo_path other)
{
	if (other.class > path->class ||
	    (other.class == path->class && other.bridges >= path->bridges))
		return;
	*path = other;
	path->direct = true;
}

static struct topo_path between(const struct topo *t, int pci_a, int pci_b, bool with_direct)
{
	int a, b, direct_a, direct_b;
	struct topo_path path;

	assert(pci_a >= 0 && (size_t)pci_a < t->inv->n_pci && pci_b >= 0 &&
	       (size_t)pci_b < t->inv->n_pci);
	if (pci_a == pci_b)
		return (struct topo_path) { TOPO_SELF, -1, false };
	a = t->spots[pci_a].place;
	b = t->spots[pci_b].place;
	/* Where both switches are known from elsewhere, the tree does not count. */
	if (t->spots[a].group >= 0 && t->spots[b].group >= 0)
		return t->spots[a].group == t->spots[b].group
			       ? (struct topo_path) { TOPO_PIX, 1, false }
			       : (struct topo_path) { across_roots(t, a, b), -1, false };
	path = between_spots(t, a, b);
	if (!with_direct)
		return path;
	direct_a = t->spots[a].direct;
	direct_b = t->spots[b].direct;
	if (direct_a >= 0)
		take_nearer(&path, between_spots(t, direct_a, b));
	if (direct_b >= 0)
		take_nearer(&path, between_spots(t, a, direct_b));
	if (direct_a >= 0 && direct_b >= 0)
		take_nearer(&path, between_spots(t, direct_a, direct_b));
	return path;
}

struct topo_path topo_between(const struct topo *t, int pci_a, int pci_b)
{
	return between(t, pci_a, pci_b, true);
}

struct topo_path topo_between_functions(const struct topo *t, int pci_a, int pci_b)
{
	return between(t, pci_a, pci_b, false);
}

void topo_forget_direct(struct topo *t)
{
	for (size_t i = 0; i < t->inv->n_pci; i++)
		t->spots[i].direct = -1;
}

int topo_direct(const struct topo *t, int pci)
{
	return t->spots[t->spots[pci].place].direct;
}

static bool looks_flattened(const struct topo *t)
{
	const struct hw_inventory *inv = t->inv;
	bool all_on_root = true, any_nic = false;

	if (inv->n_gpu == 0)
		return false;
	for (size_t i = 0; i < inv->n_gpu; i++)
		all_on_root = all_on_root && t->spots[inv->gpu[i].pci].up < 0;
	for (int i = 0; i < (int)inv->n_pci; i++) {
		if (!hw_is_own_nic(t->inv, i))
			continue;
		for (size_t g = 0; g < inv->n_gpu; g++)
			if (topo_between(t, inv->gpu[g].pci, i).class < TOPO_PHB)
				return false;
		any_nic = true;
		all_on_root = all_on_root && t->spots[i].up < 0;
	}
	return any_nic && (inv->hypervisor || all_on_root);
}

struct topo *topo_new(const struct hw_inventory *inv, const struct topo_hints *hints)
{
	struct topo *t = xcalloc(1, sizeof(*t));
	int node = inv->n_numa > 0 ? inv->numa[0].id : -1;

	t->inv = inv;
	t->spots = xcalloc(inv->n_pci + 1, sizeof(*t->spots));
	for (size_t i = 0; i < inv->n_pci; i++)
		t->spots[i] = (struct spot) {
			.place = -1, .up = -1, .direct = -1, .numa = -1, .group = -1
		};
	for (size_t i = 0; i < inv->n_pci; i++)
		place_chain(t, (int)i);
	for (size_t i = 0; i < inv->n_card; i++)
		t->spots[inv->card[i].pci].direct = inv->card[i].direct;
	/* Do two different nodes appear anywhere? */
	t->one_node = inv->n_numa <= 1;
	for (size_t i = 0; i < inv->n_pci; i++) {
		int numa = inv->pci[i].numa;

		if (numa >= 0 && node >= 0 && numa != node)
			t->one_node = false;
		if (numa >= 0)
			node = numa;
	}
	t->flattened = looks_flattened(t);
	apply_hints(t, hints);
	return t;
}

void topo_free(struct topo *t)
{
	if (!t)
		return;
	free(t->spots);
	for (size_t i = 0; i < t->n_notes; i++)
		free(t->notes[i]);
	free(t->notes);
	free(t);
}

bool topo_flattened_vm(const struct topo *t)
{
	return t->flattened;
}

struct topo_rails {
	const struct topo *t;
	struct topo_rail *of; /* by PCI index; set for places only */
	bool named;
	int n_by_gpus;
	char **notes;
	size_t n_notes;
};

/* --- the operator's names --- */

/* By its address, its interface or its RDMA device. */
static int find_named(const struct hw_inventory *inv, const char *name)
{
	char bdf[BDF_STRLEN];

	for (int i = 0; i < (int)inv->n_pci; i++) {
		bool is_named = str_eq(name, bdf_format(inv->pci[i].bdf, bdf)) ||
				str_eq(name, inv->pci[i].netdev);

		for (size_t k = 0; k < inv->n_rdma; k++)
			is_named |= inv->rdma[k].pci == i && str_eq(name, inv->rdma[k].name);
		if (is_named && hw_is_own_nic(inv, i))
			return i;
	}
	return -1;
}

/* --- the order of NICs --- */

struct card;

struct nic {
	int pci;
	const struct hw_neighbor *leaf; /* NULL: not known */
	struct card *card;
	bool near; /* to some GPU, and none is nearer to that */
};

/* By switch and port there, numbers in names as numbers; by address where that is not known. */
static int by_leaf(const void *a, const void *b)
{
	const struct nic *x = a, *y = b;
	int c = 0;

	if (!x->leaf != !y->leaf)
		return x->leaf ? -1 : 1;
	if (x->leaf)
		c = strverscmp(x->leaf->name, y->leaf->name);
	if (x->leaf && !c)
		c = strverscmp(x->leaf->port, y->leaf->port);
	return c ? c : x->pci - y->pci;
}

static void sort_nics(struct nic *nics, size_t n)
{
	if (n > 1)
		qsort(nics, n, sizeof(*nics), by_leaf);
}

/* --- the order of the GPUs --- */

struct card {
	int n_gpus;  /* GPUs to which one of its NICs is nearest */
	int n_ports; /* NICs that are nearest to some GPU */
	int last_gpu;
	int rail, n_numbered;
};

struct nics {
	struct nic *v;
	size_t n;
	struct card *cards;
	size_t n_cards;
};

/* Of VPD, where it was read (machines with Data Direct). */
static const char *board_of(const struct hw_inventory *inv, int pci)
{
	for (size_t i = 0; i < inv->n_card; i++)
		if (inv->card[i].pci == pci)
			return inv->card[i].board;
	return NULL;
}

static void find_nics(const struct topo *t, struct nics *nics)
{
	bool *has_rdma = xcalloc(t->inv->n_pci + 1, sizeof(*has_rdma));

	for (size_t i = 0; i < t->inv->n_rdma; i++)
		if (t->inv->rdma[i].pci >= 0)
			has_rdma[topo_place(t, t->inv->rdma[i].pci)] = true;
	nics->v = xcalloc(t->inv->n_pci + 1, sizeof(*nics->v));
	nics->cards = xcalloc(t->inv->n_pci + 1, sizeof(*nics->cards));
	for (int i = 0; i < (int)t->inv->n_pci; i++) {
		struct bdf mine = t->inv->pci[i].bdf;
		const char *board = board_of(t->inv, i);
		struct card *card = NULL;

		if (!has_rdma[i] || !hw_is_own_nic(t->inv, i))
			continue;
		for (size_t k = nics->n; !card && k-- > 0;) {
			struct bdf other = t->inv->pci[nics->v[k].pci].bdf;

			other.fn = mine.fn;
			if (bdf_cmp(mine, other) == 0 ||
			    (board && str_eq(board, board_of(t->inv, nics->v[k].pci))))
				card = nics->v[k].card;
			else if (!board)
				break; /* they come in the order of addresses */
		}
		if (!card)
			card = &nics->cards[nics->n_cards++];
		card->rail = card->last_gpu = -1;
		nics->v[nics->n++] = (struct nic) { i, hw_find_neighbor(t->inv, i), card, false };
	}
	sort_nics(nics->v, nics->n);
	free(has_rdma);
}

/* The cards that are nearest to the GPU get the next numbers; how many, is known when every GPU was
 * looked at. */
static void note_nearest(const struct topo *t, struct nics *nics, int g, struct card **order,
			 size_t *n_order)
{
	enum topo_class best = TOPO_CLASS_MAX, *class = xcalloc(nics->n + 1, sizeof(*class));

	for (size_t i = 0; i < nics->n; i++) {
		class[i] = topo_between(t, t->inv->gpu[g].pci, nics->v[i].pci).class;
		best = class[i] < best ? class[i] : best;
	}
	for (size_t i = 0; i < nics->n; i++) {
		struct nic *nic = &nics->v[i];

		if (class[i] != best)
			continue;
		if (nic->card->last_gpu < 0)
			order[(*n_order)++] = nic->card;
		nic->card->n_gpus += nic->card->last_gpu != g;
		nic->card->last_gpu = g;
		nic->card->n_ports += !nic->near;
		nic->near = true;
	}
	free(class);
}

static int rails_of_card(const struct card *card)
{
	return card->n_ports < card->n_gpus ? card->n_ports : card->n_gpus;
}

static void set_by_gpus(struct topo_rails *r)
{
	struct nics nics = { 0 };
	struct card **order;
	size_t n_order = 0;
	int next = 0;

	find_nics(r->t, &nics);
	order = xcalloc(nics.n_cards + 1, sizeof(struct card *));
	for (size_t g = 0; g < r->t->inv->n_gpu; g++)
		note_nearest(r->t, &nics, (int)g, order, &n_order);
	for (size_t i = 0; i < n_order; i++) {
		order[i]->rail = next;
		next += rails_of_card(order[i]);
	}
	r->n_by_gpus = next;
	for (size_t i = 0; i < nics.n; i++) {
		struct card *card = nics.v[i].card;

		if (nics.v[i].near)
			r->of[nics.v[i].pci].rail = card->rail + card->n_numbered++ *
									 rails_of_card(card) /
									 card->n_ports;
		else if (nics.v[i].leaf)
			r->of[nics.v[i].pci].rail = next++;
	}
	free(order);
	free(nics.cards);
	free(nics.v);
}

/* --- planes --- */

static void set_planes(struct topo_rails *r)
{
	const struct hw_inventory *inv = r->t->inv;
	struct topo_rail *said = xcalloc(inv->n_pci + 1, sizeof(*said)), at;
	int *nics = xcalloc(TOPO_RAIL_MAX + 1, sizeof(*nics));
	int *next = xcalloc(TOPO_RAIL_MAX + 1, sizeof(*next));
	struct nic *on = xcalloc(inv->n_pci + 1, sizeof(*on));
	size_t n_said = 0, n_on = 0;
	bool taken;

	for (int i = 0; i < (int)inv->n_pci; i++) {
		if (r->of[i].rail >= 0 && r->of[i].rail <= TOPO_RAIL_MAX) {
			nics[r->of[i].rail]++;
			on[n_on++] = (struct nic) { .pci = i, .leaf = hw_find_neighbor(inv, i) };
		}
		if (r->of[i].plane >= 0)
			said[n_said++] = r->of[i];
	}
	sort_nics(on, n_on);
	for (size_t i = 0; i < n_on; i++) {
		at = r->of[on[i].pci];
		if (at.plane >= 0 || nics[at.rail] == 1)
			continue;
		do {
			at.plane = next[at.rail]++;
			taken = false;
			for (size_t k = 0; k < n_said; k++)
				taken |= said[k].rail == at.rail && said[k].plane == at.plane;
		} while (taken);
		r->of[on[i].pci] = at;
	}
	free(on);
	free(next);
	free(nics);
	free(said);
}

struct topo_rails *topo_rails_new(const struct topo *t, const struct topo_rail_name *names,
				  size_t n)
{
	struct topo_rails *r = xcalloc(1, sizeof(*r));

	r->t = t;
	r->of = xcalloc(t->inv->n_pci + 1, sizeof(*r->of));
	for (size_t i = 0; i < t->inv->n_pci; i++)
		r->of[i] = (struct topo_rail) { -1, -1 };
	r->named = n > 0;
	if (r->named)
		r->notes = xcalloc(n, sizeof(*r->notes));
	else
		set_by_gpus(r);
	for (size_t i = 0; i < n; i++) {
		int nic = find_named(t->inv, names[i].nic);

		if (nic >= 0)
			r->of[nic] =
				(struct topo_rail) { names[i].rail,
						     names[i].has_plane ? names[i].plane : -1 };
		else
			r->notes[r->n_notes++] =
				xasprintf("rails: %s is not a NIC of this node", names[i].nic);
	}
	set_planes(r);
	return r;
}

void topo_rails_free(struct topo_rails *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_notes; i++)
		free(r->notes[i]);
	free(r->notes);
	free(r->of);
	free(r);
}

struct topo_rail topo_rails_of(const struct topo_rails *r, int pci)
{
	return !r || pci < 0 ? (struct topo_rail) { -1, -1 } : r->of[topo_place(r->t, pci)];
}

bool topo_rails_are_named(const struct topo_rails *r)
{
	return r && r->named;
}

int topo_rails_by_gpus(const struct topo_rails *r)
{
	return r->n_by_gpus;
}

const char *const *topo_rails_notes(const struct topo_rails *r, size_t *ret_n)
{
	*ret_n = r->n_notes;
	return (const char *const *)r->notes;
}
