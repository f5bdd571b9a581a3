/* What must hold, whatever happens. The first thing that does not is kept in w->broken, and ends
 * the run. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

void broken(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->broken[0])
		return;
	va_start(ap, fmt);
	vsnprintf(w->broken, sizeof(w->broken), fmt, ap);
	va_end(ap);
}

/* What is said again and again, while something waits, is told once. */
void say(struct world *w, const char *fmt, ...)
{
	static char before[4][800];
	static unsigned next;
	char text[800];
	va_list ap;

	if (!w->trace)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (unsigned i = 0; i < 4; i++) {
		if (!strcmp(text, before[i]))
			return;
	}
	strcpy(before[next++ % 4], text);
	printf("%8lld.%03d   %s\n", (long long)w->now_ms / 1000, (int)(w->now_ms % 1000), text);
}

/* --- every action explained --- */

static struct past past_of(const struct ledger_hold *hold)
{
	if (!hold)
		return (struct past) { .there = false };
	return (struct past) { true,
			       hold->draining,
			       hold->pending,
			       (int8_t)uid_number(hold->owner.uid),
			       (int8_t)slot_number(hold->slot),
			       (int8_t)claim_number(hold->owner.claim),
			       hold->decision };
}

static bool is_said(const struct world *w, unsigned vf, const struct past *p)
{
	return (w->said >> vf & 1) || (p->slot >= 0 && (w->said_slots >> p->slot & 1));
}

static bool is_adopting(const char *event)
{
	return !strcmp(event, "records read") || !strcmp(event, "List") ||
	       !strcmp(event, "the ledger found later");
}

/* NULL: nothing that has to be said. */
static const char *what_happened(const struct past *was, const struct past *is, const char *event)
{
	bool adopts = is_adopting(event);

	if (was->there && !was->pending && !is->there)
		return strcmp(event, "unbind") != 0 ? "ended"
						    : NULL; /* its refusal has a sentence */
	if (was->there && is->there && !was->pending && was->uid >= 0 && is->uid >= 0 &&
	    was->uid != is->uid && (was->claim < 0 || was->claim != is->claim))
		return "went to another pod";
	if (was->there && is->there && !was->draining && is->draining)
		return "drains";
	if (!was->there && is->there && adopts)
		return "was adopted";
	return NULL;
}

static bool is_same(const struct past *a, const struct past *b)
{
	return a->there == b->there && a->draining == b->draining && a->pending == b->pending &&
	       a->uid == b->uid && a->slot == b->slot && a->number == b->number;
}

static void tell_hold(struct world *w, const char *event, unsigned vf)
{
	const struct ledger_hold *h = us_hold(w, vf);

	if (h)
		say(w, "hold (%s): %s slot %s of %s (%s) number %llu%s%s", event, h->vf,
		    h->slot ? h->slot : "-", h->owner.pod, h->owner.uid,
		    (unsigned long long)h->decision, h->pending ? " pending" : "",
		    h->draining ? " draining" : "");
	else
		say(w, "hold (%s): %s is free", event, vf_name(vf));
}

void check_explained(struct world *w, const char *event)
{
	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		struct past is = past_of(us_hold(w, vf)), *was = &w->past[vf];
		const char *what = what_happened(was, &is, event);

		if (w->trace && !is_same(&is, was))
			tell_hold(w, event, vf);
		if (what && !is_said(w, vf, was->there ? was : &is))
			broken(w, "%s: the hold of %s %s and no sentence says so", event,
			       vf_name(vf), what);
		*was = is;
	}
	w->said = w->said_slots = 0;
}

void check_why(struct world *w, const char *why, set vfs, set slots)
{
	if (!why || !*why) {
		broken(w, "refused without a sentence");
		return;
	}
	for (unsigned i = 0; i < w->n_vfs; i++) {
		if ((vfs >> i & 1 && strstr(why, vf_name(i))) ||
		    (slots >> i & 1 && strstr(why, slot_name(i))))
			return;
	}
	if (!strstr(why, " directory") && !strstr(why, "the ledger"))
		broken(w, "refused with a sentence that says nothing of VF, slot or record: %s",
		       why);
}

/* --- live containers --- */

static bool is_its(const struct world *w, const struct ledger_hold *hold, int pod)
{
	struct who who = who_of(&hold->owner);

	if (who.uid >= 0)
		return who.uid == pod;
	return who.name < 0 || who.name == w->pods[pod].name;
}

/* Its slot is known to be held, and nothing else: then nothing of the pool is given. */
static bool is_unknown(const struct world *w, int pod, unsigned vf)
{
	const struct ledger_owner *owner;
	const char *slot;

	for (size_t k = 0; (slot = holds_unknown(w->u.h, k, &owner)); k++) {
		if (pool_of(w, (unsigned)slot_number(slot)) == pool_of(w, vf) &&
		    (who_of(owner).name == w->pods[pod].name || who_of(owner).uid == pod))
			return true;
	}
	return false;
}

