#include "unit/sim/bound.h"

#include <stdint.h>
#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "pool/node.h"
#include "sim/score-internal.h"
#include "topo/topo.h"

#define SIZES_MAX 8 /* VFs, and GPUs, of a container */

/* All choices of v VFs by place, and the worth of each for each set of k GPUs. */
struct table {
	size_t n_choices, n_sets;
	uint8_t *counts; /* n_choices × places */
	unsigned *sets;	 /* bit masks of GPUs */
	struct cell {
		bool known;
		uint8_t classes[ALIGN_RANKS];
		uint8_t rank;
	} * cells; /* n_choices × n_sets */
};

struct bound {
	const struct node *node;
	const struct pool *pool;
	struct arena *arena;
	const int *gpus;
	size_t n_gpus, n_places;
	int *place_of;				   /* by pool index */
	int *capacity;				   /* by place */
	struct table tables[SIZES_MAX][SIZES_MAX]; /* by VFs − 1, GPUs − 1 */
};

struct bound *sim_bound_new(const struct node *node, const struct pool *pool, const int *gpus,
			    size_t n_gpus, struct arena *arena)
{
	struct bound *b = arena_alloc(arena, sizeof(*b));
	int *places = arena_array(arena, pool->n_devs, sizeof(*places));

	*b = (struct bound) {
		.node = node, .pool = pool, .arena = arena, .gpus = gpus, .n_gpus = n_gpus
	};
	b->place_of = arena_array(arena, pool->n_devs, sizeof(*b->place_of));
	b->capacity = arena_array(arena, pool->n_devs, sizeof(*b->capacity));
	for (size_t i = 0; i < pool->n_devs; i++) {
		size_t at;
		int place;

		b->place_of[i] = -1;
		if (!pool->devs[i].healthy)
			continue;
		place = topo_place(node->topo, pool->devs[i].pci);
		at = 0;
		while (at < b->n_places && places[at] != place)
			at++;
		if (at == b->n_places)
			places[b->n_places++] = place;
		b->place_of[i] = (int)at;
		b->capacity[b->place_of[i]]++;
	}
	return b;
}

/* --- enumeration --- */

/* Every way to take v VFs from the places from `place` on; ret NULL: only count. */
static size_t list_choices(const struct bound *b, size_t place, size_t v, uint8_t *row,
			   uint8_t *ret)
{
	size_t n = 0;

	if (place == b->n_places) {
		if (!v && ret)
			memcpy(ret, row, b->n_places);
		return v == 0;
	}
	for (size_t c = 0; c <= v && c <= (size_t)b->capacity[place]; c++) {
		row[place] = (uint8_t)c;
		n += list_choices(b, place + 1, v - c, row, ret ? ret + n * b->n_places : NULL);
	}
	return n;
}

static size_t list_sets(const struct bound *b, size_t k, unsigned *ret)
{
	size_t n = 0;

	for (unsigned mask = 0; mask < 1u << b->n_gpus; mask++) {
		if ((size_t)__builtin_popcount(mask) != k)
			continue;
		if (ret)
			ret[n] = mask;
		n++;
	}
	return n;
}

/* NULL: too large. */
static struct table *table_of(struct bound *b, size_t v, size_t k)
{
	uint8_t *row = arena_array(b->arena, b->n_places, 1);
	struct table *t = &b->tables[v - 1][k - 1];

	if (t->cells)
		return t;
	t->n_choices = list_choices(b, 0, v, row, NULL);
	t->n_sets = list_sets(b, k, NULL);
	if (t->n_choices > BOUND_WORK_MAX || t->n_choices * t->n_sets > BOUND_WORK_MAX)
		return NULL;
	t->counts = arena_array(b->arena, t->n_choices, b->n_places);
	t->sets = arena_array(b->arena, t->n_sets, sizeof(*t->sets));
	t->cells = arena_array(b->arena, t->n_choices * t->n_sets, sizeof(*t->cells));
	list_choices(b, 0, v, row, t->counts);
	list_sets(b, k, t->sets);
	return t;
}

/* --- the worth of a choice for a set of GPUs --- */

static void compute(const struct bound *b, const struct table *t, size_t choice, size_t set,
		    struct cell *ret)
{
	_cleanup_arena_ struct arena *scratch = arena_new(16 * 1024);
	int gpus[BOUND_GPUS_MAX], vfs[SIZES_MAX];
	struct choose_in in = { .node = b->node, .pool = b->pool, .gpus.v = gpus };
	uint8_t left[256] = { 0 };
	struct choose_out out;
	size_t n = 0;

