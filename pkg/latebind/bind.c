/* From a list of pods to a binding: which container starts, which VFs it has or gets, its specs,
 * its holds. */
#include "latebind/latebind-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "choice/choice.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "kubeclient/checkpoint.h"
#include "pods/gpus.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "render/cdi.h"
#include "status/stats.h"
#include "tracker/tracker.h"

/* --- a binding --- */

static bool could(void *ctx, const struct pool_dev *dev)
{
	const struct request *r = ctx;

	return holds_could_give(latebind_holds(r->b), dev->id);
}

static bool may(void *ctx, const struct pool_dev *dev, const char **ret_why)
{
	struct request *r = ctx;
	struct holds_facts facts = tracker_facts(r->b->env.tracker, dev->id, r->arena);
	const struct pool *pool = r->b->node->pools;

	while (dev < pool->devs || dev >= pool->devs + pool->n_devs)
		pool++;
	return holds_may_give(latebind_holds(r->b), dev->id, pool->cfg->resource, &facts,
			      tracker_now(), r->arena, ret_why);
}

/* Of a slot that the kubelet has given twice. */
static int wait_for_the_other(const struct request *r, const struct target *t, struct err *err)
{
	struct latebind *b = r->b;

	for (size_t i = 0; i < t->slots.n; i++) {
		const char *slot = t->slots.v[i], *vf = holds_slot(latebind_holds(b), slot).vf,
			   *why;
		struct holds_facts facts;

		if (!vf)
			continue;
		facts = tracker_facts(b->env.tracker, vf, r->arena);
		why = holds_slot_waits(latebind_holds(b), slot, &t->owner, &facts, tracker_now(),
				       r->arena);
		if (why)
			return err_set(err, EAGAIN, "%s", why);
	}
	return 0;
}

/* A VF of this very container whose slot went to another one: it restarts, and keeps it. */
static const struct pool_dev *kept_vf(const struct latebind *b, const struct target *t,
				      const struct pool *pool, const struct binding *c)
{
	const char *vf;

	for (size_t k = 0; (vf = holds_kept(latebind_holds(b), pool->cfg->resource, &t->owner, k));
	     k++) {
		const struct pool_dev *dev = pool_find(pool, vf);
		bool usable = dev && dev->healthy;

		for (size_t i = 0; usable && i < c->n_slots; i++)
			usable = c->slots[i].dev != dev;
		if (usable)
			return dev;
	}
	return NULL;
}

static void choose_from(struct request *r, const struct target *t, struct binding *c)
{
	struct latebind *b = r->b;
	struct holds *h = latebind_holds(b);
	struct arena *a = r->arena;
	unsigned number;

	*c = (struct binding) { .node = b->node,
				.slots = arena_array(a, t->slots.n, sizeof(*c->slots)),
				.gpus = t->gpus,
				.busy_gpus = t->busy_gpus,
				.could = could,
				.may = may,
				.ctx = r };
	for (size_t i = 0; i < t->slots.n; i++) {
		struct binding_slot *s = &c->slots[c->n_slots++];
		const struct pool_dev *dev;
		const char *vf;
		bool usable;

		s->id = t->slots.v[i];
		s->pool = pool_of_slot(b->node, s->id);
		pool_slot_parse(s->pool->cfg->resource, s->id, &s->numa, &number);
		/* The VF that the slot has already and keeps, or one is to be chosen. */
		vf = holds_slot(h, s->id).vf;
		dev = vf ? pool_find(s->pool, vf) : NULL;
		usable = dev && (dev->healthy || latebind_is_away_now(b, dev, a));
		if (holds_slot_start(h, s->id, &t->owner, usable, tracker_now()))
			s->dev = dev;
		tracker_run_now(b->env.tracker);
		if (!s->dev)
			s->dev = kept_vf(b, t, s->pool, c);
	}
}

static uint64_t note_decision(struct latebind *b, const struct target *t, const struct binding *c,
			      struct ledger_decision *d, struct arena *a)
{
	const char *why = t->container ? pods_gpus(b->node, t->container, "", a).unknown : NULL;
	bool sure = !t->doubt && (t->gpus.n || !why);

	d->at_ms = clock_wall_ms();
	d->resource = c->slots[0].pool->cfg->resource;
	d->owner = t->owner;
	d->known = sure	      ? LEDGER_GPUS_KNOWN
		   : t->doubt ? LEDGER_GPUS_PREDICTED
			      : LEDGER_GPUS_UNKNOWN;
	d->source = t->doubt	       ? t->doubt
		    : why && t->gpus.n ? arena_printf(a, "%s: %s", pods_say_gpus(t->gpus, a), why)
		    : why	       ? why
		    : t->gpus.n	       ? "PodResources at the container's start"
				       : "the container has no GPUs";
	stats_count_choice(stats_of(b->env.stats, d->resource), d->known);
	return holds_decide(latebind_holds(b), d);
}

