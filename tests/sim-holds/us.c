/*
 * The least that a daemon around `holds` has to do: files, clock, calls. It does exactly what
 * holds.h asks for, in that order, and dies between any two of its actions when the fuse says so.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/event.h"
#include "base/str.h"

/* A start takes longer than decisions are made in, so numbers from the clock are new. */
enum { PROBE_MS = 1000, START_MS = 10 };

void cut(struct world *w)
{
	w->actions++;
	if (w->fuse && !--w->fuse && w->dead)
		longjmp(*w->dead, 1);
}

const struct ledger_hold *us_hold(const struct world *w, unsigned vf)
{
	return ledger_find(holds_ledger(w->u.h), vf_name(vf));
}

void us_look(const struct world *w, unsigned vf, struct holds_facts *ret)
{
	const struct ledger_hold *hold = us_hold(w, vf);

	machine_look(w, vf, uid_number(hold ? hold->owner.uid : ""), ret);
}

/* --- keeping records --- */

bool us_works_at(const struct world *w, unsigned slot)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		if (w->u.op[i].there && (w->u.op[i].bound >> slot & 1))
			return true;
	}
	return false;
}

static void tidy_spec(struct world *w, unsigned slot)
{
	bool needed = holds_needs_record(w->u.h, NULL, slot_name(slot));
	struct record *spec = &w->s.spec[slot];
	const struct ledger_hold *hold;

	if (spec->there && !needed) {
		cut(w);
		check_spec_removed(w, slot);
		spec->there = false;
	} else if (w->u.claims_read && !spec->there && needed && !us_works_at(w, slot)) {
		hold = ledger_find_slot(holds_ledger(w->u.h), slot_name(slot));
		if (hold && !hold->pending)
			record_write(w, spec, hold);
	}
}

/* It is written when its container starts, and not again. */
static void tidy_map(struct world *w, unsigned vf)
{
	bool needed = holds_needs_record(w->u.h, vf_name(vf), NULL);
	struct record *map = &w->s.map[vf];

	if (map->there && !needed) {
		cut(w);
		check_map_removed(w, vf);
		map->there = false;
	}
}

/* Nothing is written before all that is there was read: it may be newer. */
static void tidy(struct world *w)
{
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		const struct pool *pool = &w->cfg.pools[i];

		for (unsigned k = pool->first; k < pool->first + pool->n; k++) {
			if (pool->late && !w->s.cdi_unreadable)
				tidy_spec(w, k);
			tidy_map(w, k);
		}
	}
	for (unsigned k = 0; k < w->n_claims * CLAIM_VFS && !w->s.cdi_unreadable; k++)
		tidy_spec(w, VFS_MAX + k);
}

/* --- what the kubelet is told --- */

bool us_is_filed(const struct world *w, unsigned vf)
{
	bool known = !w->checkpoint_unreadable && !w->cfg.pools[pool_of(w, vf)].late, filed = false;

	for (unsigned p = 0; p < w->n_pods && known; p++)
		filed |= pod_devs(w->k.file, (int)p) >> vf & 1;
	return filed;
}

struct holds_verdict us_judge(const struct world *w, unsigned vf, struct arena *a)
{
	struct holds_facts facts;
	const struct holds_view view = { .vf = vf_name(vf),
					 .resource = resource_name(pool_of(w, vf)),
					 .unhealthy = w->sick >> vf & 1 ? "its link is down" : NULL,
					 .given = us_is_filed(w, vf),
					 .facts = &facts };

	us_look(w, vf, &facts);
	return holds_judge(w->u.h, &view, a);
}

/* What no container has, and something uses: of that nothing tells the daemon. */
static set used_by_none(const struct world *w)
{
	set s = 0;

	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		struct holds_facts f;

		us_look(w, vf, &f);
		s |= !us_hold(w, vf) && (f.open || f.away || f.unreadable) ? 1u << vf : 0;
	}
	return s;
}

/* Of early pools by the verdicts; of late ones so many free slots are Unhealthy as there are VFs
 * that are not free and that no slot has. */
