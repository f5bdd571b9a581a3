/*
 * Our own objects, "railmate" of a pool and of the document: a key is a row of a table, and those
 * with rules of their own have a reader here; then what does not go together in a pool. config.c
 * calls.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"
#include "config/config.h"
#include "config/policy.h"
#include "document/document.h"
#include "topo/rails.h"

#define KEY_STRING(key, holder, member)                                                            \
	{                                                                                          \
		.name = (key), .read = read_text, .at = AT(holder, member, const char *)           \
	}
/* words: a static array whose indexes are the values of the enum. */
#define KEY_CHOICE(key, holder, member, words)                                                     \
	{                                                                                          \
		.name = (key), .read = read_choice, .choices = (words),                            \
		.n_choices = ARRAY_LEN(words),                                                     \
		.at = offsetof(holder, member) +                                                   \
		      0 * sizeof(char[SIZE_OF(holder, member) == sizeof(int) ? 1 : -1])            \
	}

/* "health" of a pool: when is a link degraded, and when does that make its VFs unhealthy? */

#define FLAPS_MAX  30 /* as many are remembered (pool/link.h) */
#define WINDOW_MIN 60
#define WINDOW_MAX 86400
#define ERRORS_MAX 1000000000

const char *const config_link_troubles[LINK_TROUBLES] = { "flaps", "errors", "slow" };

static const struct pool_health health_defaults = { .flaps = 3,
						    .window_s = 600,
						    .errors_per_minute = 100 };

static int read_unhealthy(struct parse *p, const struct item *value, const struct key *key,
			  void *out)
{
	struct pool_health *health = out;
	int choice, r = 0;

	for (size_t i = 0; r == 0 && i < value->n_kids; i++) {
		r = want_choice(p, &value->kids[i], config_link_troubles, LINK_TROUBLES, &choice);
		if (r == 0)
			health->unhealthy |= 1u << choice;
	}
	return r;
}

/* Whole or not at all: a limit alone, without the others that go with it, would mislead. */
static int read_health(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	static const struct key keys[] = {
		{ .name = "unhealthy", .type = ITEM_LIST, .read = read_unhealthy },
		KEY_NUMBER("flaps", struct pool_health, flaps, 1, FLAPS_MAX),
		KEY_NUMBER("window", struct pool_health, window_s, WINDOW_MIN, WINDOW_MAX),
		KEY_NUMBER("errorsPerMinute", struct pool_health, errors_per_minute, 1, ERRORS_MAX),
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct pool_health health = health_defaults;
	struct pool_config *pool = out;
	int r;

	r = read_members(p, value, &set, &health);
	if (r == 0)
		pool->health = health;
	return r;
}

/* The keys that describe the fabric: GIDs and partitions. */

#define MAPPED_BITS 96 /* ::ffff:0:0/96: IPv4 addresses in a GID */
#define PKEY_FULL   0x8000

static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };

static bool bits_behind(const uint8_t addr[16], int bits)
{
	for (int i = bits; i < 128; i++) {
		if (addr[i / 8] & (0x80 >> i % 8))
			return true;
	}
	return false;
}

/* "10.0.0.0/8", "fd00::/8": an IPv4 one is mapped into ::ffff:0:0/96. */
struct ip_prefix {
	uint8_t addr[16];
	int bits;	/* of 128 */
	bool v6;	/* as written */
	bool host_bits; /* some bit behind the prefix is set */
};

