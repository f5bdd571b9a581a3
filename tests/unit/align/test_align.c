/* The solver against brute force on random small machines, and against tables made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "align/align.h"
#include "base/arena.h"
#include "base/mem.h"
#include "support/slow.h"

#define CASES	   24000
#define MAX_GPUS   6
#define MAX_PLACES 5
#define MAX_VFS	   15

/* A generator of its own: the same cases everywhere. */
static uint64_t seed;

static int roll(int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)((seed >> 33) % (uint64_t)n);
}

struct tables {
	struct align_in in;
	struct align_vf vfs[MAX_VFS];
	uint8_t gpu_rank[MAX_GPUS * MAX_PLACES], free_rank[MAX_GPUS * MAX_PLACES];
	uint8_t place_rank[MAX_PLACES * MAX_PLACES];
};

/* best: how many GPUs have a best VF of that rank. */
struct dealt {
	int rank, best[ALIGN_RANKS];
};

static int dealt_cmp(const struct dealt *a, const struct dealt *b)
{
	if (a->rank != b->rank)
		return a->rank - b->rank;
	for (int i = ALIGN_RANKS - 1; i > 0; i--)
		if (a->best[i] != b->best[i])
			return a->best[i] - b->best[i];
	return 0;
}

struct worth {
	struct dealt dealt;
	int excess, losses;
};

static int worth_cmp(const struct worth *a, const struct worth *b)
{
	int order = dealt_cmp(&a->dealt, &b->dealt);

	if (order)
		return order;
	return a->excess != b->excess ? a->excess - b->excess : a->losses - b->losses;
}

/* Where a thing sits: node, root complex, switch, sub-switch. */
struct spot {
	int at[4];
};

static struct spot random_spot(void)
{
	return (struct spot) { { roll(2), roll(2), roll(2), roll(2) } };
}

static uint8_t nested_rank(struct spot a, struct spot b)
{
	uint8_t rank = 4;

	for (int i = 0; i < 4 && a.at[i] == b.at[i]; i++)
		rank--;
	return rank;
}

static void random_places(struct tables *t)
{
	size_t n_vfs = 0;

	t->in.n_places = (size_t)(1 + roll(MAX_PLACES));
	for (size_t p = 0; p < t->in.n_places; p++) {
		int count = roll(4), must_of = roll(8) == 0;

		for (int i = 0; i < count && n_vfs < MAX_VFS; i++)
			t->vfs[n_vfs++] = (struct align_vf) { (int)p, i + roll(2),
							      must_of && roll(2), roll(3) == 0 };
	}
	t->in.vfs = t->vfs;
	t->in.n_vfs = n_vfs;
}

static void random_tables(struct tables *t, bool nested)
{
	struct spot gpu[2 * MAX_GPUS], place[MAX_PLACES];
	size_t places;

	*t = (struct tables) { 0 };
	random_places(t);
	places = t->in.n_places;
	t->in.n_gpus = (size_t)(1 + roll(MAX_GPUS));
	t->in.n_free = (size_t)roll(5);
	t->in.want = (size_t)roll(7);
	for (int i = 0; i < 2 * MAX_GPUS; i++)
		gpu[i] = random_spot();
	for (size_t p = 0; p < places; p++)
		place[p] = random_spot();
	for (size_t i = 0; i < t->in.n_gpus * places; i++)
		t->gpu_rank[i] =
			nested ? nested_rank(gpu[i / places], place[i % places]) : (uint8_t)roll(5);
	for (size_t i = 0; i < t->in.n_free * places; i++)
		t->free_rank[i] =
			nested ? nested_rank(gpu[MAX_GPUS + i / places], place[i % places])
			       : (uint8_t)roll(5);
	for (size_t i = 0; i < places * places; i++)
		t->place_rank[i] = i / places == i % places
					   ? 0
					   : nested_rank(place[i / places], place[i % places]);
	t->in.gpu_rank = t->gpu_rank;
	t->in.free_rank = t->free_rank;
	t->in.place_rank = t->place_rank;
}

