#include "latebind/latebind-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/pending.h"
#include "choice/choice.h"
#include "config/config.h"
#include "grant/grant.h"
#include "grant/vfprobe.h"
#include "hw/inventory.h"
#include "kubeclient/podres.h"
#include "kubemsg/podspec.h"
#include "ledger/ledger.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

#define RESTORE_MS     5000
#define ASK_TIMEOUT_MS 2000

void latebind_say(const struct latebind *b, const char *fmt, ...)
{
	char event[EVENT_SIZE];
	va_list ap;

	if (!b->env.note)
		return;
	va_start(ap, fmt);
	event_compose(event, sizeof(event), fmt, ap);
	va_end(ap);
	b->env.note(b->env.ctx, event);
}

struct holds *latebind_holds(const struct latebind *b)
{
	return tracker_holds(b->env.tracker);
}

void latebind_allocated(struct latebind *b, const struct ids *slots)
{
	holds_event(
		latebind_holds(b),
		&(struct holds_event) { .kind = HOLDS_PROMISED, .slots = slots->v, .n = slots->n },
		tracker_now());
	tracker_save(b->env.tracker, NULL, NULL);
}

const struct ledger_hold *latebind_live_hold(const struct latebind *b, const char *slot)
{
	const struct ledger_hold *hold = ledger_find_slot(tracker_ledger(b->env.tracker), slot);

	return hold && !hold->draining ? hold : NULL;
}

bool latebind_is_late(const struct latebind *b, const char *resource)
{
	const struct pool *pool = node_pool(b->node, resource);

	return pool && pool->cfg->binding == BINDING_LATE;
}

const char *latebind_rdma_of(const struct latebind *b, const struct pool_dev *dev)
{
	return dev->rdma >= 0 ? b->node->inv->rdma[dev->rdma].name : NULL;
}

/* --- the list for the kubelet --- */

struct slot_list latebind_slots(const struct latebind *b, const struct pool *pool, struct arena *a)
{
	struct holds_slots now = holds_slots(latebind_holds(b), a);
	struct slot_use *uses = arena_array(a, now.n_uses, sizeof(*uses));
	const char **lost = arena_array(a, pool->n_devs, sizeof(*lost));
	struct slot_view view = { .pool = pool, .uses = uses, .n_uses = now.n_uses, .lost = lost };

	for (size_t i = 0; i < now.n_uses; i++)
		uses[i] = (struct slot_use) { now.uses[i].slot, now.uses[i].vf };
	for (size_t i = 0; i < pool->n_devs; i++) {
		struct holds_verdict v =
			tracker_judge(b->env.tracker, pool, &pool->devs[i], false, a);

		if (!holds_is_spare(&v))
			lost[view.n_lost++] = pool->devs[i].id;
	}
	return pool_slots(&view, a);
}

/* --- requests --- */

static void finish(struct request *r, const struct err *err)
{
	LIST_REMOVE(r, link);
	r->done(r->arg, err, err ? NULL : r->bound, err ? 0 : r->n_bound);
	pending_cancel(&r->asked);
	pending_cancel(&r->probing);
	pending_cancel(&r->saving);
	rpc_timer_cancel(r->timer);
	node_unref(r->node);
	arena_free(r->arena);
	free(r);
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
	if (r->probing || r->saving)
		return;
	if (r->err.code)
		finish(r, &r->err);
	else if (r->written && r->b->env.settle_ms && !r->claim) /* its sandbox is made first */
		r->timer = rpc_after(r->b->env.rpc, r->b->env.settle_ms, settled, r);
	else
		finish(r, NULL);
}

static void saved(void *arg)
{
	struct request *r = pending_end(arg);

	if (r)
		complete(r);
}

bool latebind_probes_first(const struct request *r)
{
	return r->b->env.vfprobe && !r->pod.name;
}

