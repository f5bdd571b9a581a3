#include "config/config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"

#define PREFIX_DEFAULT "intel.com" /* sriov-network-device-plugin's */

static int read_device_type(struct parse *p, const struct item *value, const struct key *key,
			    void *out)
{
	static const char *const types[] = { "netDevice" };
	int choice;

	(void)key;
	(void)out;
	if (value->type == ITEM_STRING &&
	    (str_eq(value->string, "accelerator") || str_eq(value->string, "auxNetDevice")))
		return refuse(p, value, "'%s' is not served by railmate; legal values: netDevice",
			      value->string);
	if (value->type == ITEM_STRING && !value->string[0])
		return 0;
	return want_choice(p, value, types, ARRAY_LEN(types), &choice);
}

static int extra_cmp(const void *a, const void *b)
{
	const struct extra_info *x = a, *y = b;
	int order = strcmp(x->device, y->device);

	return order ? order : strcmp(x->key, y->key);
}

static int read_extra_device(struct parse *p, const struct item *device, struct extra_info *rows,
			     size_t *n)
{
	char canonical[BDF_STRLEN];
	struct bdf bdf;
	int r;

	if (device->type == ITEM_NULL)
		return 0;
	r = want(p, device, ITEM_OBJECT);
	if (r < 0)
		return r;
	if (strcmp(device->key, "*") != 0 && (bdf_parse(device->key, &bdf) < 0 ||
					      strcmp(bdf_format(bdf, canonical), device->key) != 0))
		config_warn(
			p, device,
			"names no device; keys are \"*\" or a PCI address such as 0000:3b:00.2");
	for (size_t i = 0; i < device->n_kids; i++) {
		const struct item *kid = &device->kids[i];

		if (kid->type == ITEM_NULL)
			continue;
		r = want(p, kid, ITEM_STRING);
		if (r < 0)
			return r;
		rows[(*n)++] = (struct extra_info) { arena_strdup(p->out, device->key),
						     arena_strdup(p->out, kid->key),
						     arena_strdup(p->out, kid->string) };
	}
	return 0;
}

/* additionalInfo: device → key → value; its keys are data, and keep their case. */
static int read_extra(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_entry *e = out;
	struct extra_info *rows;
	size_t max = 0, n = 0;
	int r = want(p, value, ITEM_OBJECT);

	(void)key;
	if (r < 0)
		return r;
	for (size_t i = 0; i < value->n_kids; i++)
		max += value->kids[i].n_kids;
	rows = arena_array(p->out, max, sizeof(*rows));
	for (size_t i = 0; i < value->n_kids; i++) {
		r = read_extra_device(p, &value->kids[i], rows, &n);
		if (r < 0)
			return r;
	}
	qsort(rows, n, sizeof(*rows), extra_cmp);
	e->pool.extra = rows;
	e->pool.n_extra = n;
	return 0;
}

/* sriov-network-operator emits "SelectorObjs": null; the peer overwrites whatever stands there. */
static int read_nothing(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	(void)out;
	config_warn(p, value, "'%s' has no effect", key->name);
	return 0;
}

/* Selectors stood beside resourceName in the format before `selectors`: they do nothing now. */
static bool old_key(struct parse *p, const struct item *member)
{
	const struct key *selector = key_find(&selector_keys, member->key);

	if (selector)
		config_warn(
			p, member,
			"has NO EFFECT here, the pool is not narrowed by it: move it into 'selectors'");
	else if (!strcasecmp(member->key, "sriovMode"))
		config_warn(
			p, member,
			"is of an old format and has NO EFFECT: delete it, and check 'selectors'");
	else
		return false;
	return true;
}

/* What follows from several keys of a pool. */
static int finish_pool(struct parse *p, struct pool_entry *e)
{
	int r = name_pool(p, e, p->default_prefix);

	if (r < 0)
		return r;
	for (size_t i = 0; i < e->pool.n_selectors; i++)
		e->pool.is_rdma |= e->pool.selectors[i].is_rdma;
	check_pool(p, e->at, &e->pool);
	return 0;
}

static int one_pool(struct parse *p, const struct item *value, struct pool_entry *e)
{
	static const struct key keys[] = {
		{ .name = "resourceName", .read = read_resource_name },
		{ .name = "resourcePrefix", .read = read_resource_prefix },
		{ .name = "deviceType", .read = read_device_type },
		KEY_BOOL("excludeTopology", struct pool_entry, pool.exclude_topology),
		{ .name = "selectors", .read = read_selectors },
		{ .name = "additionalInfo", .read = read_extra },
		{ .name = "railmate", .read = read_railmate_pool },
		{ .name = "SelectorObjs", .read = read_nothing, .hidden = true },
	};
	static const struct key_set set = { .keys = keys,
					    .n = ARRAY_LEN(keys),
					    .unknown = old_key };
	int r = read_members(p, value, &set, e);

	return r < 0 ? r : finish_pool(p, e);
}

/* The whole file while it is read. */
struct top {
	struct config *config;
	struct pool_list pools;
};

static int read_resource_list(struct parse *p, const struct item *value, const struct key *key,
			      void *out)
{
	(void)key;
	return read_pools(p, value, one_pool, POOLS_MAX, &((struct top *)out)->pools);
}