void us_list(struct world *w)
{
	set healthy = (1u << w->n_vfs) - 1, used = 0, waits = 0, lost = 0, has = 0;
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct holds_slots slots = holds_slots(w->u.h, a);

	for (size_t i = 0; i < slots.n_uses; i++) {
		set slot = 1u << slot_number(slots.uses[i].slot);

		if (claim_of((unsigned)slot_number(slots.uses[i].slot)) >= 0) {
			if (!slots.uses[i].vf)
				broken(w, "%s is promised: no kubelet gives it",
				       slots.uses[i].slot);
			continue;
		}
		if (used & slot) /* of two VFs that it had, one is told (pool_slots()) */
			continue;
		used |= slot;
		waits |= slots.uses[i].vf ? 0 : slot;
		has |= slots.uses[i].vf ? 1u << vf_number(slots.uses[i].vf) : 0;
	}
	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		struct holds_verdict v = us_judge(w, vf, a);

		healthy &= v.offered ? ~0u : ~(1u << vf);
		lost |= holds_is_spare(&v) || (has >> vf & 1) ? 0 : 1u << vf;
	}
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		set mine = pool_set(w, i), free = mine & ~used;

		if (!w->cfg.pools[i].late)
			continue;
		healthy |= mine;
		for (unsigned n = count(lost & mine); n && free; n--) {
			set last = 1u << (31 - __builtin_clz(free));

			healthy &= ~last;
			free &= ~last;
		}
	}
	w->u.used = used_by_none(w);
	check_offer(w, healthy, used, waits);
	if (w->k.pluggedin && healthy != w->k.healthy)
		kubelet_list(w, healthy);
}

/* --- actions --- */

static void hear(struct world *w, const struct holds_action *a)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	if (w->trace) {
		event_text(&text, a->text);
		say(w, "railmated: %s%s", a->bad ? "WARN " : "", text.s);
	}
	if (!a->text[0])
		broken(w, "an empty sentence");
	for (unsigned i = 0; i < w->n_vfs; i++) {
		w->said |= strstr(a->text, vf_name(i)) ? 1u << i : 0;
		w->said_slots |= strstr(a->text, slot_name(i)) ? 1u << i : 0;
	}
}

static void look(struct world *w, unsigned vf)
{
	struct holds_facts facts;

	us_look(w, vf, &facts);
	cut(w);
	holds_event(
		w->u.h,
		&(struct holds_event) { .kind = HOLDS_PROBED, .vf = vf_name(vf), .facts = &facts },
		now_of(w));
}

void us_settle(struct world *w, const char *event)
{
	struct holds_action a;
	bool list = false;

	for (unsigned n = 0; holds_next(w->u.h, &a); n++) {
		cut(w);
		if (a.kind == HOLDS_SAY)
			hear(w, &a);
		else if (a.kind == HOLDS_PROBE)
			look(w, (unsigned)vf_number(a.text));
		else
			list = true;
		if (n > 200) {
			broken(w, "%s: actions without end", event);
			break;
		}
	}
	tidy(w);
	if (list)
		us_list(w);
	check_explained(w, event);
	check_live(w, event);
}

/* --- life --- */

static struct ledger *read_ledger(struct world *w)
{
	struct ledger *l = NULL;

	if (!w->s.ledger.s)
		return NULL;
	if (ledger_read(w->s.ledger.s, w->s.ledger.len, "ledger.json", &l, NULL) < 0)
		disk_remove_ledger(w); /* set aside */
	return l;
}

static void claim(struct world *w, const struct record *r, const char *source)
{
	struct holds_claim c = { .vf = vf_name(r->vf),
				 .resource = resource_name(r->pool),
				 .slot = r->slot < 0 ? NULL : slot_name((unsigned)r->slot),
				 .owner = owner_of(r->who),
				 .number = r->number,
				 .source = source };

	if (r->slot >= VFS_MAX)
		c.owner.claim = claim_name((unsigned)claim_of((unsigned)r->slot));
	say(w, "claim: %s: %s slot %s of %s (%s) number %llu", source, c.vf, c.slot ? c.slot : "-",
	    c.owner.pod ? c.owner.pod : "", c.owner.uid, (unsigned long long)c.number);
	cut(w);
	holds_event(w->u.h, &(struct holds_event) { .kind = HOLDS_CLAIMED, .claim = &c },
		    now_of(w));
}

static void read_claims(struct world *w)
{
	for (unsigned i = 0; i < SLOTS_MAX && !w->s.cdi_unreadable; i++) {
		if (w->s.spec[i].there)
			claim(w, &w->s.spec[i], "a CDI spec");
	}
	for (unsigned i = 0; i < w->n_vfs; i++) {
		if (record_names(&w->s.map[i]))
			claim(w, &w->s.map[i], "map.json");
	}
	cut(w);
	holds_event(w->u.h,
		    &(struct holds_event) { .kind = HOLDS_CLAIMS_READ,
					    .complete = !w->s.cdi_unreadable },
		    now_of(w));
	w->u.claims_read = !w->s.cdi_unreadable;
	us_settle(w, "records read");
}

