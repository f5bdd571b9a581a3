/* Profiles: hand-made grants of one or two pools → the variables of each library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render-internal.h"

#define VFS  4
#define GPUS 4

/* GPUs 0000:01:00.0 … 0000:04:00.0; VFs 0000:11:00.2 … 0000:14:00.2, two to each of two pools. */
struct bench {
	struct arena *arena;
	struct hw_pci pci[GPUS + VFS];
	struct hw_port ports[VFS];
	struct hw_rdma rdma[VFS];
	struct hw_inventory inv;
	struct pool_dev devs[VFS];
	struct pool_config cfg[2];
	struct pool pools[2];
	struct node node;
	struct grant_dev grant_devs[VFS];
	struct choose_pair pairs[2][GPUS];
	struct grant grants[2];
};

static void name_vfs(struct bench *b, const char *const names[VFS])
{
	for (int i = 0; i < VFS; i++)
		b->rdma[i].name = b->grant_devs[i].rdma = names[i];
}

static void set_vf(struct bench *b, int i)
{
	static const char *const ids[VFS] = { "0000:11:00.2", "0000:12:00.2", "0000:13:00.2",
					      "0000:14:00.2" };

	b->pci[i] = (struct hw_pci) { .bdf = { 0, (uint8_t)(1 + i), 0, 0 } };
	b->pci[GPUS + i] = (struct hw_pci) { .bdf = { 0, (uint8_t)(0x11 + i), 0, 2 } };
	b->ports[i] = (struct hw_port) { 1, "ACTIVE", "LinkUp", HW_LINK_ETHERNET, 200000 };
	b->rdma[i] = (struct hw_rdma) { .pci = GPUS + i, .ports = &b->ports[i], .n_ports = 1 };
	b->devs[i] =
		(struct pool_dev) { .id = ids[i], .pci = GPUS + i, .rdma = i, .healthy = true };
	b->grant_devs[i] = (struct grant_dev) { .dev = &b->devs[i] };
}

static int setup(void **state)
{
	static const char *const names[VFS] = { "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3" };
	struct bench *b = xcalloc(1, sizeof(*b));

	b->arena = arena_new(4096);
	for (int i = 0; i < VFS; i++)
		set_vf(b, i);
	name_vfs(b, names);
	b->inv = (struct hw_inventory) {
		.pci = b->pci, .n_pci = ARRAY_LEN(b->pci), .rdma = b->rdma, .n_rdma = VFS
	};
	b->node = (struct node) { .inv = &b->inv, .pools = b->pools, .n_pools = 2 };
	for (int i = 0; i < 2; i++) {
		b->cfg[i] = (struct pool_config) { .resource = i ? "rdma/b" : "rdma/a",
						   .is_rdma = true,
						   .pkey = -1 };
		b->pools[i] = (struct pool) { &b->cfg[i], &b->devs[2 * i], 2 };
		b->grants[i] = (struct grant) { .node = &b->node,
						.pool = &b->pools[i],
						.devs = &b->grant_devs[2 * i],
						.n_devs = 2,
						.pairs = b->pairs[i] };
	}
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	arena_free(b->arena);
	freep(state);
	return 0;
}

static void pair(struct bench *b, int grant, int gpu, int dev, enum topo_class class)
{
	b->pairs[grant][b->grants[grant].n_pairs++] =
		(struct choose_pair) { gpu, dev, { class, -1, false } };
}

static struct edits render(struct bench *b, unsigned profiles, size_t n_grants, int gid_index)
{
	struct edits e = { .envs = arena_array(b->arena, PROFILE_ENV_MAX, sizeof(struct kv)) };

	b->cfg[0].profiles = profiles;
	b->cfg[1].profiles = profiles;
	render_profile_env(b->grants, n_grants, gid_index, b->arena, &e);
	assert_true(e.n_envs <= PROFILE_ENV_MAX);
	return e;
}

static const char *env(const struct edits *e, const char *key)
{
	const char *value = NULL;

	for (size_t i = 0; i < e->n_envs; i++) {
		if (strcmp(e->envs[i].key, key) != 0)
			continue;
		assert_null(value); /* once */
		value = e->envs[i].value;
	}
	return value;
}

static void nccl_rccl_and_none_need_nothing_from_here(void **state)
{
	assert_int_equal(render(*state, PROFILE_NCCL | PROFILE_RCCL, 2, 3).n_envs, 0);
	assert_int_equal(render(*state, 0, 2, 3).n_envs, 0);
}

