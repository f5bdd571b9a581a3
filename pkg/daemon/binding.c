/*
 * Which binding a pool with "binding": "auto" gets: what this node can do, what containers have of
 * the pool, and when that is looked at. daemon.c calls, on the main thread; answers come on the
 * rpc thread.
 */
#include <errno.h>
#include <libgen.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/binding-internal.h"
#include "daemon/daemon.h"
#include "daemon/service-internal.h"
#include "kubeclient/checkpoint.h"
#include "kubeclient/podres.h"
#include "kubeclient/runtime.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "pool/slots.h"
#include "rpc/rpc.h"
#include "tracker/cgroup.h"

/* --- the decision --- */

/* One id that is not a slot is enough: an early pool does not know slots, but keeps their VFs. */
static enum binding_held held_with(enum binding_held before, bool slot)
{
	if (before == BINDING_HELD_EARLY || !slot)
		return BINDING_HELD_EARLY;
	return BINDING_HELD_LATE;
}

static enum binding_held by_ledger(const struct ledger *ledger, const char *resource)
{
	enum binding_held held = BINDING_HELD_NOTHING;

	for (size_t i = 0; i < ledger_holds(ledger); i++) {
		const struct ledger_hold *hold = ledger_hold_at(ledger, i);

		if (!hold->draining && str_eq(hold->resource, resource))
			held = held_with(held, hold->slot != NULL);
	}
	return held;
}

static enum binding_held by_container(const struct pod_container *c, const char *resource,
				      enum binding_held held)
{
	unsigned number;
	int numa;

	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *h = &c->held[i];

		for (size_t k = 0; k < h->ids.n && str_eq(h->resource, resource); k++)
			held = held_with(held,
					 pool_slot_parse(resource, h->ids.v[k], &numa, &number));
	}
	return held;
}

enum binding_held binding_held(const struct binding_view *view, const char *resource)
{
	enum binding_held held =
		view->ledger ? by_ledger(view->ledger, resource) : BINDING_HELD_NOTHING;
	unsigned number;
	int numa;

	for (size_t i = 0; i < view->promised.n; i++) {
		if (pool_slot_parse(resource, view->promised.v[i], &numa, &number))
			held = held_with(held, true);
	}
	for (size_t i = 0; i < view->checkpoint.n; i++) {
		const struct pod *pod = &view->checkpoint.v[i];

		for (size_t k = 0; k < pod->n_containers; k++)
			held = by_container(&pod->containers[k], resource, held);
	}
	return held;
}

bool binding_breaks(enum binding_held held, enum pool_binding binding)
{
	return held != BINDING_HELD_NOTHING &&
	       (held == BINDING_HELD_LATE) != (binding == BINDING_LATE);
}

static const char *obstacle(const struct binding_facts *f, enum pool_network network)
{
	if (f->cdi)
		return f->cdi;
	if (f->runtime)
		return f->runtime;
	if (f->kubelet)
		return f->kubelet;
	/* Pods with the host's network have no CNI plugin. */
	return network == NETWORK_HOST ? NULL : f->cni;
}

enum pool_binding binding_decide(const struct binding_facts *facts, enum binding_held held,
				 enum pool_network network, const char **ret_why)
{
	if (held == BINDING_HELD_EARLY) {
		*ret_why = "containers hold VFs of it by PCI address";
		return BINDING_EARLY;
	}
	if (held == BINDING_HELD_LATE) {
		*ret_why = "containers hold slots of it";
		return BINDING_LATE;
	}
	*ret_why = obstacle(facts, network);
	if (*ret_why)
		return BINDING_EARLY;
	*ret_why =
		network == NETWORK_HOST
			? "the kubelet and the container runtime do CDI"
			: "the kubelet and the container runtime do CDI, and no CNI plugin is handed a slot";
	return BINDING_LATE;
}

/* --- what is known of this node: a directory of CDI specs that can be written, what the runtime
 * and the kubelet say, asked once at the start --- */

#define ASK_TIMEOUT_MS 1000
#define ASK_AGAIN_MS   100

struct evidence {
	const struct autobind_env *env;
	struct arena *arena; /* of the sentences; the rpc thread's while it asks */
	struct binding_facts facts;
	bool known; /* main thread */

	uv_async_t wake;
	/* rpc thread */
	struct runtime *runtime;
	struct podres *podres; /* the daemon's; NULL: not asked for yet */
	struct rpc_timer *timer;
	int64_t since_ms;     /* of the question that is asked */
	unsigned patience_ms; /* of each: one that starts needs a while */
	bool looking, warned, closing;
};