static void remember_past(struct world *w)
{
	w->said = w->said_slots = ALL; /* of what died before it could be said */
	check_explained(w, "start");
}

/* Which decision gave which VFs. */
static void remember_decisions(struct world *w)
{
	const struct ledger *l = holds_ledger(w->u.h);

	for (size_t i = 0; i < ledger_decisions(l); i++) {
		const struct ledger_decision *d = ledger_decision_at(l, i);

		for (size_t k = 0; k < d->n_chosen && !d->late; k++)
			w->u.number_of[vf_number(d->chosen[k])] = d->number;
	}
}

void us_start(struct world *w)
{
	struct us *u = &w->u;

	memset(u, 0, sizeof(*u));
	w->now_ms += START_MS;
	u->state_open = !w->s.away;
	u->a = arena_new(1024);
	u->h = holds_new(u->state_open ? read_ledger(w) : NULL, &holds_default_pace, now_of(w));
	u->up = true;
	remember_past(w);
	us_settle(w, "start");
	remember_decisions(w);
	read_claims(w);
}

void us_kill(struct world *w)
{
	struct us *u = &w->u;

	kubelet_unplug(w);
	dra_disconnected(w);
	holds_free(u->h);
	arena_free(u->a);
	free(u->text.s);
	memset(u, 0, sizeof(*u));
}

/* SIGTERM: what is not on disk goes there, if the disk takes it. */
void us_stop(struct world *w)
{
	if (w->u.storing && w->s.disk != DISK_HANGS)
		us_stored(w);
	if (can_store(w) && w->s.disk != DISK_HANGS) {
		us_store(w);
		if (w->u.storing)
			us_stored(w);
	}
	us_kill(w);
}

/* A directory that could not be read at the start, and can be now. */
void us_claims_again(struct world *w)
{
	if (!w->u.claims_read && !w->s.cdi_unreadable)
		read_claims(w);
	if (!w->u.state_open && !w->s.away) {
		struct ledger *old = read_ledger(w);

		for (size_t i = 0; old && i < ledger_holds(old); i++) {
			const struct ledger_hold *hold = ledger_hold_at(old, i);
			if (hold->pending)
				continue;
			struct holds_claim c = { hold->vf,    hold->resource, hold->slot,
						 hold->owner, hold->decision, "ledger.json" };

			holds_event(w->u.h,
				    &(struct holds_event) { .kind = HOLDS_CLAIMED, .claim = &c },
				    now_of(w));
		}
		ledger_free(old);
		w->u.state_open = true;
		holds_event(w->u.h, &(struct holds_event) { .kind = HOLDS_RESTORE }, now_of(w));
		us_settle(w, "the ledger found later");
	}
}

/* --- the disk --- */

bool can_store(const struct world *w)
{
	return w->u.up && !w->u.storing && holds_status(w->u.h).wants_store;
}

void us_store(struct world *w)
{
	struct strbuf text = STRBUF_INIT;

	cut(w);
	w->u.generation = ledger_generation(holds_ledger(w->u.h));
	ledger_write(holds_ledger(w->u.h), &text);
	w->u.text = (struct text) { text.s, text.len };
	w->u.storing = true;
	cut(w);
	us_settle(w, "storing");
	if (!w->u.state_open)
		us_stored(w);
}

void us_stored(struct world *w)
{
	/* Without a directory memory is all there is, as for the tracker. */
	bool ok = !w->u.state_open || w->s.disk == DISK_WELL;
	struct text text = w->u.text;

	w->u.text = (struct text) { NULL, 0 };
	w->u.storing = false;
	if (ok && w->u.state_open) {
		disk_write_ledger(w, text);
	} else {
		free(text.s);
		if (w->u.state_open)
			disk_remove_ledger(w);
	}
	cut(w);
	holds_event(w->u.h,
		    &(struct holds_event) {
			    .kind = HOLDS_STORED, .generation = w->u.generation, .ok = ok },
		    now_of(w));
	us_settle(w, ok ? "stored" : "not stored");
}

/* --- the kubelet --- */

/* Its socket is another one: so is the kubelet. */
static void meet(struct world *w)
{
	if (w->u.epoch == w->k.epoch)
		return;
	w->u.epoch = w->k.epoch;
	cut(w);
	holds_event(w->u.h, &(struct holds_event) { .kind = HOLDS_KUBELET, .epoch = w->k.epoch },
		    now_of(w));
	us_settle(w, "another kubelet");
}

void us_register(struct world *w)
{
	meet(w);
	cut(w);
	w->k.pluggedin = true;
	us_list(w);
	if (!w->k.registered)
		kubelet_list(w, w->k.healthy);
}

