/* Configurations that are made of others, and how long each lives. */
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config-internal.h"

/* A configuration as it is allocated; `config` comes first, so both have one address. One that was
 * read owns all its strings. One that was made of others has arrays of pools only: */
struct counted_config {
	struct config config;
	atomic_uint refs;
	struct config *base;		     /* whose everything else it has; NULL: it was read */
	struct config *top;		     /* whose GPUs and rails */
	struct config **home, **shared_home; /* who owns the strings of each pool */
};

static struct counted_config *counted(const struct config *cfg)
{
	return (struct counted_config *)cfg;
}

struct config *config_none(void)
{
	struct arena *arena = arena_new(4096);
	struct counted_config *c = arena_alloc(arena, sizeof(*c));

	c->config.arena = arena;
	atomic_init(&c->refs, 1);
	return &c->config;
}

void config_add_errors(struct config *cfg, const char *lines)
{
	char *rest = arena_strdup(cfg->arena, lines);
	size_t n = cfg->n_errors;
	size_t max = n + 1;
	const char **all;

	for (const char *s = lines; *s; s++)
		max += *s == '\n';
	all = arena_array(cfg->arena, max, sizeof(*all));
	for (size_t i = 0; i < n; i++)
		all[i] = cfg->errors[i];
	while (rest)
		all[n++] = strsep(&rest, "\n");
	cfg->errors = all;
	cfg->n_errors = n;
}

static bool is_made(const struct config *cfg)
{
	return cfg->arena && counted(cfg)->base;
}

void config_bind(struct config *cfg, size_t pool, enum pool_binding binding, const char *why,
		 bool held)
{
	struct pool_config *p = (struct pool_config *)&cfg->pools[pool];
	const struct config *home = is_made(cfg) ? counted(cfg)->home[pool] : cfg;

	p->binding = binding;
	p->binding_why = arena_strdup(home->arena, why);
	p->binding_held = held;
}

/* A copy of cfg without its pools, and with room for so many. */
static struct config *make_like(const struct config *cfg, size_t pools, size_t shared)
{
	struct config *ret = config_none();
	struct counted_config *c = counted(ret);
	struct arena *arena = ret->arena;

	*ret = *cfg;
	ret->arena = arena;
	ret->pools = arena_array(arena, pools, sizeof(*ret->pools));
	ret->shared = arena_array(arena, shared, sizeof(*ret->shared));
	ret->n_pools = ret->n_shared = 0;
	c->base = config_ref(is_made(cfg) ? counted(cfg)->base : cfg);
	c->top = config_ref(is_made(cfg) ? counted(cfg)->top : cfg);
	c->home = arena_array(arena, pools, sizeof(struct config *));
	c->shared_home = arena_array(arena, shared, sizeof(struct config *));
	return ret;
}

/* The home is one that was read: however often configurations are replaced, they form no chain. */
static struct pool_config *add_pool(struct config *cfg, const struct config *from, size_t i)
{
	struct pool_config *pool = (struct pool_config *)&cfg->pools[cfg->n_pools];

	*pool = from->pools[i];
	counted(cfg)->home[cfg->n_pools++] =
		config_ref(is_made(from) ? counted(from)->home[i] : from);
	return pool;
}

static struct pool_config *add_shared(struct config *cfg, const struct config *from, size_t i)
{
	struct pool_config *pool = (struct pool_config *)&cfg->shared[cfg->n_shared];

	*pool = from->shared[i];
	counted(cfg)->shared_home[cfg->n_shared++] =
		config_ref(is_made(from) ? counted(from)->shared_home[i] : from);
	return pool;
}

struct config *config_retire(const struct config *cfg, const struct config *before,
			     const bool *marked)
{
	struct config *ret = make_like(cfg, cfg->n_pools + before->n_pools, cfg->n_shared);

	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (!cfg->pools[i].retired)
			add_pool(ret, cfg, i)->retired = false;
	}
	for (size_t i = 0; i < before->n_pools; i++) {
		if (marked[i])
			add_pool(ret, before, i)->retired = true;
	}
	for (size_t i = 0; i < cfg->n_shared; i++)
		add_shared(ret, cfg, i);
	return ret;
}

/* --- a pool with an error stays as it was --- */

/* One of the two lists of pools. */
struct list {
	const struct pool_config *v;
	size_t n;
	const struct pool_error *faults;
	size_t n_faults;
};

