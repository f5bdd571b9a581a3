/* The kubelet's calls: GetPreferredAllocation, Allocate, and PreStartContainer as far as both
 * bindings share it. */
#include "sim.h"

#include <string.h>

#include "base/arena.h"
#include "holds/holds-internal.h"

/* It asks who there is, as it does when it looks for the GPUs of the container; what is offered
 * then is of no pod. */
static void hear_offer(struct world *w, set available)
{
	struct answer a = { .epoch = w->k.epoch, .asked_ms = now_of(w).mono_ms };
	const char *vfs[VFS_MAX];
	size_t n = 0;

	kubelet_gc(w);
	kubelet_answer(w, &a);
	us_take(w, &a);
	for (; available; available &= available - 1)
		vfs[n++] = vf_name((unsigned)lowest(available));
	cut(w);
	holds_event(w->u.h, &(struct holds_event) { .kind = HOLDS_OFFERED, .vfs = vfs, .n = n },
		    now_of(w));
	us_settle(w, "GetPreferredAllocation");
}

/* VFs and slots that are free by what is known come first. */
set us_preferred(struct world *w, unsigned pool, set available, set must, unsigned n, uint32_t r)
{
	set ret = must, good = 0;

	if (!w->cfg.pools[pool].late && w->podres && mix(r, 25) % 2)
		hear_offer(w, available);
	for (unsigned id = 0; id < w->n_vfs; id++) {
		bool is_free = w->cfg.pools[pool].late ? !holds_slot(w->u.h, slot_name(id)).vf
						       : !us_hold(w, id);

		good |= is_free ? 1u << id : 0;
	}
	good &= available & ~must;
	while (count(ret) < n && good) {
		ret |= good & -good;
		good &= good - 1;
	}
	return ret;
}

static uint64_t decide(struct world *w, unsigned pool, set vfs, const struct ledger_owner *owner)
{
	const char *chosen[VFS_MAX];
	struct ledger_decision d = { .at_ms = now_of(w).wall_ms,
				     .resource = resource_name(pool),
				     .late = w->cfg.pools[pool].late || w->cfg.pools[pool].dra,
				     .source = "",
				     .asked = (int)count(vfs),
				     .chosen = chosen };

	if (owner)
		d.owner = *owner;
	for (; vfs; vfs &= vfs - 1)
		chosen[d.n_chosen++] = vf_name((unsigned)lowest(vfs));
	cut(w);
	return holds_decide(w->u.h, &d);
}

/* Who asks? By elimination; which may fail. */
static struct who guess(const struct world *w, int pod, int c, uint32_t r)
{
	struct who who = { -1, -1, 0 };

	if (mix(r, 20) % 4 < 2)
		return who;
	if (mix(r, 20) % 16 == 15) /* wrong */
		pod = (int)(mix(r, 21) % w->n_pods);
	who.name = (int8_t)w->pods[pod].name;
	who.container = (int8_t)ctr_kind(w, pod, c);
	return who;
}

static void allocate_early(struct world *w, unsigned pool, set ids, int pod, int c, uint32_t r)
{
	struct ledger_owner owner = owner_of(guess(w, pod, c, r));
	uint64_t number = decide(w, pool, ids, &owner);
	struct holds_facts facts[VFS_MAX];
	struct holds_vf v[VFS_MAX];
	size_t n = 0;

	for (set s = ids; s; s &= s - 1) {
		unsigned vf = (unsigned)lowest(s);

		us_look(w, vf, &facts[vf]);
		v[n++] = (struct holds_vf) { vf_name(vf), resource_name(pool), rdma_name(vf),
					     &facts[vf] };
		w->u.number_of[vf] = number;
	}
	cut(w);
	holds_event(w->u.h,
		    &(struct holds_event) { .kind = HOLDS_ALLOCATED,
					    .given = v,
					    .n = n,
					    .owner = &owner,
					    .number = number },
		    now_of(w));
	us_settle(w, "Allocate");
	for (set s = ids; s; s &= s - 1) {
		unsigned vf = (unsigned)lowest(s);

		if (holds_is_of(w->u.h, vf_name(vf), number))
			record_write_allocated(w, &w->s.map[vf], us_hold(w, vf));
	}
}