/* by: the claim that it has it by; -1. */
static void check_hold(struct world *w, const char *event, int pod, unsigned vf, int by)
{
	const struct pod *p = &w->pods[pod];
	const struct ledger_hold *hold = us_hold(w, vf);

	if (by >= 0) {
		if (!hold || claim_number(hold->owner.claim) != by)
			broken(w, "%s: %s is taken from claim %d, whose pod %d (%s) lives", event,
			       vf_name(vf), by, pod, pod_name(w, pod));
		return;
	}
	if (!hold && is_unknown(w, pod, vf))
		return;
	if (!hold)
		broken(w, "%s: %s is taken from pod %d (%s), whose container lives: it has no hold",
		       event, vf_name(vf), pod, pod_name(w, pod));
	else if (!is_its(w, hold, pod))
		broken(w,
		       "%s: %s is taken from pod %d (%s), whose container lives: %s/%s (%s) has it",
		       event, vf_name(vf), pod, pod_name(w, pod), hold->owner.ns, hold->owner.pod,
		       hold->owner.uid);
	else if (hold->draining && p->in_api && !p->deleting && !p->rejected && !p->over)
		broken(w, "%s: %s drains, and pod %d (%s), which has it, is there and lives", event,
		       vf_name(vf), pod, pod_name(w, pod));
}

void check_live(struct world *w, const char *event)
{
	if (!w->u.claims_read || w->forgetful)
		return;
	for (int p = 0; p < (int)w->n_pods; p++) {
		for (int c = 0; c < CTRS; c++) {
			const struct ctr *ctr = &w->pods[p].c[c];

			for (set s = ctr->alive ? ctr->vfs & ~ctr->unseen : 0; s; s &= s - 1)
				check_hold(w, event, p, (unsigned)lowest(s),
					   ctr->of[lowest(s)] - 1);
		}
	}
	check_claims(w, event);
}

/*
 * Of one pod: an ordinary init container leaves its id to a later one, and the checkpoint says of
 * no container which kind it is. List shows all kinds but that one. So without a List, and when one
 * of the two is an init container (then the other one is restartable, and could as well be what the
 * id was left to), a wait would be one without end for pods that are as they should be. What the
 * first one has open is not given all the same.
 */
static bool are_told_apart(int pod, const struct ctr *a, int other, const struct ctr *b)
{
	return pod != other || (a->opened & b->vfs) ||
	       (!a->unlisted && !b->unlisted && !a->init && !b->init);
}

/* VFs that both have, and not by one claim. */
static set both_have(const struct ctr *a, const struct ctr *b)
{
	set s = a->vfs & b->vfs & ~a->unseen & ~b->unseen;

	for (unsigned vf = 0; vf < VFS_MAX; vf++)
		s &= a->of[vf] && a->of[vf] == b->of[vf] ? ~(1u << vf) : ~0u;
	return s;
}

void check_created(struct world *w, int pod, int c)
{
	const struct ctr *ctr = &w->pods[pod].c[c];
	bool stale = false;
	unsigned wants = ctr->want[0] + ctr->want[1] + count(claim_slots(w, ctr->claims));

	say(w, "pod %d container %d wants %u + %u, has ids %#x", pod, c, ctr->want[0], ctr->want[1],
	    ctr->ids);
	/* A kubelet before 1.37 has let the pod join a claim that was about to be unprepared. */
	for (unsigned i = 0; i < w->n_claims; i++)
		stale |= (ctr->claims >> i & 1) && !w->claims[i].kept;
	if (count(ctr->vfs) != wants && (!stale || w->cfg.counts_users))
		broken(w, "pod %d runs with %u VFs (%#x)", pod, count(ctr->vfs), ctr->vfs);
	for (int p = 0; p < (int)w->n_pods; p++) {
		for (int k = 0; k < CTRS; k++) {
			const struct ctr *other = &w->pods[p].c[k];

			if (other != ctr && other->alive && both_have(other, ctr) &&
			    are_told_apart(pod, ctr, p, other))
				broken(w,
				       "%s is in two live containers: of pod %d (%s) and of pod %d (%s)",
				       vf_name((unsigned)lowest(both_have(other, ctr))), p,
				       pod_name(w, p), pod, pod_name(w, pod));
		}
	}
}

/* Ids of which nothing says that a container has them: no spec, and no List. None shows that of
 * an init container that has ended, which counts once all records are lost. */
static set unrecorded(const struct world *w)
{
	set s = 0;

	for (unsigned id = 0; (w->lost || !w->u.listed) && id < w->n_vfs; id++)
		s |= w->cfg.pools[pool_of(w, id)].late	   ? !w->s.spec[id].there ? 1u << id : 0
		     : w->lost && w->checkpoint_unreadable ? 1u << id
							   : 0;
	return s;
}

/* Ids of containers that live, and of init containers before them, of pods that the kubelet has. */
static set ids_of_live(const struct world *w)
{
	set s = 0;

	for (unsigned p = 0; p < w->n_pods; p++) {
		const struct pod *pod = &w->pods[p];
		if (!pod_is_active(pod) || pod->deleting || !pod_lives(pod))
			continue;
		for (unsigned c = 0; c < CTRS; c++) {
			if (pod->c[c].alive)
				s |= pod->c[c].ids;
			else if (pod->c[c].state == CTR_DONE)
				s |= pod->c[c].ids & ~unrecorded(w);
		}
	}
	return s;
}

