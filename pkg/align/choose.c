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

/* With more places than this, holders are not packed by distance: all are one zone, and no table of
 * every distance is made. */
#define MAX_PACKED_PLACES 256

/* The devices that the numbers of one align_in stand for. */
struct search {
	const struct choose_in *in;
	struct arena *arena;
	int *devs; /* VF number → pool index; by rail, plane and address */
	int *gpus; /* GPU number → PCI index, ascending */
	int *free_gpus;
	int *places; /* place number → PCI index */
	struct align_in numbers;
};

/* A device that vanished is nowhere: a place of its own, far from everything. */
static struct topo_path path_between(const struct search *s, int pci_a, int pci_b)
{
	if (pci_a < 0 || pci_b < 0)
		return (struct topo_path) { TOPO_SYS, -1, false };
	return pool_between(s->in->pool, s->in->node->topo, pci_a, pci_b);
}

/* Every port of its RDMA device is known not to be ACTIVE. A VF without one here, or that is away,
 * is not known to be down. */
static bool is_down(const struct search *s, int pci)
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

/* Places are numbered in the order in which the VFs name them. */
static void set_vfs(struct search *s, const int *devs, size_t n)
{
	_cleanup_free_ struct ranked *ranked = xcalloc(n + 1, sizeof(*ranked));
	const struct topo_rails *rails = s->in->node->rails;
	struct align_vf *vfs = arena_array(s->arena, n, sizeof(*vfs));
	size_t *number =
		arena_array(s->arena, s->in->node->inv->n_pci, sizeof(*number)); /* from 1 */
	size_t n_places = 0;

	for (size_t i = 0; i < n; i++)
		ranked[i] =
			(struct ranked) { devs[i],
					  topo_rails_of(rails, s->in->pool->devs[devs[i]].pci) };
	qsort(ranked, n, sizeof(*ranked), by_rail);
	s->devs = arena_array(s->arena, n, sizeof(*s->devs));
	for (size_t i = 0; i < n; i++)
		s->devs[i] = ranked[i].dev;
	s->places = arena_array(s->arena, n, sizeof(*s->places));
	for (size_t i = 0; i < n; i++) {
		int pci = s->in->pool->devs[s->devs[i]].pci;
		int place = pci >= 0 ? topo_place(s->in->node->topo, pci) : -1;

		if (place < 0 || number[place] == 0)
			s->places[n_places++] = place;
		if (place >= 0 && number[place] == 0)
			number[place] = n_places;
		vfs[i].place = (int)(place >= 0 ? number[place] : n_places) - 1;
		vfs[i].index = pci >= 0 ? s->in->node->inv->pci[pci].vf_index : -1;
		vfs[i].must = list_has_int(s->in->must, s->in->n_must, s->devs[i]);
		vfs[i].down = is_down(s, pci);
	}
	s->numbers.vfs = vfs;
	s->numbers.n_vfs = n;
	s->numbers.n_places = n_places;
}

static const uint8_t *ranks_to_places(const struct search *s, const int *from, size_t n)
{
	size_t places = s->numbers.n_places;
	uint8_t *rank = arena_array(s->arena, n, places);

	for (size_t i = 0; i < n; i++)
		for (size_t p = 0; p < places; p++)
			rank[i * places + p] =
				(uint8_t)topo_rank(path_between(s, from[i], s->places[p]).class);
	return rank;
}

static struct search begin_search(const struct choose_in *in, const int *devs, size_t n_devs,
				  struct arena *arena)
{
	struct search s = { .in = in, .arena = arena };

	set_vfs(&s, devs, n_devs);
	s.gpus = arena_array(arena, in->gpus.n, sizeof(*s.gpus));
	if (in->gpus.n > 0)
		memcpy(s.gpus, in->gpus.v, in->gpus.n * sizeof(*s.gpus));
	qsort(s.gpus, in->gpus.n, sizeof(*s.gpus), list_by_int);
	s.numbers.n_gpus = in->gpus.n;
	s.numbers.gpu_rank = ranks_to_places(&s, s.gpus, in->gpus.n);
	s.numbers.want = in->want;
	s.numbers.drawn = in->drawn;
	return s;
}

static int *to_devs(const struct search *s, const int *vfs, size_t n)
{
	int *out = arena_array(s->arena, n, sizeof(*out));

	for (size_t i = 0; i < n; i++)
		out[i] = s->devs[vfs[i]];
	qsort(out, n, sizeof(*out), list_by_int);
	return out;
}

