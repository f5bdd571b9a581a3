#include "daemon/facts-internal.h"

#include "base/arena.h"
#include "daemon/served-internal.h"
#include "holds/holds.h"
#include "kubeclient/podres.h"
#include "ledger/ledger.h"
#include "plugin/plugin.h"
#include "pods/gpus.h"
#include "pods/holders.h"
#include "pool/node.h"
#include "report/facts.h"
#include "status/stats.h"
#include "status/status.h"
#include "tracker/tracker.h"

static const struct status_pool *pools_of(const struct served *served, struct arena *a,
					  size_t *ret_n)
{
	const struct plugin *p;
	struct status_pool *v;
	const char *resource;
	size_t n = 0;

	while (served_at(served, n, &resource))
		n++;
	v = arena_array(a, n, sizeof(*v));
	for (size_t i = 0; (p = served_at(served, i, &resource)); i++) {
		const struct plugin_stats s = plugin_stats(p);

		v[i] = (struct status_pool) {
			.resource = arena_strdup(a, resource),
			.served = plugin_is_served(p),
			.registered = plugin_is_registered(p),
			.problem = plugin_problem(p) ? arena_strdup(a, plugin_problem(p)) : NULL,
			.registrations = s.endpoint.registrations,
			.register_failures = s.endpoint.register_failures,
			.pod_resources_failures = s.pod_list_failures
		};
	}
	*ret_n = n;
	return v;
}

/* Without our own resources: hundreds of VFs need not be looked at to find that they are not GPUs.
 */
static struct pod_container without_ours(const struct node *node, const struct pod_container *c,
					 struct arena *a)
{
	struct pod_container others = *c;

	others.held = arena_array(a, c->n_held, sizeof(*others.held));
	others.n_held = 0;
	for (size_t i = 0; i < c->n_held; i++) {
		if (!node_pool(node, c->held[i].resource) &&
		    !node_shared(node, c->held[i].resource))
			others.held[others.n_held++] = c->held[i];
	}
	return others;
}

/* ret_unknown: a sentence about the first that cannot be identified. */
static size_t count_gpus(const struct node *node, const struct pod_list *pods, struct arena *a,
			 int *ret, const char **ret_unknown)
{
	size_t n = 0;

	for (size_t p = 0; p < pods->n; p++) {
		for (size_t c = 0; c < pods->v[p].n_containers; c++) {
			struct pod_container others =
				without_ours(node, &pods->v[p].containers[c], a);
			struct pods_gpus held = pods_gpus(node, &others, "", a);

			for (size_t i = 0; ret && i < held.n; i++)
				ret[n + i] = held.v[i];
			if (held.unknown && !*ret_unknown)
				*ret_unknown = held.unknown;
			n += held.n;
		}
	}
	return n;
}

static void find_gpus(const struct plugin_env *env, struct status_service *s, struct arena *a)
{
	_cleanup_arena_ struct arena *scratch = arena_new(16 * 1024);
	const struct node *node = tracker_node(env->tracker);
	const struct pod_list *pods;
	const char *unknown = NULL;
	int *v;

	s->gpus_known =
		env->podres && node && kubeclient_podres_state(env->podres).support >= PODRES_LIST;
	if (!s->gpus_known)
		return;
	pods = pods_holders_view(env->holders, NULL);
	v = arena_array(a, count_gpus(node, pods, scratch, NULL, &unknown), sizeof(*v));
	s->n_busy_gpus = count_gpus(node, pods, scratch, v, &unknown);
	s->busy_gpus = v;
	s->gpus_unknown = unknown ? arena_strdup(a, unknown) : NULL;
}

static const struct holds_verdict *judge_pool(struct tracker *k, const struct pool *pool,
					      bool closely, struct arena *a)
{
	struct holds_verdict *v = arena_array(a, pool->n_devs, sizeof(*v));

	for (size_t i = 0; i < pool->n_devs; i++) {
		v[i] = tracker_judge(k, pool, &pool->devs[i], closely, a);
		if (v[i].why)
			v[i].why = arena_strdup(a, v[i].why);
	}
	return v;
}

static const struct holds_verdict *const *judge(struct tracker *k, bool closely, struct arena *a)
{
	const struct node *node = tracker_node(k);
	const struct holds_verdict **v = arena_array(a, node->n_pools + node->n_shared, sizeof(*v));

	for (size_t i = 0; i < node->n_pools; i++)
		v[i] = judge_pool(k, &node->pools[i], closely, a);
	for (size_t i = 0; i < node->n_shared; i++)
		v[node->n_pools + i] = judge_pool(k, &node->shared[i], closely, a);
	return v;
}

static const struct ledger_hold *unknown_of(const struct holds *h, struct arena *a, size_t *ret_n)
{
	const struct ledger_owner *owner;
	struct ledger_hold *v;
	const char *slot;
	size_t n = 0;

	while (holds_unknown(h, n, &owner))
		n++;
	v = arena_array(a, n, sizeof(*v));
	for (size_t i = 0; (slot = holds_unknown(h, i, &owner)); i++)
		v[i] = (struct ledger_hold) { .slot = arena_strdup(a, slot),
					      .owner = ledger_copy_owner(owner, a) };
	*ret_n = n;
	return v;
}

const struct status_service *daemon_service_facts(const struct plugin_env *env,
						  const struct served *served, bool closely,
						  struct arena *a)
{
	struct status_service *s = arena_alloc(a, sizeof(*s));
	struct tracker_disk disk;

	if (!served || !env->tracker || !tracker_node(env->tracker))
		return NULL;
	disk = tracker_disk(env->tracker);
	s->pools = pools_of(served, a, &s->n_pools);
	s->stats = env->stats ? stats_copy(env->stats, a, &s->n_stats) : NULL;
	s->verdicts = judge(env->tracker, closely, a);
	s->unknown = unknown_of(tracker_holds(env->tracker), a, &s->n_unknown);
	find_gpus(env, s, a);
	s->pods_unseen = tracker_unseen(env->tracker, a);
	s->settled = holds_status(tracker_holds(env->tracker)).settled;
	s->ledger_has_file = disk.has_file;
	s->ledger_stored = disk.stored;
	s->ledger_failing = disk.failing;
	s->ledger_late = disk.late;
	return s;
}

struct report_facts *daemon_facts_new(const struct plugin_env *env, const struct served *served,
				      uint64_t known)
{
	struct arena *a = arena_new(8 * 1024);
	struct report_facts *f = arena_alloc(a, sizeof(*f));
	const struct ledger *ledger;

	f->arena = a;
	f->service = daemon_service_facts(env, served, false, a);
	if (!f->service)
		return f;
	ledger = tracker_ledger(env->tracker);
	f->node = node_ref((struct node *)tracker_node(env->tracker));
	f->ledger_generation = ledger_generation(ledger);
	if (f->ledger_generation != known)
		f->ledger = ledger_copy(ledger);
	return f;
}