/* As if it had never been bound: the next try chooses anew. */
void latebind_unbind(const struct request *r)
{
	for (size_t i = 0; i < r->n_bindings; i++)
		holds_event(
			latebind_holds(r->b),
			&(struct holds_event) { .kind = HOLDS_UNBOUND, .slot = r->bindings[i].id },
			tracker_now());
	holds_event(latebind_holds(r->b),
		    &(struct holds_event) { .kind = HOLDS_UNDECIDED, .number = r->decision },
		    tracker_now());
	latebind_specs_tidy(r->b);
	tracker_save(r->b->env.tracker, NULL, NULL);
}

/* The container has the binding: another request that waits for it no longer takes it back when it
 * fails. */
static void confirm(const struct request *r)
{
	for (size_t i = 0; i < r->n_bindings; i++)
		holds_event(latebind_holds(r->b),
			    &(struct holds_event) { .kind = HOLDS_CONFIRMED,
						    .slot = r->bindings[i].id },
			    tracker_now());
	if (r->decision)
		latebind_count_placed(r);
	if (r->decision)
		tracker_say(
			r->b->env.tracker, false,
			"the container has its VFs pod=%s/%s uid=%s container=%s devices=%zu decision=%llu",
			r->c.owner.ns, r->c.owner.pod, r->c.owner.uid, r->c.owner.container,
			r->n_bindings, (unsigned long long)r->decision);
}

static void probed(void *arg, const struct vf_state *states, size_t n, const char *why)
{
	struct request *r = pending_end(arg);
	bool still_bound = true;
	struct err err = { 0 };

	if (!r)
		return;
	/* The VFs may have been taken from it while they were looked at: its pod is gone. */
	for (size_t i = 0; i < r->n_bindings; i++) {
		const struct ledger_hold *hold = latebind_live_hold(r->b, r->bindings[i].id);

		still_bound &= hold && !strcmp(hold->vf, r->bindings[i].dev->id);
	}
	if (!still_bound)
		err_set(&r->err, EAGAIN,
			"slot %s was given to another container while container %s of pod %s/%s started",
			r->bindings[0].id, r->c.owner.container, r->c.owner.ns, r->c.owner.pod);
	else if (latebind_render(r, states, n, why, &err) == 0) {
		confirm(r);
		if (r->b->env.seen)
			r->b->env.seen(r->b->env.seen_ctx, states, n);
	} else {
		latebind_unbind(r);
		r->err = err;
	}
	complete(r);
}

static void conclude(struct request *r)
{
	struct bdf *bdfs;
	size_t n;

	tracker_save(r->b->env.tracker, saved, pending_new(r, &r->saving));
	if (!latebind_probes_first(r)) {
		confirm(r);
		return;
	}
	n = grant_functions(r->node, &r->c, r->arena, &bdfs);
	grant_probe_start(r->b->env.vfprobe, bdfs, n, probed, pending_new(r, &r->probing));
}

/*
 * A container that restarts is known by its slots: no other one got them since they were bound.
 * (Before we started we would not have seen that.) Get is enough for it, and has no side effects in
 * the kubelet.
 */
static void guess_pod(struct request *r)
{
	const struct ledger_hold *first = latebind_live_hold(r->b, r->slots.v[0]);
	const struct ledger *l = tracker_ledger(r->b->env.tracker);
	bool shared = r->b->doubles;

	/* Slots that the kubelet has given to two containers do not show which one restarts: a hold
	 * of a late pool has lost its slot (holds_slot_start()). */
	for (size_t i = 0; !shared && i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		shared = !hold->slot && !hold->draining && latebind_is_late(r->b, hold->resource);
	}
	if (shared)
		return;
	for (size_t i = 0; i < r->slots.n; i++) {
		const struct ledger_hold *hold = latebind_live_hold(r->b, r->slots.v[i]);

		if (!hold || hold->since_ms < r->b->began_ms || !*hold->owner.pod ||
		    holds_slot(latebind_holds(r->b), r->slots.v[i]).promised ||
		    strcmp(hold->owner.pod, first->owner.pod) != 0 ||
		    strcmp(hold->owner.ns, first->owner.ns) != 0)
			return;
	}
	r->guess.ns = arena_strdup(r->arena, first->owner.ns);
	r->guess.name = arena_strdup(r->arena, first->owner.pod);
}

