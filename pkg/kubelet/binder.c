#include "kubelet/binder-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "kubelet/identify.h"
#include "kubelet/keeper-internal.h"
#include "kubelet/podres.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "render/cdi.h"
#include "rpc/rpc.h"

/* A container that was given a slot shows in the next List; one that did not by then was not admitted. */
#define YOUNG_MS 2000

/* Somebody who waits for a binding. Outlives the binder if that goes first. */
struct request {
	LIST_ENTRY(request) link;
	struct binder *b; /* NULL: gone, and done was called */
	struct arena *arena;
	struct ids slots;
	struct binder_pod pod; /* name NULL: not known */
	bool by_get;	       /* of that pod alone */
	int64_t asked_ms;
	binder_done_fn done;
	void *arg;
	struct rpc_timer *timer;
	/* the outcome */
	struct bound *bound;
	size_t n_bound;
	bool replaced; /* a spec that was there changed */
};

int64_t binder_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void binder_say(const struct binder *b, const char *fmt, ...)
{
	char line[640];
	va_list ap;

	if (!b->env.note)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	b->env.note(b->env.ctx, line);
}

static void tell_changed(const struct binder *b)
{
	if (b->env.changed)
		b->env.changed(b->env.ctx);
}

/* --- slots that were given away and have no VF yet --- */

static struct promise *find_promise(const struct binder *b, const char *slot)
{
	for (size_t i = 0; i < b->n_promises; i++) {
		if (!strcmp(b->promises[i].slot, slot))
			return &b->promises[i];
	}
	return NULL;
}

const struct promise *binder_promised(const struct binder *b, const char *slot)
{
	return find_promise(b, slot);
}

static struct promise *promise(struct binder *b, const char *slot)
{
	struct promise *p = find_promise(b, slot);

	if (!p) {
		b->promises = xgrow(b->promises, &b->cap_promises, b->n_promises + 1, sizeof(*b->promises));
		p = &b->promises[b->n_promises++];
		*p = (struct promise) { .slot = xstrdup(slot) };
	}
	p->since_ms = binder_now_ms();
	p->held = true;
	return p;
}

static void drop_promise(struct binder *b, struct promise *p)
{
	if (!p)
		return;
	free(p->slot);
	*p = b->promises[--b->n_promises];
}

void binder_allocated(struct binder *b, const struct ids *slots)
{
	for (size_t i = 0; i < slots->n; i++) {
		promise(b, slots->v[i]);
		spec_remove(b, slots->v[i]);
	}
	tell_changed(b);
}

/* --- what the kubelet is told --- */

static const struct ledger_hold *live_hold(const struct binder *b, const char *slot)
{
	const struct ledger_hold *hold = ledger_find_slot(keeper_ledger(b->env.keeper), slot);

	return hold && !hold->draining ? hold : NULL;
}

struct slot_list binder_slots(const struct binder *b, const struct pool *pool, struct arena *a)
{
	const struct ledger *l = keeper_ledger(b->env.keeper);
	size_t n = ledger_holds(l);
	struct slot_use *uses = arena_array(a, n + b->n_promises, sizeof(*uses));
	const char **lost = arena_array(a, n, sizeof(*lost));
	struct slot_view view = { .pool = pool, .uses = uses, .lost = lost };

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (hold->slot && !hold->draining)
			uses[view.n_uses++] = (struct slot_use) { hold->slot, hold->vf };
		else
			lost[view.n_lost++] = hold->vf;
	}
	for (size_t i = 0; i < b->n_promises; i++) {
		if (b->promises[i].held && !live_hold(b, b->promises[i].slot))
			uses[view.n_uses++] = (struct slot_use) { b->promises[i].slot, NULL };
	}
	return slots_of(&view, a);
}

/* --- who holds what --- */

