/* GPUs unknown: the part of the machine where they are expected (align.h, "zones"). */
#include <string.h>

#include "align/align-internal.h"
#include "base/arena.h"

enum { MUST_OUTSIDE, GPUS_COVERED, GPUS_AT_HOME, BEYOND_NODE, ZONE_EXCESS, KIND };

#define NODE_RANK 3

/* Places are in one zone when links of at most this rank connect them; the last kind is all places.
 */
static const int kinds[] = { 1, 2, NODE_RANK, ALIGN_RANKS };
#define N_KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))

struct zones {
	const struct problem *p;
	const uint8_t *nearest; /* n_free × n_places */
	int *label;		/* place → first place of its zone, for the kind at hand */
	int n_nodes;		/* zones of the NODE kind */
};

struct zone {
	int first, kind;
	struct value value;
};

static int place_rank(const struct problem *p, int a, int b)
{
	return p->in->place_rank ? p->in->place_rank[(size_t)a * p->in->n_places + (size_t)b] : 0;
}

static void spread_label(struct zones *z, int from, int label, int rank)
{
	z->label[from] = label;
	for (int i = 0; i < z->p->n_places; i++)
		if (z->label[i] < 0 && z->p->avail[i] > 0 && place_rank(z->p, from, i) <= rank)
			spread_label(z, i, label, rank);
}

/* Returns the number of zones; places without VFs belong to none. */
static int label_places(struct zones *z, int rank)
{
	int n = 0;

	for (int i = 0; i < z->p->n_places; i++)
		z->label[i] = -1;
	for (int i = 0; i < z->p->n_places; i++) {
		if (z->label[i] >= 0 || z->p->avail[i] == 0)
			continue;
		n++;
		if (rank < ALIGN_RANKS) {
			spread_label(z, i, i, rank);
			continue;
		}
		for (int k = i; k < z->p->n_places; k++)
			z->label[k] = z->p->avail[k] > 0 ? i : -1;
	}
	return n;
}

static bool at_home(const struct zones *z, int free_gpu, int zone)
{
	const uint8_t *near = z->nearest + (size_t)free_gpu * z->p->in->n_places;
	bool any = false;

	for (int i = 0; i < z->p->n_places; i++) {
		if (near[i] && z->label[i] != zone)
			return false;
		any = any || near[i];
	}
	return any;
}

/* Judge a zone; false when its VFs and the must ones do not suffice. */
static bool judge(const struct zones *z, struct zone *zone)
{
	const struct problem *p = z->p;
	int must = 0, outside = 0, forced = 0, firsts = 0, limit = 0, home = 0, rest;
	int64_t *key = zone->value.key;

	for (int i = 0; i < p->n_places; i++) {
		bool in = z->label[i] == zone->first;

		must += p->must[i];
		forced += p->must[i] > 0 ? p->must[i] - 1 : 0;
		outside += in ? 0 : p->must[i];
		limit += in ? p->limit[i] : 0;
		firsts += in && p->must[i] == 0 && p->limit[i] > 0;
	}
	for (int f = 0; f < (int)p->in->n_free; f++)
		home += at_home(z, f, zone->first);
	rest = p->v - must - firsts;
	key[MUST_OUTSIDE] = outside;
	key[GPUS_COVERED] = home < p->v ? -home : -p->v;
	key[GPUS_AT_HOME] = home;
	key[BEYOND_NODE] = kinds[zone->kind] > NODE_RANK && z->n_nodes > 1;
	key[ZONE_EXCESS] = forced + (rest > 0 ? rest : 0);
	key[KIND] = zone->kind;
	return limit + outside >= p->v;
}

static bool find_best(struct zones *z, struct zone *ret)
{
	bool found = false;

	for (int kind = z->p->in->place_rank ? 0 : N_KINDS - 1; kind < N_KINDS; kind++) {
		label_places(z, kinds[kind]);
		for (int i = 0; i < z->p->n_places; i++) {
			struct zone zone = { .first = i, .kind = kind };

			if (z->label[i] != i || !judge(z, &zone))
				continue;
			if (found && value_cmp(&zone.value, &ret->value) >= 0)
				continue;
			*ret = zone;
			found = true;
		}
	}
	return found;
}

bool zone_choose(struct problem *p, struct value *ret)
{
	size_t places = p->in->n_places;
	uint8_t *near = arena_array(p->arena, p->in->n_free, places), *rank;
	struct zones z = { .p = p, .nearest = near };
	struct zone best = { .first = -1 };

	for (int f = 0; f < (int)p->in->n_free; f++)
		problem_nearest(p, f, near + (size_t)f * places);

	z.label = arena_array(p->arena, places, sizeof(*z.label));
	z.n_nodes = p->in->place_rank ? label_places(&z, NODE_RANK) : 1;
	if (!find_best(&z, &best))
		return false;
	label_places(&z, kinds[best.kind]);
	/* The GPUs at home are the rows; without any, one row that is near to everything. */
	rank = arena_array(p->arena, p->in->n_free + 1, places);
	for (int f = 0; f < (int)p->in->n_free; f++)
		if (at_home(&z, f, best.first))
			memcpy(rank + (size_t)p->n_rows++ * places,
			       p->in->free_rank + (size_t)f * places, places);
	p->n_rows = p->n_rows > 0 ? p->n_rows : 1;
	p->rank = rank;
	p->optional = true;
	for (int i = 0; i < p->n_places; i++)
		if (z.label[i] != best.first)
			p->limit[i] = p->must[i];
	*ret = best.value;
	return true;
}
