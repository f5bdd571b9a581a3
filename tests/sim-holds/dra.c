/*
 * ResourceClaims: what the kubelet's DRA manager does with them (pkg/kubelet/cm/dra/manager.go of
 * 1.36.3 and 1.37.2), and NodePrepareResources and NodeUnprepareResources of railmated at their
 * least. The kubelet notes a claim and its pods on disk before it asks to prepare it, and forgets
 * it after it was told that it is unprepared. Whether it is prepared is forgotten by a restart;
 * then it is prepared again for the next sandbox.
 */
#include "sim.h"

#include <string.h>

int dra_pool(const struct world *w)
{
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		if (w->cfg.pools[i].dra)
			return (int)i;
	}
	return -1;
}

/* --- API server and scheduler --- */

int claim_create(struct world *w, unsigned n, bool shared)
{
	if (w->n_claims == CLAIMS_MAX)
		return -1;
	w->claims[w->n_claims] = (struct claim) { .there = true,
						  .shared = shared,
						  .n = (uint8_t)(n < CLAIM_VFS ? n : CLAIM_VFS),
						  .vf = { -1, -1, -1 } };
	return (int)w->n_claims++;
}

/* For a pod that is there: it is given back when none is left, whatever the node does by then. */
bool claim_is_allocated(const struct world *w, unsigned claim)
{
	bool reserved = false;

	for (unsigned p = 0; p < w->n_pods; p++)
		reserved |=
			w->pods[p].in_api && !w->pods[p].over && (w->pods[p].claims >> claim & 1);
	return reserved;
}

static unsigned room(const struct world *w)
{
	unsigned n = w->cfg.pools[dra_pool(w)].n;

	for (unsigned c = 0; c < w->n_claims; c++)
		n -= claim_is_allocated(w, c) ? w->claims[c].n : 0;
	return n;
}

/* One that there is and that pods share, or a new one. -1: the scheduler finds no room for it. */
static int choose(struct world *w, uint32_t r)
{
	unsigned n = 1 + mix(r, 51) % (1 + mix(r, 52) % w->cfg.pools[dra_pool(w)].n);

	for (unsigned i = 0; i < w->n_claims && mix(r, 53) % 4; i++) {
		unsigned c = (mix(r, 54) + i) % w->n_claims;
		const struct claim *claim = &w->claims[c];

		if (claim->shared && (claim_is_allocated(w, c) || claim->n <= room(w)))
			return (int)c;
	}
	if (n > room(w) || w->n_claims >= CLAIMS_MAX - 2)
		return -1;
	return claim_create(w, n, mix(r, 55) % 3);
}

/* The pod is there already, and reserves what it is given. */
void claims_of_shape(struct world *w, struct pod *p, uint32_t shape)
{
	if (dra_pool(w) < 0 || p->fixed || (w->cfg.n_pools > 1 && !(mix(shape, 50) % 3)))
		return;
	for (unsigned i = 0; i < 1 + !(mix(shape, 56) % 4); i++) {
		int c = choose(w, shape ^ 0x3333u * i);

		if (c < 0 || (p->claims >> c & 1))
			continue;
		p->claims |= 1u << c;
		for (unsigned k = 0; k < CTRS; k++) {
			if (p->c[k].there &&
			    (mix(shape, 57 + k) % 2 || !p->c[k + 1 < CTRS ? k + 1 : k].there))
				p->c[k].claims |= 1u << c;
		}
	}
}

/* --- the kubelet --- */

set claim_vfs(const struct world *w, unsigned claim)
{
	set s = 0;

	for (unsigned k = 0; w->claims[claim].kept && k < w->claims[claim].n; k++)
		s |= 1u << w->claims[claim].vf[k];
	return s;
}

static void write_state(struct claim *c)
{
	c->file_cached = c->cached;
	c->file_known = c->known;
	c->file_refs = c->refs;
}

static void forget(struct claim *c)
{
	c->cached = c->prepared = c->known = c->unpreparing = false;
	c->refs = 0;
	write_state(c);
}

void dra_kubelet_killed(struct world *w)
{
	for (unsigned p = 0; p < w->n_pods; p++)
		w->pods[p].ready = w->pods[p].preparing = false;
	for (unsigned i = 0; i < OPS_MAX; i++) {
		struct op *op = &w->u.op[i];

		op->lost |= op->kind != OP_PRESTART;
		op->there &= op->kind != OP_UNPREPARE || op->step; /* it never arrived */
	}
}