static bool is_same_pod(const struct ledger_owner *a, const struct ledger_owner *b)
{
	if (a->uid && *a->uid && b->uid && *b->uid)
		return !strcmp(a->uid, b->uid);
	return *a->pod && str_eq(a->ns, b->ns) && str_eq(a->pod, b->pod);
}

/* Nobody's any more: free at once if it is at rest, else when it comes to rest. */
static void release(struct binder *b, const struct ledger_hold *hold, struct arena *a)
{
	struct ledger *l = keeper_ledger(b->env.keeper);
	struct ledger_hold gone = *hold;
	const struct pool *pool = node_pool(b->node, hold->resource);
	const struct pool_dev *dev = pool ? pool_find(pool, hold->vf) : NULL;
	const char *why;

	gone.draining = true;
	gone.slot = NULL;
	ledger_put(l, &gone);
	if (dev)
		keeper_is_free(b->env.keeper, b->node, dev, NULL, a, &why);
}

/* The kubelet gave the slot of a live container to another one (reference kubelet.md §0.4): that one keeps
 * its VF. */
static void take_slot_from(struct binder *b, const struct ledger_hold *hold)
{
	struct ledger_hold kept = *hold;

	binder_say(b,
		   "slot %s of container %s of pod %s/%s was given to another container; %s stays with the "
		   "first one",
		   hold->slot, hold->owner.container, hold->owner.ns, hold->owner.pod, hold->vf);
	kept.slot = NULL;
	ledger_put(keeper_ledger(b->env.keeper), &kept);
}

static bool lists_holder(const struct pod_list *pods, const struct ledger_hold *hold)
{
	const struct pod *pod = identify_pod(pods, hold->owner.ns, hold->owner.pod);

	for (size_t i = 0; pod && hold->slot && i < pod->n_containers; i++) {
		const struct ids *ids = identify_held(&pod->containers[i], hold->resource);

		for (size_t k = 0; ids && k < ids->n; k++) {
			if (!strcmp(ids->v[k], hold->slot))
				return true;
		}
	}
	return false;
}

/* Pods that a List shows no more: their VFs may be just what this container needs. */
static void release_gone(struct binder *b, const struct pod_list *pods, struct arena *a)
{
	const struct ledger *l = keeper_ledger(b->env.keeper);

	for (size_t i = ledger_holds(l); pods->n && i-- > 0;) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (hold->slot && !hold->draining && *hold->owner.pod &&
		    !identify_pod(pods, hold->owner.ns, hold->owner.pod))
			release(b, hold, a);
	}
}

/* --- a binding --- */

static bool could(void *ctx, const struct pool_dev *dev)
{
	const struct request *r = ctx;
	const struct ledger_hold *hold = ledger_find(keeper_ledger(r->b->env.keeper), dev->id);

	return !hold || hold->draining;
}

static bool may(void *ctx, const struct pool_dev *dev, const char **ret_why)
{
	struct request *r = ctx;

	return keeper_is_free(r->b->env.keeper, r->b->node, dev, NULL, r->arena, ret_why);
}

/* The VF that the slot has already and keeps; NULL: one is to be chosen. */
static const struct pool_dev *sticky_vf(struct binder *b, const struct target *t, const struct pool *pool,
					const char *slot, const struct pod_list *pods, bool complete,
					struct arena *a)
{
	const struct ledger_hold *hold = live_hold(b, slot);
	const struct pool_dev *dev = hold ? pool_find(pool, hold->vf) : NULL;

	if (!hold)
		return NULL;
	if (!find_promise(b, slot) && is_same_pod(&hold->owner, &t->owner)) {
		if (dev && dev->healthy)
			return dev;
		release(b, hold, a);
	} else if (is_same_pod(&hold->owner, &t->owner) || (complete && !lists_holder(pods, hold))) {
		release(b, hold, a); /* another pod of the same name, or one that is gone */
	} else {
		take_slot_from(b, hold);
	}
	return NULL;
}

static void choose_from(struct request *r, const struct target *t, const struct pod_list *pods, bool complete,
			struct binding *c)
{
	struct binder *b = r->b;
	struct arena *a = r->arena;
	unsigned number;

