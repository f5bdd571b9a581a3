#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hw/inventory.h"
#include "support/synth.h"
#include "support/topocheck.h"
#include "topo/topo.h"

/* Two nodes with two GPUs and two NICs each, no switch to be seen. */
#define HIDDEN "numa:2 root:2 gpu:1 pf:1 vf:1 flat nopf hyper"

static void expect(const struct topo *t, int a, int b, const char *class, int bridges)
{
	struct topo_path p = topo_between(t, a, b);

	assert_string_equal(topo_class_name(p.class), class);
	assert_int_equal(p.bridges, bridges);
}

static const char *only_note(const struct topo *t)
{
	size_t n;
	const char *const *notes = topo_notes(t, &n);

	assert_int_equal(n, 1);
	return notes[0];
}

static void a_group_is_one_switch(void **state)
{
	struct hw_inventory *inv = synth_inventory(HIDDEN);
	int gpu = synth_gpu(inv, 0), nic = synth_vf(inv, 1), other = synth_vf(inv, 0);
	const struct topo_group group = { &inv->pci[gpu].bdf, 1, &inv->pci[nic].bdf, 1, -1 };
	const struct topo_hints hints = { .source = "hints", .groups = &group, .n_groups = 1 };
	struct topo *t = topo_new(inv, &hints);
	size_t n;

	(void)state;
	expect(t, gpu, nic, "PIX", 1);
	expect(t, gpu, other, "PHB", -1); /* the tree's word, as before */
	assert_ptr_equal(topo_hints_used(t), &hints);
	assert_int_equal(topo_group_of(t, nic), 0);
	assert_int_equal(topo_group_of(t, other), -1);
	assert_true(topo_flattened_vm(t));
	topo_notes(t, &n);
	assert_int_equal(n, 0);
	topo_check(t, inv);
	topo_free(t);
	hw_inventory_free(inv);
}

static void groups_have_the_nodes_that_the_hints_say(void **state)
{
	struct hw_inventory *inv = synth_inventory("gpu:2 nopf pf:1 vf:2 flat hyper");
	const struct topo_group groups[] = {
		{ &inv->pci[synth_gpu(inv, 0)].bdf, 1, &inv->pci[synth_vf(inv, 0)].bdf, 1, 0 },
		{ &inv->pci[synth_gpu(inv, 1)].bdf, 1, &inv->pci[synth_vf(inv, 1)].bdf, 1, 1 },
	};
	const struct topo_hints hints = { .source = "hints", .groups = groups, .n_groups = 2 };
	struct topo *t = topo_new(inv, &hints);

	(void)state;
	expect(t, synth_gpu(inv, 0), synth_vf(inv, 0), "PIX", 1);
	expect(t, synth_gpu(inv, 0), synth_vf(inv, 1), "SYS", -1);
	expect(t, synth_gpu(inv, 0), synth_gpu(inv, 1), "SYS", -1);
	assert_int_equal(topo_numa(t, synth_vf(inv, 1)), 1);
	topo_check(t, inv);
	topo_free(t);
	hw_inventory_free(inv);
}

static void a_vf_is_where_the_pf_of_the_hints_is(void **state)
{
	struct hw_inventory *inv = synth_inventory("gpu:1 pf:1 vf:2 flat hyper");
	const struct topo_group group = { &inv->pci[synth_gpu(inv, 0)].bdf, 1,
					  &inv->pci[synth_pf(inv, 0)].bdf, 1, -1 };
	const struct topo_hints hints = { .source = "hints", .groups = &group, .n_groups = 1 };
	struct topo *t = topo_new(inv, &hints);

	(void)state;
	expect(t, synth_gpu(inv, 0), synth_vf(inv, 1), "PIX", 1);
	topo_check(t, inv);
	topo_free(t);
	hw_inventory_free(inv);
}