static bool parse_prefix(const char *text, struct ip_prefix *ret)
{
	char addr[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	struct ip_prefix out = { .v6 = strchr(text, ':') != NULL };
	uint64_t bits;

	if (!slash || (size_t)(slash - text) >= sizeof(addr))
		return false;
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	if (str_to_u64(slash + 1, 10, out.v6 ? 128 : 32, &bits) < 0)
		return false;
	if (!out.v6)
		memcpy(out.addr, mapped, sizeof(mapped));
	if (inet_pton(out.v6 ? AF_INET6 : AF_INET, addr, out.v6 ? out.addr : &out.addr[12]) != 1)
		return false;
	out.bits = (int)bits + (out.v6 ? 0 : MAPPED_BITS);
	out.host_bits = bits_behind(out.addr, out.bits);
	*ret = out;
	return true;
}

/* gidRange and pkey. */
static int read_gid_range(struct parse *p, const struct item *value, const struct key *key,
			  void *out)
{
	struct pool_config *pool = out;
	struct ip_prefix prefix;

	if (!parse_prefix(value->string, &prefix))
		return refuse(
			p, value,
			"'%s' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8",
			shown(p, value));
	if (prefix.host_bits)
		return refuse(p, value,
			      "'%s' is the address of a host: all bits behind the prefix must be 0",
			      shown(p, value));
	if (prefix.v6 && prefix.bits >= MAPPED_BITS &&
	    !memcmp(prefix.addr, mapped, MAPPED_BITS / 8))
		return refuse(p, value,
			      "'%s' is a range of IPv4: write it as one, such as 10.0.0.0/8",
			      shown(p, value));
	pool->gid_range = arena_strdup(p->out, value->string);
	memcpy(pool->gid_range_addr, prefix.addr, sizeof(prefix.addr));
	pool->gid_range_bits = prefix.bits;
	return 0;
}

/* The lower 15 bits are the partition, and partition 0 does not exist; the highest bit is full
 * membership. */
static int read_pkey(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	uint64_t pkey;

	if (!str_starts(value->string, "0x") ||
	    str_to_u64(value->string, 16, UINT16_MAX, &pkey) < 0 || !(pkey & ~(uint64_t)PKEY_FULL))
		return refuse(
			p, value,
			"'%s' is not a P_Key; legal values: \"0x0001\" to \"0x7fff\", and with full membership \"0x8001\" to \"0xffff\"",
			shown(p, value));
	((struct pool_config *)out)->pkey = (int)pkey;
	return 0;
}

/* The gid that follows from several keys. */
static void finish_gid(struct parse *p, const struct item *object, struct pool_config *pool)
{
	enum gid_family family;

	if (!pool->gid_range)
		return;
	family = strchr(pool->gid_range, ':') ? GID_FAMILY_IPV6 : GID_FAMILY_IPV4;
	if (pool->gid_family != GID_FAMILY_ANY && pool->gid_family != family) {
		refuse(p, object, "gidRange '%s' has no %s address, and gidFamily asks for one",
		       document_shown(pool->gid_range, p->scratch),
		       pool->gid_family == GID_FAMILY_IPV4 ? "IPv4" : "IPv6");
		leave_out(p, "gidFamily");
	}
	pool->gid_family = family;
}

/* The libraries of containers: profiles, and the operator's variables for them. */

static int read_profiles(struct parse *p, const struct item *value, const struct key *key,
			 void *out)
{
	static const char *const names[] = { "nccl", "rccl",   "ucx",  "nvshmem", "mscclpp",
					     "ofi",  "oneccl", "nixl", "none" };
	struct pool_config *pool = out;
	unsigned profiles = 0, known = 0;
	bool none = false;

	for (size_t i = 0; i < value->n_kids; i++) {
		int choice = 0;

		if (want_choice(p, &value->kids[i], names, ARRAY_LEN(names), &choice) < 0) {
			leave_out(p, "the profile");
			continue;
		}
		none |= choice == ARRAY_LEN(names) - 1;
		known++;
		if (choice < (int)ARRAY_LEN(names) - 1)
			profiles |= 1u << choice;
	}
	if (none && value->n_kids > 1)
		return refuse(p, value, "'none' stands alone, or is left out");
	if (value->n_kids && !known)
		return 0; /* the default holds */
	pool->profiles = profiles | (profiles & PROFILE_NIXL ? PROFILE_UCX : 0);
	pool->profiles_named = true;
	return 0;
}

/* Any word. */
static const struct policy_var unknown_var = { .legal = { .kind = POLICY_TEXT,
							  .shape = "a word without blanks" } };

static int env_cmp(const void *a, const void *b)
{
	return strcmp(((const struct policy_env *)a)->name, ((const struct policy_env *)b)->name);
}

/* Could a shell export it, and is it none of those that railmate writes? */
static bool is_foreign_name(const char *name)
{
	return *name && !strchr("0123456789", *name) &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
		       strlen(name) &&
	       !str_starts(name, "RAILMATE_") && !str_starts(name, "PCIDEVICE_");
}

/* Libraries have new variables with every release: one that is not known here is taken as it is. */
static int check_unknown(struct parse *p, const struct item *at)
{
	const struct policy_var *near = policy_nearest(at->key);
	const char *name = document_shown(at->key, p->scratch);
	int r;

	if (!is_foreign_name(at->key))
		return refuse(p, at, "'%s' is not the name of a variable that a pool can set",
			      name);
	r = want(p, at, ITEM_STRING);
	if (r < 0)
		return r;
	if (!policy_accepts(&unknown_var, at->string))
		return refuse(p, at, "'%s' is not legal; legal values: %s", shown(p, at),
			      policy_legal_text(&unknown_var, p->scratch));
	if (near)
		config_warn(p, at, "'%s' is not known, and taken as it is; did you mean '%s'?",
			    name, near->name);
	else
		config_warn(
			p, at,
			"'%s' is not known, and taken as it is (docs/nccl-variables.md lists the known ones)",
			name);
	return 0;
}

static int refuse_ours(const struct parse *p, const struct item *at, const struct policy_var *var)
{
	if (var->key)
		return refuse(p, at, "railmate sets this; the key '%s' of the pool says how",
			      var->key);
	return refuse(p, at, "railmate sets this, for each container: %s", var->meaning);
}

static int check_repeated(const struct parse *p, const struct item *at)
{
	for (const struct item *other = at->parent->kids; other < at; other++) {
		if (!strcasecmp(other->key, at->key))
			return refuse(p, at,
				      "repeats the variable '%s' of line %d (case does not count)",
				      document_shown(other->key, p->scratch), other->line);
	}
	return 0;
}

/* A name that may be set and a value that it may have. */
static int check_variable(struct parse *p, const struct item *at, const struct policy_var *var)
{
	int r = check_repeated(p, at);
	const char *risk;

	if (r < 0)
		return r;
	if (!var)
		return check_unknown(p, at);
	if (var->class == POLICY_OURS)
		return refuse_ours(p, at, var);
	r = want(p, at, ITEM_STRING);
	if (r < 0)
		return r;
	if (!policy_accepts(var, at->string))
		return refuse(p, at, "'%s' is not legal; legal values: %s", shown(p, at),
			      policy_legal_text(var, p->scratch));
	if (var->class == POLICY_RISKY)
		config_warn(p, at, "is better left alone: %s", var->risk);
	if (var->class == POLICY_GONE)
		config_warn(p, at, "was removed in release %s and does nothing: %s", var->removed,
			    var->meaning);
	risk = policy_value_risk(var->name, at->string);
	if (risk)
		config_warn(p, at, "%s", risk);
	return 0;
}

static void take_variable(struct parse *p, const struct item *at, struct pool_config *pool,
			  struct policy_env *env)
{
	const char *value = arena_strdup(p->out, at->string);

	if (str_eq(at->key, "UCX_NET_DEVICES"))
		pool->ucx_devices = value;
	else
		env[pool->n_env++] = (struct policy_env) { arena_strdup(p->out, at->key), value };
}

static int read_env(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_config *pool = out;
	struct policy_env *env;

	env = arena_array(p->out, value->n_kids, sizeof(*env));
	for (size_t i = 0; i < value->n_kids; i++) {
		const struct item *kid = &value->kids[i];

		if (kid->type == ITEM_NULL)
			continue;
		if (check_variable(p, kid, policy_find(kid->key)) < 0)
			leave_out(p, "the variable");
		else
			take_variable(p, kid, pool, env);
	}
	qsort(env, pool->n_env, sizeof(*env), env_cmp);
	pool->env = env;
	return 0;
}

/* Keys of a pool that are right one by one and do not go together (docs/design/nccl.md §1.5, §4.1,
 * §4.2). */

#define SOCKETS_MAX 64

static const char *value_of(const struct pool_config *pool, const char *name)
{
	for (size_t i = 0; i < pool->n_env; i++) {
		if (str_eq(pool->env[i].name, name))
			return pool->env[i].value;
	}
	return NULL;
}

/* Every selector asks for this link type and no other. */
static bool links_are(const struct pool_config *pool, const char *type)
{
	for (size_t i = 0; i < pool->n_selectors; i++) {
		const struct selector *s = &pool->selectors[i];

		if (!s->n_link_types)
			return false;
		for (size_t k = 0; k < s->n_link_types; k++) {
			if (!str_eq(s->link_types[k], type))
				return false;
		}
	}
	return pool->n_selectors > 0;
}

static void check_infiniband(struct parse *p, const struct item *at, const struct pool_config *pool)
{
	static const char *const names[] = { "NCCL_IB_TC", "NCCL_IB_FIFO_TC" };

	if (pool->gid == GID_FIXED)
		config_warn(
			p, at,
			"gid is fixed:%d and linkTypes is infiniband: InfiniBand has no index, no container will start",
			pool->gid_index);
	if (pool->gid_family != GID_FAMILY_ANY || pool->roce_version != 2)
		config_warn(
			p, at,
			"gidFamily, gidRange and roceVersion are for RoCE, and linkTypes is infiniband: they do nothing");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (value_of(pool, names[i]))
			config_warn(p, at,
				    "%s is for RoCE, and linkTypes is infiniband: it does nothing",
				    names[i]);
	}
}