	*c = (struct binding) { .node = b->node,
				.slots = arena_array(a, t->slots.n, sizeof(*c->slots)),
				.gpus = t->gpus,
				.n_gpus = t->n_gpus,
				.busy_gpus = t->busy_gpus,
				.n_busy_gpus = t->n_busy_gpus,
				.could = could,
				.may = may,
				.ctx = r };
	for (size_t i = 0; i < t->slots.n; i++) {
		struct binding_slot *s = &c->slots[c->n_slots++];

		s->id = t->slots.v[i];
		s->pool = slot_pool(b->node, s->id);
		slot_parse(s->pool->cfg->resource, s->id, &s->numa, &number);
		s->dev = sticky_vf(b, t, s->pool, s->id, pods, complete, a);
	}
}

static const char *rdma_of(const struct binder *b, const struct pool_dev *dev)
{
	return dev->rdma >= 0 ? b->node->inv->rdma[dev->rdma].name : NULL;
}

static const char *const *addresses(const struct binder *b, const int *pci, size_t n, struct arena *a)
{
	const char **v = arena_array(a, n, sizeof(*v));
	char bdf[BDF_STRLEN];

	for (size_t i = 0; i < n; i++)
		v[i] = arena_strdup(a, bdf_format(b->node->inv->pci[pci[i]].bdf, bdf));
	return v;
}

static uint64_t note_decision(struct binder *b, const struct target *t, const struct binding *c,
			      const struct chosen *chosen, struct arena *a)
{
	const char **vfs = arena_array(a, c->n_slots, sizeof(*vfs));
	struct ledger_decision d = {
		.at_ms = wall_ms(),
		.resource = c->slots[0].pool->cfg->resource,
		.late = true,
		.owner = t->owner,
		.asked = (int)c->n_slots,
		.known = t->n_gpus ? LEDGER_GPUS_KNOWN : LEDGER_GPUS_UNKNOWN,
		.source = t->n_gpus ? "PodResources at the container's start" : "the container has no GPUs",
		.gpus = addresses(b, t->gpus, t->n_gpus, a),
		.n_gpus = t->n_gpus,
		.free = chosen->free,
		.n_free = chosen->n_free,
		.chosen = vfs,
		.n_chosen = c->n_slots,
		.pairs = chosen->pairs,
		.n_pairs = chosen->n_pairs,
		.cost = chosen->cost,
		.alternative = chosen->alternative,
		.n_alternative = chosen->n_alternative,
		.alternative_cost = chosen->alternative_cost,
	};

	for (size_t i = 0; i < c->n_slots; i++)
		vfs[i] = c->slots[i].dev->id;
	return ledger_decide(keeper_ledger(b->env.keeper), &d);
}

static void hold_all(struct binder *b, const struct target *t, const struct binding *c, const bool *fresh,
		     uint64_t decision)
{
	struct ledger *l = keeper_ledger(b->env.keeper);

	for (size_t i = 0; i < c->n_slots; i++) {
		const struct binding_slot *s = &c->slots[i];
		const struct ledger_hold *before = fresh[i] ? NULL : ledger_find(l, s->dev->id);
		struct ledger_hold hold = { .rdma = rdma_of(b, s->dev),
					    .since_ms = wall_ms(),
					    .decision = decision };

		if (before)
			hold = *before;
		hold.vf = s->dev->id;
		hold.resource = s->pool->cfg->resource;
		hold.slot = s->id;
		hold.owner = t->owner;
		if (before && (!t->owner.uid || !*t->owner.uid))
			hold.owner.uid = before->owner.uid;
		if (before && !t->owner.container)
			hold.owner.container = before->owner.container;
		ledger_put(l, &hold);
		drop_promise(b, find_promise(b, s->id));
	}
}

