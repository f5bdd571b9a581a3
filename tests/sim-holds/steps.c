/* What can happen next, by name: a schedule is a list of these. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

const char *const step_names[STEPS] = {
	[STEP_POD] = "pod",
	[STEP_PLAIN] = "plain-pod",
	[STEP_CLAIM_POD] = "claim-pod",
	[STEP_DELETE] = "delete",
	[STEP_FORCE] = "force-delete",
	[STEP_ADMIT] = "admit-step",
	[STEP_ADMIT_ALL] = "admit",
	[STEP_PREPARE] = "prepare",
	[STEP_SANDBOX] = "sandbox",
	[STEP_CALL] = "call",
	[STEP_OP] = "call-step",
	[STEP_START] = "start",
	[STEP_CREATE] = "create",
	[STEP_CREATE_FAILS] = "create-fails",
	[STEP_OPEN] = "open",
	[STEP_CRASH] = "exit",
	[STEP_STOP] = "stop",
	[STEP_TEARDOWN] = "teardown",
	[STEP_RUN] = "run",
	[STEP_WAIT] = "wait",
	[STEP_TIMER] = "timer",
	[STEP_ASK] = "ask",
	[STEP_ANSWER] = "answer",
	[STEP_TAKE] = "take",
	[STEP_POLL] = "poll",
	[STEP_STORE] = "store",
	[STEP_STORED] = "stored",
	[STEP_REGISTER] = "register",
	[STEP_UP] = "up",
	[STEP_KUBELET_UP] = "kubelet-up",
	[STEP_SYNC] = "kubelet-sync",
	[STEP_RECONCILE] = "reconcile",
	[STEP_KILL] = "kill",
	[STEP_FUSE] = "fuse",
	[STEP_RESTART] = "takeover",
	[STEP_KUBELET_KILL] = "kubelet-kill",
	[STEP_API] = "api",
	[STEP_STREAM] = "stream-ends",
	[STEP_PODRES] = "podresources",
	[STEP_LISTED] = "foreign-list",
	[STEP_DISK] = "disk",
	[STEP_TEAR] = "ledger-torn",
	[STEP_LEDGER_GONE] = "ledger-gone",
	[STEP_LEDGER_OLD] = "ledger-old",
	[STEP_SPECS_GONE] = "specs-gone",
	[STEP_RECORDS] = "records-gone",
	[STEP_CDI] = "cdi-unreadable",
	[STEP_STATE] = "state-away",
	[STEP_RUN_FULL] = "run-full",
	[STEP_CGROUPS] = "cgroups-unreadable",
	[STEP_SCAN] = "scan-incomplete",
	[STEP_CHECKPOINT] = "checkpoint-unreadable",
	[STEP_SICK] = "sick",
	[STEP_STRANGER] = "stranger",
	[STEP_RELEASE] = "release",
	[STEP_REBOOT] = "reboot",
};

static void poll(struct world *w)
{
	unsigned i = 0;

	while (i < ASKED_MAX && w->u.asked[i].asked)
		i++;
	if (i == ASKED_MAX)
		return;
	us_ask(w);
	kubelet_gc(w);
	kubelet_answer(w, &w->u.asked[i]);
	us_take(w, &w->u.asked[i]);
}

/* A container lives of which nothing but railmated, which runs, knows: it must not end now. */
static bool is_lone_witness(const struct world *w)
{
	for (unsigned p = 0; p < w->n_pods; p++) {
		for (unsigned c = 0; c < CTRS; c++) {
			const struct ctr *ctr = &w->pods[p].c[c];

			for (set s = ctr->alive ? ctr->vfs & ~ctr->unseen : 0; s; s &= s - 1) {
				if (!is_recorded(w, (unsigned)lowest(s), (int)p))
					return true;
			}
		}
	}
	for (unsigned i = 0; i < w->n_claims; i++) {
		for (set s = claim_vfs(w, i); s; s &= s - 1) {
			const struct record *map = &w->s.map[lowest(s)];

			if (!map->there || claim_of((unsigned)map->slot) != (int)i)
				return true;
		}
	}
	return false;
}

