/* Which VFs a container gets: GPUs, pools, slots. */
#include "unit/latebind/binding.h"

#include "pods/pods-internal.h"

/* --- which VFs --- */

static void the_vfs_are_those_beside_the_gpus(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(2, 3), slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	assert_int_equal(got.n, 2);
	assert_string_equal(got.slot[0], "rdma_vf-n0-0");
	assert_string_equal(got.resource[0], "rdma/vf");
	assert_int_equal(count_of_pf(1), 2);
}

static void a_container_is_bound_whole_whichever_slot_asks(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 3), slots(0, 0, 3)));
	bind_slots(slots(0, 2, 2));
	assert_int_equal(got.n, 4);
	assert_int_equal(count_of_pf(0), 2);
	assert_int_equal(count_of_pf(1), 2);
}

static void slots_of_the_wrong_node_give_way_to_the_gpus(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 7), slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	assert_int_equal(count_of_pf(3), 2);
}

static void without_gpus_the_node_of_the_slots_counts(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(1, 0, 3)));
	bind_slots(slots(1, 0, 3));
	assert_int_equal(count_of_pf(2) + count_of_pf(3), 4);
}

static void a_node_that_has_too_few_left_borrows_from_the_other(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(1, 0, 7)));
	bind_slots(slots(1, 0, 7));
	pod("q", HOLDS("rdma/vf=%s", slots(1, 8, 8)));
	bind_slots(slots(1, 8, 8));
	assert_int_equal(count_of_pf(0) + count_of_pf(1), 1);
}

static void a_sidecar_without_gpus_serves_those_of_its_pod(void **state)
{
	(void)state;
	pod_with("p", HOLDS(GPU "=%s", gpus(4, 5)), HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(count_of_pf(2), 1);
}

static void replicas_and_indexes_name_gpus_too(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s::3 rdma/vf=%s", gpus(6, 6), slots(1, 0, 0)));
	bind_slots(slots(1, 0, 0));
	assert_int_equal(count_of_pf(3), 1);
	pod("q", HOLDS(GPU "=2 rdma/vf=%s", slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(count_of_pf(1), 1);
}

static const struct ledger_decision *last_decision(void)
{
	const struct ledger *l = ledger_now(tracker_ledger(tracker));

	return ledger_decision_at(l, ledger_decisions(l) - 1);
}

static void parts_of_gpus_are_not_taken_for_none(void **state)
{
	(void)state;
	pod("p", HOLDS("nvidia.com/mig-1g.5gb=MIG-7 rdma/vf=%s", slots(1, 0, 0)));
	bind_slots(slots(1, 0, 0));
	assert_int_equal(last_decision()->known, LEDGER_GPUS_UNKNOWN);
	assert_string_equal(last_decision()->source,
			    "MIG-7 of nvidia.com/mig-1g.5gb does not name a GPU of this node");
	pod("q", HOLDS("nvidia.com/hostdev=x rdma/vf=%s", slots(1, 1, 1)));
	bind_slots(slots(1, 1, 1));
	assert_int_equal(last_decision()->known, LEDGER_GPUS_KNOWN);
	assert_string_equal(last_decision()->source, "the container has no GPUs");
	pod("r", HOLDS(GPU "=%s,GPU-unheard-of rdma/vf=%s", gpus(6, 6), slots(1, 2, 2)));
	bind_slots(slots(1, 2, 2));
	assert_int_equal(count_of_pf(3), 1);
	assert_int_equal(last_decision()->known, LEDGER_GPUS_KNOWN);
	assert_non_null(strstr(last_decision()->source, "GPU-unheard-of"));
}

static void gpus_of_dra_drivers_count(void **state)
{
	struct dynamic gpu = { "gpu.nvidia.com", "node", NULL, { NULL, 0 }, "c" };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	gpu.device = arena_printf(arena, "gpu-%s", machine.node->inv->gpu[7].uuid + strlen("GPU-"));
	pods[0].containers[0].dynamic = &gpu;
	pods[0].containers[0].n_dynamic = 1;
	bind_slots(slots(0, 0, 0));
	assert_int_equal(count_of_pf(3), 1);
}

/* One of two is not known: half of the VFs are for the other, and the record says so. */
static void gpus_that_are_known_in_part_get_their_part(void **state)
{
	const struct ledger_decision *d;

	(void)state;
	pod("p", HOLDS(GPU "=%s,MIG-8a7c rdma/vf=%s", gpus(0, 0), slots(0, 0, 3)));
	bind_slots(slots(0, 0, 3));
	assert_int_equal(got.n, 4);
	assert_int_equal(count_of_pf(0), 2);
	d = ledger_decision_at(tracker_ledger(tracker), 0);
	assert_string_equal(
		d->source,
		"2 GPUs or parts of them, of which 1 are not known: MIG-8a7c of nvidia.com/gpu does not name a GPU of this node");
}

static void containers_get_different_vfs(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 3)));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(1, 1), slots(0, 4, 5)));
	bind_slots(slots(0, 0, 3));
	assert_int_equal(count_of_pf(0), 4);
	bind_slots(slots(0, 4, 5));
	assert_int_equal(count_of_pf(1), 2);
}

static void a_vf_in_use_is_passed_over(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	open_device = machine.node->inv->rdma[machine.pool->devs[0].rdma].name;
	bind_slots(slots(0, 0, 0));
	assert_int_equal(count_of_pf(0), 1);
	assert_string_equal(got.vf[0], machine.pool->devs[1].id);
}