static void answered(void *arg, enum podres_result result, const struct pod_list *pods,
		     const char *why);

static void ask(struct request *r)
{
	const struct pod_ref *pod = r->pod.name ? &r->pod : &r->guess;
	int64_t left = r->until_ms - clock_mono_ms();
	unsigned ms = left > 1 ? (unsigned)left : 1;

	r->asked_ms = clock_mono_ms();
	r->by_get = pod->name && kubeclient_podres_state(r->b->env.podres).support == PODRES_GET;
	if (r->by_get)
		kubeclient_podres_ask(r->b->env.podres,
				      &(struct podres_question) { .kind = PODRES_ASK_GET,
								  .ns = pod->ns,
								  .name = pod->name,
								  .timeout_ms = ms },
				      answered, pending_new(r, &r->asked));
	else
		kubeclient_podres_ask(r->b->env.podres,
				      &(struct podres_question) { .kind = PODRES_ASK_LIST_QUIETLY,
								  .timeout_ms = ms },
				      answered, pending_new(r, &r->asked));
	r->epoch = kubeclient_podres_state(r->b->env.podres).epoch;
}

/* Without an answer no pod has an age, and one of them is taken. */
static void specs_came(void *arg, const struct spec_list *specs, const char *why)
{
	struct request *r = pending_end(arg);

	if (!r)
		return;
	r->knows_specs = true;
	if (specs)
		r->specs = kubemsg_podspec_copy(specs, r->arena);
	else
		r->specs_why = arena_strdup(r->arena, why);
	ask(r);
}

static void claim_came(void *arg, const struct draclaim *claim, const char *why)
{
	struct request *r = pending_end(arg);

	if (!r)
		return;
	latebind_know_claim(r, claim, why);
	ask(r);
}

/* Every slot that a container has, as often as one has it; v NULL: they are counted only. */
static size_t late_slots(const struct latebind *b, const struct pod_list *pods, const char **v)
{
	size_t n = 0;

	for (size_t p = 0; p < pods->n; p++) {
		for (size_t c = 0; c < pods->v[p].n_containers; c++) {
			const struct pod_container *container = &pods->v[p].containers[c];

			for (size_t h = 0; h < container->n_held; h++) {
				const struct held *held = &container->held[h];

				for (size_t i = 0;
				     latebind_is_late(b, held->resource) && i < held->ids.n;
				     i++, n++) {
					if (v)
						v[n] = held->ids.v[i];
				}
			}
		}
	}
	return n;
}

/* Does the kubelet show a slot with two containers? */
static bool shows_doubles(const struct latebind *b, const struct pod_list *pods, struct arena *a)
{
	const char **v = arena_array(a, late_slots(b, pods, NULL), sizeof(*v));
	size_t n = late_slots(b, pods, v);

	if (n)
		qsort(v, n, sizeof(*v), list_by_string);
	for (size_t i = 1; i < n; i++) {
		if (!strcmp(v[i - 1], v[i]))
			return true;
	}
	return false;
}

static int decide(struct request *r, const struct pod_list *pods, struct err *err)
{
	if (r->claim)
		return latebind_decide_claim(r, pods, err);
	if (!r->by_get)
		r->b->doubles = shows_doubles(r->b, pods, r->arena);
	return latebind_decide(r, pods, err);
}

