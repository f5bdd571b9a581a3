/* render: a grant made by hand → exact environment, device nodes and device-info file. */
#include <errno.h>
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
#include "hw/vfstate.h"
#include "pool/node.h"
#include "topo/topo.h"
#include "render/render.h"

/* A GPU, a PF and two VFs of it, everything changeable by a test. */
struct bench {
	struct arena *arena;
	struct hw_pci pci[4];
	struct hw_port ports[2];
	struct hw_rdma rdma[2];
	struct hw_inventory inv;
	struct topo *topo;
	struct extra_info extra[3];
	struct pool_config cfg;
	struct pool_dev devs[2];
	struct pool pool;
	struct node node;
	struct grant_dev grant_devs[2];
	struct choose_pair pairs[2];
	struct grant grant;
};

static int setup(void **state)
{
	struct bench *b = xcalloc(1, sizeof(*b));

	b->arena = arena_new(4096);
	for (int i = 0; i < 4; i++)
		b->pci[i] = (struct hw_pci) { .bdf = { 0, 0x1a, 0, (uint8_t)i },
					      .physfn = i >= 2 ? 1 : -1,
					      .parent = -1,
					      .numa = -1 };
	for (int i = 0; i < 2; i++) {
		b->ports[i] = (struct hw_port) { 1, "ACTIVE", "LinkUp", HW_LINK_ETHERNET, 200000 };
		b->rdma[i] = (struct hw_rdma) { .name = i ? "mlx5_9" : "mlx5_4",
						.pci = 2 + i,
						.uverbs = i ? "uverbs9" : "uverbs4",
						.ports = &b->ports[i],
						.n_ports = 1 };
		b->devs[i] = (struct pool_dev) { .id = i ? "0000:1a:00.3" : "0000:1a:00.2",
						 .pci = 2 + i,
						 .rdma = i,
						 .numa = i,
						 .healthy = true };
		b->grant_devs[i] = (struct grant_dev) { .dev = &b->devs[i],
							.rdma = b->rdma[i].name,
							.uverbs = b->rdma[i].uverbs };
		b->pairs[i] = (struct choose_pair) { 0, i, { TOPO_PIX, 1, false } };
	}
	b->inv = (struct hw_inventory) {
		.pci = b->pci, .n_pci = 4, .rdma = b->rdma, .n_rdma = 2, .has_rdma_cm = true
	};
	b->cfg = (struct pool_config) { .resource = "my.org/rail-0",
					.prefix = "my.org",
					.name = "rail-0",
					.is_rdma = true,
					.profiles = PROFILE_NCCL,
					.roce_version = 2,
					.pkey = -1,
					.extra = b->extra };
	b->pool = (struct pool) { &b->cfg, b->devs, 2 };
	b->topo = topo_new(&b->inv, NULL);
	b->node =
		(struct node) { .inv = &b->inv, .topo = b->topo, .pools = &b->pool, .n_pools = 1 };
	b->grant = (struct grant) {
		.node = &b->node, .pool = &b->pool, .devs = b->grant_devs, .n_devs = 2
	};
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	topo_free(b->topo);
	arena_free(b->arena);
	freep(state);
	return 0;
}

static struct edits rendered(struct bench *b)
{
	struct err err = { 0 };
	struct edits e;

	assert_int_equal(render_grant(&b->grant, b->arena, &e, &err), 0);
	return e;
}

static const char *env(const struct edits *e, const char *key)
{
	for (size_t i = 0; i < e->n_envs; i++) {
		if (!strcmp(e->envs[i].key, key))
			return e->envs[i].value;
	}
	return NULL;
}

static void sets_the_peers_variables_bit_for_bit(void **state)
{
	struct edits e = rendered(*state);

	assert_string_equal(env(&e, "PCIDEVICE_MY_ORG_RAIL-0"), "0000:1a:00.2,0000:1a:00.3");
	assert_string_equal(
		env(&e, "PCIDEVICE_MY_ORG_RAIL-0_INFO"),
		"{\"0000:1a:00.2\":{\"generic\":{\"deviceID\":\"0000:1a:00.2\"},\"rdma\":{\"rdma_cm\":\"/dev/infiniband/rdma_cm\",\"rdma_dev\":\"mlx5_4\",\"uverbs\":\"/dev/infiniband/uverbs4\"}},\"0000:1a:00.3\":{\"generic\":{\"deviceID\":\"0000:1a:00.3\"},\"rdma\":{\"rdma_cm\":\"/dev/infiniband/rdma_cm\",\"rdma_dev\":\"mlx5_9\",\"uverbs\":\"/dev/infiniband/uverbs9\"}}}");
}

