/*
 * The small world, all of it: 2 VFs and three pods. web-0 wants one VF, and is deleted by force
 * while it lives, and ends; job-a wants one, and is deleted likewise; another web-0 is created once
 * the first is deleted, and wants both. Between them time passes, twice. These eight moves in every
 * order, and between any two of them any fault. At the end of each: fair weather, and everything
 * that must hold then. With ResourceClaims the first web-0 and job-a share one of one VF, and the
 * second web-0 has its own, of both.
 *
 * Where two orders come to the same state, bit by bit (heap and all), what follows is looked at
 * once.
 */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

enum { MOVES_MAX = 12, STEPS_OF_MOVE = 10 };
enum move { FIRST_UP, FIRST_FORCE, FIRST_END, OTHER_UP, OTHER_FORCE, AGAIN_UP, TIME, MOVES };

struct fault {
	const char *name;
	struct step steps[6];
};
static const struct fault faults[] = {
	{ "railmated is killed", { { STEP_KILL, 0, 0 } } },
	{ "another railmated takes over", { { STEP_RESTART, 0, 0 } } },
	{ "the kubelet restarts",
	  { { STEP_KUBELET_KILL, 0, 0 }, { STEP_KUBELET_UP, 0, 0 }, { STEP_SYNC, 0, 0 } } },
	{ "it restarts, the API server away",
	  { { STEP_API, 0, 0 }, { STEP_KUBELET_KILL, 0, 0 }, { STEP_KUBELET_UP, 0, 0 } } },
	{ "PodResources is silent", { { STEP_PODRES, 0, 0 } } },
	{ "another client lists", { { STEP_LISTED, 0, 0 } } },
	{ "the disk is full", { { STEP_DISK, DISK_FULL, 0 } } },
	{ "the disk is read-only", { { STEP_DISK, DISK_READONLY, 0 } } },
	{ "the disk hangs", { { STEP_DISK, DISK_HANGS, 0 } } },
	{ "the ledger is torn", { { STEP_TEAR, 0, 0 } } },
	{ "the ledger is gone", { { STEP_LEDGER_GONE, 0, 0 } } },
	{ "an old ledger is back", { { STEP_LEDGER_OLD, 0, 0 } } },
	{ "CDI specs are deleted", { { STEP_SPECS_GONE, 0, 0 } } },
	{ "the CDI directory cannot be read", { { STEP_CDI, 0, 0 } } },
	{ "the state directory cannot be opened", { { STEP_STATE, 0, 0 } } },
	{ "nothing can be written below /run", { { STEP_RUN_FULL, 0, 0 } } },
	{ "cgroups cannot be read", { { STEP_CGROUPS, 0, 0 } } },
	{ "the scan is incomplete", { { STEP_SCAN, 0, 0 } } },
	{ "the node reboots",
	  { { STEP_REBOOT, 0, 0 }, { STEP_KUBELET_UP, 0, 0 }, { STEP_SYNC, 0, 0 } } },
};
enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

struct node { /* on the way */
	struct world world;
	struct heap_copy heap;
	unsigned n_steps;
};
struct state {
	uint64_t hash;
	unsigned long long runs; /* from there on */
};
struct search {
	struct world w;
	struct node nodes[2 * MOVES_MAX];
	struct schedule path;
	unsigned depth;
	enum binding binding;
	bool fine;
	int first, other, again; /* pods; -1 */
	struct explored *out;
	struct state *seen;
	size_t n_seen, cap_seen;
};

/* --- states that were there before --- */

static uint64_t hash_bytes(const void *p, size_t n, uint64_t h)
{
	const unsigned char *s = p;
	uint64_t word;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	for (; n; n--)
		h = (h ^ *s++) * 0x100000001b3u;
	return h;
}

/* Where this one is, or would be. */
static struct state *find(struct state *table, size_t cap, uint64_t h)
{
	size_t at = h % cap;

	while (table[at].hash && table[at].hash != h)
		at = (at + 1) % cap;
	return &table[at];
}

static void grow(struct search *s)
{
	size_t cap = s->cap_seen ? s->cap_seen * 2 : 1 << 16;
	struct state *table;

	heap_off();
	table = calloc(cap, sizeof(*table));
	for (size_t i = 0; i < s->cap_seen; i++) {
		if (s->seen[i].hash)
			*find(table, cap, s->seen[i].hash) = s->seen[i];
	}
	free(s->seen);
	heap_on();
	s->seen = table;
	s->cap_seen = cap;
}