static void answered(void *arg, enum podres_result result, const struct pod_list *pods,
		     const char *why)
{
	struct request *r = pending_end(arg);
	struct pod_list by_name = { NULL, 0 };
	const struct holds_entry *entries;
	struct err err = { 0 };
	struct candidate *v;
	size_t n_entries;
	const struct latebind_env *env;
	int e;

	if (!r)
		return;
	env = &r->b->env;
	/* The guess was wrong: the pod is gone, or has them no more. */
	if (r->by_get && r->guess.name &&
	    (result != PODRES_OK ||
	     !pods_with_slots(r->b->node, pods, &r->slots, NULL, r->arena, &v))) {
		r->guess.name = NULL;
		ask(r);
		return;
	}
	if (result == PODRES_FAILED) {
		err_set(&err, EAGAIN, "cannot identify the starting container: %s", why);
		finish(r, &err);
		return;
	}
	if (result == PODRES_OK && pods->n) {
		by_name = (struct pod_list) {
			arena_copy(r->arena, pods->v, pods->n * sizeof(*pods->v)), pods->n
		};
		kubemsg_pods_sort(by_name.v, by_name.n);
	}
	/* It has every container that was admitted, by the UID of its pod. */
	n_entries = tracker_checkpoint(r->b->env.tracker, &entries);
	holds_event(latebind_holds(r->b),
		    &(struct holds_event) {
			    .kind = HOLDS_CHECKPOINT, .entries = entries, .n = n_entries },
		    tracker_now());
	if (latebind_names_vf(r)) {
		e = latebind_decide_vf(r, &by_name, &err);
		finish(r, e < 0 ? &err : NULL);
		return;
	}
	e = decide(r, &by_name, &err);
	latebind_specs_tidy(r->b);
	tracker_save(r->b->env.tracker, NULL, NULL);
	if (e == -EINPROGRESS && r->wanted_claim)
		env->claims->fetch(env->claims->ctx, r->wanted_ns, r->wanted_claim, env->ask_ms,
				   claim_came, pending_new(r, &r->asked));
	else if (e == -EINPROGRESS)
		env->specs->fetch(env->specs->ctx, env->ask_ms, specs_came,
				  pending_new(r, &r->asked));
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
	err_set(&err, EAGAIN, "%s",
		!r->slots.n ? "no slot was named" : "the node is not known yet");
	finish(r, &err);
}

static struct ids copy_ids(const struct ids *ids, struct arena *a)
{
	struct ids copy = { arena_array(a, ids->n, sizeof(*copy.v)), ids->n };

	for (size_t i = 0; i < ids->n; i++)
		copy.v[i] = arena_strdup(a, ids->v[i]);
	return copy;
}

static struct request *request_new(struct latebind *b, const struct ids *slots,
				   latebind_done_fn done, void *arg)
{
	struct request *r = xcalloc(1, sizeof(*r));

	*r = (struct request) { .b = b, .arena = arena_new(16 * 1024), .done = done, .arg = arg };
	r->slots = copy_ids(slots, r->arena);
	LIST_INSERT_HEAD(&b->requests, r, link);
	return r;
}

static void start(struct request *r, unsigned timeout_ms)
{
	if (r->b->node && r->pod.name && latebind_find_claimed(r)) {
		r->timer = rpc_after(r->b->env.rpc, 0, settled, r);
		return;
	}
	if (!r->b->node || !r->slots.n) {
		r->timer = rpc_after(r->b->env.rpc, 0, refuse, r);
		return;
	}
	r->until_ms = clock_mono_ms() + timeout_ms;
	if (!r->pod.name && !r->claim)
		guess_pod(r);
	ask(r);
}

void latebind_bind(struct latebind *b, const struct ids *slots, const struct pod_ref *pod,
		   unsigned timeout_ms, latebind_done_fn done, void *arg)
{
	struct request *r = request_new(b, slots, done, arg);
	struct arena *a = r->arena;

	if (pod)
		r->pod = (struct pod_ref) { arena_strdup(a, pod->ns), arena_strdup(a, pod->name),
					    arena_strdup(a, pod->uid ? pod->uid : "") };
	start(r, timeout_ms);
}

