/*
 * VFs before GPUs: which GPUs will the container get? The kubelet will ask the GPU plugin for a
 * preference among those that are free, so we ask it the same before.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pending.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubeclient/podres.h"
#include "plugin/preferred_call.h"
#include "pods/holders.h"
#include "pool/node.h"

/* What plugins offer changes seldom, and all clients of PodResources share one rate limit. */
#define ALLOCATABLE_MS 10000

static void unknown(struct preferred_call *look, const char *why)
{
	plugin_preferred_answer(look, LEDGER_GPUS_UNKNOWN, arena_strdup(look->arena, why));
}

static void got_preference(void *arg, const struct ids *ids, bool random, const char *why)
{
	struct preferred_call *look = pending_end(arg);
	int *gpus;
	size_t n;

	if (!look)
		return;
	if (!ids) {
		look->who.n_drawn = random ? look->n_wanted : 0;
		unknown(look, why);
		return;
	}
	n = gpu_question_gpus(&look->question, ids, look->plugin->node->inv, look->arena, &gpus);
	if (!n) {
		unknown(look, "the GPU plugin prefers devices that are no GPUs of this node");
		return;
	}
	look->who.gpus = gpus;
	look->who.n_gpus = n;
	plugin_preferred_answer(
		look, LEDGER_GPUS_PREDICTED,
		arena_printf(look->arena, "%s's GetPreferredAllocation", look->question.resource));
}

/* --- NUMA: what the Topology Manager will leave of the GPUs --- */

static void add_node(int *nodes, size_t *n, int node)
{
	for (size_t i = 0; i < *n; i++) {
		if (nodes[i] == node)
			return;
	}
	nodes[(*n)++] = node;
}

static bool is_listed(const int *nodes, size_t n, int node)
{
	for (size_t i = 0; i < n; i++) {
		if (nodes[i] == node)
			return true;
	}
	return false;
}

/*
 * The nodes of the VFs on offer, if others that are free are not on offer: the kubelet keeps them
 * back because its Topology Manager has decided on these nodes, and will do the same with GPUs. 0:
 * it has not.
 */
static size_t nodes_decided(const struct preferred_call *look, int **ret)
{
	const struct ids *offered = &look->request.v[0].available;
	const struct pool *pool = plugin_pool(look->plugin);
	const struct ledger *l = plugin_ledger(look->plugin);
	size_t n = 0;

	*ret = arena_array(look->arena, offered->n, sizeof(**ret));
	for (size_t i = 0; i < offered->n; i++) {
		const struct pool_dev *dev = pool_find(pool, offered->v[i]);

		if (dev && dev->numa < 0)
			return 0;
		if (dev)
			add_node(*ret, &n, dev->numa);
	}
	for (size_t i = 0; n && l && i < pool->n_devs; i++) {
		const struct pool_dev *dev = &pool->devs[i];

		if (dev->healthy && !is_listed(*ret, n, dev->numa) && !ledger_find(l, dev->id))
			return n;
	}
	return 0;
}

/* --- the question --- */

/* The resource of its GPUs by its spec, and how many; else whatever GPUs there are, as many as VFs:
 * most jobs ask so. */
static bool ask(struct preferred_call *look, const struct pod_container *allocatable,
		const char **why)
{
	const struct spec_container *spec = look->who.spec;
	const struct pod_list *held = holders_view(look->plugin->env->holders);
	const char *ours = look->plugin->resource;
	int *nodes;
	size_t n_nodes = nodes_decided(look, &nodes);

	if (!spec) {
		look->n_wanted = (size_t)look->request.v[0].size;
		return gpu_question_ask(allocatable, held, NULL, ours, look->n_wanted, nodes,
					n_nodes, look->plugin->node->inv, look->arena,
					&look->question, why);
	}
	for (size_t i = 0; i < spec->n_limits; i++) {
		const struct spec_limit *limit = &spec->limits[i];

		look->n_wanted = limit->count > 0 ? (size_t)limit->count : 0;
		if (!str_eq(limit->resource, ours) &&
		    gpu_question_ask(allocatable, held, limit->resource, ours, look->n_wanted,
				     nodes, n_nodes, look->plugin->node->inv, look->arena,
				     &look->question, why))
			return true;
	}
	return false;
}

static void ask_gpu_plugin(struct preferred_call *look)
{
	const struct pod_list *allocatable = holders_view(look->plugin->allocatable);
	const char *why = "nothing is allocatable";

	if (!ask(look, allocatable->v[0].containers, &why)) {
		unknown(look, why);
		return;
	}
	gpuplugin_prefer(look->plugin->env->gpus, look->question.resource, &look->question.free,
			 look->n_wanted, plugin_preferred_half_time(look), got_preference,
			 pending_new(look, &look->gpus_asked));
}

static void got_allocatable(void *arg, enum podres_result result, const struct pod_list *pods,
			    const char *why)
{
	struct preferred_call *look = pending_end(arg);

	if (!look)
		return;
	if (result != PODRES_OK) {
		unknown(look, why);
		return;
	}
	look->plugin->allocatable_ms = clock_mono_ms();
	holders_hear(look->plugin->allocatable,
		     &(struct pods_said) {
			     .all = true, .pods = pods, .asked_ms = look->plugin->allocatable_ms });
	ask_gpu_plugin(look);
}

/* It asks for nothing but ours: no GPU will come. */
static bool wants_no_gpus(const struct preferred_call *look)
{
	const struct spec_container *spec = look->who.spec;

	return spec && spec->n_limits < 2;
}

void plugin_preferred_predict(struct preferred_call *look, const char *why)
{
	struct plugin *p = look->plugin;

	if (!p->env->gpus || look->who.ambiguous || wants_no_gpus(look))
		unknown(look, why);
	else if (p->allocatable_ms && clock_mono_ms() - p->allocatable_ms < ALLOCATABLE_MS)
		ask_gpu_plugin(look);
	else
		podres_allocatable(p->env->podres, plugin_preferred_half_time(look),
				   got_allocatable, pending_new(look, &look->pods_asked));
}