/* Brute force: every way to give each item of the larger side one of the smaller. */
struct brute {
	const struct align_in *in;
	int place_of[MAX_VFS], n_vfs;
	int load[MAX_VFS + MAX_GPUS];
	int nearest[MAX_GPUS]; /* rank of each GPU's best VF so far */
	struct dealt best;
};

static void end_deal(struct brute *b, int rank)
{
	struct dealt now = { .rank = rank };

	for (size_t g = 0; g < b->in->n_gpus; g++)
		now.best[b->nearest[g]]++;
	if (dealt_cmp(&now, &b->best) < 0)
		b->best = now;
}

static void deal(struct brute *b, int item, int rank)
{
	int gpus = (int)b->in->n_gpus, items = gpus > b->n_vfs ? gpus : b->n_vfs;
	int bins = gpus > b->n_vfs ? b->n_vfs : gpus, low = items / bins,
	    high = low + (items % bins > 0), owed = 0;

	for (int i = 0; i < bins; i++)
		owed += b->load[i] < low ? low - b->load[i] : 0;
	if (rank > b->best.rank || owed > items - item)
		return;
	if (item == items) {
		end_deal(b, rank);
		return;
	}
	for (int i = 0; i < bins; i++) {
		int gpu = gpus > b->n_vfs ? item : i, vf = gpus > b->n_vfs ? i : item;
		int nearest = b->nearest[gpu], step;

		if (b->load[i] == high)
			continue;
		step = b->in->gpu_rank[gpu * (int)b->in->n_places + b->place_of[vf]];
		b->nearest[gpu] = step < nearest ? step : nearest;
		b->load[i]++;
		deal(b, item + 1, rank + step);
		b->load[i]--;
		b->nearest[gpu] = nearest;
	}
}

static struct dealt brute_deal(const struct align_in *in, const int *counts)
{
	struct brute b = { .in = in, .best = { .rank = INT32_MAX } };

	for (int g = 0; g < MAX_GPUS; g++)
		b.nearest[g] = ALIGN_RANKS - 1;
	for (int p = 0; p < (int)in->n_places; p++)
		for (int i = 0; i < counts[p]; i++)
			b.place_of[b.n_vfs++] = p;
	if (b.n_vfs == 0)
		return (struct dealt) { 0 };
	deal(&b, 0, 0);
	return b.best;
}

static struct dealt dealt_of(const struct align_in *in, const struct align_out *out)
{
	struct dealt d = { .rank = out->cost };

	for (size_t g = 0; g < in->n_gpus && out->n_pairs > 0; g++) {
		int best = ALIGN_RANKS - 1;

		for (size_t i = 0; i < out->n_pairs; i++)
			if (out->pairs[i].gpu == (int)g && out->pairs[i].rank < best)
				best = out->pairs[i].rank;
		d.best[best]++;
	}
	return d;
}

static int most_kept(const struct align_in *in, const int *avail, int *left, int f)
{
	int best = ALIGN_RANKS, kept;

	if (f == (int)in->n_free)
		return 0;
	for (int p = 0; p < (int)in->n_places; p++)
		if (avail[p] > 0 && in->free_rank[f * (int)in->n_places + p] < best)
			best = in->free_rank[f * (int)in->n_places + p];
	kept = most_kept(in, avail, left, f + 1);
	for (int p = 0; p < (int)in->n_places; p++) {
		int with;

		if (left[p] == 0 || in->free_rank[f * (int)in->n_places + p] != best)
			continue;
		left[p]--;
		with = 1 + most_kept(in, avail, left, f + 1);
		left[p]++;
		kept = with > kept ? with : kept;
	}
	return kept;
}

static void count_places(const struct align_in *in, int *ret_avail, int *ret_must)
{
	for (size_t i = 0; i < in->n_vfs; i++) {
		ret_avail[in->vfs[i].place]++;
		ret_must[in->vfs[i].place] += in->vfs[i].must;
	}
}