static void set_pairs(const struct search *s, const struct align_out *solved,
		      struct choose_out *out)
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

static struct choose_out choose(const struct choose_in *in, bool with_runner_up,
				struct arena *arena)
{
	const struct hw_inventory *inv = in->node->inv;
	struct search s = begin_search(in, in->available, in->n_available, arena);
	struct choose_out out = { 0 };
	struct align_out best, second;

	s.free_gpus = arena_array(arena, inv->n_gpu, sizeof(*s.free_gpus));
	for (size_t i = 0; i < inv->n_gpu; i++) {
		int pci = inv->gpu[i].pci;

		if (!list_has_int(in->gpus.v, in->gpus.n, pci) &&
		    !list_has_int(in->busy_gpus.v, in->busy_gpus.n, pci))
			s.free_gpus[s.numbers.n_free++] = pci;
	}
	s.numbers.free_rank = ranks_to_places(&s, s.free_gpus, s.numbers.n_free);
	if (in->gpus.n == 0 && s.numbers.n_places <= MAX_PACKED_PLACES)
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

/* How many of `want` VFs are for the GPUs that are known: each GPU counts alike. */
static size_t known_part(const struct gpu_set *gpus, size_t want)
{
	size_t all = gpus->n + gpus->n_unknown, part = (want * gpus->n + all / 2) / all;

	return part ? part : want > 0;
}

/* Those of `available` that are not chosen yet. */
static int *rest_of(const struct choose_in *in, const struct choose_out *out, struct arena *arena,
		    size_t *ret_n)
{
	int *rest = arena_array(arena, in->n_available, sizeof(*rest));

	*ret_n = 0;
	for (size_t i = 0; i < in->n_available; i++) {
		if (!list_has_int(out->chosen, out->n_chosen, in->available[i]))
			rest[(*ret_n)++] = in->available[i];
	}
	return rest;
}

/* For the GPUs that are known first, then for as many that are not. */
static struct choose_out choose_in_part(const struct choose_in *in, struct arena *arena)
{
	struct choose_in first = *in, second = *in;
	struct choose_out out, more;
	int *all, *busy = arena_array(arena, in->busy_gpus.n + in->gpus.n, sizeof(*busy));

	first.gpus.n_unknown = 0;
	first.want = known_part(&in->gpus, in->want);
	out = choose(&first, false, arena);
	if (out.n_chosen >= in->want)
		return out;
	for (size_t i = 0; i < in->busy_gpus.n; i++)
		busy[i] = in->busy_gpus.v[i];
	for (size_t i = 0; i < in->gpus.n; i++)
		busy[in->busy_gpus.n + i] = in->gpus.v[i];
	second.busy_gpus = (struct gpu_set) { busy, in->busy_gpus.n + in->gpus.n, 0 };
	second.gpus = (struct gpu_set) { 0 };
	second.available = rest_of(in, &out, arena, &second.n_available);
	second.n_must = 0;
	second.want = in->want - out.n_chosen;
	more = choose(&second, false, arena);
	all = arena_array(arena, out.n_chosen + more.n_chosen, sizeof(*all));
	for (size_t i = 0; i < out.n_chosen; i++)
		all[i] = out.chosen[i];
	for (size_t i = 0; i < more.n_chosen; i++)
		all[out.n_chosen + i] = more.chosen[i];
	out.chosen = all;
	out.n_chosen += more.n_chosen;
	qsort(all, out.n_chosen, sizeof(*all), list_by_int);
	return out;
}

struct choose_out align_choose(const struct choose_in *in, bool with_runner_up, struct arena *arena)
{
	return in->gpus.n && in->gpus.n_unknown ? choose_in_part(in, arena)
						: choose(in, with_runner_up, arena);
}

struct choose_out align_pairs(const struct choose_in *in, const int *devs, size_t n_devs,
			      struct arena *arena)
{
	struct search s = begin_search(in, devs, n_devs, arena);
	int *all = arena_array(arena, n_devs, sizeof(*all));
	struct choose_out out = { 0 };
	struct align_out solved;

	for (size_t i = 0; i < n_devs; i++)
		all[i] = (int)i;
	if (in->gpus.n && in->gpus.n_unknown) {
		s.numbers.want = known_part(&in->gpus, n_devs);
		solved = align_solve(&s.numbers, arena);
	} else {
		solved = align_assign(&s.numbers, all, n_devs, arena);
	}
	out.chosen = to_devs(&s, all, n_devs);
	out.n_chosen = n_devs;
	set_pairs(&s, &solved, &out);
	return out;
}
