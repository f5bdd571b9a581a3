#include "kubelet/binder-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "kubelet/identify.h"
#include "kubelet/keeper.h"
#include "kubelet/podres.h"
#include "kubelet/podspec.h"
#include "kubelet/truth.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "rpc/rpc.h"

#define TELL_MS		 1
#define SPECS_TIMEOUT_MS 1000

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

static void tell_now(void *arg)
{
	struct binder *b = arg;

	b->tell = NULL;
	b->env.changed(b->env.ctx);
}

/* Later, and once: whoever waits for a binding goes first. */
void binder_tell_changed(struct binder *b)
{
	if (b->env.changed && !b->tell)
		b->tell = rpc_after(b->env.rpc, TELL_MS, tell_now, b);
}

void binder_allocated(struct binder *b, const struct ids *slots)
{
	for (size_t i = 0; i < slots->n; i++) {
		binder_promise(b, slots->v[i]);
		spec_remove(b, slots->v[i]);
	}
	binder_tell_changed(b);
}

const struct ledger_hold *binder_live_hold(const struct binder *b, const char *slot)
{
	const struct ledger_hold *hold = ledger_find_slot(keeper_ledger(b->env.keeper), slot);

	return hold && !hold->draining ? hold : NULL;
}

bool binder_is_late(const struct binder *b, const char *resource)
{
	const struct pool *pool = node_pool(b->node, resource);

	return pool && pool->cfg->binding == BINDING_LATE;
}

const char *binder_rdma_of(const struct binder *b, const struct pool_dev *dev)
{
	return dev->rdma >= 0 ? b->node->inv->rdma[dev->rdma].name : NULL;
}

/* --- what the kubelet is told --- */

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
		if (b->promises[i].held && !binder_live_hold(b, b->promises[i].slot))
			uses[view.n_uses++] = (struct slot_use) { b->promises[i].slot, NULL };
	}
	return slots_of(&view, a);
}

/* --- requests --- */

static void request_free(struct request *r)
{
	if (r->b)
		LIST_REMOVE(r, link);
	node_unref(r->node);
	arena_free(r->arena);
	free(r);
}

/* One of the callbacks came. True: nobody waits for the request any more; the last of them frees it. */
static bool is_over(struct request *r)
{
	r->n_under_way--;
	if (r->b)
		return false;
	if (!r->n_under_way)
		request_free(r);
	return true;
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

/* When the specs are written and the ledger is on disk. */
static void complete(struct request *r)
{
	if (r->n_under_way)
		return;
	if (r->err.code)
		finish(r, &r->err);
	else if (r->replaced && r->b->env.settle_ms)
		r->timer = rpc_after(r->b->env.rpc, r->b->env.settle_ms, settled, r);
	else
		finish(r, NULL);
}

/* A ledger that cannot be stored is kept in memory, and the specs tell the rest: no reason to fail a pod. */
static void saved(void *arg, const struct err *err)
{
	struct request *r = arg;

	(void)err;
	if (!is_over(r))
		complete(r);
}

bool binder_looks_first(const struct request *r)
{
	return r->b->env.truth && !r->pod.name;
}

/* The VFs may have been taken from it while they were looked at: its pod is gone. */
static bool is_still_bound(const struct request *r)
{
	for (size_t i = 0; i < r->n_bindings; i++) {
		const struct ledger_hold *hold = binder_live_hold(r->b, r->bindings[i].id);

		if (!hold || strcmp(hold->vf, r->bindings[i].dev->id) != 0)
			return false;
	}
	return true;
}

/* As if it had never been bound: the next try chooses anew. */
static void unbind(struct request *r)
{
	for (size_t i = 0; i < r->n_bindings; i++) {
		if (!r->fresh[i])
			continue;
		ledger_drop(keeper_ledger(r->b->env.keeper), r->bindings[i].dev->id);
		binder_promise(r->b, r->bindings[i].id);
	}
	keeper_save(r->b->env.keeper, NULL, NULL);
	binder_tell_changed(r->b);
}

static bool has_slot(const struct request *r, const char *slot)
{
	for (size_t i = 0; i < r->n_bindings; i++) {
		if (str_eq(r->bindings[i].id, slot))
			return true;
	}
	return false;
}

/* Somebody is told of the binding: another one that waits for it no longer takes it back when it fails. */
static void confirm(const struct request *r)
{
	struct request *other;

	LIST_FOREACH(other, &r->b->requests, link)
	{
		for (size_t i = 0; other != r && i < other->n_bindings; i++)
			other->fresh[i] &= !has_slot(r, other->bindings[i].id);
	}
}

static void looked(void *arg, const struct vf_state *states, size_t n, const char *why)
{
	struct request *r = arg;

	if (is_over(r))
		return;
	if (!is_still_bound(r))
		err_set(&r->err, EAGAIN, "slot %s was taken from pod %s/%s while it started",
			r->bindings[0].id, r->owner.ns, r->owner.pod);
	else if (grant_bound(r, states, n, why, &r->err) < 0)
		unbind(r);
	else
		confirm(r);
	complete(r);
}

static void conclude(struct request *r)
{
	struct bdf *bdfs;
	size_t n;

	r->n_under_way++;
	keeper_save(r->b->env.keeper, saved, r);
	if (!binder_looks_first(r)) {
		confirm(r);
		return;
	}
	r->n_under_way++;
	n = grant_functions(r, &bdfs);
	truth_look(r->b->env.truth, bdfs, n, looked, r);
}

/* Slots that the kubelet has given away twice do not tell who restarts: see take_slot_from(). */
static bool has_shared_slots(const struct binder *b)
{
	const struct ledger *l = keeper_ledger(b->env.keeper);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (!hold->slot && !hold->draining && binder_is_late(b, hold->resource))
			return true;
	}
	return false;
}