/* What a choice is worth, rank apart. Losses count GPUs that had a nearest place to lose. */
static struct worth worth_of(const struct align_in *in, const int *counts)
{
	int avail[MAX_PLACES] = { 0 }, must[MAX_PLACES] = { 0 }, left[MAX_PLACES];
	struct worth w = { .losses = in->n_vfs > 0 ? (int)in->n_free : 0 };

	count_places(in, avail, must);
	for (int p = 0; p < (int)in->n_places; p++) {
		w.excess += counts[p] > 1 ? counts[p] - 1 : 0;
		left[p] = avail[p] - counts[p];
	}
	w.losses -= in->n_vfs > 0 ? most_kept(in, avail, left, 0) : 0;
	return w;
}

struct search {
	const struct align_in *in;
	const int *other_than; /* counts that are not allowed; NULL: none */
	int avail[MAX_PLACES], must[MAX_PLACES], counts[MAX_PLACES];
	struct worth best;
	bool found;
};

static void try_counts(struct search *s, int place, int left)
{
	struct worth w;

	if (place < (int)s->in->n_places) {
		for (int c = s->must[place]; c <= s->avail[place] && c <= left; c++) {
			s->counts[place] = c;
			try_counts(s, place + 1, left - c);
		}
		return;
	}
	if (left > 0 || (s->other_than && memcmp(s->counts, s->other_than,
						 s->in->n_places * sizeof(s->counts[0])) == 0))
		return;
	w = worth_of(s->in, s->counts);
	w.dealt = brute_deal(s->in, s->counts);
	if (!s->found || worth_cmp(&w, &s->best) < 0)
		s->best = w;
	s->found = true;
}

static struct search brute_search(const struct align_in *in, size_t v, const int *other_than)
{
	struct search s = { .in = in, .other_than = other_than };

	count_places(in, s.avail, s.must);
	try_counts(&s, 0, (int)v);
	return s;
}

static size_t expected_size(const struct align_in *in)
{
	size_t must = 0, v = in->want < in->n_vfs ? in->want : in->n_vfs;

	for (size_t i = 0; i < in->n_vfs; i++)
		must += in->vfs[i].must;
	return v > must ? v : must;
}

/* Subset in order, musts in it, right size. */
static void check_choice(const struct align_in *in, const struct align_out *out)
{
	bool chosen[MAX_VFS] = { 0 };

	assert_int_equal(out->n_chosen, expected_size(in));
	for (size_t i = 0; i < out->n_chosen; i++) {
		assert_in_range(out->chosen[i], i ? out->chosen[i - 1] + 1 : 0, in->n_vfs - 1);
		chosen[out->chosen[i]] = true;
	}
	for (size_t i = 0; i < in->n_vfs; i++)
		assert_true(chosen[i] || !in->vfs[i].must);
}

/* May place b take a VF in the place of a's last one, for all that distances say? */
static bool could_be(const struct align_in *in, int a, int b, const int *counts)
{
	for (size_t g = 0; g < in->n_gpus; g++)
		if (in->gpu_rank[g * in->n_places + (size_t)a] !=
		    in->gpu_rank[g * in->n_places + (size_t)b])
			return false;
	for (size_t f = 0; f < in->n_free; f++)
		if (in->free_rank[f * in->n_places + (size_t)a] !=
		    in->free_rank[f * in->n_places + (size_t)b])
			return false;
	return a == b || counts[b] < counts[a];
}

/* No VF whose port is down is taken where one whose port is up is as good. */
static void check_ports(const struct align_in *in, const struct align_out *out)
{
	bool taken[MAX_VFS] = { false };
	int counts[MAX_PLACES] = { 0 };

	for (size_t i = 0; i < out->n_chosen; i++) {
		taken[out->chosen[i]] = true;
		counts[in->vfs[out->chosen[i]].place]++;
	}
	for (size_t i = 0; i < in->n_vfs; i++) {
		const struct align_vf *down = &in->vfs[i];

		for (size_t k = 0; k < in->n_vfs && taken[i] && down->down && !down->must; k++)
			assert_false(!taken[k] && !in->vfs[k].down &&
				     could_be(in, down->place, in->vfs[k].place, counts));
	}
}

