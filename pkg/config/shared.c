/*
 * config.json of k8s-rdma-shared-dev-plugin: whole HCAs that many containers share. Its pools stand
 * beside those of VFs in struct config, and each entry can have an object `railmate`, as there.
 */
#include "config/shared.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"

#define PREFIX_DEFAULT "rdma" /* that plugin's */
#define SHARES_MAX     10000  /* the kubelet is sent a list of them */
#define ENTRIES_MAX    64

/* `entry` comes first: the readers of other files know only that. */
struct shared_entry {
	struct pool_entry entry;
	struct selector selector;
};

static int read_shares(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	int r = want(p, value, ITEM_NUMBER);

	(void)key;
	if (r < 0)
		return r;
	if (!value->whole || value->number < 1 || value->number > SHARES_MAX)
		return refuse(p, value, "must be a number from 1 to %d", SHARES_MAX);
	((struct pool_entry *)out)->pool.shares = (unsigned)value->number;
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
	return read_members(p, value, &selector_set, &((struct shared_entry *)out)->selector);
}

/* The way before there were selectors: names of interfaces. */
static int read_devices(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	(void)key;
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
		{ .name = "resourceName", .read = read_resource_name },
		{ .name = "resourcePrefix", .read = read_resource_prefix },
		{ .name = "rdmaHcaMax", .read = read_shares },
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
	(void)key;
	return read_pools(p, value, one_pool, ENTRIES_MAX, out);
}

/* How often that plugin looks for HCAs; railmated follows events, and has --rescan. */
static int read_interval(struct parse *p, const struct item *value, const struct key *key,
			 void *out)
{
	(void)key;
	(void)out;
	return want(p, value, ITEM_NUMBER);
}

static int read_document(struct parse *p, const struct item *document, void *ret_pools)
{
	static const struct key keys[] = {
		{ .name = "configList", .read = read_config_list, .vital = true },
		{ .name = "periodicUpdateInterval", .read = read_interval },
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
