#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hw/inventory.h"
#include "support/synth.h"
#include "topo/rails.h"
#include "topo/topo.h"

/* What each PF of the machine is on, in the order of addresses: "0 1 - 2/0 2/1". */
static void expect_named(struct hw_inventory *inv, const struct topo_rail_name *names, size_t n,
			 const char *wanted, const char *note)
{
	struct topo *t = topo_new(inv, NULL);
	struct topo_rails *r = topo_rails_new(t, names, n);
	const char *const *notes;
	char said[256] = "";
	size_t len = 0, n_notes;

	for (int i = 0; i < (int)inv->n_pci; i++) {
		struct topo_rail at = topo_rails_of(r, i);

		if (inv->pci[i].physfn >= 0) {
			struct topo_rail pf = topo_rails_of(r, inv->pci[i].physfn);

			assert_int_equal(at.rail, pf.rail);
			assert_int_equal(at.plane, pf.plane);
		}
		if (!hw_is_own_nic(inv, i))
			continue;
		len += (size_t)snprintf(said + len, sizeof(said) - len,
					at.rail < 0 ? "%s-" : "%s%d", len ? " " : "", at.rail);
		if (at.plane >= 0)
			len += (size_t)snprintf(said + len, sizeof(said) - len, "/%d", at.plane);
	}
	assert_string_equal(said, wanted);
	notes = topo_rails_notes(r, &n_notes);
	assert_int_equal(n_notes, note != NULL);
	if (note)
		assert_string_equal(notes[0], note);
	topo_rails_free(r);
	topo_free(t);
	hw_inventory_free(inv);
}

static void expect(const char *machine, const char *wanted)
{
	expect_named(synth_inventory(machine), NULL, 0, wanted, NULL);
}

static void nics_are_numbered_as_their_gpus(void **state)
{
	(void)state;
	expect("numa:2 root:2 switch:1 gpu:1 pf:1 vf:2", "0 1 2 3");
	expect("numa:2 switch:1 gpu:2 pf:1 vf:1", "0 1");
	expect("numa:2 switch:1 gpu:1 pf:2", "0 1 2 3");
	expect("numa:2 gpu:2 pf:2", "0 1 2 3");
}

static struct hw_inventory *with_dual_port_cards(const char *machine)
{
	struct hw_inventory *inv = synth_inventory(machine);

	for (size_t i = 0; i < 4; i += 2) {
		struct bdf *second = &inv->pci[synth_pf(inv, i + 1)].bdf;

		*second = inv->pci[synth_pf(inv, i)].bdf;
		second->fn = 1;
	}
	return inv;
}

static void ports_of_a_card_are_planes_where_gpus_are_fewer(void **state)
{
	(void)state;
	expect_named(with_dual_port_cards("numa:2 switch:1 gpu:1 pf:2"), NULL, 0, "0/0 0/1 1/0 1/1",
		     NULL);
	expect_named(with_dual_port_cards("numa:2 switch:1 gpu:2 pf:2"), NULL, 0, "0 1 2 3", NULL);
}

static void nics_far_from_gpus_are_on_no_rail(void **state)
{
	(void)state;
	expect("root:1 pf:1;root:2 switch:1 gpu:1 pf:1", "- 0 1");
	expect("root:2 switch:1 pf:1", "- -");
	expect("switch:1 gpu:1", "");
}

/* No NIC is nearer to a GPU than another of its node. */
static void passed_through_vfs_are_numbered_too(void **state)
{
	(void)state;
	expect("numa:2 gpu:2 pf:2 vf:1 nopf flat hyper", "0 1 2 3");
}

static void nics_without_an_rdma_device_are_on_no_rail(void **state)
{
	struct hw_inventory *inv = synth_inventory("root:2 switch:1 gpu:1 pf:1");

	(void)state;
	inv->rdma[0].pci = -1;
	expect_named(inv, NULL, 0, "- 0", NULL);
}