/*
 * railmated dies, the ledger, specs and map.json go, and it comes back while the kubelet shows
 * every container that lives: so much has to be known for it to be cured at all.
 */
static bool can_lose_records(const struct world *w)
{
	for (unsigned p = 0; p < w->n_pods; p++) {
		const struct pod *pod = &w->pods[p];

		bool runs = pod->sandbox || pod_lives(pod), init = false;

		for (set s = pod->away; s; s &= s - 1) {
			if (w->cfg.pools[pool_of(w, (unsigned)lowest(s))].late)
				return false; /* whose VF that is, nothing else says */
		}
		for (unsigned c = 0; c < CTRS; c++)
			init |= pod->c[c].init &&
				(pod->c[c].alive || pod->c[c].state == CTR_CREATES);
		if (runs && (!pod_is_active(pod) || !pod->admitted || init))
			return false;
	}
	for (unsigned id = 0; id < w->n_vfs; id++) {
		if (!w->cfg.pools[pool_of(w, id)].late && is_given_twice(w, id))
			return false;
	}
	for (unsigned i = 0; i < w->n_claims; i++) {
		if (w->claims[i].cached)
			return false; /* no list shows what it has */
	}
	for (unsigned vf = 0; w->u.up && vf < w->n_vfs; vf++) {
		const struct ledger_hold *hold = us_hold(w, vf);

		if (hold && claim_number(hold->owner.claim) >= 0)
			return false; /* nor what drains */
	}
	return w->u.up && !w->fuse && !is_lone_witness(w) && w->k.up && w->k.sources && w->podres &&
	       w->k.pod < 0 && !w->s.away && !w->s.cdi_unreadable && !w->cgroups_unreadable &&
	       !w->scan_incomplete && !w->checkpoint_unreadable;
}

static void lose_records(struct world *w)
{
	us_kill(w);
	disk_remove_specs(w);
	disk_remove_maps(w);
	free(w->s.ledger.s);
	free(w->s.older.s);
	w->s.ledger = w->s.older = (struct text) { NULL, 0 };
	w->forgetful = w->lost = true;
	us_start(w);
	us_register(w);
	poll(w);
	w->forgetful = false;
}

/* --- can it be done? a: a pod; pod × CTRS + container; an op; a question; a number --- */

static bool all_alive(const struct pod *p)
{
	for (unsigned c = 0; c < CTRS; c++) {
		if (p->c[c].there && !p->c[c].alive)
			return false;
	}
	return true;
}

static bool may_be_forgotten(const struct world *w, int pod)
{
	return !w->checkpoint_unreadable && !pod_is_nameless(w, pod);
}

static bool can_pod_step(const struct world *w, const struct step *s)
{
	unsigned pod = s->a, c = s->a % CTRS;
	const struct pod *p;

	if (s->kind >= STEP_CALL && s->kind != STEP_STOP && s->kind != STEP_TEARDOWN &&
	    s->kind != STEP_START)
		pod /= CTRS;
	if (pod >= w->n_pods)
		return false;
	p = &w->pods[pod];
	switch (s->kind) {
	case STEP_DELETE:
		return can_delete(w, (int)pod) && !p->deleting &&
		       (!p->fixed || may_be_forgotten(w, (int)pod));
	case STEP_FORCE:
		return can_delete(w, (int)pod) && may_be_forgotten(w, (int)pod);
	case STEP_PREPARE:
		return can_prepare(w, (int)pod);
	case STEP_SANDBOX:
		return can_sandbox(w, (int)pod);
	case STEP_CALL:
		return w->u.up && can_call(w, (int)pod, (int)c);
	case STEP_START:
		return w->u.up && pod_is_active(p) && p->admitted && w->k.pluggedin &&
		       !p->deleting && !all_alive(p);
	case STEP_CREATE:
	case STEP_CREATE_FAILS:
		return can_create(w, (int)pod, (int)c);
	case STEP_OPEN:
		return p->c[c].alive && p->c[c].open != p->c[c].vfs;
	case STEP_CRASH:
		return p->c[c].alive && !p->dying;
	case STEP_STOP:
		return pod_has_ends(p) && !p->over && (pod_lives(p) || p->sandbox);
	default: /* STEP_TEARDOWN */
		return pod_has_ends(p) && !pod_lives(p) && (!p->over || (p->deleting && p->known));
	}
}

