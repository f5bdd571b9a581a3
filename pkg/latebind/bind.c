/* From a list of pods to a binding: which container starts, which VFs it has or gets, its specs,
 * its holds.
 */
#include "latebind/latebind-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "choice/slots.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "kubeclient/checkpoint.h"
#include "pods/gpus.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "render/cdi.h"
#include "tracker/tracker.h"

/* --- a binding --- */

static const struct pool *pool_of(const struct node *node, const struct pool_dev *dev)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		if (dev >= node->pools[i].devs && dev < node->pools[i].devs + node->pools[i].n_devs)
			return &node->pools[i];
	}
	return NULL;
}

static bool could(void *ctx, const struct pool_dev *dev)
{
	const struct request *r = ctx;

	return holds_could_give(latebind_holds(r->b), dev->id);
}

static bool may(void *ctx, const struct pool_dev *dev, const char **ret_why)
{
	struct request *r = ctx;
	struct holds_facts facts = tracker_facts(r->b->env.tracker, dev->id, r->arena);
	const struct pool *pool = pool_of(r->b->node, dev);

	return holds_may_give(latebind_holds(r->b), dev->id, pool->cfg->resource, &facts,
			      tracker_now(), r->arena, ret_why);
}

/* The VF that the slot has already and keeps; NULL: one is to be chosen. */
static const struct pool_dev *sticky_vf(const struct request *r, const struct target *t,
					const struct pool *pool, const char *slot)
{
	struct latebind *b = r->b;
	struct holds *h = latebind_holds(b);
	const char *vf = holds_slot_vf(h, slot);
	const struct pool_dev *dev = vf ? pool_find(pool, vf) : NULL;
	bool usable = dev && (dev->healthy || latebind_is_away_now(b, dev, r->arena));

	vf = holds_slot_start(h, slot, &t->owner, usable, tracker_now());
	tracker_run_now(b->env.tracker);
	return vf ? dev : NULL;
}

