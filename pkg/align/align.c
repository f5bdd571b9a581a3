/*
 * The problem of one request, from the caller's tables to groups of places; the zone where GPUs
 * that are not known are expected; the VFs themselves, and which GPU each of them serves. counts.c
 * decides how many VFs a group gives.
 */
#include "align/align.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "align/align-internal.h"
#include "base/arena.h"

/* --- from the caller's tables to groups --- */

static int value_cmp(const struct value *a, const struct value *b)
{
	for (size_t i = 0; i < sizeof(a->key) / sizeof(a->key[0]); i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	return 0;
}

/* From the caller's tables to groups. */
static void problem_init(struct problem *p, const struct align_in *in, struct arena *arena)
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

/* Mark the places with VFs that are nearest to a free GPU (n_places flags); how many VFs they have.
 */
static int problem_nearest(const struct problem *p, int free_gpu, uint8_t *ret_near)
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

/* rows and spare GPUs of a container with known GPUs */
static void problem_set_gpus(struct problem *p)
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

/* rows for GPUs that are drawn; false: not to be decided that way */
static bool problem_set_drawn(struct problem *p)
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

/* The base for that many GPUs; smaller where pairs of GPUs and VFs that cost `uneven` times
 * best_worth() would not fit the numbers of a flow. */
static int64_t best_base(int n_gpus, int64_t uneven, int64_t pairs)
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

/* after rows, spare GPUs and limits are set */
static void problem_group(struct problem *p)
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

/* GPUs unknown: the part of the machine where they are expected (align.h, "zones"). */

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

/* Rows and limits of the zone where the GPUs are expected; false: too few VFs. */
static bool zone_choose(struct problem *p, struct value *ret)
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

/* --- the VFs themselves --- */

/*
 * From numbers of VFs per group to VFs: places in rounds (no place gets its second VF before the
 * others of its group have their first, those with most VFs left go first), then in each round
 * the VF index that lines up with most. Everywhere, VFs whose port is up go first.
 */

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

/* The VFs themselves, ascending. */
static int *pick_vfs(const struct problem *p, const int *counts, size_t *ret_n)
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

/* --- the whole --- */

/* The state of an assignment: columns are the VFs' places, those with equal ranks together. */
struct pairing {
	const struct align_in *in;
	struct arena *arena;
	const int *vfs;
	int n_vfs, n_cols;
	int *col_of;  /* per VF of vfs */
	int *col_vfs; /* VFs in a column */
	int *place;   /* a place of each column */
	int *units;   /* rows × columns */
};

static int gpu_rank(const struct align_in *in, size_t gpu, int place)
{
	return in->gpu_rank[gpu * in->n_places + (size_t)place];
}

static bool equal_for_gpus(const struct align_in *in, int a, int b)
{
	for (size_t g = 0; g < in->n_gpus && a != b; g++)
		if (gpu_rank(in, g, a) != gpu_rank(in, g, b))
			return false;
	return true;
}

static void set_columns(struct pairing *s)
{
	s->col_of = arena_array(s->arena, (size_t)s->n_vfs, sizeof(*s->col_of));
	s->col_vfs = arena_array(s->arena, (size_t)s->n_vfs, sizeof(*s->col_vfs));
	s->place = arena_array(s->arena, (size_t)s->n_vfs, sizeof(*s->place));
	for (int i = 0; i < s->n_vfs; i++) {
		int place = s->in->vfs[s->vfs[i]].place, col = 0;

		while (col < s->n_cols && !equal_for_gpus(s->in, s->place[col], place))
			col++;
		if (col == s->n_cols)
			s->place[s->n_cols++] = place;
		s->col_of[i] = col;
		s->col_vfs[col]++;
	}
}

static void balance_columns(struct pairing *s)
{
	int gpus = (int)s->in->n_gpus, many = s->n_vfs >= gpus, total = many ? s->n_vfs : gpus;
	int *base = arena_array(s->arena, (size_t)s->n_cols, sizeof(*base));
	int *extra = arena_array(s->arena, (size_t)s->n_cols, sizeof(*extra));
	int64_t *first = arena_array(s->arena, (size_t)(gpus * s->n_cols), sizeof(*first));
	int64_t *cost = arena_array(s->arena, (size_t)(gpus * s->n_cols), sizeof(*cost));
	int64_t uneven = (int64_t)total * gpus * s->n_cols + 1;
	int64_t worst_base = best_base(gpus, uneven, (int64_t)total * 2 * (gpus + s->n_cols));
	int64_t whole = uneven * (gpus * best_worth(ALIGN_RANKS - 1, worst_base) + 1);
	struct balance b = {
		.n_rows = gpus,
		.n_cols = s->n_cols,
		.cost = total > gpus ? cost : first,
		.first = total > gpus ? first : NULL,
		.row_base = many ? total / gpus : 1,
		.row_extra = many && total % gpus,
		.col_base = base,
		.col_extra = extra,
		.total = total,
	};

	/* Among equal ranks the lower GPU goes to the lower column: the sum of the products of
	 * their numbers is greatest. */
	for (int i = 0; i < gpus * s->n_cols; i++) {
		int g = i / s->n_cols, c = i % s->n_cols;
		int rank = gpu_rank(s->in, (size_t)g, s->place[c]);

		cost[i] = whole * rank + (int64_t)g * (s->n_cols - 1 - c);
		first[i] = cost[i] + uneven * best_worth(rank, worst_base);
	}
	for (int c = 0; c < s->n_cols; c++) {
		base[c] = s->col_vfs[c] * (total / s->n_vfs);
		extra[c] = total % s->n_vfs ? s->col_vfs[c] : 0;
	}
	s->units = arena_array(s->arena, (size_t)(gpus * s->n_cols), sizeof(*s->units));
	align_balance(&b, s->arena, s->units);
}

/* Deals the VFs of one column to its GPUs, both in order; a VF takes `base` of them or one more. */
static void deal_column(const struct pairing *s, int col, struct align_out *out)
{
	int gpus = (int)s->in->n_gpus, total = 0, vf = -1, room = 0, base, extras;

	for (int g = 0; g < gpus; g++)
		total += s->units[g * s->n_cols + col];
	base = total / s->col_vfs[col];
	extras = total % s->col_vfs[col];
	for (int g = 0; g < gpus; g++) {
		for (int u = 0; u < s->units[g * s->n_cols + col]; u++) {
			if (room == 0) {
				do
					vf++;
				while (s->col_of[vf] != col);
				room = base + (extras-- > 0);
			}
			room--;
			out->pairs[out->n_pairs++] =
				(struct align_pair) { g, s->vfs[vf],
						      gpu_rank(s->in, (size_t)g, s->place[col]) };
			out->cost += out->pairs[out->n_pairs - 1].rank;
		}
	}
}

static int by_gpu_then_vf(const void *a, const void *b)
{
	const struct align_pair *x = a, *y = b;

	return x->gpu != y->gpu ? x->gpu - y->gpu : x->vf - y->vf;
}

struct align_out align_assign(const struct align_in *in, const int *vfs, size_t n,
			      struct arena *arena)
{
	struct pairing s = { .in = in, .arena = arena, .vfs = vfs, .n_vfs = (int)n };
	struct align_out out = { 0 };

	if (n == 0 || in->n_gpus == 0)
		return out;
	set_columns(&s);
	balance_columns(&s);
	out.pairs = arena_array(arena, n > in->n_gpus ? n : in->n_gpus, sizeof(*out.pairs));
	for (int c = 0; c < s.n_cols; c++)
		deal_column(&s, c, &out);
	qsort(out.pairs, out.n_pairs, sizeof(*out.pairs), by_gpu_then_vf);
	return out;
}

/* How many VFs each group gives; false when the limits leave too few. */
static bool solve_counts(struct problem *p, int **ret_counts, struct value *ret)
{
	int64_t cap = 0;

	if (p->in->n_gpus > 0)
		problem_set_gpus(p);
	else if (!problem_set_drawn(p) && !zone_choose(p, ret))
		return false;
	problem_group(p);
	for (int g = 0; g < p->n_groups; g++)
		cap += p->groups[g].cap;
	if (cap < p->v)
		return false;
	*ret_counts = arena_array(p->arena, (size_t)p->n_groups, sizeof(**ret_counts));
	if (p->drawn > 0)
		count_drawn(p, *ret_counts, ret);
	else if (p->v < p->n_rows && !p->optional)
		count_few(p, *ret_counts, ret);
	else
		count_many(p, *ret_counts, ret);
	return true;
}

static struct align_out finish(const struct problem *p, const int *counts)
{
	size_t n;
	int *chosen = pick_vfs(p, counts, &n);
	struct align_out out = align_assign(p->in, chosen, n, p->arena);

	out.chosen = chosen;
	out.n_chosen = n;
	return out;
}

struct align_out align_solve(const struct align_in *in, struct arena *arena)
{
	struct value value = { { 0 } };
	struct problem p;
	int *counts;

	problem_init(&p, in, arena);
	if (p.v == 0 || !solve_counts(&p, &counts, &value))
		return (struct align_out) { 0 };
	return finish(&p, counts);
}

/* Another multiset of places has fewer VFs on at least one place of this one: forbid that for each
 * in turn. */
struct align_out align_runner_up(const struct align_in *in, const struct align_out *best,
				 struct arena *arena)
{
	int *on_place = arena_array(arena, in->n_places, sizeof(*on_place)), *counts = NULL;
	struct value value = { { 0 } };
	struct problem p = { 0 };

	for (size_t i = 0; i < best->n_chosen; i++)
		on_place[in->vfs[best->chosen[i]].place]++;
	for (size_t i = 0; i < in->n_places; i++) {
		struct value other_value = { { 0 } };
		struct problem other;
		int *other_counts;

		if (on_place[i] == 0)
			continue;
		problem_init(&other, in, arena);
		if (on_place[i] == other.must[i])
			continue;
		other.limit[i] = on_place[i] - 1;
		if (!solve_counts(&other, &other_counts, &other_value))
			continue;
		if (counts && value_cmp(&other_value, &value) >= 0)
			continue;
		p = other;
		counts = other_counts;
		value = other_value;
	}
	return counts ? finish(&p, counts) : (struct align_out) { 0 };
}