static void the_order_is_that_of_the_gpus(void **state)
{
	struct hw_inventory *inv = synth_inventory("root:2 switch:1 gpu:1 pf:1");
	struct hw_gpu first = inv->gpu[0];

	(void)state;
	inv->gpu[0] = inv->gpu[1];
	inv->gpu[1] = first;
	expect_named(inv, NULL, 0, "1 0", NULL);
}

static void the_operators_numbers_count_alone(void **state)
{
	const char *machine = "root:4 switch:1 gpu:1 pf:1 vf:1";
	struct hw_inventory *inv = synth_inventory(machine);
	char bdf[BDF_STRLEN];
	const struct topo_rail_name names[] = {
		{ inv->pci[synth_pf(inv, 3)].netdev, 0, false, 0 },
		{ inv->rdma[hw_find_rdma(inv, synth_pf(inv, 1))].name, 7, false, 0 },
		{ bdf_format(inv->pci[synth_pf(inv, 0)].bdf, bdf), 7, false, 0 },
		{ "eth99", 2, false, 0 },
	};

	(void)state;
	expect_named(inv, names, ARRAY_LEN(names), "7/0 7/1 - 0",
		     "rails: eth99 is not a NIC of this node");
}

/* Of four NICs: those that are named keep their plane, the others get what is left. */
static void the_operators_planes_stay(void **state)
{
	static const struct {
		struct topo_rail_name names[4];
		const char *wanted;
	} rows[] = {
		{ { { NULL, 3, true, 1 },
		    { NULL, 3, true, 0 },
		    { NULL, 4, true, 1 },
		    { NULL, 4, true, 0 } },
		  "3/1 3/0 4/1 4/0" },
		{ { { NULL, 3, false, 0 },
		    { NULL, 3, true, 0 },
		    { NULL, 3, false, 0 },
		    { NULL, 3, true, 2 } },
		  "3/1 3/0 3/3 3/2" },
		/* One NIC of its rail here; two of one plane. */
		{ { { NULL, 0, true, 1 },
		    { NULL, 1, false, 0 },
		    { NULL, 2, true, 5 },
		    { NULL, 2, true, 5 } },
		  "0/1 1 2/5 2/5" },
		{ { { NULL, 0, true, TOPO_PLANE_MAX },
		    { NULL, 0, false, 0 },
		    { NULL, 1, false, 0 },
		    { NULL, 1, false, 0 } },
		  "0/1023 0/0 1/0 1/1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hw_inventory *inv = synth_inventory("root:4 switch:1 gpu:1 pf:1 vf:1");
		struct topo_rail_name names[4];

		for (size_t n = 0; n < 4; n++) {
			names[n] = rows[i].names[n];
			names[n].nic = inv->pci[synth_pf(inv, n)].netdev;
		}
		expect_named(inv, names, 4, rows[i].wanted, NULL);
	}
}

/* A line for each PF, by address: "SWITCH PORT", NULL: not known. */
static struct hw_inventory *connected(struct hw_inventory *inv, const char *const *leaves)
{
	static struct hw_neighbor table[16];

	inv->neighbor = table;
	inv->n_neighbor = 0;
	for (size_t i = 0; leaves[i]; i++) {
		static char names[ARRAY_LEN(table)][32];
		char *space;

		assert_true(inv->n_neighbor < ARRAY_LEN(table));
		if (!*leaves[i])
			continue;
		snprintf(names[i], sizeof(names[i]), "%s", leaves[i]);
		space = strchr(names[i], ' ');
		*space = '\0';
		table[inv->n_neighbor++] =
			(struct hw_neighbor) { synth_pf(inv, i), names[i], space + 1 };
	}
	return inv;
}

static void expect_connected(const char *machine, const char *const *leaves, const char *wanted)
{
	expect_named(connected(synth_inventory(machine), leaves), NULL, 0, wanted, NULL);
}

/* leaves: NULL-terminated, "" where none is known. */
#define LEAVES(...) ((const char *const[]) { __VA_ARGS__, NULL })

static void switches_order_what_the_gpus_do_not(void **state)
{
	(void)state;
	/* Two cards as near to one GPU. */
	expect_connected("root:2 switch:1 gpu:1 pf:2", LEAVES("l2 p", "l1 p", "l4 p", "l3 p"),
			 "1 0 3 2");
	/* None is nearer to any GPU than another. */
	expect_connected("numa:1 gpu:4 pf:4 flat hyper",
			 LEAVES("leaf-10 e1", "leaf-9 e1", "leaf-9 e10", "leaf-9 e9"), "3 0 2 1");
	/* Some are not known. */
	expect_connected("switch:1 gpu:1 pf:4", LEAVES("", "l2 p", "", "l1 p"), "2 1 3 0");
	/* What the GPUs say stays. */
	expect_connected("root:3 switch:1 gpu:1 pf:1", LEAVES("l3 p", "l2 p", "l1 p"), "0 1 2");
}

static void nics_far_from_gpus_follow_in_the_order_of_their_switches(void **state)
{
	(void)state;
	expect_connected("root:2 switch:1 pf:1", LEAVES("l2 p", "l1 p"), "1 0");
	expect_connected("root:3 switch:1 pf:1", LEAVES("l2 p", "", "l1 p"), "1 - 0");
	expect_connected("root:2 pf:1;root:2 switch:1 gpu:1 pf:1",
			 LEAVES("a2 p", "a1 p", "z p", "y p"), "3 2 0 1");
}

static void planes_are_in_the_order_of_their_switches(void **state)
{
	struct hw_inventory *inv = with_dual_port_cards("numa:2 switch:1 gpu:1 pf:2");
	struct topo_rail_name names[4];

	(void)state;
	expect_named(connected(inv, LEAVES("b p", "a p", "a p", "b p")), NULL, 0, "0/1 0/0 1/0 1/1",
		     NULL);
	inv = connected(synth_inventory("root:4 switch:1 gpu:1 pf:1"),
			LEAVES("b p", "a p", "d p", "c p"));
	for (size_t i = 0; i < 4; i++)
		names[i] = (struct topo_rail_name) { .nic = inv->pci[synth_pf(inv, i)].netdev,
						     .rail = 7,
						     .has_plane = i == 3 };
	expect_named(inv, names, 4, "7/2 7/1 7/3 7/0", NULL);
}

static void what_is_nowhere_is_on_no_rail(void **state)
{
	struct hw_inventory *inv = synth_inventory("switch:1 gpu:1 pf:1");
	struct topo *t = topo_new(inv, NULL);
	struct topo_rails *r = topo_rails_new(t, NULL, 0);

	(void)state;
	assert_int_equal(topo_rails_of(r, -1).rail, -1);
	topo_rails_free(r);
	topo_rails_free(NULL);
	topo_free(t);
	hw_inventory_free(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nics_are_numbered_as_their_gpus),
		cmocka_unit_test(ports_of_a_card_are_planes_where_gpus_are_fewer),
		cmocka_unit_test(nics_far_from_gpus_are_on_no_rail),
		cmocka_unit_test(passed_through_vfs_are_numbered_too),
		cmocka_unit_test(nics_without_an_rdma_device_are_on_no_rail),
		cmocka_unit_test(the_order_is_that_of_the_gpus),
		cmocka_unit_test(the_operators_numbers_count_alone),
		cmocka_unit_test(the_operators_planes_stay),
		cmocka_unit_test(switches_order_what_the_gpus_do_not),
		cmocka_unit_test(nics_far_from_gpus_follow_in_the_order_of_their_switches),
		cmocka_unit_test(planes_are_in_the_order_of_their_switches),
		cmocka_unit_test(what_is_nowhere_is_on_no_rail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