/* --- facts without a question --- */

/* The path where runtimes look by default; another one was chosen by the operator. */
static const char *cdi_dir_obstacle(const char *dir, struct arena *a)
{
	if (str_eq(dir, CDI_DIR_DEFAULT) && file_is_in_image("/", dir))
		return arena_printf(
			a, "%s is not a folder of the host (deploy/components/late mounts it)",
			dir);
	if (access(dir, W_OK) == 0)
		return NULL;
	if (errno == ENOENT && access(dirname(arena_strdup(a, dir)), W_OK) == 0)
		return NULL; /* it is made with the first spec */
	return arena_printf(a, "CDI specs cannot be written to %s: %s", dir, strerror(errno));
}

static const char *cdi_obstacle(const struct daemon_options *opt, struct arena *a)
{
	const char *why = cdi_dir_obstacle(opt->cdi_dir, a);

	if (why)
		return why;
	if (opt->cdi == CDI_OFF)
		return "--cdi=off says that this node has no CDI";
	if (!opt->pod_resources)
		return "--pod-resources=off forbids asking which container starts";
	return NULL;
}

/* --- on the rpc thread --- */

static void again(struct evidence *e, void (*ask)(void *arg))
{
	e->timer = rpc_after(e->env->rpc, ASK_AGAIN_MS, ask, e);
}

static bool is_patient(const struct evidence *e)
{
	return clock_mono_ms() - e->since_ms < e->patience_ms;
}

static void ask_kubelet(void *arg);

/* The kubelet's version is not known before we register. Get is on from 1.34; a kubelet that has it
 * by its feature gate and passes no CDI devices on is recognized by its question when it registers
 * us (plugin_late_check_kubelet()). */
static const char *no_get(const struct evidence *e)
{
	if (e->env->opt->cdi == CDI_ON)
		return NULL;
	return "it is not known whether this kubelet passes CDI devices on: its PodResources has no Get, so it is older than 1.34";
}

static void kubelet_answered(void *arg, enum podres_result result, const struct pod_list *pods,
			     const char *why)
{
	struct evidence *e = arg;
	enum podres_support support = kubeclient_podres_state(e->podres).support;

	if (e->closing)
		return;
	if (support == PODRES_UNKNOWN && is_patient(e)) {
		again(e, ask_kubelet);
		return;
	}
	if (support == PODRES_UNKNOWN)
		e->facts.kubelet = arena_printf(
			e->arena, "the kubelet's PodResources does not answer: %s", why);
	else if (support == PODRES_NOTHING)
		e->facts.kubelet = "this kubelet is older than 1.27";
	else if (support == PODRES_LIST)
		e->facts.kubelet = no_get(e);
	uv_async_send(&e->wake);
}

static void ask_kubelet(void *arg)
{
	struct evidence *e = arg;

	e->timer = NULL;
	kubeclient_podres_ask(e->podres,
			      &(struct podres_question) { .kind = PODRES_ASK_GET,
							  .ns = "",
							  .name = "",
							  .timeout_ms = ASK_TIMEOUT_MS },
			      kubelet_answered, e);
}

/* Late binding is out of the question already, or the kubelet is asked as well. */
static void runtime_done(struct evidence *e)
{
	if (e->facts.runtime) {
		uv_async_send(&e->wake);
		return;
	}
	e->since_ms = clock_mono_ms();
	e->podres = e->env->open_podres(e->env->ctx);
	e->timer = rpc_after(e->env->rpc, 0, ask_kubelet, e);
}

static void ask_runtime(void *arg);

static const char *no_cdi(struct evidence *e, const struct runtime_answer *answer)
{
	if (answer->cdi == RUNTIME_CDI || e->env->opt->cdi == CDI_ON)
		return NULL;
	if (answer->cdi == RUNTIME_NO_CDI)
		return arena_strdup(e->arena, answer->sentence);
	return arena_printf(e->arena,
			    "it is not known whether the container runtime reads CDI specs: %s",
			    answer->sentence);
}

static const char *passes_ids(struct evidence *e, const struct runtime_answer *answer)
{
	if (answer->cni == RUNTIME_CNI_KEEPS_IDS)
		return NULL;
	if (answer->cni == RUNTIME_CNI_PASSES_IDS)
		return arena_printf(e->arena, "%s, of which only railmate-cni can read slots",
				    answer->cni_sentence);
	return arena_printf(e->arena,
			    "it is not known whether a CNI plugin would be handed a slot: %s",
			    answer->cni_sentence);
}

