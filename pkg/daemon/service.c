/*
 * What the kubelet is served with, on the rpc thread: the plugins of all pools and what they
 * share, and copies of what is known for those who look. daemon.c opens and closes it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "daemon/daemon.h"
#include "daemon/service-internal.h"
#include "daemon/state-internal.h"
#include "dra/dra.h"
#include "grant/records.h"
#include "grant/vfprobe.h"
#include "holds/holds.h"
#include "kubeapi/events.h"
#include "kubeapi/objects.h"
#include "kubeapi/specs.h"
#include "kubeclient/gpuplugin.h"
#include "kubeclient/offer.h"
#include "kubeclient/podres.h"
#include "kubeclient/runtime.h"
#include "latebind/latebind.h"
#include "ledger/ledger.h"
#include "plugin/plugin.h"
#include "pods/gpus.h"
#include "pods/holders.h"
#include "pool/node.h"
#include "report/facts.h"
#include "rpc/rpc.h"
#include "status/stats.h"
#include "status/status.h"
#include "tracker/cgroup.h"
#include "tracker/tracker.h"

/* That a pod was refused counts for so long. */
#define REFUSED_MS 600000

struct entry {
	char *resource;
	bool shared;
	enum pool_binding binding;
	struct plugin *plugin;
};

struct service {
	struct service_env env;
	char *registry_dir, *pod_resources, *checkpoint, host[256];
	const char *plugin_dirs[2]; /* of all device plugins */
	struct stats *stats;	    /* rpc thread; NULL: not counted */

	/* rpc thread */
	struct plugin_env shared; /* by all plugins */
	struct entry *served;	  /* with the first node: a plugin for each of its pools */
	size_t n_served, cap_served;
	bool serves;		 /* there was a first node */
	struct records *records; /* with the first node */
	struct dra *dra;	 /* serves all pools but the shared ones; NULL: plugins do */
	char *config_error;	 /* why the configuration is refused; NULL: it is not */
	int64_t shares_ms;	 /* when a List was asked for to see shares; 0: never */
};

/* --- the plugins of all pools: which there are follows the node --- */

static bool is_wanted(const struct entry *e, const struct node *node)
{
	const struct pool *pool =
		e->shared ? node_shared(node, e->resource) : node_pool(node, e->resource);

	return pool && pool->cfg->binding == e->binding;
}

static void end_unwanted(struct service *s, const struct node *node)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_served; i++) {
		if (is_wanted(&s->served[i], node)) {
			s->served[kept++] = s->served[i];
			continue;
		}
		plugin_end(s->served[i].plugin);
		free(s->served[i].resource);
	}
	s->n_served = kept;
}

static bool has(const struct service *s, const char *resource, bool shared)
{
	for (size_t i = 0; i < s->n_served; i++) {
		if (s->served[i].shared == shared && !strcmp(s->served[i].resource, resource))
			return true;
	}
	return false;
}

static void add(struct service *s, const struct pool_config *pool, bool shared)
{
	if (has(s, pool->resource, shared))
		return;
	s->served = xgrow(s->served, &s->cap_served, s->n_served + 1, sizeof(*s->served));
	s->served[s->n_served++] =
		(struct entry) { .resource = xstrdup(pool->resource),
				 .shared = shared,
				 .binding = pool->binding,
				 .plugin = shared ? plugin_new_shared(&s->shared, pool->resource)
						  : plugin_new(&s->shared, pool->resource) };
}

/* A plugin for each pool of the node, with the node. The plugin of a pool which is not there any
 * more, or binds otherwise now, ends: the kubelet knows its devices by other ids. */
static void update_served(struct service *s, struct node *node)
{
	end_unwanted(s, node);
	for (size_t i = 0; !s->dra && i < node->n_pools; i++)
		add(s, node->pools[i].cfg, false);
	for (size_t i = 0; i < node->n_shared; i++)
		add(s, node->shared[i].cfg, true);
	for (size_t i = 0; i < s->n_served; i++)
		plugin_update(s->served[i].plugin, node);
	if (s->dra)
		dra_update(s->dra, node);
	s->serves = true;
}