static bool can_us_step(const struct world *w, const struct step *s)
{
	bool reach = w->u.up && w->k.up && w->podres;

	switch (s->kind) {
	case STEP_OP:
		return w->u.up && s->a < OPS_MAX && w->u.op[s->a].there;
	case STEP_ASK:
		return reach && s->a < ASKED_MAX && !w->u.asked[s->a].asked && w->k.pod < 0;
	case STEP_ANSWER:
		return reach && s->a < ASKED_MAX && w->u.asked[s->a].asked &&
		       !w->u.asked[s->a].here && w->u.asked[s->a].epoch == w->k.epoch;
	case STEP_TAKE:
		return w->u.up && s->a < ASKED_MAX && w->u.asked[s->a].here;
	case STEP_POLL:
		return reach && w->k.pod < 0;
	case STEP_STORE:
		return can_store(w);
	case STEP_STORED:
		return w->u.up && w->u.storing && w->s.disk != DISK_HANGS;
	case STEP_REGISTER:
		return w->u.up && w->k.up && !w->k.pluggedin;
	case STEP_UP:
		return !w->u.up;
	case STEP_KILL:
	case STEP_RESTART:
		return w->u.up && !is_lone_witness(w);
	default: /* STEP_TIMER */
		return w->u.up;
	}
}

/* The operator has seen that nothing runs of the pod that has it. */
static bool can_release(const struct world *w, unsigned vf)
{
	const struct ledger_hold *hold = us_hold(w, vf);
	struct who who = hold ? who_of(&hold->owner) : (struct who) { .name = -1 };
	int claim = hold ? claim_number(hold->owner.claim) : -1;

	if (claim >= 0 && w->claims[claim].cached)
		return false;
	for (int p = 0; p < (int)w->n_pods; p++) {
		if (has_processes(&w->pods[p]) &&
		    (who.uid >= 0 ? who.uid == p : who.name < 0 || who.name == w->pods[p].name))
			return false;
	}
	return hold && !((used_by_live(w) | had_by_running(w)) >> vf & 1);
}

/* By a pod: in its containers or namespace, or counted on by the kubelet. */
static set has_been_given(const struct world *w)
{
	set s = used_by_live(w) | w->k.allocated;

	for (unsigned p = 0; p < w->n_pods; p++)
		s |= w->pods[p].away | pod_had(&w->pods[p]);
	return s & ~w->strange;
}