static void allocate_late(struct world *w, set ids)
{
	const char *slots[VFS_MAX];
	size_t n = 0;

	for (; ids; ids &= ids - 1)
		slots[n++] = slot_name((unsigned)lowest(ids));
	cut(w);
	holds_event(w->u.h,
		    &(struct holds_event) { .kind = HOLDS_PROMISED, .slots = slots, .n = n },
		    now_of(w));
	us_settle(w, "Allocate of slots");
}

void us_allocate(struct world *w, unsigned pool, set ids, int pod, int c, uint32_t r)
{
	if (w->cfg.pools[pool].late)
		allocate_late(w, ids);
	else
		allocate_early(w, pool, ids, pod, c, r);
}

/* --- PreStartContainer --- */

void us_prestart(struct world *w, int pod, int c, unsigned pool, set ids)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		struct op *op = &w->u.op[i];

		if (op->there)
			continue;
		*op = (struct op) { .there = true,
				    .pod = pod,
				    .c = (uint8_t)c,
				    .pool = (uint8_t)pool,
				    .ids = ids };
		return;
	}
	kubelet_called(w, pod, c, false, "RESOURCE_EXHAUSTED");
}

void us_cancel(struct world *w, int pod, int c)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		struct op *op = &w->u.op[i];

		if (op->there && op->kind == OP_PRESTART && op->pod == pod && op->c == c)
			op->cancelled = true;
	}
}

void op_answer(struct world *w, struct op *op, bool ok, const char *why)
{
	struct ctr *c = &w->pods[op->pod].c[op->c];
	struct op done = *op;

	if (op->kind != OP_PRESTART) {
		dra_answer(w, op, ok, why);
		return;
	}
	op->there = false;
	c->unlisted = !op->answer.here;
	c->opened &= ~pool_set(w, op->pool);
	for (set s = ok ? op->ids : 0; s; s &= s - 1) {
		int id = lowest(s), vf = w->cfg.pools[op->pool].late ? op->vf[id] : id;

		c->had |= 1u << vf;
		c->opened |= op->facts[vf].open ? 1u << vf : 0;
	}
	if (!done.cancelled)
		kubelet_called(w, done.pod, done.c, ok, why);
	else if (!ok)
		say(w, "pod %d (%s) container %d, CNI ADD or a cancelled call: %s", done.pod,
		    pod_name(w, done.pod), done.c, why);
}

static size_t entries_of(const struct world *w, set (*file)[CTRS], struct holds_entry *v)
{
	size_t n = 0;

	for (int p = 0; p < (int)w->n_pods; p++) {
		for (int c = 0; c < CTRS; c++) {
			for (set s = file[p][c]; s; s &= s - 1) {
				unsigned id = (unsigned)lowest(s), pool = pool_of(w, id);

				v[n++] = (struct holds_entry) {
					uid_name(p), ctr_name(w, p, c), resource_name(pool),
					w->cfg.pools[pool].late ? slot_name(id) : vf_name(id)
				};
			}
		}
	}
	return n;
}

void us_read_checkpoint(struct world *w)
{
	struct holds_entry v[PODS_MAX * CTRS * VFS_MAX];

	cut(w);
	holds_event(w->u.h,
		    &(struct holds_event) {
			    .kind = HOLDS_CHECKPOINT,
			    .entries = v,
			    .n = w->checkpoint_unreadable ? 0 : entries_of(w, w->k.file, v) },
		    now_of(w));
	us_settle(w, "checkpoint");
}

/* Of an init container: the one that List shows with its ids. */
static int heir(const struct world *w, const struct op *op, set mine)
{
	for (int c = op->c + 1; c < CTRS; c++) {
		if (!w->pods[op->pod].c[c].init && (w->k.devs[op->pod][c] & mine) == op->ids)
			return c;
	}
	return op->c;
}

