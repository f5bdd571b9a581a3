#include "sim/simulate.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "choice/choice.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "sim/devman.h"
#include "sim/devman-internal.h"
#include "sim/vendor.h"

static const struct sim_policy policies[] = {
	{ "kubelet", "the kubelet's own choice, no GetPreferredAllocation", SIM_KUBELET,
	  SIM_AS_IT_COMES, NUMA_NONE, 0 },
	{ "numa", "NUMA only: TopologyManager, best-effort", SIM_KUBELET, SIM_AS_IT_COMES,
	  NUMA_BEST_EFFORT, 0 },
	{ "early", "early binding, in the order of the kubelet's map", SIM_EARLY, SIM_AS_IT_COMES,
	  NUMA_NONE, 0 },
	{ "early-gpu-first", "early binding, GPUs first", SIM_EARLY, SIM_GPU_FIRST, NUMA_NONE, 0 },
	{ "early-vf-first", "early binding, VFs first, GPUs predicted", SIM_EARLY, SIM_VF_FIRST,
	  NUMA_NONE, 0 },
	{ "early-no-specs", "the same without pod specs: as many GPUs as VFs are predicted",
	  SIM_EARLY, SIM_VF_FIRST, NUMA_NONE, SIM_NO_SPECS },
	{ "early-mute", "early binding, VFs first, the GPU plugin does not answer us", SIM_EARLY,
	  SIM_VF_FIRST, NUMA_NONE, SIM_MUTE },
	{ "late", "late binding, in the order of the kubelet's map", SIM_LATE, SIM_AS_IT_COMES,
	  NUMA_NONE, 0 },
	{ "late-vf-first", "late binding, slots first", SIM_LATE, SIM_VF_FIRST, NUMA_NONE, 0 },
	{ "random-kubelet", "GPUs at random: the kubelet's own choice", SIM_KUBELET,
	  SIM_AS_IT_COMES, NUMA_NONE, SIM_DRAWN },
	{ "random-early-vf-first", "GPUs at random: early binding, VFs first", SIM_EARLY,
	  SIM_VF_FIRST, NUMA_NONE, SIM_DRAWN },
	{ "random-late-vf-first", "GPUs at random: late binding, slots first", SIM_LATE,
	  SIM_VF_FIRST, NUMA_NONE, SIM_DRAWN },
};

double sim_mean_rank(const struct score_classes *c)
{
	size_t pairs = 0;

	for (int i = 0; i < ALIGN_RANKS; i++)
		pairs += c->n[i];
	return pairs ? (double)sim_score_rank(c) / (double)pairs : 0;
}

double sim_percent(double part, size_t all)
{
	return all ? 100 * part / (double)all : 100;
}

/* --- late binding: the VFs that the daemon would bind to the slots of a container
 * (choice/choice.h) --- */

struct late_in {
	const struct node *node;
	const struct pool *pool;
	const struct ids *slots;
	struct gpu_set gpus, busy_gpus;
	const bool *is_free; /* by pool index */
};

static bool could_have(void *ctx, const struct pool_dev *dev)
{
	const struct late_in *in = ctx;

	return in->is_free[dev - in->pool->devs];
}

/* Nothing here is slow to leave a pod. */
static bool may_have(void *ctx, const struct pool_dev *dev, const char **ret_why)
{
	(void)ctx;
	(void)dev;
	(void)ret_why;
	return true;
}

/* Pool indices, one for each slot, in the arena; NULL: too few VFs are free. */
static int *bind_late(const struct late_in *in, struct arena *arena)
{
	struct late_in ctx = *in;
	struct binding b = { .node = in->node,
			     .slots = arena_array(arena, in->slots->n, sizeof(*b.slots)),
			     .n_slots = in->slots->n,
			     .gpus = in->gpus,
			     .busy_gpus = in->busy_gpus,
			     .could = could_have,
			     .may = may_have,
			     .ctx = &ctx };
	int *devs = arena_array(arena, in->slots->n, sizeof(*devs));
	struct err err = { 0 };
	struct ledger_decision decision; /* not reported */
	unsigned number;

	for (size_t i = 0; i < b.n_slots; i++) {
		b.slots[i] = (struct binding_slot) { .id = in->slots->v[i], .pool = in->pool };
		pool_slot_parse(in->pool->cfg->resource, b.slots[i].id, &b.slots[i].numa, &number);
	}
	if (choice_for_slots(&b, arena, &decision, &err) < 0)
		return NULL;
	for (size_t i = 0; i < b.n_slots; i++)
		devs[i] = (int)(b.slots[i].dev - in->pool->devs);
	return devs;
}

/* --- the world under a policy --- */

#define NO_POD (-1)