bool step_can(const struct world *w, const struct step *s)
{
	switch (s->kind) {
	case STEP_CLAIM_POD:
		return w->n_pods < PODS_MAX - 2 && dra_pool(w) >= 0 &&
		       s->r % CLAIMS_MAX <= w->n_claims;
	case STEP_POD:
	case STEP_PLAIN:
		return w->n_pods < PODS_MAX - 2;
	case STEP_ADMIT:
	case STEP_ADMIT_ALL:
		return can_admit(w);
	case STEP_KUBELET_UP:
		return !w->k.up;
	case STEP_SYNC:
		return w->k.up && !w->k.sources && w->api;
	case STEP_RECONCILE:
	case STEP_KUBELET_KILL:
	case STEP_LISTED:
		return w->k.up;
	case STEP_STREAM:
		return w->k.pluggedin;
	case STEP_FUSE:
		return !w->fuse && !is_lone_witness(w);
	case STEP_DISK:
		return s->a <= DISK_HANGS && w->s.disk != (enum disk)s->a;
	case STEP_RECORDS:
		return can_lose_records(w);
	case STEP_TEAR:
	case STEP_LEDGER_GONE:
		return w->s.ledger.s;
	case STEP_LEDGER_OLD:
		return w->s.older.s;
	case STEP_CHECKPOINT:
		return w->cfg.names_once && !w->s.away;
	case STEP_STATE:
		return !w->checkpoint_unreadable && !w->cfg.sickens;
	case STEP_SICK:
		return w->cfg.sickens && s->a < w->n_vfs &&
		       (w->cfg.pools[pool_of(w, s->a)].late || w->cfg.pools[pool_of(w, s->a)].dra);
	case STEP_STRANGER:
		return w->cfg.strangers && s->a < w->n_vfs && !(has_been_given(w) >> s->a & 1);
	case STEP_RELEASE:
		return w->u.up && s->a < w->n_vfs && can_release(w, s->a);
	case STEP_OP:
	case STEP_TIMER:
	case STEP_ASK:
	case STEP_ANSWER:
	case STEP_TAKE:
	case STEP_POLL:
	case STEP_STORE:
	case STEP_STORED:
	case STEP_REGISTER:
	case STEP_UP:
	case STEP_KILL:
	case STEP_RESTART:
		return can_us_step(w, s);
	case STEP_DELETE:
	case STEP_FORCE:
	case STEP_PREPARE:
	case STEP_SANDBOX:
	case STEP_CALL:
	case STEP_START:
	case STEP_CREATE:
	case STEP_CREATE_FAILS:
	case STEP_OPEN:
	case STEP_CRASH:
	case STEP_STOP:
	case STEP_TEARDOWN:
		return can_pod_step(w, s);
	default:
		return true;
	}
}

/* --- doing it --- */

static void work(struct world *w, int pod, uint32_t r)
{
	for (unsigned i = 0; i < OPS_MAX; i++) {
		for (unsigned n = 0; n < 8 && w->u.op[i].there && w->u.op[i].pod == pod; n++) {
			if (can_store(w))
				us_store(w);
			if (w->u.storing && w->s.disk != DISK_HANGS)
				us_stored(w);
			us_op(w, &w->u.op[i], r + n);
		}
	}
}

/* The pod worker goes on with this pod, as far as it gets without waiting. */
static void start(struct world *w, int pod, uint32_t r)
{
	if (can_prepare(w, pod)) {
		kubelet_prepare(w, pod);
		work(w, pod, r);
	}
	if (can_sandbox(w, pod))
		pod_sandbox(w, pod);
	for (int c = 0; c < CTRS && w->u.up; c++) {
		struct ctr *ctr = &w->pods[pod].c[c];

		if (can_call(w, pod, c))
			kubelet_call(w, pod, c);
		work(w, pod, r);
		if (can_create(w, pod, c))
			ctr_create(w, pod, c);
		if (ctr->alive && ctr->init && mix(r, 40) % 4)
			ctr_exit(w, pod, c, true);
	}
}

static void run(struct world *w, uint32_t r)
{
	while (can_admit(w))
		kubelet_admit(w, r);
	for (int p = 0; p < (int)w->n_pods; p++) {
		if (can_pod_step(w, &(struct step) { STEP_START, (uint8_t)p, r }))
			start(w, p, r);
	}
}

static void kill_us(struct world *w, uint32_t r)
{
	/* What was on its way to the disk is there, or not. */
	if (w->u.storing && w->u.state_open && w->s.disk == DISK_WELL && r % 2) {
		disk_write_ledger(w, w->u.text);
		w->u.text = (struct text) { NULL, 0 };
	}
	us_kill(w);
}

static void old_ledger(struct world *w)
{
	struct text t = { malloc(w->s.older.len + 1), w->s.older.len };

	memcpy(t.s, w->s.older.s, t.len + 1);
	free(w->s.ledger.s);
	w->s.ledger = t;
}

static const int64_t waits_ms[] = { 10, 100, 500, 1000, 2100, 10000, 61000 };

