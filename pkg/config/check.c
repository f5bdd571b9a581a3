/* Keys of a pool that are right one by one and do not go together (docs/design/nccl.md §1.5, §4.1,
 * §4.2). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"
#include "config/policy.h"

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
	if (pool->ucx_devices && !(pool->profiles & PROFILE_UCX))
		config_warn(
			p, at,
			"UCX_NET_DEVICES is set, and profiles does not name ucx: it does nothing");
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
	if (pool->umad && !pool->is_rdma)
		config_warn(p, at, "umad is true, and no selector says isRdma: it does nothing");
	check_sockets(p, at, pool);
}
