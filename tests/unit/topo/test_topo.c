#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arena.h"
#include "hw/inventory.h"
#include "support/synth.h"
#include "support/topocheck.h"
#include "topo/topo.h"

struct machine {
	struct hw_inventory *inv;
	struct topo *topo;
};

static struct machine machine_of(struct hw_inventory *inv)
{
	struct machine m = { inv, topo_new(inv, NULL) };

	topo_check(m.topo, inv);
	return m;
}

static struct machine machine(const char *line)
{
	return machine_of(synth_inventory(line));
}

static void machine_done(struct machine *m)
{
	topo_free(m->topo);
	hw_inventory_free(m->inv);
}
#define _cleanup_machine_ __attribute__((cleanup(machine_done)))

static void expect(const struct machine *m, int a, int b, const char *class, int bridges)
{
	struct topo_path p = topo_between(m->topo, a, b);

	assert_string_equal(topo_class_name(p.class), class);
	assert_int_equal(p.bridges, bridges);
}

static void ranks_follow_the_distance(void **state)
{
	static const int ranks[TOPO_CLASS_MAX] = { 0, 0, 1, 2, 3, 4 };

	(void)state;
	for (int c = 0; c < TOPO_CLASS_MAX; c++)
		assert_int_equal(topo_rank((enum topo_class)c), ranks[c]);
}

static void a_function_is_itself_and_nothing_else_is(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:1 gpu:1 pf:1 vf:2");

	(void)state;
	expect(&m, synth_gpu(m.inv, 0), synth_gpu(m.inv, 0), "SELF", -1);
	expect(&m, synth_vf(m.inv, 0), synth_vf(m.inv, 1), "PIX", 1);
	expect(&m, synth_vf(m.inv, 0), synth_pf(m.inv, 0), "PIX", 1);
}

static void one_switch_is_pix(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:2 gpu:2 pf:1 vf:2");

	(void)state;
	expect(&m, synth_gpu(m.inv, 1), synth_pf(m.inv, 0), "PIX", 1);
	expect(&m, synth_gpu(m.inv, 0), synth_gpu(m.inv, 1), "PIX", 1);
}

static void two_switches_of_a_root_complex_are_phb(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:2 gpu:1 pf:1");

	(void)state;
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 1), "PHB", -1);
}

static void a_vf_has_the_place_of_its_pf(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:2 gpu:1 pf:1 vf:3");

	(void)state;
	assert_int_equal(topo_place(m.topo, synth_vf(m.inv, 4)), synth_pf(m.inv, 1));
	assert_int_equal(topo_place(m.topo, synth_pf(m.inv, 1)), synth_pf(m.inv, 1));
	expect(&m, synth_gpu(m.inv, 1), synth_vf(m.inv, 4), "PIX", 1);
	expect(&m, synth_gpu(m.inv, 0), synth_vf(m.inv, 4), "PHB", -1);
}

/* Its own parent and node say otherwise: the PF is believed. */
static void a_vf_with_a_strange_chain_still_has_the_place_of_its_pf(void **state)
{
	struct hw_inventory *inv = synth_inventory("numa:2 switch:1 gpu:1 pf:1 vf:1");
	int vf = synth_vf(inv, 0);

	(void)state;
	inv->pci[vf].parent = -1;
	inv->pci[vf].numa = 1;
	inv->pci[vf].has_root = false;
	_cleanup_machine_ struct machine m = machine_of(inv);
	expect(&m, synth_gpu(inv, 0), vf, "PIX", 1);
}

static void a_vf_without_visible_pf_has_its_own_place(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:1 gpu:1 pf:1 vf:2 nopf");

	(void)state;
	assert_int_equal(topo_place(m.topo, synth_vf(m.inv, 1)), synth_vf(m.inv, 1));
	expect(&m, synth_gpu(m.inv, 0), synth_vf(m.inv, 1), "PIX", 1);
}

/* Two NICs far from both GPUs; the first one's data direct function is on the switch of the first
 * GPU. */