static void additional_info_of_the_device_overrides_the_star(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->extra[0] = (struct extra_info) { "*", "rail", "any" };
	b->extra[1] = (struct extra_info) { "*", "zone", "a" };
	b->extra[2] = (struct extra_info) { "0000:1a:00.2", "rail", "zero" };
	b->cfg.n_extra = 3;
	b->grant.n_devs = 2;
	e = rendered(b);
	assert_non_null(strstr(
		env(&e, "PCIDEVICE_MY_ORG_RAIL-0_INFO"),
		"{\"0000:1a:00.2\":{\"extra\":{\"rail\":\"zero\",\"zone\":\"a\"},\"generic\""));
	assert_non_null(strstr(
		env(&e, "PCIDEVICE_MY_ORG_RAIL-0_INFO"),
		"\"0000:1a:00.3\":{\"extra\":{\"rail\":\"any\",\"zone\":\"a\"},\"generic\""));
}

static void names_hcas_exactly_with_their_port(void **state)
{
	struct bench *b = *state;
	struct edits e = rendered(b);

	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=mlx5_4:1,mlx5_9:1");
	assert_string_equal(env(&e, "RAILMATE_MY_ORG_RAIL_0_HCAS"), "mlx5_4:1,mlx5_9:1");
	assert_string_equal(env(&e, "RAILMATE_MY_ORG_RAIL_0_VFS"), "0000:1a:00.2,0000:1a:00.3");
	assert_string_equal(env(&e, "RAILMATE_MY_ORG_RAIL_0_NUMA"), "0,1");
	assert_null(env(&e, "RAILMATE_MY_ORG_RAIL_0_MAP"));
}

static void names_the_active_port_of_a_dual_port_device(void **state)
{
	static const struct hw_port ports[] = { { 1, "DOWN", "Polling", HW_LINK_ETHERNET, 0 },
						{ 2, "ACTIVE", "LinkUp", HW_LINK_ETHERNET,
						  100000 } };
	struct bench *b = *state;
	struct edits e;

	b->rdma[0].ports = ports;
	b->rdma[0].n_ports = 2;
	e = rendered(b);
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=mlx5_4:2,mlx5_9:1");
}

static void never_writes_an_empty_hca_list(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->grant_devs[0].rdma = b->grant_devs[1].rdma = NULL;
	b->grant_devs[0].uverbs = b->grant_devs[1].uverbs = NULL;
	e = rendered(b);
	assert_null(env(&e, "NCCL_IB_HCA"));
	assert_int_equal(e.n_devs, 0);
}

static void names_at_most_32_hcas(void **state)
{
	struct bench *b = *state;
	struct grant_dev many[40];
	const char *list;
	size_t commas = 0;
	struct edits e;

	for (int i = 0; i < 40; i++)
		many[i] = b->grant_devs[i % 2];
	b->grant.devs = many;
	b->grant.n_devs = 40;
	e = rendered(b);
	list = env(&e, "NCCL_IB_HCA");
	for (const char *p = list; *p; p++)
		commas += *p == ',';
	assert_int_equal(commas, 31);
}

static void maps_gpus_to_vfs_when_they_are_known(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->grant.pairs = b->pairs;
	b->grant.n_pairs = 2;
	e = rendered(b);
	assert_string_equal(
		env(&e, "RAILMATE_MY_ORG_RAIL_0_MAP"),
		"[{\"gpu\":\"0000:1a:00.0\",\"vf\":\"0000:1a:00.2\",\"class\":\"PIX\"},{\"gpu\":\"0000:1a:00.0\",\"vf\":\"0000:1a:00.3\",\"class\":\"PIX\"}]");
}

/* Beside a GPU that is known there are some that are not. */
static void maps_vfs_without_a_gpu_beside_those_with_one(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->grant.pairs = b->pairs;
	b->grant.n_pairs = 1;
	e = rendered(b);
	assert_string_equal(
		env(&e, "RAILMATE_MY_ORG_RAIL_0_MAP"),
		"[{\"gpu\":\"0000:1a:00.0\",\"vf\":\"0000:1a:00.2\",\"class\":\"PIX\"},{\"gpu\":null,\"vf\":\"0000:1a:00.3\"}]");
}

static void environment_is_sorted(void **state)
{
	struct edits e = rendered(*state);

	for (size_t i = 1; i < e.n_envs; i++)
		assert_true(strcmp(e.envs[i - 1].key, e.envs[i].key) < 0);
}

