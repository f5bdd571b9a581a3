/* Fair weather: what waits is served, what is gone is freed, within a minute. */
#include "sim.h"

#include <string.h>

enum { TICK_MS = 250, POLL_MS = 1000, KNOWN_MS = 10000, MINUTE_MS = 60000, LONG_MS = 660000 };

static void clear_up(struct world *w)
{
	w->fuse = 0;
	w->forgetful = false;
	w->api = w->podres = true;
	w->cgroups_unreadable = w->scan_incomplete = w->checkpoint_unreadable = false;
	w->sick = 0;
	w->s.disk = DISK_WELL;
	w->s.away = w->s.run_full = w->s.cdi_unreadable = false;
	if (!w->k.up)
		kubelet_start(w);
	if (!w->u.up)
		us_start(w);
	us_register(w);
	us_list(w);
	if (!w->k.sources)
		kubelet_sync(w);
	w->u.next_probe_ms = w->now_ms;
}

static void poll(struct world *w)
{
	for (unsigned i = 0; i < ASKED_MAX; i++) {
		struct answer *a = &w->u.asked[i];

		if (!a->asked)
			continue;
		if (!a->here)
			kubelet_answer(w, a);
		us_take(w, a);
	}
	us_ask(w);
	kubelet_gc(w);
	kubelet_answer(w, &w->u.asked[0]);
	us_take(w, &w->u.asked[0]);
}

static void work(struct world *w)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		for (unsigned n = 0; n < 8 && w->u.op[i].there; n++) {
			if (can_store(w))
				us_store(w);
			if (w->u.storing)
				us_stored(w);
			us_op(w, &w->u.op[i], (uint32_t)w->now_ms);
		}
	}
}

/* What the kubelet does with a pod. ends: also those that it has forgotten end. One without a UID
 * does not live on for ten minutes after that: README.md. */
static void drive(struct world *w, int pod, bool ends)
{
	struct pod *p = &w->pods[pod];

	if (p->known && p->rejected && p->in_api)
		pod_delete(w, pod, false);
	if (pod_has_ends(p) && !p->over && (ends || p->known || pod_is_nameless(w, pod))) {
		pod_stop(w, pod);
		pod_teardown(w, pod);
	}
	if (p->over && p->deleting)
		p->known = p->in_api = false;
	if (can_prepare(w, pod)) {
		kubelet_prepare(w, pod);
		work(w);
	}
	if (can_sandbox(w, pod))
		pod_sandbox(w, pod);
	for (int c = 0; c < CTRS; c++) {
		if (can_call(w, pod, c))
			kubelet_call(w, pod, c);
		work(w);
		if (can_create(w, pod, c))
			ctr_create(w, pod, c);
		if (p->c[c].alive && p->c[c].init)
			ctr_exit(w, pod, c, true);
	}
}

static void tick(struct world *w, bool ends, int64_t ms)
{
	w->now_ms += ms;
	while (can_admit(w))
		kubelet_admit(w, (uint32_t)w->now_ms);
	for (int p = 0; p < (int)w->n_pods; p++)
		drive(w, p, ends);
	work(w);
	if (can_store(w))
		us_store(w);
	if (w->u.storing)
		us_stored(w);
	if (w->now_ms < w->u.next_probe_ms)
		return;
	us_timer(w);
	poll(w);
	kubelet_reconcile(w);
}

/* --- what could be served --- */

static bool has_room(const struct world *w, int pod, unsigned pool, set ids, unsigned want,
		     set taken)
{
	if (w->cfg.pools[pool].late && w->cfg.pools[pool].moves && !w->pods[pod].sandbox)
		want = count(ids); /* CNI ADD binds those of all containers */
	return w->cfg.pools[pool].late ? count(pool_set(w, pool) & ~taken) >= want : !(ids & taken);
}

/* VFs of claims that the kubelet has, or whose pods have processes; of some not those that they
 * have still. */
static set held_by_claims(const struct world *w, unsigned but)
{
	set s = 0;

	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		const struct ledger_hold *hold = us_hold(w, vf);
		int claim = hold ? claim_number(hold->owner.claim) : -1;

		if (claim >= 0 && (w->claims[claim].cached ||
				   has_processes(&w->pods[uid_number(hold->owner.uid)])))
			s |= !hold->draining && (but >> claim & 1) ? 0 : 1u << vf;
	}
	return s;
}

