#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
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
static bool is_old(const struct item *member)
{
	return key_find(&selector_keys, member->key) || !strcasecmp(member->key, "sriovMode");
}

static bool has_selectors(const struct item *pool)
{
	for (size_t i = 0; i < pool->n_kids; i++) {
		if (!strcasecmp(pool->kids[i].key, "selectors"))
			return pool->kids[i].type != ITEM_NULL;
	}
	return false;
}

static bool old_key(struct parse *p, const struct item *member)
{
	if (!is_old(member))
		return false;
	config_warn(
		p, member,
		strcasecmp(member->key, "sriovMode")
			? "has NO EFFECT here, the pool is not narrowed by it: move it into 'selectors'"
			: "is of an old format and has NO EFFECT: delete it, and check 'selectors'");
	return true;
}

/* Without selectors a pool has every device, so it has to be sure that none were meant. */
static int check_open(const struct parse *p, const struct item *pool, const struct key_set *set)
{
	for (size_t i = 0; i < pool->n_kids && !has_selectors(pool); i++) {
		const struct item *kid = &pool->kids[i];

		if (!key_find(set, kid->key) && !is_old(kid))
			return refuse(
				p, kid,
				"is not a key, and a pool without 'selectors' has every device of the node; did you mean 'selectors'?");
	}
	return 0;
}

/* Facts that follow from several keys of a pool. */
static int finish_pool(struct parse *p, struct pool_entry *e)
{
	int r = name_pool(p, e);

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

	if (r == 0)
		r = finish_pool(p, e);
	return r < 0 ? r : check_open(p, value, &set);
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
	struct config *cfg = ((struct top *)out)->config;
	size_t n_errors = p->errors.n;
	int r = read_railmate_top(p, value, key, cfg);

	cfg->top_fault = r < 0 || p->errors.n > n_errors;
	return r;
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

size_t append_sentences(struct arena *arena, const struct sentences *more, const char *const **list,
			size_t n)
{
	size_t n_more = more->n < WARNINGS_MAX ? more->n : WARNINGS_MAX;
	const char **all = arena_array(arena, n + n_more, sizeof(*all));

	for (size_t i = 0; i < n; i++)
		all[i] = (*list)[i];
	for (size_t i = 0; i < n_more; i++)
		all[n + i] = more->v[i];
	*list = all;
	return n + n_more;
}

static int read_document(struct parse *p, const struct item *document, void *ret_config)
{
	static const struct key keys[] = {
		{ .name = "resourceList", .read = read_resource_list, .vital = true },
		{ .name = "railmate", .read = read_top_railmate },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	struct config *cfg = ret_config;
	struct top top = { .config = cfg };
	int r = read_members(p, document, &set, &top);

	if (r < 0)
		return r;
	if (!top.pools.n)
		return refuse_empty(p, document, "resourceList");
	cfg->pools = take_pools(p, &top.pools);
	cfg->n_pools = top.pools.n;
	cfg->faults = take_faults(p, &top.pools);
	cfg->n_faults = top.pools.n_faults;
	cfg->n_warnings = take_sentences(p, &p->warnings, "warnings", &cfg->warnings);
	cfg->n_errors = take_sentences(p, &p->errors, "errors", &cfg->errors);
	return 0;
}

static void config_freep(struct config **cfg)
{
	config_free(*cfg);
}

int config_parse(const char *text, size_t len, const char *name, const char *default_prefix,
		 struct config **ret, struct strbuf *also, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	_cleanup_(config_freep) struct config *cfg = config_none();
	struct parse p = {
		.name = name,
		.default_prefix = default_prefix ? default_prefix : PREFIX_DEFAULT,
		.out = cfg->arena,
		.scratch = scratch,
	};
	int r = read_file_text(&p, text, len, CONFIG_BYTES_MAX, read_document, cfg, also, err);

	if (r == 0)
		*ret = STEAL(cfg);
	return r;
}

struct config *config_default(void)
{
	struct pool_config pool = {
		.resource = "rdma/vf",
		.prefix = "rdma",
		.name = "vf",
		.is_rdma = true,
		.pfs = PFS_NEVER,
		.binding_auto = true,
	};
	struct config *cfg = config_none();

	railmate_pool_defaults(&pool);
	cfg->pools = arena_copy(cfg->arena, &pool, sizeof(pool));
	cfg->n_pools = 1;
	return cfg;
}