static void check_loads(const int *load, size_t n, size_t total)
{
	for (size_t i = 0; i < n; i++)
		assert_in_range(load[i], total / n, (total + n - 1) / n);
}

static void check_pairs(const struct align_in *in, const struct align_out *out, const int *vfs,
			size_t n)
{
	size_t total = n > in->n_gpus ? n : in->n_gpus;
	int gpu_load[MAX_GPUS] = { 0 }, vf_load[MAX_VFS] = { 0 }, chosen_load[MAX_VFS], cost = 0;

	assert_int_equal(out->n_pairs, total);
	for (size_t i = 0; i < out->n_pairs; i++) {
		const struct align_pair *a = &out->pairs[i], *before = a - 1;

		assert_int_equal(a->rank,
				 in->gpu_rank[a->gpu * (int)in->n_places + in->vfs[a->vf].place]);
		assert_true(i == 0 || before->gpu < a->gpu ||
			    (before->gpu == a->gpu && before->vf < a->vf));
		gpu_load[a->gpu]++;
		vf_load[a->vf]++;
		cost += a->rank;
	}
	assert_int_equal(out->cost, cost);
	for (size_t i = 0; i < n; i++)
		chosen_load[i] = vf_load[vfs[i]];
	check_loads(gpu_load, in->n_gpus, total);
	check_loads(chosen_load, n, total);
}

static void counts_of(const struct align_in *in, const struct align_out *out, int *ret_counts)
{
	memset(ret_counts, 0, MAX_PLACES * sizeof(*ret_counts));
	for (size_t i = 0; i < out->n_chosen; i++)
		ret_counts[in->vfs[out->chosen[i]].place]++;
}

static void check_worth(const struct align_in *in, const struct align_out *out,
			const struct worth *best)
{
	struct worth w;
	int counts[MAX_PLACES];

	counts_of(in, out, counts);
	w = worth_of(in, counts);
	w.dealt = dealt_of(in, out);
	assert_int_equal(dealt_cmp(&w.dealt, &best->dealt), 0);
	assert_int_equal(w.excess, best->excess);
	assert_int_equal(w.losses, best->losses);
}

static void check_against_brute_force(const struct align_in *in)
{
	_cleanup_arena_ struct arena *arena = arena_new(1 << 14);
	struct align_out out = align_solve(in, arena), again = align_solve(in, arena), second;
	struct search best = brute_search(in, expected_size(in), NULL), next;
	int counts[MAX_PLACES];

	check_choice(in, &out);
	assert_int_equal(again.n_chosen, out.n_chosen);
	for (size_t i = 0; i < out.n_chosen; i++)
		assert_int_equal(again.chosen[i], out.chosen[i]);
	if (out.n_chosen == 0)
		return;
	check_pairs(in, &out, out.chosen, out.n_chosen);
	check_worth(in, &out, &best.best);
	check_ports(in, &out);
	counts_of(in, &out, counts);
	second = align_runner_up(in, &out, arena);
	next = brute_search(in, out.n_chosen, counts);
	assert_int_equal(second.n_chosen > 0, next.found);
	if (!next.found)
		return;
	check_choice(in, &second);
	check_pairs(in, &second, second.chosen, second.n_chosen);
	check_worth(in, &second, &next.best);
}

static void equals_brute_force_on_nested_machines(void **state)
{
	struct tables t;

	(void)state;
	seed = 1;
	for (int i = 0; i < chance_rounds(CASES / 2); i++) {
		random_tables(&t, true);
		check_against_brute_force(&t.in);
	}
}

static void equals_brute_force_on_any_ranks(void **state)
{
	struct tables t;

	(void)state;
	seed = 2;
	for (int i = 0; i < chance_rounds(CASES / 2); i++) {
		random_tables(&t, false);
		check_against_brute_force(&t.in);
	}
}