	for (size_t i = 0; i < b->n_gpus; i++) {
		if (t->sets[set] >> i & 1)
			gpus[in.gpus.n++] = b->gpus[i];
	}
	/* VFs of a place are alike: the first ones stand for all. */
	memcpy(left, t->counts + choice * b->n_places, b->n_places);
	for (size_t i = 0; i < b->pool->n_devs; i++) {
		int place = b->place_of[i];

		if (place < 0 || !left[place])
			continue;
		left[place]--;
		vfs[n++] = (int)i;
	}
	out = align_pairs(&in, vfs, n, scratch);
	for (size_t i = 0; i < out.n_pairs; i++)
		ret->classes[topo_rank(out.pairs[i].path.class)]++;
	ret->rank = (uint8_t)out.cost;
	ret->known = true;
}

static const struct cell *cell_of(const struct bound *b, const struct table *t, size_t choice,
				  size_t set)
{
	struct cell *c = &t->cells[choice * t->n_sets + set];

	if (!c->known)
		compute(b, t, choice, set, c);
	return c;
}

static struct score_classes classes_of(const struct cell *c)
{
	struct score_classes classes = { 0 };

	for (int i = 0; i < ALIGN_RANKS; i++)
		classes.n[i] = c->classes[i];
	return classes;
}

/* --- a decision --- */

struct decision {
	size_t *choices, n_choices; /* that the free VFs allow */
	size_t own;		    /* among these */
	double *sums;		    /* of pairs at their best, by choice */
	size_t n_sets;
};

static void count_places(const struct bound *b, const int *vfs, size_t n, size_t *ret)
{
	for (size_t i = 0; i < n; i++)
		ret[b->place_of[vfs[i]]]++;
}

static bool is_within(const uint8_t *counts, const size_t *limit, size_t n_places)
{
	for (size_t i = 0; i < n_places; i++) {
		if (counts[i] > limit[i])
			return false;
	}
	return true;
}

static struct decision list_allowed(const struct bound *b, const struct table *t,
				    const struct bound_in *in, struct arena *a)
{
	size_t *free = arena_array(a, b->n_places, sizeof(*free));
	size_t *own = arena_array(a, b->n_places, sizeof(*own));
	struct decision d = { .choices = arena_array(a, t->n_choices, sizeof(size_t)) };

	count_places(b, in->free_vfs, in->n_free_vfs, free);
	count_places(b, in->chosen, in->n_chosen, own);
	for (size_t i = 0; i < t->n_choices; i++) {
		const uint8_t *counts = t->counts + i * b->n_places;

		if (!is_within(counts, free, b->n_places))
			continue;
		if (is_within(counts, own, b->n_places))
			d.own = d.n_choices;
		d.choices[d.n_choices++] = i;
	}
	d.sums = arena_array(a, d.n_choices, sizeof(*d.sums));
	return d;
}

bool sim_bound_judge(struct bound *b, const struct bound_in *in, double *ret_expected,
		     double *ret_bound)
{
	_cleanup_arena_ struct arena *a = NULL;
	unsigned free = 0;
	struct table *t;
	struct decision d;
	double best = 0;

	if (b->n_gpus > BOUND_GPUS_MAX || b->n_places > 256 || in->n_chosen > SIZES_MAX ||
	    in->gpus > SIZES_MAX)
		return false;
	t = table_of(b, in->n_chosen, in->gpus);
	if (!t)
		return false;
	a = arena_new(64 * 1024);
	d = list_allowed(b, t, in, a);
	for (size_t i = 0; i < in->n_free_gpus; i++)
		free |= 1u << in->free_gpus[i];
	for (size_t s = 0; s < t->n_sets; s++) {
		const struct cell *optimum = NULL;
		struct score_classes classes, wanted;

		if (t->sets[s] & ~free)
			continue;
		for (size_t i = 0; i < d.n_choices; i++) {
			const struct cell *c = cell_of(b, t, d.choices[i], s);

			if (!optimum || c->rank < optimum->rank)
				optimum = c;
		}
		wanted = classes_of(optimum);
		for (size_t i = 0; i < d.n_choices; i++) {
			classes = classes_of(cell_of(b, t, d.choices[i], s));
			d.sums[i] += (double)sim_score_best(&classes, &wanted);
		}
		d.n_sets++;
	}
	for (size_t i = 0; i < d.n_choices; i++)
		best = d.sums[i] > best ? d.sums[i] : best;
	*ret_expected = d.sums[d.own] / (double)d.n_sets;
	*ret_bound = best / (double)d.n_sets;
	return true;
}