static void a_nic_with_data_direct_is_where_that_function_is(void **state)
{
	struct hw_inventory *inv =
		synth_inventory("pf:2 vf:2;switch:1 upf:1 sub:1 gpu:1;switch:1 gpu:1");
	int nic = synth_pf(inv, 0), direct = synth_pf(inv, 2);
	struct hw_card cards[] = { { .pci = nic, .direct = direct },
				   { .pci = direct, .direct = -1 } };

	(void)state;
	inv->card = cards;
	inv->n_card = 2;
	_cleanup_machine_ struct machine m = machine_of(inv);
	expect(&m, synth_gpu(inv, 0), nic, "PXB", 2);
	expect(&m, synth_gpu(inv, 0), synth_vf(inv, 1), "PXB", 2);
	expect(&m, synth_gpu(inv, 1), nic, "SYS", -1);
	expect(&m, synth_gpu(inv, 0), synth_pf(inv, 1), "SYS", -1);
	expect(&m, nic, synth_pf(inv, 1), "PHB", -1);
	assert_true(topo_between(m.topo, synth_gpu(inv, 0), synth_vf(inv, 1)).direct);
	assert_false(topo_between(m.topo, synth_gpu(inv, 1), nic).direct);
	assert_int_equal(topo_direct(m.topo, synth_vf(inv, 1)), direct);
	assert_int_equal(topo_direct(m.topo, synth_pf(inv, 1)), -1);
	assert_int_equal(topo_between_functions(m.topo, synth_gpu(inv, 0), nic).class, TOPO_SYS);
	assert_int_equal(topo_between_functions(m.topo, synth_gpu(inv, 0), direct).class, TOPO_PXB);
	assert_false(topo_flattened_vm(m.topo));
}

/* A data direct function that is no nearer than the NIC itself changes nothing. */
static void a_data_direct_function_that_is_farther_does_not_count(void **state)
{
	struct hw_inventory *inv = synth_inventory("switch:1 gpu:1 pf:1 vf:1;pf:1");
	int nic = synth_pf(inv, 0);
	struct hw_card card = { .pci = nic, .direct = synth_pf(inv, 1) };

	(void)state;
	inv->card = &card;
	inv->n_card = 1;
	_cleanup_machine_ struct machine m = machine_of(inv);
	expect(&m, synth_gpu(inv, 0), nic, "PIX", 1);
	assert_false(topo_between(m.topo, synth_gpu(inv, 0), nic).direct);
}

/* MI300X: the NIC on the first level, the GPU two bridges further down. */
static void a_nic_above_the_sub_switch_is_pxb_with_two_switches(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:1 sub:2 gpu:1 upf:1 vf:1");

	(void)state;
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 0), "PXB", 2);
	expect(&m, synth_gpu(m.inv, 0), synth_vf(m.inv, 0), "PXB", 2);
	expect(&m, synth_gpu(m.inv, 0), synth_gpu(m.inv, 1), "PXB", 3);
}

static void two_sub_switches_are_three_switches(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:1 sub:2 gpu:1 pf:1");

	(void)state;
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 0), "PIX", 1);
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 1), "PXB", 3);
}

static void broadcom_two_level_switches_count_as_one(void **state)
{
	static const char *const lines[] = {
		"switch:1 sub:2 gpu:1 pf:1 vf:1 bcm4",
		"switch:1 sub:2 gpu:1 pf:1 vf:1 bcm5",
		"switch:1 sub:2 gpu:1 pf:1 vf:1 bcm4 noids",
		"switch:1 sub:2 gpu:1 pf:1 vf:1 bcm5 noids",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		_cleanup_machine_ struct machine m = machine(lines[i]);

		expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 1), "PIX", 1);
		expect(&m, synth_gpu(m.inv, 1), synth_vf(m.inv, 0), "PIX", 1);
	}
}

static struct hw_inventory *with_switch_id(const char *line, uint16_t subvendor, uint16_t subdevice)
{
	struct hw_inventory *inv = synth_inventory(line);

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (inv->pci[i].vendor != 0x1000)
			continue;
		inv->pci[i].subvendor = subvendor;
		inv->pci[i].subdevice = subdevice;
	}
	return inv;
}

/* A server maker's subsystem ids: NCCL does not fuse these. */
static void broadcom_switches_with_other_subsystem_ids_are_not_fused(void **state)
{
	static const struct {
		const char *line;
		uint16_t subvendor, subdevice;
	} rows[] = {
		{ "switch:1 sub:2 gpu:1 pf:1 bcm4", 0x15d9, 0xa024 },
		{ "switch:1 sub:2 gpu:1 pf:1 bcm4", 0x1000, 0xb024 },
		{ "switch:1 sub:2 gpu:1 pf:1 bcm5", 0x1000, 0x0003 }, /* both levels say "upper" */
		{ "switch:1 sub:2 gpu:1 pf:1 bcm5", 0x1000, 0x1003 }, /* both say "lower" */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_machine_ struct machine m = machine_of(
			with_switch_id(rows[i].line, rows[i].subvendor, rows[i].subdevice));

		expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 1), "PXB", 3);
	}
}