static void assigns_given_vfs_at_the_lowest_rank(void **state)
{
	struct tables t;

	(void)state;
	seed = 3;
	for (int i = 0; i < chance_rounds(4000); i++) {
		_cleanup_arena_ struct arena *arena = arena_new(1 << 12);
		int vfs[MAX_VFS], counts[MAX_PLACES] = { 0 };
		struct align_out out;
		struct dealt got, best;
		size_t n = 0;

		random_tables(&t, i % 2 == 0);
		for (size_t v = 0; v < t.in.n_vfs && n < 6; v++)
			if (roll(2))
				vfs[n++] = (int)v;
		for (size_t v = 0; v < n; v++)
			counts[t.vfs[vfs[v]].place]++;
		out = align_assign(&t.in, vfs, n, arena);
		got = dealt_of(&t.in, &out);
		best = brute_deal(&t.in, counts);
		assert_int_equal(dealt_cmp(&got, &best), 0);
		if (n > 0)
			check_pairs(&t.in, &out, vfs, n);
	}
}

/* Two GPUs beside one switch: each has a near VF before one of them has its second. */
static void no_gpu_has_two_near_vfs_while_its_equal_has_none(void **state)
{
	static const struct {
		size_t near, far;
		int both; /* GPUs with a near VF */
	} cases[] = { { 2, 2, 2 }, { 3, 1, 2 }, { 1, 3, 1 }, { 2, 4, 2 }, { 4, 2, 2 } };
	static const uint8_t ranks[] = { 1, 3, 1, 3 };

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		_cleanup_arena_ struct arena *arena = arena_new(1 << 12);
		struct align_vf vfs[6];
		struct align_in in = { .vfs = vfs,
				       .n_vfs = cases[c].near + cases[c].far,
				       .n_places = 2,
				       .n_gpus = 2,
				       .gpu_rank = ranks };
		struct align_out out;

		for (size_t i = 0; i < in.n_vfs; i++)
			vfs[i] = (struct align_vf) { .place = i >= cases[c].near, .index = (int)i };
		in.want = in.n_vfs;
		out = align_solve(&in, arena);
		assert_int_equal(dealt_of(&in, &out).best[1], cases[c].both);
	}
}

static void without_gpus_the_choice_is_valid(void **state)
{
	struct tables t;

	(void)state;
	seed = 4;
	for (int i = 0; i < chance_rounds(4000); i++) {
		_cleanup_arena_ struct arena *arena = arena_new(1 << 12);
		struct align_out out, second;

		random_tables(&t, true);
		t.in.n_gpus = 0;
		if (i % 8 == 0)
			t.in.place_rank = NULL;
		out = align_solve(&t.in, arena);
		check_choice(&t.in, &out);
		assert_int_equal(out.n_pairs, 0);
		second = align_runner_up(&t.in, &out, arena);
		if (second.n_chosen > 0)
			check_choice(&t.in, &second);
	}
}

/* Over all sets of `drawn` free GPUs: the total rank of these VFs. */
static int rank_over_draws(const struct align_in *in, const int *counts)
{
	int total = 0;

	for (int set = 0; set < 1 << in->n_free; set++) {
		uint8_t rank[MAX_GPUS * MAX_PLACES];
		struct align_in drawn = { .n_places = in->n_places, .gpu_rank = rank };

		if ((size_t)__builtin_popcount((unsigned)set) != in->drawn)
			continue;
		for (size_t f = 0; f < in->n_free; f++)
			if (set >> f & 1)
				memcpy(rank + drawn.n_gpus++ * in->n_places,
				       in->free_rank + f * in->n_places, in->n_places);
		total += brute_deal(&drawn, counts).rank;
	}
	return total;
}

/* The least (rank over all draws, excess) from `place` on. */
static struct worth best_over_draws(struct search *s, int place, int left)
{
	struct worth best = { .dealt.rank = INT32_MAX }, w;