static void ucx_gets_every_vf_with_its_port_and_the_interfaces_of_the_operator(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->ports[1].number = 2;
	e = render(b, PROFILE_UCX, 1, -1);
	assert_string_equal(env(&e, "UCX_NET_DEVICES"), "mlx5_0:1,mlx5_1:2");
	assert_int_equal(e.n_envs, 1);
	b->cfg[0].ucx_devices = "eth0";
	b->cfg[1].ucx_devices = "eth0";
	e = render(b, PROFILE_UCX, 2, -1);
	assert_string_equal(env(&e, "UCX_NET_DEVICES"), "mlx5_0:1,mlx5_1:2,mlx5_2:1,mlx5_3:1,eth0");
	e = render(b, PROFILE_UCX | PROFILE_NIXL, 2, -1);
	assert_string_equal(env(&e, "UCX_NET_DEVICES"), "mlx5_0:1,mlx5_1:2,mlx5_2:1,mlx5_3:1");
	b->cfg[1].ucx_devices = "net1,eth1";
	e = render(b, PROFILE_UCX, 2, -1);
	assert_string_equal(env(&e, "UCX_NET_DEVICES"),
			    "mlx5_0:1,mlx5_1:2,mlx5_2:1,mlx5_3:1,eth0,net1,eth1");
}

static void pools_in_any_order_give_the_same(void **state)
{
	struct bench *b = *state;
	struct edits e = render(b, PROFILE_UCX, 2, -1), f;
	struct grant first = b->grants[0];

	b->grants[0] = b->grants[1];
	b->grants[1] = first;
	f = render(b, PROFILE_UCX, 2, -1);
	assert_string_equal(env(&e, "UCX_NET_DEVICES"), "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1");
	assert_string_equal(env(&e, "UCX_NET_DEVICES"), env(&f, "UCX_NET_DEVICES"));
}

static void a_variable_names_the_vfs_of_its_pools_only(void **state)
{
	struct bench *b = *state;
	struct edits e = { .envs = arena_array(b->arena, PROFILE_ENV_MAX, sizeof(struct kv)) };

	b->cfg[0].profiles = PROFILE_NCCL;
	b->cfg[0].ucx_devices = "eth0";
	b->cfg[1].profiles = PROFILE_UCX | PROFILE_MSCCLPP;
	b->cfg[1].ucx_devices = "eth0";
	render_profile_env(b->grants, 2, -1, b->arena, &e);
	assert_string_equal(env(&e, "UCX_NET_DEVICES"), "mlx5_2:1,mlx5_3:1,eth0");
	assert_string_equal(env(&e, "MSCCLPP_HCA_DEVICES"), "mlx5_2,mlx5_3");
	assert_int_equal(e.n_envs, 2);
}

static void a_pool_without_rdma_and_vfs_without_rdma_device_are_not_named(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].is_rdma = false;
	b->grant_devs[3].rdma = NULL;
	e = render(b, PROFILE_UCX, 2, -1);
	assert_string_equal(env(&e, "UCX_NET_DEVICES"), "mlx5_2:1");
	b->grant_devs[2].rdma = NULL;
	assert_int_equal(
		render(b, PROFILE_UCX | PROFILE_ONECCL | PROFILE_MSCCLPP | PROFILE_NVSHMEM, 2, 3)
			.n_envs,
		0);
}

static void ucx_is_told_the_partition_by_its_value_without_the_membership_bit(void **state)
{
	struct bench *b = *state;
	struct edits e;

	for (int i = 0; i < VFS; i++)
		b->ports[i].link = HW_LINK_IB;
	b->cfg[0].pkey = b->cfg[1].pkey = 0x8001;
	e = render(b, PROFILE_UCX, 2, -1);
	assert_string_equal(env(&e, "UCX_IB_PKEY"), "0x0001");
}

static void nccl_is_told_the_partition_by_its_value(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].pkey = b->cfg[1].pkey = 0x8001;
	assert_int_equal(render(b, PROFILE_NCCL, 2, -1).n_envs, 0); /* Ethernet */
	for (int i = 0; i < VFS; i++)
		b->ports[i].link = HW_LINK_IB;
	e = render(b, PROFILE_RCCL, 2, -1);
	assert_string_equal(env(&e, "NCCL_IB_PKEY_VALUE"), "0x8001");
	assert_int_equal(e.n_envs, 1);
	b->cfg[1].pkey = 0x8002;
	assert_int_equal(render(b, PROFILE_NCCL, 2, -1).n_envs, 0);
}