static struct list list_of(const struct config *cfg, bool shared)
{
	return shared ? (struct list) { cfg->shared, cfg->n_shared, cfg->shared_faults,
					cfg->n_shared_faults }
		      : (struct list) { cfg->pools, cfg->n_pools, cfg->faults, cfg->n_faults };
}

/* list.n: there is none. */
static size_t find(struct list list, const char *resource)
{
	size_t i = 0;

	while (i < list.n && !str_eq(list.v[i].resource, resource))
		i++;
	return i;
}

static bool has(const struct config *cfg, bool shared, const char *resource)
{
	struct list list = list_of(cfg, shared);

	return find(list, resource) < list.n;
}

static bool has_fault(struct list list, const char *resource)
{
	for (size_t i = 0; i < list.n_faults; i++) {
		if (str_eq(list.faults[i].resource, resource))
			return true;
	}
	return false;
}

struct keeping {
	struct config *ret;
	const struct config *cfg, *before;
	bool shared;
};

/* Not without end: for a name that cannot be read, each change may add others. */
static void keep(const struct keeping *k, size_t i)
{
	struct list before = list_of(k->before, k->shared), now = list_of(k->ret, k->shared);
	const char *resource = before.v[i].resource;

	if (before.v[i].retired || now.n >= POOLS_MAX || has(k->ret, k->shared, resource) ||
	    has(k->cfg, !k->shared, resource))
		return;
	(k->shared ? add_shared : add_pool)(k->ret, k->before, i)->kept = true;
}

static void keep_at(const struct keeping *k, size_t at)
{
	struct list list = list_of(k->cfg, k->shared), before = list_of(k->before, k->shared);

	for (size_t f = 0; f < list.n_faults; f++) {
		const char *resource = list.faults[f].resource;
		size_t i = resource ? find(before, resource) : before.n;

		if (list.faults[f].at == at && i < before.n)
			keep(k, i);
	}
}

static void keep_list(const struct keeping *k)
{
	struct list list = list_of(k->cfg, k->shared), before = list_of(k->before, k->shared);

	for (size_t i = 0; i < list.n; i++) {
		const char *resource = list.v[i].resource;

		keep_at(k, i);
		if (has_fault(list, resource) && find(before, resource) < before.n)
			keep(k, find(before, resource));
		if (!has(k->ret, k->shared, resource))
			(k->shared ? add_shared : add_pool)(k->ret, k->cfg, i);
	}
	keep_at(k, list.n);
	for (size_t i = 0; i < before.n && has_fault(list, NULL); i++)
		keep(k, i);
}

struct config *config_keep(const struct config *cfg, const struct config *before)
{
	struct keeping k = { .cfg = cfg, .before = before };

	if (!cfg->n_faults && !cfg->n_shared_faults && !cfg->top_fault)
		return config_ref(cfg);
	k.ret = make_like(cfg, cfg->n_pools + before->n_pools, cfg->n_shared + before->n_shared);
	keep_list(&k);
	k.shared = true;
	keep_list(&k);
	if (cfg->top_fault) {
		struct counted_config *c = counted(k.ret);

		config_free(c->top);
		c->top = config_ref(is_made(before) ? counted(before)->top : before);
		k.ret->gpus = before->gpus;
		k.ret->n_gpus = before->n_gpus;
		k.ret->rails = before->rails;
		k.ret->n_rails = before->n_rails;
	}
	return k.ret;
}

/* --- counting --- */

const struct pool_config *config_pool(const struct config *cfg, const char *resource)
{
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (!strcmp(cfg->pools[i].resource, resource))
			return &cfg->pools[i];
	}
	return NULL;
}

struct config *config_ref(const struct config *cfg)
{
	if (cfg->arena)
		atomic_fetch_add_explicit(&counted(cfg)->refs, 1, memory_order_relaxed);
	return (struct config *)cfg;
}

void config_free(struct config *cfg)
{
	struct counted_config *c = counted(cfg);

	if (!c || !cfg->arena || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; c->base && i < cfg->n_pools; i++)
		config_free(c->home[i]);
	for (size_t i = 0; c->base && i < cfg->n_shared; i++)
		config_free(c->shared_home[i]);
	config_free(c->base);
	config_free(c->top);
	arena_free(cfg->arena);
}