static void do_fault(struct world *w, const struct step *s)
{
	switch (s->kind) {
	case STEP_KILL:
		kill_us(w, s->r);
		break;
	case STEP_FUSE:
		w->fuse = 1 + s->r % 96;
		break;
	case STEP_RESTART:
		us_stop(w);
		us_start(w);
		break;
	case STEP_KUBELET_KILL:
		kubelet_kill(w);
		break;
	case STEP_API:
		w->api = !w->api;
		break;
	case STEP_STREAM:
		kubelet_unplug(w);
		break;
	case STEP_PODRES:
		w->podres = !w->podres;
		break;
	case STEP_LISTED:
		kubelet_gc(w);
		break;
	case STEP_DISK:
		w->s.disk = (enum disk)s->a;
		break;
	case STEP_TEAR:
		disk_tear_ledger(w);
		break;
	case STEP_LEDGER_GONE:
		free(w->s.ledger.s);
		w->s.ledger = (struct text) { NULL, 0 };
		break;
	case STEP_LEDGER_OLD:
		old_ledger(w);
		break;
	case STEP_SPECS_GONE:
		disk_remove_specs(w);
		break;
	case STEP_RECORDS:
		lose_records(w);
		break;
	case STEP_CDI:
		w->s.cdi_unreadable = !w->s.cdi_unreadable;
		break;
	case STEP_STATE:
		w->s.away = !w->s.away;
		break;
	case STEP_RUN_FULL:
		w->s.run_full = !w->s.run_full;
		break;
	case STEP_CGROUPS:
		w->cgroups_unreadable = !w->cgroups_unreadable;
		break;
	case STEP_SCAN:
		w->scan_incomplete = !w->scan_incomplete;
		break;
	case STEP_CHECKPOINT:
		w->checkpoint_unreadable = !w->checkpoint_unreadable;
		break;
	case STEP_SICK:
		w->sick ^= 1u << s->a;
		if (w->u.up)
			us_list(w);
		break;
	case STEP_STRANGER:
		if (!w->strange)
			w->strangers_open = s->r & 1;
		w->strange ^= 1u << s->a;
		break;
	case STEP_RELEASE:
		us_release(w, s->a);
		break;
	default:
		node_reboot(w);
		break;
	}
}

/* a: its name; r: its claim, a new one or one that there is, and 8 times its VFs. */
static void claim_pod(struct world *w, const struct step *s)
{
	unsigned claim = s->r % CLAIMS_MAX;
	int pod;

	if (claim == w->n_claims && claim_create(w, s->r / CLAIMS_MAX, true) < 0)
		return;
	pod = pod_create_as(w, s->a, false, &(struct ctr) { .claims = (uint8_t)(1u << claim) }, 1);
	w->pods[pod].claims = (uint8_t)(1u << claim);
}

static void do_pod_step(struct world *w, const struct step *s)
{
	int pod = s->a, c = s->a % CTRS;

	switch (s->kind) {
	case STEP_POD:
		pod_create(w, s->r);
		break;
	case STEP_PLAIN:
		pod_create_as(w, s->a, false, &(struct ctr) { .want = { (uint8_t)s->r } }, 1);
		break;
	case STEP_CLAIM_POD:
		claim_pod(w, s);
		break;
	case STEP_DELETE:
	case STEP_FORCE:
		pod_delete(w, pod, s->kind == STEP_FORCE);
		break;
	case STEP_ADMIT:
		kubelet_admit(w, s->r);
		break;
	case STEP_ADMIT_ALL:
		do
			kubelet_admit(w, s->r);
		while (w->k.pod >= 0);
		break;
	case STEP_PREPARE:
		kubelet_prepare(w, pod);
		break;
	case STEP_SANDBOX:
		pod_sandbox(w, pod);
		break;
	case STEP_START:
		start(w, pod, s->r);
		break;
	case STEP_CALL:
		kubelet_call(w, pod / CTRS, c);
		break;
	case STEP_CREATE:
		ctr_create(w, pod / CTRS, c);
		break;
	case STEP_CREATE_FAILS:
		w->pods[pod / CTRS].c[c].state = CTR_WAITS;
		break;
	case STEP_OPEN:
		ctr_open(w, pod / CTRS, c, s->r);
		break;
	case STEP_CRASH:
		ctr_exit(w, pod / CTRS, c, s->r % 4 != 0);
		break;
	case STEP_STOP:
		pod_stop(w, pod);
		break;
	default: /* STEP_TEARDOWN */
		if (w->pods[pod].over)
			w->pods[pod].known = w->pods[pod].in_api = false;
		else
			pod_teardown(w, pod);
		break;
	}
}

