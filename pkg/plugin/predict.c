/*
 * VFs before GPUs: the GPUs are predicted. The kubelet will ask the GPU plugin for a preference
 * among the free GPUs, so railmated asks the same before.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/pending.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubeclient/gpuplugin.h"
#include "kubeclient/podres.h"
#include "plugin/preferred_call-internal.h"
#include "pods/gpus.h"
#include "pods/holders.h"
#include "pool/node.h"

/* Allocatable devices change seldom, and all clients of PodResources share one rate limit. */
#define ALLOCATABLE_MS 10000

static void unknown(struct preferred_call *pc, const char *why)
{
	plugin_preferred_answer(pc, LEDGER_GPUS_UNKNOWN, arena_strdup(pc->arena, why));
}

static void got_preference(void *arg, const struct ids *ids, bool random, const char *why)
{
	struct preferred_call *pc = pending_end(arg);
	struct pods_gpus gpus;
	struct held preferred;

	if (!pc)
		return;
	if (!ids) {
		pc->who.n_drawn = random ? pc->n_wanted : 0;
		unknown(pc, why);
		return;
	}
	preferred = (struct held) { pc->question.resource, *ids };
	gpus = pods_gpus(pc->plugin->node,
			 &(struct pod_container) { .held = &preferred, .n_held = 1 }, "",
			 pc->arena);
	if (!gpus.n || gpus.n + gpus.n_unknown != ids->n) {
		unknown(pc, "the GPU plugin prefers devices that are not GPUs of this node");
		return;
	}
	pc->who.gpus = (struct gpu_set) { gpus.v, gpus.n, gpus.n_unknown };
	plugin_preferred_answer(
		pc, LEDGER_GPUS_PREDICTED,
		arena_printf(pc->arena, "%s's GetPreferredAllocation", pc->question.resource));
}

/* --- NUMA: the GPUs that the Topology Manager will leave --- */

/*
 * The NUMA nodes of the offered VFs, if free VFs of other nodes are not offered: the kubelet's
 * Topology Manager has decided on these nodes, and will keep back GPUs of others, too. 0: it has
 * not.
 */
static size_t nodes_decided(const struct preferred_call *pc, int **ret)
{
	const struct ids *offered = &pc->request.v[0].available;
	const struct pool *pool = plugin_pool(pc->plugin);
	const bool *free = plugin_free_vfs(pc->plugin, pool, pc->arena);
	size_t n = 0;

	*ret = arena_array(pc->arena, offered->n, sizeof(**ret));
	for (size_t i = 0; i < offered->n; i++) {
		const struct pool_dev *dev = pool_find(pool, offered->v[i]);

		if (dev && dev->numa < 0)
			return 0;
		if (dev && !list_has_int(*ret, n, dev->numa))
			(*ret)[n++] = dev->numa;
	}
	for (size_t i = 0; n && free && i < pool->n_devs; i++) {
		if (free[i] && !list_has_int(*ret, n, pool->devs[i].numa))
			return n;
	}
	return 0;
}

/* --- the question --- */

/* The resource and number of GPUs by the container's spec; else any GPUs, as many as VFs: most jobs
 * ask so. */
static bool ask(struct preferred_call *pc, const struct pod_container *allocatable,
		const char **why)
{
	const struct spec_container *spec = pc->who.spec;
	const struct pod_list *held = pods_holders_view(pc->plugin->env->holders, NULL);
	const char *ours = pc->plugin->resource;
	int *nodes;
	size_t n_nodes = nodes_decided(pc, &nodes);

	if (!spec) {
		pc->n_wanted = (size_t)pc->request.v[0].size;
		return pods_gpu_question(allocatable, held, NULL, ours, pc->n_wanted, nodes,
					 n_nodes, pc->plugin->node->inv, pc->arena, &pc->question,
					 why);
	}
	for (size_t i = 0; i < spec->n_limits; i++) {
		const struct spec_limit *limit = &spec->limits[i];

		pc->n_wanted = limit->count > 0 ? (size_t)limit->count : 0;
		if (!str_eq(limit->resource, ours) &&
		    pods_gpu_question(allocatable, held, limit->resource, ours, pc->n_wanted, nodes,
				      n_nodes, pc->plugin->node->inv, pc->arena, &pc->question,
				      why))
			return true;
	}
	return false;
}

static void ask_gpu_plugin(struct preferred_call *pc)
{
	const struct pod_list *allocatable = pods_holders_view(pc->plugin->allocatable, NULL);
	const char *why = "nothing is allocatable";

	if (!ask(pc, allocatable->v[0].containers, &why)) {
		unknown(pc, why);
		return;
	}
	kubeclient_gpuplugin_prefer(
		pc->plugin->env->gpus, pc->question.resource, &pc->question.free, pc->n_wanted,
		plugin_preferred_half_time(pc), got_preference, pending_new(pc, &pc->gpus_asked));
}

static void got_allocatable(void *arg, enum podres_result result, const struct pod_list *pods,
			    const char *why)
{
	struct preferred_call *pc = pending_end(arg);

	if (!pc)
		return;
	if (result != PODRES_OK) {
		unknown(pc, why);
		return;
	}
	pc->plugin->allocatable_ms = clock_mono_ms();
	pods_holders_hear(pc->plugin->allocatable,
			  &(struct pods_said) { .all = true,
						.pods = pods,
						.asked_ms = pc->plugin->allocatable_ms });
	ask_gpu_plugin(pc);
}

void plugin_preferred_predict(struct preferred_call *pc, const char *why)
{
	const struct spec_container *spec = pc->who.spec;
	bool wants_only_ours = spec && spec->n_limits < 2; /* no GPU will come */
	struct plugin *p = pc->plugin;

	if (!p->env->gpus || pc->who.ambiguous || wants_only_ours)
		unknown(pc, why);
	else if (p->allocatable_ms && clock_mono_ms() - p->allocatable_ms < ALLOCATABLE_MS)
		ask_gpu_plugin(pc);
	else
		kubeclient_podres_ask(
			p->env->podres,
			&(struct podres_question) { .kind = PODRES_ASK_ALLOCATABLE,
						    .timeout_ms = plugin_preferred_half_time(pc) },
			got_allocatable, pending_new(pc, &pc->pods_asked));
}
