#include "sim/simulate.h"

#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "choice/choice.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "sim/bound.h"
#include "sim/devman.h"
#include "sim/idset.h"
#include "sim/late.h"
#include "sim/random.h"
#include "sim/vendor.h"

#define NOBODY (-1)

struct holding {
	struct ids gpus, listed; /* listed: what the kubelet knows, VFs or slots */
	const int *vfs;
	size_t n_vfs;
};

/* The node under one policy. */
struct world {
	const struct sim_in *in;
	const struct sim_policy *policy;
	struct arena *arena;
	const struct vendor *gpus;
	struct device_list listed; /* by our plugin: VFs, or slots */
	struct bound *bound;	   /* NULL: nothing to compute */
	/* of its own for each resource: the same GPUs are drawn whoever chooses the VFs */
	uint64_t gpu_random, listed_random;
	struct idset gpus_taken, listed_taken;
	int *gpu_owner;		  /* by position in the GPU plugin's list: a pod, or NOBODY */
	int *vf_owner;		  /* by pool index */
	struct holding *holdings; /* by pod */
	size_t n_pods;
	struct sim_result *result;
};

/* One container on its way. */
struct admission {
	struct world *w;
	const struct stream_pod *pod;
	int number;
	struct arena *arena;
	bool has_affinity;
	uint64_t affinity;
	struct ids gpus, listed;
	int *gpu_pci;	     /* of gpus */
	int *free_gpus;	     /* before it came, as positions */
	int *free_vfs, *vfs; /* pool indices: before it came, and what it got */
	size_t n_free_gpus, n_free, n_vfs;
	const struct ids *prediction; /* NULL: none was made */
};

/* --- what is known --- */

static int gpu_at(const struct vendor *g, const char *id)
{
	size_t i = 0;

	while (strcmp(g->list.v[i].id, id) != 0)
		i++;
	return (int)i;
}

static int *pci_of(const struct vendor *g, const struct ids *ids, struct arena *arena)
{
	int *pci = arena_array(arena, ids->n, sizeof(*pci));

	for (size_t i = 0; i < ids->n; i++)
		pci[i] = g->pci[gpu_at(g, ids->v[i])];
	return pci;
}

/* As the daemon does it: the GPU plugin's own GetPreferredAllocation, for what PodResources calls
 * free. */
static const struct ids *predict(struct admission *ad)
{
	const struct vendor *g = ad->w->gpus;
	struct preferred_container ask = { .size = (int)(ad->w->policy->no_specs ? ad->pod->vfs
										 : ad->pod->gpus) };
	struct ids *out;

	if (ad->w->policy->mute || ad->w->policy->gpus_at_random)
		return NULL;
	ask.available.v = arena_array(ad->arena, g->list.n, sizeof(char *));
	for (size_t i = 0; i < g->list.n; i++) {
		if (ad->w->gpu_owner[i] == NOBODY)
			ask.available.v[ask.available.n++] = g->list.v[i].id;
	}
	if (ask.available.n < (size_t)ask.size)
		return NULL;
	out = arena_alloc(ad->arena, sizeof(*out));
	*out = vendor_prefer(g, &ask, ad->arena);
	return out;
}

/* What PodResources and the prediction tell of the container. */
static struct identified know(struct admission *ad)
{
	const struct world *w = ad->w;
	struct identified who = { .busy_gpus =
					  arena_array(ad->arena, w->gpus->list.n, sizeof(int)) };
	const struct ids *gpus = &ad->gpus;

	if (!gpus->n)
		gpus = ad->prediction = predict(ad);
	for (size_t i = 0; i < w->gpus->list.n; i++) {
		if (w->gpu_owner[i] != NOBODY && w->gpu_owner[i] != ad->number)
			who.busy_gpus[who.n_busy_gpus++] = w->gpus->pci[i];
	}
	if (!gpus && w->policy->gpus_at_random)
		who.n_drawn = ad->pod->gpus;
	if (gpus) {
		who.found = true;
		who.gpus = pci_of(w->gpus, gpus, ad->arena);
		who.n_gpus = gpus->n;
	}
	return who;
}

/* --- our plugin --- */

static size_t find_free(const struct world *w, int *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < w->in->pool->n_devs; i++) {
		if (w->vf_owner[i] == NOBODY && w->in->pool->devs[i].healthy)
			ret[n++] = (int)i;
	}
	return n;
}