/*
 * Whose call is it? Containers with just these ids, by List and by the checkpoint. Two containers
 * of one pod (an init container, and the one after it): one of them. Two pods (the kubelet gave an
 * id twice): known by their specs, or not at all.
 */
static bool identify(const struct world *w, struct op *op, uint32_t r)
{
	set mine = pool_set(w, op->pool), shown = 0, filed = 0;
	struct holds_entry v[PODS_MAX * CTRS * VFS_MAX];
	const char *id;
	int c = op->c;

	for (unsigned p = 0; p < w->n_pods; p++) {
		for (int k = 0; k < CTRS; k++) {
			shown |= op->answer.here && (op->answer.devs[p][k] & mine) == op->ids
					 ? 1u << p
					 : 0;
			filed |= (op->entries[p][k] & mine) == op->ids ? 1u << p : 0;
		}
	}
	op->who = (struct who) { -1, -1, 0 };
	if (count(shown | filed) > 1 && mix(r, 30) % 2)
		return false;
	if (w->pods[op->pod].c[c].init && !(mix(r, 31) % 4))
		c = heir(w, op, mine);
	op->who.container = (int8_t)ctr_kind(w, op->pod, c);
	if (count(shown | filed) > 1) {
		op->who.name = (int8_t)w->pods[op->pod].name;
		op->who.uid = (int8_t)op->pod;
		return op->answer.here || !w->cfg.pools[op->pool].late;
	}
	if (shown)
		op->who.name = (int8_t)w->pods[lowest(shown)].name;
	id = w->cfg.pools[op->pool].late ? slot_name((unsigned)lowest(op->ids))
					 : vf_name((unsigned)lowest(op->ids));
	/* Just these ids, and those of one pod: also when the kubelet has given one of them to
	 * another pod, too. */
	op->who.uid =
		(int8_t)(count(filed) == 1
				 ? lowest(filed)
				 : uid_number(holds_uid_of_id(v, entries_of(w, op->entries, v),
							      resource_name(op->pool), id)));
	if ((!shown && !filed) || !op->answer.here)
		op->who.container = CTR_UNKNOWN;
	/* Late binding waits for a List. */
	return op->answer.here || !w->cfg.pools[op->pool].late;
}

/* The checkpoint cannot be read, or could not for this call, and by what the kubelet has another
 * pod may be meant. */
static bool is_ambiguous(const struct world *w, const struct op *op)
{
	bool ambiguous = op->who.name < 0 && op->who.uid < 0;

	for (int p = 0; p < (int)w->n_pods; p++)
		ambiguous |= p != op->pod && (pod_devs(w->k.devs, p) & op->ids);
	return (op->unfiled || w->checkpoint_unreadable) && ambiguous;
}

static void ask_who(struct world *w, struct op *op, uint32_t r)
{
	if (w->k.up && w->podres && op->answer.epoch == w->k.epoch) {
		struct answer a;

		kubelet_gc(w);
		kubelet_answer(w, &op->answer);
		a = op->answer;
		us_take(w, &a);
	}
	if (!identify(w, op, r))
		op_answer(w, op, false, "it is not known whose these devices are");
	else if (is_ambiguous(w, op))
		op_answer(w, op, false, "nothing says whose it is"); /* README.md: not in it */
	else
		op->step++;
}

/* A thread looks, while other things happen. */
void look_around(struct world *w, struct op *op)
{
	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		struct holds_facts f;
		const struct ledger_hold *hold = us_hold(w, vf);
		int uid = uid_number(hold ? hold->owner.uid : "");

		if (!(pool_set(w, op->pool) >> vf & 1))
			continue;
		machine_look(w, vf, uid, &f);
		op->facts[vf].open = f.open;
		op->facts[vf].away = f.away;
		op->facts[vf].unreadable = f.unreadable;
		op->facts[vf].cgroup = (uint8_t)f.cgroup;
		op->facts[vf].uid = (int8_t)uid;
	}
}