/* Other containers of the pod: what an app or restartable one was given stays its own, and a slot
 * that an init container had and this one has not stays allocated, with its VF. */
static set kept_by_others(const struct world *w, int pod, int c)
{
	set s = 0, slots = 0;

	for (int i = 0; i < CTRS; i++) {
		const struct ctr *other = &w->pods[pod].c[i];

		if (i == c || !other->there)
			continue;
		s |= other->init ? 0 : other->had;
		slots |= w->k.devs[pod][i];
	}
	for (slots &= ~w->k.devs[pod][c]; slots; slots &= slots - 1) {
		const struct record *spec = &w->s.spec[lowest(slots)];

		if (spec->there && w->cfg.pools[spec->pool].late)
			s |= 1u << spec->vf;
	}
	return s;
}

/* Another container of the pod, and none that hands over what it has. */
static bool is_beside(const struct world *w, int pod, int c, int8_t container)
{
	return container != CTR_UNKNOWN && container != CTR_INIT &&
	       container != (int8_t)ctr_kind(w, pod, c);
}

/*
 * VFs that this container cannot have: in live containers, in other pods' namespaces, and those
 * that are on record as another one's whose pod still has processes (a pause container, at least):
 * that it was created after all cannot be ruled out.
 */
static set taken_from(const struct world *w, int pod, int c)
{
	set s = used_by_live(w);

	s |= w->strange;
	for (int p = 0; p < (int)w->n_pods; p++)
		s |= p == pod ? 0 : w->pods[p].away | pod_had(&w->pods[p]);
	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		const struct record *map = &w->s.map[vf];

		if (map->there && map->who.uid >= 0 && w->pods[map->who.uid].sandbox &&
		    (map->who.uid != pod || is_beside(w, pod, c, map->who.container)))
			s |= 1u << vf;
	}
	return s | kept_by_others(w, pod, c) | held_by_claims(w, 0);
}

/* The ledger is lost, and the checkpoint has a slot of this pool with two pods, one of which is
 * gone: its UID is not known before the kubelet writes the file again. */
static bool is_filed_twice(const struct world *w, unsigned pool)
{
	const struct ledger_owner *owner;
	const char *slot;

	for (size_t k = 0; (slot = holds_unknown(w->u.h, k, &owner)); k++) {
		unsigned id = (unsigned)slot_number(slot), n = 0;

		for (unsigned p = 0; p < w->n_pods; p++)
			n += pod_devs(w->k.file, (int)p) >> id & 1;
		if (pool_of(w, id) == pool && n > 1 && !owner->uid[0])
			return true;
	}
	return false;
}

/*
 * A pod has slots of this pool and processes, and records name fewer VFs of it: with the ledger
 * lost it cannot be told from one whose records are lost as well, and nothing of the pool is given
 * until it starts or ends.
 */
static bool is_uncertain(const struct world *w, unsigned pool, int pod)
{
	for (int p = 0; p < (int)w->n_pods && w->cfg.pools[pool].late; p++) {
		unsigned recorded = 0;

		for (unsigned vf = 0; vf < w->n_vfs; vf++)
			recorded += w->s.map[vf].there && w->s.map[vf].pool == pool &&
				    w->s.map[vf].who.uid == p;
		if (p != pod && w->pods[p].sandbox &&
		    recorded < count(pod_had(&w->pods[p]) & pool_set(w, pool)))
			return true;
	}
	return false;
}

/* Another container of its pod has a slot of the pool, one of the pod's lives, and with all records
 * lost nothing says which: the cgroup of a pod is that of all its containers. */
static bool is_uncertain_within(const struct world *w, unsigned pool, int pod, int c)
{
	const struct ledger_owner *owner;
	const char *slot;

	for (size_t k = 0; (slot = holds_unknown(w->u.h, k, &owner)); k++) {
		struct who who = who_of(owner);

		if (pool_of(w, (unsigned)slot_number(slot)) == pool &&
		    who.name == w->pods[pod].name && (who.uid < 0 || who.uid == pod) &&
		    who.container != (int8_t)ctr_kind(w, pod, c) && pod_lives(&w->pods[pod]))
			return true;
	}
	return false;
}

