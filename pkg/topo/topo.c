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

/* topo_check() looks at all pairs up to this many functions, beyond at a regular sample. */
#define CHECK_ALL 400

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

/*
 * Below a root port (depth 0) upstream ports have odd depths, downstream ports even ones. A
 * sub-switch is its upstream port; the parent switch's is two bridges up. A parent that was itself
 * fused into its own parent takes no sub-switch: NCCL marks it.
 */
static bool is_fused(const struct topo *t, int pci)
{
	const struct spot *s = &t->spots[pci];
	int upper = s->up >= 0 ? t->spots[s->up].up : -1;

	if (s->depth % 2 == 0 || upper < 0 || t->spots[upper].up < 0)
		return false;
	return !t->spots[upper].is_fused && is_two_level(&t->inv->pci[upper], &t->inv->pci[pci]);
}

static int chain_length(const struct hw_inventory *inv, int pci)
{
	int n = 0;

	while (inv->pci[pci].parent >= 0 && n <= MAX_CHAIN) {
		pci = inv->pci[pci].parent;
		n++;
	}
	return n;
}

/* Fill in the spots of a function and of the bridges above it, from the top down. */
static void place_chain(struct topo *t, int pci)
{
	struct spot *s = &t->spots[pci];
	const struct hw_pci *f = &t->inv->pci[pci];
	int length;

	if (s->place >= 0)
		return;
	length = chain_length(t->inv, pci);
	s->place = f->physfn >= 0 ? f->physfn : pci;
	s->numa = f->numa;
	s->up = length > MAX_CHAIN ? -1 : f->parent;
	if (s->up < 0)
		return;
	place_chain(t, s->up);
	s->depth = (int16_t)length;
	s->fused = t->spots[s->up].fused;
	s->is_fused = is_fused(t, pci);
	if (s->is_fused)
		s->fused++;
}

/* Do two different nodes appear anywhere? */
static bool has_one_node(const struct hw_inventory *inv)
{
	int node = inv->n_numa > 0 ? inv->numa[0].id : -1;

	if (inv->n_numa > 1)
		return false;
	for (size_t i = 0; i < inv->n_pci; i++) {
		int numa = inv->pci[i].numa;

		if (numa >= 0 && node >= 0 && numa != node)
			return false;
		if (numa >= 0)
			node = numa;
	}
	return true;
}

int topo_place(const struct topo *t, int pci)
{
	return t->spots[pci].place;
}

bool topo_is_fused(const struct topo *t, int pci)
{
	return t->spots[pci].is_fused;
}

static int common_bridge(const struct topo *t, int a, int b)
{
	a = t->spots[a].up;
	b = t->spots[b].up;
	while (a != b) {
		if (a < 0 || b < 0)
			return -1;
		if (t->spots[a].depth > t->spots[b].depth)
			a = t->spots[a].up;
		else
			b = t->spots[b].up;
	}
	return a;
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

static bool same_root(const struct hw_pci *a, const struct hw_pci *b)
{
	return a->has_root && b->has_root && a->root_domain == b->root_domain &&
	       a->root_bus == b->root_bus;
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

/* The tree has no say where both switches are known from elsewhere. */
static struct topo_path between_groups(const struct topo *t, int a, int b)
{
	if (t->spots[a].group == t->spots[b].group)
		return (struct topo_path) { TOPO_PIX, 1, false };
	return (struct topo_path) { across_roots(t, a, b), -1, false };
}

static struct topo_path between_spots(const struct topo *t, int a, int b)
{
	struct topo_path path = { TOPO_SELF, -1, false };
	int common = common_bridge(t, a, b);

	if (common >= 0 && t->spots[common].up >= 0) {
		path.bridges = 1 + switches_to(t, a, common) + switches_to(t, b, common);
		path.class = path.bridges == 1 ? TOPO_PIX : TOPO_PXB;
	} else if (common >= 0 || same_root(&t->inv->pci[a], &t->inv->pci[b])) {
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

struct topo_path topo_between(const struct topo *t, int pci_a, int pci_b)
{
	int a, b, direct_a, direct_b;
	struct topo_path path;

	assert(pci_a >= 0 && (size_t)pci_a < t->inv->n_pci && pci_b >= 0 &&
	       (size_t)pci_b < t->inv->n_pci);
	if (pci_a == pci_b)
		return (struct topo_path) { TOPO_SELF, -1, false };
	a = t->spots[pci_a].place;
	b = t->spots[pci_b].place;
	if (t->spots[a].group >= 0 && t->spots[b].group >= 0)
		return between_groups(t, a, b);
	path = between_spots(t, a, b);
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

int topo_direct(const struct topo *t, int pci)
{
	return t->spots[t->spots[pci].place].direct;
}

static bool is_close_to_a_gpu(const struct topo *t, int pci)
{
	for (size_t i = 0; i < t->inv->n_gpu; i++)
		if (topo_between(t, t->inv->gpu[i].pci, pci).class < TOPO_PHB)
			return true;
	return false;
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
		if (is_close_to_a_gpu(t, i))
			return false;
		any_nic = true;
		all_on_root = all_on_root && t->spots[i].up < 0;
	}
	return any_nic && (inv->hypervisor || all_on_root);
}

struct topo *topo_new_hinted(const struct hw_inventory *inv, const struct topo_hints *hints)
{
	struct topo *t = xcalloc(1, sizeof(*t));

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
	t->one_node = has_one_node(inv);
	t->flattened = looks_flattened(t);
	apply_hints(t, hints);
	return t;
}

struct topo *topo_new(const struct hw_inventory *inv)
{
	return topo_new_hinted(inv, NULL);
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

static void check_pair(const struct topo *t, int a, int b)
{
	struct topo_path ab = topo_between(t, a, b), ba = topo_between(t, b, a);

	assert(ab.class == ba.class && ab.bridges == ba.bridges && ab.direct == ba.direct);
	assert((ab.class == TOPO_SELF) == (a == b));
	assert((ab.bridges >= 1) == (ab.class == TOPO_PIX || ab.class == TOPO_PXB));
	assert(ab.class != TOPO_PIX || ab.bridges == 1);
	assert(ab.class != TOPO_PXB || ab.bridges > 1);
}

static void check_place(const struct topo *t, int vf, int other)
{
	struct topo_path own, of_pf;
	int place = topo_place(t, vf);

	assert(topo_place(t, place) == place);
	if (place == vf || other == vf || other == place)
		return;
	own = topo_between(t, vf, other);
	of_pf = topo_between(t, place, other);
	assert(own.class == of_pf.class && own.bridges == of_pf.bridges &&
	       own.direct == of_pf.direct);
}

void topo_check(const struct topo *t)
{
	int n = (int)t->inv->n_pci, step = 1 + n / CHECK_ALL;

	for (int a = 0; a < n; a += step) {
		for (int b = 0; b < n; b += step) {
			check_pair(t, a, b);
			check_place(t, a, b);
		}
	}
}