static void check_links(struct parse *p, const struct item *at, const struct pool_config *pool)
{
	if (links_are(pool, "infiniband"))
		check_infiniband(p, at, pool);
	if (links_are(pool, "ether") && pool->pkey >= 0)
		config_warn(p, at,
			    "pkey is for InfiniBand, and linkTypes is ether: it does nothing");
}

/* Without a configured index MSCCL++ takes GID 0, a link-local address. */
static void check_mscclpp(struct parse *p, const struct item *at, const struct pool_config *pool)
{
	if (pool->gid == GID_OFF && (pool->profiles & PROFILE_MSCCLPP) &&
	    !links_are(pool, "infiniband"))
		config_warn(
			p, at,
			"gid is off and mscclpp is a profile: on RoCE it works with MSCCLPP_IB_GID_INDEX only, which is not set then");
}

static void check_libraries(struct parse *p, const struct item *at, const struct pool_config *pool)
{
	for (size_t i = 0; i < pool->n_env; i++) {
		const struct policy_var *v = policy_find(pool->env[i].name);

		if (v && !(v->profiles & pool->profiles))
			config_warn(p, at, "%s is set, and profiles names no library that reads it",
				    v->name);
	}
	if (pool->ucx_devices && (!(pool->profiles & PROFILE_UCX) || pool->profiles & PROFILE_NIXL))
		config_warn(p, at, "UCX_NET_DEVICES is set, and profiles %s: it does nothing",
			    pool->profiles & PROFILE_NIXL ? "has nixl, which takes VFs alone"
							  : "does not name ucx");
}