/* Late binding has no wish: which slots the kubelet draws is without influence. */
static const struct ids *prefer_listed(struct admission *ad, const struct preferred_container *ask)
{
	const struct world *w = ad->w;
	struct ids *out = arena_alloc(ad->arena, sizeof(*out));
	struct identified who;

	if (w->policy->binding != SIM_EARLY)
		return NULL;
	who = know(ad);
	*out = choice_preferred(w->in->node, w->in->pool, ask, &who, ad->arena);
	return out;
}

/* PreStartContainer: every GPU is known. */
static bool bind_slots(struct admission *ad)
{
	const struct world *w = ad->w;
	bool *is_free = arena_array(ad->arena, w->in->pool->n_devs, sizeof(*is_free));
	struct identified who = know(ad);
	struct late_in in = { .node = w->in->node,
			      .pool = w->in->pool,
			      .slots = &ad->listed,
			      .gpus = who.gpus,
			      .n_gpus = who.n_gpus,
			      .busy_gpus = who.busy_gpus,
			      .n_busy_gpus = who.n_busy_gpus,
			      .is_free = is_free };

	for (size_t i = 0; i < ad->n_free; i++)
		is_free[ad->free_vfs[i]] = true;
	ad->vfs = late_bind(&in, ad->arena);
	ad->n_vfs = ad->vfs ? ad->listed.n : 0;
	return ad->vfs != NULL;
}

static bool name_vfs(struct admission *ad)
{
	const struct pool *pool = ad->w->in->pool;

	ad->vfs = arena_array(ad->arena, ad->listed.n, sizeof(*ad->vfs));
	ad->n_vfs = ad->listed.n;
	for (size_t i = 0; i < ad->listed.n; i++)
		ad->vfs[i] = (int)(pool_find(pool, ad->listed.v[i]) - pool->devs);
	return true;
}

/* --- the kubelet --- */

static void judge_numa(struct admission *ad)
{
	struct world *w = ad->w;
	struct devman_stock gpus = { .devices = &w->gpus->list, .taken = &w->gpus_taken };
	struct devman_stock listed = { .devices = &w->listed, .taken = &w->listed_taken };
	uint64_t nodes = devman_nodes(gpus.devices) | devman_nodes(listed.devices);
	const struct numa_ask asks[] = { devman_hint(&gpus, ad->pod->gpus, ad->arena),
					 devman_hint(&listed, ad->pod->vfs, ad->arena) };
	struct numa_verdict v = numa_judge(w->policy->numa, nodes, asks, ARRAY_LEN(asks));

	ad->has_affinity = v.has_affinity;
	ad->affinity = v.affinity;
}

static enum devman_step begin(struct admission *ad, struct devman_pick *pick,
			      const struct device_list *devices, struct idset *taken, size_t count,
			      uint64_t *random)
{
	struct devman_stock stock = { .devices = devices, .taken = taken };

	return devman_begin(pick, &stock, taken, count, ad->has_affinity ? &ad->affinity : NULL,
			    random, ad->arena);
}

static bool allocate_gpus(struct admission *ad)
{
	struct world *w = ad->w;
	struct devman_pick pick;
	enum devman_step step =
		begin(ad, &pick, &w->gpus->list, &w->gpus_taken, ad->pod->gpus, &w->gpu_random);
	struct ids preferred;

	if (step == DEVMAN_ASK) {
		if (!w->policy->gpus_at_random)
			preferred = vendor_prefer(w->gpus, &pick.ask, ad->arena);
		devman_finish(&pick, w->policy->gpus_at_random ? NULL : &preferred);
	}
	ad->gpus = pick.picked;
	ad->gpu_pci = pci_of(w->gpus, &pick.picked, ad->arena);
	for (size_t i = 0; i < pick.picked.n; i++)
		w->gpu_owner[gpu_at(w->gpus, pick.picked.v[i])] = ad->number;
	return step != DEVMAN_SHORT;
}

static bool allocate_listed(struct admission *ad)
{
	struct world *w = ad->w;
	struct devman_pick pick;
	enum devman_step step =
		begin(ad, &pick, &w->listed, &w->listed_taken, ad->pod->vfs, &w->listed_random);

	if (step == DEVMAN_ASK)
		devman_finish(&pick, prefer_listed(ad, &pick.ask));
	ad->listed = pick.picked;
	return step != DEVMAN_SHORT;
}

