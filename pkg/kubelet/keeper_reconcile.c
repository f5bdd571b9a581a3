/* What the kubelet says against the ledger: who is gone, who is new, whose name we did not know. */
#include "kubelet/keeper-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "kubelet/identify.h"
#include "kubelet/keeper.h"
#include "kubelet/messages.h"
#include "kubelet/podres.h"
#include "pool/node.h"

/* --- what we know of holds beyond the ledger --- */

static bool is_sight_of(const struct keeper_sight *s, const struct ledger_hold *hold)
{
	return s->since_ms == hold->since_ms && s->decision == hold->decision && !strcmp(s->vf, hold->vf);
}

static bool in_step(const struct keeper *k)
{
	if (k->n_sights != ledger_holds(k->ledger))
		return false;
	for (size_t i = 0; i < k->n_sights; i++) {
		if (!is_sight_of(&k->sights[i], ledger_hold_at(k->ledger, i)))
			return false;
	}
	return true;
}

/* Both are in the order of addresses. */
static void note_sights(struct keeper *k)
{
	size_t n = ledger_holds(k->ledger), at = 0;
	struct keeper_sight *now = xcalloc(n, sizeof(*now));

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(k->ledger, i);

		while (at < k->n_sights && ledger_vf_cmp(k->sights[at].vf, hold->vf) < 0)
			free(k->sights[at++].vf);
		if (at < k->n_sights && is_sight_of(&k->sights[at], hold)) {
			now[i] = k->sights[at++];
			continue;
		}
		now[i] = (struct keeper_sight) { .vf = xstrdup(hold->vf),
						 .since_ms = hold->since_ms,
						 .decision = hold->decision,
						 .noted_ms = clock_mono_ms() };
		keeper_complete(k, hold);
	}
	while (at < k->n_sights)
		free(k->sights[at++].vf);
	free(k->sights);
	k->sights = now;
	k->n_sights = n;
	keeper_uids_later(k);
}

void keeper_sync(struct keeper *k)
{
	if (!in_step(k))
		note_sights(k);
}

/* --- an answer of the kubelet --- */

/* One id that a container has. */
struct sighting {
	const char *resource, *id, *ns, *pod, *container;
};
struct sightings {
	struct sighting *v;
	size_t n;
};

/* What is being compared. */
struct reconcile {
	struct keeper *k;
	const struct node *node;
	const char **resources; /* that matter */
	size_t n_resources;
	struct sightings seen;
	const struct pod_list *pods;
	const char *ns, *pod; /* only what this pod holds; NULL: all */
	bool empty; /* a List without any pod, or no such pod: said by a kubelet that has just started, too */
	int64_t asked_ms;
};

static int sighting_cmp(const void *a, const void *b)
{
	const struct sighting *x = a, *y = b;
	int order = strcmp(x->id, y->id);

	if (!order)
		order = strcmp(x->resource, y->resource);
	if (!order)
		order = strcmp(x->ns, y->ns);
	return order ? order : strcmp(x->pod, y->pod);
}

static bool is_ours(const struct reconcile *r, const char *resource)
{
	for (size_t i = 0; i < r->n_resources; i++) {
		if (!strcmp(r->resources[i], resource))
			return true;
	}
	return false;
}

/* Those of the pools, and those of holds whose pool is no longer configured. */
static void find_resources(struct reconcile *r, struct arena *a)
{
	size_t n_holds = ledger_holds(r->k->ledger);

	r->resources = arena_array(a, r->node->n_pools + n_holds, sizeof(*r->resources));
	for (size_t i = 0; i < r->node->n_pools; i++)
		r->resources[r->n_resources++] = r->node->pools[i].cfg->resource;
	for (size_t i = 0; i < n_holds; i++) {
		const char *resource = ledger_hold_at(r->k->ledger, i)->resource;

		if (!is_ours(r, resource))
			r->resources[r->n_resources++] = arena_strdup(a, resource);
	}
}

static void see(struct sightings *s, const struct pod *pod, const struct pod_container *c,
		const struct held *held)
{
	for (size_t i = 0; i < held->ids.n; i++)
		s->v[s->n++] =
			(struct sighting) { held->resource, held->ids.v[i], pod->ns, pod->name, c->name };
}

/* Called twice: to count, then to fill. */
static size_t walk(const struct reconcile *r, const struct pod_list *pods, struct sightings *fill)
{
	size_t n = 0;

	for (size_t p = 0; p < pods->n; p++) {
		for (size_t c = 0; c < pods->v[p].n_containers; c++) {
			const struct pod_container *container = &pods->v[p].containers[c];

			for (size_t h = 0; h < container->n_held; h++) {
				if (!is_ours(r, container->held[h].resource))
					continue;
				n += container->held[h].ids.n;
				if (fill)
					see(fill, &pods->v[p], container, &container->held[h]);
			}
		}
	}
	return n;
}

