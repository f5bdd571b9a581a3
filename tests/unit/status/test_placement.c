/* Who holds the VFs that are nearer than those that a container got. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "align/choose.h"
#include "base/arena.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "status/stats.h"
#include "support/nodes.h"
#include "support/synth.h"

#define NEAR 5 /* VFs below the GPU's switch; as many below the other one */

static struct arena *a;
static struct config *cfg;
static struct node *node;
static struct ledger *ledger;

static int set_up(void **state)
{
	(void)state;
	a = arena_new(4096);
	cfg = config_default();
	node = node_new(synth_inventory("switch:2 gpu:1 pf:1 vf:5"), cfg, NULL);
	ledger = ledger_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ledger_free(ledger);
	node_unref(node);
	config_free(cfg);
	arena_free(a);
	return 0;
}

static const struct ledger_owner me = { "team", "me", "", "main", NULL };

static void hold(size_t vf, const char *ns, const char *pod)
{
	ledger_put(ledger, &(struct ledger_hold) { .vf = node->pools[0].devs[vf].id,
						   .resource = "rdma/vf",
						   .owner = { ns, pod, "", "main", NULL } });
}

/* For the first GPU, with this VF. */
static const char *holders(int vf)
{
	const int gpu = node->inv->gpu[0].pci, both[] = { 0, NEAR };
	const struct choose_in in = { .node = node,
				      .pool = &node->pools[0],
				      .gpus = { .v = &gpu, .n = 1 },
				      .available = both,
				      .n_available = 2,
				      .want = 1 };
	struct stats_placement p = { .owner = &me };

	stats_place(&p, &in, &vf, ledger, a);
	assert_int_equal(p.best.n[TOPO_PIX], 1);
	assert_int_equal(p.farther, vf >= NEAR);
	return p.nearer_holders;
}

static void a_pod_is_named_once_and_three_at_most(void **state)
{
	(void)state;
	assert_int_equal(node->pools[0].n_devs, 2 * NEAR);
	hold(0, "x", "one");
	hold(1, "x", "one");
	assert_string_equal(holders(NEAR), "x/one");
	hold(2, "y", "one");
	hold(3, "x", "two");
	hold(4, "x", "three");
	assert_string_equal(holders(NEAR), "x/one, y/one, x/two");
}

static void who_is_no_reason_is_not_named(void **state)
{
	(void)state;
	assert_null(holders(NEAR)); /* nearer ones are free */
	hold(0, "team", "me");
	hold(1, "", "");	       /* not known whose it is */
	hold(NEAR + 1, "x", "as far"); /* below the same switch as its own */
	assert_null(holders(NEAR));
	hold(2, "other", "me"); /* another pod of the name */
	assert_string_equal(holders(NEAR), "other/me");
	assert_null(holders(3)); /* as near as any */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pod_is_named_once_and_three_at_most, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_is_no_reason_is_not_named, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