static void what_is_wrong_with_hints_is_a_sentence(void **state)
{
	struct hw_inventory *inv = synth_inventory(HIDDEN);
	const struct bdf nowhere = { 0x77, 1, 2, 3 }, gpu = inv->pci[synth_gpu(inv, 0)].bdf,
			 nic = inv->pci[synth_vf(inv, 0)].bdf;
	const struct {
		struct topo_group group;
		const char *note;
	} rows[] = {
		{ { &nowhere, 1, &nic, 1, -1 }, "h.json: 0077:01:02.3 is not on this machine" },
		{ { &gpu, 1, &nowhere, 1, -1 }, "h.json: 0077:01:02.3 is not on this machine" },
		{ { &nic, 1, &nic, 1, -1 }, "is not a GPU" },
		{ { &gpu, 1, &gpu, 1, -1 }, "is not a NIC" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct topo_hints hints = { .source = "h.json",
						  .groups = &rows[i].group,
						  .n_groups = 1 };
		struct topo *t = topo_new(inv, &hints);

		assert_non_null(strstr(only_note(t), rows[i].note));
		topo_check(t, inv);
		topo_free(t);
	}
	hw_inventory_free(inv);
}

static void a_machine_that_shows_its_switches_needs_no_hints(void **state)
{
	struct hw_inventory *inv = synth_inventory("switch:2 gpu:1 pf:1 vf:1");
	const struct topo_group group = { &inv->pci[synth_gpu(inv, 0)].bdf, 1,
					  &inv->pci[synth_pf(inv, 1)].bdf, 1, -1 };
	const struct topo_hints hints = { .source = "h.json", .groups = &group, .n_groups = 1 };
	struct topo *t = topo_new(inv, &hints);

	(void)state;
	expect(t, synth_gpu(inv, 0), synth_pf(inv, 1), "PHB", -1);
	assert_null(topo_hints_used(t));
	assert_non_null(strstr(only_note(t), "not used"));
	topo_free(t);
	hw_inventory_free(inv);
}

static void a_vf_and_its_pf_in_two_groups_stay_in_the_first(void **state)
{
	struct hw_inventory *inv = synth_inventory("gpu:2 pf:1 vf:1 flat hyper");
	const struct topo_group groups[] = {
		{ &inv->pci[synth_gpu(inv, 0)].bdf, 1, &inv->pci[synth_pf(inv, 0)].bdf, 1, -1 },
		{ &inv->pci[synth_gpu(inv, 1)].bdf, 1, &inv->pci[synth_vf(inv, 0)].bdf, 1, -1 },
	};
	const struct topo_hints hints = { .source = "h.json", .groups = groups, .n_groups = 2 };
	struct topo *t = topo_new(inv, &hints);

	(void)state;
	expect(t, synth_gpu(inv, 0), synth_vf(inv, 0), "PIX", 1);
	assert_non_null(strstr(only_note(t), "the first counts"));
	topo_free(t);
	hw_inventory_free(inv);
}

/* --- instance types --- */

#define FUNCTIONS_MAX 24

struct guest {
	struct hw_pci pci[FUNCTIONS_MAX];
	struct hw_gpu gpu[FUNCTIONS_MAX];
	struct hw_inventory inv;
};

static void add_function(struct guest *g, struct bdf bdf, uint16_t vendor, uint16_t device,
			 uint32_t class_code)
{
	struct hw_pci *f = &g->pci[g->inv.n_pci++];

	assert_true(g->inv.n_pci <= FUNCTIONS_MAX);
	*f = hw_pci_unknown(bdf);
	f->vendor = vendor;
	f->device = device;
	f->class_code = class_code;
	f->has_root = true;
	f->root_domain = bdf.domain;
	f->root_bus = bdf.bus;
}

/* In address order: GPUs of Azure have lower domains than its NICs. */
static struct hw_inventory *azure_a100(struct guest *g)
{
	static const uint32_t gpus[] = { 1, 2, 3, 4, 0xb, 0xc, 0xd, 0xe };

	memset(g, 0, sizeof(*g));
	g->inv = (struct hw_inventory) { .pci = g->pci, .gpu = g->gpu, .hypervisor = true };
	for (size_t i = 0; i < ARRAY_LEN(gpus); i++) {
		add_function(g, (struct bdf) { .domain = gpus[i] }, 0x10de, 0x20b0, 0x030200);
		g->gpu[g->inv.n_gpu++] = (struct hw_gpu) { .pci = (int)i, .vendor = "NVIDIA" };
	}
	for (uint32_t i = 1; i <= 8; i++)
		add_function(g, (struct bdf) { .domain = 0x100 + i }, 0x15b3, 0x101c, 0x020700);
	return &g->inv;
}

static void an_instance_type_is_known_by_its_addresses(void **state)
{
	struct guest g;
	struct topo *t = topo_new(azure_a100(&g), NULL);

	(void)state;
	assert_string_equal(topo_hints_used(t)->source, "Azure ND A100 v4");
	expect(t, 2, 8 + 2, "PIX", 1);	/* 0003 and 0103 */
	expect(t, 2, 8 + 3, "PIX", 1);	/* 0003 and 0104 */
	expect(t, 2, 8 + 0, "SYS", -1); /* 0101 is in node 1 */
	expect(t, 6, 8 + 7, "PIX", 1);	/* 000d and 0108 */
	topo_check(t, &g.inv);
	topo_free(t);
}

static void an_ethernet_vf_beside_does_not_disturb(void **state)
{
	struct guest g;
	struct topo *t;

	(void)state;
	azure_a100(&g);
	add_function(&g, (struct bdf) { .domain = 0xd3f6, .dev = 2 }, 0x15b3, 0x1018, 0x020000);
	t = topo_new(&g.inv, NULL);
	assert_non_null(topo_hints_used(t));
	topo_free(t);
}

static void one_function_that_differs_is_another_machine(void **state)
{
	struct guest g;

	(void)state;
	azure_a100(&g);
	g.pci[3].vendor = 0x1002;
	assert_null(topo_shape(&g.inv));
	azure_a100(&g);
	g.inv.n_gpu--;
	assert_null(topo_shape(&g.inv));
	azure_a100(&g);
	g.inv.n_pci--;
	assert_null(topo_shape(&g.inv));
	azure_a100(&g);
	g.pci[15].bdf.domain = 0x109;
	assert_null(topo_shape(&g.inv));
	azure_a100(&g);
	add_function(&g, (struct bdf) { .domain = 0x109 }, 0x15b3, 0x101c, 0x020700);
	assert_null(topo_shape(&g.inv));
}

static void the_operators_hints_win(void **state)
{
	const struct bdf gpu = { .domain = 1 }, nic = { .domain = 0x108 };
	const struct topo_group group = { &gpu, 1, &nic, 1, -1 };
	const struct topo_hints hints = { .source = "hints", .groups = &group, .n_groups = 1 };
	struct guest g;
	struct topo *t = topo_new(azure_a100(&g), &hints);

	(void)state;
	expect(t, 0, 8 + 7, "PIX", 1);
	assert_ptr_equal(topo_hints_used(t), &hints);
	topo_free(t);
}

static void add_p4d_switch(struct guest *g, uint8_t bus)
{
	add_function(g, (struct bdf) { .bus = bus, .dev = 0x1b }, 0x1d0f, 0xefa0, 0x020000);
	for (uint8_t dev = 0x1c; dev <= 0x1d; dev++) {
		g->gpu[g->inv.n_gpu++] =
			(struct hw_gpu) { .pci = (int)g->inv.n_pci, .vendor = "NVIDIA" };
		add_function(g, (struct bdf) { .bus = bus, .dev = dev }, 0x10de, 0x20b0, 0x030200);
	}
}

static void two_gpus_of_a_p4d_share_a_nic(void **state)
{
	struct guest g = { .inv = { .pci = g.pci, .gpu = g.gpu, .hypervisor = true } };
	struct topo *t;

	(void)state;
	add_function(&g, (struct bdf) { .dev = 5 }, 0x1d0f, 0xec20, 0x020000); /* ENA */
	add_p4d_switch(&g, 0x10);
	add_p4d_switch(&g, 0x20);
	add_p4d_switch(&g, 0x90);
	add_p4d_switch(&g, 0xa0);
	t = topo_new(&g.inv, NULL);
	assert_string_equal(topo_hints_used(t)->source, "AWS p4d.24xlarge");
	expect(t, 1, 2, "PIX", 1);
	expect(t, 1, 3, "PIX", 1);
	expect(t, 1, 5, "NODE", -1);
	expect(t, 1, 8, "SYS", -1);
	topo_free(t);
}

/* --- where NCCL looks --- */

static void nccl_looks_at_function_0(void **state)
{
	const struct bdf vf = { 0x0101, 0x19, 0x01, 3 };
	char text[BDF_STRLEN];

	(void)state;
	assert_string_equal(bdf_format(topo_nccl_address(vf, true), text), "0101:19:00.0");
	assert_string_equal(bdf_format(topo_nccl_address(vf, false), text), "0101:19:01.0");
}

static void vfs_merge_where_their_pf_is(void **state)
{
	static const struct {
		struct bdf pf, vf; /* pf domain 9: not visible */
		bool merges;
	} rows[] = {
		{ { 0, 0x19, 0, 0 }, { 0, 0x19, 0, 3 }, true },
		{ { 0, 0x19, 0, 0 }, { 0, 0x19, 1, 3 }, true },
		{ { 0, 0x19, 0, 1 }, { 0, 0x19, 2, 3 }, false }, /* no function 0: 19:00.0 is not
								    there */
		{ { 0, 0x19, 0, 0 }, { 0, 0x1a, 1, 3 }, false }, /* a bus further */
		{ { 0, 0x19, 0, 0 }, { 0, 0x1a, 0, 3 }, true },	 /* there it makes no difference */
		{ { 0, 0x00, 5, 0 }, { 0, 0x00, 5, 3 }, false }, /* 00:00.0 is the host bridge */
		{ { 9, 0, 0, 0 }, { 0x0101, 0, 2, 0 }, false },	 /* of a VM: its own slot */
		{ { 9, 0, 0, 0 }, { 0x0101, 0, 0, 0 }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hw_pci pci[2] = { hw_pci_unknown(rows[i].pf), hw_pci_unknown(rows[i].vf) };
		struct hw_inventory inv = { .pci = pci, .n_pci = 2 };

		if (rows[i].pf.domain == 9) {
			pci[0] = pci[1];
			inv.n_pci = 1;
			assert_int_equal(topo_vf_merges(&inv, 0), rows[i].merges);
			continue;
		}
		pci[1].physfn = 0;
		pci[1].is_vf = true;
		assert_int_equal(topo_vf_merges(&inv, 1), rows[i].merges);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_one_switch),
		cmocka_unit_test(groups_have_the_nodes_that_the_hints_say),
		cmocka_unit_test(a_vf_is_where_the_pf_of_the_hints_is),
		cmocka_unit_test(what_is_wrong_with_hints_is_a_sentence),
		cmocka_unit_test(a_machine_that_shows_its_switches_needs_no_hints),
		cmocka_unit_test(a_vf_and_its_pf_in_two_groups_stay_in_the_first),
		cmocka_unit_test(an_instance_type_is_known_by_its_addresses),
		cmocka_unit_test(an_ethernet_vf_beside_does_not_disturb),
		cmocka_unit_test(one_function_that_differs_is_another_machine),
		cmocka_unit_test(the_operators_hints_win),
		cmocka_unit_test(two_gpus_of_a_p4d_share_a_nic),
		cmocka_unit_test(nccl_looks_at_function_0),
		cmocka_unit_test(vfs_merge_where_their_pf_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
