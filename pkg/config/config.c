/*
 * A configuration from its JSON: names of resources, the list of pools, selectors, and the document
 * itself. railmate.c reads our own objects in it, keys.c the tables of keys; compose.c makes one
 * configuration of several.
 */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"

/* Names that the kubelet takes as an extended resource: k8s.io/kubernetes pkg/apis/core/v1/helper
 * IsExtendedResourceName. */

#define ALNUM_LOWER    "abcdefghijklmnopqrstuvwxyz0123456789"
#define ALNUM	       ALNUM_LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_MAX_LEN   63
#define PREFIX_MAX_LEN (253 - 9) /* the kubelet checks "requests." + prefix as a DNS subdomain */

/* Labels of lower-case letters, digits and inner hyphens, with dots between them. */
static bool is_dns_subdomain(const char *s)
{
	for (;;) {
		size_t n = strspn(s, ALNUM_LOWER "-");

		if (!n || s[0] == '-' || s[n - 1] == '-')
			return false;
		if (!s[n])
			return true;
		if (s[n] != '.')
			return false;
		s += n + 1;
	}
}

/* NULL: the kubelet will take prefix/name as an extended resource; else why not. */
static const char *resource_prefix_fault(const char *prefix)
{
	if (strlen(prefix) > PREFIX_MAX_LEN || !is_dns_subdomain(prefix))
		return "must be a DNS subdomain: lower-case letters, digits, inner '-' and '.', at most 244 characters";
	if (str_ends(prefix, "kubernetes.io"))
		return "lies in kubernetes.io, which the kubelet refuses";
	if (!strncmp(prefix, "requests.", strlen("requests.")))
		return "begins with 'requests.', which the kubelet refuses";
	return NULL;
}

static const char *resource_name_fault(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > NAME_MAX_LEN || strspn(name, ALNUM "-_") != len)
		return "must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'";
	if (!strchr(ALNUM, name[0]) || !strchr(ALNUM, name[len - 1]))
		return "must begin and end with a letter or digit, or the kubelet refuses it";
	return NULL;
}

#define VF_INDEX_MAX 65535 /* sriov_totalvfs has 16 bits */

int one_vendor(struct parse *p, const struct item *value, void *ret_element)
{
	return want_hex4(p, value, "PCI vendor id", ret_element);
}

int one_device(struct parse *p, const struct item *value, void *ret_element)
{
	return want_hex4(p, value, "PCI device id", ret_element);
}

static int one_address(struct parse *p, const struct item *value, void *ret_element)
{
	int r = want(p, value, ITEM_STRING);

	if (r < 0)
		return r;
	if (bdf_parse(value->string, ret_element) < 0)
		return refuse(p, value, "'%s' is not a PCI address; it looks like 0000:3b:00.2",
			      shown(p, value));
	return 0;
}

static int one_acpi_index(struct parse *p, const struct item *value, void *ret_element)
{
	int r = want(p, value, ITEM_STRING);
	uint64_t v;

	if (r < 0)
		return r;
	if (str_to_u64(value->string, 10, INT_MAX, &v) < 0)
		return refuse(
			p, value,
			"'%s' is not an acpi_index; it is a decimal number in a string, such as \"101\"",
			shown(p, value));
	*(int *)ret_element = (int)v;
	return 0;
}

int one_link_type(struct parse *p, const struct item *value, void *ret_element)
{
	static const char *const types[] = { "ether", "infiniband" };
	const char **ret = ret_element;
	int choice = 0, r;

	r = want_choice(p, value, types, ARRAY_LEN(types), &choice);
	if (r == 0)
		*ret = types[choice];
	return r;
}

/* "3" or "2-7", in place. */
static bool parse_range(char *text, struct index_range *ret)
{
	char *dash = strchr(text, '-');
	uint64_t first, last;

	if (dash)
		*dash++ = '\0';
	if (str_to_u64(text, 10, VF_INDEX_MAX, &first) < 0)
		return false;
	last = first;
	if (dash && (str_to_u64(dash, 10, VF_INDEX_MAX, &last) < 0 || last < first))
		return false;
	*ret = (struct index_range) { (int)first, (int)last };
	return true;
}

static size_t count_char(const char *s, char c)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == c;
	return n;
}

static bool parse_ranges(struct parse *p, const char *text, struct pf_selector *out)
{
	struct index_range *ranges =
		arena_array(p->out, count_char(text, ',') + 1, sizeof(*ranges));
	char *rest = arena_strdup(p->scratch, text), *one;

	out->ranges = ranges;
	while ((one = strsep(&rest, ","))) {
		if (!parse_range(one, &ranges[out->n_ranges++]))
			return false;
	}
	return true;
}