static void free_served(struct service *s)
{
	for (size_t i = 0; i < s->n_served; i++) {
		plugin_free(s->served[i].plugin);
		free(s->served[i].resource);
	}
	free(STEAL(s->served));
	s->n_served = s->cap_served = 0;
	s->serves = false;
}

/* --- what the rpc thread knows, copied for metrics, the page and the probes (report/facts.h) ---
 */

/* The pools that DRA serves. */
static size_t claimed_pools(const struct service *s, struct arena *a, struct status_pool *v)
{
	const struct node *node = s->dra ? tracker_node(s->shared.tracker) : NULL;
	const char *problem = s->dra ? dra_problem(s->dra) : NULL;
	size_t n = 0;

	for (; node && n < node->n_pools; n++)
		v[n] = (struct status_pool) { .resource =
						      arena_strdup(a, node->pools[n].cfg->resource),
					      .served = node->pools[n].n_devs > 0,
					      .registered = !problem,
					      .problem = arena_strdup(a, problem) };
	return n;
}

static const struct status_pool *pools_of(const struct service *service, struct arena *a,
					  size_t *ret_n)
{
	const struct node *node = tracker_node(service->shared.tracker);
	struct status_pool *v =
		arena_array(a, service->n_served + (node ? node->n_pools : 0), sizeof(*v));
	size_t first = claimed_pools(service, a, v);
	int64_t now = clock_mono_ms();

	for (size_t i = 0; i < service->n_served; i++) {
		const struct plugin *p = service->served[i].plugin;
		const struct plugin_stats s = plugin_stats(p);

		v[first + i] = (struct status_pool) {
			.resource = arena_strdup(a, service->served[i].resource),
			.served = plugin_is_served(p),
			.registered = plugin_is_registered(p),
			.problem = plugin_problem(p) ? arena_strdup(a, plugin_problem(p)) : NULL,
			.registrations = s.endpoint.registrations,
			.register_failures = s.endpoint.register_failures,
			.refused = s.refused_ms && now - s.refused_ms < REFUSED_MS,
			.pod_resources_failures = s.pod_list_failures
		};
	}
	*ret_n = first + service->n_served;
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

/* ret NULL: counted only. */
static size_t shares_of(const struct node *node, const struct pod *pod, struct arena *a,
			struct status_share *ret)
{
	size_t n = 0;

	for (size_t c = 0; c < pod->n_containers; c++) {
		const struct pod_container *one = &pod->containers[c];

		for (size_t i = 0; i < one->n_held; i++) {
			const struct held *h = &one->held[i];

			if (!node_shared(node, h->resource))
				continue;
			if (ret)
				ret[n] = (struct status_share) { arena_strdup(a, h->resource),
								 arena_strdup(a, pod->ns),
								 arena_strdup(a, pod->name),
								 arena_strdup(a, one->name),
								 h->ids.n };
			n++;
		}
	}
	return n;
}

static void find_shares(const struct plugin_env *env, struct status_service *s, struct arena *a)
{
	const struct node *node = tracker_node(env->tracker);
	const struct pod_list *pods;
	struct status_share *v;
	size_t n = 0;

	if (!node->n_shared || !env->podres || !pods_holders_listed(env->holders))
		return;
	pods = pods_holders_view(env->holders, NULL);
	for (size_t i = 0; i < pods->n; i++)
		n += shares_of(node, &pods->v[i], a, NULL);
	s->shares = v = arena_array(a, n, sizeof(*v));
	for (size_t i = 0; i < pods->n; i++)
		s->n_shares += shares_of(node, &pods->v[i], a, v + s->n_shares);
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

/* NULL: nothing is served yet. closely: as tracker_judge(). In the arena. [rpc thread] */
static const struct status_service *facts_of(const struct service *service, bool closely,
					     struct arena *a)
{
	const struct plugin_env *env = &service->shared;
	struct status_service *s = arena_alloc(a, sizeof(*s));
	struct tracker_disk disk;

	if (!service->serves || !env->tracker || !tracker_node(env->tracker))
		return NULL;
	disk = tracker_disk(env->tracker);
	s->pools = pools_of(service, a, &s->n_pools);
	s->stats = env->stats ? stats_copy(env->stats, a, &s->n_stats) : NULL;
	s->verdicts = judge(env->tracker, closely, a);
	s->unknown = unknown_of(tracker_holds(env->tracker), a, &s->n_unknown);
	find_gpus(env, s, a);
	find_shares(env, s, a);
	s->pods_unseen = tracker_unseen(env->tracker, a);
	s->settled = holds_status(tracker_holds(env->tracker)).settled;
	s->ledger_has_file = disk.has_file;
	s->ledger_stored = disk.stored;
	s->ledger_failing = disk.failing;
	s->ledger_late = disk.late;
	return s;
}

/* --- what these share --- */

/* A runtime reads a spec that changed within some milliseconds (docs/design/kubelet.md §4). */
#define CDI_SETTLE_MS	20
#define PATIENCE_MIN_MS 2000
#define PATIENCE_MAX_MS 9000

/* Lists for shares are so far apart. */
#define SHARES_MS	 10000
#define SHARES_ANSWER_MS 2000

unsigned service_patience_ms(unsigned pod_resources_timeout_ms)
{
	if (pod_resources_timeout_ms < PATIENCE_MIN_MS)
		return PATIENCE_MIN_MS;
	return pod_resources_timeout_ms < PATIENCE_MAX_MS ? pod_resources_timeout_ms
							  : PATIENCE_MAX_MS;
}

/* --- on the rpc thread --- */

struct publication {
	struct service *s;
	struct node *node;
};

/* VFs drain, or drain no more, or are free; slots are bound. */
static void relist(void *arg)
{
	struct service *s = arg;

	if (s->records)
		grant_records_sweep(s->records);
	for (size_t i = 0; i < s->n_served; i++)
		plugin_relist(s->served[i].plugin);
	if (s->dra)
		dra_relist(s->dra);
}

static void note_unlisted(void *arg, const struct node_seed *seed)
{
	struct service *s = arg;

	unlisted_add(s->env.unlisted, seed);
}

static void note_of_latebind(void *arg, const char *event)
{
	log_event(LOG_LEVEL_WARN, "binding", event);
}

/* By the node, which is of the configuration that is in use. */
static const char *left_out(const struct service *s)
{
	const struct node *node = s->shared.tracker ? tracker_node(s->shared.tracker) : NULL;

	return node && node->cfg->n_errors ? node->cfg->errors[0] : NULL;
}

/* Its subscribers have heard it. */
static void listed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
}

/* PodResources alone tells who has shares of HCAs, and nothing else asks it for them: a List, when
 * somebody looks. The kubelet's checkpoint does not change when a pod ends. */
static void list_shares(struct service *s)
{
	const struct node *node = s->shared.tracker ? tracker_node(s->shared.tracker) : NULL;
	int64_t now = clock_mono_ms();

	if (!node || !node->n_shared || !s->shared.podres ||
	    kubeclient_podres_state(s->shared.podres).support == PODRES_NOTHING ||
	    (s->shares_ms && now - s->shares_ms < SHARES_MS))
		return;
	s->shares_ms = now;
	kubeclient_podres_ask(s->shared.podres,
			      &(struct podres_question) { .kind = PODRES_ASK_LIST_QUIETLY,
							  .timeout_ms = SHARES_ANSWER_MS },
			      listed, NULL);
}

static const char *node_name(char *buf, size_t size)
{
	const char *name = getenv("NODE_NAME");

	if (name && *name)
		return name;
	return gethostname(buf, size) == 0 ? buf : "";
}

static void write_document(void *arg, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(16 * 1024);
	struct service *s = arg;
	char host[256] = "";
	const struct status_facts facts = { .node_name = node_name(host, sizeof(host) - 1),
					    .node = tracker_node(s->shared.tracker),
					    .ledger = tracker_ledger(s->shared.tracker),
					    .service = facts_of(s, true, a),
					    .machine = { .config_error = s->config_error,
							 .config_left_out = left_out(s) } };

	status_write_document(&facts, out);
	list_shares(s);
}

static void note_differs(void *arg, const char *resource, const char *problem)
{
	const struct service *s = arg;

	events_of_offer(s->env.events, resource, problem);
}

static void note_placed(void *arg, const struct stats_placement *placement)
{
	const struct service *s = arg;

	events_of_placement(s->env.events, placement);
}

static void on_seen(void *ctx, const struct vf_state *states, size_t n)
{
	struct service *s = ctx;

	if (s->dra)
		dra_seen(s->dra, states, n);
}

/* Late pools need PodResources: only it shows which container starts. */
static struct latebind *open_latebind(struct service *s)
{
	const struct latebind_env env = { .rpc = s->env.rpc,
					  .root = s->env.root,
					  .podres = s->shared.podres,
					  .tracker = s->shared.tracker,
					  .specs = specs_source(s->env.specs),
					  .claims = specs_claims(s->env.specs),
					  .cdi_dir = s->env.opt->cdi_dir,
					  .checkpoint = s->checkpoint,
					  .rundir = s->shared.rundir,
					  .probe = s->shared.probe,
					  .vfprobe = s->shared.vfprobe,
					  .settle_ms = CDI_SETTLE_MS,
					  .ask_ms = s->shared.start_timeout_ms,
					  .stats = s->stats,
					  .placed = s->shared.placed,
					  .placed_ctx = s->shared.placed_ctx,
					  .seen = on_seen,
					  .seen_ctx = s,
					  .note = note_of_latebind,
					  .ctx = s };

	return s->shared.podres ? latebind_new(&env) : NULL;
}

/* Claims are bound late, and the API server knows them. */
static struct dra *open_dra(struct service *s)
{
	const struct dra_env env = { .rpc = s->env.rpc,
				     .driver = s->env.opt->dra_driver,
				     .node_name = s->env.opt->specs.node_name
							  ? s->env.opt->specs.node_name
							  : node_name(s->host, sizeof(s->host) - 1),
				     .kubelet_root = s->env.opt->kubelet_root,
				     .plugin_dir = s->env.opt->kubelet_dir,
				     .objects = s->env.objects,
				     .questions = s->env.questions,
				     .latebind = s->shared.latebind,
				     .tracker = s->shared.tracker,
				     .claims = specs_claims(s->env.specs) };

	return s->env.objects ? dra_open(&env) : NULL;
}

static int pod_runs(void *arg, const char *uid)
{
	const struct service *s = arg;

	return tracker_pod_runs(s->env.opt->cgroup_dir, uid);
}

/* With the first question: the kubelet is asked for its abilities before there is a node. */
struct podres *service_podres(struct service *s)
{
	if (s->shared.podres || !s->env.opt->pod_resources)
		return s->shared.podres;
	s->shared.podres = kubeclient_podres_open(s->env.rpc, s->pod_resources);
	s->shared.holders = pods_holders_new();
	kubeclient_podres_subscribe(s->shared.podres, pods_holders_hear, s->shared.holders);
	s->shared.endpoint.offer = kubeclient_offer_open(s->env.rpc, s->shared.podres);
	return s->shared.podres;
}

/* With the first node: the common parts of all plugins. */
static void open_on_rpc(struct service *s)
{
	const struct tracker_env env = { .rpc = s->env.rpc,
					 .root = s->env.root,
					 .changed = relist,
					 .unlisted = note_unlisted,
					 .ctx = s };
	const struct vfprobe_env probe = { .rpc = s->env.rpc,
					   .root = s->env.opt->root,
					   .netns_dir = s->env.opt->netns_dir,
					   .timeout_ms = s->shared.start_timeout_ms };

	service_podres(s);
	s->shared.tracker = state_make_tracker(s->env.state, &env);
	holdings_follow(s->env.holdings, s->shared.tracker);
	holds_event(tracker_holds(s->shared.tracker),
		    &(struct holds_event) { .kind = HOLDS_BLIND, .blind = !s->shared.podres },
		    tracker_now());
	tracker_follow(s->shared.tracker, s->shared.podres, s->checkpoint,
		       s->env.opt->cgroup_dir ? pod_runs : NULL, s);
	s->shared.vfprobe = grant_probe_new(&probe); /* VFs of containers that start */
	s->shared.rundir = s->env.opt->run_dir;
	s->shared.probe = s->env.probe;
	s->shared.latebind = open_latebind(s);
	s->dra = open_dra(s);
	if (s->env.opt->ask_runtime)
		s->shared.runtime = kubeclient_runtime_open(s->env.rpc, s->env.opt->root,
							    s->env.opt->runtime_socket);
	if (s->shared.podres && s->env.opt->predict_gpus)
		s->shared.gpus = kubeclient_gpuplugin_open(s->env.rpc, s->plugin_dirs,
							   ARRAY_LEN(s->plugin_dirs),
							   s->env.opt->gpu_plugin);
}

static bool claim_specs(void *latebind)
{
	return latebind_claim(latebind);
}

static void tidy_specs(void *latebind)
{
	latebind_tidy(latebind);
}

static void take_node(struct service *s, struct node *node)
{
	events_of_links(s->env.events, tracker_ledger(s->shared.tracker),
			tracker_node(s->shared.tracker), node);
	events_of_drivers(s->env.events, tracker_node(s->shared.tracker), node);
	events_condition_of_links(s->env.events, node);
	tracker_update(s->shared.tracker, node);
	if (s->shared.latebind)
		latebind_update(s->shared.latebind, node);
	if (!s->records) { /* before anything is given */
		struct latebind *b = s->shared.latebind;
		const struct records_env env = { .rpc = s->env.rpc,
						 .tracker = s->shared.tracker,
						 .claim = b ? claim_specs : NULL,
						 .tidy = b ? tidy_specs : NULL,
						 .specs = b,
						 .rundir = s->shared.rundir };

		s->records = grant_records_open(&env);
	}
	grant_records_sweep(s->records);
	update_served(s, node);
	holdings_published(s->env.holdings, node);
}

static void publish_on_rpc(void *arg)
{
	struct publication *p = arg;
	struct service *s = p->s;

	if (!s->shared.tracker)
		open_on_rpc(s);
	if (holdings_permits(s->env.holdings, p->node))
		take_node(s, p->node);
	node_unref(p->node);
	free(p);
}

struct refusal {
	struct service *s;
	char *error;
};

static void refuse_on_rpc(void *arg)
{
	struct refusal *r = arg;

	free(r->s->config_error);
	r->s->config_error = r->error;
	free(r);
}

static void kick_on_rpc(void *arg)
{
	struct service *s = arg;

	if (!s->shared.specs &&
	    specs_are_there(s->env.specs)) /* a kubelet came that has the Pods API */
		s->shared.specs = specs_source(s->env.specs);
	for (size_t i = 0; i < s->n_served; i++)
		plugin_kick(s->served[i].plugin);
	if (s->dra)
		dra_check(s->dra);
}

void service_close(struct service *s)
{
	if (!s)
		return;
	free_served(s);
	dra_close(STEAL(s->dra));
	holdings_follow(s->env.holdings, NULL);
	kubeclient_gpuplugin_close(STEAL(s->shared.gpus));
	kubeclient_runtime_close(STEAL(s->shared.runtime));
	grant_records_close(STEAL(s->records));
	latebind_free(STEAL(s->shared.latebind));
	tracker_free(STEAL(s->shared.tracker));
	grant_probe_free(STEAL(s->shared.vfprobe));
	kubeclient_offer_close(STEAL(s->shared.endpoint.offer));
	kubeclient_podres_close(STEAL(s->shared.podres));
	pods_holders_free(STEAL(s->shared.holders));
	specs_close(STEAL(s->env.specs));
	kubeapi_objects_close(STEAL(s->env.objects));
	kubeapi_objects_close(STEAL(s->env.questions));
}

struct report_facts *service_facts(struct service *s, uint64_t known)
{
	struct arena *a = arena_new(8 * 1024);
	struct report_facts *f = arena_alloc(a, sizeof(*f));
	const struct ledger *ledger;

	list_shares(s);
	f->arena = a;
	f->service = facts_of(s, false, a);
	if (!f->service)
		return f;
	ledger = tracker_ledger(s->shared.tracker);
	f->node = node_ref((struct node *)tracker_node(s->shared.tracker));
	f->ledger_generation = ledger_generation(ledger);
	if (f->ledger_generation != known)
		f->ledger = ledger_copy(ledger);
	return f;
}

static void warm_up_on_rpc(void *arg)
{
	struct service *s = arg;

	specs_warm_up(s->env.specs);
}

static void nothing(void *arg)
{
}

/* --- on the main thread --- */

struct service *service_new(const struct service_env *env)
{
	const struct daemon_options *opt = env->opt;
	struct service *s = xcalloc(1, sizeof(*s));

	s->env = *env;
	s->stats = opt->metrics_address ? stats_new() : NULL;
	s->registry_dir = xasprintf("%s/plugins_registry", opt->kubelet_root);
	s->plugin_dirs[0] = opt->kubelet_dir;
	s->plugin_dirs[1] = s->registry_dir;
	s->checkpoint = xasprintf("%s/kubelet_internal_checkpoint", opt->kubelet_dir);
	s->pod_resources = xasprintf("%s/pod-resources/kubelet.sock", opt->kubelet_root);
	s->shared = (struct plugin_env) {
		.endpoint = { .rpc = env->rpc,
			      .plugin_dir = opt->kubelet_dir,
			      .registry_dir = s->registry_dir,
			      .registration = opt->registration,
			      .differs = note_differs,
			      .differs_ctx = s },
		.root = env->root,
		.devinfo_dir = opt->devinfo_dir,
		.cdi = opt->cdi,
		.cdi_dir_missing = opt->cdi_dir_missing,
		.pod_resources_timeout_ms = opt->pod_resources_timeout_ms,
		.start_timeout_ms = service_patience_ms(opt->pod_resources_timeout_ms),
		.stats = s->stats,
		.specs = specs_are_there(env->specs) ? specs_source(env->specs) : NULL,
	};
	s->shared.document = write_document;
	s->shared.document_ctx = s;
	if (opt->events == EVENTS_PODS) {
		s->shared.placed = note_placed;
		s->shared.placed_ctx = s;
	}
	return s;
}

void service_publish(struct service *s, struct node *node)
{
	struct publication *p = xcalloc(1, sizeof(*p));

	*p = (struct publication) { s, node_ref(node) };
	if (!rpc_post(s->env.rpc, publish_on_rpc, p)) {
		node_unref(p->node);
		free(p);
	}
}

void service_wait(struct service *s)
{
	rpc_run(s->env.rpc, nothing, NULL);
}

void service_note_refused(struct service *s, const char *error)
{
	struct refusal *r = xcalloc(1, sizeof(*r));

	*r = (struct refusal) { s, error ? xasprintf("%.*s", (int)strcspn(error, "\n"), error)
					 : NULL };
	if (!rpc_post(s->env.rpc, refuse_on_rpc, r)) {
		free(r->error);
		free(r);
	}
}

void service_kick(struct service *s)
{
	rpc_post(s->env.rpc, kick_on_rpc, s);
}

void service_load_specs(struct service *s)
{
	specs_load(s->env.specs);
	rpc_post(s->env.rpc, warm_up_on_rpc, s);
}

const char *service_checkpoint(const struct service *s)
{
	return s->checkpoint;
}

const struct plugin_env *service_shared(const struct service *s)
{
	return &s->shared;
}

void service_free(struct service *s)
{
	if (!s)
		return;
	stats_free(s->stats);
	free(s->registry_dir);
	free(s->pod_resources);
	free(s->checkpoint);
	free(s->config_error);
	free(s);
}
