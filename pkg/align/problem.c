#include <string.h>

#include "align/align-internal.h"
#include "base/arena.h"

int value_cmp(const struct value *a, const struct value *b)
{
	for (size_t i = 0; i < sizeof(a->key) / sizeof(a->key[0]); i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	return 0;
}

void problem_init(struct problem *p, const struct align_in *in, struct arena *arena)
{
	size_t n_must = 0, want = in->want < in->n_vfs ? in->want : in->n_vfs;

	*p = (struct problem) { .in = in, .arena = arena, .n_places = (int)in->n_places };
	p->avail = arena_array(arena, in->n_places, sizeof(*p->avail));
	p->must = arena_array(arena, in->n_places, sizeof(*p->must));
	p->limit = arena_array(arena, in->n_places, sizeof(*p->limit));
	for (size_t i = 0; i < in->n_vfs; i++) {
		p->avail[in->vfs[i].place]++;
		p->must[in->vfs[i].place] += in->vfs[i].must;
		n_must += in->vfs[i].must;
	}
	memcpy(p->limit, p->avail, in->n_places * sizeof(*p->limit));
	p->v = (int)(want > n_must ? want : n_must);
}

int problem_nearest(const struct problem *p, int free_gpu, uint8_t *ret_near)
{
	const uint8_t *row = p->in->free_rank + (size_t)free_gpu * p->in->n_places;
	int best = ALIGN_RANKS, vfs = 0;

	for (int i = 0; i < p->n_places; i++)
		if (p->avail[i] > 0 && row[i] < best)
			best = row[i];
	for (int i = 0; i < p->n_places; i++) {
		ret_near[i] = p->avail[i] > 0 && row[i] == best;
		vfs += ret_near[i] ? p->avail[i] : 0;
	}
	return vfs;
}

void problem_set_gpus(struct problem *p)
{
	const struct align_in *in = p->in;
	uint8_t *keep = arena_array(p->arena, in->n_free, in->n_places);

	p->n_rows = (int)in->n_gpus;
	p->rank = in->gpu_rank;
	p->keep = keep;
	for (int f = 0; f < (int)in->n_free; f++) {
		int vfs = problem_nearest(p, f, keep + (size_t)p->n_keep * in->n_places);

		/* Otherwise its nearest places cannot run out, whatever is chosen. */
		if (vfs > 0 && vfs < p->v + (int)in->n_free)
			p->n_keep++;
	}
}

bool problem_set_drawn(struct problem *p)
{
	size_t drawn = p->in->drawn < p->in->n_free ? p->in->drawn : p->in->n_free;

	if (drawn == 0 || p->v > ALIGN_DRAWN_MAX || p->in->n_free > ALIGN_DRAWN_MAX)
		return false;
	p->drawn = (int)drawn;
	p->n_rows = (int)p->in->n_free;
	p->rank = p->in->free_rank;
	return true;
}

#define NUMBERS_MAX (INT64_MAX / 16) /* of the sum along a path of a flow */

int64_t best_base(int n_gpus, int64_t uneven, int64_t pairs)
{
	int64_t base = n_gpus + 1;

	while (base > 2 && n_gpus * best_worth(ALIGN_RANKS - 1, base) >=
				   NUMBERS_MAX / ALIGN_RANKS / pairs / uneven)
		base--;
	return base;
}

struct weights problem_weights(const struct problem *p)
{
	struct weights w = { .order = 1 };

	w.loss = (int64_t)p->v * p->n_groups + 1;
	w.excess = w.loss * (p->n_keep + 1);
	w.uneven = w.excess * (p->v + 1);
	w.base = best_base(p->n_rows, w.uneven, 2 * (p->n_rows + p->n_groups));
	w.rank = w.uneven * (p->n_rows * best_worth(ALIGN_RANKS - 1, w.base) + 1);
	return w;
}

static bool same_column(const uint8_t *table, int n_rows, int n_places, int a, int b)
{
	for (int i = 0; i < n_rows; i++, table += n_places)
		if (table[a] != table[b])
			return false;
	return true;
}

void problem_group(struct problem *p)
{
	p->groups = arena_array(p->arena, p->in->n_places, sizeof(*p->groups));
	p->group_of = arena_array(p->arena, p->in->n_places, sizeof(*p->group_of));
	for (int i = 0; i < p->n_places; i++) {
		struct group *g;

		p->group_of[i] = -1;
		if (p->avail[i] == 0)
			continue;
		for (int k = 0; k < p->n_groups && p->group_of[i] < 0; k++) {
			int first = p->groups[k].place;

			if (same_column(p->rank, p->n_rows, p->n_places, first, i) &&
			    same_column(p->keep, p->n_keep, p->n_places, first, i))
				p->group_of[i] = k;
		}
		if (p->group_of[i] < 0) {
			p->group_of[i] = p->n_groups++;
			p->groups[p->group_of[i]].place = i;
		}
		g = &p->groups[p->group_of[i]];
		g->n_places++;
		g->cap += p->limit[i];
		g->avail += p->avail[i];
		g->must += p->must[i];
		g->forced += p->must[i] > 0 ? p->must[i] - 1 : 0;
		g->firsts += p->must[i] == 0 && p->limit[i] > 0;
	}
}