static bool allocate(struct admission *ad)
{
	enum sim_order order = ad->w->policy->order;
	bool gpu_first = order == SIM_GPU_FIRST || (order == SIM_AS_IT_COMES && ad->pod->gpu_first);

	ad->w->result->gpu_first += gpu_first;
	if (gpu_first)
		return allocate_gpus(ad) && allocate_listed(ad);
	return allocate_listed(ad) && allocate_gpus(ad);
}

/* --- a pod's life --- */

static struct ids keep_ids(const struct ids *ids, struct arena *arena)
{
	struct ids kept = { .v = arena_array(arena, ids->n, sizeof(char *)), .n = ids->n };

	for (size_t i = 0; i < ids->n; i++)
		kept.v[i] = arena_strdup(arena, ids->v[i]);
	return kept;
}

static void hold(struct admission *ad)
{
	struct world *w = ad->w;
	struct holding *h = &w->holdings[ad->number];

	h->gpus = keep_ids(&ad->gpus, w->arena);
	h->listed = keep_ids(&ad->listed, w->arena);
	h->vfs = arena_copy(w->arena, ad->vfs, ad->n_vfs * sizeof(*ad->vfs));
	h->n_vfs = ad->n_vfs;
	for (size_t i = 0; i < ad->n_vfs; i++)
		w->vf_owner[ad->vfs[i]] = ad->number;
}

static void leave(struct world *w, size_t number)
{
	struct holding *h = &w->holdings[number];

	for (size_t i = 0; i < h->gpus.n; i++) {
		idset_remove(&w->gpus_taken, h->gpus.v[i]);
		w->gpu_owner[gpu_at(w->gpus, h->gpus.v[i])] = NOBODY;
	}
	for (size_t i = 0; i < h->listed.n; i++)
		idset_remove(&w->listed_taken, h->listed.v[i]);
	for (size_t i = 0; i < h->n_vfs; i++)
		w->vf_owner[h->vfs[i]] = NOBODY;
	*h = (struct holding) { 0 };
}

static bool same_ids(const struct ids *a, const struct ids *b)
{
	for (size_t i = 0; i < a->n; i++) {
		if (!list_has((const char *const *)b->v, b->n, a->v[i]))
			return false;
	}
	return a->n == b->n;
}

static void count(const struct admission *ad)
{
	struct score_in in = { .node = ad->w->in->node,
			       .pool = ad->w->in->pool,
			       .gpus = ad->gpu_pci,
			       .n_gpus = ad->gpus.n,
			       .free_vfs = ad->free_vfs,
			       .n_free = ad->n_free };
	struct score s = score_container(&in, ad->vfs, ad->n_vfs, ad->arena);
	struct sim_result *r = ad->w->result;

	r->pods++;
	r->pairs += s.pairs;
	r->best += s.best;
	for (int i = 0; i < ALIGN_RANKS; i++) {
		r->got.n[i] += s.got.n[i];
		r->optimum.n[i] += s.optimum.n[i];
	}
	r->load += sim_percent((double)ad->pod->busy_gpus, ad->w->gpus->list.n * ad->w->n_pods);
	r->predicted += ad->prediction != NULL;
	r->predicted_right += ad->prediction && same_ids(ad->prediction, &ad->gpus);
}

static void judge_bound(const struct admission *ad)
{
	struct bound_in in = { .free_gpus = ad->free_gpus,
			       .n_free_gpus = ad->n_free_gpus,
			       .free_vfs = ad->free_vfs,
			       .n_free_vfs = ad->n_free,
			       .chosen = ad->vfs,
			       .n_chosen = ad->n_vfs,
			       .gpus = ad->gpus.n };
	struct sim_result *r = ad->w->result;
	double expected, bound;

	if (bound_judge(ad->w->bound, &in, &expected, &bound)) {
		r->expected += expected;
		r->bound += bound;
	} else {
		r->unbounded++;
	}
}

/* A pod that is refused leaves what it had got. */
static void refuse(struct admission *ad)
{
	ad->n_vfs = 0;
	hold(ad);
	leave(ad->w, (size_t)ad->number);
	ad->w->result->refused++;
}