static void ucx_is_told_no_partition_on_ethernet_or_when_pools_differ(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].pkey = b->cfg[1].pkey = 0x8001;
	e = render(b, PROFILE_UCX, 2, -1);
	assert_null(env(&e, "UCX_IB_PKEY"));
	for (int i = 0; i < VFS; i++)
		b->ports[i].link = HW_LINK_IB;
	b->cfg[1].pkey = 0x8002;
	e = render(b, PROFILE_UCX, 2, -1);
	assert_null(env(&e, "UCX_IB_PKEY"));
	b->cfg[1].pkey = -1;
	e = render(b, PROFILE_UCX, 2, -1);
	assert_null(env(&e, "UCX_IB_PKEY"));
}

static void nvshmem_needs_help_only_when_names_are_not_its_default(void **state)
{
	static const char *const roce[VFS] = { "rocep59s0v0", "rocep60s0v1", "rocep175s0v0",
					       "rocep176s0v3" };
	static const char *const mixed[VFS] = { "mlx5_0", "mlx5_1", "bnxt_re0", "bnxt_re1" };
	static const char *const digits[VFS] = { "0a", "0b", "0c", "0d" };
	struct bench *b = *state;
	struct edits e;

	assert_int_equal(render(b, PROFILE_NVSHMEM, 2, 3).n_envs, 0);
	name_vfs(b, roce);
	e = render(b, PROFILE_NVSHMEM, 2, 3);
	assert_string_equal(env(&e, "NVSHMEM_HCA_PREFIX"), "rocep");
	assert_int_equal(e.n_envs, 1);
	name_vfs(b, mixed);
	assert_int_equal(render(b, PROFILE_NVSHMEM, 2, 3).n_envs, 0);
	name_vfs(b, digits);
	assert_int_equal(render(b, PROFILE_NVSHMEM, 2, 3).n_envs, 0);
}

static void nvshmem_is_told_what_the_operator_said_of_gids(void **state)
{
	struct bench *b = *state;
	struct edits e;

	for (int i = 0; i < 2; i++) {
		b->cfg[i].gid_family = GID_FAMILY_IPV6;
		b->cfg[i].gid_range = "fd00::/8";
		b->cfg[i].roce_version = 1;
	}
	e = render(b, PROFILE_NVSHMEM, 2, -1);
	assert_string_equal(env(&e, "NVSHMEM_IB_ADDR_FAMILY"), "AF_INET6");
	assert_string_equal(env(&e, "NVSHMEM_IB_ADDR_RANGE"), "fd00::/8");
	assert_string_equal(env(&e, "NVSHMEM_IB_ROCE_VERSION_NUM"), "1");
	b->cfg[0].gid_family = b->cfg[1].gid_family = GID_FAMILY_IPV4;
	b->cfg[0].gid_range = b->cfg[1].gid_range = "10.0.0.0/8";
	b->cfg[0].roce_version = b->cfg[1].roce_version = 2;
	e = render(b, PROFILE_NVSHMEM, 2, -1);
	assert_string_equal(env(&e, "NVSHMEM_IB_ADDR_RANGE"), "10.0.0.0/8");
	assert_int_equal(e.n_envs, 1);
}

static void nvshmem_is_not_told_it_when_pools_differ_or_on_infiniband(void **state)
{
	struct bench *b = *state;

	b->cfg[0].gid_range = "10.0.0.0/8";
	assert_int_equal(render(b, PROFILE_NVSHMEM, 2, -1).n_envs, 0);
	b->cfg[1].gid_range = "10.0.0.0/8";
	assert_int_equal(render(b, PROFILE_NVSHMEM, 2, -1).n_envs, 1);
	b->cfg[1].gid_family = GID_FAMILY_IPV4;
	assert_int_equal(render(b, PROFILE_NVSHMEM, 2, -1).n_envs, 0);
	b->cfg[1].gid_family = GID_FAMILY_ANY;
	b->ports[3].link = HW_LINK_IB;
	assert_int_equal(render(b, PROFILE_NVSHMEM, 2, -1).n_envs, 0);
}

