#include "support/vfpool.h"

struct pool_config pool_cfg;
static const struct config cfg = { .pools = &pool_cfg, .n_pools = 1 };
struct machine m;
struct arena *a;

int setup(void **state)
{
	(void)state;
	pool_cfg = (struct pool_config) { .resource = "rdma/vf",
					  .prefix = "rdma",
					  .name = "vf",
					  .is_rdma = true,
					  .profiles = PROFILE_NCCL };
	m = fake_machine_open(MACHINE, &cfg);
	a = arena_new(0);
	return 0;
}

int teardown(void **state)
{
	(void)state;
	arena_free(a);
	fake_machine_close(&m);
	return 0;
}

const char *id(size_t i)
{
	assert_true(i < m.pool->n_devs);
	return m.pool->devs[i].id;
}

struct ids ids_of(size_t n, ...)
{
	struct ids ids = { arena_array(a, n, sizeof(*ids.v)), n };
	va_list ap;

	va_start(ap, n);
	for (size_t i = 0; i < n; i++)
		ids.v[i] = va_arg(ap, const char *);
	va_end(ap);
	return ids;
}