/* "name#ranges" */
static int one_pf(struct parse *p, const struct item *value, void *ret_element)
{
	struct pf_selector *pf = ret_element;
	int r = want(p, value, ITEM_STRING);
	const char *hash;

	if (r < 0)
		return r;
	hash = strchrnul(value->string, '#');
	pf->name = arena_printf(p->out, "%.*s", (int)(hash - value->string), value->string);
	if (!pf->name[0])
		return refuse(p, value, "'%s' names no PF", shown(p, value));
	if (*hash && !parse_ranges(p, hash + 1, pf))
		return refuse(
			p, value,
			"'%s' has a bad range: behind '#' stand VF indexes from 0 to %d and ascending ranges, such as '%s#0,2-7'",
			shown(p, value), VF_INDEX_MAX, document_shown(pf->name, p->scratch));
	return 0;
}

static int one_root_device(struct parse *p, const struct item *value, void *ret_element)
{
	struct pf_selector *pf = ret_element;
	char text[BDF_STRLEN];
	struct bdf bdf;
	int r = one_pf(p, value, pf);

	if (r < 0)
		return r;
	if (bdf_parse(pf->name, &bdf) < 0)
		return refuse(
			p, value,
			"'%s' is not a PCI address of a PF; it looks like 0000:3b:00.0 or 0000:3b:00.0#0-7",
			shown(p, value));
	pf->name = arena_strdup(p->out, bdf_format(bdf, text));
	return 0;
}

static int one_pkey(struct parse *p, const struct item *value, void *ret_element)
{
	int r = want(p, value, ITEM_STRING);
	uint64_t v;

	if (r < 0)
		return r;
	if (strncasecmp(value->string, "0x", 2) || strlen(value->string) != 6 ||
	    str_to_u64(value->string + 2, 16, UINT16_MAX, &v) < 0)
		return refuse(p, value, "'%s' is not a P_Key; it looks like 0x8001",
			      shown(p, value));
	*(uint16_t *)ret_element = (uint16_t)v;
	return 0;
}

/* A value that asks for nothing: false, "", []. */
static bool is_idle(const struct item *value)
{
	switch (value->type) {
	case ITEM_BOOL:
		return !value->boolean;
	case ITEM_STRING:
		return !value->string[0];
	case ITEM_LIST:
		return !value->n_kids;
	default:
		return false;
	}
}

/* Selectors of the peer that would change the devices of a pod: without them it would be a guess.
 */
static int read_unsupported(struct parse *p, const struct item *value, const struct key *key,
			    void *out)
{
	if (is_idle(value))
		return 0;
	return refuse(p, value,
		      "%s is not supported: railmate serves RDMA VFs of network cards (netDevice)",
		      key->name);
}

/* The pool whose selector has this member: selectors are an object or a list of objects. */
static bool is_of_aux_pool(const struct item *member)
{
	const struct item *pool = member->parent->parent;

	if (pool && pool->type == ITEM_LIST)
		pool = pool->parent;
	for (size_t i = 0; pool && i < pool->n_kids; i++) {
		const struct item *kid = &pool->kids[i];

		if (!strcasecmp(kid->key, "deviceType") && kid->type == ITEM_STRING &&
		    str_eq(kid->string, "auxNetDevice"))
			return true;
	}
	return false;
}

/* The peer knows it for auxNetDevice only, which is refused, and ignores it here. */
static int read_aux_types(struct parse *p, const struct item *value, const struct key *key,
			  void *out)
{
	if (!is_idle(value) && !is_of_aux_pool(value))
		config_warn(p, value, "'%s' is for auxNetDevice: it does nothing here", key->name);
	return 0;
}

static const struct key keys_of_selector[] = {
	KEY_LIST("vendors", struct selector, vendors, one_vendor),
	KEY_LIST("devices", struct selector, devices, one_device),
	KEY_LIST("drivers", struct selector, drivers, one_string),
	KEY_LIST("pciAddresses", struct selector, addresses, one_address),
	KEY_LIST("acpiIndexes", struct selector, acpi_indexes, one_acpi_index),
	KEY_LIST("pfNames", struct selector, pf_names, one_pf),
	KEY_LIST("rootDevices", struct selector, root_devices, one_root_device),
	KEY_LIST("linkTypes", struct selector, link_types, one_link_type),
	KEY_LIST("pKeys", struct selector, pkeys, one_pkey),
	KEY_BOOL("isRdma", struct selector, is_rdma),
	KEY_BOOL("needVhostNet", struct selector, need_vhost_net),
	{ .name = "vdpaType", .read = read_unsupported, .hidden = true },
	{ .name = "ddpProfiles", .read = read_unsupported, .hidden = true },
	{ .name = "auxTypes", .read = read_aux_types, .hidden = true },
};