static void runtime_answered(void *arg, const struct runtime_answer *answer)
{
	struct evidence *e = arg;

	if (e->closing)
		return;
	if (answer->cdi == RUNTIME_SILENT && is_patient(e)) {
		again(e, ask_runtime);
		return;
	}
	e->facts.runtime = no_cdi(e, answer);
	e->facts.cni = passes_ids(e, answer);
	runtime_done(e);
}

static void open_runtime(struct evidence *e)
{
	if (!e->runtime)
		e->runtime = kubeclient_runtime_open(e->env->rpc, e->env->opt->root,
						     e->env->opt->runtime_socket);
}

static void ask_runtime(void *arg)
{
	struct evidence *e = arg;

	e->timer = NULL;
	kubeclient_runtime_ask(e->runtime, ASK_TIMEOUT_MS, runtime_answered, e);
}

static void begin(void *arg)
{
	static const struct runtime_answer not_asked = {
		.sentence = "--runtime-socket=none forbids asking it",
		.cni_sentence = "--runtime-socket=none forbids asking the container runtime",
		.cdi = RUNTIME_CDI_UNKNOWN
	};
	struct evidence *e = arg;

	e->since_ms = clock_mono_ms();
	if (e->env->opt->ask_runtime) {
		open_runtime(e);
		ask_runtime(e);
	} else {
		runtime_answered(e, &not_asked);
	}
}

/* --- afterwards --- */

static void answered(void *arg, const struct runtime_answer *answer)
{
	struct evidence *e = arg;

	e->looking = false;
	if (e->closing || e->warned || answer->cni != RUNTIME_CNI_PASSES_IDS)
		return;
	e->warned = true;
	log_warn(
		"binding",
		"a CNI plugin that hands device ids on came after binding auto had chosen late reason=%s",
		answer->cni_sentence);
}

static void probe_runtime(void *arg)
{
	struct evidence *e = arg;

	if (e->closing || e->looking || e->warned)
		return;
	open_runtime(e);
	e->looking = true;
	kubeclient_runtime_ask(e->runtime, ASK_TIMEOUT_MS, answered, e);
}

/* [rpc thread] */
static void evidence_close(struct evidence *e)
{
	if (!e)
		return;
	e->closing = true;
	rpc_timer_cancel(STEAL(e->timer));
	kubeclient_runtime_close(STEAL(e->runtime));
}

/* --- on the main thread --- */

static void on_wake(uv_async_t *wake)
{
	struct evidence *e = wake->data;

	e->known = true;
	e->env->known(e->env->ctx);
}

/* env.known() is called once, after the return, unless everything is known by then. The handle goes
 * with the loop's others. [main thread] */
static struct evidence *evidence_new(const struct autobind_env *env)
{
	const struct daemon_options *opt = env->opt;
	struct evidence *e = xcalloc(1, sizeof(*e));

	*e = (struct evidence) { .env = env,
				 .patience_ms = service_patience_ms(opt->pod_resources_timeout_ms),
				 .arena = arena_new(1024) };
	uv_async_init(env->loop, &e->wake, on_wake);
	e->wake.data = e;
	e->facts.cdi = cdi_obstacle(opt, e->arena);
	e->known = e->facts.cdi != NULL;
	if (!e->known)
		rpc_post(env->rpc, begin, e);
	return e;
}

/* NULL: not all is known yet [main thread] */
static const struct binding_facts *evidence_facts(const struct evidence *e)
{
	return e->known ? &e->facts : NULL;
}

/* When the loop is closed and the rpc thread has ended; NULL is fine */
static void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	arena_free(e->arena);
	free(e);
}

/* --- pools that are open --- */

struct autobind {
	struct autobind_env env;
	struct evidence *evidence; /* NULL: no pool was open */
};

/* Is it bound so only for what containers hold? Where late binding does not work, and containers
 * hold slots, the kubelet is offered nothing meanwhile. */
static bool is_for_held(const struct autobind *a, enum pool_network network, enum binding_held held)
{
	const struct binding_facts *facts = evidence_facts(a->evidence);
	const char *why;

	return held != BINDING_HELD_NOTHING &&
	       (!facts ||
		binding_breaks(held, binding_decide(facts, BINDING_HELD_NOTHING, network, &why)));
}

static void bind_pool(struct autobind *a, struct config *cfg, size_t i, enum binding_held held)
{
	const struct pool_config *pool = &cfg->pools[i];
	const char *why;
	enum pool_binding binding =
		binding_decide(evidence_facts(a->evidence), held, pool->network, &why);

	config_bind(cfg, i, binding, why, is_for_held(a, pool->network, held));
	log_info("binding", "binding auto was decided resource=%s binding=%s reason=%s",
		 pool->resource, binding == BINDING_LATE ? "late" : "early", why);
}

