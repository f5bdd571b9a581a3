#include "render/render.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/profiles-internal.h"
#include "render/render-internal.h"

const char *render_env_name(const char *prefix, const char *resource, const char *suffix,
			    struct arena *arena)
{
	char *name =
		arena_printf(arena, "%s_%s%s%s", prefix, resource, suffix[0] ? "_" : "", suffix);

	for (char *p = name; *p; p++) {
		if (*p == '.' || *p == '/')
			*p = '_';
		else
			*p = (char)toupper((unsigned char)*p);
	}
	return name;
}

/* The kernel's own device names are plain words; one that is not would change the meaning of a list
 * or a path. */
static bool plain_name(const char *s)
{
	if (!*s || *s == '.' || strlen(s) > 63)
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_-.", *s))
			return false;
	}
	return true;
}

static int check_names(const struct grant *grant, struct err *err)
{
	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct grant_dev *d = &grant->devs[i];

		if ((d->rdma && !plain_name(d->rdma)) || (d->uverbs && !plain_name(d->uverbs)))
			return err_set(
				err, EIO,
				"VF %s: the kernel gives its RDMA device a name that cannot be passed on",
				d->dev->id);
	}
	return 0;
}

/* --- Allocate --- */

/*
 * A variable of the environment wins over nccl.conf, which is written when the container starts. So
 * variables that are only known by then, or only for all pools of the container together, stay out
 * of the environment.
 */
static bool is_for_file(const struct grant *grant, const struct kv *kv)
{
	const struct pool_config *cfg = grant->pool->cfg;
	const char *policy = policy_value(cfg, kv->key);
	bool contradicted = false;

	if (!grant->files || cfg->binding != BINDING_EARLY || !strcmp(kv->key, "NCCL_CONF_FILE"))
		return false;
	/* Another pool of the node with devices has another value: the kubelet would keep a random
	 * one of the two. */
	for (size_t i = 0; policy && i < grant->node->n_pools; i++) {
		const struct pool *pool = &grant->node->pools[i];
		const char *other = pool->n_devs ? policy_value(pool->cfg, kv->key) : NULL;

		contradicted |= other && strcmp(other, policy) != 0;
	}
	if (policy)
		return grant->conf_only && str_starts(kv->key, "NCCL_") && contradicted;
	if (!strcmp(kv->key, "NCCL_IB_ADDR_FAMILY") && cfg->gid_family != GID_FAMILY_IPV6)
		return true;
	return grant->conf_only || !strcmp(kv->key, "NCCL_IB_ADDR_RANGE");
}

/*
 * Lists of HCAs name those of all shared resources, so that a container with shares of several uses
 * all of them, whichever value the kubelet keeps. The libraries look for these names among the
 * devices whose nodes the container has.
 */
static void join_shares(const struct grant *grant, struct arena *arena, struct env_set *set)
{
	const struct grant *now = grants_now(grant->beside, grant->n_beside, arena);
	struct env_set all = { .arena = arena };
	struct edits edits = { .envs = arena_array(arena, PROFILE_ENV_MAX, sizeof(struct kv)) };
	const struct rail *rails;

	for (size_t i = 0; i < grant->n_beside; i++) {
		if (check_names(&now[i], NULL) < 0)
			return;
	}
	if (grant_rails(now, grant->n_beside, ALL_PROFILES, arena, &rails) > HCAS_MAX)
		return; /* its own could be among those that NCCL leaves out */
	render_nccl_env(now, grant->n_beside, &all, NULL);
	render_profile_env(now, grant->n_beside, -1, arena, &edits);
	env_put_all(&all, &edits);
	for (size_t i = 0; i < set->n; i++) {
		const char *value = env_get(&all, set->v[i].key);

		if (value && !policy_value(grant->pool->cfg, set->v[i].key))
			set->v[i].value = value;
	}
}

int render_grant(const struct grant *grant, struct arena *arena, struct edits *ret, struct err *err)
{
	const struct grant *now = grants_now(grant, 1, arena);
	struct env_set set = { .arena = arena }, joined = { .arena = arena };
	struct edits edits = { 0 };
	int r;

	r = check_names(now, err);
	if (r == 0)
		r = render_joined_env(now, 1, &joined, NULL, err);
	if (r < 0)
		return r;
	if (grant->n_beside > 1)
		join_shares(grant, arena, &joined);
	render_own_env(now, &set);
	for (size_t i = 0; i < joined.n; i++) {
		if (!is_for_file(grant, &joined.v[i]))
			env_put(&set, joined.v[i].key, joined.v[i].value);
	}
	render_nodes(now, 1, arena, &edits);
	edits.envs = set.v;
	edits.n_envs = set.n;
	*ret = edits;
	return 0;
}

/* Two pools with one of the profiles: the kubelet would have to merge their variables. */
bool render_needs_conf_only(const struct node *node)
{
	static const unsigned owners[] = { PROFILES_NCCL,   PROFILE_UCX, PROFILE_NVSHMEM,
					   PROFILE_MSCCLPP, PROFILE_OFI, PROFILE_ONECCL };

	for (size_t k = 0; k < ARRAY_LEN(owners); k++) {
		size_t count = 0;

		for (size_t i = 0; i < node->n_pools; i++) {
			const struct pool_config *cfg = node->pools[i].cfg;

			count += node->pools[i].n_devs && cfg->is_rdma &&
				 cfg->binding == BINDING_EARLY && (cfg->profiles & owners[k]);
		}
		if (count > 1)
			return true;
	}
	return false;
}

/* --- a container --- */

int render_container(const struct container *c, struct arena *arena, struct edits *ret_env,
		     const char *const **ret_notes, size_t *ret_n_notes, struct err *err)
{
	const struct grant *now = grants_now(c->grants, c->n, arena);
	struct env_set set = { .arena = arena };
	struct notes notes = { .arena = arena };
	struct edits edits = { 0 };
	int r;

	for (size_t i = 0; i < c->n; i++) {
		r = check_names(&now[i], err);
		if (r < 0)
			return r;
		for (size_t k = 0; k < now[i].n_devs; k++) {
			const struct grant_dev *dev = &now[i].devs[k];

			/* The part of a VF's state that could not be read. */
			if (dev->state && dev->state->why)
				add_note(&notes, arena_printf(arena, "VF %s: %s", dev->dev->id,
							      dev->state->why));
		}
		if (!now[i].joined_only)
			render_own_env(&now[i], &set);
	}
	r = render_joined_env(now, c->n, &set, &notes, err);
	if (r < 0)
		return r;
	render_nodes(now, c->n, arena, &edits);
	edits.envs = set.v;
	edits.n_envs = set.n;
	*ret_env = edits;
	*ret_notes = notes.v;
	*ret_n_notes = notes.n;
	return 0;
}