static const struct key_set selector_keys = { .keys = keys_of_selector,
					      .n = ARRAY_LEN(keys_of_selector) };

static bool selects_all(const struct selector *s)
{
	return !(s->n_vendors || s->n_devices || s->n_drivers || s->n_addresses ||
		 s->n_acpi_indexes || s->n_pf_names || s->n_root_devices || s->n_link_types ||
		 s->n_pkeys || s->is_rdma);
}

static const char *unknown_key(const struct item *object)
{
	for (size_t i = 0; i < object->n_kids; i++) {
		if (!key_find(&selector_keys, object->kids[i].key))
			return object->kids[i].key;
	}
	return NULL;
}

static int one_selector(struct parse *p, const struct item *value, void *ret_element)
{
	int r = read_members(p, value, &selector_keys, ret_element);
	const char *unknown = r < 0 ? NULL : unknown_key(value);

	if (r == 0 && unknown && selects_all(ret_element))
		return refuse(
			p, value,
			"without the unknown key '%s' it selects every device; {} does that, if it is meant",
			document_shown(unknown, p->scratch));
	return r;
}

static const struct key selectors_of_pool = {
	.name = "selectors",
	LIST_OF(struct pool_config, selectors, one_selector),
};

/* selectors: one object or a list of them. */
static int read_selectors(struct parse *p, const struct item *value, const struct key *key,
			  void *out)
{
	struct pool_config *pool = out;
	struct selector *one;

	if (value->type == ITEM_LIST) {
		if (!value->n_kids)
			return refuse(
				p, value,
				"is an empty list, which selects nothing; leave it out to select every device");
		return read_list(p, value, &selectors_of_pool, pool);
	}
	if (value->type != ITEM_OBJECT)
		return refuse(p, value, "must be an object or a list of objects, not %s",
			      item_type_name(value->type));
	one = arena_alloc(p->out, sizeof(*one));
	pool->selectors = one;
	pool->n_selectors = 1;
	return one_selector(p, value, one);
}

/* The list of pools, which both kinds of configuration have: names, and which pools are left out.
 */

int read_resource_name(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	const char *fault;

	fault = resource_name_fault(value->string);
	if (fault)
		return refuse(p, value, "resource name '%s' %s", shown(p, value), fault);
	((struct pool_entry *)out)->name = value;
	return 0;
}

/* "" is the peers' way to leave it out. */
int read_resource_prefix(struct parse *p, const struct item *value, const struct key *key,
			 void *out)
{
	struct pool_entry *e = out;
	const char *fault;
	int r = want(p, value, ITEM_STRING);

	e->misnamed = r < 0;
	if (r < 0 || !value->string[0])
		return r;
	fault = resource_prefix_fault(value->string);
	e->misnamed = fault;
	if (fault)
		return refuse(p, value, "resource prefix '%s' %s", shown(p, value), fault);
	e->prefix = value;
	return 0;
}

static const char *resource_of(const struct parse *p, const struct pool_entry *e)
{
	return arena_printf(p->out, "%s/%s", e->prefix ? e->prefix->string : p->default_prefix,
			    e->name->string);
}

int name_pool(struct parse *p, struct pool_entry *e)
{
	const char *fault = e->prefix ? NULL : resource_prefix_fault(p->default_prefix);

	if (!e->name)
		return refuse(p, e->at, "has no resourceName");
	if (fault)
		return refuse(p, e->at, "the default resource prefix '%s' (of the command line) %s",
			      document_shown(p->default_prefix, p->scratch), fault);
	e->pool.name = arena_strdup(p->out, e->name->string);
	e->pool.prefix = arena_strdup(p->out, e->prefix ? e->prefix->string : p->default_prefix);
	e->pool.resource = resource_of(p, e);
	return 0;
}

/* As variables of a container, where case and signs are gone (render_env_name()). */
static bool same_variables(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		bool signs = strchr("-_./", *a) && strchr("-_./", *b);

		if (!signs && tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
	}
	return *a == *b;
}