static void gives_verbs_nodes_and_rdma_cm_once(void **state)
{
	struct bench *b = *state;
	struct edits e = rendered(b);

	assert_int_equal(e.n_devs, 3);
	assert_string_equal(e.devs[0].host, "/dev/infiniband/uverbs4");
	assert_string_equal(e.devs[1].container, "/dev/infiniband/uverbs9");
	assert_string_equal(e.devs[2].host, "/dev/infiniband/rdma_cm");
	assert_string_equal(e.devs[2].permissions, "rw");
	b->inv.has_rdma_cm = false;
	e = rendered(b);
	assert_int_equal(e.n_devs, 2);
}

static void gives_no_rdma_to_a_pool_without_is_rdma(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg.is_rdma = false;
	e = rendered(b);
	assert_int_equal(e.n_devs, 0);
	assert_null(env(&e, "NCCL_IB_HCA"));
	assert_null(env(&e, "RAILMATE_MY_ORG_RAIL_0_HCAS"));
	assert_null(strstr(env(&e, "PCIDEVICE_MY_ORG_RAIL-0_INFO"), "rdma_dev"));
}

static void gives_no_rdma_to_a_vf_whose_selector_does_not_say_so(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->devs[0].plain = true;
	e = rendered(b);
	assert_int_equal(e.n_devs, 2);
	assert_string_equal(e.devs[0].host, "/dev/infiniband/uverbs9");
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=mlx5_9:1");
	assert_null(env(&e, "RAILMATE_MY_ORG_RAIL_0_HCAS"));
	assert_null(strstr(env(&e, "PCIDEVICE_MY_ORG_RAIL-0_INFO"), "mlx5_4"));
	assert_non_null(strstr(env(&e, "PCIDEVICE_MY_ORG_RAIL-0_INFO"), "mlx5_9"));
	assert_null(
		strstr(render_devinfo(&b->node, &b->pool, &b->devs[0], b->arena), "rdma-device"));
	b->devs[1].plain = true;
	e = rendered(b);
	assert_int_equal(e.n_devs, 0);
	assert_null(env(&e, "NCCL_IB_HCA"));
}

static void gives_vhost_net_and_tun_where_the_selector_needs_them(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->devs[1].vhost_net = true;
	e = rendered(b);
	assert_int_equal(e.n_devs, 3);
	b->inv.has_vhost_net = true;
	e = rendered(b);
	assert_int_equal(e.n_devs, 5);
	assert_string_equal(e.devs[3].host, "/dev/vhost-net");
	assert_string_equal(e.devs[4].host, "/dev/net/tun");
	assert_non_null(strstr(
		env(&e, "PCIDEVICE_MY_ORG_RAIL-0_INFO"),
		"\"vhost\":{\"net-mount\":\"/dev/vhost-net\",\"tun-mount\":\"/dev/net/tun\"}}}"));
}

static void refuses_a_device_name_that_would_change_a_list(void **state)
{
	static const char *const names[] = { "mlx5,4", "mlx5 4", "../sda", "", "\xff", "a:1" };
	struct bench *b = *state;
	struct edits e;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct err err = { 0 };

		b->grant_devs[0].rdma = names[i];
		assert_int_equal(render_grant(&b->grant, b->arena, &e, &err), -EIO);
		assert_non_null(strstr(err.msg, "0000:1a:00.2"));
	}
}

/* --- GID index --- */

static const struct gid_entry usual_gids[] = {
	{ 0, { 0xfe, 0x80, [15] = 1 }, "IB/RoCE v1", "eth0" },
	{ 1, { 0xfe, 0x80, [15] = 1 }, "RoCE v2", "eth0" },
	{ 2, { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 }, "IB/RoCE v1", "eth0" },
	{ 3, { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 }, "RoCE v2", "eth0" },
};
static const struct gid_entry v6_first_gids[] = {
	{ 1, { 0xfe, 0x80, [15] = 1 }, "RoCE v2", "eth0" },
	{ 3, { 0xfd, [15] = 1 }, "RoCE v2", "eth0" },
	{ 5, { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 }, "RoCE v2", "eth0" },
};

static void set_gids(struct bench *b, const struct gid_entry *first, size_t n_first,
		     const struct gid_entry *second, size_t n_second)
{
	b->grant_devs[0].gids = first;
	b->grant_devs[0].n_gids = n_first;
	b->grant_devs[1].gids = second;
	b->grant_devs[1].n_gids = n_second;
}

static const char *gid_index(struct bench *b)
{
	struct edits e = rendered(b);

	return env(&e, "NCCL_IB_GID_INDEX");
}

static void gid_auto_is_silent_while_the_table_can_change(void **state)
{
	struct bench *b = *state;

	set_gids(b, usual_gids, 4, usual_gids, 4);
	assert_null(gid_index(b));
}