static void mscclpp_gets_the_vf_of_each_gpu_in_gpu_order(void **state)
{
	struct bench *b = *state;
	struct edits e;

	pair(b, 0, 0, 1, TOPO_PIX);
	pair(b, 0, 1, 0, TOPO_PIX);
	e = render(b, PROFILE_MSCCLPP, 1, -1);
	assert_string_equal(env(&e, "MSCCLPP_HCA_DEVICES"), "mlx5_1,mlx5_0");
	assert_null(env(&e, "MSCCLPP_IB_GID_INDEX"));
}

/* Every pool of a container pairs its VFs with all the GPUs: only one of them is a GPU's nearest.
 */
static void mscclpp_takes_the_nearest_vf_of_all_pools(void **state)
{
	struct bench *b = *state;
	struct edits e;

	pair(b, 0, 0, 0, TOPO_SYS);
	pair(b, 0, 1, 1, TOPO_SYS);
	pair(b, 0, 2, 0, TOPO_PXB);
	pair(b, 0, 3, 1, TOPO_PIX);
	pair(b, 1, 0, 1, TOPO_PIX);
	pair(b, 1, 1, 0, TOPO_PIX);
	pair(b, 1, 2, 0, TOPO_SYS);
	pair(b, 1, 3, 1, TOPO_SYS);
	e = render(b, PROFILE_MSCCLPP, 2, -1);
	assert_string_equal(env(&e, "MSCCLPP_HCA_DEVICES"), "mlx5_3,mlx5_2,mlx5_0,mlx5_1");
}

static void mscclpp_shares_equally_near_vfs_out(void **state)
{
	struct bench *b = *state;
	struct edits e;

	for (int gpu = 0; gpu < GPUS; gpu++) {
		pair(b, 0, gpu, 0, TOPO_PIX);
		pair(b, 1, gpu, 0, TOPO_PIX);
	}
	e = render(b, PROFILE_MSCCLPP, 2, -1);
	assert_string_equal(env(&e, "MSCCLPP_HCA_DEVICES"), "mlx5_0,mlx5_2,mlx5_0,mlx5_2");
}

static void mscclpp_gets_one_vf_a_gpu_and_all_when_gpus_are_unknown(void **state)
{
	struct bench *b = *state;
	struct edits e = render(b, PROFILE_MSCCLPP, 2, -1);

	assert_string_equal(env(&e, "MSCCLPP_HCA_DEVICES"), "mlx5_0,mlx5_1,mlx5_2,mlx5_3");
	pair(b, 0, 2, 0, TOPO_PHB);
	pair(b, 0, 2, 1, TOPO_PIX);
	e = render(b, PROFILE_MSCCLPP, 1, -1);
	assert_string_equal(env(&e, "MSCCLPP_HCA_DEVICES"), "mlx5_1");
}

static void index_zero_libraries_get_the_index_that_is_known_to_be_right(void **state)
{
	struct edits e = render(*state, PROFILE_MSCCLPP | PROFILE_OFI | PROFILE_UCX, 2, 5);

	assert_string_equal(env(&e, "MSCCLPP_IB_GID_INDEX"), "5");
	assert_string_equal(env(&e, "FI_VERBS_GID_IDX"), "5");
	e = render(*state, PROFILE_OFI, 2, -1);
	assert_null(env(&e, "FI_VERBS_GID_IDX"));
}

static void libfabric_gets_one_name_or_what_all_names_begin_with(void **state)
{
	static const char *const mixed[VFS] = { "mlx5_0", "rocep1s0", "bnxt_re0", "bnxt_re1" };
	struct bench *b = *state;
	struct edits e = render(b, PROFILE_OFI, 2, -1);

	assert_string_equal(env(&e, "FI_VERBS_DEVICE_NAME"), "mlx5_");
	b->grants[0].n_devs = 1;
	e = render(b, PROFILE_OFI, 1, -1);
	assert_string_equal(env(&e, "FI_VERBS_DEVICE_NAME"), "mlx5_0");
	assert_null(env(&e, "CCL_MNIC"));
	b->grants[0].n_devs = 2;
	name_vfs(b, mixed);
	e = render(b, PROFILE_OFI, 2, -1);
	assert_null(env(&e, "FI_VERBS_DEVICE_NAME"));
}

static void oneccl_gets_the_names_beside_what_libfabric_gets(void **state)
{
	struct edits e = render(*state, PROFILE_ONECCL | PROFILE_OFI, 1, -1);

	assert_string_equal(env(&e, "FI_VERBS_DEVICE_NAME"), "mlx5_");
	assert_string_equal(env(&e, "CCL_MNIC"), "local");
	assert_string_equal(env(&e, "CCL_MNIC_NAME"), "mlx5_0,mlx5_1");
	assert_int_equal(e.n_envs, 3);
}