/* Of a slot that the kubelet has given twice. */
static int wait_for_the_other(const struct request *r, const struct target *t, struct err *err)
{
	struct latebind *b = r->b;

	for (size_t i = 0; i < t->slots.n; i++) {
		const char *slot = t->slots.v[i], *vf = holds_slot_vf(latebind_holds(b), slot),
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

static bool is_in(const struct binding *c, const struct pool_dev *dev)
{
	for (size_t i = 0; i < c->n_slots; i++) {
		if (c->slots[i].dev == dev)
			return true;
	}
	return false;
}

/* A VF of this very container whose slot went to another one: it restarts, and keeps it. */
static const struct pool_dev *kept_vf(const struct latebind *b, const struct target *t,
				      const struct pool *pool, const struct binding *c)
{
	const struct pool_dev *dev;
	const char *vf;

	for (size_t k = 0; (vf = holds_kept(latebind_holds(b), pool->cfg->resource, &t->owner, k));
	     k++) {
		dev = pool_find(pool, vf);
		if (dev && dev->healthy && !is_in(c, dev))
			return dev;
	}
	return NULL;
}

static void choose_from(struct request *r, const struct target *t, struct binding *c)
{
	struct latebind *b = r->b;
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
		s->dev = sticky_vf(r, t, s->pool, s->id);
		if (!s->dev)
			s->dev = kept_vf(b, t, s->pool, c);
	}
}

static const char *const *addresses(const struct latebind *b, const int *pci, size_t n,
				    struct arena *a)
{
	const char **v = arena_array(a, n, sizeof(*v));
	char bdf[BDF_STRLEN];

	for (size_t i = 0; i < n; i++)
		v[i] = arena_strdup(a, bdf_format(b->node->inv->pci[pci[i]].bdf, bdf));
	return v;
}

static uint64_t note_decision(struct latebind *b, const struct target *t, const struct binding *c,
			      const struct chosen *chosen, struct arena *a)
{
	const char **vfs = arena_array(a, c->n_slots, sizeof(*vfs));
	const char *why = t->container ? gpus_unknown(b->node, t->container, a) : NULL;
	bool sure = !t->doubt && (t->n_gpus || !why);
	struct ledger_decision d = {
		.at_ms = clock_wall_ms(),
		.resource = c->slots[0].pool->cfg->resource,
		.late = true,
		.owner = t->owner,
		.asked = (int)c->n_slots,
		.known = sure	    ? LEDGER_GPUS_KNOWN
			 : t->doubt ? LEDGER_GPUS_PREDICTED
				    : LEDGER_GPUS_UNKNOWN,
		.source = t->doubt    ? t->doubt
			  : why	      ? why
			  : t->n_gpus ? "PodResources at the container's start"
				      : "the container has no GPUs",
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
	return holds_decide(latebind_holds(b), &d);
}

/* Those that were not bound before get the decision's number. */
static void hold_all(struct latebind *b, const struct target *t, const struct binding *c,
		     const bool *fresh, uint64_t decision)
{
	for (size_t i = 0; i < c->n_slots; i++) {
		const struct binding_slot *s = &c->slots[i];
		const struct holds_vf v = { .vf = s->dev->id,
					    .resource = s->pool->cfg->resource,
					    .rdma = latebind_rdma_of(b, s->dev) };

		holds_bind(latebind_holds(b), s->id, &v, &t->owner, fresh[i] ? decision : 0,
			   tracker_now());
	}
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

/* The list of pods ends with this call; what is left to do comes after it. */
static void note_decided(struct request *r, const struct target *t, const struct binding *c)
{
	struct arena *a = r->arena;

	node_unref(r->node);
	r->node = node_ref(r->b->node);
	r->owner =
		(struct ledger_owner) { arena_strdup(a, t->owner.ns), arena_strdup(a, t->owner.pod),
					arena_strdup(a, t->owner.uid),
					arena_strdup(a, t->owner.container) };
	r->gpus = t->gpus;
	r->n_gpus = t->n_gpus;
	r->bindings = c->slots;
	r->n_bindings = c->n_slots;
	r->n_shares = 0;
	for (size_t i = 0; i < c->n_slots; i++)
		c->slots[i].id = arena_strdup(a, c->slots[i].id);
	latebind_note_shares(r, t);
}

/*
 * A container that starts gets its specs when its VFs have been looked at. A CNI plugin that asks
 * for its second VF may have moved the first one's devices away: what is bound and written stays as
 * it is until then.
 */
static bool needs_specs_now(const struct request *r, const bool *fresh)
{
	bool needed = !r->pod.name;

	for (size_t i = 0; i < r->n_bindings; i++)
		needed |= fresh[i] || !latebind_spec_exists(r->b, r->bindings[i].id);
	return needed && !latebind_probes_first(r);
}

static int try_to_bind(struct request *r, const struct target *t, struct err *err)
{
	struct latebind *b = r->b;
	bool *fresh = arena_array(r->arena, t->slots.n, sizeof(*fresh)), any = false;
	struct chosen chosen = { 0 };
	uint64_t decision = 0;
	struct binding c;
	int result = 0;

	result = wait_for_the_other(r, t, err);
	if (result < 0)
		return result;
	if (!t->container)
		holds_know_pod(latebind_holds(b), t->owner.uid);
	choose_from(r, t, &c);
	for (size_t i = 0; i < c.n_slots; i++)
		any |= fresh[i] = !c.slots[i].dev;
	if (any)
		result = choice_for_slots(&c, r->arena, &chosen, err);
	if (result < 0)
		return result;
	note_decided(r, t, &c);
	if (any)
		decision = note_decision(b, t, &c, &chosen, r->arena);
	if (any && t->doubt)
		latebind_say(b,
			     "the VFs are chosen for all GPUs of a claim that the container shares"
			     " pod=%s/%s container=%s reason=%s",
			     t->owner.ns, t->owner.pod, t->owner.container, t->doubt);
	r->decision = decision;
	hold_all(b, t, &c, fresh, decision);
	tell_bound(r, &c);
	if (needs_specs_now(r, fresh))
		result = latebind_render(r, NULL, 0, NULL, err);
	if (result < 0)
		latebind_unbind(r);
	return result;
}

static int bind_target(struct request *r, const struct target *t, struct err *err)
{
	int result = try_to_bind(r, t, err);

	if (result < 0)
		holds_not_created(latebind_holds(r->b), &t->owner, tracker_now());
	return result;
}

/* --- several containers have the slots --- */

static bool is_owner(const struct latebind *b, const struct ledger_hold *hold,
		     const struct candidate *c)
{
	const struct ledger_owner *o = &hold->owner;

	return !hold->draining && latebind_is_late(b, hold->resource) &&
	       str_eq(o->ns, c->pod->ns) && str_eq(o->pod, c->pod->name) &&
	       (!c->container || str_eq(o->container, c->container->name));
}

static bool is_bound(const struct latebind *b, const struct candidate *c)
{
	const struct ledger *l = tracker_ledger(b->env.tracker);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		if (is_owner(b, ledger_hold_at(l, i), c))
			return true;
	}
	return false;
}

/* A VF of his is in use: he is not the one who starts. */
static bool is_running(const struct latebind *b, const struct candidate *c)
{
	const struct ledger *l = tracker_ledger(b->env.tracker);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (is_owner(b, hold, c) && tracker_is_open(b->env.tracker, hold->vf))
			return true;
	}
	return false;
}

/* Whoever is bound already has started once; the other one is new. Of several new ones nothing
 * tells which starts first. */
static int64_t age_of(const struct request *r, const struct candidate *c)
{
	const struct spec_pod *spec = identify_spec(&r->specs, c->pod->ns, c->pod->name);

	return spec ? spec->created : 0;
}

/* Has started once already, and is not at work: he may start again. NULL: none, or several. */
static const struct candidate *the_idle_one(const struct latebind *b, const struct candidate *v,
					    size_t n)
{
	const struct candidate *idle = NULL;
	size_t n_idle = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_running(b, &v[i]))
			continue;
		idle = &v[i];
		n_idle++;
	}
	return n_idle == 1 ? idle : NULL;
}

