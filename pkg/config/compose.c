/*
 * Configurations made of others: what the shared file and the operator's hints add to one, and what
 * stays of the one before when the files change. The callers are load and the tests.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"
#include "topo/topo.h"

#define GROUPS_MAX    256
#define ADDRESSES_MAX 4096 /* of all groups */
#define NODE_MAX      4095

/* An address and where it stands. */
struct seen {
	struct bdf bdf;
	int line;
};

/* The readers get the parse only; it comes first. */
struct hints_parse {
	struct parse p;
	struct seen *seen; /* ADDRESSES_MAX */
	size_t n_seen;
};

static int one_address(struct parse *p, const struct item *value, void *ret_element)
{
	struct hints_parse *h = (struct hints_parse *)p;
	struct bdf bdf;
	int r = want(p, value, ITEM_STRING);

	if (r < 0)
		return r;
	if (bdf_parse(value->string, &bdf) < 0)
		return refuse(p, value, "'%s' is not a PCI address such as 0001:00:00.0",
			      shown(p, value));
	for (size_t i = 0; i < h->n_seen; i++) {
		if (!bdf_cmp(h->seen[i].bdf, bdf))
			return refuse(p, value, "'%s' stands in line %d already", shown(p, value),
				      h->seen[i].line);
	}
	if (h->n_seen == ADDRESSES_MAX)
		return refuse(p, value, "more than %d addresses", ADDRESSES_MAX);
	h->seen[h->n_seen++] = (struct seen) { bdf, value->line };
	*(struct bdf *)ret_element = bdf;
	return 0;
}