/* Two containers that run beside each other have one id: of an ordinary init container and a
 * sidecar no List shows that, and an early id is one VF. Such a pod has to be deleted. */
static bool shares_ids(const struct world *w, int pod, int c)
{
	const struct pod *p = &w->pods[pod];

	for (int i = 0; i < CTRS; i++) {
		set both = i == c ? 0 : w->k.devs[pod][i] & w->k.devs[pod][c];

		if (both && p->c[i].alive && p->c[c].init)
			return true;
		for (; both && !p->c[i].init && !p->c[c].init; both &= both - 1) {
			if (!w->cfg.pools[pool_of(w, (unsigned)lowest(both))].late)
				return true;
		}
	}
	return false;
}

/* What no claim but these gets. */
static set taken_by_claims(const struct world *w, unsigned but)
{
	set s = used_by_live(w) | had_by_running(w) | w->strange | w->k.allocated |
		held_by_claims(w, but);

	for (unsigned p = 0; p < w->n_pods; p++)
		s |= pod_is_active(&w->pods[p]) ? pod_devs(w->k.devs, (int)p) : 0;
	return s & pool_set(w, (unsigned)dra_pool(w));
}

/* Of those that are not prepared. */
static bool has_room_for_claims(const struct world *w, const struct pod *p)
{
	unsigned claims = 0;

	for (unsigned c = 0; c < w->n_claims; c++)
		claims |= (p->claims >> c & 1) && !w->claims[c].kept ? 1u << c : 0;
	return !claims || count(pool_set(w, (unsigned)dra_pool(w)) & ~taken_by_claims(w, claims)) >=
				  count(claim_slots(w, claims));
}

/* The kubelet has lost its claims to another pod that has them, or it has joined one that was about
 * to be unprepared: it is broken, and has to be deleted. */
static bool lost_claims(const struct world *w, const struct pod *p)
{
	bool lost = !claims_are_known(w, p->claims);

	for (unsigned c = 0; c < w->n_claims; c++)
		lost |= (p->claims >> c & 1) && !w->claims[c].kept;
	return p->sandbox && !w->cfg.counts_users && lost;
}

/* The claim cannot be unprepared while two of its pods run that the kubelet has forgotten, nor
 * joined meanwhile. */
static bool is_held_up(const struct world *w, const struct pod *p)
{
	bool held_up = false, waits = false;

	for (unsigned c = 0; c < w->n_claims; c++) {
		unsigned n = 0;

		waits |= (p->claims >> c & 1) && w->claims[c].unpreparing;

		for (unsigned i = 0; i < w->n_pods; i++)
			n += (w->pods[i].claims >> c & 1) && has_processes(&w->pods[i]);
		held_up |= w->claims[c].unpreparing && n > 1; /* in one call with others */
	}
	return held_up && waits;
}

/* NULL: the container runs, or cannot run yet. */
static const char *is_refused(const struct world *w, int pod, int c)
{
	const struct pod *p = &w->pods[pod];
	const struct ctr *ctr = &p->c[c];

	if (!pod_is_active(p) || p->deleting || !ctr->there || ctr->alive || ctr->state == CTR_DONE)
		return NULL;
	if (!p->admitted)
		return "is not admitted";
	if (!kubelet_is_next(p, c))
		return NULL; /* the one before it is what counts */
	if (shares_ids(w, pod, c))
		return NULL;
	if (p->claims && (lost_claims(w, p) || is_held_up(w, p) || !has_room_for_claims(w, p)))
		return NULL;
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		set ids = (p->sandbox ? w->k.devs[pod][c] : pod_devs(w->k.devs, pod)) &
			  pool_set(w, i);

		if (!has_room(w, pod, i, ids, ctr->want[i], taken_from(w, pod, c)) ||
		    (ctr->want[i] && (is_uncertain(w, i, pod) || is_filed_twice(w, i) ||
				      is_uncertain_within(w, i, pod, c))))
			return NULL;
	}
	return "does not start";
}

static const char *why_refused(const struct world *w, int pod)
{
	const char *why = NULL;

	for (int c = 0; c < CTRS && !why; c++)
		why = is_refused(w, pod, c);
	return why;
}

