/* room: config */
/* Any bytes as a configuration of shared HCAs: pools that hold together, or one sentence. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pool(const struct pool_config *pool)
{
	assert(pool->shares > 0 && pool->is_rdma && pool->binding == BINDING_EARLY);
	assert(str_starts(pool->resource, pool->prefix) && pool->name[0]);
	assert(pool->n_selectors == 1 && pool->selectors->is_rdma);
	for (size_t i = 0; i < pool->selectors->n_if_names; i++)
		assert(pool->selectors->if_names[i][0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *cfg = config_default();
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct err err = { 0 };
	int r = config_parse_shared((const char *)data, size, "shared.json", cfg, &also, &err);

	if (r < 0) {
		assert(r == -EINVAL && str_starts(err.msg, "shared.json:") &&
		       !strchr(err.msg, '\n'));
		assert(!cfg->n_shared && str_utf8_valid(err.msg, strlen(err.msg)));
	} else {
		assert(cfg->n_shared > 0);
	}
	for (size_t i = 0; i < cfg->n_shared; i++)
		check_pool(&cfg->shared[i]);
	for (size_t i = 0; i < cfg->n_errors; i++)
		assert(str_starts(cfg->errors[i], "shared.json:"));
	config_free(cfg);
	return 0;
}