static uint64_t hash_of(const struct search *s, const unsigned *todo, unsigned left)
{
	uint64_t h = hash_bytes(todo, MOVES * sizeof(*todo), left + 1);

	h = hash_bytes(&s->w, sizeof(s->w), h);
	return heap_hash(h, hash_bytes) | 1;
}

/* --- there and back --- */

static void enter(struct search *s)
{
	struct node *n = &s->nodes[s->depth++];

	n->n_steps = s->path.n;
	if (!heap_there())
		return;
	n->world = s->w;
	heap_save(&n->heap);
}

static void replay(struct search *s)
{
	if (s->w.u.up)
		us_kill(&s->w);
	free(s->w.s.ledger.s);
	free(s->w.s.older.s);
	world_begin(&s->w, &s->path.cfg, false);
	for (unsigned i = 0; i < s->path.n; i++)
		step_do(&s->w, &s->path.steps[i]);
}

static void leave(struct search *s)
{
	struct node *n = &s->nodes[--s->depth];

	s->path.n = n->n_steps;
	if (!heap_there()) {
		replay(s);
		return;
	}
	s->w = n->world;
	heap_restore(&n->heap);
}

static void take(struct search *s, struct step step)
{
	if (s->w.broken[0] || !step_do(&s->w, &step))
		return;
	s->path.steps[s->path.n++] = step;
}

/* A railmated that died is started again, as a DaemonSet's is. */
static void go_on(struct search *s)
{
	take(s, (struct step) { STEP_UP, 0, 0 });
	take(s, (struct step) { STEP_REGISTER, 0, 0 });
}

/* --- moves --- */

static int up(struct search *s, uint8_t name, unsigned want)
{
	int pod = (int)s->w.n_pods;

	if (s->binding == BINDING_CLAIMS)
		take(s, (struct step) { STEP_CLAIM_POD, name, want - 1 + want * CLAIMS_MAX });
	else
		take(s, (struct step) { STEP_PLAIN, name, want });
	take(s, (struct step) { STEP_ADMIT_ALL, 0, 0 });
	take(s, (struct step) { STEP_START, (uint8_t)pod, 0 });
	return pod;
}

static void pass_time(struct search *s)
{
	static const struct step steps[] = {
		{ STEP_RUN, 0, 0 },	  { STEP_WAIT, 4, 0 },	{ STEP_STORE, 0, 0 },
		{ STEP_STORED, 0, 0 },	  { STEP_TIMER, 0, 0 }, { STEP_POLL, 0, 0 },
		{ STEP_WAIT, 4, 0 },	  { STEP_TIMER, 0, 0 }, { STEP_POLL, 0, 0 },
		{ STEP_RECONCILE, 0, 0 },
	};

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		take(s, steps[i]);
}

static void make(struct search *s, enum move move)
{
	switch (move) {
	case FIRST_UP:
		s->first = up(s, 0, 1);
		break;
	case FIRST_FORCE:
		take(s, (struct step) { STEP_FORCE, (uint8_t)s->first, 0 });
		break;
	case FIRST_END:
		take(s, (struct step) { STEP_STOP, (uint8_t)s->first, 0 });
		take(s, (struct step) { STEP_TEARDOWN, (uint8_t)s->first, 0 });
		break;
	case OTHER_UP:
		s->other = up(s, 2, 1);
		break;
	case OTHER_FORCE:
		take(s, (struct step) { STEP_FORCE, (uint8_t)s->other, 0 });
		break;
	case AGAIN_UP:
		s->again = up(s, 0, 2);
		break;
	default:
		pass_time(s);
		break;
	}
	go_on(s);
}

/* Its turn, by what has to come before it. */
static bool may_make(const unsigned *todo, unsigned move)
{
	switch (move) {
	case FIRST_FORCE:
		return !todo[FIRST_UP];
	case FIRST_END:
	case AGAIN_UP:
		return !todo[FIRST_FORCE];
	case OTHER_FORCE:
		return !todo[OTHER_UP];
	default:
		return true;
	}
}

static bool search(struct search *s, unsigned *todo, unsigned left);

static bool finish(struct search *s)
{
	s->out->runs++;
	enter(s);
	check_fair(&s->w);
	if (s->w.broken[0])
		return false;
	leave(s);
	return true;
}

