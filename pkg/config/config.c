#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"

#define PREFIX_DEFAULT "intel.com" /* sriov-network-device-plugin's */

/* One entry of resourceList while it is read. `pool` comes first: the readers of other files know
 * only that.
 */
struct pool_entry {
	struct pool_config pool;
	const struct item *at, *name, *prefix; /* NULL while the key was not seen */
};

static int read_name(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_entry *e = out;
	const char *fault;
	int r = want(p, value, ITEM_STRING);

	(void)key;
	if (r < 0)
		return r;
	fault = resource_name_fault(value->string);
	if (fault)
		return refuse(p, value, "resource name '%s' %s", shown(p, value), fault);
	e->name = value;
	return 0;
}

/* "" is the peer's way to leave it out. */
static int read_prefix(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_entry *e = out;
	const char *fault;
	int r = want(p, value, ITEM_STRING);

	(void)key;
	if (r < 0 || !value->string[0])
		return r;
	fault = resource_prefix_fault(value->string);
	if (fault)
		return refuse(p, value, "resource prefix '%s' %s", shown(p, value), fault);
	e->prefix = value;
	return 0;
}

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

static const char *pool_prefix(const struct parse *p, const struct pool_entry *e)
{
	return arena_strdup(p->out, e->prefix ? e->prefix->string : p->default_prefix);
}

/* What follows from several keys of a pool. */
static int finish_pool(struct parse *p, struct pool_entry *e)
{
	const char *fault;

	if (!e->name)
		return refuse(p, e->at, "has no resourceName");
	if (!e->prefix) {
		fault = resource_prefix_fault(p->default_prefix);
		if (fault)
			return refuse(p, e->at,
				      "the default resource prefix '%s' (of the command line) %s",
				      document_shown(p->default_prefix, p->scratch), fault);
	}
	e->pool.name = arena_strdup(p->out, e->name->string);
	e->pool.prefix = pool_prefix(p, e);
	e->pool.resource = arena_printf(p->out, "%s/%s", e->pool.prefix, e->pool.name);
	for (size_t i = 0; i < e->pool.n_selectors; i++)
		e->pool.is_rdma |= e->pool.selectors[i].is_rdma;
	check_pool(p, e->at, &e->pool);
	return 0;
}

static int one_pool(struct parse *p, const struct item *value, void *ret_element)
{
	static const struct key keys[] = {
		{ .name = "resourceName", .read = read_name },
		{ .name = "resourcePrefix", .read = read_prefix },
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
	struct pool_entry *e = ret_element;
	int r;

	e->at = value;
	railmate_pool_defaults(&e->pool);
	r = read_members(p, value, &set, e);
	return r < 0 ? r : finish_pool(p, e);
}

/* The whole file while it is read. */
struct top {
	struct config *config;
	struct pool_entry *entries;
	size_t n;
};

static int check_unique(const struct parse *p, const struct top *top, const struct pool_entry *e)
{
	for (size_t i = 0; i < top->n; i++) {
		const struct pool_entry *other = &top->entries[i];

		if (str_eq(other->pool.resource, e->pool.resource))
			return refuse(p, e->name,
				      "'%s' is the resource of line %d already: names must differ",
				      e->pool.resource, other->name->line);
	}
	return 0;
}

void leave_pool_out(struct parse *p)
{
	if (!p->n_refused++)
		p->refusal = arena_strdup(p->scratch, p->err->msg);
	leave_out(p, "the pool");
}

static int read_resource_list(struct parse *p, const struct item *value, const struct key *key,
			      void *out)
{
	struct top *top = out;
	int r = want(p, value, ITEM_LIST);

	(void)key;
	if (r < 0)
		return r;
	if (value->n_kids > POOLS_MAX)
		return refuse(p, value, "has %zu pools; at most %d are served", value->n_kids,
			      POOLS_MAX);
	top->entries = arena_array(p->out, value->n_kids, sizeof(*top->entries));
	for (size_t i = 0; i < value->n_kids; i++) {
		struct pool_entry entry = { 0 };

		r = one_pool(p, &value->kids[i], &entry);
		if (r == 0)
			r = check_unique(p, top, &entry);
		if (r == 0)
			top->entries[top->n++] = entry;
		else
			leave_pool_out(p);
	}
	return 0;
}

static int read_top_railmate(struct parse *p, const struct item *value, const struct key *key,
			     void *out)
{
	return read_railmate_top(p, value, key, ((struct top *)out)->config);
}

static void take_pools(const struct top *top)
{
	struct config *cfg = top->config;
	struct pool_config *pools = arena_array(cfg->arena, top->n, sizeof(*pools));

	for (size_t i = 0; i < top->n; i++)
		pools[i] = top->entries[i].pool;
	cfg->pools = pools;
	cfg->n_pools = top->n;
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

/* A warning would not be seen: it may be the reason, as of a misspelt key. */
int refuse_empty(const struct parse *p, const struct item *document, const char *list)
{
	const char *why = p->warnings.n ? p->warnings.v[0] : NULL;

	if (p->n_refused == 1)
		return err_set(p->err, EINVAL, "%s", p->refusal);
	if (p->n_refused)
		return err_set(p->err, EINVAL,
			       "%s; none of the %zu other pools can be served either", p->refusal,
			       p->n_refused - 1);
	return refuse(p, document, "nothing to serve: '%s' must list at least one pool%s%s", list,
		      why ? "; " : "", why ? why : "");
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
	if (!top.n)
		return refuse_empty(p, document, "resourceList");
	take_pools(&top);
	cfg->n_warnings = take_sentences(p, &p->warnings, "warnings", &cfg->warnings);
	cfg->n_errors = take_sentences(p, &p->errors, "errors", &cfg->errors);
	return 0;
}

static struct config *config_new(void)
{
	struct arena *arena = arena_new(4096);
	struct config *cfg = arena_alloc(arena, sizeof(*cfg));

	cfg->arena = arena;
	return cfg;
}

static void config_freep(struct config **cfg)
{
	config_free(*cfg);
}

int config_parse(const char *text, size_t len, const char *name, const char *default_prefix,
		 struct config **ret, struct err *err)
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

void config_bind(struct config *cfg, size_t pool, enum pool_binding binding, const char *why)
{
	struct pool_config *p = (struct pool_config *)&cfg->pools[pool];

	p->binding = binding;
	p->binding_why = arena_strdup(cfg->arena, why);
}

void config_free(struct config *cfg)
{
	if (cfg)
		arena_free(cfg->arena);
}