/* Without TCP among its transports UCX fails where it would have fallen back in silence. */
static void be_strict(struct parse *p, const struct item *at, struct pool_config *pool)
{
	struct policy_env *env = arena_array(p->out, pool->n_env + 1, sizeof(*env));
	const char *said = value_of(pool, "UCX_TLS");
	size_t place = 0;

	if (!(pool->profiles & PROFILE_UCX))
		config_warn(
			p, at,
			"strictTransport is true, and profiles names neither ucx nor nixl: it does nothing");
	else if (said)
		config_warn(p, at, "strictTransport is true, and env has UCX_TLS, which counts");
	if (!(pool->profiles & PROFILE_UCX) || said)
		return;
	for (size_t i = 0; i < pool->n_env; i++) {
		bool behind = strcmp(pool->env[i].name, "UCX_TLS") > 0;

		env[i + behind] = pool->env[i];
		place += !behind;
	}
	env[place] = (struct policy_env) { "UCX_TLS", "^tcp" };
	pool->env = env;
	pool->n_env++;
}

static void drop(struct pool_config *pool, const char *name)
{
	struct policy_env *kept = (struct policy_env *)pool->env;
	size_t n = 0;

	for (size_t i = 0; i < pool->n_env; i++) {
		if (strcmp(kept[i].name, name) != 0)
			kept[n++] = kept[i];
	}
	pool->n_env = n;
}

static void check_sockets(struct parse *p, const struct item *at, struct pool_config *pool)
{
	const char *threads = value_of(pool, "NCCL_SOCKET_NTHREADS"),
		   *sockets = value_of(pool, "NCCL_NSOCKS_PERTHREAD");

	if (!threads || !sockets || atoi(threads) * atoi(sockets) <= SOCKETS_MAX)
		return;
	refuse(p, at, "NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD is %d; at most %d is legal",
	       atoi(threads) * atoi(sockets), SOCKETS_MAX);
	leave_out(p, "the second");
	drop(pool, "NCCL_NSOCKS_PERTHREAD");
}