void dra_kubelet_started(struct world *w)
{
	for (unsigned i = 0; i < w->n_claims; i++) {
		struct claim *c = &w->claims[i];

		c->cached = c->file_cached;
		c->known = c->file_known;
		c->refs = c->file_refs;
		c->prepared = c->unpreparing = false;
	}
}

bool claims_are_known(const struct world *w, unsigned claims)
{
	for (unsigned c = 0; c < w->n_claims; c++) {
		if ((claims >> c & 1) && !(w->claims[c].cached && w->claims[c].known))
			return false;
	}
	return true;
}

/* Sources ready or not: a pod that it knows of a time before it has no sandbox to be made. */
bool can_prepare(const struct world *w, int pod)
{
	const struct pod *p = &w->pods[pod];

	return w->k.up && w->u.up && w->api && p->in_api && pod_is_active(p) && p->admitted &&
	       p->claims && !p->deleting && !p->dying && !p->sandbox && !p->ready && !p->preparing;
}

static struct op *new_op(struct world *w, enum op_kind kind, int pod, uint8_t claims)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		if (w->u.op[i].there)
			continue;
		w->u.op[i] = (struct op) { .there = true,
					   .kind = kind,
					   .pod = pod,
					   .pool = (uint8_t)dra_pool(w),
					   .claims = claims };
		return &w->u.op[i];
	}
	return NULL;
}

void kubelet_prepare(struct world *w, int pod)
{
	struct pod *p = &w->pods[pod];
	uint8_t batch = 0;

	for (unsigned i = 0; i < w->n_claims; i++) {
		struct claim *c = &w->claims[i];

		if (!(p->claims >> i & 1))
			continue;
		if (c->unpreparing && w->cfg.counts_users)
			return;
		c->cached = true;
		c->refs |= 1u << pod;
		write_state(c);
		batch |= c->prepared ? 0 : 1u << i;
	}
	p->released = false;
	p->ready = !batch;
	p->preparing = batch && new_op(w, OP_PREPARE, pod, batch);
}

static void kubelet_prepared(struct world *w, const struct op *op, bool ok, const char *why)
{
	struct pod *p = &w->pods[op->pod];

	p->preparing = false;
	if (!ok)
		say(w, "claims %#x of pod %d are not prepared: %s", op->claims, op->pod, why);
	for (unsigned i = 0; ok && i < w->n_claims; i++) {
		if ((op->claims >> i & 1) && !w->claims[i].cached)
			return; /* internal error: unable to get claim info */
	}
	for (unsigned i = 0; ok && i < w->n_claims; i++) {
		struct claim *c = &w->claims[i];

		if (!(op->claims >> i & 1))
			continue;
		for (unsigned k = 0; k < c->n; k++) {
			int8_t vf = op->vf[VFS_MAX + i * CLAIM_VFS + k];

			if (c->kept && c->vf[k] != vf && !w->cfg.sickens)
				broken(w, "claim %u is prepared again, with %s in place of %s", i,
				       vf_name((unsigned)vf), vf_name((unsigned)c->vf[k]));
			c->vf[k] = vf;
		}
		c->prepared = c->known = c->kept = true;
		write_state(c);
	}
	p->ready = ok;
}

static bool is_unpreparing(const struct world *w, int pod)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		const struct op *op = &w->u.op[i];

		if (op->there && !op->lost && op->kind == OP_UNPREPARE && op->pod == pod)
			return true;
	}
	return false;
}

bool kubelet_unprepare(struct world *w, int pod)
{
	struct pod *p = &w->pods[pod];
	uint8_t batch = 0;

	if (is_unpreparing(w, pod))
		return false;
	for (unsigned i = 0; i < w->n_claims; i++) {
		struct claim *c = &w->claims[i];

		if (!(p->claims >> i & 1) || !c->cached)
			continue;
		if (w->cfg.counts_users && !(c->refs >> pod & 1))
			continue;
		if (count(c->refs) > 1) {
			c->refs &= ~(1u << pod);
			continue;
		}
		c->unpreparing = true;
		batch |= 1u << i;
	}
	if (batch) {
		if (w->u.up)
			new_op(w, OP_UNPREPARE, pod, batch);
		return false;
	}
	for (unsigned i = 0; i < w->n_claims; i++)
		write_state(&w->claims[i]);
	return true;
}

static void kubelet_unprepared(struct world *w, const struct op *op, bool ok)
{
	w->pods[op->pod].released |= ok;
	for (unsigned i = 0; ok && i < w->n_claims; i++) {
		if (op->claims >> i & 1)
			forget(&w->claims[i]);
		write_state(&w->claims[i]);
	}
}

