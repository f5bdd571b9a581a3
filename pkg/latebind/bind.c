/*
 * From the list of pods to a binding: which container starts, which GPUs of its claims are its
 * own, which VFs it has or gets, and how near they are. latebind.c asks.
 */
#include <errno.h>
#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "choice/choice.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "kubeclient/checkpoint.h"
#include "kubemsg/podspec.h"
#include "latebind/latebind-internal.h"
#include "pods/gpus.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "render/cdi.h"
#include "status/stats.h"
#include "sysroot/sysroot.h"
#include "tracker/tracker.h"

/* A VF as it is on the machine now, where the node may be older. */

static void note_placed(struct request *r, const struct binding *c);

static int is_any(void *arg, const char *name)
{
	return 1;
}

/* Is this device, which the node shows without an RDMA device, away in a pod? The node may have
 * been made in the moment in which a CNI plugin moved the devices, the netdev still here. */
static bool is_away_now(const struct latebind *b, const struct pool_dev *dev, struct arena *a)
{
	struct function_now now;
	struct bdf bdf;

	if (dev->pci < 0 || dev->rdma >= 0 || !dev->had_rdma || bdf_parse(dev->id, &bdf) < 0 ||
	    devstate_function(b->env.root, bdf, &now, NULL) < 0 ||
	    !str_eq(now.driver, b->node->inv->pci[dev->pci].driver))
		return false;
	return now.rdma[0] ||
	       sysroot_each(b->env.root, arena_printf(a, "sys/bus/pci/devices/%s/net", dev->id),
			    is_any, NULL) <= 0;
}

/* --- which GPUs of its claims --- */

/*
 * Whose are the GPUs of a claim that containers share? The kubelet shows each of them all: the
 * pod's spec says which requests a container has, the claim which devices these were given. Pure
 * but for its result in the request.
 */

/* Was it given for a request of the container? "gpus/large" is of the request "gpus". */
static bool is_given(const struct known_claim *known, const struct spec_container *c,
		     const struct dynamic *d)
{
	for (size_t i = 0; i < known->devices.n; i++) {
		const struct draclaim_device *given = &known->devices.v[i];

		if (!str_eq(given->driver, d->driver) || !str_eq(given->pool, d->pool) ||
		    !str_eq(given->device, d->device))
			continue;
		for (size_t k = 0; k < c->n_claims; k++) {
			const char *request = c->claims[k].request;
			size_t n = request ? strcspn(request, "/") : 0;

			if (str_eq(c->claims[k].claim, d->claim) &&
			    (!request || (strcspn(given->request, "/") == n &&
					  !strncmp(request, given->request, n))))
				return true;
		}
	}
	return false;
}

/* A container that starts again: for which GPUs its VFs were chosen; NULL: not known. */
static const struct ledger_decision *decided_before(const struct request *r,
						    const struct candidate *who)
{
	const struct ledger_hold *hold = latebind_live_hold(r->b, r->slots.v[0]);
	const struct ledger_decision *d =
		hold ? ledger_decision(tracker_ledger(r->b->env.tracker), hold->decision) : NULL;

	if (holds_slot(latebind_holds(r->b), r->slots.v[0]).promised || !d ||
	    d->known != LEDGER_GPUS_KNOWN || !str_eq(d->owner.ns, who->pod->ns) ||
	    !str_eq(d->owner.pod, who->pod->name) ||
	    !str_eq(d->owner.container, who->container->name))
		return NULL;
	return d;
}

static bool was_its_own(const struct request *r, const struct ledger_decision *d,
			const struct dynamic *dev)
{
	struct dynamic one = *dev;
	const struct pod_container alone = { .dynamic = &one, .n_dynamic = 1 };
	char bdf[BDF_STRLEN];
	struct pods_gpus gpu = pods_gpus(r->b->node, &alone, "", r->arena);

	if (!gpu.n)
		return false;
	bdf_format(r->b->node->inv->pci[gpu.v[0]].bdf, bdf);
	for (size_t i = 0; i < d->n_gpus; i++) {
		if (str_eq(d->gpus[i], bdf))
			return true;
	}
	return false;
}