void latebind_prepare(struct latebind *b, const struct latebind_claim *c, unsigned timeout_ms,
		      latebind_done_fn done, void *arg)
{
	struct request *r = request_new(b, &c->slots, done, arg);
	struct arena *a = r->arena;
	struct dynamic *dynamic = arena_array(a, c->n_dynamic, sizeof(*dynamic));
	const char **places = arena_array(a, c->slots.n, sizeof(*places));

	for (size_t i = 0; i < c->slots.n; i++)
		places[i] = c->places ? arena_strdup(a, c->places[i]) : NULL;
	for (size_t i = 0; i < c->n_dynamic; i++)
		dynamic[i] = (struct dynamic) { arena_strdup(a, c->dynamic[i].driver),
						arena_strdup(a, c->dynamic[i].pool),
						arena_strdup(a, c->dynamic[i].device),
						copy_ids(&c->dynamic[i].cdi, a),
						arena_strdup(a, c->dynamic[i].claim) };
	r->claim = arena_alloc(a, sizeof(*r->claim));
	*r->claim = (struct latebind_claim) { .owner = ledger_copy_owner(&c->owner, a),
					      .slots = r->slots,
					      .places = places,
					      .containers = copy_ids(&c->containers, a),
					      .names = arena_strdup(a, c->names),
					      .dynamic = dynamic,
					      .n_dynamic = c->n_dynamic,
					      .doubt = arena_strdup(a, c->doubt) };
	start(r, timeout_ms);
}

void latebind_refresh(struct latebind *b, const char *vf, latebind_done_fn done, void *arg)
{
	const struct ids none = { NULL, 0 };
	struct request *r = request_new(b, &none, done, arg);

	if (!b->node || !latebind_recall(r, vf)) {
		r->timer = rpc_after(b->env.rpc, 0, settled, r);
		return;
	}
	if (!latebind_probes_first(r))
		latebind_render(r, NULL, 0, NULL, &r->err);
	conclude(r);
}

/* --- the specs that are there --- */

static void claim(struct latebind *b, const struct claims *claims, const char *path)
{
	_cleanup_arena_ struct arena *a = arena_new(512);

	for (size_t i = 0; i < claims->n; i++) {
		const struct pool *pool = pool_of_slot(b->node, claims->v[i].slot);
		struct holds_claim c = { .vf = claims->v[i].vf,
					 .resource = pool ? pool->cfg->resource : NULL,
					 .slot = claims->v[i].slot,
					 .owner = claims->owner,
					 .number = claims->v[i].number,
					 .source = arena_printf(a, "CDI spec %s", path) };

		c.owner.claim = pool_slot_claim(c.slot, a);
		if (pool)
			holds_event(latebind_holds(b),
				    &(struct holds_event) { .kind = HOLDS_CLAIMED, .claim = &c },
				    tracker_now());
	}
}

bool latebind_claim(struct latebind *b)
{
	return latebind_spec_scan(b, claim);
}

static void restore(void *arg)
{
	struct latebind *b = arg;

	b->restore = NULL;
	latebind_specs_tidy(b); /* also where no pool binds late any more */
	latebind_specs_restore(b);
	latebind_restore_later(b);
}

void latebind_restore_later(struct latebind *b)
{
	unsigned every = b->env.restore_ms ? b->env.restore_ms : RESTORE_MS;

	if (!b->restore && b->n_specs)
		b->restore =
			rpc_after(b->env.rpc, clock_coarse_ms(clock_mono_ms(), every), restore, b);
}

void latebind_update(struct latebind *b, struct node *node)
{
	struct node *before = b->node;

	b->node = node_ref(node);
	node_unref(before);
	if (!b->restore)
		restore(b);
}

void latebind_tidy(struct latebind *b)
{
	latebind_specs_tidy(b);
}

/* --- */

struct latebind *latebind_new(const struct latebind_env *env)
{
	struct latebind *b = xcalloc(1, sizeof(*b));

	b->env = *env;
	if (!b->env.ask_ms)
		b->env.ask_ms = ASK_TIMEOUT_MS;
	b->began_ms = clock_wall_ms();
	LIST_INIT(&b->requests);
	return b;
}

void latebind_free(struct latebind *b)
{
	struct err err = { 0 };
	struct request *r;

	if (!b)
		return;
	err_set(&err, EAGAIN, "railmated is stopping");
	while ((r = LIST_FIRST(&b->requests)))
		finish(r, &err);
	rpc_timer_cancel(b->restore);
	latebind_specs_done(b);
	node_unref(b->node);
	free(b);
}
