#include "align/choose.h"

#include <stdlib.h>
#include <string.h>

#include "align/align.h"
#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "topo/rails.h"

/* Beyond this many places nobody packs by distance: one zone, and no table of all with all. */
#define MAX_PACKED_PLACES 256

/* What the numbers of one align_in stand for. */
struct scene {
	const struct choose_in *in;
	struct arena *arena;
	int *devs; /* VF number → pool index; by rail, plane and address */
	int *gpus; /* GPU number → PCI index, ascending */
	int *free_gpus;
	int *places; /* place number → PCI index */
	struct align_in numbers;
};

static int *sorted(const int *list, size_t n, struct arena *arena)
{
	int *out = arena_array(arena, n, sizeof(*out));

	if (n > 0)
		memcpy(out, list, n * sizeof(*out));
	qsort(out, n, sizeof(*out), list_by_int);
	return out;
}

/* A device that vanished is nowhere: a place of its own, far from everything. */
static struct topo_path path_between(const struct scene *s, int pci_a, int pci_b)
{
	if (pci_a < 0 || pci_b < 0)
		return (struct topo_path) { TOPO_SYS, -1, false };
	return topo_between(s->in->node->topo, pci_a, pci_b);
}

static int place_of(const struct scene *s, int pci)
{
	return pci >= 0 ? topo_place(s->in->node->topo, pci) : -1;
}

static int vf_index(const struct scene *s, int pci)
{
	return pci >= 0 ? s->in->node->inv->pci[pci].vf_index : -1;
}

/* Every port of its RDMA device is known not to be ACTIVE. What has none here, or is away, is not
 * known to be. */
static bool is_down(const struct scene *s, int pci)
{
	const struct hw_inventory *inv = s->in->node->inv;
	int rdma = pci >= 0 ? hw_find_rdma(inv, pci) : -1;

	if (rdma < 0 || !inv->rdma[rdma].n_ports)
		return false;
	for (size_t i = 0; i < inv->rdma[rdma].n_ports; i++) {
		const char *state = inv->rdma[rdma].ports[i].state;

		if (!state || !strcmp(state, "ACTIVE"))
			return false;
	}
	return true;
}

static bool is_must(const struct scene *s, int dev)
{
	return list_has_int(s->in->must, s->in->n_must, dev);
}

/* VFs of lower rails come first, so that among equals they are taken: containers that need a part
 * of the rails have the same ones on every node. */
struct ranked {
	int dev;
	struct topo_rail at;
};

static int by_rail(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->at.rail != y->at.rail) /* unknown ones, -1, behind all others */
		return (unsigned)x->at.rail < (unsigned)y->at.rail ? -1 : 1;
	if (x->at.plane != y->at.plane)
		return x->at.plane < y->at.plane ? -1 : 1;
	return (x->dev > y->dev) - (x->dev < y->dev);
}

static int *in_order_of_rails(const struct scene *s, const int *devs, size_t n)
{
	_cleanup_free_ struct ranked *ranked = xcalloc(n + 1, sizeof(*ranked));
	int *out = arena_array(s->arena, n, sizeof(*out));

	for (size_t i = 0; i < n; i++)
		ranked[i] =
			(struct ranked) { devs[i], topo_rails_of(s->in->node->rails,
								 s->in->pool->devs[devs[i]].pci) };
	qsort(ranked, n, sizeof(*ranked), by_rail);
	for (size_t i = 0; i < n; i++)
		out[i] = ranked[i].dev;
	return out;
}

/* Places are numbered in the order in which the VFs name them. */
static void set_vfs(struct scene *s, const int *devs, size_t n)
{
	struct align_vf *vfs = arena_array(s->arena, n, sizeof(*vfs));
	size_t *number =
		arena_array(s->arena, s->in->node->inv->n_pci, sizeof(*number)); /* from 1 */
	size_t n_places = 0;

	s->devs = in_order_of_rails(s, devs, n);
	s->places = arena_array(s->arena, n, sizeof(*s->places));
	for (size_t i = 0; i < n; i++) {
		int pci = s->in->pool->devs[s->devs[i]].pci, place = place_of(s, pci);

		if (place < 0 || number[place] == 0)
			s->places[n_places++] = place;
		if (place >= 0 && number[place] == 0)
			number[place] = n_places;
		vfs[i].place = (int)(place >= 0 ? number[place] : n_places) - 1;
		vfs[i].index = vf_index(s, pci);
		vfs[i].must = is_must(s, s->devs[i]);
		vfs[i].down = is_down(s, pci);
	}
	s->numbers.vfs = vfs;
	s->numbers.n_vfs = n;
	s->numbers.n_places = n_places;
}