struct holding {
	struct ids gpus, listed; /* listed: the ids that the kubelet knows, VFs or slots */
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
	/* of its own for each resource: the same GPUs are drawn whichever policy chooses the VFs */
	uint64_t gpu_random, listed_random;
	struct idset gpus_taken, listed_taken;
	int *gpu_owner;		  /* by position in the GPU plugin's list: a pod, or NO_POD */
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
	int *free_vfs, *vfs; /* pool indices: before it came, and those that it got */
	size_t n_free, n_vfs;
	const struct ids *prediction; /* NULL: none was made */
};

/* --- known facts --- */

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

/* As the daemon does it: the GPU plugin's own GetPreferredAllocation, for the GPUs that are free by
 * PodResources. */
static const struct ids *predict(struct admission *ad)
{
	const struct vendor *g = ad->w->gpus;
	struct preferred_container ask = {
		.size = (int)(ad->w->policy->flags & SIM_NO_SPECS ? ad->pod->vfs : ad->pod->gpus)
	};
	struct ids *out;

	if (ad->w->policy->flags & (SIM_MUTE | SIM_DRAWN))
		return NULL;
	ask.available.v = arena_array(ad->arena, g->list.n, sizeof(char *));
	for (size_t i = 0; i < g->list.n; i++) {
		if (ad->w->gpu_owner[i] == NO_POD)
			ask.available.v[ask.available.n++] = g->list.v[i].id;
	}
	if (ask.available.n < (size_t)ask.size)
		return NULL;
	out = arena_alloc(ad->arena, sizeof(*out));
	*out = sim_vendor_prefer(g, &ask, ad->arena);
	return out;
}

/* The container, by PodResources and the prediction. */
static struct identified know(struct admission *ad)
{
	const struct world *w = ad->w;
	int *busy = arena_array(ad->arena, w->gpus->list.n, sizeof(*busy));
	struct identified who = { .busy_gpus.v = busy };
	const struct ids *gpus = &ad->gpus;

	if (!gpus->n)
		gpus = ad->prediction = predict(ad);
	for (size_t i = 0; i < w->gpus->list.n; i++) {
		if (w->gpu_owner[i] != NO_POD && w->gpu_owner[i] != ad->number)
			busy[who.busy_gpus.n++] = w->gpus->pci[i];
	}
	if (!gpus && w->policy->flags & SIM_DRAWN)
		who.n_drawn = ad->pod->gpus;
	if (gpus) {
		who.found = true;
		who.gpus.v = pci_of(w->gpus, gpus, ad->arena);
		who.gpus.n = gpus->n;
	}
	return who;
}

/* --- our plugin --- */

/* Late binding has no wish: which slots the kubelet draws is without influence. */
static const struct ids *prefer_listed(struct admission *ad, const struct preferred_container *ask)
{
	const struct world *w = ad->w;
	struct ids *out = arena_alloc(ad->arena, sizeof(*out));
	struct identified who;

	if (w->policy->binding != SIM_EARLY)
		return NULL;
	who = know(ad);
	*out = choice_decide(w->in->node, w->in->pool, ask, &who, NULL, ad->arena, NULL);
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
			      .busy_gpus = who.busy_gpus,
			      .is_free = is_free };

	for (size_t i = 0; i < ad->n_free; i++)
		is_free[ad->free_vfs[i]] = true;
	ad->vfs = bind_late(&in, ad->arena);
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
	uint64_t nodes = sim_devman_nodes(gpus.devices) | sim_devman_nodes(listed.devices);
	const struct numa_ask asks[] = { sim_devman_hint(&gpus, ad->pod->gpus, ad->arena),
					 sim_devman_hint(&listed, ad->pod->vfs, ad->arena) };
	struct numa_verdict v = sim_numa_judge(w->policy->numa, nodes, asks, ARRAY_LEN(asks));

	ad->has_affinity = v.has_affinity;
	ad->affinity = v.affinity;
}

static enum devman_step begin(struct admission *ad, struct devman_pick *pick,
			      const struct device_list *devices, struct idset *taken, size_t count,
			      uint64_t *random)
{
	struct devman_stock stock = { .devices = devices, .taken = taken };

	return sim_devman_begin(pick, &stock, taken, count, ad->has_affinity ? &ad->affinity : NULL,
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
		if (!(w->policy->flags & SIM_DRAWN))
			preferred = sim_vendor_prefer(w->gpus, &pick.ask, ad->arena);
		sim_devman_finish(&pick, w->policy->flags & SIM_DRAWN ? NULL : &preferred);
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
		sim_devman_finish(&pick, prefer_listed(ad, &pick.ask));
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
		sim_idset_remove(&w->gpus_taken, h->gpus.v[i]);
		w->gpu_owner[gpu_at(w->gpus, h->gpus.v[i])] = NO_POD;
	}
	for (size_t i = 0; i < h->listed.n; i++)
		sim_idset_remove(&w->listed_taken, h->listed.v[i]);
	for (size_t i = 0; i < h->n_vfs; i++)
		w->vf_owner[h->vfs[i]] = NO_POD;
	*h = (struct holding) { 0 };
}