void kubelet_reconcile(struct world *w)
{
	for (unsigned p = 0; p < w->n_pods && w->k.sources; p++) {
		bool has = false;

		for (unsigned i = 0; i < w->n_claims; i++)
			has |= w->claims[i].cached && (w->claims[i].refs >> p & 1);
		if (has && !pod_is_active(&w->pods[p]))
			kubelet_unprepare(w, (int)p);
	}
}

void dra_disconnected(struct world *w)
{
	for (unsigned p = 0; p < w->n_pods; p++)
		w->pods[p].preparing = false;
}

/* --- railmated --- */

/* Of several pods the oldest one: the call does not say for whom it is. One that the kubelet has
 * rejected reserves nothing any more; one that it has never heard of is none. */
static int find_pod(const struct world *w, uint8_t claims)
{
	for (unsigned p = 0; p < w->n_pods; p++) {
		const struct pod *pod = &w->pods[p];

		if (pod->in_api && !pod->deleting && !pod->over && !pod->rejected &&
		    (pod->known || !w->k.sources) && (pod->claims & claims) == claims)
			return (int)p;
	}
	return -1;
}

/* A claim that is unprepared keeps its VFs while the one of its pods runs that did then. Of one
 * that came and was forgotten between two looks at the kubelet's file only what it has open is
 * seen. */
void note_unseen(struct world *w, int pod, int c)
{
	struct ctr *ctr = &w->pods[pod].c[c];

	for (set s = ctr->alive ? ctr->vfs : 0; s && w->u.up; s &= s - 1) {
		unsigned vf = (unsigned)lowest(s);
		const struct ledger_hold *hold = us_hold(w, vf);

		if (ctr->of[vf] && !w->claims[ctr->of[vf] - 1].kept &&
		    !(hold && claim_number(hold->owner.claim) == ctr->of[vf] - 1 &&
		      uid_number(hold->owner.uid) == pod))
			ctr->unseen |= 1u << vf;
	}
}

/* Pods of the claim that have processes, of those that it was prepared for, or that the kubelet's
 * file has named. */
static uint16_t running_users(struct world *w, unsigned claim)
{
	uint16_t run = 0;

	w->u.users[claim] |= w->checkpoint_unreadable ? 0 : w->claims[claim].file_refs;
	for (int p = 0; p < (int)w->n_pods; p++) {
		enum holds_cgroup cgroup = machine_cgroup(w, p);

		run |= (w->u.users[claim] >> p & 1) && cgroup != HOLDS_CGROUP_EMPTY ? 1u << p : 0;
	}
	return run;
}

static void unprepare(struct world *w, uint8_t claims)
{
	for (unsigned i = 0; i < w->n_claims; i++) {
		uint16_t run = claims >> i & 1 ? running_users(w, i) : 0;
		struct ledger_owner owner = owner_of((struct who) { -1, (int8_t)lowest(run), 0 });

		if (!(claims >> i & 1))
			continue;
		w->u.users[i] = 0;
		w->claims[i].kept = false;
		cut(w);
		holds_event(w->u.h,
			    &(struct holds_event) { .kind = HOLDS_UNPREPARED,
						    .claim_uid = claim_name(i),
						    .owner = run ? &owner : NULL },
			    now_of(w));
		for (int p = 0; p < (int)w->n_pods; p++) {
			for (int k = 0; k < CTRS; k++) {
				if (count(run) < 2 && (run >> p & 1))
					continue;
				note_unseen(w, p, k);
			}
		}
	}
	us_settle(w, "unprepare");
}

/* What the kubelet's DRA checkpoint does not name it has unprepared: it is noted there before it is
 * prepared, and until it is not. */
void us_read_state(struct world *w)
{
	uint8_t gone = 0;

	if (w->checkpoint_unreadable || !holds_status(w->u.h).settled)
		return;
	for (unsigned i = 0; i < w->n_claims; i++)
		w->u.users[i] |= w->claims[i].file_refs;
	for (unsigned vf = 0; vf < w->n_vfs; vf++) {
		const struct ledger_hold *hold = us_hold(w, vf);
		int claim = hold ? claim_number(hold->owner.claim) : -1;

		if (claim >= 0 && !hold->draining && !w->claims[claim].file_cached)
			gone |= 1u << claim;
	}
	if (gone)
		unprepare(w, gone);
}