static void collect(struct reconcile *r, const struct pod_list *pods, struct arena *a)
{
	find_resources(r, a);
	r->seen.v = arena_array(a, walk(r, pods, NULL), sizeof(*r->seen.v));
	walk(r, pods, &r->seen);
	qsort(r->seen.v, r->seen.n, sizeof(*r->seen.v), sighting_cmp);
}

/* The sightings of an id: one behind the other. */
static const struct sighting *find_seen(const struct reconcile *r, const char *resource, const char *id,
					size_t *ret_n)
{
	const struct sighting key = { resource, id, "", "", "" }, *s = r->seen.v;
	size_t lo = 0, hi = r->seen.n, n = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sighting_cmp(&s[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + n < r->seen.n && !strcmp(s[lo + n].id, id) && !strcmp(s[lo + n].resource, resource))
		n++;
	*ret_n = n;
	return n ? &s[lo] : NULL;
}

static bool same_pod(const struct ledger_owner *o, const struct sighting *s)
{
	return !strcmp(o->ns, s->ns) && !strcmp(o->pod, s->pod);
}

/* --- a hold that is seen --- */

/* Two pods have one device (reference kubelet.md §0.4): the first one keeps it, and somebody has to know. */
static void tell_double(struct reconcile *r, struct keeper_sight *sight, const struct ledger_hold *hold,
			const struct sighting *other)
{
	if (sight->doubly_told)
		return;
	sight->doubly_told = true;
	keeper_say(r->k, true, "%s: the kubelet has given it to pod %s/%s and to pod %s/%s", hold->vf,
		   hold->owner.ns, hold->owner.pod, other->ns, other->pod);
}

/* The decision did not know for whom it was. */
static void name_decision(struct ledger *l, uint64_t number, const struct ledger_owner *owner)
{
	const struct ledger_decision *d = number ? ledger_decision(l, number) : NULL;
	struct ledger_decision named;

	if (!d || *d->owner.pod)
		return;
	named = *d;
	named.owner = *owner;
	ledger_amend(l, number, &named);
}

static void hold_lives(struct reconcile *r, const struct ledger_hold *hold, const struct sighting *s)
{
	struct ledger_hold now = *hold;

	if (!same_pod(&hold->owner, s)) {
		now.owner = (struct ledger_owner) { .ns = s->ns, .pod = s->pod };
		if (*hold->owner.pod) { /* of another pod, which has lost it */
			now.since_ms = clock_wall_ms();
			now.decision = 0;
			now.cgroup_uid = NULL;
		}
	}
	now.owner.container = s->container;
	now.draining = false;
	if (!*hold->owner.pod)
		name_decision(r->k->ledger, now.decision, &now.owner);
	ledger_put(r->k->ledger, &now);
}

static bool has_any(const struct pod_container *c, const char *resource)
{
	for (size_t i = 0; i < c->n_held; i++) {
		if (!strcmp(c->held[i].resource, resource) && c->held[i].ids.n)
			return true;
	}
	return false;
}

/* The owner's pod is active, and the kubelet shows nothing instead of what it gave him: it has lost the
 * record, and given the VF away again. Kubelets without Get also list pods that are over. */
static bool has_lost_record(const struct reconcile *r, const struct ledger_hold *hold)
{
	const struct pod *pod = identify_pod(r->pods, hold->owner.ns, hold->owner.pod);
	const struct pod_container *c = pod ? identify_named(pod, hold->owner.container) : NULL;

	return pod && r->k->podres && podres_support(r->k->podres) == PODRES_GET &&
	       !(c && has_any(c, hold->resource));
}

/* Does anybody have it open? Where its devices are says nothing: the new pod's CNI plugin moved them. */
static bool is_open(const struct reconcile *r, const struct ledger_hold *hold)
{
	_cleanup_arena_ struct arena *a = arena_new(256);
	const struct pool *pool = node_pool(r->node, hold->resource);
	const struct pool_dev *dev = pool ? pool_find(pool, hold->vf) : NULL;
	const char *why;

	return dev && !keeper_is_at_rest(r->k, r->node, dev, true, a, &why);
}

static void hold_gone(struct reconcile *r, const struct ledger_hold *hold);

static bool was_chosen(const struct ledger *l, size_t i, const char *vf)
{
	const struct ledger_decision *d = ledger_decision_at(l, i);

	for (size_t k = 0; k < d->n_chosen; k++) {
		if (!strcmp(d->chosen[k], vf))
			return true;
	}
	return false;
}

bool keeper_is_guess(const struct keeper *k, const struct ledger_hold *hold)
{
	const struct ledger_decision *d = hold->decision ? ledger_decision(k->ledger, hold->decision) : NULL;

	if (!d || d->checked || d->late)
		return false;
	for (size_t i = ledger_decisions(k->ledger); i-- > 0;) {
		if (ledger_decision_mentions(k->ledger, i, hold->vf) && was_chosen(k->ledger, i, hold->vf))
			return ledger_decision_at(k->ledger, i)->number == hold->decision;
	}
	return false;
}

/* Its owner is the one who has it, and not whom it was thought to be for. */
static void hold_was_guessed(struct reconcile *r, const struct ledger_hold *hold, const struct sighting *s)
{
	struct ledger_hold nameless = *hold;

	nameless.owner = (struct ledger_owner) { .ns = "", .pod = "" };
	nameless.cgroup_uid = NULL;
	hold_lives(r, &nameless, s);
}

/* Another pod has it now, for the kubelet. */
static void hold_passed_on(struct reconcile *r, const struct ledger_hold *hold, struct keeper_sight *sight,
			   const struct sighting *s)
{
	if (!*hold->owner.pod)
		hold_lives(r, hold, s);
	else if (keeper_is_guess(r->k, hold))
		hold_was_guessed(r, hold, s);
	else if (has_lost_record(r, hold))
		tell_double(r, sight, hold, s);
	else if (is_open(r, hold) || keeper_pod_runs(r->k, hold))
		hold_gone(r, hold);
	else
		hold_lives(r, hold, s);
}

static void hold_seen(struct reconcile *r, const struct ledger_hold *hold, struct keeper_sight *sight,
		      const struct sighting *s, size_t n)
{
	const struct sighting *own = NULL, *other = NULL;

	for (size_t i = 0; i < n; i++) {
		if (same_pod(&hold->owner, &s[i]))
			own = own ? own : &s[i];
		else
			other = &s[i];
	}
	if (own && other)
		tell_double(r, sight, hold, other);
	sight->missed_ms = 0;
	if (own)
		hold_lives(r, hold, own);
	else
		hold_passed_on(r, hold, sight, s);
}

/* --- a hold that is missed --- */

/* The last process of a pod that ends by itself goes a moment after the kubelet has let it go. */
static bool is_missed_enough(const struct reconcile *r, const struct ledger_hold *hold,
			     struct keeper_sight *sight)
{
	if (r->asked_ms < sight->noted_ms + r->k->pace.young_ms)
		return false;
	if (!hold->slot && !r->empty && !keeper_pod_runs(r->k, hold))
		return true;
	if (!sight->missed_ms) {
		sight->missed_ms = r->asked_ms;
		return false;
	}
	return r->asked_ms >= sight->missed_ms + r->k->pace.apart_ms;
}

static void tell_draining(struct reconcile *r, const struct ledger_hold *hold, const char *why)
{
	const char *pod = *hold->owner.pod ? hold->owner.pod : "its pod";

	keeper_say(r->k, false, "%s: %s%s%s is gone, but %s: nobody gets it until it is at rest", hold->vf,
		   hold->owner.ns, *hold->owner.ns ? "/" : "", pod, why);
}

/* Draining, or free at once. */
static void hold_gone(struct reconcile *r, const struct ledger_hold *hold)
{
	_cleanup_arena_ struct arena *a = arena_new(512);
	struct ledger_hold drained = *hold;
	const char *why;

	if (hold->draining)
		return; /* the timer looks after it */
	if (!keeper_at_rest(r->k, r->node, hold->vf, hold, a, &why)) {
		tell_draining(r, hold, why);
		drained.draining = true;
		ledger_put(r->k->ledger, &drained);
	} else {
		ledger_drop(r->k->ledger, hold->vf);
		keeper_tell_changed(r->k); /* what was made for its container can go */
	}
}

/* --- all of them --- */

static bool is_owned_by(const struct ledger_hold *hold, const char *ns, const char *pod)
{
	return !strcmp(hold->owner.ns, ns) && !strcmp(hold->owner.pod, pod);
}

/* Has any of them the slot? A slot of another pod says that this one has lost it, and nothing about its VF.
 */
static bool is_sign_of_life(const struct ledger_hold *hold, const struct sighting *s, size_t n)
{
	if (!hold->slot || !*hold->owner.pod)
		return n > 0;
	for (size_t i = 0; i < n; i++) {
		if (same_pod(&hold->owner, &s[i]))
			return true;
	}
	return false;
}

static bool is_late(const struct node *node, const char *resource)
{
	const struct pool *pool = node_pool(node, resource);

	return pool && pool->cfg->binding == BINDING_LATE;
}

/* What no list shows, and is held as long as its pod is there: a VF whose slot the kubelet gave to another
 * container as well (reference kubelet.md §0.4), and one of a regular init container. */
static bool is_out_of_sight(const struct reconcile *r, const struct ledger_hold *hold)
{
	if (!is_late(r->node, hold->resource))
		return false;
	if (!*hold->owner.pod)
		return *hold->owner.uid; /* the binder looks after it, by the kubelet's checkpoint */
	return (!hold->slot || !*hold->owner.container) &&
	       identify_pod(r->pods, hold->owner.ns, hold->owner.pod);
}

/* The pod lives, and the container is one that PodResources never shows: an ordinary init container
 * (reference kubelet.md §2). What is not seen of it says nothing. */
static bool is_hidden(const struct reconcile *r, const struct ledger_hold *hold)
{
	const struct pod *pod = identify_pod(r->pods, hold->owner.ns, hold->owner.pod);

	return pod && *hold->owner.container && !identify_named(pod, hold->owner.container);
}

static void judge(struct reconcile *r, const struct ledger_hold *hold, struct keeper_sight *sight)
{
	const struct sighting *s;
	size_t n;

	if (sight->noted_ms >= r->asked_ms)
		return; /* younger than the answer */
	if (r->pod && *hold->owner.pod && !is_owned_by(hold, r->ns, r->pod))
		return; /* the answer is about another pod */
	s = find_seen(r, hold->resource, hold->slot ? hold->slot : hold->vf, &n);
	if (is_sign_of_life(hold, s, n))
		hold_seen(r, hold, sight, s, n);
	else if ((r->pod && !*hold->owner.pod) || is_out_of_sight(r, hold) || (!n && is_hidden(r, hold)))
		sight->missed_ms = 0;
	else if (is_missed_enough(r, hold, sight))
		hold_gone(r, hold);
}

/* A container has it and we do not know: the ledger was lost, or Allocate was answered by another version of
 * us. */
static void enter(struct reconcile *r, const struct sighting *s)
{
	const struct ledger_hold hold = {
		.vf = s->id,
		.resource = s->resource,
		.owner = { .ns = s->ns, .pod = s->pod, .container = s->container },
		.since_ms = clock_wall_ms(),
	};

	if (!is_late(r->node, s->resource) && !ledger_find(r->k->ledger, s->id))
		keeper_adopt(r->k, r->node, &hold);
}

/* What others have to hear of: the draining VFs, the slots that have one, and the VFs that no slot of a late
 * pool can have (held without one: the pool bound early when they were given), as a string. */
static char *matters_text(const struct keeper *k, const struct node *node)
{
	struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < ledger_holds(k->ledger); i++) {
		const struct ledger_hold *hold = ledger_hold_at(k->ledger, i);

		if (hold->draining || hold->slot || is_late(node, hold->resource))
			strbuf_printf(&out, "%s %d %s ", hold->vf, hold->draining,
				      hold->slot ? hold->slot : "");
	}
	return strbuf_steal(&out);
}