void op_facts(const struct world *w, const struct op *op, unsigned vf, struct holds_facts *ret)
{
	(void)w;
	*ret = (struct holds_facts) {
		.unreadable = op->facts[vf].unreadable
				      ? "/proc/4711/fd cannot be read: Permission denied"
				      : NULL,
		.away = op->facts[vf].away
				? "its netdev is in the network namespace of process 4712"
				: NULL,
		.open = op->facts[vf].open ? "process 4713 has its RDMA device open" : NULL,
		.cgroup = (enum holds_cgroup)op->facts[vf].cgroup,
		.uid = op->facts[vf].uid < 0 ? NULL : uid_name(op->facts[vf].uid),
	};
}

/* What was bound for it is not, unless it was confirmed. */
static void undo(struct world *w, struct op *op, const char *why)
{
	for (set s = op->bound; s; s &= s - 1) {
		cut(w);
		holds_event(w->u.h,
			    &(struct holds_event) { .kind = HOLDS_UNBOUND,
						    .slot = slot_name((unsigned)lowest(s)) },
			    now_of(w));
	}
	op->bound = 0;
	if (op->number)
		holds_event(w->u.h,
			    &(struct holds_event) { .kind = HOLDS_UNDECIDED, .number = op->number },
			    now_of(w));
	us_settle(w, "unbind");
	op_answer(w, op, false, why);
}

void us_op(struct world *w, struct op *op, uint32_t r)
{
	bool late = w->cfg.pools[op->pool].late;

	if (arena_used(w->u.a) > 16384) { /* its sentences were answered */
		arena_free(w->u.a);
		w->u.a = arena_new(1024);
	}
	if (op->cancelled) {
		undo(w, op, "cancelled");
		return;
	}
	if (op->kind != OP_PRESTART) {
		dra_op(w, op, r);
		return;
	}
	switch (op->step) {
	case 0:
		memset(op->entries, 0, sizeof(op->entries));
		op->unfiled = w->checkpoint_unreadable;
		if (!op->unfiled)
			memcpy(op->entries, w->k.file, sizeof(op->entries));
		us_read_checkpoint(w);
		op->answer = (struct answer) { .epoch = w->k.epoch, .asked_ms = now_of(w).mono_ms };
		op->step++;
		break;
	case 1:
		ask_who(w, op, r);
		break;
	case 2:
		look_around(w, op);
		op->step++;
		break;
	case 3:
		if (late)
			sim_late_bind(w, op);
		else
			early_start(w, op);
		break;
	case 4:
		late_write(w, op);
		break;
	default:
		late_answer(w, op);
		break;
	}
}

/* --- early binding --- */

/* The newest decision that gave exactly these. */
static uint64_t decision_of(const struct world *w, set ids)
{
	uint64_t number = w->u.number_of[lowest(ids)];

	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		if ((ids >> vf & 1) != (w->u.number_of[vf] == number))
			return 0;
	}
	return number;
}

static bool write_maps(struct world *w, set vfs)
{
	for (; vfs; vfs &= vfs - 1) {
		unsigned vf = (unsigned)lowest(vfs);

		if (!record_write(w, &w->s.map[vf], us_hold(w, vf)))
			return false;
	}
	return true;
}

void early_start(struct world *w, struct op *op)
{
	struct ledger_owner owner = owner_of(op->who);
	struct holds_facts facts[VFS_MAX];
	struct holds_vf v[VFS_MAX];
	const char *why = NULL;
	size_t n = 0;
	bool ok;

	for (set s = op->ids; s; s &= s - 1) {
		unsigned vf = (unsigned)lowest(s);

		op_facts(w, op, vf, &facts[vf]);
		v[n++] = (struct holds_vf) { vf_name(vf), resource_name(op->pool), rdma_name(vf),
					     &facts[vf] };
	}
	cut(w);
	ok = holds_start(w->u.h, v, n, &owner, decision_of(w, op->ids),
			 w->cfg.pools[op->pool].moves, now_of(w), w->u.a, &why);
	if (!ok)
		check_why(w, why, op->ids, 0);
	us_settle(w, "PreStartContainer");
	for (set s = ok ? op->ids : 0; s; s &= s - 1)
		w->u.number_of[lowest(s)] = us_hold(w, (unsigned)lowest(s))->decision;
	if (ok && !write_maps(w, op->ids)) {
		ok = false;
		why = "map.json cannot be written";
	}
	op_answer(w, op, ok, why);
}