static void other_subsystem_devices_of_gen4_are_fused_too(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(with_switch_id("switch:1 sub:2 gpu:1 pf:1 bcm4", 0x1000, 0xa510));

	(void)state;
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 1), "PIX", 1);
}

/* A chain of bridges by hand: root port, then `levels` times (upstream, downstream), then a device.
 */
static int add_chain(struct hw_inventory *inv, int parent, int levels, uint16_t device)
{
	for (int i = 0; i < 2 * levels + 1; i++) {
		int n = (int)inv->n_pci++;

		inv->pci[n] = (struct hw_pci) {
			.bdf = { 0, (uint8_t)(n + 1), 0, 0 },
			.class_code = 0x060400,
			.vendor = device ? 0x1000 : 0x8086,
			.device = device,
			.parent = parent,
			.has_root = true,
			.numa = -1,
			.physfn = -1,
			.vf_index = -1,
		};
		parent = n;
	}
	return parent;
}

static struct hw_inventory *empty_inventory(void)
{
	struct hw_inventory *inv = synth_inventory("numa:0");

	inv->pci = arena_array(inv->arena, 64, sizeof(*inv->pci));
	return inv;
}

/* Levels A, B, C, D of one kind: B hangs on A, D on C, and A to C stays a step. */
static void only_one_level_is_fused(void **state)
{
	struct hw_inventory *inv = empty_inventory();
	int up, near, far;

	(void)state;
	up = add_chain(inv, -1, 1, 0xc010); /* root port, A up, A down */
	near = add_chain(inv, up - 1, 0, 0);
	far = add_chain(inv, up, 2, 0xc010); /* B up, B down, C up, C down, device */
	_cleanup_machine_ struct machine m = machine_of(inv);
	expect(&m, near, far, "PXB", 2);
}

static void devices_without_switches_share_a_root_complex(void **state)
{
	_cleanup_machine_ struct machine m = machine("root:2 gpu:1 pf:1");

	(void)state;
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 0), "PHB", -1);
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 1), "NODE", -1);
}

/* Two functions of one card below a root port, and two directly on the root bus. */
static void the_common_bridge_is_the_root_port(void **state)
{
	_cleanup_machine_ struct machine port = machine("pf:1 vf:2");
	_cleanup_machine_ struct machine bus = machine("gpu:1 pf:1 vf:9 flat");

	(void)state;
	expect(&port, synth_vf(port.inv, 0), synth_vf(port.inv, 1), "PHB", -1);
	expect(&bus, synth_gpu(bus.inv, 0), synth_vf(bus.inv, 8), "PHB", -1);
}

static void numa_nodes_decide_between_root_complexes(void **state)
{
	_cleanup_machine_ struct machine m = machine("numa:2 root:2 switch:1 gpu:1 pf:1");

	(void)state;
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 1), "NODE", -1);
	expect(&m, synth_gpu(m.inv, 0), synth_pf(m.inv, 2), "SYS", -1);
}

static void an_unknown_node_is_node_on_a_machine_with_one(void **state)
{
	_cleanup_machine_ struct machine none = machine("numa:0 root:2 gpu:1 pf:1");
	_cleanup_machine_ struct machine one = machine("numa:1 gpu:1; numa:0 pf:1");
	_cleanup_machine_ struct machine two = machine("numa:2 gpu:1; numa:0 pf:1");

	(void)state;
	expect(&none, synth_gpu(none.inv, 0), synth_pf(none.inv, 1), "NODE", -1);
	expect(&one, synth_gpu(one.inv, 0), synth_pf(one.inv, 0), "NODE", -1);
	expect(&two, synth_gpu(two.inv, 0), synth_pf(two.inv, 0), "SYS", -1);
}