/* Those that were not bound before get the decision's number. */
static void hold_all(struct request *r, const struct target *t, const struct binding *c,
		     const bool *fresh)
{
	r->n_bound = c->n_slots;
	r->bound = arena_array(r->arena, c->n_slots, sizeof(*r->bound));
	for (size_t i = 0; i < c->n_slots; i++) {
		const struct binding_slot *s = &c->slots[i];
		const char *resource = s->pool->cfg->resource;
		const struct holds_vf v = { .vf = s->dev->id,
					    .resource = resource,
					    .rdma = latebind_rdma_of(r->b, s->dev) };

		holds_event(latebind_holds(r->b),
			    &(struct holds_event) { .kind = HOLDS_BOUND,
						    .slot = s->id,
						    .given = &v,
						    .owner = &t->owner,
						    .number = fresh[i] ? r->decision : 0 },
			    tracker_now());
		r->bound[i] = (struct bound) { arena_strdup(r->arena, s->id),
					       arena_strdup(r->arena, resource),
					       arena_strdup(r->arena, s->dev->id) };
	}
}

/* The list of pods ends with this call; the remaining work comes after it. */
static void note_decided(struct request *r, const struct target *t, const struct binding *c)
{
	struct arena *a = r->arena;

	node_unref(r->node);
	r->node = node_ref(r->b->node);
	r->c.owner = ledger_copy_owner(&t->owner, a);
	r->c.gpus = t->gpus;
	r->bindings = c->slots;
	r->n_bindings = c->n_slots;
	r->c.n_pool_vfs = 0;
	for (size_t i = 0; i < c->n_slots; i++)
		c->slots[i].id = arena_strdup(a, c->slots[i].id);
	latebind_note_pool_vfs(r, t);
}

static int try_to_bind(struct request *r, const struct target *t, struct err *err)
{
	struct latebind *b = r->b;
	bool *fresh = arena_array(r->arena, t->slots.n, sizeof(*fresh)), any = false;
	bool specs = !r->pod.name;
	struct ledger_decision decision;
	struct binding c;
	int result;

	result = wait_for_the_other(r, t, err);
	if (result < 0)
		return result;
	choose_from(r, t, &c);
	for (size_t i = 0; i < c.n_slots; i++)
		any |= fresh[i] = !c.slots[i].dev;
	if (any)
		result = choice_for_slots(&c, r->arena, &decision, err);
	if (result < 0)
		return result;
	note_decided(r, t, &c);
	r->decision = 0;
	if (any) {
		r->decision = note_decision(b, t, &c, &decision, r->arena);
		latebind_note_placed(r, &c);
	}
	if (any && t->doubt)
		latebind_say(
			b,
			"the VFs are chosen for all GPUs of a claim that the container shares pod=%s/%s container=%s reason=%s",
			t->owner.ns, t->owner.pod, t->owner.container, t->doubt);
	hold_all(r, t, &c, fresh);
	/* A container that starts gets its specs when its VFs have been looked at. A CNI plugin
	 * that asks for its second VF may have moved the first one's devices away: its bindings and
	 * specs stay as they are until then. */
	for (size_t i = 0; i < r->n_bindings; i++)
		specs |= fresh[i] || !latebind_spec_exists(b, r->bindings[i].id);
	if (specs && !latebind_probes_first(r))
		result = latebind_render(r, NULL, 0, NULL, err);
	if (result < 0)
		latebind_unbind(r);
	return result;
}

static int bind_target(struct request *r, const struct target *t, struct err *err)
{
	int result = try_to_bind(r, t, err);

	if (result < 0)
		holds_event(latebind_holds(r->b),
			    &(struct holds_event) { .kind = HOLDS_NOT_CREATED, .owner = &t->owner },
			    tracker_now());
	return result;
}

/* --- several containers have the slots --- */

/* A hold of a late pool; open: of a VF that is in use. */
static bool has_hold(const struct latebind *b, const struct candidate *c, bool open)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct ledger *l = tracker_ledger(b->env.tracker);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);
		const struct ledger_owner *o = &hold->owner;

		if (!hold->draining && latebind_is_late(b, hold->resource) &&
		    str_eq(o->ns, c->pod->ns) && str_eq(o->pod, c->pod->name) &&
		    (!c->container || str_eq(o->container, c->container->name)) &&
		    (!open || tracker_facts(b->env.tracker, hold->vf, a).open))
			return true;
	}
	return false;
}

/* When the pod was created; 0 not known. */
static int64_t age_of(const struct request *r, const struct candidate *c)
{
	const struct spec_pod *spec = kubemsg_podspec_find(&r->specs, c->pod->ns, c->pod->name);

	return spec ? spec->created : 0;
}

/* A container with bound slots has started before; the others are new, and that of the newest pod
 * is taken. */