/*
 * A container that restarts is known by its slots: nobody was given them since they were bound. (Before we
 * started we would not have seen that.) Get is enough for it, and has no side effects in the kubelet.
 */
static void guess_pod(struct request *r)
{
	const struct ledger_hold *first = binder_live_hold(r->b, r->slots.v[0]);

	if (r->b->doubles || has_shared_slots(r->b))
		return;
	for (size_t i = 0; i < r->slots.n; i++) {
		const struct ledger_hold *hold = binder_live_hold(r->b, r->slots.v[i]);

		if (!hold || hold->since_ms < r->b->began_ms || !*hold->owner.pod ||
		    binder_find_promise(r->b, r->slots.v[i]) ||
		    strcmp(hold->owner.pod, first->owner.pod) != 0 ||
		    strcmp(hold->owner.ns, first->owner.ns) != 0)
			return;
	}
	r->guess.ns = arena_strdup(r->arena, first->owner.ns);
	r->guess.name = arena_strdup(r->arena, first->owner.pod);
}

static void answered(void *arg, enum podres_result result, const struct pod_list *pods, const char *why);

static void ask(struct request *r)
{
	const struct binder_pod *pod = r->pod.name ? &r->pod : &r->guess;
	int64_t left = r->until_ms - clock_mono_ms();
	unsigned ms = left > 1 ? (unsigned)left : 1;

	r->n_under_way++;
	r->asked_ms = clock_mono_ms();
	r->asked = ++r->b->moment;
	r->by_get = pod->name && podres_support(r->b->env.podres) == PODRES_GET;
	if (r->by_get)
		podres_get(r->b->env.podres, pod->ns, pod->name, ms, answered, r);
	else
		podres_list_quietly(r->b->env.podres, ms, answered, r);
	r->epoch = podres_epoch(r->b->env.podres);
}

/* The guess was wrong: the pod is gone, or has them no more. */
static bool is_wrong_guess(struct request *r, enum podres_result result, const struct pod_list *pods)
{
	struct candidate *v;

	if (!r->by_get || !r->guess.name)
		return false;
	return result != PODRES_OK || !who_holds(r->b->node, pods, &r->slots, NULL, r->arena, &v);
}

/* Without an answer no pod has an age, and one of them is taken. */
static void specs_came(void *arg, const struct spec_list *specs, const char *why)
{
	struct request *r = arg;

	(void)why;
	if (is_over(r))
		return;
	r->knows_ages = true;
	r->ages = arena_array(r->arena, specs ? specs->n : 0, sizeof(*r->ages));
	for (size_t i = 0; specs && i < specs->n; i++)
		r->ages[r->n_ages++] =
			(struct pod_age) { arena_strdup(r->arena, specs->v[i].ns),
					   arena_strdup(r->arena, specs->v[i].name), specs->v[i].created };
	ask(r);
}

static void answered(void *arg, enum podres_result result, const struct pod_list *pods, const char *why)
{
	static const struct pod_list nobody = { NULL, 0 };
	struct request *r = arg;
	struct err err = { 0 };
	struct pod_list by_name;
	bool complete;
	int e;

	if (is_over(r))
		return;
	if (is_wrong_guess(r, result, pods)) {
		r->guess.name = NULL;
		ask(r);
		return;
	}
	if (result == PODRES_FAILED) {
		err_set(&err, EAGAIN, "it cannot be told which container starts: %s", why);
		finish(r, &err);
		return;
	}
	by_name = binder_sorted_pods(result == PODRES_OK ? pods : &nobody, r->arena);
	pods = &by_name;
	complete = !r->by_get && r->epoch == podres_epoch(r->b->env.podres);
	if (complete) {
		keeper_reconcile(r->b->env.keeper, r->b->node, pods, r->asked_ms);
		binder_note_pods(r->b, pods, r->asked_ms);
	}
	e = binder_decide(r, pods, complete, &err);
	binder_tidy(r->b);
	binder_tell_changed(r->b);
	r->n_under_way += e == -EINPROGRESS;
	if (e == -EINPROGRESS)
		r->b->env.specs->fetch(r->b->env.specs->ctx, SPECS_TIMEOUT_MS, specs_came, r);
	else if (e < 0)
		finish(r, &err);
	else
		conclude(r);
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

	*r = (struct request) { .b = b, .arena = a, .done = done, .arg = arg };
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
	r->until_ms = clock_mono_ms() + timeout_ms;
	if (!r->pod.name)
		guess_pod(r);
	ask(r);
}

/* --- a spec that is there when we start --- */

/* The ledger knows better; where it knows nothing, the spec does. */
static void adopt(struct binder *b, const struct spec_facts *f)
{
	struct ledger *l = keeper_ledger(b->env.keeper);
	const struct ledger_hold *of_vf = ledger_find(l, f->vf), *of_slot = binder_live_hold(b, f->slot);
	const struct pool *pool = slot_pool(b->node, f->slot);
	struct ledger_hold hold = {
		.vf = f->vf, .slot = f->slot, .owner = f->owner, .since_ms = clock_wall_ms()
	};

	if (of_slot && !strcmp(of_slot->vf, f->vf))
		return;
	hold.resource = pool ? pool->cfg->resource : NULL;
	if (!pool || of_slot || of_vf || !keeper_adopt(b->env.keeper, b->node, &hold)) {
		spec_remove(b, f->slot);
		return;
	}
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
	b->began_ms = clock_wall_ms();
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
		rpc_timer_cancel(r->timer);
		if (!r->n_under_way)
			request_free(r);
	}
	binder_forget_all(b);
	rpc_timer_cancel(b->tell);
	specs_done(b);
	node_unref(b->node);
	free(b);
}