void dra_answer(struct world *w, struct op *op, bool ok, const char *why)
{
	struct op done;

	op->bound = 0;
	op->number = 0;
	if (ok && op->left && !op->stale) { /* the next part */
		op->step = 2;
		return;
	}
	if (op->stale) {
		unprepare(w, op->claims);
		ok = false;
		why = "the claim was unprepared meanwhile";
	}
	done = *op;
	op->there = false;
	if (op->lost)
		return;
	if (done.kind == OP_PREPARE)
		kubelet_prepared(w, &done, ok, why);
	else
		kubelet_unprepared(w, &done, ok);
}

static void ask(struct world *w, struct op *op, uint32_t r)
{
	int pod = find_pod(w, op->claims);

	if (!w->api || pod < 0) {
		dra_answer(w, op, false, "no pod of this node has the claims");
		return;
	}
	for (unsigned i = 0; i < w->n_claims; i++)
		w->u.users[i] |= op->claims >> i & 1 ? 1u << pod : 0;
	op->who = (struct who) { (int8_t)w->pods[pod].name, (int8_t)pod, CTR_MAIN };
	op->left = op->claims;
	op->unfiled = mix(r, 58) % 2; /* one choice for each claim, or one for all */
	op->step++;
}

static void list(struct world *w, struct op *op)
{
	struct answer a = { .epoch = w->k.epoch, .asked_ms = now_of(w).mono_ms };
	bool reach = w->k.up && w->podres;

	if (reach) {
		kubelet_gc(w);
		kubelet_answer(w, &a);
		us_take(w, &a);
	}
	if (reach && (a.pods >> op->who.uid & 1))
		op->step++;
	else
		dra_answer(w, op, false, "PodResources does not show the pod");
}

/* Those that containers share are chosen at once. */
static void next_part(struct world *w, struct op *op)
{
	uint8_t part = op->unfiled ? op->left & -op->left : op->left;

	op->left &= ~part;
	op->ids = claim_slots(w, part);
	sim_late_bind(w, op);
}

static bool is_anyone_at(const struct world *w, uint8_t claims)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		const struct op *op = &w->u.op[i];

		if (op->there && op->kind == OP_PREPARE && op->stale && (op->claims & claims))
			return true;
	}
	return false;
}

static void unprepare_step(struct world *w, struct op *op)
{
	bool run = false;

	for (unsigned i = 0; i < w->n_claims; i++)
		run |= (op->claims >> i & 1) && count(running_users(w, i)) > 1;
	if (!op->step && !holds_status(w->u.h).settled) {
		dra_answer(w, op, false, "not all records were read");
	} else if (!op->step && run) {
		dra_answer(w, op, false, "several pods of the claim run still");
	} else if (!op->step) {
		for (unsigned i = 0; i < OPS_MAX; i++)
			w->u.op[i].stale |= w->u.op[i].there && w->u.op[i].kind == OP_PREPARE &&
					    (w->u.op[i].claims & op->claims);
		unprepare(w, op->claims);
		op->generation = ledger_generation(holds_ledger(w->u.h));
		op->since_ms = now_of(w).mono_ms;
		op->step++;
	} else if (holds_may_answer(w->u.h, op->generation, op->since_ms, now_of(w)) &&
		   !is_anyone_at(w, op->claims)) {
		dra_answer(w, op, true, NULL);
	} else {
		us_settle(w, "waits for the disk");
	}
}

void dra_op(struct world *w, struct op *op, uint32_t r)
{
	if (op->kind == OP_UNPREPARE) {
		unprepare_step(w, op);
		return;
	}
	switch (op->step) {
	case 0:
		ask(w, op, r);
		break;
	case 1:
		list(w, op);
		break;
	case 2:
		look_around(w, op);
		op->step++;
		break;
	case 3:
		next_part(w, op);
		break;
	case 4:
		late_write(w, op);
		break;
	default:
		late_answer(w, op);
		break;
	}
}

/* --- what must hold --- */

/* A claim that is prepared has its VFs. */
void check_claims(struct world *w, const char *event)
{
	for (unsigned i = 0; i < w->n_claims; i++) {
		const struct claim *c = &w->claims[i];

		for (unsigned k = 0; c->kept && k < c->n; k++) {
			unsigned vf = (unsigned)c->vf[k];
			const struct ledger_hold *hold = us_hold(w, vf);

			if (!hold || claim_number(hold->owner.claim) != (int)i)
				broken(w, "%s: %s is taken from claim %u, which is prepared", event,
				       vf_name(vf), i);
			else if (hold->draining)
				broken(w, "%s: %s drains, and claim %u, which has it, is prepared",
				       event, vf_name(vf), i);
		}
	}
}