static const struct candidate *the_starting_one(const struct request *r, const struct candidate *v,
						size_t n, struct err *err)
{
	const struct candidate *newest = NULL, *idle = NULL;
	size_t n_fresh = 0, n_idle = 0;

	for (size_t i = 0; i < n; i++) {
		if (n > 1 && has_hold(r->b, &v[i], false))
			continue;
		n_fresh++;
		if (!newest || age_of(r, &v[i]) > age_of(r, newest))
			newest = &v[i];
	}
	if (n_fresh > 1 && r->b->env.specs && !r->knows_specs) {
		err_set(err, EINPROGRESS, "which of %zu pods is the newest?", n_fresh);
		return NULL;
	}
	if (newest)
		return newest;
	/* Each has started once already: the one that is not at work may start again. */
	for (size_t i = 0; i < n; i++) {
		if (has_hold(r->b, &v[i], true))
			continue;
		idle = &v[i];
		n_idle++;
	}
	if (n_idle == 1)
		return idle;
	err_set(err, EAGAIN,
		"the kubelet gave the same slots to pod %s/%s and to pod %s/%s, and it is not known which of them starts: delete one of them",
		v[0].pod->ns, v[0].pod->name, v[1].pod->ns, v[1].pod->name);
	return NULL;
}

/* --- which one is it? --- */

/* Regular init containers: no list of pods shows their devices. */
static int decide_for_init(struct request *r, struct err *err)
{
	struct latebind *b = r->b;
	struct pod_list pods = kubeclient_checkpoint(b->env.checkpoint, r->arena, NULL);
	struct candidate *v;
	struct target t;
	size_t n = pods_with_slots(b->node, &pods, &r->slots, NULL, r->arena, &v);
	/* The checkpoint knows pods by their uid only. A request for the slot of another pod does
	 * not get its VF, nor does one without a uid. */
	bool other = n == 1 && r->pod.name && !str_eq(r->pod.uid, v->pod->name);

	if (n != 1 || other)
		return err_set(err, EAGAIN,
			       "PodResources shows no container%s%s that holds slot %s",
			       r->pod.name ? " of pod " : "", r->pod.name ? r->pod.name : "",
			       r->slots.v[0]);
	t = pods_target(b->node, &pods, v, &r->slots, r->arena);
	t.owner = (struct ledger_owner) { "", "", v->pod->name, t.owner.container };
	if (r->pod.name && str_eq(r->pod.uid, v->pod->name)) {
		t.owner.ns = r->pod.ns;
		t.owner.pod = r->pod.name;
	}
	return bind_target(r, &t, err);
}

/* From the kubelet's checkpoint, which has every slot of the container by now; else from the
 * runtime's call of the CNI plugin. */
static const char *uid_of(const struct request *r, const struct ids *slots)
{
	const struct holds_entry *v;
	size_t n = tracker_checkpoint(r->b->env.tracker, &v);
	const char *uid = "";

	for (size_t i = 0; !*uid && i < slots->n; i++) {
		const char *resource = pool_of_slot(r->b->node, slots->v[i])->cfg->resource;
		struct ids same = { arena_array(r->arena, slots->n, sizeof(*same.v)), 0 };

		for (size_t k = 0; k < slots->n; k++) {
			if (!strcmp(pool_of_slot(r->b->node, slots->v[k])->cfg->resource, resource))
				same.v[same.n++] = slots->v[k];
		}
		uid = holds_checkpoint_uid(v, n, resource, same.v, same.n);
	}
	if (!*uid && r->pod.name && r->pod.uid)
		uid = r->pod.uid;
	return arena_strdup(r->arena, uid);
}

int latebind_decide(struct request *r, const struct pod_list *pods, struct err *err)
{
	struct latebind *b = r->b;
	struct candidate narrowed = { NULL, NULL }, *v;
	const struct candidate *who;
	struct pod_container mine;
	const char *doubt = NULL;
	struct target t;
	size_t n;

	for (size_t i = 0; i < r->slots.n; i++) {
		if (!pool_of_slot(b->node, r->slots.v[i]))
			return err_set(err, ENOENT,
				       "slot '%.64s' is of no pool of this node that binds late",
				       r->slots.v[i]);
	}
	n = pods_with_slots(b->node, pods, &r->slots, r->pod.name ? &r->pod : NULL, r->arena, &v);
	if (!n)
		return decide_for_init(r, err);
	who = the_starting_one(r, v, n, err);
	if (!who)
		return -err->code;
	if (who->container) {
		if (latebind_narrow(r, who, &mine, &doubt) < 0)
			return -EINPROGRESS;
		narrowed.container = &mine;
	}
	narrowed.pod = who->pod;
	t = pods_target(b->node, pods, &narrowed, &r->slots, r->arena);
	t.doubt = doubt;
	t.owner.uid = uid_of(r, &t.slots);
	if (r->pod.name && *r->pod.uid && !str_eq(t.owner.uid, r->pod.uid))
		return err_set(err, EAGAIN,
			       "the kubelet gave slot %s to another pod %s/%s (UID %s, not %s)",
			       r->slots.v[0], t.owner.ns, t.owner.pod, t.owner.uid, r->pod.uid);
	return bind_target(r, &t, err);
}