static void do_us_step(struct world *w, const struct step *s)
{
	switch (s->kind) {
	case STEP_OP:
		us_op(w, &w->u.op[s->a], s->r);
		break;
	case STEP_TIMER:
		us_timer(w);
		break;
	case STEP_ASK:
		us_ask(w);
		break;
	case STEP_ANSWER:
		kubelet_gc(w);
		kubelet_answer(w, &w->u.asked[s->a]);
		break;
	case STEP_TAKE:
		us_take(w, &w->u.asked[s->a]);
		break;
	case STEP_POLL:
		poll(w);
		break;
	case STEP_STORE:
		us_store(w);
		break;
	case STEP_STORED:
		us_stored(w);
		break;
	case STEP_REGISTER:
		us_register(w);
		break;
	default: /* STEP_UP */
		us_start(w);
		break;
	}
}

static void do_it(struct world *w, const struct step *s)
{
	switch (s->kind) {
	case STEP_RUN:
		run(w, s->r);
		break;
	case STEP_WAIT:
		w->now_ms += waits_ms[s->a % (sizeof(waits_ms) / sizeof(waits_ms[0]))];
		break;
	case STEP_KUBELET_UP:
		kubelet_start(w);
		break;
	case STEP_SYNC:
		kubelet_sync(w);
		break;
	case STEP_RECONCILE:
		kubelet_reconcile(w);
		break;
	default:
		if (s->kind >= STEP_KILL)
			do_fault(w, s);
		else if (s->kind <= STEP_TEARDOWN && s->kind != STEP_OP)
			do_pod_step(w, s);
		else
			do_us_step(w, s);
		break;
	}
}

static void die(struct world *w, uint8_t kind)
{
	say(w, "railmated dies");
	w->fuse = 0;
	w->forgetful = false;
	if (w->u.up)
		us_kill(w);
	if (kind == STEP_ADMIT || kind == STEP_ADMIT_ALL || kind == STEP_RUN)
		kubelet_failed(w);
}

bool step_do(struct world *w, const struct step *s)
{
	jmp_buf dead;

	if (!step_can(w, s))
		return false;
	say(w, "-- %s %u %#x", step_names[s->kind], s->a, s->r);
	w->now_ms++;
	w->dead = &dead;
	if (setjmp(dead))
		die(w, s->kind);
	else
		do_it(w, s);
	w->dead = NULL;
	return true;
}

void world_begin(struct world *w, const struct config *cfg, bool trace)
{
	memset(w, 0, sizeof(*w));
	w->cfg = *cfg;
	for (unsigned i = 0; i < cfg->n_pools; i++)
		w->n_vfs += cfg->pools[i].n;
	w->now_ms = 100000;
	w->api = w->podres = true;
	w->k.pod = -1;
	w->trace = trace;
	kubelet_start(w);
	kubelet_sync(w);
	us_start(w);
	us_register(w);
}

/* --- by chance --- */

uint64_t next_random(uint64_t *rng)
{
	uint64_t x = *rng;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *rng = x;
}