/* How the container's own devices of a claim are found. */
struct sieve {
	const struct ledger_decision *before; /* NULL: not decided before */
	const struct known_claim *known;
	const struct spec_container *spec;
};

static void sift(const struct request *r, const struct sieve *s, const char *claim,
		 struct pod_container *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_dynamic; i++) {
		const struct dynamic *d = &c->dynamic[i];

		if (!str_eq(d->claim, claim) ||
		    (s->before ? was_its_own(r, s->before, d) : is_given(s->known, s->spec, d)))
			c->dynamic[n++] = *d;
	}
	c->n_dynamic = n;
}

static const char *unknown_part(struct request *r, const char *claim, const char *why)
{
	return arena_printf(r->arena, "which GPUs of its claim %.253s it has is not known: %s",
			    claim, why);
}

/* 0: done, or it cannot be decided and ret_doubt has the reason; -EINPROGRESS: r has the question
 * to be asked first. */
static int narrow(struct request *r, const struct candidate *who, const char *claim,
		  struct pod_container *c, const char **ret_doubt)
{
	bool shared =
		pods_claim_gpus(r->b->node, who->pod, who->container, claim) == PODS_CLAIM_SHARED;
	struct sieve s = { .before = decided_before(r, who) };
	bool has_all = false, others_have_part = false;
	const struct spec_pod *pod;

	if (s.before) {
		sift(r, &s, claim, c);
		return 0;
	}
	if (r->b->env.specs && !r->knows_specs)
		return -EINPROGRESS;
	pod = kubemsg_podspec_find(&r->specs, who->pod->ns, who->pod->name);
	for (size_t i = 0; pod && i < pod->n_containers; i++) {
		const struct spec_container *one = &pod->containers[i];
		bool me = str_eq(one->name, who->container->name);

		s.spec = me ? one : s.spec;
		/* Of init containers, too: no list of the kubelet's shows the devices of these. */
		for (size_t k = 0; k < one->n_claims; k++) {
			bool part = str_eq(one->claims[k].claim, claim);

			has_all |= me && part && !one->claims[k].request;
			others_have_part |= !me && part;
		}
	}
	if (!s.spec && shared)
		*ret_doubt = unknown_part(r, claim,
					  r->specs_why ? r->specs_why : "the pod specs do not say");
	if (!s.spec || has_all || (!shared && !others_have_part))
		return 0;
	for (size_t i = 0; i < r->n_claims; i++) {
		if (str_eq(r->claims[i].name, claim))
			s.known = &r->claims[i];
	}
	if (!s.known && r->b->env.claims) {
		r->wanted_ns = arena_strdup(r->arena, who->pod->ns);
		r->wanted_claim = arena_strdup(r->arena, claim);
		return -EINPROGRESS;
	}
	if (!s.known || s.known->why)
		*ret_doubt = unknown_part(r, claim,
					  s.known ? s.known->why : "there is no API server to ask");
	else
		sift(r, &s, claim, c);
	return 0;
}

/*
 * ret: the container with those devices of its claims only that are its own. -EINPROGRESS: as
 * latebind_decide(). ret_doubt: a sentence why they are not known, and all stay; NULL: they are.
 */
static int latebind_narrow(struct request *r, const struct candidate *who,
			   struct pod_container *ret, const char **ret_doubt)
{
	const struct pod_container *all = who->container;

	*ret = *all;
	*ret_doubt = NULL;
	ret->dynamic = arena_copy(r->arena, all->dynamic, all->n_dynamic * sizeof(*all->dynamic));
	for (size_t i = 0; i < all->n_dynamic; i++) {
		const char *claim = all->dynamic[i].claim;

		if ((i && str_eq(all->dynamic[i - 1].claim, claim)) ||
		    pods_claim_gpus(r->b->node, who->pod, all, claim) == PODS_CLAIM_ONE)
			continue;
		if (narrow(r, who, claim, ret, ret_doubt) < 0)
			return -EINPROGRESS;
	}
	return 0;
}