static void several_pools_of_a_container_see_each_other(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/a=rdma_a-n0-0 rdma/b=rdma_b-n0-0", gpus(0, 3)));
	bind_slots("rdma_b-n0-0");
	assert_int_equal(got.n, 2);
	assert_string_equal(got.resource[0], "rdma/a");
	assert_string_equal(got.resource[1], "rdma/b");
	assert_int_equal(count_of_pf(0), 1);
	assert_int_equal(count_of_pf(1), 1);
	bind_slots("rdma_a-n0-0");
	assert_int_equal(got.n, 2);
	assert_non_null(strstr(spec("rdma_a-n0-0"), "PCIDEVICE_RDMA_B="));
	assert_non_null(strstr(spec("rdma_b-n0-0"), "PCIDEVICE_RDMA_A="));
}

static void vfs_of_an_early_pool_are_told_to_nccl_too(void **state)
{
	const char *early = "0000:05:00.3"; /* index 2 */
	const struct hw_rdma *r = machine.node->inv->rdma;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/a=rdma_a-n0-0 rdma/e=%s", gpus(0, 0), early));
	bind_slots("rdma_a-n0-0");
	assert_int_equal(got.n, 1);
	assert_non_null(strstr(spec("rdma_a-n0-0"),
			       HOLDS("\"NCCL_IB_HCA==%s:1,%s:1\"", r[dev_of(got.vf[0])->rdma].name,
				     r[dev_of(early)->rdma].name)));
	assert_null(strstr(spec("rdma_a-n0-0"), "PCIDEVICE_RDMA_E"));
}

/* --- GPUs of DRA drivers --- */

static void names_of_dra_devices_are_understood(void **state)
{
	struct hw_gpu gpu[] = {
		{ .pci = 1, .vendor = "NVIDIA", .uuid = "GPU-aa-bb", .minor = 3, .card = 9 },
		{ .pci = 2, .vendor = "AMD", .minor = -1, .card = 4 },
		{ .pci = 3, .vendor = "Intel", .minor = -1, .card = 5 },
	};
	struct hw_pci pci[4] = { 0 };
	struct hw_inventory inv = { .pci = pci, .n_pci = 4, .gpu = gpu, .n_gpu = 3 };
	const struct node shown = { .inv = &inv };
	_cleanup_arena_ struct arena *own = arena_new(0);
	static const struct {
		const char *driver, *device, *cdi;
		int gpu;
	} rows[] = {
		{ "gpu.nvidia.com", "gpu-3", NULL, 1 },
		{ "gpu.nvidia.com", "gpu-3-mig-9-0-4", NULL, 1 },
		{ "gpu.nvidia.com", "gpu-4", NULL, -1 },
		{ "gpu.nvidia.com", "gpu-aa-bb", NULL, 1 },
		{ "gpu.nvidia.com", "GPU-aa-bb", NULL, 1 },
		{ "gpu.nvidia.com", "gpu-0000-01-00-0", NULL, 1 },
		{ "gpu.nvidia.com", "x", "k8s.gpu.nvidia.com/device=gpu-3", 1 },
		{ "gpu.nvidia.com", "x", "k8s.gpu.nvidia.com/claim=0123-gpu-3", 1 },
		{ "gpu.nvidia.com", "x", "nvidia.com/gpu=0", 1 },
		{ "gpu.nvidia.com", "x", "nvidia.com/gpu=GPU-aa-bb", 1 },
		{ "gpu.nvidia.com", "x", "nvidia.com/gpu=all", -1 },
		{ "gpu.nvidia.com", "x", "no equals sign", -1 },
		{ "gpu.amd.com", "gpu-4-132", NULL, 2 },
		{ "gpu.amd.com", "gpu-3-131", NULL, -1 },
		{ "gpu.intel.com", "0000-03-00-0-0x56c0", NULL, 3 },
		{ "gpu.intel.com", "0000-00-00-0-0x56c0", NULL, -1 },
		{ "nic.example.com", "mlx5-0", NULL, -1 },
		{ "", "", "", -1 },
	};

	(void)state;
	for (uint8_t i = 0; i < 4; i++)
		pci[i].bdf.bus = i;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *cdi = rows[i].cdi;
		struct dynamic d = {
			rows[i].driver, "pool", rows[i].device, { &cdi, cdi ? 1 : 0 }, "c"
		};

		const struct pod_container c = { .dynamic = &d, .n_dynamic = 1 };
		struct pods_gpus found = pods_gpus(&shown, &c, "", own);
		int pci_of = found.n ? found.v[0] : -1;

		if (pci_of != rows[i].gpu)
			fail_msg("%s %s %s is GPU %d", rows[i].driver, rows[i].device,
				 cdi ? cdi : "-", pci_of);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_vfs_are_those_beside_the_gpus),
		T(a_container_is_bound_whole_whichever_slot_asks),
		T(slots_of_the_wrong_node_give_way_to_the_gpus),
		T(without_gpus_the_node_of_the_slots_counts),
		T(a_node_that_has_too_few_left_borrows_from_the_other),
		T(a_sidecar_without_gpus_serves_those_of_its_pod),
		T(replicas_and_indexes_name_gpus_too),
		T(parts_of_gpus_are_not_taken_for_none),
		T(gpus_of_dra_drivers_count),
		T(gpus_that_are_known_in_part_get_their_part),
		T(containers_get_different_vfs),
		T(a_vf_in_use_is_passed_over),
		cmocka_unit_test_setup_teardown(several_pools_of_a_container_see_each_other,
						set_up_two_pools, tear_down),
		cmocka_unit_test_setup_teardown(vfs_of_an_early_pool_are_told_to_nccl_too,
						set_up_mixed_pools, tear_down),
		cmocka_unit_test(names_of_dra_devices_are_understood),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