static void gid_auto_on_the_host_network_takes_the_ipv4_roce_v2_entry(void **state)
{
	struct bench *b = *state;

	b->cfg.network = NETWORK_HOST;
	set_gids(b, usual_gids, 4, usual_gids, 4);
	assert_string_equal(gid_index(b), "3");
	set_gids(b, v6_first_gids, 3, v6_first_gids, 3);
	assert_string_equal(gid_index(b), "5");
	set_gids(b, v6_first_gids, 2, v6_first_gids, 2);
	assert_string_equal(gid_index(b), "3");
}

static void gid_auto_is_silent_when_vfs_disagree_or_have_none(void **state)
{
	struct bench *b = *state;

	b->cfg.network = NETWORK_HOST;
	set_gids(b, usual_gids, 4, v6_first_gids, 3);
	assert_null(gid_index(b));
	set_gids(b, usual_gids, 2, usual_gids, 2);
	assert_null(gid_index(b));
}

static void gid_is_never_set_on_infiniband(void **state)
{
	struct bench *b = *state;

	b->cfg.network = NETWORK_HOST;
	b->ports[0].link = HW_LINK_IB;
	set_gids(b, usual_gids, 4, usual_gids, 4);
	assert_null(gid_index(b));
	b->cfg.gid = GID_FIXED;
	b->cfg.gid_index = 3;
	assert_null(gid_index(b));
}

static void gid_fixed_is_the_operators_word_in_a_pod_network(void **state)
{
	struct bench *b = *state;

	b->cfg.gid = GID_FIXED;
	b->cfg.gid_index = 7;
	assert_string_equal(gid_index(b), "7");
	b->cfg.gid = GID_OFF;
	assert_null(gid_index(b));
}

static void gid_fixed_on_the_host_network_must_exist(void **state)
{
	struct bench *b = *state;
	struct err err = { 0 };
	struct edits e;

	b->cfg.network = NETWORK_HOST;
	b->cfg.gid = GID_FIXED;
	b->cfg.gid_index = 3;
	set_gids(b, usual_gids, 4, usual_gids, 4);
	assert_string_equal(gid_index(b), "3");
	set_gids(b, usual_gids, 4, usual_gids, 2);
	assert_int_equal(render_grant(&b->grant, b->arena, &e, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "VF 0000:1a:00.3 has no GID at index 3 of mlx5_9"));
}

/* --- device-info file --- */

static void device_info_is_the_peers_file(void **state)
{
	struct bench *b = *state;

	assert_string_equal(render_devinfo_name(&b->pool, &b->devs[0], b->arena),
			    "my.org-rail-0-0000:1a:00.2-device.json");
	assert_string_equal(
		render_devinfo(&b->node, &b->pool, &b->devs[0], b->arena),
		"{\"type\":\"pci\",\"version\":\"1.1.0\",\"pci\":{\"pci-address\":\"0000:1a:00.2\",\"pf-pci-address\":\"0000:1a:00.1\",\"rdma-device\":\"mlx5_4\"}}");
	b->cfg.is_rdma = false;
	b->devs[1].pci = -1;
	assert_string_equal(
		render_devinfo(&b->node, &b->pool, &b->devs[1], b->arena),
		"{\"type\":\"pci\",\"version\":\"1.1.0\",\"pci\":{\"pci-address\":\"0000:1a:00.3\"}}");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(sets_the_peers_variables_bit_for_bit),
		TEST(additional_info_of_the_device_overrides_the_star),
		TEST(names_hcas_exactly_with_their_port),
		TEST(names_the_active_port_of_a_dual_port_device),
		TEST(never_writes_an_empty_hca_list),
		TEST(names_at_most_32_hcas),
		TEST(maps_gpus_to_vfs_when_they_are_known),
		TEST(maps_vfs_without_a_gpu_beside_those_with_one),
		TEST(environment_is_sorted),
		TEST(gives_verbs_nodes_and_rdma_cm_once),
		TEST(gives_no_rdma_to_a_pool_without_is_rdma),
		TEST(gives_no_rdma_to_a_vf_whose_selector_does_not_say_so),
		TEST(gives_vhost_net_and_tun_where_the_selector_needs_them),
		TEST(refuses_a_device_name_that_would_change_a_list),
		TEST(gid_auto_is_silent_while_the_table_can_change),
		TEST(gid_auto_on_the_host_network_takes_the_ipv4_roce_v2_entry),
		TEST(gid_auto_is_silent_when_vfs_disagree_or_have_none),
		TEST(gid_is_never_set_on_infiniband),
		TEST(gid_fixed_is_the_operators_word_in_a_pod_network),
		TEST(gid_fixed_on_the_host_network_must_exist),
		TEST(device_info_is_the_peers_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