static int read_top_railmate(struct parse *p, const struct item *value, const struct key *key,
			     void *out)
{
	return read_railmate_top(p, value, key, ((struct top *)out)->config);
}

static size_t take_sentences(const struct parse *p, struct sentences *s, const char *kind,
			     const char *const **ret)
{
	size_t n = s->n < WARNINGS_MAX ? s->n : WARNINGS_MAX;

	if (s->n > WARNINGS_MAX)
		s->v[n++] = arena_printf(p->out, "%s: %zu more %s like these", p->name,
					 s->n - WARNINGS_MAX, kind);
	*ret = arena_copy(p->out, s->v, n * sizeof(*s->v));
	return n;
}

static int read_document(struct parse *p, const struct item *document, struct config *cfg)
{
	static const struct key keys[] = {
		{ .name = "resourceList", .read = read_resource_list, .vital = true },
		{ .name = "railmate", .read = read_top_railmate },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	struct top top = { .config = cfg };
	int r = read_members(p, document, &set, &top);

	if (r < 0)
		return r;
	if (!top.pools.n)
		return refuse_empty(p, document, "resourceList");
	cfg->pools = take_pools(p, &top.pools);
	cfg->n_pools = top.pools.n;
	cfg->n_warnings = take_sentences(p, &p->warnings, "warnings", &cfg->warnings);
	cfg->n_errors = take_sentences(p, &p->errors, "errors", &cfg->errors);
	return 0;
}

/* A configuration as it is allocated; `config` comes first, so both have one address. One that was
 * read owns all its strings. One that was made of others has an array of pools only: */
struct counted_config {
	struct config config;
	atomic_uint refs;
	struct config *base;  /* whose everything else it has; NULL: it was read */
	struct config **home; /* who owns the strings of each pool */
};

static struct counted_config *counted(const struct config *cfg)
{
	return (struct counted_config *)cfg;
}

static struct config *config_new(void)
{
	struct arena *arena = arena_new(4096);
	struct counted_config *c = arena_alloc(arena, sizeof(*c));

	c->config.arena = arena;
	atomic_init(&c->refs, 1);
	return &c->config;
}

static void config_freep(struct config **cfg)
{
	config_free(*cfg);
}

int config_parse(const char *text, size_t len, const char *name, const char *default_prefix,
		 struct config **ret, struct strbuf *also, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	_cleanup_(config_freep) struct config *cfg = config_new();
	struct err own = { 0 };
	struct parse p = {
		.name = name,
		.default_prefix = default_prefix ? default_prefix : PREFIX_DEFAULT,
		.out = cfg->arena,
		.scratch = scratch,
		.err = &own,
	};
	const struct item *document;
	int r;

	if (len > CONFIG_BYTES_MAX)
		return err_set(err, EINVAL, "%s: has %zu bytes; a configuration has at most %u",
			       name, len, CONFIG_BYTES_MAX);
	r = document_parse(text, len, name, scratch, &document, &own);
	if (r == 0)
		r = read_document(&p, document, cfg);
	if (r == 0)
		*ret = STEAL(cfg);
	else if (err)
		*err = own;
	if (r < 0 && also)
		put_sentences(&p, also);
	return r;
}

struct config *config_default(void)
{
	struct pool_config pool = {
		.resource = "rdma/vf",
		.prefix = "rdma",
		.name = "vf",
		.is_rdma = true,
		.vfs_only = true,
		.binding_auto = true,
	};
	struct config *cfg = config_new();

	railmate_pool_defaults(&pool);
	cfg->pools = arena_copy(cfg->arena, &pool, sizeof(pool));
	cfg->n_pools = 1;
	return cfg;
}

struct config *config_none(void)
{
	return config_new();
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

void config_bind(struct config *cfg, size_t pool, enum pool_binding binding, const char *why)
{
	struct pool_config *p = (struct pool_config *)&cfg->pools[pool];

	p->binding = binding;
	p->binding_why = arena_strdup(cfg->arena, why);
}

/* --- configurations that follow each other --- */

/* The home is one that was read: however often configurations are replaced, they form no chain. */
static void add_pool(struct config *cfg, const struct config *from, size_t i, bool retired)
{
	struct pool_config *pool = (struct pool_config *)&cfg->pools[cfg->n_pools];

	*pool = from->pools[i];
	pool->retired = retired;
	counted(cfg)->home[cfg->n_pools++] =
		config_ref(counted(from)->base ? counted(from)->home[i] : (struct config *)from);
}

struct config *config_retire(const struct config *cfg, const struct config *before,
			     const bool *marked)
{
	size_t max = cfg->n_pools + before->n_pools;
	struct config *ret = config_new();
	struct arena *arena = ret->arena;

	*ret = *cfg;
	ret->arena = arena;
	ret->pools = arena_array(arena, max, sizeof(*ret->pools));
	ret->n_pools = 0;
	counted(ret)->base =
		config_ref(counted(cfg)->base ? counted(cfg)->base : (struct config *)cfg);
	counted(ret)->home = arena_array(arena, max, sizeof(*counted(ret)->home));
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (!cfg->pools[i].retired)
			add_pool(ret, cfg, i, false);
	}
	for (size_t i = 0; i < before->n_pools; i++) {
		if (marked[i])
			add_pool(ret, before, i, true);
	}
	return ret;
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
	config_free(c->base);
	arena_free(cfg->arena);
}