/* Of a pod. What its ordinary init containers have, a later one has as well. */
static unsigned holders_in(const struct world *w, int pod, unsigned id)
{
	unsigned n = 0;
	bool init = false;

	for (int c = 0; c < CTRS; c++) {
		if (!(w->k.devs[pod][c] >> id & 1))
			continue;
		if (w->pods[pod].c[c].init)
			init = true;
		else
			n++;
	}
	return n ? n : init;
}

/* Fact 4: the kubelet has given this id to two containers. Then slot and spec are of the one that
 * started last. */
bool is_given_twice(const struct world *w, unsigned id)
{
	unsigned n = 0;

	for (unsigned p = 0; p < w->n_pods; p++)
		n += holders_in(w, (int)p, id);
	return n > 1;
}

/* A slot without a VF, or of which it is not known, may be told unhealthy for each VF that is. */
static bool are_for_sick(const struct world *w, set told)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct holds_slots slots = holds_slots(w->u.h, a);
	bool all = true;

	for (size_t i = 0; i < slots.n_uses; i++)
		all &= !slots.uses[i].vf || !(told >> slot_number(slots.uses[i].slot) & 1);
	for (unsigned i = 0; i < w->cfg.n_pools; i++)
		all &= count(told & pool_set(w, i)) <= count(w->sick & pool_set(w, i));
	return all;
}

void check_healthy(struct world *w, set healthy)
{
	set told = ids_of_live(w) & ~healthy;

	for (unsigned id = 0; id < w->n_vfs; id++)
		told &= is_given_twice(w, id) ? ~(1u << id) : ~0u;
	if (told && !are_for_sick(w, told))
		broken(w,
		       "the kubelet is told that %s or %s is unhealthy, which a live container has",
		       vf_name((unsigned)lowest(told)), slot_name((unsigned)lowest(told)));
}

/* By the machine, and by the ledger: nothing has it. */
static set idle_of(const struct world *w, unsigned pool)
{
	set s = pool_set(w, pool) & ~w->sick & ~w->strange;

	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		struct holds_facts f;

		us_look(w, vf, &f);
		if (us_hold(w, vf) || f.open || f.away || f.unreadable)
			s &= ~(1u << vf);
	}
	return s;
}

static bool has_unknown(const struct world *w, unsigned pool)
{
	const struct ledger_owner *owner;
	const char *slot;

	for (size_t k = 0; (slot = holds_unknown(w->u.h, k, &owner)); k++) {
		if (pool_of(w, (unsigned)slot_number(slot)) == pool)
			return true;
	}
	return false;
}

/* used: the slots that containers have; waits: those of them that will take one of the idle VFs. */
void check_offer(struct world *w, set healthy, set used, set waits)
{
	if (!holds_status(w->u.h).settled)
		return;
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		set mine = pool_set(w, i), idle = has_unknown(w, i) ? 0 : idle_of(w, i),
		    offered = healthy & mine;
		unsigned waiting = count(waits & mine), n = count(idle);

		if (!w->cfg.pools[i].late) {
			for (set s = offered & ~idle; s; s &= s - 1) {
				if (!us_hold(w, (unsigned)lowest(s)) &&
				    !us_is_filed(w, (unsigned)lowest(s)))
					broken(w, "%s is on offer, and something has it",
					       vf_name((unsigned)lowest(s)));
			}
			if (idle & ~offered)
				broken(w, "%s is idle, and not on offer",
				       vf_name((unsigned)lowest(idle & ~offered)));
			continue;
		}
		n = n > waiting ? n - waiting : 0;
		if (count(offered & ~used) != n)
			broken(w, "%u slots are on offer, and %u VFs are idle",
			       count(offered & ~used), n);
	}
}

void check_spec_removed(struct world *w, unsigned slot)
{
	const struct record *spec = &w->s.spec[slot];

	if (claim_of(slot) < 0 && is_given_twice(w, slot))
		return;
	for (unsigned p = 0; p < w->n_pods; p++) {
		for (unsigned c = 0; c < CTRS; c++) {
			const struct ctr *ctr = &w->pods[p].c[c];

			if (pod_is_active(&w->pods[p]) && ctr->alive &&
			    (claim_of(slot) < 0 ? ctr->ids >> slot & 1
						: ctr->of[spec->vf] == 1 + claim_of(slot) &&
							  w->claims[claim_of(slot)].kept) &&
			    (ctr->vfs >> spec->vf & 1))
				broken(w,
				       "the CDI spec of %s is removed, which a live container of pod %u has",
				       slot_name(slot), p);
		}
	}
}

void check_map_removed(struct world *w, unsigned vf)
{
	set used = 0;

	for (unsigned p = 0; p < w->n_pods; p++) {
		for (unsigned c = 0; c < CTRS; c++) {
			const struct ctr *ctr = &w->pods[p].c[c];

			used |= ctr->alive ? ctr->vfs & ~ctr->unseen : 0;
		}
	}
	if (used >> vf & 1)
		broken(w, "map.json of %s is removed, which a live container has", vf_name(vf));
}