/* From the last hold to the first: one that is dropped moves only those that were judged. */
static bool run(struct reconcile *r, const struct pod_list *pods)
{
	_cleanup_free_ char *before = matters_text(r->k, r->node), *after = NULL;
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct keeper *k = r->k;
	uint64_t generation = ledger_generation(k->ledger);

	keeper_sync(k);
	k->looked_ms = clock_mono_ms();
	r->pods = pods;
	collect(r, pods, a);
	for (size_t i = ledger_holds(k->ledger); i-- > 0;)
		judge(r, ledger_hold_at(k->ledger, i), &k->sights[i]);
	for (size_t i = 0; i < r->seen.n; i++)
		enter(r, &r->seen.v[i]);
	if (ledger_generation(k->ledger) != generation)
		keeper_save(k, NULL, NULL);
	after = matters_text(k, r->node);
	if (!strcmp(before, after))
		return false;
	keeper_tell_changed(k);
	return true;
}

bool keeper_reconcile(struct keeper *k, const struct node *node, const struct pod_list *pods,
		      int64_t listed_ms)
{
	struct reconcile r = { .k = k, .node = node, .empty = !pods->n, .asked_ms = listed_ms };

	return run(&r, pods);
}

bool keeper_reconcile_pod(struct keeper *k, const struct node *node, const char *ns, const char *name,
			  const struct pod *pod, int64_t asked_ms)
{
	struct reconcile r = {
		.k = k, .node = node, .ns = ns, .pod = name, .empty = !pod, .asked_ms = asked_ms
	};
	struct pod one = { 0 };

	if (pod)
		one = *pod;
	return run(&r, &(struct pod_list) { &one, pod ? 1 : 0 });
}