void latebind_know_claim(struct request *r, const struct draclaim *claim, const char *why)
{
	struct known_claim *all = arena_array(r->arena, r->n_claims + 1, sizeof(*all)),
			   *now = &all[r->n_claims];

	if (r->n_claims)
		memcpy(all, r->claims, r->n_claims * sizeof(*all));
	*now = (struct known_claim) { .name = r->wanted_claim,
				      .why = claim ? NULL : arena_strdup(r->arena, why) };
	if (claim)
		now->devices = kubemsg_draclaim_copy(claim, r->arena);
	r->claims = all;
	r->n_claims++;
	r->wanted_claim = NULL;
}

/* From a list of pods to a binding: which container starts, which VFs it has or gets, its specs,
 * its holds. */
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

/* Each slot of a claim is that claim's; containers can have VFs of several. */
static struct ledger_owner owner_of(const struct request *r, const struct target *t,
				    const char *slot)
{
	struct ledger_owner owner = t->owner;

	owner.claim = r->claim ? pool_slot_claim(slot, r->arena) : NULL;
	return owner;
}

/* Of a slot that the kubelet has given twice. */
static int wait_for_the_other(const struct request *r, const struct target *t, struct err *err)
{
	struct latebind *b = r->b;

	for (size_t i = 0; i < t->slots.n; i++) {
		const char *slot = t->slots.v[i], *vf = holds_slot(latebind_holds(b), slot).vf,
			   *why;
		const struct ledger_owner owner = owner_of(r, t, slot);
		struct holds_facts facts;

		if (!vf)
			continue;
		facts = tracker_facts(b->env.tracker, vf, r->arena);
		why = holds_slot_waits(latebind_holds(b), slot, &owner, &facts, tracker_now(),
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
		const struct ledger_owner owner = owner_of(r, t, t->slots.v[i]);
		const struct pool_dev *dev;
		const char *vf;
		bool usable;

		s->id = t->slots.v[i];
		s->place = r->claim ? r->claim->places[i] : NULL;
		s->pool = pool_of_slot(b->node, s->id);
		pool_slot_parse(s->pool->cfg->resource, s->id, &s->numa, &number);
		/* The VF that the slot has already and keeps, or one is to be chosen. */
		vf = holds_slot(h, s->id).vf;
		dev = vf ? pool_find(s->pool, vf) : NULL;
		usable = dev && (dev->healthy || is_away_now(b, dev, a));
		if (holds_slot_start(h, s->id, &owner, usable, tracker_now()))
			s->dev = dev;
		tracker_run_now(b->env.tracker);
		if (!s->dev && !r->claim)
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
		    : t->owner.claim
			    ? "PodResources and the pod's claims, when its claim was prepared"
		    : t->gpus.n ? "PodResources at the container's start"
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
		const struct ledger_owner owner = owner_of(r, t, s->id);
		const struct holds_vf v = { .vf = s->dev->id,
					    .resource = resource,
					    .rdma = latebind_rdma_of(r->b, s->dev) };

		holds_event(latebind_holds(r->b),
			    &(struct holds_event) { .kind = HOLDS_BOUND,
						    .slot = s->id,
						    .given = &v,
						    .owner = &owner,
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
		decision.claims = r->claim ? r->claim->names : NULL;
		r->decision = note_decision(b, t, &c, &decision, r->arena);
		note_placed(r, &c);
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
	t.owner = (struct ledger_owner) {
		.ns = "", .pod = "", .uid = v->pod->name, .container = t.owner.container
	};
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

/* --- a part of claims --- */

/* The containers as one: with the devices that plugins gave them, as PodResources shows, and those
 * that DRA drivers did, of which PodResources shows each container all of the pod. */
static struct pod_container *merge(const struct request *r, const struct pod *pod)
{
	struct pod_container *all = arena_alloc(r->arena, sizeof(*all));
	size_t room = 0;

	for (size_t i = 0; i < pod->n_containers; i++)
		room += pod->containers[i].n_held;
	*all = (struct pod_container) { .name = r->claim->owner.container,
					.held = arena_array(r->arena, room, sizeof(*all->held)),
					.dynamic = (struct dynamic *)r->claim->dynamic,
					.n_dynamic = r->claim->n_dynamic };
	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct pod_container *c = &pod->containers[i];
		bool has = list_has(r->claim->containers.v, r->claim->containers.n, c->name);

		for (size_t k = 0; has && k < c->n_held; k++)
			all->held[all->n_held++] = c->held[k];
	}
	return all;
}

int latebind_decide_claim(struct request *r, const struct pod_list *pods, struct err *err)
{
	const struct ledger_owner *owner = &r->claim->owner;
	const struct candidate who = { kubemsg_pods_find(pods, owner->ns, owner->pod), NULL };
	struct candidate all = who;
	const struct ids none = { NULL, 0 };
	struct target t;

	for (size_t i = 0; i < r->slots.n; i++) {
		if (!pool_of_slot(r->b->node, r->slots.v[i]))
			return err_set(err, ENOENT, "'%.128s' is of no pool of this node",
				       r->slots.v[i]);
	}
	if (!who.pod)
		return err_set(err, EAGAIN,
			       "PodResources does not show pod %s/%s, whose claim is prepared",
			       owner->ns, owner->pod);
	all.container = merge(r, who.pod);
	t = pods_target(r->b->node, pods, &all, &none, r->arena);
	t.owner = *owner;
	t.owner.claim = pool_slot_claim(r->slots.v[0], r->arena);
	t.slots = r->slots;
	t.doubt = r->claim->doubt;
	return bind_target(r, &t, err);
}

/* --- how near they are --- */

/* How near the chosen VFs are, beside the nearest ones that were free: for metrics and Events. */

static void place(const struct request *r, const struct binding *c, const struct pool *pool,
		  struct stats_placement *ret)
{
	const struct holds *h = latebind_holds(r->b);
	int *devs = arena_array(r->arena, c->n_slots, sizeof(*devs));
	int *available = arena_array(r->arena, pool->n_devs, sizeof(*available));
	struct choose_in in = {
		.node = c->node, .pool = pool, .available = available, .gpus = c->gpus
	};

	for (size_t i = 0; i < c->n_slots; i++) {
		if (c->slots[i].pool == pool)
			devs[in.want++] = (int)(c->slots[i].dev - pool->devs);
	}
	*ret = (struct stats_placement) { .owner = &r->c.owner,
					  .resource = pool->cfg->resource,
					  .n_vfs = in.want,
					  .strict = pool->cfg->strict };
	if (!c->gpus.n)
		return;
	/* Whatever NUMA node the slots are of: that was the kubelet's choice, and may have been a
	 * bad one. */
	for (size_t i = 0; i < pool->n_devs; i++) {
		const struct pool_dev *dev = &pool->devs[i];

		if (list_has_int(devs, in.want, (int)i) ||
		    (dev->healthy && holds_could_give(h, dev->id)))
			available[in.n_available++] = (int)i;
	}
	stats_place(ret, &in, devs, tracker_ledger(r->b->env.tracker), r->arena);
}

/* Notes the placement of a decision before its VFs are held; counts it when the container has them.
 */
static void note_placed(struct request *r, const struct binding *c)
{
	r->n_placed = 0;
	if (!r->b->env.stats && !r->b->env.placed)
		return;
	r->placed = arena_array(r->arena, c->n_slots, sizeof(*r->placed));
	for (size_t i = 0; i < c->n_slots; i++) {
		bool first = true;

		for (size_t k = 0; k < i; k++)
			first &= c->slots[k].pool != c->slots[i].pool;
		if (first)
			place(r, c, c->slots[i].pool, &r->placed[r->n_placed++]);
	}
}

void latebind_count_placed(const struct request *r)
{
	const struct latebind_env *env = &r->b->env;

	for (size_t i = 0; i < r->n_placed; i++) {
		const struct stats_placement *p = &r->placed[i];

		if (env->placed)
			env->placed(env->placed_ctx, p);
		stats_count_pairs(stats_of(env->stats, p->resource), &p->got, &p->best);
	}
}
