#include "daemon/autobind-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "daemon/binding-internal.h"
#include "daemon/daemon.h"
#include "daemon/evidence-internal.h"
#include "kubeclient/checkpoint.h"
#include "kubemsg/messages.h"
#include "tracker/cgroup.h"

struct autobind {
	struct autobind_env env;
	struct evidence *evidence; /* NULL: no pool was open */
};

/* The VFs that containers have of the pools, by ledger (NULL: none) and kubelet. */
struct held_view {
	const struct ledger *ledger;
	struct pod_list checkpoint;
};

static enum binding_held held_of(const struct held_view *held, const struct pool_config *pool)
{
	return binding_held(held->ledger, &held->checkpoint, pool->resource);
}

/* Is it late only because containers hold slots? Where late binding does not work the kubelet is
 * offered nothing meanwhile. */
static bool is_for_slots(const struct autobind *a, enum pool_network network,
			 enum binding_held held)
{
	const struct binding_facts *facts = evidence_facts(a->evidence);
	const char *why;

	return held == BINDING_HELD_LATE &&
	       (!facts ||
		binding_decide(facts, BINDING_HELD_NOTHING, network, &why) == BINDING_EARLY);
}

static void bind_pool(struct autobind *a, struct config *cfg, size_t i, enum binding_held held)
{
	const struct pool_config *pool = &cfg->pools[i];
	const char *why;
	enum pool_binding binding =
		binding_decide(evidence_facts(a->evidence), held, pool->network, &why);

	config_bind(cfg, i, binding, why, is_for_slots(a, pool->network, held));
	log_info("binding", "binding auto was decided resource=%s binding=%s reason=%s",
		 pool->resource, binding == BINDING_LATE ? "late" : "early", why);
}

/* The kubelet takes a pod out of its checkpoint only when the next one asks for devices. */
static struct pod_list pods_of_checkpoint(const struct autobind_env *env, struct arena *a)
{
	const char *dir = env->opt->cgroup_dir;
	struct pod_list all = kubeclient_checkpoint(env->checkpoint, a, NULL), pods = { all.v, 0 };

	for (size_t i = 0; i < all.n; i++) {
		if (!dir || tracker_pod_runs(dir, all.v[i].name) != 0)
			pods.v[pods.n++] = all.v[i];
	}
	return pods;
}

static bool is_open(const struct pool_config *pool)
{
	return pool->binding_auto && !pool->binding_why;
}

bool autobind_pools(struct autobind *a, struct config *cfg, const struct ledger *ledger)
{
	_cleanup_arena_ struct arena *scratch = arena_new(1024);
	struct held_view held = { .ledger = ledger };

	if (!a->evidence)
		return true;
	held.checkpoint = pods_of_checkpoint(&a->env, scratch);
	for (size_t i = 0; i < cfg->n_pools && !evidence_facts(a->evidence); i++) {
		if (is_open(&cfg->pools[i]) && !held_of(&held, &cfg->pools[i]))
			return false;
	}
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (is_open(&cfg->pools[i]))
			bind_pool(a, cfg, i, held_of(&held, &cfg->pools[i]));
	}
	return true;
}

struct config *autobind_anew(struct autobind *a, const struct config *cfg,
			     const struct ledger *ledger)
{
	_cleanup_arena_ struct arena *scratch = arena_new(1024);
	struct held_view held = { .ledger = ledger };
	struct config *next = NULL;
	bool *none;

	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (!cfg->pools[i].binding_held || !evidence_facts(a->evidence))
			continue;
		if (!held.checkpoint.v)
			held.checkpoint = pods_of_checkpoint(&a->env, scratch);
		if (held_of(&held, &cfg->pools[i]))
			continue;
		none = arena_array(scratch, cfg->n_pools, sizeof(*none));
		if (!next)
			next = config_retire(cfg, cfg, none);
		for (size_t k = 0; k < next->n_pools; k++) {
			if (!strcmp(next->pools[k].resource, cfg->pools[i].resource))
				bind_pool(a, next, k, BINDING_HELD_NOTHING);
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
	const struct autobind_env *env = &a->env;

	for (size_t i = 0; i < cfg->n_pools && !a->evidence; i++) {
		if (is_open(&cfg->pools[i]))
			a->evidence = evidence_new(env->loop, env->rpc, env->opt, env->open_podres,
						   env->known, env->ctx);
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
	if (concerned)
		evidence_ask_again(a->evidence);
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
