#include "config/config-internal.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"

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
	(void)out;
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
	(void)out;
	if (!is_idle(value) && !is_of_aux_pool(value))
		config_warn(p, value, "'%s' is for auxNetDevice: it does nothing here", key->name);
	return 0;
}

static const struct key keys[] = {
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

const struct key_set selector_keys = { .keys = keys, .n = ARRAY_LEN(keys) };

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

int read_selectors(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_config *pool = out;
	struct selector *one;

	(void)key;
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