/* It came to nothing: what was taken goes back, and no spec of it stays. */
static void undo(struct binder *b, const struct binding *c, const bool *fresh)
{
	for (size_t i = 0; i < c->n_slots; i++) {
		if (!fresh[i])
			continue;
		ledger_drop(keeper_ledger(b->env.keeper), c->slots[i].dev->id);
		spec_remove(b, c->slots[i].id);
		promise(b, c->slots[i].id);
	}
}

/* The kubelet tries again, whatever it was. */
static int again(struct err *err, struct arena *a)
{
	return err_set(err, EAGAIN, "%s", arena_strdup(a, err->msg));
}

static int write_specs(struct binder *b, const struct target *t, const struct binding *c, struct request *r,
		       struct err *err)
{
	struct edits *nodes = arena_array(r->arena, c->n_slots, sizeof(*nodes));
	struct edits parts[2], all;
	int result;

	result = grant_container(b, c, r->arena, &parts[0], nodes, err);
	if (result < 0)
		return again(err, r->arena);
	parts[1] = spec_story(t, c->slots, c->n_slots, r->arena);
	all = cdi_join(parts, 2, r->arena);
	for (size_t i = 0; i < c->n_slots; i++) {
		struct edits e = { .envs = all.envs,
				   .n_envs = all.n_envs,
				   .devs = nodes[i].devs,
				   .n_devs = nodes[i].n_devs };
		bool replaced = false;

		result = spec_write(b, c->slots[i].id, render_cdi(c->slots[i].id, &e, r->arena), &replaced,
				    err);
		if (result < 0)
			return again(err, r->arena);
		r->replaced |= replaced;
	}
	return 0;
}

static void tell_bound(struct request *r, const struct binding *c)
{
	r->n_bound = c->n_slots;
	r->bound = arena_array(r->arena, c->n_slots, sizeof(*r->bound));
	for (size_t i = 0; i < c->n_slots; i++) {
		const struct binding_slot *s = &c->slots[i];

		r->bound[i] = (struct bound) { arena_strdup(r->arena, s->id),
					       arena_strdup(r->arena, s->pool->cfg->resource),
					       arena_strdup(r->arena, s->dev->id) };
	}
}

static int bind_target(struct request *r, const struct target *t, const struct pod_list *pods, bool complete,
		       struct err *err)
{
	struct binder *b = r->b;
	bool *fresh = arena_array(r->arena, t->slots.n, sizeof(*fresh)), any = false;
	struct chosen chosen = { 0 };
	uint64_t decision = 0;
	struct binding c;
	int result = 0;

	choose_from(r, t, pods, complete, &c);
	for (size_t i = 0; i < c.n_slots; i++)
		any |= fresh[i] = !c.slots[i].dev;
	if (any)
		result = choose_bound(&c, r->arena, &chosen, err);
	if (result < 0)
		return result;
	if (any)
		decision = note_decision(b, t, &c, &chosen, r->arena);
	hold_all(b, t, &c, fresh, decision);
	result = write_specs(b, t, &c, r, err);
	if (result < 0)
		undo(b, &c, fresh);
	else
		tell_bound(r, &c);
	return result;
}

/* --- several containers have the slots --- */

static bool is_late(const struct binder *b, const char *resource)
{
	const struct pool *pool = node_pool(b->node, resource);

	return pool && pool->cfg->binding == BINDING_LATE;
}

static bool is_owner(const struct binder *b, const struct ledger_hold *hold, const struct candidate *c)
{
	const struct ledger_owner *o = &hold->owner;

	return !hold->draining && is_late(b, hold->resource) && str_eq(o->ns, c->pod->ns) &&
	       str_eq(o->pod, c->pod->name) && (!c->container || str_eq(o->container, c->container->name));
}

static bool is_bound(const struct binder *b, const struct candidate *c)
{
	const struct ledger *l = keeper_ledger(b->env.keeper);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		if (is_owner(b, ledger_hold_at(l, i), c))
			return true;
	}
	return false;
}

