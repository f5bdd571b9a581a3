/* The objects named `railmate`: keys that sriov-network-device-plugin ignores, so roll-back needs
 * no edit. */
#include "config/config-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "topo/rails.h"

#define GID_INDEX_MAX 255
#define FIXED	      "fixed:"

static int read_gid(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_config *pool = out;
	int r = want(p, value, ITEM_STRING);
	uint64_t index;

	(void)key;
	if (r < 0)
		return r;
	if (str_eq(value->string, "auto")) {
		pool->gid = GID_AUTO;
	} else if (str_eq(value->string, "off")) {
		pool->gid = GID_OFF;
	} else if (str_starts(value->string, FIXED) &&
		   str_to_u64(value->string + strlen(FIXED), 10, GID_INDEX_MAX, &index) == 0) {
		pool->gid = GID_FIXED;
		pool->gid_index = (int)index;
	} else {
		return refuse(p, value,
			      "'%s' is not legal; legal values: auto, off, fixed:0 to fixed:%d",
			      shown(p, value), GID_INDEX_MAX);
	}
	return 0;
}

static int read_binding(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	enum { AUTO = BINDING_LATE + 1 };
	static const char *const names[] = {
		[BINDING_EARLY] = "early", [BINDING_LATE] = "late", [AUTO] = "auto"
	};
	struct pool_config *pool = out;
	int choice = 0, r;

	(void)key;
	r = want_choice(p, value, names, ARRAY_LEN(names), &choice);
	if (r < 0)
		return r;
	pool->binding = choice == BINDING_LATE ? BINDING_LATE : BINDING_EARLY;
	pool->binding_auto = choice == AUTO;
	return 0;
}

static int read_vfs_only(struct parse *p, const struct item *value, const struct key *key,
			 void *out)
{
	int r = want(p, value, ITEM_BOOL);

	(void)key;
	if (r == 0)
		((struct pool_config *)out)->pfs = value->boolean ? PFS_NEVER : PFS_TAKEN;
	return r;
}

/* The members of an object but one, as they are written. */
static size_t take_members(struct parse *p, const struct item *object, const char *but,
			   const struct policy_env **ret)
{
	struct policy_env *v = arena_array(p->out, object->n_kids, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < object->n_kids; i++) {
		const struct item *kid = &object->kids[i];

		if (strcmp(kid->key, but) != 0)
			v[n++] =
				(struct policy_env) { arena_strdup(p->out, kid->key),
						      arena_printf(p->out, "%.*s",
								   (int)kid->text_len, kid->text) };
	}
	*ret = v;
	return n;
}

/* The mount table of the image's own file, whose place railmate's takes. */
static int read_cufile(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	const struct item *properties = item_get(value, "properties");
	struct pool_config *pool = out;

	(void)key;
	if (value->type != ITEM_BOOL && value->type != ITEM_OBJECT)
		return refuse(p, value,
			      "must be true, false or the members of a cufile.json, not %s",
			      item_type_name(value->type));
	if (properties && want(p, properties, ITEM_OBJECT) < 0)
		return -EINVAL;
	if (item_get(properties, "rdma_dev_addr_list"))
		config_warn(p, properties,
			    "rdma_dev_addr_list is what railmate writes, for each container");
	pool->cufile = value->type == ITEM_OBJECT || value->boolean;
	pool->n_cufile_base = take_members(p, value, "properties", &pool->cufile_base);
	if (properties)
		pool->n_cufile_properties =
			take_members(p, properties, "rdma_dev_addr_list", &pool->cufile_properties);
	return 0;
}

void railmate_pool_defaults(struct pool_config *pool)
{
	pool->roce_version = 2;
	pool->profiles = PROFILE_NCCL;
	pool->pkey = -1;
	pool->health = health_defaults;
}

