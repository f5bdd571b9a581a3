/*
 * From numbers of VFs per group to VFs: places in rounds (no place gets its second VF before the
 * others of its group have their first, those with most VFs left go first), then in each round
 * the VF index that lines up with most. Everywhere, VFs whose port is up go first.
 */
#include <assert.h>
#include <stdlib.h>

#include "align/align-internal.h"
#include "base/arena.h"

#define MAX_INDEX 65535 /* SR-IOV counts VFs in 16 bits */

struct pick {
	const struct problem *p;
	bool *chosen;	   /* per VF */
	bool *needs;	   /* per place: gets a VF in this round */
	int *taken, *left; /* per place: chosen, and not yet chosen */
	int *up;	   /* of these, VFs whose port is not down */
	int *owed;	   /* per group */
	int *votes;	   /* per VF index */
	int n_votes;
};

static void choose(struct pick *s, size_t vf)
{
	const struct align_vf *v = &s->p->in->vfs[vf];

	s->chosen[vf] = true;
	s->taken[v->place]++;
	s->left[v->place]--;
	s->up[v->place] -= !v->down;
	s->needs[v->place] = false;
}

/* Not chosen, its place needs one, and none of the place comes before it. */
static bool may_go(const struct pick *s, size_t vf)
{
	const struct align_vf *v = &s->p->in->vfs[vf];

	return !s->chosen[vf] && s->needs[v->place] && !(v->down && s->up[v->place]);
}

static bool has_index(const struct pick *s, const struct align_vf *v)
{
	return v->index >= 0 && v->index < s->n_votes;
}

/* May this place take one more, and is its turn before that of `best`? */
static bool goes_before(const struct pick *s, int place, int best)
{
	if (s->needs[place] || s->taken[place] >= s->p->limit[place])
		return false;
	if (best < 0 || s->taken[place] != s->taken[best])
		return best < 0 || s->taken[place] < s->taken[best];
	if (!s->up[place] != !s->up[best])
		return s->up[place] > 0;
	return s->left[place] > s->left[best];
}

/* Of each group that owes VFs, the places for this round: it ends where the next one has more VFs
 * already. False: none. */
static bool begin_round(struct pick *s)
{
	bool any = false;

	for (int g = 0; g < s->p->n_groups; g++) {
		for (int round = -1; s->owed[g] > 0; s->owed[g]--) {
			int best = -1;

			for (int i = 0; i < s->p->n_places; i++)
				if (s->p->group_of[i] == g && goes_before(s, i, best))
					best = i;
			if (best < 0 || (round >= 0 && s->taken[best] > round))
				break;
			round = s->taken[best];
			s->needs[best] = true;
			any = true;
		}
	}
	return any;
}

/* The VF index that most places in need have, the VFs chosen so far voting too; -1: none known. */
static int common_index(struct pick *s)
{
	const struct align_in *in = s->p->in;
	int best = -1;

	for (int i = 0; i < s->n_votes; i++)
		s->votes[i] = 0;
	for (size_t i = 0; i < in->n_vfs; i++)
		if (has_index(s, &in->vfs[i]) && s->chosen[i])
			s->votes[in->vfs[i].index]++;
	for (size_t i = 0; i < in->n_vfs; i++)
		if (has_index(s, &in->vfs[i]) && may_go(s, i))
			s->votes[in->vfs[i].index]++;
	for (size_t i = 0; i < in->n_vfs; i++) {
		const struct align_vf *v = &in->vfs[i];

		if (!has_index(s, v) || !may_go(s, i))
			continue;
		if (best < 0 || s->votes[v->index] > s->votes[best] ||
		    (s->votes[v->index] == s->votes[best] && v->index < best))
			best = v->index;
	}
	return best;
}

static void pick_init(struct pick *s, const struct problem *p, const int *counts)
{
	const struct align_in *in = p->in;

	s->p = p;
	s->chosen = arena_array(p->arena, in->n_vfs, sizeof(*s->chosen));
	s->needs = arena_array(p->arena, in->n_places, sizeof(*s->needs));
	s->taken = arena_array(p->arena, in->n_places, sizeof(*s->taken));
	s->left = arena_array(p->arena, in->n_places, sizeof(*s->left));
	s->owed = arena_array(p->arena, (size_t)p->n_groups, sizeof(*s->owed));
	s->up = arena_array(p->arena, in->n_places, sizeof(*s->up));
	for (size_t i = 0; i < in->n_vfs; i++)
		s->up[in->vfs[i].place] += !in->vfs[i].down;
	for (int i = 0; i < p->n_places; i++)
		s->left[i] = p->avail[i];
	for (int g = 0; g < p->n_groups; g++)
		s->owed[g] = counts[g] - p->groups[g].must;
	for (size_t i = 0; i < in->n_vfs; i++) {
		if (in->vfs[i].index >= s->n_votes && in->vfs[i].index <= MAX_INDEX)
			s->n_votes = in->vfs[i].index + 1;
		if (in->vfs[i].must)
			choose(s, i);
	}
	s->votes = arena_array(p->arena, (size_t)s->n_votes, sizeof(*s->votes));
}

int *pick_vfs(const struct problem *p, const int *counts, size_t *ret_n)
{
	struct pick s = { 0 };
	int *out = arena_array(p->arena, (size_t)p->v, sizeof(*out));

	pick_init(&s, p, counts);
	while (begin_round(&s)) {
		int index;

		do {
			index = common_index(&s);
			/* Without a known index the lowest VF of each place. */
			for (size_t i = 0; i < p->in->n_vfs; i++)
				if (may_go(&s, i) && (index < 0 || p->in->vfs[i].index == index))
					choose(&s, i);
		} while (index >= 0);
	}
	*ret_n = 0;
	for (size_t i = 0; i < p->in->n_vfs; i++)
		if (s.chosen[i])
			out[(*ret_n)++] = (int)i;
	assert(*ret_n == (size_t)p->v);
	return out;
}
