#include "sim/devman.h"
#include "sim/devman-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"

uint64_t sim_random_below(uint64_t *state, uint64_t n)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}

void sim_random_shuffle(uint64_t *state, void *items, size_t n, size_t size)
{
	_cleanup_free_ void *spare = xcalloc(1, size);
	char *at = items;

	for (size_t i = n; i > 1; i--) {
		size_t j = sim_random_below(state, i);

		memcpy(spare, at + j * size, size);
		memmove(at + j * size, at + (i - 1) * size, size);
		memcpy(at + (i - 1) * size, spare, size);
	}
}

bool sim_idset_has(const struct idset *s, const char *id)
{
	return list_has((const char *const *)s->v, s->n, id);
}

void sim_idset_add(struct idset *s, const char *id)
{
	if (sim_idset_has(s, id))
		return;
	s->v = xgrow(s->v, &s->cap, s->n + 1, sizeof(*s->v));
	s->v[s->n++] = xstrdup(id);
}

void sim_idset_remove(struct idset *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->v[i], id))
			continue;
		free(s->v[i]);
		memmove(&s->v[i], &s->v[i + 1], (s->n - i - 1) * sizeof(*s->v));
		s->n--;
		return;
	}
}

void sim_idset_done(struct idset *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct idset) { 0 };
}

/* --- sets of ids --- */

static struct ids ids_room(struct arena *a, size_t n)
{
	return (struct ids) { .v = arena_array(a, n, sizeof(char *)) };
}

static struct ids ids_copy(struct arena *a, const struct ids *from)
{
	struct ids copy = ids_room(a, from->n);

	for (size_t i = 0; i < from->n; i++)
		copy.v[copy.n++] = from->v[i];
	return copy;
}

/* --- devices --- */

static uint64_t node_mask(const struct device *d)
{
	uint64_t mask = 0;

	for (size_t i = 0; d && i < d->n_nodes; i++) {
		if (d->nodes[i] >= 0 && d->nodes[i] < 64)
			mask |= UINT64_C(1) << d->nodes[i];
	}
	return mask;
}

static bool is_available(const struct devman_stock *stock, const struct device *d)
{
	return d->healthy && !sim_idset_has(stock->taken, d->id);
}

static size_t count_reusable(const struct devman_stock *stock)
{
	return stock->reusable ? stock->reusable->n : 0;
}

/* --- for the TopologyManager --- */

uint64_t sim_devman_nodes(const struct device_list *devices)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < devices->n; i++)
		mask |= node_mask(&devices->v[i]);
	return mask;
}

struct numa_ask sim_devman_hint(const struct devman_stock *stock, size_t count, struct arena *arena)
{
	size_t n = stock->devices->n;
	uint64_t *all = arena_array(arena, n, sizeof(*all));
	uint64_t *available = arena_array(arena, n, sizeof(*available));
	uint64_t *reusable = arena_array(arena, count_reusable(stock), sizeof(*reusable));
	struct numa_ask ask = {
		.all = all, .available = available, .reusable = reusable, .count = count
	};

	for (size_t i = 0; i < n; i++) {
		const struct device *d = &stock->devices->v[i];

		all[ask.n_all++] = node_mask(d);
		if (is_available(stock, d))
			available[ask.n_available++] = node_mask(d);
	}
	for (size_t i = 0; i < count_reusable(stock); i++) {
		const struct device *d = stock->devices->v, *end = d + n;

		while (d < end && strcmp(d->id, stock->reusable->v[i]) != 0)
			d++;
		reusable[ask.n_reusable++] = node_mask(d < end ? d : NULL);
	}
	return ask;
}

/* --- taking --- */

/* Random, as a Go map gives them; only: NULL, or a set that an id has to be in as well. */
static void take_from(struct devman_pick *p, struct ids *from, const struct ids *only)
{
	sim_random_shuffle(p->random, from->v, from->n, sizeof(char *));
	for (size_t i = 0; i < from->n; i++) {
		const char *id = from->v[i];

		if (!p->needed || (only && !list_has((const char *const *)only->v, only->n, id)) ||
		    list_has((const char *const *)p->picked.v, p->picked.n, id))
			continue;
		sim_idset_add(p->taken, id);
		p->picked.v[p->picked.n++] = arena_strdup(p->arena, id);
		p->needed--;
	}
}

/* filterByAffinity, over the free ones */
static void sort_by_affinity(struct devman_pick *p, const struct devman_stock *stock,
			     const uint64_t *affinity)
{
	bool aligns = affinity && sim_devman_nodes(stock->devices);

	p->free = ids_room(p->arena, stock->devices->n);
	p->aligned = ids_room(p->arena, stock->devices->n);
	p->unaligned = ids_room(p->arena, stock->devices->n);
	p->elsewhere = ids_room(p->arena, stock->devices->n);
	for (size_t i = 0; i < stock->devices->n; i++) {
		const struct device *d = &stock->devices->v[i];
		uint64_t mask = node_mask(d);
		struct ids *to = !aligns || !mask   ? &p->elsewhere
				 : mask & *affinity ? &p->aligned
						    : &p->unaligned;

		if (!is_available(stock, d))
			continue;
		to->v[to->n] = p->free.v[p->free.n++] = arena_strdup(p->arena, d->id);
		to->n++;
	}
	p->available = p->free.n;
}

static enum devman_step ask_plugin(struct devman_pick *p, const struct ids *from)
{
	struct ids all = ids_room(p->arena, from->n + p->picked.n);

	for (size_t i = 0; i < p->picked.n; i++)
		all.v[all.n++] = p->picked.v[i];
	for (size_t i = 0; i < from->n; i++) {
		if (!list_has((const char *const *)p->picked.v, p->picked.n, from->v[i]))
			all.v[all.n++] = from->v[i];
	}
	sim_random_shuffle(p->random, all.v, all.n, sizeof(char *));
	p->ask = (struct preferred_container) { .available = all,
						.must = ids_copy(p->arena, &p->picked),
						.size = (int)(p->needed + p->picked.n) };
	return DEVMAN_ASK;
}

enum devman_step sim_devman_begin(struct devman_pick *p, const struct devman_stock *stock,
				  struct idset *taken, size_t count, const uint64_t *affinity,
				  uint64_t *random, struct arena *arena)
{
	struct ids reusable;

	*p = (struct devman_pick) {
		.needed = count, .taken = taken, .random = random, .arena = arena
	};
	p->picked = ids_room(arena, count);
	reusable = ids_room(arena, count_reusable(stock));
	for (size_t i = 0; i < count_reusable(stock); i++)
		reusable.v[reusable.n++] = stock->reusable->v[i];
	take_from(p, &reusable, NULL);
	if (!p->needed)
		return DEVMAN_DONE;
	sort_by_affinity(p, stock, affinity);
	if (p->available < p->needed)
		return DEVMAN_SHORT;
	p->from_aligned = p->needed < p->aligned.n;
	if (p->from_aligned)
		return ask_plugin(p, &p->aligned);
	take_from(p, &p->aligned, NULL);
	return p->needed ? ask_plugin(p, &p->free) : DEVMAN_DONE;
}

void sim_devman_finish(struct devman_pick *p, const struct ids *preferred)
{
	struct ids wish = preferred ? ids_copy(p->arena, preferred) : (struct ids) { 0 };

	take_from(p, &wish, p->from_aligned ? &p->aligned : &p->free);
	if (p->from_aligned) {
		take_from(p, &p->aligned, NULL);
		return;
	}
	take_from(p, &p->unaligned, NULL);
	take_from(p, &p->elsewhere, NULL);
}