/* --- late binding --- */

/* The first VF that may be given; of a claim the last one, so that the order of VFs tells nothing
 * of that of slots. NULL: why not is in why. */
static const char *choose(struct world *w, const struct op *op, set taken, const char **why)
{
	const char *resource = resource_name(op->pool);

	for (set s = pool_set(w, op->pool) & ~taken & ~w->sick, next; s; s &= ~next) {
		unsigned vf = (unsigned)lowest(s);
		struct holds_facts facts;

		if (op->kind == OP_PREPARE)
			vf = 31 - (unsigned)__builtin_clz(s);
		next = 1u << vf;
		if (!holds_could_give(w->u.h, vf_name(vf)))
			continue;
		op_facts(w, op, vf, &facts);
		cut(w);
		if (holds_may_give(w->u.h, vf_name(vf), resource, &facts, now_of(w), w->u.a, why))
			return vf_name(vf);
		check_why(w, *why, 1u << vf, op->ids);
	}
	return NULL;
}

/* Each slot of a claim is that claim's. */
static struct ledger_owner owner_for(const struct ledger_owner *owner, unsigned slot)
{
	struct ledger_owner o = *owner;

	o.claim = claim_of(slot) < 0 ? NULL : claim_name((unsigned)claim_of(slot));
	return o;
}

/* VFs that the slots have: all slots first, for by then none of them is unknown any more. */
static set keep_slots(struct world *w, struct op *op, const struct ledger_owner *owner)
{
	set taken = 0;

	for (set s = op->ids; s; s &= s - 1) {
		unsigned slot = (unsigned)lowest(s);
		struct ledger_owner its = owner_for(owner, slot);
		const char *has = holds_slot(w->u.h, slot_name(slot)).vf;
		bool usable = has && !(w->sick >> vf_number(has) & 1);

		cut(w);
		op->vf[slot] = (int8_t)vf_number(
			holds_slot_start(w->u.h, slot_name(slot), &its, usable, now_of(w)));
		taken |= op->vf[slot] < 0 ? 0 : 1u << op->vf[slot];
	}
	return taken;
}

static const char *waits_for_another(struct world *w, struct op *op,
				     const struct ledger_owner *owner)
{
	const char *why = NULL;

	for (set s = op->ids; s && !why; s &= s - 1) {
		const char *slot = slot_name((unsigned)lowest(s)),
			   *vf = holds_slot(w->u.h, slot).vf;
		struct ledger_owner its = owner_for(owner, (unsigned)lowest(s));
		struct holds_facts facts;

		if (!vf)
			continue;
		op_facts(w, op, (unsigned)vf_number(vf), &facts);
		why = holds_slot_waits(w->u.h, slot, &its, &facts, now_of(w), w->u.a);
		if (why && its.claim && w->u.claims_read)
			broken(w, "a claim waits, and its slots are its own: %s", why);
	}
	return why;
}

/* One that this container had by a slot that is another one's by now. NULL: none that is left. */
static const char *choose_kept(const struct world *w, const struct op *op,
			       const struct ledger_owner *owner, set taken)
{
	const char *vf;

	for (size_t k = 0; (vf = holds_kept(w->u.h, resource_name(op->pool), owner, k)); k++) {
		if (!((taken | w->sick) >> vf_number(vf) & 1))
			return vf;
	}
	return NULL;
}

