/*
 * config.json of k8s-rdma-shared-dev-plugin: whole HCAs that many containers share. Its pools stand
 * beside those of VFs in struct config, and each entry can have an object `railmate`, as there.
 */
#include "config/shared.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"

#define PREFIX_DEFAULT "rdma" /* that plugin's */
#define SHARES_MAX     10000  /* the kubelet is sent a list of them */
#define ENTRIES_MAX    64

/* One entry of configList while it is read. `pool` comes first, as in config.c. */
struct entry {
	struct pool_config pool;
	struct selector selector;
	const struct item *at, *name;
	const char *prefix;
};

static int read_name(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	const char *fault;
	int r = want(p, value, ITEM_STRING);

	(void)key;
	if (r < 0)
		return r;
	fault = resource_name_fault(value->string);
	if (fault)
		return refuse(p, value, "resource name '%s' %s", shown(p, value), fault);
	((struct entry *)out)->name = value;
	return 0;
}

static int read_prefix(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	const char *fault;
	int r = want(p, value, ITEM_STRING);

	(void)key;
	if (r < 0 || !value->string[0])
		return r;
	fault = resource_prefix_fault(value->string);
	if (fault)
		return refuse(p, value, "resource prefix '%s' %s", shown(p, value), fault);
	((struct entry *)out)->prefix = arena_strdup(p->out, value->string);
	return 0;
}

static int read_shares(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	int r = want(p, value, ITEM_NUMBER);

	(void)key;
	if (r < 0)
		return r;
	if (!value->whole || value->number < 1 || value->number > SHARES_MAX)
		return refuse(p, value, "must be a number from 1 to %d", SHARES_MAX);
	((struct entry *)out)->pool.shares = (unsigned)value->number;
	return 0;
}

static const struct key selector_rows[] = {
	KEY_LIST("vendors", struct selector, vendors, one_vendor),
	KEY_LIST("deviceIDs", struct selector, devices, one_device),
	KEY_LIST("drivers", struct selector, drivers, one_string),
	KEY_LIST("ifNames", struct selector, if_names, one_string),
	KEY_LIST("linkTypes", struct selector, link_types, one_link_type),
};
static const struct key_set selector_set = { .keys = selector_rows, .n = ARRAY_LEN(selector_rows) };

static int read_shared_selectors(struct parse *p, const struct item *value, const struct key *key,
				 void *out)
{
	(void)key;
	return read_members(p, value, &selector_set, &((struct entry *)out)->selector);
}

/* The way before there were selectors: names of interfaces. */
static int read_devices(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	(void)key;
	return read_list(p, value, key_find(&selector_set, "ifNames"),
			 &((struct entry *)out)->selector);
}

static bool selects_something(const struct selector *s)
{
	return s->n_vendors || s->n_devices || s->n_drivers || s->n_if_names || s->n_link_types;
}

static int finish(struct parse *p, struct entry *e)
{
	if (!e->name)
		return refuse(p, e->at, "has no resourceName");
	if (!e->pool.shares)
		return refuse(p, e->at,
			      "has no rdmaHcaMax: how many containers may share the HCAs");
	if (!selects_something(&e->selector))
		return refuse(p, e->at, "selects no HCA: 'selectors' or 'devices' must name some");
	if (e->pool.binding == BINDING_LATE) {
		refuse(p, e->at, "binding: late is for VFs; a shared HCA is not chosen");
		leave_out(p, "binding");
		e->pool.binding = BINDING_EARLY;
	}
	e->pool.binding_auto = false;
	e->selector.is_rdma = true;
	e->pool.name = arena_strdup(p->out, e->name->string);
	e->pool.prefix = e->prefix ? e->prefix : PREFIX_DEFAULT;
	e->pool.resource = arena_printf(p->out, "%s/%s", e->pool.prefix, e->pool.name);
	e->pool.is_rdma = true;
	e->pool.exclude_topology = true;
	e->pool.selectors = arena_copy(p->out, &e->selector, sizeof(e->selector));
	e->pool.n_selectors = 1;
	check_pool(p, e->at, &e->pool);
	return 0;
}