static const uint8_t weights[STEPS] = {
	[STEP_POD] = 14,      [STEP_DELETE] = 4,    [STEP_FORCE] = 7,	     [STEP_ADMIT] = 8,
	[STEP_ADMIT_ALL] = 8, [STEP_SANDBOX] = 2,   [STEP_CALL] = 4,	     [STEP_OP] = 10,
	[STEP_START] = 14,    [STEP_CREATE] = 6,    [STEP_CREATE_FAILS] = 1, [STEP_OPEN] = 4,
	[STEP_CRASH] = 4,     [STEP_STOP] = 5,	    [STEP_TEARDOWN] = 4,     [STEP_RUN] = 6,
	[STEP_WAIT] = 8,      [STEP_TIMER] = 6,	    [STEP_ASK] = 3,	     [STEP_ANSWER] = 3,
	[STEP_TAKE] = 3,      [STEP_POLL] = 8,	    [STEP_STORE] = 6,	     [STEP_STORED] = 6,
	[STEP_REGISTER] = 8,  [STEP_UP] = 8,	    [STEP_KUBELET_UP] = 6,   [STEP_SYNC] = 4,
	[STEP_PREPARE] = 4,   [STEP_RECONCILE] = 4,
};
static const uint8_t fault_weights[STEPS] = {
	[STEP_KILL] = 6,       [STEP_FUSE] = 8,	   [STEP_RESTART] = 4,	   [STEP_KUBELET_KILL] = 6,
	[STEP_API] = 4,	       [STEP_STREAM] = 2,  [STEP_PODRES] = 2,	   [STEP_LISTED] = 4,
	[STEP_DISK] = 6,       [STEP_TEAR] = 3,	   [STEP_LEDGER_GONE] = 2, [STEP_LEDGER_OLD] = 3,
	[STEP_SPECS_GONE] = 4, [STEP_RECORDS] = 3, [STEP_CDI] = 4,	   [STEP_STATE] = 4,
	[STEP_RUN_FULL] = 2,   [STEP_CGROUPS] = 3, [STEP_SCAN] = 3,	   [STEP_REBOOT] = 2,
	[STEP_CHECKPOINT] = 3, [STEP_SICK] = 5,	   [STEP_RELEASE] = 4,	   [STEP_STRANGER] = 8,
};

static uint8_t pick_kind(const uint8_t *table, uint64_t *rng)
{
	unsigned sum = 0, at;

	for (unsigned i = 0; i < STEPS; i++)
		sum += table[i];
	at = (unsigned)(next_random(rng) >> 20) % sum;
	for (unsigned i = 0;; i++) {
		if (at < table[i])
			return (uint8_t)i;
		at -= table[i];
	}
}

/* How many values of a this kind may have. */
static unsigned choices(const struct world *w, uint8_t kind)
{
	switch (kind) {
	case STEP_DELETE:
	case STEP_FORCE:
	case STEP_PREPARE:
	case STEP_SANDBOX:
	case STEP_START:
	case STEP_STOP:
	case STEP_TEARDOWN:
		return w->n_pods;
	case STEP_CALL:
	case STEP_CREATE:
	case STEP_CREATE_FAILS:
	case STEP_OPEN:
	case STEP_CRASH:
		return w->n_pods * CTRS;
	case STEP_OP:
		return OPS_MAX;
	case STEP_ASK:
	case STEP_ANSWER:
	case STEP_TAKE:
		return ASKED_MAX;
	case STEP_DISK:
		return DISK_HANGS + 1;
	case STEP_SICK:
	case STEP_STRANGER:
	case STEP_RELEASE:
		return w->n_vfs;
	case STEP_WAIT:
		return sizeof(waits_ms) / sizeof(waits_ms[0]);
	default:
		return 1;
	}
}

struct step step_random(const struct world *w, uint64_t *rng, bool faults)
{
	for (unsigned n = 0; n < 64; n++) {
		bool fault = faults && (next_random(rng) >> 30) % 8 == 0;
		struct step s = { .kind = pick_kind(fault ? fault_weights : weights, rng) };
		unsigned of = choices(w, s.kind),
			 at = of ? (unsigned)(next_random(rng) >> 24) % of : 0;

		s.r = (uint32_t)(next_random(rng) >> 16);
		/* What a List makes forget is what an admission has reserved. */
		if (faults && w->k.pod >= 0 && s.r % 8 == 0)
			s.kind = STEP_LISTED, of = 1, at = 0;
		for (unsigned i = 0; i < of; i++) {
			s.a = (uint8_t)((at + i) % of);
			if (step_can(w, &s))
				return s;
		}
	}
	return (struct step) { .kind = STEP_WAIT };
}