/* For the slots that have none. False: there is none for one of them. */
static bool choose_all(struct world *w, struct op *op, const struct ledger_owner *owner,
		       set *ret_fresh, const char **why)
{
	set taken = keep_slots(w, op, owner);

	*ret_fresh = 0;
	for (set s = op->ids; s; s &= s - 1) {
		int slot = lowest(s);
		const char *vf;

		if (op->vf[slot] >= 0)
			continue;
		vf = op->kind == OP_PRESTART ? choose_kept(w, op, owner, taken) : NULL;
		if (!vf) {
			vf = choose(w, op, taken, why);
			*ret_fresh |= 1u << slot;
		}
		if (!vf)
			return false;
		op->vf[slot] = (int8_t)vf_number(vf);
		taken |= 1u << op->vf[slot];
	}
	return true;
}

/* Those that were chosen now get the decision's number. */
static void bind_all(struct world *w, struct op *op, const struct ledger_owner *owner, set fresh)
{
	set chosen = 0;

	for (set s = fresh; s; s &= s - 1)
		chosen |= 1u << op->vf[lowest(s)];
	if (chosen)
		op->number = decide(w, op->pool, chosen, owner);
	for (set s = op->ids; s; s &= s - 1) {
		unsigned slot = (unsigned)lowest(s), vf = (unsigned)op->vf[slot];
		struct holds_facts facts;
		struct holds_vf v = { vf_name(vf), resource_name(op->pool), rdma_name(vf), &facts };
		struct ledger_owner its = owner_for(owner, slot);

		op_facts(w, op, vf, &facts);
		cut(w);
		holds_event(w->u.h,
			    &(struct holds_event) { .kind = HOLDS_BOUND,
						    .slot = slot_name(slot),
						    .given = &v,
						    .owner = &its,
						    .number = fresh >> slot & 1 ? op->number : 0 },
			    now_of(w));
		op->bound |= 1u << slot;
	}
}

void sim_late_bind(struct world *w, struct op *op)
{
	struct ledger_owner owner = owner_of(op->who);
	const char *why = waits_for_another(w, op, &owner);
	set fresh;

	if (why || !choose_all(w, op, &owner, &fresh, &why)) {
		cut(w);
		holds_event(w->u.h,
			    &(struct holds_event) { .kind = HOLDS_NOT_CREATED, .owner = &owner },
			    now_of(w));
		undo(w, op, why ? why : "all VFs are held");
		return;
	}
	bind_all(w, op, &owner, fresh);
	us_settle(w, "bind");
	op->step++;
}

/* map.json of each VF, then one CDI spec, whole. */
void late_write(struct world *w, struct op *op)
{
	set vfs = 0;

	for (set s = op->ids; s; s &= s - 1) {
		const char *vf = holds_slot(w->u.h, slot_name((unsigned)lowest(s))).vf;

		if (!vf || vf_number(vf) != op->vf[lowest(s)]) {
			undo(w, op, "the slot was given to another container meanwhile");
			return;
		}
		vfs |= 1u << vf_number(vf);
	}
	if (!write_maps(w, vfs)) {
		undo(w, op, "map.json cannot be written");
		return;
	}
	if (w->s.cdi_unreadable || w->s.run_full) {
		undo(w, op, "the CDI spec cannot be written");
		return;
	}
	for (set s = op->ids; s; s &= s - 1) {
		unsigned slot = (unsigned)lowest(s);
		const struct ledger_hold *hold = us_hold(w, (unsigned)op->vf[slot]);

		w->s.spec[slot] =
			(struct record) { true,		(uint8_t)op->vf[slot], op->pool,
					  (int8_t)slot, who_of(&hold->owner),  hold->decision };
	}
	cut(w);
	op->generation = ledger_generation(holds_ledger(w->u.h));
	op->since_ms = now_of(w).mono_ms;
	op->step++;
}

static void confirm(struct world *w, const struct op *op)
{
	for (set s = op->ids; s; s &= s - 1) {
		cut(w);
		holds_event(w->u.h,
			    &(struct holds_event) { .kind = HOLDS_CONFIRMED,
						    .slot = slot_name((unsigned)lowest(s)) },
			    now_of(w));
	}
	us_settle(w, "confirm");
}