/* The NUMA table may be empty (no nodeN folders) although functions know their nodes. */
static void nodes_of_functions_count_as_known(void **state)
{
	struct hw_inventory *inv = synth_inventory("numa:2 gpu:1; numa:0 pf:1");

	(void)state;
	inv->n_numa = 0;
	_cleanup_machine_ struct machine m = machine_of(inv);
	expect(&m, synth_gpu(inv, 0), synth_pf(inv, 0), "SYS", -1);
}

static void a_function_without_root_complex_is_judged_by_its_node(void **state)
{
	struct hw_inventory *inv = synth_inventory("numa:2 gpu:1 pf:1 flat");

	(void)state;
	inv->pci[synth_pf(inv, 0)].has_root = false;
	_cleanup_machine_ struct machine m = machine_of(inv);
	expect(&m, synth_gpu(inv, 0), synth_pf(inv, 0), "NODE", -1);
	expect(&m, synth_gpu(inv, 1), synth_pf(inv, 0), "SYS", -1);
}

static void a_flattened_vm_is_told_from_a_real_phb(void **state)
{
	static const struct {
		const char *line;
		bool flattened;
	} rows[] = {
		{ "numa:2 root:4 gpu:1 pf:1 vf:1 flat nopf hyper", true }, /* Azure MI300X */
		{ "gpu:2 pf:2 vf:2 flat nopf", true },
		{ "gpu:1 pf:1 vf:1 hyper", true },	/* below root ports of the VM */
		{ "gpu:1 pf:1 vf:1", false },		/* bare metal */
		{ "switch:1 gpu:1 pf:1 hyper", false }, /* a VM that shows its switches */
		{ "gpu:2 flat hyper", false },		/* nothing to hide */
		{ "pf:2 vf:2 flat hyper", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_machine_ struct machine m = machine(rows[i].line);

		assert_int_equal(topo_flattened_vm(m.topo), rows[i].flattened);
	}
}

static void a_loop_of_parents_ends(void **state)
{
	struct hw_inventory *inv = synth_inventory("switch:1 gpu:1 pf:1");

	(void)state;
	inv->pci[0].parent = (int)inv->n_pci - 1;
	inv->pci[inv->n_pci - 1].parent = 0;
	_cleanup_machine_ struct machine m = machine_of(inv);
	assert_int_equal(topo_between(m.topo, synth_gpu(inv, 0), synth_pf(inv, 0)).class, TOPO_PHB);
}

static void an_empty_machine_is_fine(void **state)
{
	_cleanup_machine_ struct machine m = machine("numa:0");

	(void)state;
	assert_false(topo_flattened_vm(m.topo));
	topo_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_follow_the_distance),
		cmocka_unit_test(a_function_is_itself_and_nothing_else_is),
		cmocka_unit_test(one_switch_is_pix),
		cmocka_unit_test(two_switches_of_a_root_complex_are_phb),
		cmocka_unit_test(a_vf_has_the_place_of_its_pf),
		cmocka_unit_test(a_vf_with_a_strange_chain_still_has_the_place_of_its_pf),
		cmocka_unit_test(a_vf_without_visible_pf_has_its_own_place),
		cmocka_unit_test(a_nic_with_data_direct_is_where_that_function_is),
		cmocka_unit_test(a_data_direct_function_that_is_farther_does_not_count),
		cmocka_unit_test(a_nic_above_the_sub_switch_is_pxb_with_two_switches),
		cmocka_unit_test(two_sub_switches_are_three_switches),
		cmocka_unit_test(broadcom_two_level_switches_count_as_one),
		cmocka_unit_test(broadcom_switches_with_other_subsystem_ids_are_not_fused),
		cmocka_unit_test(other_subsystem_devices_of_gen4_are_fused_too),
		cmocka_unit_test(only_one_level_is_fused),
		cmocka_unit_test(devices_without_switches_share_a_root_complex),
		cmocka_unit_test(the_common_bridge_is_the_root_port),
		cmocka_unit_test(numa_nodes_decide_between_root_complexes),
		cmocka_unit_test(an_unknown_node_is_node_on_a_machine_with_one),
		cmocka_unit_test(nodes_of_functions_count_as_known),
		cmocka_unit_test(a_function_without_root_complex_is_judged_by_its_node),
		cmocka_unit_test(a_flattened_vm_is_told_from_a_real_phb),
		cmocka_unit_test(a_loop_of_parents_ends),
		cmocka_unit_test(an_empty_machine_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