	if (place == (int)s->in->n_places) {
		if (left > 0)
			return best;
		w = worth_of(s->in, s->counts);
		w.dealt.rank = rank_over_draws(s->in, s->counts);
		w.losses = 0;
		return w;
	}
	for (int c = s->must[place]; c <= s->avail[place] && c <= left; c++) {
		s->counts[place] = c;
		w = best_over_draws(s, place + 1, left - c);
		if (worth_cmp(&w, &best) < 0)
			best = w;
	}
	return best;
}

static void gpus_that_are_drawn_are_expected_at_the_lowest_rank(void **state)
{
	int decided = 0;

	(void)state;
	seed = 5;
	for (int i = 0; i < chance_rounds(6000); i++) {
		_cleanup_arena_ struct arena *arena = arena_new(1 << 12);
		int counts[MAX_PLACES];
		struct align_out out;
		struct search s = { 0 };
		struct worth best;
		struct tables t;
		size_t v;

		random_tables(&t, true);
		v = expected_size(&t.in);
		t.in.n_gpus = 0;
		t.in.drawn = (size_t)roll((int)t.in.n_free + 1);
		out = align_solve(&t.in, arena);
		check_choice(&t.in, &out);
		if (!t.in.drawn || !v || (v % t.in.drawn && t.in.drawn % v))
			continue;
		s.in = &t.in;
		count_places(&t.in, s.avail, s.must);
		best = best_over_draws(&s, 0, (int)v);
		counts_of(&t.in, &out, counts);
		assert_int_equal(rank_over_draws(&t.in, counts), best.dealt.rank);
		assert_int_equal(worth_of(&t.in, counts).excess, best.excess);
		decided++;
	}
	assert_in_range(decided, chance_rounds(1000), chance_rounds(6000));
}

static void drawn_gpus_take_from_the_fullest_place(void **state)
{
	/* Two GPUs, each beside a place of its own; one place has a VF less. */
	static const uint8_t ranks[] = { 0, 3, 3, 0 };
	static const struct align_vf vfs[] = { { .place = 0, .index = 1 },
					       { .place = 1 },
					       { .place = 1, .index = 1 } };
	_cleanup_arena_ struct arena *arena = arena_new(1 << 12);
	struct align_in in = { .vfs = vfs,
			       .n_vfs = 3,
			       .n_places = 2,
			       .n_free = 2,
			       .free_rank = ranks,
			       .place_rank = ranks,
			       .want = 1,
			       .drawn = 1 };
	struct align_out out = align_solve(&in, arena);

	(void)state;
	assert_int_equal(out.n_chosen, 1);
	assert_int_equal(vfs[out.chosen[0]].place, 1);
}

static void more_drawn_than_can_be_counted_are_chosen_by_zones(void **state)
{
	struct align_vf vfs[ALIGN_DRAWN_MAX + 1] = { 0 };
	static const uint8_t ranks[1] = { 0 };
	_cleanup_arena_ struct arena *arena = arena_new(1 << 12);
	struct align_in in = { .vfs = vfs,
			       .n_vfs = ARRAY_LEN(vfs),
			       .n_places = 1,
			       .n_free = 1,
			       .free_rank = ranks,
			       .place_rank = ranks,
			       .want = ARRAY_LEN(vfs),
			       .drawn = 1 };

	(void)state;
	assert_int_equal(align_solve(&in, arena).n_chosen, ARRAY_LEN(vfs));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_brute_force_on_nested_machines),
		cmocka_unit_test(equals_brute_force_on_any_ranks),
		cmocka_unit_test(assigns_given_vfs_at_the_lowest_rank),
		cmocka_unit_test(no_gpu_has_two_near_vfs_while_its_equal_has_none),
		cmocka_unit_test(without_gpus_the_choice_is_valid),
		cmocka_unit_test(gpus_that_are_drawn_are_expected_at_the_lowest_rank),
		cmocka_unit_test(drawn_gpus_take_from_the_fullest_place),
		cmocka_unit_test(more_drawn_than_can_be_counted_are_chosen_by_zones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