static void count(const struct admission *ad)
{
	struct score_in in = { .node = ad->w->in->node,
			       .pool = ad->w->in->pool,
			       .gpus.v = ad->gpu_pci,
			       .gpus.n = ad->gpus.n,
			       .free_vfs = ad->free_vfs,
			       .n_free = ad->n_free };
	struct score s = sim_score_container(&in, ad->vfs, ad->n_vfs, ad->arena);
	struct sim_result *r = ad->w->result;
	bool right = ad->prediction && ad->prediction->n == ad->gpus.n;

	r->pods++;
	r->pairs += s.pairs;
	r->best += s.best;
	for (int i = 0; i < ALIGN_RANKS; i++) {
		r->got.n[i] += s.got.n[i];
		r->optimum.n[i] += s.optimum.n[i];
	}
	r->load += sim_percent((double)ad->pod->busy_gpus, ad->w->gpus->list.n * ad->w->n_pods);
	r->predicted += ad->prediction != NULL;
	for (size_t i = 0; right && i < ad->gpus.n; i++)
		right = list_has((const char *const *)ad->prediction->v, ad->prediction->n,
				 ad->gpus.v[i]);
	r->predicted_right += right;
}

static void arrive(struct world *w, size_t number, const struct stream_pod *pod)
{
	_cleanup_arena_ struct arena *arena = arena_new(64 * 1024);
	struct admission ad = { .w = w, .pod = pod, .number = (int)number, .arena = arena };

	ad.free_vfs = arena_array(arena, w->in->pool->n_devs, sizeof(*ad.free_vfs));
	for (size_t i = 0; i < w->in->pool->n_devs; i++) {
		if (w->vf_owner[i] == NO_POD && w->in->pool->devs[i].healthy)
			ad.free_vfs[ad.n_free++] = (int)i;
	}
	judge_numa(&ad);
	if (!allocate(&ad) || !(w->policy->binding == SIM_LATE ? bind_slots : name_vfs)(&ad)) {
		/* A pod that is refused gives back all that it had got. */
		ad.n_vfs = 0;
		hold(&ad);
		leave(w, number);
		w->result->refused++;
		return;
	}
	hold(&ad);
	count(&ad);
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
	if (w->policy->binding == SIM_LATE) {
		struct slot_list slots = pool_slots(&view, w->arena);

		w->listed = list_slots(&slots, w->arena);
	} else {
		w->listed = choice_list(pool, w->arena);
	}
	w->gpu_owner = arena_array(w->arena, w->gpus->list.n, sizeof(*w->gpu_owner));
	w->vf_owner = arena_array(w->arena, pool->n_devs, sizeof(*w->vf_owner));
	w->holdings = arena_array(w->arena, w->n_pods, sizeof(*w->holdings));
	for (size_t i = 0; i < w->gpus->list.n; i++)
		w->gpu_owner[i] = NO_POD;
	for (size_t i = 0; i < pool->n_devs; i++)
		w->vf_owner[i] = NO_POD;
}

static void run_day(const struct sim_in *in, const struct vendor *gpus, const struct stream *day,
		    struct sim_result *ret)
{
	_cleanup_arena_ struct arena *arena = arena_new(1 << 20);
	struct world w = { .in = in,
			   .policy = ret->policy,
			   .arena = arena,
			   .gpus = gpus,
			   .n_pods = day->n_pods,
			   .result = ret };

	open_world(&w);
	for (size_t i = 0; i < day->n_pods; i++) {
		for (size_t k = 0; k < day->pods[i].n_leave; k++)
			leave(&w, day->pods[i].leave[k]);
		arrive(&w, i, &day->pods[i]);
	}
	sim_idset_done(&w.gpus_taken);
	sim_idset_done(&w.listed_taken);
}

const struct sim_result *sim_run(const struct sim_in *in, size_t *ret_n, struct arena *arena)
{
	struct sim_result *results = arena_array(arena, ARRAY_LEN(policies), sizeof(*results));
	struct stream_in day = in->day;
	const struct vendor *gpus;
	struct stream pods;

	day.gpu_resource = sim_vendor_resource(in->node->inv);
	day.vf_resource = in->pool->cfg->resource;
	gpus = sim_vendor_new(in->node->inv, in->node->topo, day.gpu_resource, arena);
	day.gpus = gpus->list.n;
	day.vfs = 0;
	for (size_t i = 0; i < in->pool->n_devs; i++)
		day.vfs += in->pool->devs[i].healthy;
	pods = sim_stream_new(&day, arena);
	if (!pods.n_pods)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		results[i] = (struct sim_result) { .policy = &policies[i] };
		run_day(in, gpus, &pods, &results[i]);
	}
	*ret_n = ARRAY_LEN(policies);
	return results;
}