/* The kubelet takes a pod out of its checkpoint only when the next one asks for devices. */
static struct pod_list pods_of_checkpoint(const struct autobind_env *env, struct arena *a)
{
	const char *dir = env->opt->cgroup_dir;
	struct pod_list all = kubeclient_checkpoint(env->checkpoint, a, NULL), pods = { all.v, 0 };

	for (size_t i = 0; i < all.n; i++) {
		int r = dir ? tracker_pod_runs(dir, all.v[i].name) : -ENODATA;

		if (r != 0 && r != TRACKER_POD_IS_EMPTY)
			pods.v[pods.n++] = all.v[i];
	}
	return pods;
}

static bool is_open(const struct pool_config *pool)
{
	return pool->binding_auto && !pool->binding_why;
}

bool autobind_pools(struct autobind *a, struct config *cfg, const struct ledger *ledger,
		    const struct ids *promised)
{
	_cleanup_arena_ struct arena *scratch = arena_new(1024);
	struct binding_view view = { .ledger = ledger, .promised = *promised };

	if (!a->evidence)
		return true;
	view.checkpoint = pods_of_checkpoint(&a->env, scratch);
	for (size_t i = 0; i < cfg->n_pools && !evidence_facts(a->evidence); i++) {
		if (is_open(&cfg->pools[i]) && !binding_held(&view, cfg->pools[i].resource))
			return false;
	}
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (is_open(&cfg->pools[i]))
			bind_pool(a, cfg, i, binding_held(&view, cfg->pools[i].resource));
	}
	return true;
}

struct config *autobind_anew(struct autobind *a, const struct config *cfg,
			     const struct ledger *ledger, const struct ids *promised)
{
	_cleanup_arena_ struct arena *scratch = arena_new(1024);
	struct binding_view view = { .ledger = ledger, .promised = *promised };
	struct config *next = NULL;
	bool *none;

	if (!a->evidence || !evidence_facts(a->evidence))
		return NULL;
	view.checkpoint = pods_of_checkpoint(&a->env, scratch);
	for (size_t i = 0; i < cfg->n_pools; i++) {
		const struct pool_config *pool = &cfg->pools[i];
		enum binding_held held = binding_held(&view, pool->resource);

		if (!pool->binding_auto ||
		    (pool->binding_held ? held != BINDING_HELD_NOTHING
					: !binding_breaks(held, pool->binding)))
			continue;
		none = arena_array(scratch, cfg->n_pools, sizeof(*none));
		if (!next)
			next = config_retire(cfg, cfg, none);
		for (size_t k = 0; k < next->n_pools; k++) {
			if (!strcmp(next->pools[k].resource, pool->resource))
				bind_pool(a, next, k, held);
		}
	}
	return next;
}

void autobind_inherit(const struct config *before, struct config *next)
{
	for (size_t i = 0; i < next->n_pools; i++) {
		const struct pool_config *pool = &next->pools[i];
		const struct pool_config *same = config_pool(before, pool->resource);

		if (is_open(pool) && same && same->binding_auto && same->binding_why &&
		    same->network == pool->network)
			config_bind(next, i, same->binding, same->binding_why, same->binding_held);
	}
}

struct autobind *autobind_new(const struct autobind_env *env)
{
	struct autobind *a = xcalloc(1, sizeof(*a));

	a->env = *env;
	return a;
}

void autobind_ask(struct autobind *a, const struct config *cfg)
{
	for (size_t i = 0; i < cfg->n_pools && !a->evidence; i++) {
		if (is_open(&cfg->pools[i]))
			a->evidence = evidence_new(&a->env);
	}
}

void autobind_check(struct autobind *a, const struct config *cfg)
{
	bool concerned = false;

	for (size_t i = 0; a->evidence && i < cfg->n_pools; i++) {
		const struct pool_config *pool = &cfg->pools[i];

		concerned |= pool->binding_auto && pool->binding == BINDING_LATE &&
			     pool->network != NETWORK_HOST;
	}
	/* Has a CNI plugin come since that hands device ids on? A warning, once. */
	if (concerned && a->env.opt->ask_runtime)
		rpc_post(a->env.rpc, probe_runtime, a->evidence);
}

void autobind_close(struct autobind *a)
{
	if (a)
		evidence_close(a->evidence);
}

void autobind_free(struct autobind *a)
{
	if (!a)
		return;
	evidence_free(a->evidence);
	free(a);
}