int read_railmate_pool(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	static const char *const networks[] = { [NETWORK_POD] = "pod", [NETWORK_HOST] = "host" };
	static const char *const families[] = {
		[GID_FAMILY_ANY] = "any", [GID_FAMILY_IPV4] = "ipv4", [GID_FAMILY_IPV6] = "ipv6"
	};
	static const char *const files[] = { [TOPOLOGY_FILE_AUTO] = "auto",
					     [TOPOLOGY_FILE_ALWAYS] = "always",
					     [TOPOLOGY_FILE_NEVER] = "never" };
	static const char *const rails[] = { [NCCL_RAILS_AUTO] = "auto",
					     [NCCL_RAILS_ALWAYS] = "always",
					     [NCCL_RAILS_NEVER] = "never" };
	static const struct key keys[] = {
		{ .name = "gid", .read = read_gid },
		KEY_CHOICE("network", struct pool_config, network, networks),
		{ .name = "binding", .read = read_binding },
		{ .name = "vfsOnly", .read = read_vfs_only },
		KEY_BOOL("strict", struct pool_config, strict),
		KEY_CHOICE("gidFamily", struct pool_config, gid_family, families),
		{ .name = "gidRange", .read = read_gid_range },
		{ .name = "roceVersion", .read = read_roce_version },
		{ .name = "pkey", .read = read_pkey },
		{ .name = "profiles", .read = read_profiles },
		KEY_CHOICE("topologyFile", struct pool_config, topology_file, files),
		KEY_CHOICE("ncclRails", struct pool_config, nccl_rails, rails),
		KEY_BOOL("umad", struct pool_config, umad),
		{ .name = "cufile", .read = read_cufile },
		{ .name = "env", .read = read_env },
		{ .name = "health", .read = read_health },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	struct pool_config *pool = out;
	int r;

	(void)key;
	/* A pool with this object is written for railmate. */
	pool->binding_auto = true;
	pool->pfs = PFS_NAMED;
	r = read_members(p, value, &set, out);
	if (r == 0)
		finish_gid(p, value, out);
	return r;
}

/* One entry of gpus; each class of it becomes a row of the match table. */
struct gpu_entry {
	const struct item *vendor_item;
	uint16_t vendor;
	const uint16_t *classes;
	size_t n_classes;
	const char *name;
};

static int read_vendor(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct gpu_entry *gpu = out;

	(void)key;
	gpu->vendor_item = value;
	return want_hex4(p, value, "PCI vendor", &gpu->vendor);
}

static int one_class(struct parse *p, const struct item *value, void *ret_element)
{
	return want_hex4(p, value, "PCI class", ret_element);
}

static int one_gpu(struct parse *p, const struct item *value, void *ret_element)
{
	static const struct key keys[] = {
		{ .name = "vendor", .read = read_vendor },
		KEY_LIST("classes", struct gpu_entry, classes, one_class),
		KEY_STRING("name", struct gpu_entry, name),
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct gpu_entry *gpu = ret_element;
	int r = read_members(p, value, &set, gpu);

	if (r < 0)
		return r;
	if (!gpu->vendor_item || !gpu->n_classes || !gpu->name)
		return refuse(
			p, value,
			"needs vendor (\"10de\"), classes ([\"0300\", \"0302\"]) and name (\"NVIDIA\")");
	return 0;
}

/* The object beside resourceList. */
struct top {
	const struct gpu_entry *entries;
	size_t n_entries;
	const struct topo_rail_name *rails;
	size_t n_rails;
};

static int read_gpus(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct top *gpus = out;
	int r = read_list(p, value, key, gpus);

	if (r == 0 && !gpus->n_entries)
		return refuse(p, value, "is an empty list; leave it out for the built-in table");
	return r;
}

static int read_rail(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct topo_rail_name *name = out;

	(void)key;
	if (value->type != ITEM_NUMBER || !value->whole || value->number < 0 ||
	    value->number > TOPO_RAIL_MAX)
		return refuse(p, value, "is not a rail: a whole number from 0 to %d",
			      TOPO_RAIL_MAX);
	name->rail = (int)value->number;
	return 0;
}

static int read_plane(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct topo_rail_name *name = out;

	(void)key;
	if (value->type != ITEM_NUMBER || !value->whole || value->number < 0 ||
	    value->number > TOPO_PLANE_MAX)
		return refuse(p, value, "is not a plane: a whole number from 0 to %d",
			      TOPO_PLANE_MAX);
	name->has_plane = true;
	name->plane = (int)value->number;
	return 0;
}

/* { "ens1f0": 0, "0000:3b:00.0": { "rail": 1, "plane": 0 } } */
static int read_rails(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	static const struct key keys[] = {
		{ .name = "rail", .read = read_rail },
		{ .name = "plane", .read = read_plane },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct top *top = out;
	struct topo_rail_name *rails;
	int r;

	(void)key;
	if (want(p, value, ITEM_OBJECT) < 0)
		return -EINVAL;
	rails = arena_array(p->out, value->n_kids, sizeof(*rails));
	for (size_t i = 0; i < value->n_kids; i++) {
		const struct item *rail = &value->kids[i];

		rails[i] = (struct topo_rail_name) { .nic = arena_strdup(p->out, rail->key),
						     .rail = -1 };
		r = rail->type == ITEM_OBJECT ? read_members(p, rail, &set, &rails[i])
					      : read_rail(p, rail, NULL, &rails[i]);
		if (r < 0)
			return r;
		if (rails[i].rail < 0)
			return refuse(p, rail, "names no rail: {\"rail\": 3, \"plane\": 1}");
	}
	top->rails = rails;
	top->n_rails = value->n_kids;
	return 0;
}

static void fill_table(struct parse *p, const struct top *gpus, struct config *cfg)
{
	struct gpu_match *rows;
	size_t n = 0;

	for (size_t i = 0; i < gpus->n_entries; i++)
		n += gpus->entries[i].n_classes;
	rows = arena_array(p->out, n, sizeof(*rows));
	cfg->gpus = rows;
	cfg->n_gpus = n;
	for (size_t i = 0; i < gpus->n_entries; i++) {
		const struct gpu_entry *e = &gpus->entries[i];

		for (size_t c = 0; c < e->n_classes; c++)
			*rows++ = (struct gpu_match) { e->vendor, e->classes[c], e->name };
	}
}

int read_railmate_top(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	static const struct key keys[] = {
		{ .name = "gpus", .read = read_gpus, LIST_OF(struct top, entries, one_gpu) },
		{ .name = "rails", .read = read_rails },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	struct config *cfg = out;
	struct top top = { .entries = NULL };
	int r;

	(void)key;
	r = read_members(p, value, &set, &top);
	if (r < 0)
		return r;
	if (top.n_entries)
		fill_table(p, &top, cfg);
	cfg->rails = top.rails;
	cfg->n_rails = top.n_rails;
	return 0;
}