/* A VF of his is in use: he is not the one who starts. */
static bool is_running(const struct binder *b, const struct candidate *c, struct arena *a)
{
	const struct ledger *l = keeper_ledger(b->env.keeper);
	const char *why;

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (is_owner(b, hold, c) && !keeper_at_rest(b->env.keeper, b->node, hold->vf, hold, a, &why))
			return true;
	}
	return false;
}

/* Whoever is bound already has started once; the other one is new. Of several new ones nothing tells which
 * starts first. */
static const struct candidate *the_starting_one(const struct binder *b, const struct candidate *v, size_t n,
						struct arena *a, struct err *err)
{
	const struct candidate *fresh = NULL, *idle = NULL;
	size_t n_idle = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_bound(b, &v[i]))
			fresh = &v[i];
		if (n > 1 && is_running(b, &v[i], a))
			continue;
		idle = &v[i];
		n_idle++;
	}
	if (n == 1)
		return v;
	if (fresh)
		return fresh;
	if (n_idle == 1)
		return idle;
	err_set(err, EAGAIN,
		"the kubelet gave the same slots to pod %s/%s and to pod %s/%s, and nothing tells which of "
		"them "
		"starts: delete one of them",
		v[0].pod->ns, v[0].pod->name, v[1].pod->ns, v[1].pod->name);
	return NULL;
}

/* --- requests --- */

static void request_free(struct request *r)
{
	if (r->b)
		LIST_REMOVE(r, link);
	arena_free(r->arena);
	free(r);
}

static void finish(struct request *r, const struct err *err)
{
	binder_done_fn done = r->b ? r->done : NULL;

	if (r->b)
		LIST_REMOVE(r, link);
	r->b = NULL;
	if (done)
		done(r->arg, err, err ? NULL : r->bound, err ? 0 : r->n_bound);
	request_free(r);
}

static void settled(void *arg)
{
	struct request *r = arg;

	r->timer = NULL;
	finish(r, NULL);
}

/* A ledger that cannot be stored is kept in memory, and the specs tell the rest: no reason to fail a pod. */
static void saved(void *arg, const struct err *err)
{
	struct request *r = arg;

	(void)err;
	if (r->b && r->replaced && r->b->env.settle_ms)
		r->timer = rpc_after(r->b->env.rpc, r->b->env.settle_ms, settled, r);
	else
		finish(r, NULL);
}

/* Regular init containers: no list of pods shows what they hold. */
static int decide_for_init(struct request *r, struct err *err)
{
	struct binder *b = r->b;
	struct pod_list pods = checkpoint_pods(b->env.checkpoint, r->arena);
	struct candidate *v;
	struct target t;
	size_t n = who_holds(b->node, &pods, &r->slots, NULL, r->arena, &v);

	if (n != 1)
		return err_set(err, EAGAIN, "PodResources shows no container%s%s that holds slot %s",
			       r->pod.name ? " of pod " : "", r->pod.name ? r->pod.name : "", r->slots.v[0]);
	t = who_target(b->node, &pods, v, &r->slots, r->arena);
	t.owner = (struct ledger_owner) { "", "", v->pod->name, t.owner.container };
	if (r->pod.name && str_eq(r->pod.uid, v->pod->name)) {
		t.owner.ns = r->pod.ns;
		t.owner.pod = r->pod.name;
	}
	return bind_target(r, &t, &pods, false, err);
}

static int decide(struct request *r, const struct pod_list *pods, bool complete, struct err *err)
{
	struct binder *b = r->b;
	const struct candidate *who;
	struct candidate *v;
	struct target t;
	size_t n;

	for (size_t i = 0; i < r->slots.n; i++) {
		if (!slot_pool(b->node, r->slots.v[i]))
			return err_set(err, ENOENT, "slot '%.64s' is of no pool of this node that binds late",
				       r->slots.v[i]);
	}
	if (complete)
		release_gone(b, pods, r->arena);
	n = who_holds(b->node, pods, &r->slots, r->pod.name ? &r->pod : NULL, r->arena, &v);
	if (!n)
		return decide_for_init(r, err);
	who = the_starting_one(b, v, n, r->arena, err);
	if (!who)
		return -err->code;
	t = who_target(b->node, pods, who, &r->slots, r->arena);
	t.owner.uid = r->pod.uid;
	return bind_target(r, &t, pods, complete, err);
}