void late_answer(struct world *w, struct op *op)
{
	int64_t waited = now_of(w).mono_ms - op->since_ms;

	for (set s = op->ids; s; s &= s - 1) {
		const char *vf = holds_slot(w->u.h, slot_name((unsigned)lowest(s))).vf;

		if (!vf || vf_number(vf) != op->vf[lowest(s)]) {
			undo(w, op, "the slot was given to another container meanwhile");
			return;
		}
	}
	cut(w);
	if (!holds_may_answer(w->u.h, op->generation, op->since_ms, now_of(w))) {
		us_settle(w, "waits for the disk");
		if (waited > holds_default_pace.store_ms)
			broken(w, "a container waits for the disk for %lld ms", (long long)waited);
		return;
	}
	us_settle(w, "may answer");
	confirm(w, op);
	op_answer(w, op, true, NULL);
}

/* --- railmate-cni --- */

/* The plugin waits for the disk as a container does. */
static void wait_for_disk(struct world *w, const struct op *op)
{
	for (unsigned n = 0; n < 4; n++) { /* one that is on its way, and its own */
		if (holds_may_answer(w->u.h, op->generation, op->since_ms, now_of(w)))
			return;
		if (can_store(w))
			us_store(w);
		if (w->u.storing && w->s.disk != DISK_HANGS)
			us_stored(w);
		else
			w->now_ms += holds_default_pace.store_ms + 1;
	}
	broken(w, "a CNI plugin waits for the disk for more than %u ms",
	       holds_default_pace.store_ms);
}

static void cni_confirm(struct world *w, const struct op *op)
{
	confirm(w, op);
	wait_for_disk(w, op);
	us_settle(w, "may answer");
}

/* The slots of one container. The runtime says whose sandbox it is. */
static bool cni_bind(struct world *w, struct op *op, set *ret_moved)
{
	struct holds_entry v[PODS_MAX * CTRS * VFS_MAX];
	struct answer a;
	int uid;

	us_read_checkpoint(w);
	kubelet_gc(w);
	op->answer = (struct answer) { .epoch = w->k.epoch, .asked_ms = now_of(w).mono_ms };
	kubelet_answer(w, &op->answer);
	a = op->answer;
	us_take(w, &a);
	uid = w->checkpoint_unreadable
		      ? -1
		      : uid_number(holds_uid_of_id(v, entries_of(w, w->k.file, v),
						   resource_name(op->pool),
						   slot_name((unsigned)lowest(op->ids))));
	op->who = (struct who) { (int8_t)w->pods[op->pod].name, (int8_t)(uid < 0 ? op->pod : uid),
				 (int8_t)ctr_kind(w, op->pod, op->c) };
	look_around(w, op);
	sim_late_bind(w, op);
	if (op->there)
		late_write(w, op);
	if (!op->there)
		return false;
	cni_confirm(w, op);
	for (set s = op->ids; s; s &= s - 1)
		*ret_moved |= 1u << op->vf[lowest(s)];
	w->pods[op->pod].c[op->c].had |= *ret_moved;
	op->there = false;
	return true;
}

/*
 * CNI ADD for the slots that PodResources shows of the pod, which is how Multus knows them: those
 * of ordinary init containers are not among them. False: the sandbox fails, and is tried again.
 */
bool us_cni_add(struct world *w, int pod, set *ret_moved)
{
	for (unsigned c = 0; c < CTRS; c++) {
		for (unsigned i = 0; i < w->cfg.n_pools; i++) {
			struct op op = { .there = true,
					 .cancelled = true, /* no call of the kubelet's */
					 .pod = pod,
					 .c = (uint8_t)c,
					 .pool = (uint8_t)i,
					 .ids = w->k.devs[pod][c] & pool_set(w, i) };

			if (!w->cfg.pools[i].late || !w->cfg.pools[i].moves ||
			    w->pods[pod].c[c].init || !op.ids)
				continue;
			if (!w->u.up || !w->podres || !cni_bind(w, &op, ret_moved))
				return false;
		}
	}
	return true;
}