static void set_free_gpus(struct scene *s)
{
	const struct hw_inventory *inv = s->in->node->inv;

	s->free_gpus = arena_array(s->arena, inv->n_gpu, sizeof(*s->free_gpus));
	for (size_t i = 0; i < inv->n_gpu; i++) {
		int pci = inv->gpu[i].pci;

		if (!list_has_int(s->in->gpus, s->in->n_gpus, pci) &&
		    !list_has_int(s->in->busy_gpus, s->in->n_busy_gpus, pci))
			s->free_gpus[s->numbers.n_free++] = pci;
	}
}

static const uint8_t *ranks_to_places(const struct scene *s, const int *from, size_t n)
{
	size_t places = s->numbers.n_places;
	uint8_t *rank = arena_array(s->arena, n, places);

	for (size_t i = 0; i < n; i++)
		for (size_t p = 0; p < places; p++)
			rank[i * places + p] =
				(uint8_t)topo_rank(path_between(s, from[i], s->places[p]).class);
	return rank;
}

static struct scene set_scene(const struct choose_in *in, const int *devs, size_t n_devs,
			      struct arena *arena)
{
	struct scene s = { .in = in, .arena = arena };

	set_vfs(&s, devs, n_devs);
	s.gpus = sorted(in->gpus, in->n_gpus, arena);
	s.numbers.n_gpus = in->n_gpus;
	s.numbers.gpu_rank = ranks_to_places(&s, s.gpus, in->n_gpus);
	s.numbers.want = in->want;
	s.numbers.drawn = in->drawn;
	return s;
}

static int *to_devs(const struct scene *s, const int *vfs, size_t n)
{
	int *out = arena_array(s->arena, n, sizeof(*out));

	for (size_t i = 0; i < n; i++)
		out[i] = s->devs[vfs[i]];
	qsort(out, n, sizeof(*out), list_by_int);
	return out;
}

static void set_pairs(const struct scene *s, const struct align_out *solved, struct choose_out *out)
{
	out->pairs = arena_array(s->arena, solved->n_pairs, sizeof(*out->pairs));
	out->n_pairs = solved->n_pairs;
	out->cost = solved->cost;
	for (size_t i = 0; i < solved->n_pairs; i++) {
		struct choose_pair *pair = &out->pairs[i];

		pair->gpu = s->gpus[solved->pairs[i].gpu];
		pair->dev = s->devs[solved->pairs[i].vf];
		pair->path = path_between(s, pair->gpu, s->in->pool->devs[pair->dev].pci);
	}
}

struct choose_out choose_vfs(const struct choose_in *in, bool with_runner_up, struct arena *arena)
{
	struct scene s = set_scene(in, in->available, in->n_available, arena);
	struct choose_out out = { 0 };
	struct align_out best, second;

	set_free_gpus(&s);
	s.numbers.free_rank = ranks_to_places(&s, s.free_gpus, s.numbers.n_free);
	if (in->n_gpus == 0 && s.numbers.n_places <= MAX_PACKED_PLACES)
		s.numbers.place_rank = ranks_to_places(&s, s.places, s.numbers.n_places);
	best = align_solve(&s.numbers, arena);
	out.chosen = to_devs(&s, best.chosen, best.n_chosen);
	out.n_chosen = best.n_chosen;
	set_pairs(&s, &best, &out);
	if (!with_runner_up)
		return out;
	second = align_runner_up(&s.numbers, &best, arena);
	out.runner_up = to_devs(&s, second.chosen, second.n_chosen);
	out.n_runner_up = second.n_chosen;
	out.runner_up_cost = second.cost;
	return out;
}

struct choose_out choose_pairs(const struct choose_in *in, const int *devs, size_t n_devs,
			       struct arena *arena)
{
	struct scene s = set_scene(in, devs, n_devs, arena);
	int *all = arena_array(arena, n_devs, sizeof(*all));
	struct choose_out out = { 0 };
	struct align_out solved;

	for (size_t i = 0; i < n_devs; i++)
		all[i] = (int)i;
	solved = align_assign(&s.numbers, all, n_devs, arena);
	out.chosen = to_devs(&s, all, n_devs);
	out.n_chosen = n_devs;
	set_pairs(&s, &solved, &out);
	return out;
}