static void answered(void *arg, enum podres_result result, const struct pod_list *pods, const char *why)
{
	static const struct pod_list nobody = { NULL, 0 };
	struct request *r = arg;
	struct err err = { 0 };
	bool complete = !r->by_get;
	int e;

	if (!r->b) {
		request_free(r);
		return;
	}
	if (result == PODRES_FAILED) {
		err_set(&err, EAGAIN, "it cannot be told which container starts: %s", why);
		finish(r, &err);
		return;
	}
	pods = result == PODRES_OK ? pods : &nobody;
	if (complete) {
		keeper_reconcile(r->b->env.keeper, r->b->node, pods, r->asked_ms);
		binder_reconcile(r->b, pods);
	}
	e = decide(r, pods, complete, &err);
	binder_tidy(r->b);
	tell_changed(r->b);
	if (e < 0)
		finish(r, &err);
	else
		keeper_save(r->b->env.keeper, saved, r);
}

static void refuse(void *arg)
{
	struct request *r = arg;
	struct err err = { 0 };

	r->timer = NULL;
	err_set(&err, EAGAIN, "%s", !r->slots.n ? "no slot was named" : "the node is not known yet");
	finish(r, &err);
}

static struct request *request_new(struct binder *b, const struct ids *slots, const struct binder_pod *pod,
				   binder_done_fn done, void *arg)
{
	struct arena *a = arena_new(16 * 1024);
	struct request *r = xcalloc(1, sizeof(*r));

	*r = (struct request) { .b = b, .arena = a, .asked_ms = binder_now_ms(), .done = done, .arg = arg };
	r->slots = (struct ids) { arena_array(a, slots->n, sizeof(*r->slots.v)), slots->n };
	for (size_t i = 0; i < slots->n; i++)
		r->slots.v[i] = arena_strdup(a, slots->v[i]);
	if (pod)
		r->pod = (struct binder_pod) { arena_strdup(a, pod->ns), arena_strdup(a, pod->name),
					       arena_strdup(a, pod->uid) };
	LIST_INSERT_HEAD(&b->requests, r, link);
	return r;
}

void binder_bind(struct binder *b, const struct ids *slots, const struct binder_pod *pod, unsigned timeout_ms,
		 binder_done_fn done, void *arg)
{
	struct request *r = request_new(b, slots, pod, done, arg);

	if (!b->node || !slots->n) {
		r->timer = rpc_after(b->env.rpc, 0, refuse, r);
		return;
	}
	r->by_get = r->pod.name && podres_support(b->env.podres) == PODRES_GET;
	if (r->by_get)
		podres_get(b->env.podres, r->pod.ns, r->pod.name, timeout_ms, answered, r);
	else
		podres_list(b->env.podres, timeout_ms, answered, r);
}

/* --- what pods have --- */

static void note_held(struct binder *b, const struct pod_container *c)
{
	for (size_t i = 0; i < c->n_held; i++) {
		if (!is_late(b, c->held[i].resource))
			continue;
		for (size_t k = 0; k < c->held[i].ids.n; k++) {
			const char *slot = c->held[i].ids.v[k];

			if (find_promise(b, slot) || !live_hold(b, slot))
				promise(b, slot);
		}
	}
}

