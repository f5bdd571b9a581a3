/* May a node be published that was made of an older copy of what containers hold? */
#include "support/onrpc.h"

#include <uv.h>

#include "base/arena.h"
#include "config/config.h"
#include "daemon/state-internal.h"
#include "holds/holds.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "support/synth.h"
#include "tracker/tracker.h"

#define MACHINE "switch:1 gpu:1 pf:1 vf:2"

static uv_loop_t loop;
static struct holdings *holdings;
static struct tracker *tracker;
static struct config *early, *late;
static struct node *is_early, *is_late;
static size_t n_came, n_held, n_promised;

static void came(void *ctx, const struct ledger *held, const struct ids *promised)
{
	(void)ctx;
	n_came++;
	n_held = ledger_holds(held);
	n_promised = promised->n;
}

static void start(void *arg)
{
	(void)arg;
	tracker = tracker_new(&(struct tracker_env) {
		.rpc = rpc, .holds = holds_new(ledger_new(), &holds_default_pace, tracker_now()) });
	holds_event(tracker_holds(tracker),
		    &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = true },
		    tracker_now());
	holdings_follow(holdings, tracker);
}

static void end(void *arg)
{
	(void)arg;
	holdings_follow(holdings, NULL);
	tracker_free(tracker);
}

static struct config *bound(enum pool_binding binding)
{
	struct config *cfg = config_default();

	config_bind(cfg, 0, binding, "the test's", false);
	return cfg;
}

static int set_up(void **state)
{
	(void)state;
	n_came = 0;
	uv_loop_init(&loop);
	holdings = holdings_new(&loop, rpc, came, NULL);
	early = bound(BINDING_EARLY);
	late = bound(BINDING_LATE);
	is_early = node_new(synth_inventory(MACHINE), early, NULL);
	is_late = node_new(synth_inventory(MACHINE), late, NULL);
	on_rpc(start, NULL);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	uv_close(handle, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	on_rpc(end, NULL);
	uv_walk(&loop, close_handle, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	holdings_free(holdings);
	node_unref(is_early);
	node_unref(is_late);
	config_free(early);
	config_free(late);
	return 0;
}

/* --- a pool that is bound otherwise --- */

static void give_a_vf(void *arg)
{
	const struct hw_inventory *inv = is_early->inv;
	char vf[BDF_STRLEN];
	const struct holds_facts idle = { 0 };
	const struct holds_vf given = { .vf = bdf_format(inv->pci[synth_vf(inv, 0)].bdf, vf),
					.resource = "rdma/vf",
					.facts = &idle };
	const struct ledger_owner unknown = { 0 };

	(void)arg;
	tracker_update(tracker, is_early);
	assert_true(holdings_permits(holdings, is_late));
	holds_event(tracker_holds(tracker),
		    &(struct holds_event) {
			    .kind = HOLDS_ALLOCATED, .given = &given, .n = 1, .owner = &unknown },
		    tracker_now());
	assert_false(holdings_permits(holdings, is_late));
	assert_true(holdings_permits(holdings, is_early));
}

static void not_late_when_a_vf_was_given_meanwhile(void **state)
{
	(void)state;
	on_rpc(give_a_vf, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(n_came, 1);
	assert_int_equal(n_held, 1);
}

static void promise_a_slot(void *arg)
{
	static const char *const other[] = { "rdma_other-n0-0" }, *const ours[] = {
		"rdma_vf-n0-0"
	};

	(void)arg;
	tracker_update(tracker, is_late);
	holds_event(tracker_holds(tracker),
		    &(struct holds_event) { .kind = HOLDS_PROMISED, .slots = other, .n = 1 },
		    tracker_now());
	assert_true(holdings_permits(holdings, is_early));
	holds_event(tracker_holds(tracker),
		    &(struct holds_event) { .kind = HOLDS_PROMISED, .slots = ours, .n = 1 },
		    tracker_now());
	assert_false(holdings_permits(holdings, is_early));
}

static void not_early_when_a_slot_was_promised_meanwhile(void **state)
{
	(void)state;
	on_rpc(promise_a_slot, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(n_came, 1);
	assert_int_equal(n_held, 0);
	assert_int_equal(n_promised, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(not_late_when_a_vf_was_given_meanwhile),
		TEST(not_early_when_a_slot_was_promised_meanwhile),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
