/* room: config */
/* Any bytes as a configuration: a config that holds together, or one sentence. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "config/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_gids(const struct pool_config *pool)
{
	assert(pool->gid_family <= GID_FAMILY_IPV6);
	assert(pool->roce_version == 1 || pool->roce_version == 2);
	assert(pool->pkey == -1 || (pool->pkey > 0 && pool->pkey <= 0xffff));
	if (!pool->gid_range)
		return;
	assert(pool->gid_range_bits >= 0 && pool->gid_range_bits <= 128);
	assert(pool->gid_family ==
	       (strchr(pool->gid_range, ':') ? GID_FAMILY_IPV6 : GID_FAMILY_IPV4));
	assert(pool->gid_family == GID_FAMILY_IPV6 || pool->gid_range_bits >= 96);
}

/* What goes into environments is legal, as far as it is known, and there once. */
static void check_env(const struct pool_config *pool)
{
	for (size_t i = 0; i < pool->n_env; i++) {
		const struct policy_var *v = policy_find(pool->env[i].name);

		assert(!v || (v->class != POLICY_OURS && policy_accepts(v, pool->env[i].value)));
		assert(pool->env[i].name[0] && !strpbrk(pool->env[i].name, "= \n") &&
		       !strpbrk(pool->env[i].value, " \n"));
		assert(!i || strcmp(pool->env[i - 1].name, pool->env[i].name) < 0);
	}
}

static void check_pool(const struct pool_config *pool)
{
	const struct selector *s = pool->selectors;

	assert(str_starts(pool->resource, pool->prefix) && pool->name[0]);
	assert(pool->gid_index >= 0 && pool->gid_index <= 255);
	assert(pool->profiles < 2 * PROFILE_ONECCL);
	check_gids(pool);
	check_env(pool);
	for (size_t i = 0; i < pool->n_selectors; i++, s++) {
		for (size_t k = 0; k < s->n_pf_names; k++) {
			for (size_t n = 0; n < s->pf_names[k].n_ranges; n++)
				assert(s->pf_names[k].ranges[n].first <=
				       s->pf_names[k].ranges[n].last);
		}
	}
	for (size_t i = 0; i < pool->n_extra; i++)
		assert(pool->extra[i].device && pool->extra[i].key && pool->extra[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *cfg = NULL;
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct err err = { 0 };
	int r = config_parse((const char *)data, size, "config.json", "rdma", &cfg, &also, &err);

	if (r < 0) {
		assert(r == -EINVAL && err.code == EINVAL && str_starts(err.msg, "config.json:"));
		assert(!cfg && !strchr(err.msg, '\n') && str_utf8_valid(err.msg, strlen(err.msg)));
		return 0;
	}
	assert(cfg->n_pools > 0);
	for (size_t i = 0; i < cfg->n_pools; i++)
		check_pool(&cfg->pools[i]);
	for (size_t i = 0; i < cfg->n_warnings; i++)
		assert(str_starts(cfg->warnings[i], "config.json:"));
	for (size_t i = 0; i < cfg->n_errors; i++)
		assert(str_starts(cfg->errors[i], "config.json:") &&
		       str_utf8_valid(cfg->errors[i], strlen(cfg->errors[i])));
	config_free(cfg);
	return 0;
}