/* Init containers of which only the UID is known: nobody else looks after these (see keeper_reconcile.c). */
static void release_inits(struct binder *b)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	const struct ledger *l = keeper_ledger(b->env.keeper);
	struct pod_list pods = { NULL, 0 };
	bool have_read = false;

	for (size_t i = ledger_holds(l); i-- > 0;) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);
		struct candidate *v;
		struct ids slot;

		if (!hold->slot || hold->draining || *hold->owner.pod || !*hold->owner.uid)
			continue;
		if (!have_read)
			pods = checkpoint_pods(b->env.checkpoint, a);
		have_read = true;
		slot = (struct ids) { arena_copy(a, &hold->slot, sizeof(hold->slot)), 1 };
		if (!who_holds(b->node, &pods, &slot, NULL, a, &v) ||
		    strcmp(v->pod->name, hold->owner.uid) != 0)
			release(b, hold, a);
	}
}

void binder_reconcile(struct binder *b, const struct pod_list *pods)
{
	int64_t before = binder_now_ms();

	if (!b->node)
		return;
	for (size_t i = 0; i < pods->n; i++) {
		for (size_t k = 0; k < pods->v[i].n_containers; k++)
			note_held(b, &pods->v[i].containers[k]);
	}
	for (size_t i = b->n_promises; i-- > 0;) {
		struct promise *p = &b->promises[i];

		if (p->since_ms > before - YOUNG_MS)
			continue;
		p->held = false;
		if (!live_hold(b, p->slot))
			drop_promise(b, p);
	}
	release_inits(b);
	binder_tidy(b);
	tell_changed(b);
}

void binder_tidy(struct binder *b)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);

	for (size_t i = b->n_specs; i-- > 0;) {
		if (!live_hold(b, b->specs[i].slot))
			spec_remove(b, arena_strdup(a, b->specs[i].slot));
	}
}

/* --- a spec that is there when we start --- */

/* The ledger knows better; where it knows nothing, the spec does. */
static void adopt(struct binder *b, const struct spec_facts *f)
{
	struct ledger *l = keeper_ledger(b->env.keeper);
	const struct ledger_hold *of_vf = ledger_find(l, f->vf), *of_slot = live_hold(b, f->slot);
	const struct pool *pool = slot_pool(b->node, f->slot);
	const struct pool_dev *dev = pool ? pool_find(pool, f->vf) : NULL;
	struct ledger_hold hold = { .vf = f->vf, .slot = f->slot, .owner = f->owner, .since_ms = wall_ms() };

	if (of_slot && !strcmp(of_slot->vf, f->vf))
		return;
	if (!dev || of_slot || of_vf) {
		spec_remove(b, f->slot);
		return;
	}
	hold.resource = pool->cfg->resource;
	hold.rdma = rdma_of(b, dev);
	ledger_put(l, &hold);
	binder_say(b, "CDI spec of slot %s: %s is bound to container %s of pod %s/%s", f->slot, f->vf,
		   f->owner.container, f->owner.ns, f->owner.pod);
}

void binder_update(struct binder *b, struct node *node)
{
	struct node *before = b->node;

	b->node = node_ref(node);
	if (!before) {
		spec_scan(b, adopt);
		keeper_save(b->env.keeper, NULL, NULL);
	}
	node_unref(before);
}

/* --- */

struct binder *binder_new(const struct binder_env *env)
{
	struct binder *b = xcalloc(1, sizeof(*b));

	b->env = *env;
	LIST_INIT(&b->requests);
	return b;
}

void binder_free(struct binder *b)
{
	struct err err = { 0 };
	struct request *r;

	if (!b)
		return;
	err_set(&err, EAGAIN, "railmated is stopping");
	while ((r = LIST_FIRST(&b->requests))) {
		LIST_REMOVE(r, link);
		r->b = NULL;
		r->done(r->arg, &err, NULL, 0);
		if (r->timer) { /* else an answer is under way */
			rpc_timer_cancel(r->timer);
			request_free(r);
		}
	}
	for (size_t i = 0; i < b->n_promises; i++)
		free(b->promises[i].slot);
	free(b->promises);
	specs_done(b);
	node_unref(b->node);
	free(b);
}