/* line: of the other pool; 0: it is in another file. */
static int check_pair(const struct parse *p, const struct pool_entry *e, const char *other,
		      int line)
{
	const char *of = line ? arena_printf(p->scratch, "line %d already", line) : "another pool";

	if (str_eq(other, e->pool.resource))
		return refuse(p, e->name, "'%s' is the resource of %s: names must differ",
			      e->pool.resource, of);
	if (same_variables(other, e->pool.resource))
		return refuse(
			p, e->name,
			"'%s' and '%s' would have the same variables in a container: names must differ in more than case, '-', '_', '.' and '/'",
			e->pool.resource, other);
	return 0;
}

static int check_unique(const struct parse *p, const struct pool_list *list,
			const struct pool_entry *e)
{
	const struct config *other = list->other;
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = check_pair(p, e, list->v[i].pool.resource, list->v[i].name->line);
	for (size_t i = 0; r == 0 && other && i < other->n_pools; i++)
		r = check_pair(p, e, other->pools[i].resource, 0);
	return r;
}

/* The reason comes before the pool's other errors, which are from `at` on. */
static void leave_pool_out(struct parse *p, size_t at)
{
	const char **v = p->errors.v, *last;

	if (!p->n_refused++) {
		p->refusal = arena_strdup(p->scratch, p->err->msg);
		p->refused_at = at;
	}
	leave_out(p, "the pool");
	if (p->errors.n > WARNINGS_MAX)
		return;
	last = v[p->errors.n - 1];
	memmove(&v[at + 1], &v[at], (p->errors.n - 1 - at) * sizeof(*v));
	v[at] = last;
}

/* Behind so many errors an entry is not read to its end. */
static void note_fault(struct parse *p, struct pool_list *list, const struct pool_entry *e)
{
	bool known = e->name && !e->misnamed && p->errors.n < WARNINGS_MAX;

	list->faults[list->n_faults++] =
		(struct pool_error) { known ? resource_of(p, e) : NULL, list->n };
}

int read_pools(struct parse *p, const struct item *value, pool_fn one, size_t max,
	       struct pool_list *ret)
{
	int r = want(p, value, ITEM_LIST);

	if (r < 0)
		return r;
	if (value->n_kids > max)
		return refuse(p, value, "has %zu pools; at most %zu are served", value->n_kids,
			      max);
	ret->v = arena_array(p->scratch, value->n_kids, sizeof(*ret->v));
	ret->faults = arena_array(p->scratch, value->n_kids, sizeof(*ret->faults));
	for (size_t i = 0; i < value->n_kids; i++) {
		struct pool_entry entry = { .at = &value->kids[i] };
		size_t n_errors = p->errors.n;

		railmate_pool_defaults(&entry.pool);
		r = one(p, &value->kids[i], &entry);
		if (r == 0)
			r = check_unique(p, ret, &entry);
		if (r < 0 || p->errors.n > n_errors)
			note_fault(p, ret, &entry);
		if (r == 0)
			ret->v[ret->n++] = entry;
		else
			leave_pool_out(p, n_errors);
	}
	return 0;
}

int refuse_empty(const struct parse *p, const struct item *document, const char *list)
{
	if (p->n_refused == 1)
		return err_set(p->err, EINVAL, "%s", p->refusal);
	if (p->n_refused)
		return err_set(p->err, EINVAL,
			       "%s; none of the %zu other pools can be served either", p->refusal,
			       p->n_refused - 1);
	return refuse(p, document, "nothing to serve: '%s' must list at least one pool", list);
}

const struct pool_error *take_faults(struct parse *p, const struct pool_list *list)
{
	return arena_copy(p->out, list->faults, list->n_faults * sizeof(*list->faults));
}

const struct pool_config *take_pools(struct parse *p, const struct pool_list *list)
{
	struct pool_config *pools = arena_array(p->out, list->n, sizeof(*pools));

	for (size_t i = 0; i < list->n; i++)
		pools[i] = list->v[i].pool;
	return pools;
}

#define PREFIX_DEFAULT "intel.com" /* sriov-network-device-plugin's */

static int read_device_type(struct parse *p, const struct item *value, const struct key *key,
			    void *out)
{
	static const char *const types[] = { "netDevice" };
	int choice;

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
	int r;

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
		{ .name = "resourceName", .type = ITEM_STRING, .read = read_resource_name },
		{ .name = "resourcePrefix", .read = read_resource_prefix },
		{ .name = "deviceType", .read = read_device_type },
		KEY_BOOL("excludeTopology", struct pool_entry, pool.exclude_topology),
		{ .name = "selectors", .read = read_selectors },
		{ .name = "additionalInfo", .type = ITEM_OBJECT, .read = read_extra },
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