static void arrive(struct world *w, size_t number, const struct stream_pod *pod)
{
	_cleanup_arena_ struct arena *arena = arena_new(64 * 1024);
	struct admission ad = { .w = w, .pod = pod, .number = (int)number, .arena = arena };

	ad.free_vfs = arena_array(arena, w->in->pool->n_devs, sizeof(*ad.free_vfs));
	ad.n_free = find_free(w, ad.free_vfs);
	ad.free_gpus = arena_array(arena, w->gpus->list.n, sizeof(*ad.free_gpus));
	for (size_t i = 0; i < w->gpus->list.n; i++) {
		if (w->gpu_owner[i] == NOBODY)
			ad.free_gpus[ad.n_free_gpus++] = (int)i;
	}
	judge_numa(&ad);
	if (!allocate(&ad) || !(w->policy->binding == SIM_LATE ? bind_slots : name_vfs)(&ad)) {
		refuse(&ad);
		return;
	}
	hold(&ad);
	count(&ad);
	if (w->bound)
		judge_bound(&ad);
}

/* --- a day --- */

static struct device_list list_slots(const struct slot_list *slots, struct arena *arena)
{
	struct device_list list = { .v = arena_array(arena, slots->n, sizeof(*list.v)),
				    .n = slots->n };
	int64_t *nodes = arena_array(arena, slots->n, sizeof(*nodes));

	for (size_t i = 0; i < slots->n; i++) {
		const struct slot *s = &slots->v[i];

		nodes[i] = s->numa;
		list.v[i] = (struct device) { .id = s->id,
					      .healthy = s->healthy,
					      .nodes = &nodes[i],
					      .n_nodes = s->numa != SLOT_ANY };
	}
	return list;
}

static void open_world(struct world *w)
{
	const struct pool *pool = w->in->pool;
	struct slot_view view = { .pool = pool };

	w->gpu_random = ~w->in->day.seed; /* neither is that of the day */
	w->listed_random = w->gpu_random * 3;
	if (w->policy->gpus_at_random && w->policy->order == SIM_VF_FIRST &&
	    w->policy->binding == SIM_EARLY)
		w->bound = bound_new(w->in->node, pool, w->gpus->pci, w->gpus->list.n, w->arena);
	if (w->policy->binding == SIM_LATE) {
		struct slot_list slots = slots_of(&view, w->arena);

		w->listed = list_slots(&slots, w->arena);
	} else {
		w->listed = choice_list(pool, w->arena);
	}
	w->gpu_owner = arena_array(w->arena, w->gpus->list.n, sizeof(*w->gpu_owner));
	w->vf_owner = arena_array(w->arena, pool->n_devs, sizeof(*w->vf_owner));
	w->holdings = arena_array(w->arena, w->n_pods, sizeof(*w->holdings));
	for (size_t i = 0; i < w->gpus->list.n; i++)
		w->gpu_owner[i] = NOBODY;
	for (size_t i = 0; i < pool->n_devs; i++)
		w->vf_owner[i] = NOBODY;
}

static void run_policy(const struct sim_in *in, const struct vendor *gpus, const struct stream *day,
		       const struct sim_policy *policy, struct sim_result *ret)
{
	_cleanup_arena_ struct arena *arena = arena_new(1 << 20);
	struct world w = { .in = in,
			   .policy = policy,
			   .arena = arena,
			   .gpus = gpus,
			   .n_pods = day->n_pods,
			   .result = ret };

	*ret = (struct sim_result) { .policy = policy };
	open_world(&w);
	for (size_t i = 0; i < day->n_pods; i++) {
		for (size_t k = 0; k < day->pods[i].n_leave; k++)
			leave(&w, day->pods[i].leave[k]);
		arrive(&w, i, &day->pods[i]);
	}
	idset_done(&w.gpus_taken);
	idset_done(&w.listed_taken);
}

static size_t count_healthy(const struct pool *pool)
{
	size_t n = 0;

	for (size_t i = 0; i < pool->n_devs; i++)
		n += pool->devs[i].healthy;
	return n;
}

const struct sim_result *sim_run(const struct sim_in *in, const struct sim_policy *const *policies,
				 size_t n, struct arena *arena)
{
	struct sim_result *results = arena_array(arena, n, sizeof(*results));
	struct stream_in day_in = in->day;
	const struct vendor *gpus;
	struct stream day;

	day_in.gpu_resource = vendor_resource(in->node->inv);
	day_in.vf_resource = in->pool->cfg->resource;
	gpus = vendor_new(in->node->inv, in->node->topo, day_in.gpu_resource, arena);
	day_in.gpus = gpus->list.n;
	day_in.vfs = count_healthy(in->pool);
	day = sim_stream_new(&day_in, arena);
	if (!day.n_pods)
		return NULL;
	for (size_t i = 0; i < n; i++)
		run_policy(in, gpus, &day, policies[i], &results[i]);
	return results;
}