void check_pool(struct parse *p, const struct item *at, struct pool_config *pool)
{
	check_links(p, at, pool);
	check_mscclpp(p, at, pool);
	check_libraries(p, at, pool);
	if (pool->strict_transport)
		be_strict(p, at, pool);
	if (pool->umad && !pool->is_rdma)
		config_warn(p, at, "umad is true, and no selector says isRdma: it does nothing");
	check_sockets(p, at, pool);
}

/* The objects named `railmate`: keys that sriov-network-device-plugin ignores, so roll-back needs
 * no edit. */

#define GID_INDEX_MAX 255
#define FIXED	      "fixed:"

static int read_gid(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_config *pool = out;
	uint64_t index;

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
	((struct pool_config *)out)->pfs = value->boolean ? PFS_NEVER : PFS_TAKEN;
	return 0;
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
	pool->probe = true;
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
	static const char *const offers[] = {
		[POOL_DRA_ABSTRACT] = "abstract", [POOL_DRA_EXACT] = "exact"
	};
	static const struct key keys[] = {
		{ .name = "gid", .type = ITEM_STRING, .read = read_gid },
		KEY_CHOICE("network", struct pool_config, network, networks),
		{ .name = "binding", .read = read_binding },
		{ .name = "vfsOnly", .type = ITEM_BOOL, .read = read_vfs_only },
		KEY_BOOL("strict", struct pool_config, strict),
		KEY_CHOICE("gidFamily", struct pool_config, gid_family, families),
		{ .name = "gidRange", .type = ITEM_STRING, .read = read_gid_range },
		KEY_NUMBER("roceVersion", struct pool_config, roce_version, 1, 2),
		{ .name = "pkey", .type = ITEM_STRING, .read = read_pkey },
		{ .name = "profiles", .type = ITEM_LIST, .read = read_profiles },
		KEY_CHOICE("topologyFile", struct pool_config, topology_file, files),
		KEY_CHOICE("ncclRails", struct pool_config, nccl_rails, rails),
		KEY_BOOL("strictTransport", struct pool_config, strict_transport),
		KEY_BOOL("umad", struct pool_config, umad),
		{ .name = "cufile", .read = read_cufile },
		KEY_BOOL("probe", struct pool_config, probe),
		KEY_CHOICE("dra", struct pool_config, dra, offers),
		{ .name = "env", .type = ITEM_OBJECT, .read = read_env },
		{ .name = "health", .read = read_health },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	struct pool_config *pool = out;
	int r;

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

static int read_plane(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	((struct topo_rail_name *)out)->has_plane = true;
	return read_number(p, value, key, out);
}

/* { "ens1f0": 0, "0000:3b:00.0": { "rail": 1, "plane": 0 } } */
static int read_rails(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	static const struct key keys[] = {
		KEY_NUMBER("rail", struct topo_rail_name, rail, 0, TOPO_RAIL_MAX),
		{ .name = "plane",
		  .read = read_plane,
		  .at = offsetof(struct topo_rail_name, plane),
		  .max = TOPO_PLANE_MAX },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct top *top = out;
	struct topo_rail_name *rails;
	int r;

	rails = arena_array(p->out, value->n_kids, sizeof(*rails));
	for (size_t i = 0; i < value->n_kids; i++) {
		const struct item *rail = &value->kids[i];

		rails[i] = (struct topo_rail_name) { .nic = arena_strdup(p->out, rail->key),
						     .rail = -1 };
		r = rail->type == ITEM_OBJECT ? read_members(p, rail, &set, &rails[i])
					      : read_number(p, rail, &keys[0], &rails[i]);
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
		{ .name = "rails", .type = ITEM_OBJECT, .read = read_rails },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys), .lenient = true };
	struct config *cfg = out;
	struct top top = { .entries = NULL };
	int r;

	r = read_members(p, value, &set, &top);
	if (r < 0)
		return r;
	if (top.n_entries)
		fill_table(p, &top, cfg);
	cfg->rails = top.rails;
	cfg->n_rails = top.n_rails;
	return 0;
}
