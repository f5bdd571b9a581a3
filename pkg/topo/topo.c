#include "topo/topo.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "hw/inventory.h"
#include "topo/hints.h"
#include "topo/topo-internal.h"

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
