/* A GPU plugin like the vendors'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "lab.h"
#include "sim/vendor.h"

/* Two GPUs a switch, two switches a node, two nodes. */
#define MACHINE "numa:2 root:2 switch:1 gpu:2 pf:1 vf:4"

/* `free` and `want` are bit masks of GPUs. */
static void prefers(unsigned free, unsigned must, int size, unsigned want)
{
	_cleanup_lab_ struct lab lab = lab_new(MACHINE);
	const struct vendor *v =
		sim_vendor_new(lab.node->inv, lab.node->topo, "nvidia.com/gpu", lab.arena);
	const char *available[8], *musts[8], *nonsense = "GPU-of-another-node";
	struct preferred_container ask = { .available = { .v = available },
					   .must = { .v = musts },
					   .size = size };
	struct ids out;
	unsigned got = 0;

	assert_int_equal(v->list.n, 8);
	for (size_t i = 0; i < 8; i++) {
		if (free >> i & 1)
			available[ask.available.n++] = v->list.v[i].id;
		if (must >> i & 1)
			musts[ask.must.n++] = v->list.v[i].id;
	}
	if (ask.available.n < 8)
		available[ask.available.n++] = nonsense;
	out = sim_vendor_prefer(v, &ask, lab.arena);
	for (size_t i = 0; i < out.n; i++) {
		for (size_t k = 0; k < 8; k++)
			got |= (unsigned)!strcmp(out.v[i], v->list.v[k].id) << k;
	}
	assert_int_equal(got, want);
	assert_int_equal(out.n, __builtin_popcount(want));
}

static void the_lowest_of_equals(void **state)
{
	(void)state;
	prefers(0xff, 0, 1, 0x01);
	prefers(0xff, 0, 2, 0x03);
	prefers(0xf0, 0, 2, 0x30);
}

static void those_that_are_close_to_each_other(void **state)
{
	(void)state;
	prefers(0x35, 0, 2, 0x30); /* one switch before one node */
	prefers(0x15, 0, 2, 0x05); /* one node before the other */
	prefers(0xfe, 0, 4, 0xf0);
}

static void what_is_set_aside_is_kept(void **state)
{
	(void)state;
	prefers(0xff, 0x80, 2, 0xc0);
	prefers(0xff, 0x81, 2, 0x81);
}

static void fewer_than_asked_for_are_all(void **state)
{
	(void)state;
	prefers(0x11, 0, 4, 0x11);
	prefers(0, 0, 2, 0);
}

static void a_vendors_resource_lists_its_gpus_only(void **state)
{
	_cleanup_lab_ struct lab lab = lab_new(MACHINE), nothing = lab_new("pf:1");

	(void)state;
	assert_string_equal(sim_vendor_resource(lab.node->inv), "nvidia.com/gpu");
	assert_string_equal(sim_vendor_resource(nothing.node->inv), "gpu");
	assert_int_equal(
		sim_vendor_new(lab.node->inv, lab.node->topo, "amd.com/gpu", lab.arena)->list.n, 0);
	assert_int_equal(
		sim_vendor_new(lab.node->inv, lab.node->topo, "some/gpu", lab.arena)->list.n, 8);
}

static void gpus_tell_their_numa_node(void **state)
{
	_cleanup_lab_ struct lab lab = lab_new(MACHINE),
				 nowhere = lab_new("numa:0 root:1 gpu:1 pf:1 vf:1");
	const struct vendor *v =
		sim_vendor_new(lab.node->inv, lab.node->topo, "nvidia.com/gpu", lab.arena);

	(void)state;
	assert_int_equal(v->list.v[7].n_nodes, 1);
	assert_int_equal(v->list.v[7].nodes[0], 1);
	v = sim_vendor_new(nowhere.node->inv, nowhere.node->topo, "nvidia.com/gpu", nowhere.arena);
	assert_int_equal(v->list.v[0].n_nodes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_of_equals),
		cmocka_unit_test(those_that_are_close_to_each_other),
		cmocka_unit_test(what_is_set_aside_is_kept),
		cmocka_unit_test(fewer_than_asked_for_are_all),
		cmocka_unit_test(a_vendors_resource_lists_its_gpus_only),
		cmocka_unit_test(gpus_tell_their_numa_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