static bool try_moves(struct search *s, unsigned *todo, unsigned left)
{
	bool any = false;

	for (unsigned m = 0; m < MOVES; m++) {
		int first = s->first, other = s->other, again = s->again;

		if (!todo[m] || !may_make(todo, m))
			continue;
		any = true;
		enter(s);
		todo[m]--;
		make(s, (enum move)m);
		if (s->w.broken[0] || !search(s, todo, left))
			return false;
		todo[m]++;
		leave(s);
		s->first = first;
		s->other = other;
		s->again = again;
	}
	return any || finish(s);
}

static bool try_faults(struct search *s, unsigned *todo, unsigned left)
{
	for (unsigned f = 0; f < FAULTS; f++) {
		if (!step_can(&s->w, &faults[f].steps[0]))
			continue;
		enter(s);
		for (unsigned i = 0; i < 6 && (faults[f].steps[i].kind != STEP_POD); i++)
			take(s, faults[f].steps[i]);
		go_on(s);
		if (s->w.broken[0] || !search(s, todo, left - 1))
			return false;
		leave(s);
	}
	return true;
}

/* railmated dies at its n-th action of this move, for every n. */
static bool try_deaths(struct search *s, unsigned *todo)
{
	for (unsigned m = 0; m < MOVES; m++) {
		int first = s->first, other = s->other, again = s->again;
		bool died = true;

		if (!todo[m] || !may_make(todo, m))
			continue;
		todo[m]--;
		for (unsigned n = 0; died; n++) {
			enter(s);
			take(s, (struct step) { STEP_FUSE, 0, n });
			make(s, (enum move)m);
			died = !s->w.fuse;
			if (s->w.broken[0] || (died && !search(s, todo, 0)))
				return false;
			leave(s);
			s->first = first;
			s->other = other;
			s->again = again;
		}
		todo[m]++;
	}
	return true;
}

static bool search_on(struct search *s, unsigned *todo, unsigned left)
{
	if (!try_moves(s, todo, left))
		return false;
	if (left && !try_faults(s, todo, left))
		return false;
	return !s->fine || !left || try_deaths(s, todo);
}

static bool search(struct search *s, unsigned *todo, unsigned left)
{
	unsigned long long before = s->out->runs;
	struct state *known;
	uint64_t h;
	bool held;

	if (!heap_there()) {
		s->out->states++;
		return search_on(s, todo, left);
	}
	if (2 * s->n_seen >= s->cap_seen)
		grow(s);
	h = hash_of(s, todo, left);
	known = find(s->seen, s->cap_seen, h);
	if (known->hash) {
		s->out->runs += known->runs;
		return true;
	}
	s->n_seen++;
	s->out->states++;
	*known = (struct state) { h, 0 };
	held = search_on(s, todo, left);
	find(s->seen, s->cap_seen, h)->runs = s->out->runs - before;
	return held;
}

bool explore(enum binding binding, unsigned n_faults, bool fine, struct explored *ret,
	     struct schedule *ret_failed)
{
	struct search *s = calloc(1, sizeof(*s));
	unsigned todo[MOVES] = {
		[FIRST_UP] = 1,	   [FIRST_FORCE] = 1, [FIRST_END] = 1, [OTHER_UP] = 1,
		[OTHER_FORCE] = 1, [AGAIN_UP] = 1,    [TIME] = 2
	};
	bool held;

	*ret = (struct explored) { 0, 0 };
	s->binding = binding;
	s->fine = fine;
	s->out = ret;
	s->first = s->other = s->again = -1;
	s->path.cfg = (struct config) { .n_pools = 1,
					.pools = { { .late = binding == BINDING_LATE,
						     .dra = binding == BINDING_CLAIMS,
						     .n = 2 } },
					.active_only = true,
					.counts_users = true };
	heap_on();
	world_begin(&s->w, &s->path.cfg, false);
	held = search(s, todo, n_faults);
	*ret_failed = s->path;
	if (s->w.u.up)
		us_kill(&s->w);
	free(s->w.s.ledger.s);
	free(s->w.s.older.s);
	heap_off();
	heap_reset();
	for (unsigned i = 0; i < 2 * MOVES_MAX; i++)
		heap_copy_done(&s->nodes[i].heap);
	free(s->seen);
	free(s);
	return held;
}