static void all_profiles_together_have_room(void **state)
{
	static const char *const roce[VFS] = { "rocep1", "rocep2", "rocep3", "rocep4" };
	struct bench *b = *state;
	struct edits e;

	name_vfs(b, roce);
	for (int i = 0; i < VFS; i++)
		b->ports[i].link = HW_LINK_IB;
	b->cfg[0].pkey = b->cfg[1].pkey = 0x7001;
	e = render(b, ~0u, 2, 3);
	assert_int_equal(e.n_envs, 10);
	assert_string_equal(env(&e, "UCX_IB_PKEY"), "0x7001");
}

static void rdma_cm_goes_to_pools_that_name_no_profile_or_one_that_connects_by_it(void **state)
{
	static const struct {
		unsigned profiles;
		bool named, wants;
	} cases[] = {
		{ PROFILE_NCCL, false, true },
		{ PROFILE_NCCL, true, false },
		{ 0, true, true },
		{ PROFILE_RCCL | PROFILE_NVSHMEM, true, false },
		{ PROFILE_NCCL | PROFILE_UCX, true, true },
		{ PROFILE_OFI, true, true },
		{ PROFILE_ONECCL, true, true },
		{ PROFILE_MSCCLPP, true, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pool_config cfg = { .profiles = cases[i].profiles,
					   .profiles_named = cases[i].named };

		assert_int_equal(render_wants_rdma_cm(&cfg), cases[i].wants);
	}
}

static bool has_node(const struct edits *e, const char *path)
{
	for (size_t i = 0; i < e->n_devs; i++) {
		if (!strcmp(e->devs[i].host, path))
			return true;
	}
	return false;
}

static void rdma_cm_is_told_of_where_it_is_given(void **state)
{
	struct bench *b = *state;

	b->inv.has_rdma_cm = true;
	b->cfg[0].prefix = "rdma";
	b->cfg[0].name = "a";
	b->cfg[0].profiles = PROFILE_NCCL;
	b->cfg[0].roce_version = 2;
	for (int i = 0; i < VFS; i++)
		b->grant_devs[i].uverbs = "uverbs1";
	for (int named = 0; named < 2; named++) {
		struct err err = { 0 };
		struct edits e;

		b->cfg[0].profiles_named = named;
		assert_int_equal(render_grant(&b->grants[0], b->arena, &e, &err), 0);
		assert_int_equal(has_node(&e, "/dev/infiniband/rdma_cm"), !named);
		assert_int_equal(strstr(env(&e, "PCIDEVICE_RDMA_A_INFO"), "rdma_cm") != NULL,
				 !named);
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nccl_rccl_and_none_need_nothing_from_here),
		TEST(ucx_gets_every_vf_with_its_port_and_the_interfaces_of_the_operator),
		TEST(pools_in_any_order_give_the_same),
		TEST(a_variable_names_the_vfs_of_its_pools_only),
		TEST(a_pool_without_rdma_and_vfs_without_rdma_device_are_not_named),
		TEST(ucx_is_told_the_partition_by_its_value_without_the_membership_bit),
		TEST(nccl_is_told_the_partition_by_its_value),
		TEST(ucx_is_told_no_partition_on_ethernet_or_when_pools_differ),
		TEST(nvshmem_needs_help_only_when_names_are_not_its_default),
		TEST(nvshmem_is_told_what_the_operator_said_of_gids),
		TEST(nvshmem_is_not_told_it_when_pools_differ_or_on_infiniband),
		TEST(mscclpp_gets_the_vf_of_each_gpu_in_gpu_order),
		TEST(mscclpp_takes_the_nearest_vf_of_all_pools),
		TEST(mscclpp_shares_equally_near_vfs_out),
		TEST(mscclpp_gets_one_vf_a_gpu_and_all_when_gpus_are_unknown),
		TEST(index_zero_libraries_get_the_index_that_is_known_to_be_right),
		TEST(libfabric_gets_one_name_or_what_all_names_begin_with),
		TEST(oneccl_gets_the_names_beside_what_libfabric_gets),
		TEST(all_profiles_together_have_room),
		TEST(rdma_cm_is_told_of_where_it_is_given),
		cmocka_unit_test(
			rdma_cm_goes_to_pools_that_name_no_profile_or_one_that_connects_by_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