/* Whoever is bound already has started once; the others are new, and the newest of them is taken.
 */
static const struct candidate *the_starting_one(const struct request *r, const struct candidate *v,
						size_t n, struct err *err)
{
	const struct candidate *newest = NULL, *idle;
	size_t n_fresh = 0;

	for (size_t i = 0; i < n; i++) {
		if (n > 1 && is_bound(r->b, &v[i]))
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
	idle = the_idle_one(r->b, v, n);
	if (!idle)
		err_set(err, EAGAIN,
			"the kubelet gave the same slots to pod %s/%s and to pod %s/%s, and it is not known "
			"which of "
			"them starts: delete one of them",
			v[0].pod->ns, v[0].pod->name, v[1].pod->ns, v[1].pod->name);
	return idle;
}

/* --- which one is it? --- */

/* The checkpoint knows pods by their uid only. Who asks for the slot of another pod does not get
 * its VF. */
static bool may_be_of(const struct request *r, const struct candidate *c)
{
	return !r->pod.name || !r->pod.uid || !*r->pod.uid || str_eq(r->pod.uid, c->pod->name);
}

/* Regular init containers: no list of pods shows what they hold. */
static int decide_for_init(struct request *r, struct err *err)
{
	struct latebind *b = r->b;
	struct pod_list pods = checkpoint_pods(b->env.checkpoint, r->arena);
	struct candidate *v;
	struct target t;
	size_t n = who_holds(b->node, &pods, &r->slots, NULL, r->arena, &v);

	if (n != 1 || !may_be_of(r, v))
		return err_set(err, EAGAIN,
			       "PodResources shows no container%s%s that holds slot %s",
			       r->pod.name ? " of pod " : "", r->pod.name ? r->pod.name : "",
			       r->slots.v[0]);
	t = who_target(b->node, &pods, v, &r->slots, r->arena);
	t.owner = (struct ledger_owner) { "", "", v->pod->name, t.owner.container };
	if (r->pod.name && str_eq(r->pod.uid, v->pod->name)) {
		t.owner.ns = r->pod.ns;
		t.owner.pod = r->pod.name;
	}
	return bind_target(r, &t, err);
}

/* By the kubelet's checkpoint, which has every slot of the container by now; else as the CNI plugin
 * was told.
 */
static const char *uid_of(const struct request *r, const struct ids *slots)
{
	const struct holds_entry *v;
	size_t n = tracker_checkpoint(r->b->env.tracker, &v);
	const char *uid = "";

	for (size_t i = 0; !*uid && i < slots->n; i++) {
		const char *resource = slot_pool(r->b->node, slots->v[i])->cfg->resource;
		struct ids same = { arena_array(r->arena, slots->n, sizeof(*same.v)), 0 };

		for (size_t k = 0; k < slots->n; k++) {
			if (!strcmp(slot_pool(r->b->node, slots->v[k])->cfg->resource, resource))
				same.v[same.n++] = slots->v[k];
		}
		uid = holds_checkpoint_uid_of(v, n, resource, same.v, same.n);
		if (!*uid)
			uid = holds_checkpoint_uid(v, n, resource, slots->v[i]);
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
		if (!slot_pool(b->node, r->slots.v[i]))
			return err_set(err, ENOENT,
				       "slot '%.64s' is of no pool of this node that binds late",
				       r->slots.v[i]);
	}
	n = who_holds(b->node, pods, &r->slots, r->pod.name ? &r->pod : NULL, r->arena, &v);
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
	t = who_target(b->node, pods, &narrowed, &r->slots, r->arena);
	t.doubt = doubt;
	t.owner.uid = uid_of(r, &t.slots);
	return bind_target(r, &t, err);
}