static struct answer question(struct world *w)
{
	meet(w);
	return (struct answer) { .asked = true,
				 .epoch = w->k.epoch,
				 .asked_ms = now_of(w).mono_ms };
}

void us_ask(struct world *w)
{
	struct answer q = question(w);

	for (unsigned i = 0; i < ASKED_MAX; i++) {
		if (!w->u.asked[i].asked) {
			w->u.asked[i] = q;
			return;
		}
	}
}

/* Something is held by a pod whose UID is not known. */
static bool is_any_nameless(const struct world *w)
{
	const struct ledger *l = holds_ledger(w->u.h);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		if (!ledger_hold_at(l, i)->pending && !ledger_hold_at(l, i)->owner.uid[0])
			return true;
	}
	return holds_unknown(w->u.h, 0, NULL);
}

static size_t shown_containers(const struct world *w, int pod, const char **ret)
{
	size_t n = 0;

	for (int c = 0; c < CTRS; c++) {
		if (w->pods[pod].c[c].there && !w->pods[pod].c[c].init)
			ret[n++] = ctr_name(w, pod, c);
	}
	return n;
}

void us_take(struct world *w, struct answer *a)
{
	const char *shown[PODS_MAX][CTRS];
	struct holds_seen seen[PODS_MAX * CTRS * VFS_MAX];
	struct holds_pod pods[PODS_MAX];
	struct holds_answer ans = { .epoch = a->epoch,
				    .asked_ms = a->asked_ms,
				    .all = true,
				    .active_only = w->cfg.active_only,
				    .pods = pods,
				    .seen = seen };

	for (unsigned p = 0; p < w->n_pods; p++) {
		if (!(a->pods >> p & 1))
			continue;
		pods[ans.n_pods++] = (struct holds_pod) { "default", pod_name(w, (int)p), shown[p],
							  shown_containers(w, (int)p, shown[p]) };
		for (int c = 0; c < CTRS; c++) {
			for (set s = a->devs[p][c]; s; s &= s - 1) {
				unsigned id = (unsigned)lowest(s), pool = pool_of(w, id);
				bool late = w->cfg.pools[pool].late;

				seen[ans.n_seen++] =
					(struct holds_seen) { resource_name(pool),
							      late ? slot_name(id) : vf_name(id),
							      "default",
							      pod_name(w, (int)p),
							      ctr_name(w, (int)p, c),
							      late };
			}
		}
	}
	a->asked = a->here = false;
	w->u.listed |= w->u.claims_read;
	cut(w);
	holds_event(w->u.h, &(struct holds_event) { .kind = HOLDS_ANSWERED, .answer = &ans },
		    now_of(w));
	us_settle(w, "List");
	if (is_any_nameless(w))
		us_read_checkpoint(w);
}

static void look_for_unknown(struct world *w)
{
	const struct ledger_owner *owner;
	const char *slot;

	for (size_t k = 0; (slot = holds_unknown(w->u.h, k, &owner)); k++) {
		enum holds_cgroup cgroup = machine_cgroup(w, uid_number(owner->uid));

		cut(w);
		holds_event(w->u.h,
			    &(struct holds_event) {
				    .kind = HOLDS_SLOT_PROBED, .slot = slot, .cgroup = cgroup },
			    now_of(w));
	}
}

void us_timer(struct world *w)
{
	set vfs = 0;

	w->u.next_probe_ms = w->now_ms + PROBE_MS;
	for (size_t i = 0; i < ledger_holds(holds_ledger(w->u.h)); i++) {
		if (holds_wants_probe(w->u.h, i, now_of(w)))
			vfs |= 1u << vf_number(ledger_hold_at(holds_ledger(w->u.h), i)->vf);
	}
	for (; vfs; vfs &= vfs - 1)
		look(w, (unsigned)lowest(vfs));
	look_for_unknown(w);
	us_claims_again(w);
	us_read_state(w);
	us_settle(w, "timer");
	if (w->u.used != used_by_none(w))
		us_list(w);
}

void us_release(struct world *w, unsigned vf)
{
	if (holds_is_shown(w->u.h, vf_name(vf))) {
		if (us_hold(w, vf)->owner.claim && us_hold(w, vf)->owner.claim[0])
			broken(w, "%s is not released, and no answer shows claims", vf_name(vf));
		return; /* refused: the kubelet's next answer would undo it */
	}
	cut(w);
	holds_event(w->u.h, &(struct holds_event) { .kind = HOLDS_RELEASED, .vf = vf_name(vf) },
		    now_of(w));
	us_settle(w, "release");
	if (can_store(w))
		us_store(w);
}