static int one_entry(struct parse *p, const struct item *value, struct entry *e)
{
	static const struct key keys[] = {
		{ .name = "resourceName", .read = read_name },
		{ .name = "resourcePrefix", .read = read_prefix },
		{ .name = "rdmaHcaMax", .read = read_shares },
		{ .name = "devices", .read = read_devices },
		{ .name = "selectors", .read = read_shared_selectors },
		{ .name = "railmate", .read = read_railmate_pool },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	int r;

	*e = (struct entry) { .at = value };
	railmate_pool_defaults(&e->pool);
	r = read_members(p, value, &set, e);
	return r < 0 ? r : finish(p, e);
}

struct shared_top {
	const struct config *cfg;
	struct pool_config *pools;
	size_t n;
};

static bool is_taken(const struct pool_config *pools, size_t n, const char *resource)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(pools[i].resource, resource))
			return true;
	}
	return false;
}

static int read_config_list(struct parse *p, const struct item *value, const struct key *key,
			    void *out)
{
	struct shared_top *top = out;
	int r = want(p, value, ITEM_LIST);

	(void)key;
	if (r < 0)
		return r;
	if (value->n_kids > ENTRIES_MAX)
		return refuse(p, value, "has %zu entries; at most %d are served", value->n_kids,
			      ENTRIES_MAX);
	top->pools = arena_array(p->out, value->n_kids, sizeof(*top->pools));
	for (size_t i = 0; i < value->n_kids; i++) {
		struct entry e;

		r = one_entry(p, &value->kids[i], &e);
		if (r == 0 && (is_taken(top->pools, top->n, e.pool.resource) ||
			       is_taken(top->cfg->pools, top->cfg->n_pools, e.pool.resource)))
			r = refuse(p, e.name,
				   "'%s' is the resource of another pool: names must differ",
				   e.pool.resource);
		if (r == 0)
			top->pools[top->n++] = e.pool;
		else
			leave_pool_out(p);
	}
	return 0;
}

/* How often that plugin looks for HCAs; railmated follows events, and has --rescan. */
static int read_interval(struct parse *p, const struct item *value, const struct key *key,
			 void *out)
{
	(void)key;
	(void)out;
	return want(p, value, ITEM_NUMBER);
}

static int read_document(struct parse *p, const struct item *document, struct shared_top *top)
{
	static const struct key keys[] = {
		{ .name = "configList", .read = read_config_list, .vital = true },
		{ .name = "periodicUpdateInterval", .read = read_interval },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	int r = read_members(p, document, &set, top);

	if (r == 0 && !top->n)
		r = refuse_empty(p, document, "configList");
	return r;
}

static size_t append(struct arena *arena, const struct sentences *more, const char *const **list,
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

int config_parse_shared(const char *text, size_t len, const char *name, struct config *cfg,
			struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	struct err own = { 0 };
	struct parse p = { .name = name, .out = cfg->arena, .scratch = scratch, .err = &own };
	struct shared_top top = { .cfg = cfg };
	const struct item *document;
	int r;

	if (len > CONFIG_BYTES_MAX)
		return err_set(err, EINVAL, "%s: has %zu bytes; a configuration has at most %u",
			       name, len, CONFIG_BYTES_MAX);
	r = document_parse(text, len, name, scratch, &document, &own);
	if (r == 0)
		r = read_document(&p, document, &top);
	if (r < 0) {
		if (err)
			*err = own;
		return r;
	}
	cfg->shared = top.pools;
	cfg->n_shared = top.n;
	cfg->n_warnings = append(cfg->arena, &p.warnings, &cfg->warnings, cfg->n_warnings);
	cfg->n_errors = append(cfg->arena, &p.errors, &cfg->errors, cfg->n_errors);
	return 0;
}