static int find_refused(const struct world *w)
{
	for (int p = 0; p < (int)w->n_pods; p++) {
		if (why_refused(w, p))
			return p;
	}
	return -1;
}

static bool anything_ends(const struct world *w)
{
	for (unsigned p = 0; p < w->n_pods; p++) {
		if (pod_has_ends(&w->pods[p]) && !w->pods[p].over)
			return true;
	}
	return false;
}

/* Holds and slots of which only a name is known are kept for ten minutes: nothing better can be
 * known of them. */
static bool has_nameless(const struct world *w)
{
	const struct ledger_owner *owner;

	for (size_t i = 0; i < ledger_holds(holds_ledger(w->u.h)); i++) {
		if (!ledger_hold_at(holds_ledger(w->u.h), i)->owner.uid[0])
			return true;
	}
	for (size_t k = 0; holds_unknown(w->u.h, k, &owner); k++) {
		if (!owner->uid[0])
			return true;
	}
	return false;
}

/* Since when what this pod waits for is there: the kubelet may have given its slot to several
 * containers, which then start one after the other. */
static int64_t waits_since(const struct world *w, int pod, int64_t fair_ms)
{
	set ids = pod_devs(w->k.devs, pod);

	for (unsigned p = 0; p < w->n_pods; p++) {
		for (unsigned c = 0; c < CTRS; c++) {
			const struct ctr *ctr = &w->pods[p].c[c];

			if (ctr->alive && (ctr->ids & ids) && ctr->ok_ms > fair_ms)
				fair_ms = ctr->ok_ms;
		}
	}
	return fair_ms;
}

/* Until all is served, and a minute at most. */
static void wait_for_service(struct world *w, bool ends, const char *when)
{
	int64_t fair_ms = w->now_ms, until;
	int pod = 0;

	do {
		tick(w, ends, TICK_MS);
		pod = find_refused(w);
		until = (pod < 0 ? fair_ms : waits_since(w, pod, fair_ms)) + MINUTE_MS;
	} while (!w->broken[0] && (pod >= 0 || (ends && anything_ends(w))) && w->now_ms < until);
	if (pod >= 0 && has_nameless(w)) {
		for (until = w->now_ms + LONG_MS; pod >= 0 && !w->broken[0] && w->now_ms < until;) {
			tick(w, ends, POLL_MS * 5);
			pod = find_refused(w);
		}
	}
	if (pod >= 0)
		broken(w, "%s: pod %d (%s) %s after a minute of fair weather, and could be served",
		       when, pod, pod_name(w, pod), why_refused(w, pod));
}

static void delete_all(struct world *w)
{
	for (int p = 0; p < (int)w->n_pods; p++) {
		if (can_delete(w, p))
			pod_delete(w, p, false);
	}
}

static bool has_holds(const struct world *w)
{
	return ledger_holds(holds_ledger(w->u.h)) > 0 || holds_unknown(w->u.h, 0, NULL);
}

static void wait_for_freedom(struct world *w)
{
	int64_t until = w->now_ms + MINUTE_MS;

	do
		tick(w, true, TICK_MS);
	while (!w->broken[0] && (has_holds(w) || anything_ends(w)) && w->now_ms < until);
	until = w->now_ms + (has_nameless(w) ? LONG_MS : 0);
	while (!w->broken[0] && has_holds(w) && w->now_ms < until)
		tick(w, true, POLL_MS * 5);
}

/* A pod of one container. vfs: by a claim. */
static int run_pod(struct world *w, uint8_t name, struct ctr *c, unsigned vfs, bool ends)
{
	int pod;

	c->claims = vfs ? (uint8_t)(1u << claim_create(w, vfs, false)) : 0;
	pod = pod_create_as(w, name, false, c, 1);
	w->pods[pod].claims = c->claims;

	for (int64_t until = w->now_ms + MINUTE_MS; !w->broken[0] && !w->pods[pod].c[0].alive &&
						    !w->pods[pod].rejected && w->now_ms < until;)
		tick(w, ends, TICK_MS);
	return pod;
}

