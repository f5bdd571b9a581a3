#include "daemon/binding-internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"

#define VF "rdma/vf"

static void it_is_late_where_nothing_is_in_the_way(void **state)
{
	const struct binding_facts facts = { 0 };
	const char *why;

	(void)state;
	assert_int_equal(binding_decide(&facts, BINDING_HELD_NOTHING, NETWORK_POD, &why),
			 BINDING_LATE);
	assert_string_equal(
		why,
		"the kubelet and the container runtime do CDI, and no CNI plugin is handed a slot");
	assert_int_equal(binding_decide(&facts, BINDING_HELD_NOTHING, NETWORK_HOST, &why),
			 BINDING_LATE);
	assert_string_equal(why, "the kubelet and the container runtime do CDI");
}

static void any_obstacle_makes_it_early_and_is_the_reason(void **state)
{
	static const struct {
		struct binding_facts facts;
		const char *why;
	} cases[] = {
		{ { .cdi = "no directory" }, "no directory" },
		{ { .kubelet = "too old" }, "too old" },
		{ { .runtime = "no CDI" }, "no CDI" },
		{ { .cni = "Multus" }, "Multus" },
		{ { "no directory", "too old", "no CDI", "Multus" }, "no directory" },
		{ { NULL, "too old", "no CDI", "Multus" }, "no CDI" },
		{ { NULL, "too old", NULL, "Multus" }, "too old" },
	};
	const char *why;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(
			binding_decide(&cases[i].facts, BINDING_HELD_NOTHING, NETWORK_POD, &why),
			BINDING_EARLY);
		assert_string_equal(why, cases[i].why);
	}
}

static void pods_with_the_hosts_network_have_no_cni_plugin(void **state)
{
	const struct binding_facts multus = { .cni = "Multus" };
	const struct binding_facts old = { .kubelet = "too old", .cni = "Multus" };
	const char *why;

	(void)state;
	assert_int_equal(binding_decide(&multus, BINDING_HELD_NOTHING, NETWORK_HOST, &why),
			 BINDING_LATE);
	assert_int_equal(binding_decide(&old, BINDING_HELD_NOTHING, NETWORK_HOST, &why),
			 BINDING_EARLY);
	assert_string_equal(why, "too old");
}

static void what_containers_hold_decides_before_anything_else(void **state)
{
	const struct binding_facts good = { 0 }, bad = { "a", "b", "c", "d" };
	const char *why;

	(void)state;
	assert_int_equal(binding_decide(&good, BINDING_HELD_EARLY, NETWORK_POD, &why),
			 BINDING_EARLY);
	assert_string_equal(why, "containers hold VFs of it by PCI address");
	assert_int_equal(binding_decide(&bad, BINDING_HELD_LATE, NETWORK_POD, &why), BINDING_LATE);
	assert_string_equal(why, "containers hold slots of it");
	assert_int_equal(binding_decide(NULL, BINDING_HELD_EARLY, NETWORK_HOST, &why),
			 BINDING_EARLY);
	assert_int_equal(binding_decide(NULL, BINDING_HELD_LATE, NETWORK_HOST, &why), BINDING_LATE);
}

static void hold(struct ledger *l, const char *vf, const char *resource, const char *slot,
		 bool draining)
{
	ledger_put(l, &(struct ledger_hold) {
			      .vf = vf, .resource = resource, .slot = slot, .draining = draining });
}

static void the_ledger_tells_what_is_held(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	assert_int_equal(binding_held(&(struct binding_view) { .ledger = l }, VF),
			 BINDING_HELD_NOTHING);
	hold(l, "0000:01:00.1", "rdma/other", NULL, false);
	hold(l, "0000:01:00.2", VF, NULL, true); /* its pod is gone */
	assert_int_equal(binding_held(&(struct binding_view) { .ledger = l }, VF),
			 BINDING_HELD_NOTHING);
	hold(l, "0000:01:00.3", VF, "rdma_vf-n0-1", false);
	assert_int_equal(binding_held(&(struct binding_view) { .ledger = l }, VF),
			 BINDING_HELD_LATE);
	hold(l, "0000:01:00.4", VF, NULL, false);
	assert_int_equal(binding_held(&(struct binding_view) { .ledger = l }, VF),
			 BINDING_HELD_EARLY);
	hold(l, "0000:01:00.5", VF, "rdma_vf-n0-2", false);
	assert_int_equal(binding_held(&(struct binding_view) { .ledger = l }, VF),
			 BINDING_HELD_EARLY);
	ledger_free(l);
}

static enum binding_held held_by_both(const struct ledger *l, const char *resource, const char *id)
{
	struct held held[] = { { "nvidia.com/gpu", { (const char *[]) { "GPU-1" }, 1 } },
			       { resource, { &id, 1 } } };
	struct pod_container containers[] = { { .name = "init" },
					      { .name = "main", .held = held, .n_held = 2 } };
	struct pod pods[] = { { "", "uid", containers, 2 } };

	return binding_held(&(struct binding_view) { .ledger = l, .checkpoint = { pods, 1 } }, VF);
}

static enum binding_held held_by_checkpoint(const char *resource, const char *id)
{
	return held_by_both(NULL, resource, id);
}

static void the_kubelets_checkpoint_tells_it_too(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	assert_int_equal(binding_held(&(struct binding_view) { 0 }, VF), BINDING_HELD_NOTHING);
	assert_int_equal(held_by_checkpoint(VF, "0000:01:00.1"), BINDING_HELD_EARLY);
	assert_int_equal(held_by_checkpoint(VF, "rdma_vf-n0-1"), BINDING_HELD_LATE);
	assert_int_equal(held_by_checkpoint(VF, "rdma_vf-any-7"), BINDING_HELD_LATE);
	assert_int_equal(held_by_checkpoint(VF, "rdma_vf2-n0-1"), BINDING_HELD_EARLY);
	assert_int_equal(held_by_checkpoint("rdma/other", "0000:01:00.1"), BINDING_HELD_NOTHING);
	assert_int_equal(held_by_both(l, VF, "rdma_vf-n0-1"),
			 BINDING_HELD_LATE); /* not started yet */
	hold(l, "0000:01:00.1", VF, NULL, false);
	assert_int_equal(held_by_both(l, VF, "rdma_vf-n0-1"), BINDING_HELD_EARLY);
	ledger_free(l);
}

/* Its container has not started: no ledger has it, and by its cgroup it does not run. */
static void so_does_a_slot_that_was_promised(void **state)
{
	struct ids slot = { (const char *[]) { "rdma_vf-n0-1" }, 1 };
	struct ledger *l = ledger_new();

	(void)state;
	assert_int_equal(binding_held(&(struct binding_view) { .promised = slot }, VF),
			 BINDING_HELD_LATE);
	assert_int_equal(binding_held(&(struct binding_view) { .promised = slot }, "rdma/other"),
			 BINDING_HELD_NOTHING);
	hold(l, "0000:01:00.1", VF, NULL, false);
	assert_int_equal(binding_held(&(struct binding_view) { .ledger = l, .promised = slot }, VF),
			 BINDING_HELD_EARLY);
	ledger_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_late_where_nothing_is_in_the_way),
		cmocka_unit_test(any_obstacle_makes_it_early_and_is_the_reason),
		cmocka_unit_test(pods_with_the_hosts_network_have_no_cni_plugin),
		cmocka_unit_test(what_containers_hold_decides_before_anything_else),
		cmocka_unit_test(the_ledger_tells_what_is_held),
		cmocka_unit_test(the_kubelets_checkpoint_tells_it_too),
		cmocka_unit_test(so_does_a_slot_that_was_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
