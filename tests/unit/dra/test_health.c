#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config/config.h"
#include "dra/health.h"
#include "dra/slices.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "support/nodes.h"
#include "support/synth.h"
#include "support/testarena.h"

#define U0 "00000000-0000-4000-8000-000000000000"
#define U1 "00000000-0000-4000-8000-000000000001"

/* Two PFs with two VFs each, in address order. */
static struct node *node;
static struct pool_config pool_cfg;
static struct pool pool;
static struct pool_dev devs[4];
static struct ledger *ledger;

static void open_machine(bool exact)
{
	struct config *cfg = config_default();

	node = node_new(synth_inventory("switch:2 pf:1 vf:2"), cfg, NULL);
	config_free(cfg);
	assert_int_equal(node->pools[0].n_devs, ARRAY_LEN(devs));
	memcpy(devs, node->pools[0].devs, sizeof(devs));
	pool_cfg = *node->pools[0].cfg;
	pool_cfg.dra = exact ? POOL_DRA_EXACT : POOL_DRA_ABSTRACT;
	pool = (struct pool) { &pool_cfg, devs, ARRAY_LEN(devs) };
	ledger = ledger_new();
}

static int tear_down(void **state)
{
	node_unref(STEAL(node));
	ledger_free(STEAL(ledger));
	return arena_tear_down(state);
}

static void put(size_t dev, const char *claim, unsigned number, bool draining)
{
	const char *resource = pool.cfg->resource;

	ledger_put(ledger, &(struct ledger_hold) {
				   .vf = devs[dev].id,
				   .resource = resource,
				   .slot = claim ? pool_claim_slot(resource, claim, number, arena)
						 : pool_slot_id(resource, 0, number, arena),
				   .owner = { .ns = "n", .pod = "p", .claim = claim },
				   .draining = draining });
}

static struct dra_health_list health(void)
{
	struct node now = *node;

	now.pools = &pool;
	return dra_health_of(&now, ledger, "n1", arena);
}

static void sicken(size_t dev, const char *reason)
{
	devs[dev].healthy = false;
	devs[dev].reason = reason;
}

static void assert_health(const struct dra_health *h, const char *device, int state,
			  const char *message)
{
	assert_string_equal(h->pool, "n1");
	assert_string_equal(h->device, device);
	assert_int_equal(h->health, state);
	assert_int_equal(!h->message, !message);
	if (message)
		assert_string_equal(h->message, message);
}

static void a_slot_is_as_healthy_as_its_vf(void **state)
{
	struct dra_health_list l;

	(void)state;
	open_machine(false);
	put(0, U0, 7, false);
	put(2, U1, 3, false);
	put(1, NULL, 5, false);
	put(3, U1, 4, true);
	sicken(2, "its link is down");
	l = health();
	assert_int_equal(l.n, 2); /* not what a device plugin gave, nor what was unprepared */
	assert_health(&l.v[0], "rdma-vf-slot-3", DRA_UNHEALTHY, "its link is down");
	assert_health(&l.v[1], "rdma-vf-slot-7", DRA_HEALTHY, NULL);
}

static void a_slot_whose_vf_is_gone_is_not_healthy(void **state)
{
	struct dra_health_list l;

	(void)state;
	open_machine(false);
	put(3, U0, 0, false);
	pool.n_devs = 3;
	l = health();
	assert_int_equal(l.n, 1);
	assert_health(&l.v[0], "rdma-vf-slot-0", DRA_UNHEALTHY, "the VF is gone");
}

static void a_pf_is_as_healthy_as_the_worst_vf_of_claims(void **state)
{
	const char *first, *second;
	struct dra_health_list l;

	(void)state;
	open_machine(true);
	first = slices_name(&(struct slices_device) { &pool, pool_dev_place(&devs[0]), 0 }, arena);
	second = slices_name(&(struct slices_device) { &pool, pool_dev_place(&devs[2]), 0 }, arena);
	put(0, U0, 0, false);
	put(1, U1, 0, false);
	put(2, U0, 1, false);
	sicken(1, "it has no driver");
	sicken(3, "its link is down"); /* no claim has it */
	l = health();
	assert_int_equal(l.n, 2);
	assert_health(&l.v[0], first, DRA_UNHEALTHY, "it has no driver");
	assert_health(&l.v[1], second, DRA_HEALTHY, NULL);
}

static void names_of_devices_are_found_again(void **state)
{
	struct slices_device device, back;

	(void)state;
	open_machine(true);
	device = (struct slices_device) { &node->pools[0], NULL, 65535 };
	assert_true(slices_find(node, slices_name(&device, arena), &back));
	assert_null(back.place);
	assert_int_equal(back.number, 65535);
	device.place = pool_dev_place(&devs[3]);
	assert_true(slices_find(node, slices_name(&device, arena), &back));
	assert_string_equal(back.place, device.place);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, arena_set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_slot_is_as_healthy_as_its_vf),
		T(a_slot_whose_vf_is_gone_is_not_healthy),
		T(a_pf_is_as_healthy_as_the_worst_vf_of_claims),
		T(names_of_devices_are_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