/* VFs of this pool that neither a pod uses nor the kubelet counts on: of slots, each has one. */
static unsigned idle(const struct world *w, unsigned pool)
{
	set mine = pool_set(w, pool), taken = taken_from(w, (int)w->n_pods, 0) & mine,
	    given = w->k.allocated & mine, its = 0;
	unsigned busy;

	for (unsigned p = 0; p < w->n_pods; p++) /* whose reservation may be lost */
		given |= pod_is_active(&w->pods[p]) ? pod_devs(w->k.devs, (int)p) & mine : 0;
	for (set s = taken & ~given & ~w->strange; s; s &= s - 1) {
		if (!us_hold(w, (unsigned)lowest(s)))
			return 0; /* its last record is lost: nothing keeps it from the kubelet */
	}
	if (!w->cfg.pools[pool].late)
		return count(mine & ~taken & ~given);
	for (set s = given; s; s &= s - 1) {
		const struct record *spec = &w->s.spec[lowest(s)];

		if (spec->there && spec->who.uid >= 0 &&
		    (pod_devs(w->k.devs, spec->who.uid) >> lowest(s) & 1))
			its |= 1u << spec->vf;
	}
	busy = count(given) + count(taken & ~its);
	return busy < count(mine) ? count(mine) - busy : 0;
}

/* While containers that the kubelet has forgotten live on: a pod that wants all that is idle. */
static void probe_idle(struct world *w)
{
	struct ctr c = { .there = true };
	unsigned sum = 0, by_claim = 0;
	int pod;

	/* By then the kubelet has been told what is not. */
	for (int64_t until = w->now_ms + KNOWN_MS; !w->broken[0] && w->now_ms < until;)
		tick(w, false, POLL_MS);
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		if (w->cfg.pools[i].dra && !w->cfg.mixed) {
			by_claim = count(pool_set(w, i) & ~taken_by_claims(w, 0));
			for (unsigned p = 0; p < w->n_pods; p++) /* it may get them first */
				by_claim = pod_is_active(&w->pods[p]) && w->pods[p].claims &&
							   !w->pods[p].sandbox
						   ? 0
						   : by_claim;
			sum += by_claim;
			continue;
		}
		c.want[i] = is_uncertain(w, i, -1) ? 0 : (uint8_t)idle(w, i);
		sum += c.want[i];
	}
	if (!sum || has_nameless(w))
		return;
	pod = run_pod(w, PODS_MAX - 2, &c, by_claim, false);
	if (!w->pods[pod].c[0].alive)
		broken(w, "a pod that wants %u + %u + %u VFs, which are idle, %s", c.want[0],
		       c.want[1], by_claim,
		       w->pods[pod].rejected ? "is rejected" : "does not start");
}

/* A pod that wants all there is. */
static void probe(struct world *w)
{
	struct ctr c = { .there = true };
	unsigned by_claim = 0;
	int pod;

	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		if (w->cfg.pools[i].dra)
			by_claim = w->cfg.pools[i].n;
		else
			c.want[i] = (uint8_t)w->cfg.pools[i].n;
	}
	pod = run_pod(w, PODS_MAX - 1, &c, by_claim, true);
	if (w->pods[pod].c[0].alive)
		return;
	for (size_t i = 0; i < ledger_holds(holds_ledger(w->u.h)); i++) {
		const struct ledger_hold *h = ledger_hold_at(holds_ledger(w->u.h), i);

		say(w, "hold %s slot %s %s/%s %s%s", h->vf, h->slot ? h->slot : "-", h->owner.pod,
		    h->owner.uid, h->pending ? "pending " : "", h->draining ? "draining" : "");
	}
	broken(w, "a VF is lost: all pods have ended, and a pod that wants all VFs %s",
	       w->pods[pod].rejected ? "is rejected" : "does not start");
}

void check_fair(struct world *w)
{
	clear_up(w);
	wait_for_service(w, false, "while forgotten containers live on");
	if (!w->broken[0])
		probe_idle(w);
	if (!w->broken[0])
		wait_for_service(w, true, "forgotten containers have ended");
	if (w->broken[0])
		return;
	w->strange = 0;
	us_list(w);
	delete_all(w);
	wait_for_freedom(w);
	if (!w->broken[0])
		probe(w);
}