static int one_group(struct parse *p, const struct item *value, void *ret_element)
{
	static const struct key keys[] = {
		KEY_LIST("gpus", struct topo_group, gpus, one_address),
		KEY_LIST("nics", struct topo_group, nics, one_address),
		KEY_NUMBER("numa", struct topo_group, numa, 0, NODE_MAX),
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct topo_group *g = ret_element;
	int r;

	g->numa = -1;
	r = read_members(p, value, &set, g);
	if (r < 0)
		return r;
	if (!g->n_gpus || !g->n_nics)
		return refuse(p, value, "needs at least one address in 'gpus' and one in 'nics'");
	return 0;
}

static int read_groups(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	if (value->type == ITEM_LIST && value->n_kids > GROUPS_MAX)
		return refuse(p, value, "has %zu groups; at most %d are read", value->n_kids,
			      GROUPS_MAX);
	return read_list(p, value, key, out);
}

/* PCIe generations 3 to 6; in hints as in hw_pci. */
static int read_link_speed(struct parse *p, const struct item *value, const struct key *key,
			   void *out)
{
	struct topo_hints *hints = out;
	int r = read_number(p, value, key, out);

	if (r < 0)
		return r;
	if (hints->link_mts & (hints->link_mts - 1))
		return refuse(p, value, "must be 8, 16, 32 or 64, in GT/s");
	hints->link_mts *= 1000;
	return 0;
}

static int read_hints(struct parse *p, const struct item *document, void *ret_hints)
{
	static const struct key keys[] = {
		{ .name = "groups",
		  .read = read_groups,
		  LIST_OF(struct topo_hints, groups, one_group) },
		{ .name = "linkSpeed",
		  .read = read_link_speed,
		  .at = offsetof(struct topo_hints, link_mts),
		  .min = 8,
		  .max = 64 },
		KEY_NUMBER("linkWidth", struct topo_hints, link_width, 1, 32),
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct topo_hints *hints = ret_hints;
	int r = read_members(p, document, &set, hints);

	if (r == 0 && !hints->n_groups)
		r = refuse(p, document, "'groups' must list at least one group");
	return r;
}

int config_parse_hints(const char *text, size_t len, const char *name, struct config *cfg,
		       struct strbuf *also, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	struct topo_hints *hints = arena_alloc(cfg->arena, sizeof(*hints));
	struct hints_parse h = { .p = { .name = name, .out = cfg->arena, .scratch = scratch },
				 .seen = arena_array(scratch, ADDRESSES_MAX, sizeof(struct seen)) };
	int r = read_file_text(&h.p, text, len, HINTS_BYTES_MAX, read_hints, hints, also, err);

	if (r < 0)
		return r;
	hints->source = arena_strdup(cfg->arena, name);
	cfg->n_warnings =
		append_sentences(cfg->arena, &h.p.warnings, &cfg->warnings, cfg->n_warnings);
	cfg->hints = hints;
	return 0;
}

/*
 * config.json of k8s-rdma-shared-dev-plugin: whole HCAs that many containers share. Its pools stand
 * beside those of VFs in struct config, and each entry can have an object `railmate`, as there.
 */

#define PREFIX_DEFAULT "rdma" /* that plugin's */
#define SHARES_MAX     10000  /* the kubelet is sent a list of them */
#define ENTRIES_MAX    64

/* `entry` comes first: the readers of other files know only that. */
struct shared_entry {
	struct pool_entry entry;
	struct selector selector;
};

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
	return read_members(p, value, &selector_set, &((struct shared_entry *)out)->selector);
}

/* The way before there were selectors: names of interfaces. */
static int read_devices(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	return read_list(p, value, key_find(&selector_set, "ifNames"),
			 &((struct shared_entry *)out)->selector);
}

static int finish(struct parse *p, struct pool_entry *e, const struct selector *selector)
{
	int r = name_pool(p, e);

	if (r < 0)
		return r;
	if (!e->pool.shares)
		return refuse(p, e->at,
			      "has no rdmaHcaMax: how many containers may share the HCAs");
	if (!(selector->n_vendors || selector->n_devices || selector->n_drivers ||
	      selector->n_if_names || selector->n_link_types))
		return refuse(p, e->at, "selects no HCA: 'selectors' or 'devices' must name some");
	if (e->pool.binding == BINDING_LATE) {
		refuse(p, e->at, "binding: late is for VFs; a shared HCA is not chosen");
		leave_out(p, "binding");
		e->pool.binding = BINDING_EARLY;
	}
	e->pool.binding_auto = false;
	e->pool.pfs = PFS_TAKEN;
	e->pool.is_rdma = true;
	e->pool.exclude_topology = true;
	e->pool.selectors = selector;
	e->pool.n_selectors = 1;
	check_pool(p, e->at, &e->pool);
	return 0;
}

static int one_pool(struct parse *p, const struct item *value, struct pool_entry *ret)
{
	static const struct key keys[] = {
		{ .name = "resourceName", .type = ITEM_STRING, .read = read_resource_name },
		{ .name = "resourcePrefix", .read = read_resource_prefix },
		KEY_NUMBER("rdmaHcaMax", struct pool_entry, pool.shares, 1, SHARES_MAX),
		{ .name = "devices", .read = read_devices },
		{ .name = "selectors", .read = read_shared_selectors },
		{ .name = "railmate", .read = read_railmate_pool },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct shared_entry *e = arena_alloc(p->out, sizeof(*e));
	int r;

	e->entry = *ret;
	e->selector.is_rdma = true;
	r = read_members(p, value, &set, e);
	*ret = e->entry;
	return r < 0 ? r : finish(p, ret, &e->selector);
}

static int read_config_list(struct parse *p, const struct item *value, const struct key *key,
			    void *out)
{
	return read_pools(p, value, one_pool, ENTRIES_MAX, out);
}

/* How often that plugin looks for HCAs; railmated follows events, and has --rescan. */
static int read_interval(struct parse *p, const struct item *value, const struct key *key,
			 void *out)
{
	return 0;
}

static int read_document(struct parse *p, const struct item *document, void *ret_pools)
{
	static const struct key keys[] = {
		{ .name = "configList", .read = read_config_list, .vital = true },
		{ .name = "periodicUpdateInterval", .type = ITEM_NUMBER, .read = read_interval },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	struct pool_list *pools = ret_pools;
	int r = read_members(p, document, &set, pools);

	if (r == 0 && !pools->n)
		r = refuse_empty(p, document, "configList");
	return r;
}

int config_parse_shared(const char *text, size_t len, const char *name, struct config *cfg,
			struct strbuf *also, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	struct parse p = { .name = name,
			   .default_prefix = PREFIX_DEFAULT,
			   .out = cfg->arena,
			   .scratch = scratch };
	struct pool_list pools = { .other = cfg };
	int r = read_file_text(&p, text, len, CONFIG_BYTES_MAX, read_document, &pools, also, err);

	if (r < 0)
		return r;
	cfg->shared = take_pools(&p, &pools);
	cfg->n_shared = pools.n;
	cfg->shared_faults = take_faults(&p, &pools);
	cfg->n_shared_faults = pools.n_faults;
	cfg->n_warnings =
		append_sentences(cfg->arena, &p.warnings, &cfg->warnings, cfg->n_warnings);
	cfg->n_errors = append_sentences(cfg->arena, &p.errors, &cfg->errors, cfg->n_errors);
	return 0;
}

/* Configurations that are made of others, and how long each lives. */

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

void config_by_claims(struct config *cfg)
{
	for (size_t i = 0; i < cfg->n_pools; i++) {
		struct pool_config *p = (struct pool_config *)&cfg->pools[i];

		p->binding = BINDING_LATE;
		p->binding_auto = false;
		p->binding_why = "pods get its VFs by ResourceClaims";
		p->exclude_topology = true;
	}
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
