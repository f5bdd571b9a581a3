/* A container with VFs of two pools, as they are when it starts → its variables and its files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render.h"
#include "topo/topo.h"

/* Functions in address order: two PFs, two GPUs, VFs; the last one is on a further bus than its PF.
 */
enum { PF_18, VF_18_2, VF_18_3, GPU_19, PF_3B, VF_3B_2, VF_3B_3, VF_3C, GPU_5D, FUNCTIONS };
enum { A_18_2, A_18_3, A_3B_2, POOL_A, B_3B_3 = 0, B_3C, POOL_B, VFS = POOL_A + POOL_B };

struct bench {
	struct arena *arena;
	struct hw_pci pci[FUNCTIONS];
	struct hw_port ports[VFS];
	struct hw_rdma rdma[VFS];
	struct hw_inventory inv;
	struct topo *topo;
	struct pool_config cfg[2];
	struct pool_dev devs[VFS];
	struct pool pools[2];
	struct node node;
	struct grant_dev grant_devs[VFS];
	struct vf_state states[VFS];
	struct choose_pair pairs[2][4];
	struct grant grants[2];
	struct container c;
	const char *const *notes;
	size_t n_notes;
};

static const struct {
	int pci;
	const char *id, *rdma, *uverbs;
} vfs[VFS] = {
	{ VF_18_2, "0000:18:00.2", "mlx5_2", "uverbs2" },
	{ VF_18_3, "0000:18:00.3", "mlx5_3", "uverbs3" },
	{ VF_3B_2, "0000:3b:00.2", "mlx5_6", "uverbs6" },
	{ VF_3B_3, "0000:3b:00.3", "mlx5_7", "uverbs7" },
	{ VF_3C, "0000:3c:02.1", "mlx5_9", "uverbs9" },
};

#define LL(i, type)                                                                                \
	{                                                                                          \
		(i), { 0xfe, 0x80, [15] = 1 }, (type), "net1"                                      \
	}
#define V4(i, type, d)                                                                             \
	{                                                                                          \
		(i), { [10] = 0xff, [11] = 0xff, 10, 0, 0, (d) }, (type), "net1"                   \
	}
#define V6(i, type, d)                                                                             \
	{                                                                                          \
		(i), { 0xfd, [15] = (d) }, (type), "net1"                                          \
	}

static const struct gid_entry usual[] = { LL(0, "IB/RoCE v1"), LL(1, "RoCE v2"),
					  V4(2, "IB/RoCE v1", 7), V4(3, "RoCE v2", 7) };
static const struct gid_entry later[] = { LL(0, "IB/RoCE v1"), LL(1, "RoCE v2"),
					  V4(4, "IB/RoCE v1", 7), V4(5, "RoCE v2", 7) };
static const struct gid_entry only_v6[] = { LL(0, "RoCE v2"), V6(1, "RoCE v2", 7) };
static const struct gid_entry v6_later[] = { LL(0, "RoCE v2"), V6(2, "RoCE v2", 7) };
static const struct ip_addr own[] = { { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 7 }, 120, "net1" },
				      { { 0xfd, [15] = 7 }, 64, "net1" } };

static void set_functions(struct bench *b)
{
	static const struct {
		uint8_t bus, dev, fn;
		int physfn;
	} at[FUNCTIONS] = {
		[PF_18] = { 0x18, 0, 0, -1 },	   [VF_18_2] = { 0x18, 0, 2, PF_18 },
		[VF_18_3] = { 0x18, 0, 3, PF_18 }, [GPU_19] = { 0x19, 0, 0, -1 },
		[PF_3B] = { 0x3b, 0, 0, -1 },	   [VF_3B_2] = { 0x3b, 0, 2, PF_3B },
		[VF_3B_3] = { 0x3b, 0, 3, PF_3B }, [VF_3C] = { 0x3c, 2, 1, PF_3B },
		[GPU_5D] = { 0x5d, 0, 0, -1 },
	};

	for (int i = 0; i < FUNCTIONS; i++)
		b->pci[i] = (struct hw_pci) { .bdf = { 0, at[i].bus, at[i].dev, at[i].fn },
					      .physfn = at[i].physfn,
					      .parent = -1,
					      .numa = -1 };
}

static void set_vf(struct bench *b, int i)
{
	b->ports[i] = (struct hw_port) { 1, "ACTIVE", "LinkUp", HW_LINK_ETHERNET, 200000 };
	b->rdma[i] = (struct hw_rdma) { .name = vfs[i].rdma,
					.pci = vfs[i].pci,
					.uverbs = vfs[i].uverbs,
					.ports = &b->ports[i],
					.n_ports = 1 };
	b->devs[i] = (struct pool_dev) { .id = vfs[i].id,
					 .pci = vfs[i].pci,
					 .rdma = i,
					 .numa = i < POOL_A ? 0 : -1,
					 .healthy = true };
	b->states[i] = (struct vf_state) { .seen = VF_SEEN_POD,
					   .netns = "cni-1",
					   .netdev = "net1",
					   .addrs = own,
					   .n_addrs = ARRAY_LEN(own),
					   .addrs_known = true,
					   .port = 1,
					   .port_state = "ACTIVE",
					   .link = HW_LINK_ETHERNET,
					   .gids = usual,
					   .n_gids = ARRAY_LEN(usual),
					   .gid_table_len = 16 };
	b->grant_devs[i] = (struct grant_dev) { .dev = &b->devs[i],
						.rdma = vfs[i].rdma,
						.uverbs = vfs[i].uverbs,
						.state = &b->states[i] };
}

static void set_pool(struct bench *b, int i)
{
	int first = i ? POOL_A : 0;

	b->cfg[i] = (struct pool_config) { .resource = i ? "rdma/b" : "rdma/a",
					   .is_rdma = true,
					   .roce_version = 2,
					   .profiles = PROFILE_NCCL,
					   .pkey = -1 };
	b->pools[i] = (struct pool) { &b->cfg[i], &b->devs[first], i ? POOL_B : POOL_A };
	b->grants[i] = (struct grant) { .node = &b->node,
					.pool = &b->pools[i],
					.devs = &b->grant_devs[first],
					.n_devs = 1,
					.pairs = b->pairs[i] };
}

static int setup(void **state)
{
	struct bench *b = xcalloc(1, sizeof(*b));

	b->arena = arena_new(4096);
	set_functions(b);
	for (int i = 0; i < VFS; i++)
		set_vf(b, i);
	for (int i = 0; i < 2; i++)
		set_pool(b, i);
	b->inv = (struct hw_inventory) { .pci = b->pci,
					 .n_pci = FUNCTIONS,
					 .rdma = b->rdma,
					 .n_rdma = VFS,
					 .has_rdma_cm = true };
	b->topo = topo_new(&b->inv, NULL);
	b->node =
		(struct node) { .inv = &b->inv, .topo = b->topo, .pools = b->pools, .n_pools = 2 };
	b->c = (struct container) {
		.ns = "ml", .pod = "train-0", .name = "trainer", .grants = b->grants, .n = 1
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

/* The VF that a pool gives, beside those before it. */
static void give(struct bench *b, int grant, int vf)
{
	struct grant_dev *devs = arena_array(b->arena, b->grants[grant].n_devs + 1, sizeof(*devs));
	struct grant *g = &b->grants[grant];

	for (size_t i = 0; i < g->n_devs; i++)
		devs[i] = g->devs[i];
	devs[g->n_devs++] = b->grant_devs[vf + (grant ? POOL_A : 0)];
	g->devs = devs;
}

static void give_only(struct bench *b, int grant, int vf)
{
	b->grants[grant].n_devs = 0;
	give(b, grant, vf);
}

static void pair(struct bench *b, int grant, int gpu, int vf)
{
	b->pairs[grant][b->grants[grant].n_pairs++] =
		(struct choose_pair) { gpu, vf, { TOPO_PIX, 1, false } };
}

static void set_gids(struct vf_state *state, const struct gid_entry *gids, size_t n)
{
	state->gids = gids;
	state->n_gids = n;
}
#define SET_GIDS(state, table) set_gids((state), (table), ARRAY_LEN(table))

static struct edits rendered(struct bench *b)
{
	struct err err = { 0 };
	struct edits e;

	if (render_container(&b->c, b->arena, &e, &b->notes, &b->n_notes, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

static const char *refused(struct bench *b)
{
	static struct err err;
	struct edits e;

	err = (struct err) { 0 };
	assert_int_equal(render_container(&b->c, b->arena, &e, &b->notes, &b->n_notes, &err),
			 -EINVAL);
	return err.msg;
}

static const char *env(const struct edits *e, const char *key)
{
	for (size_t i = 0; i < e->n_envs; i++) {
		if (!strcmp(e->envs[i].key, key))
			return e->envs[i].value;
	}
	return NULL;
}

static const char *value(struct bench *b, const char *key)
{
	struct edits e = rendered(b);

	return env(&e, key);
}

static void assert_note(const struct bench *b, const char *part)
{
	for (size_t i = 0; i < b->n_notes; i++) {
		if (strstr(b->notes[i], part))
			return;
	}
	fail_msg("no note says '%s' (%zu notes)", part, b->n_notes);
}

/* --- NCCL_IB_HCA --- */

static void hcas_come_in_the_order_of_the_gpus_they_serve(void **state)
{
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_2:1,mlx5_6:1");
	pair(b, 0, GPU_19, A_3B_2);
	pair(b, 0, GPU_5D, A_18_2);
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_6:1,mlx5_2:1");
}

static void a_vf_counts_by_its_first_gpu_and_one_without_comes_last(void **state)
{
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	pair(b, 0, GPU_5D, A_3B_2);
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_6:1,mlx5_2:1");
	pair(b, 0, GPU_5D, A_18_2);
	pair(b, 0, GPU_19, A_3B_2);
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_6:1,mlx5_2:1");
}

static void a_vf_has_the_place_of_its_pf(void **state)
{
	struct bench *b = *state;

	b->c.n = 2;
	b->pci[VF_3C].physfn = PF_18; /* not where it would be by its own address */
	give_only(b, 0, A_3B_2);
	give_only(b, 1, B_3C);
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_9:1,mlx5_6:1");
}

static void pools_of_a_container_share_one_list(void **state)
{
	struct bench *b = *state;
	struct grant swapped[2];
	struct edits e;

	b->c.n = 2;
	e = rendered(b);
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=mlx5_2:1,mlx5_7:1");
	assert_string_equal(env(&e, "RAILMATE_RDMA_A_VFS"), "0000:18:00.2");
	assert_string_equal(env(&e, "RAILMATE_RDMA_B_VFS"), "0000:3b:00.3");
	assert_int_equal(e.n_devs, 3);
	for (size_t i = 1; i < e.n_envs; i++)
		assert_true(strcmp(e.envs[i - 1].key, e.envs[i].key) < 0);
	swapped[0] = b->grants[1];
	swapped[1] = b->grants[0];
	b->c.grants = swapped;
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_2:1,mlx5_7:1");
}

static void what_allocate_gave_already_is_not_given_again(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->c.n = 2;
	b->grants[0].joined_only = true;
	e = rendered(b);
	assert_null(env(&e, "PCIDEVICE_RDMA_A"));
	assert_non_null(env(&e, "PCIDEVICE_RDMA_B"));
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=mlx5_2:1,mlx5_7:1");
}

static void nccl_takes_32_hcas_at_most(void **state)
{
	struct bench *b = *state;
	const char *list;
	size_t commas = 0;

	for (int i = 1; i < 40; i++)
		give(b, 0, A_18_2);
	list = value(b, "NCCL_IB_HCA");
	for (const char *s = list; *s; s++)
		commas += *s == ',';
	assert_int_equal(commas, 31);
	assert_note(b, "8 of 40 VFs");
}

static void names_ports_and_nodes_are_those_of_now(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->states[0].rdma = "rocep24s0v0";
	b->states[0].port = 2;
	b->states[0].uverbs = "uverbs41";
	e = rendered(b);
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=rocep24s0v0:2");
	assert_string_equal(env(&e, "RAILMATE_RDMA_A_HCAS"), "rocep24s0v0:2");
	assert_string_equal(e.devs[0].host, "/dev/infiniband/uverbs41");
}

static void a_name_that_would_change_a_list_is_refused(void **state)
{
	struct bench *b = *state;
	struct err err = { 0 };
	struct edits e;

	b->states[0].rdma = "mlx5,4";
	assert_int_equal(render_container(&b->c, b->arena, &e, &b->notes, &b->n_notes, &err), -EIO);
	assert_non_null(strstr(err.msg, "0000:18:00.2"));
}

static void a_port_that_is_down_is_noted(void **state)
{
	struct bench *b = *state;

	b->states[0].port_state = "DOWN";
	rendered(b);
	assert_note(b, "port 1 of mlx5_2 (VF 0000:18:00.2) is DOWN");
}

static void a_pool_without_nccl_names_no_hca(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].profiles = 0;
	b->grants[0].files = true;
	e = rendered(b);
	for (size_t i = 0; i < e.n_envs; i++)
		assert_false(str_starts(e.envs[i].key, "NCCL_"));
	b->cfg[0].profiles = PROFILE_RCCL;
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_2:1");
}

/* --- what NCCL would take wrong --- */

static void merging_of_vfs_is_off_where_a_vf_is_not_at_its_pfs_place(void **state)
{
	struct bench *b = *state;

	b->c.n = 2;
	assert_null(value(b, "NCCL_IB_MERGE_VFS"));
	give_only(b, 1, B_3C);
	assert_string_equal(value(b, "NCCL_IB_MERGE_VFS"), "0");
}

static void merging_of_nics_is_off_for_two_vfs_of_one_port(void **state)
{
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	assert_null(value(b, "NCCL_IB_MERGE_NICS"));
	give(b, 0, A_18_3);
	assert_string_equal(value(b, "NCCL_IB_MERGE_NICS"), "0");
	assert_string_equal(value(b, "NCCL_NET_MERGE_LEVEL"), "LOC");
	assert_note(b, "VFs 0000:18:00.2 and 0000:18:00.3 share one port");
	b->states[A_18_3].rdma = "mlx5_3";
	b->states[A_18_3].port = 2;
	assert_null(value(b, "NCCL_IB_MERGE_NICS"));
}

/* Fused, the ports would be one device for both GPUs. */
static void merging_of_nics_is_off_for_ports_of_a_card_that_gpus_share(void **state)
{
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	pair(b, 0, GPU_19, A_18_2);
	pair(b, 0, GPU_5D, A_3B_2);
	assert_null(value(b, "NCCL_IB_MERGE_NICS")); /* two cards */
	b->pci[PF_3B].bdf = (struct bdf) { 0, 0x18, 0, 1 };
	assert_string_equal(value(b, "NCCL_IB_MERGE_NICS"), "0");
	assert_string_equal(value(b, "NCCL_NET_MERGE_LEVEL"), "LOC");
	assert_int_equal(b->n_notes, 0);
	b->pairs[0][1].gpu = GPU_19;
	assert_null(value(b, "NCCL_IB_MERGE_NICS")); /* one GPU has both */
	b->grants[0].n_pairs = 0;
	assert_null(value(b, "NCCL_IB_MERGE_NICS")); /* not known */
}

static void notes_of_one_cause_are_one_note(void **state)
{
	struct bench *b = *state;

	give(b, 0, A_18_3);
	give(b, 0, A_3B_2);
	b->c.n = 2; /* the second pool has another VF of 3b */
	b->states[A_18_2].port_state = b->states[A_18_3].port_state = b->states[A_3B_2].port_state =
		"DOWN";
	value(b, "NCCL_IB_HCA");
	assert_int_equal(b->n_notes, 2);
	assert_string_equal(
		b->notes[0],
		"port 1 of mlx5_2 (VF 0000:18:00.2) is DOWN, port 1 of mlx5_3 (VF 0000:18:00.3) is DOWN and port 1 of mlx5_6 (VF 0000:3b:00.2) is DOWN: NCCL leaves them out");
	assert_string_equal(
		b->notes[1],
		"VFs 0000:18:00.2 and 0000:18:00.3; 0000:3b:00.2 and 0000:3b:00.3 share one port of their PF each time: NCCL takes each VF for a link of the full rate");
	for (int i = 0; i < VFS; i++) {
		b->states[i].port_state = "ACTIVE";
		b->states[i].seen = VF_SEEN_NOTHING;
	}
	value(b, "NCCL_IB_HCA");
	assert_note(
		b,
		"the GIDs of VFs 0000:18:00.2, 0000:18:00.3, 0000:3b:00.2 and 0000:3b:00.3 are not known");
	for (int i = 0; i < VFS; i++)
		b->states[i].seen = VF_SEEN_HOST;
	b->cfg[0].network = b->cfg[1].network = NETWORK_POD;
	value(b, "NCCL_IB_HCA");
	assert_note(
		b,
		"the network interfaces of VFs 0000:18:00.2, 0000:18:00.3, 0000:3b:00.2 and 0000:3b:00.3 are still the host's");
}

static void first_addresses_of_different_networks_are_noted(void **state)
{
#define AT(i, net, d)                                                                              \
	{                                                                                          \
		(i), { [10] = 0xff, [11] = 0xff, 10, (net), 0, (d) }, "RoCE v2", "net1"            \
	}
	static const struct gid_entry one[] = { AT(3, 0, 7), AT(5, 9, 7) },
				      other[] = { AT(3, 9, 8), AT(5, 0, 8) },
				      same[] = { AT(3, 0, 8), AT(5, 9, 8) },
				      alone[] = { AT(3, 9, 8) };
	static const char words[] =
		"NCCL takes 10.0.0.7 on VF 0000:18:00.2 and 10.9.0.8 on VF 0000:3b:00.2, which are of "
		"different networks, though both VFs have addresses of either: gidRange in the pool "
		"chooses one";
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	b->states[A_18_2].addrs_known = b->states[A_3B_2].addrs_known = false;
	SET_GIDS(&b->states[A_18_2], one);
	SET_GIDS(&b->states[A_3B_2], other);
	value(b, "NCCL_IB_HCA");
	assert_int_equal(b->n_notes, 1);
	assert_string_equal(b->notes[0], words);
	SET_GIDS(&b->states[A_3B_2], same);
	value(b, "NCCL_IB_HCA");
	assert_int_equal(b->n_notes, 0);
	SET_GIDS(&b->states[A_3B_2], alone); /* a network for each rail */
	value(b, "NCCL_IB_HCA");
	assert_int_equal(b->n_notes, 0);
}

static void two_pools_on_one_port_are_seen_together(void **state)
{
	struct bench *b = *state;

	b->c.n = 2;
	give_only(b, 0, A_3B_2);
	assert_string_equal(value(b, "NCCL_IB_MERGE_NICS"), "0");
}

/* --- partitions --- */

static void infiniband(struct bench *b, int vf, const uint16_t *pkeys, size_t n)
{
	b->states[vf].link = HW_LINK_IB;
	b->states[vf].pkeys = pkeys;
	b->states[vf].n_pkeys = n;
}

static void a_pkey_becomes_its_index(void **state)
{
	static const uint16_t table[] = { 0x7fff, 0, 0x8001 }, other[] = { 0x8001 },
			      limited[] = { 0xffff, 0x0001 };
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	b->cfg[0].pkey = 0x8001;
	infiniband(b, A_18_2, table, 3);
	infiniband(b, A_3B_2, table, 3);
	assert_string_equal(value(b, "NCCL_IB_PKEY"), "2");
	infiniband(b, A_3B_2, other, 1);
	assert_null(value(b, "NCCL_IB_PKEY"));
	assert_note(b, "same index");
	infiniband(b, A_3B_2, limited, 2);
	assert_null(value(b, "NCCL_IB_PKEY"));
	assert_note(
		b,
		"P_Key 0x8001 of the pool rdma/a is not in the table of mlx5_6 (VF 0000:3b:00.2), only with");
}

static void a_pkey_is_for_infiniband_and_for_who_asks(void **state)
{
	static const uint16_t table[] = { 0x8001 };
	struct bench *b = *state;

	infiniband(b, A_18_2, table, 1);
	assert_null(value(b, "NCCL_IB_PKEY"));
	b->cfg[0].pkey = 0x8001;
	assert_string_equal(value(b, "NCCL_IB_PKEY"), "0");
	b->states[A_18_2].link = HW_LINK_ETHERNET;
	assert_null(value(b, "NCCL_IB_PKEY"));
}

static void a_pkey_is_not_known_before_the_start(void **state)
{
	struct bench *b = *state;

	b->cfg[0].pkey = 0x8001;
	b->ports[0].link = HW_LINK_IB;
	b->grant_devs[0].state = NULL;
	assert_null(value(b, "NCCL_IB_PKEY"));
	assert_int_equal(b->n_notes, 0);
}

/* --- GIDs --- */

static void the_index_is_set_where_all_vfs_agree(void **state)
{
	struct bench *b = *state;
	struct edits e;

	give(b, 0, A_3B_2);
	assert_string_equal(value(b, "NCCL_IB_GID_INDEX"), "3");
	SET_GIDS(&b->states[A_3B_2], later);
	e = rendered(b);
	assert_null(env(&e, "NCCL_IB_GID_INDEX"));
	assert_null(env(&e, "NCCL_IB_ADDR_RANGE"));
	assert_int_equal(b->n_notes, 0);
	b->cfg[0].gid = GID_OFF;
	SET_GIDS(&b->states[A_3B_2], usual);
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
}

static void ipv6_is_named_where_it_is_all_there_is(void **state)
{
	struct bench *b = *state;
	struct edits e;

	give(b, 0, A_3B_2);
	SET_GIDS(&b->states[A_18_2], only_v6);
	SET_GIDS(&b->states[A_3B_2], v6_later);
	e = rendered(b);
	assert_null(env(&e, "NCCL_IB_GID_INDEX"));
	assert_string_equal(env(&e, "NCCL_IB_ADDR_FAMILY"), "AF_INET6");
}

static void addresses_of_others_do_not_count(void **state)
{
	static const struct gid_entry shared[] = { LL(0, "RoCE v2"), V4(1, "RoCE v2", 6),
						   V4(2, "RoCE v2", 7), V4(3, "RoCE v2", 8) };
	struct bench *b = *state;

	SET_GIDS(&b->states[A_18_2], shared);
	assert_string_equal(value(b, "NCCL_IB_GID_INDEX"), "2");
	give(b, 0, A_3B_2);
	assert_string_equal(value(b, "NCCL_IB_ADDR_RANGE"), "10.0.0.7/32");
	b->states[A_18_2].addrs_known = b->states[A_3B_2].addrs_known = false;
	assert_null(value(b, "NCCL_IB_ADDR_RANGE"));
}

static void an_address_of_another_interface_of_that_name_is_another_one(void **state)
{
	static const struct gid_entry vlans[] = {
		LL(0, "RoCE v2"),
		{ 1, { [10] = 0xff, [11] = 0xff, 10, 0, 0, 7 }, "RoCE v2", "net9.100" },
		V4(2, "RoCE v2", 7)
	};
	struct bench *b = *state;

	SET_GIDS(&b->states[A_18_2], vlans);
	assert_string_equal(value(b, "NCCL_IB_GID_INDEX"), "2");
}

static void a_vf_that_stayed_on_the_host_has_no_gid_for_a_pod(void **state)
{
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	b->states[A_3B_2].seen = VF_SEEN_HOST;
	b->states[A_3B_2].netns = NULL;
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
	assert_note(b,
		    "VF 0000:3b:00.2 has only GIDs of addresses that are not in the container's");
	assert_note(b, "the network interface of VF 0000:3b:00.2 is still the host's");
	b->states[A_18_2].seen = VF_SEEN_HOST;
	b->states[A_18_2].netns = NULL;
	assert_string_equal(value(b, "NCCL_IB_GID_INDEX"),
			    "3"); /* a container on the host's network */
}

static void tables_that_are_not_known_leave_the_words_of_the_operator(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->states[A_18_2] = (struct vf_state) { .seen = VF_SEEN_NOTHING,
						.why = "its network namespace is gone",
						.link = HW_LINK_ETHERNET,
						.port = 1 };
	b->cfg[0].gid_family = GID_FAMILY_IPV6;
	b->cfg[0].gid_range = "fd00::/16";
	b->cfg[0].gid_range_addr[0] = 0xfd;
	b->cfg[0].gid_range_bits = 16;
	e = rendered(b);
	assert_null(env(&e, "NCCL_IB_GID_INDEX"));
	assert_string_equal(env(&e, "NCCL_IB_ADDR_FAMILY"), "AF_INET6");
	assert_string_equal(env(&e, "NCCL_IB_ADDR_RANGE"), "fd00::/16");
	assert_note(b, "VF 0000:18:00.2: its network namespace is gone");
	assert_note(b, "GIDs of VF 0000:18:00.2 are not known");
}

static void infiniband_is_told_nothing_of_gids(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->states[A_18_2].link = HW_LINK_IB;
	b->cfg[0].roce_version = 1;
	e = rendered(b);
	assert_null(env(&e, "NCCL_IB_GID_INDEX"));
	assert_null(env(&e, "NCCL_IB_ROCE_VERSION_NUM"));
	assert_int_equal(b->n_notes, 0);
	give(b, 0, A_3B_2);
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
	assert_note(b, "some VFs are on InfiniBand");
	b->states[A_18_2].link = HW_LINK_UNKNOWN;
	b->ports[A_18_2].link = HW_LINK_UNKNOWN;
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
	assert_note(b, "link layer of 1 of 2 VFs is not known");
}

static void a_fixed_index_is_held_against_the_tables(void **state)
{
	struct bench *b = *state;

	b->cfg[0].gid = GID_FIXED;
	b->cfg[0].gid_index = 3;
	give(b, 0, A_3B_2);
	assert_string_equal(value(b, "NCCL_IB_GID_INDEX"), "3");
	SET_GIDS(&b->states[A_3B_2], later);
	assert_non_null(strstr(refused(b), "VF 0000:3b:00.2 has no GID at index 3"));
	b->cfg[0].gid_index = 16;
	assert_non_null(strstr(refused(b), "ends at 15"));
	b->states[A_18_2].seen = b->states[A_3B_2].seen = VF_SEEN_NOTHING;
	assert_string_equal(value(b, "NCCL_IB_GID_INDEX"), "16"); /* nothing refutes it */
}

static void a_fixed_index_on_infiniband_is_refused(void **state)
{
	struct bench *b = *state;

	b->cfg[0].gid = GID_FIXED;
	b->cfg[0].gid_index = 3;
	b->states[A_18_2].link = HW_LINK_IB;
	assert_non_null(strstr(refused(b), "InfiniBand"));
}

static void pools_that_contradict_each_other_leave_gids_to_nccl(void **state)
{
	struct bench *b = *state;

	b->c.n = 2;
	b->cfg[0].gid = GID_FIXED;
	b->cfg[0].gid_index = 3;
	assert_string_equal(value(b, "NCCL_IB_GID_INDEX"), "3");
	SET_GIDS(&b->states[POOL_A + B_3B_3], later);
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
	assert_note(
		b,
		"fixed:3 in the pool rdma/a, which is not right for VF 0000:3b:00.3 of the pool rdma/b");
	b->cfg[1].gid = GID_FIXED;
	b->cfg[1].gid_index = 5;
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
	assert_note(b, "fixed:");
	b->cfg[0].gid = GID_OFF;
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
	assert_note(
		b,
		"gid is off in the pool rdma/a: no GID is chosen for NCCL, for those of the pool rdma/b");
	b->cfg[0].gid = b->cfg[1].gid = GID_AUTO;
	b->cfg[0].roce_version = 1;
	b->states[A_18_2].seen = VF_SEEN_NOTHING;
	assert_string_equal(value(b, "NCCL_IB_ROCE_VERSION_NUM"), "1");
	assert_note(b, "the pools rdma/a and rdma/b want different GIDs");
}

static void libraries_that_take_an_index_get_it(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].profiles = PROFILE_MSCCLPP;
	e = rendered(b);
	assert_null(env(&e, "NCCL_IB_HCA"));
	assert_null(env(&e, "NCCL_IB_GID_INDEX"));
	assert_string_equal(env(&e, "MSCCLPP_IB_GID_INDEX"), "3");
}

/* --- the operator's variables --- */

static void the_first_pool_of_the_configuration_has_its_way(void **state)
{
	static const struct policy_env one[] = { { "NCCL_IB_TC", "106" }, { "NCCL_NET", "IB" } };
	static const struct policy_env two[] = { { "NCCL_IB_SL", "3" },
						 { "NCCL_IB_TC", "104" },
						 { "NCCL_NET", "IB" } };
	struct bench *b = *state;
	struct grant swapped[2];
	struct edits e;

	b->c.n = 2;
	b->cfg[0].env = one;
	b->cfg[0].n_env = 2;
	b->cfg[1].env = two;
	b->cfg[1].n_env = 3;
	swapped[0] = b->grants[1];
	swapped[1] = b->grants[0];
	b->c.grants = swapped;
	e = rendered(b);
	assert_string_equal(env(&e, "NCCL_IB_TC"), "106");
	assert_string_equal(env(&e, "NCCL_IB_SL"), "3");
	assert_string_equal(env(&e, "NCCL_NET"), "IB");
	assert_int_equal(b->n_notes, 1);
	assert_note(b, "NCCL_IB_TC is 106 in the pool rdma/a and 104 in rdma/b: 106 is taken");
}

static void a_derived_variable_is_not_overridden(void **state)
{
	static const struct policy_env mine[] = { { "NCCL_IB_HCA", "mlx5" } };
	struct bench *b = *state;

	b->cfg[0].env = mine;
	b->cfg[0].n_env = 1;
	assert_string_equal(value(b, "NCCL_IB_HCA"), "=mlx5_2:1");
	assert_note(b, "NCCL_IB_HCA is mlx5 in the pool rdma/a, but");
}

/* --- files --- */

static void files_are_named_where_nccl_has_to_find_them(void **state)
{
	struct bench *b = *state;
	struct edits e = rendered(b);

	assert_null(env(&e, "NCCL_CONF_FILE"));
	assert_null(env(&e, "NCCL_TOPO_FILE"));
	b->grants[0].files = true;
	b->grants[0].topo_file = "/run/railmate/topology.xml";
	e = rendered(b);
	assert_string_equal(env(&e, "NCCL_CONF_FILE"), "/run/railmate/nccl.conf");
	assert_string_equal(env(&e, "NCCL_TOPO_FILE"), "/run/railmate/topology.xml");
	b->cfg[0].binding = BINDING_LATE; /* the variables themselves are in the spec */
	assert_null(value(b, "NCCL_CONF_FILE"));
}

static void nccl_conf_holds_what_nccl_reads(void **state)
{
	struct kv kv[] = { { "NCCL_CONF_FILE", "/run/railmate/nccl.conf" },
			   { "NCCL_IB_HCA", "=mlx5_2:1,mlx5_6:1" },
			   { "NCCL_NET", "" },
			   { "PCIDEVICE_RDMA_A", "0000:18:00.2" },
			   { "RCCL_X", "1" },
			   { "UCX_NET_DEVICES", "mlx5_2:1" } };
	struct edits e = { .envs = kv, .n_envs = ARRAY_LEN(kv) };
	struct bench *b = *state;
	const char *text = render_nccl_conf(&e, b->arena);

	assert_int_equal(text[0], '#');
	assert_null(memchr(text, '=', strcspn(text, "\n")));
	assert_string_equal(strchr(text, '\n'),
			    "\nNCCL_IB_HCA==mlx5_2:1,mlx5_6:1\nNCCL_NET=\nRCCL_X=1\n");
}

/* 1023 characters of a value are read. */
static void nccl_conf_holds_no_value_that_would_be_cut(void **state)
{
	_cleanup_strbuf_ struct strbuf hcas = STRBUF_INIT, longest = STRBUF_INIT;
	struct kv kv[] = { { "NCCL_A", NULL },
			   { "NCCL_B", NULL },
			   { "NCCL_C", "a\nNCCL_D=1" },
			   { "NCCL_IB_HCA", NULL } };
	struct edits e = { .envs = kv, .n_envs = ARRAY_LEN(kv) };
	struct bench *b = *state;
	const char *text, *list;

	for (int i = 0; i < 32; i++)
		strbuf_printf(&hcas, "%c%040d_%02d:1", i ? ',' : '=', 0, i);
	for (int i = 0; i < 1023; i++)
		strbuf_putc(&longest, 'x');
	kv[0].value = arena_strdup(b->arena, strbuf_str(&longest));
	strbuf_putc(&longest, 'x');
	kv[1].value = strbuf_str(&longest);
	kv[3].value = strbuf_str(&hcas);
	text = render_nccl_conf(&e, b->arena);
	assert_non_null(strstr(text, kv[0].value));
	assert_non_null(strstr(text, "# NCCL_B is left out"));
	assert_non_null(strstr(text, "# NCCL_C is left out"));
	assert_null(strstr(text, "NCCL_D=1"));
	list = strstr(text, "NCCL_IB_HCA=") + strlen("NCCL_IB_HCA=");
	assert_int_equal(strcspn(list, "\n"),
			 22 * 46); /* '=' or ',', 43 characters of a name, ":1" */
	assert_true(!strncmp(list + 22 * 46 - 5, "_21:1", 5));
}

static void a_map_tells_who_uses_what(void **state)
{
	static const char *const notes[] = { "first \"note\"", "second\x01" };
	struct bench *b = *state;

	b->c.n = 2;
	b->c.notes = notes;
	b->c.n_notes = 2;
	pair(b, 1, GPU_19, B_3B_3);
	b->states[POOL_A + B_3B_3].netdev = NULL;
	b->states[A_18_2].link = HW_LINK_IB;
	b->cfg[1].binding = BINDING_LATE;
	assert_string_equal(
		render_map(&b->c, b->arena),
		"{\n \"version\": 1,\n \"pod\": \"ml/train-0\",\n \"container\": \"trainer\",\n"
		" \"binding\": \"late\",\n \"gpus\": [\n"
		"  {\n   \"gpu\": \"0000:19:00.0\",\n   \"vf\": \"0000:3b:00.3\",\n   \"hca\": \"mlx5_7\",\n"
		"   \"port\": 1,\n   \"netdev\": null,\n   \"path\": \"PIX\",\n"
		"   \"gid\": {\n    \"index\": 3,\n    \"address\": \"10.0.0.7\",\n    \"type\": \"RoCE v2\"\n   },\n"
		"   \"numa\": null,\n   \"rail\": null,\n   \"plane\": null,\n   \"mbps\": 200000,\n   \"resource\": \"rdma/b\"\n  },\n"
		"  {\n   \"gpu\": null,\n   \"vf\": \"0000:18:00.2\",\n   \"hca\": \"mlx5_2\",\n"
		"   \"port\": 1,\n   \"netdev\": \"net1\",\n   \"path\": null,\n   \"gid\": null,\n"
		"   \"numa\": 0,\n   \"rail\": null,\n   \"plane\": null,\n   \"mbps\": 200000,\n   \"resource\": \"rdma/a\"\n  }\n ],\n"
		" \"notes\": [\n  \"first \\\"note\\\"\",\n  \"second\\u0001\"\n ]\n}\n");
}

static void a_map_says_null_where_nothing_is_known(void **state)
{
	struct bench *b = *state;
	const char *text;

	b->c.ns = b->c.pod = b->c.name = NULL;
	b->grant_devs[0].state = NULL;
	b->grant_devs[0].rdma = NULL;
	text = render_map(&b->c, b->arena);
	assert_non_null(
		strstr(text, "\"pod\": null,\n \"container\": null,\n \"binding\": \"early\""));
	assert_non_null(strstr(
		text,
		"\"hca\": null,\n   \"port\": null,\n   \"netdev\": null,\n   \"path\": null,\n"
		"   \"gid\": null"));
}

static void a_map_has_the_rate_that_a_vf_can_send(void **state)
{
	struct bench *b = *state;

	b->pci[VF_18_2].rate_mbps = 50000;
	assert_non_null(strstr(render_map(&b->c, b->arena), "\"mbps\": 50000"));
	b->pci[VF_18_2].rate_mbps = 400000;
	assert_non_null(strstr(render_map(&b->c, b->arena), "\"mbps\": 200000"));
	b->pci[VF_18_2].rate_mbps = 0;
	b->rdma[0].pci = PF_18; /* the VF's own device is in another namespace */
	b->ports[0].rate_mbps = 100000;
	assert_non_null(strstr(render_map(&b->c, b->arena), "\"mbps\": 100000"));
	b->ports[0].rate_mbps = 0;
	assert_non_null(strstr(render_map(&b->c, b->arena), "\"mbps\": null"));
}

/* One for each pair, by GPU: two GPUs share a VF. */
static void a_map_has_an_element_for_each_pair(void **state)
{
	struct bench *b = *state;
	const char *text, *first, *second;

	pair(b, 0, GPU_5D, A_18_2);
	pair(b, 0, GPU_19, A_18_2);
	text = render_map(&b->c, b->arena);
	first = strstr(text, "0000:19:00.0");
	second = strstr(text, "0000:5d:00.0");
	assert_non_null(first);
	assert_non_null(second);
	assert_true(first < second);
	assert_non_null(strstr(second, "0000:18:00.2"));
}

static void a_map_names_the_data_direct_function_of_a_pair(void **state)
{
	struct bench *b = *state;
	struct hw_card cards[] = { { .pci = PF_18, .direct = PF_3B } };
	struct topo *topo;

	b->inv.card = cards;
	b->inv.n_card = 1;
	b->node.topo = topo = topo_new(&b->inv, NULL);
	pair(b, 0, GPU_5D, A_18_2);
	assert_null(strstr(render_map(&b->c, b->arena), "data_direct"));
	b->pairs[0][0].path.direct = true;
	assert_non_null(strstr(render_map(&b->c, b->arena),
			       "\"path\": \"PIX\",\n   \"data_direct\": \"0000:3b:00.0\""));
	topo_free(topo);
}

static void a_map_shows_the_gid_that_nccl_chooses_itself(void **state)
{
	struct bench *b = *state;

	give(b, 0, A_3B_2);
	SET_GIDS(&b->states[A_3B_2], later);
	assert_null(value(b, "NCCL_IB_GID_INDEX"));
	assert_non_null(strstr(render_map(&b->c, b->arena), "\"index\": 5"));
	b->cfg[0].gid = GID_OFF;
	assert_non_null(strstr(render_map(&b->c, b->arena), "\"index\": 5"));
	b->states[A_3B_2].seen = VF_SEEN_NOTHING;
	assert_null(strstr(render_map(&b->c, b->arena), "\"index\": 5"));
}

static void a_cufile_lists_the_ipv4_addresses_of_the_vfs(void **state)
{
	static const struct gid_entry mixed[] = { LL(0, "RoCE v2"), V6(1, "RoCE v2", 7),
						  V4(2, "IB/RoCE v1", 7), V4(3, "RoCE v2", 7),
						  V4(4, "RoCE v2", 8) };
	struct bench *b = *state;

	b->c.n = 2;
	assert_null(render_cufile(&b->c, b->arena));
	b->cfg[0].cufile = true;
	SET_GIDS(&b->states[A_18_2], mixed);
	assert_string_equal(
		render_cufile(&b->c, b->arena),
		"{\n \"properties\": {\n  \"rdma_dev_addr_list\": [\n   \"10.0.0.7\"\n  ]\n }\n}\n");
	b->states[A_18_2].addrs_known = false;
	assert_non_null(strstr(render_cufile(&b->c, b->arena), "\"10.0.0.8\""));
	{ /* what the operator's file has is kept */
		static const struct policy_env base[] = {
			{ "fs", "{\"nfs\": {\"mount_table\": {}}}" }, { "denylist", "{}" }
		};
		static const struct policy_env properties[] = { { "allow_compat_mode", "true" } };
		const char *text;

		b->cfg[0].cufile_base = base;
		b->cfg[0].n_cufile_base = 2;
		b->cfg[0].cufile_properties = properties;
		b->cfg[0].n_cufile_properties = 1;
		text = render_cufile(&b->c, b->arena);
		assert_non_null(strstr(text, "\"fs\": {\"nfs\": {\"mount_table\": {}}},"));
		assert_non_null(strstr(text, "\"denylist\": {},\n"));
		assert_non_null(
			strstr(text, "\"allow_compat_mode\": true,\n  \"rdma_dev_addr_list\": ["));
		b->cfg[0].n_cufile_base = b->cfg[0].n_cufile_properties = 0;
	}
	b->states[A_18_2].n_gids = 0;
	assert_non_null(strstr(render_cufile(&b->c, b->arena), "\"rdma_dev_addr_list\": []"));
	b->cfg[0].is_rdma = false;
	assert_null(render_cufile(&b->c, b->arena));
}

/* --- Allocate --- */

static struct edits allocated(struct bench *b)
{
	struct edits e;

	b->grant_devs[0].state = NULL;
	assert_int_equal(render_grant(&b->grants[0], b->arena, &e, NULL), 0);
	return e;
}

static void a_range_stays_out_of_the_environment_where_a_file_can_make_it_narrower(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].gid_range = "10.0.0.0/8";
	memcpy(b->cfg[0].gid_range_addr, usual[3].gid, 16);
	b->cfg[0].gid_range_bits = 96 + 8;
	e = allocated(b);
	assert_string_equal(env(&e, "NCCL_IB_ADDR_RANGE"), "10.0.0.0/8");
	b->grants[0].files = true;
	e = allocated(b);
	assert_null(env(&e, "NCCL_IB_ADDR_RANGE"));
	assert_string_equal(env(&e, "NCCL_CONF_FILE"), "/run/railmate/nccl.conf");
}

static void a_family_stays_out_of_the_environment_unless_the_operator_says_it(void **state)
{
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].network = NETWORK_HOST;
	b->grants[0].files = true;
	give(b, 0, A_3B_2);
	b->grants[0].devs = memcpy(b->grant_devs, b->grants[0].devs, 2 * sizeof(struct grant_dev));
	for (int i = 0; i < 2; i++) {
		b->grant_devs[i].state = NULL;
		b->grant_devs[i].gids = i ? v6_later : only_v6;
		b->grant_devs[i].n_gids = 2;
	}
	e = allocated(b);
	assert_null(env(&e, "NCCL_IB_ADDR_FAMILY"));
	b->cfg[0].gid_family = GID_FAMILY_IPV6;
	e = allocated(b);
	assert_string_equal(env(&e, "NCCL_IB_ADDR_FAMILY"), "AF_INET6");
}

static void joined_variables_stay_out_of_the_environment_where_pools_would_collide(void **state)
{
	static const struct policy_env one[] = { { "NCCL_IB_TC", "106" },
						 { "NCCL_NET", "IB" },
						 { "UCX_TLS", "rc" } };
	static const struct policy_env two[] = { { "NCCL_IB_TC", "104" }, { "UCX_TLS", "all" } };
	struct bench *b = *state;
	struct edits e;

	b->cfg[0].env = one;
	b->cfg[0].n_env = 3;
	b->cfg[1].env = two;
	b->cfg[1].n_env = 2;
	b->cfg[0].profiles |= PROFILE_UCX;
	b->grants[0].conf_only = true;
	e = allocated(b); /* without a file there is no other way */
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=mlx5_2:1");
	b->grants[0].files = true;
	e = allocated(b);
	assert_null(env(&e, "NCCL_IB_HCA"));
	assert_null(env(&e, "UCX_NET_DEVICES"));
	assert_null(env(&e, "NCCL_IB_TC"));
	assert_string_equal(env(&e, "NCCL_NET"), "IB");
	assert_string_equal(env(&e, "UCX_TLS"), "rc");
	assert_string_equal(env(&e, "NCCL_CONF_FILE"), "/run/railmate/nccl.conf");
	assert_string_equal(env(&e, "RAILMATE_RDMA_A_HCAS"), "mlx5_2:1");
	b->pools[1].n_devs = 0; /* nobody can have both */
	e = allocated(b);
	assert_string_equal(env(&e, "NCCL_IB_TC"), "106");
}

static void pools_collide_when_two_early_ones_with_devices_set_the_same(void **state)
{
	struct bench *b = *state;

	assert_true(render_needs_conf_only(&b->node));
	b->cfg[1].profiles = PROFILE_RCCL;
	assert_true(render_needs_conf_only(&b->node));
	b->cfg[1].profiles = PROFILE_UCX;
	assert_false(render_needs_conf_only(&b->node));
	b->cfg[0].profiles |= PROFILE_UCX;
	assert_true(render_needs_conf_only(&b->node));
	b->cfg[1].binding = BINDING_LATE;
	assert_false(render_needs_conf_only(&b->node));
	b->cfg[1].binding = BINDING_EARLY;
	b->pools[1].n_devs = 0;
	assert_false(render_needs_conf_only(&b->node));
	b->pools[1].n_devs = 1;
	b->cfg[1].is_rdma = false;
	assert_false(render_needs_conf_only(&b->node));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(hcas_come_in_the_order_of_the_gpus_they_serve),
		T(a_vf_counts_by_its_first_gpu_and_one_without_comes_last),
		T(a_vf_has_the_place_of_its_pf),
		T(pools_of_a_container_share_one_list),
		T(what_allocate_gave_already_is_not_given_again),
		T(nccl_takes_32_hcas_at_most),
		T(names_ports_and_nodes_are_those_of_now),
		T(a_name_that_would_change_a_list_is_refused),
		T(a_port_that_is_down_is_noted),
		T(a_pool_without_nccl_names_no_hca),
		T(merging_of_vfs_is_off_where_a_vf_is_not_at_its_pfs_place),
		T(merging_of_nics_is_off_for_two_vfs_of_one_port),
		T(merging_of_nics_is_off_for_ports_of_a_card_that_gpus_share),
		T(notes_of_one_cause_are_one_note),
		T(first_addresses_of_different_networks_are_noted),
		T(two_pools_on_one_port_are_seen_together),
		T(a_pkey_becomes_its_index),
		T(a_pkey_is_for_infiniband_and_for_who_asks),
		T(a_pkey_is_not_known_before_the_start),
		T(the_index_is_set_where_all_vfs_agree),
		T(ipv6_is_named_where_it_is_all_there_is),
		T(addresses_of_others_do_not_count),
		T(an_address_of_another_interface_of_that_name_is_another_one),
		T(a_vf_that_stayed_on_the_host_has_no_gid_for_a_pod),
		T(tables_that_are_not_known_leave_the_words_of_the_operator),
		T(infiniband_is_told_nothing_of_gids),
		T(a_fixed_index_is_held_against_the_tables),
		T(a_fixed_index_on_infiniband_is_refused),
		T(pools_that_contradict_each_other_leave_gids_to_nccl),
		T(libraries_that_take_an_index_get_it),
		T(the_first_pool_of_the_configuration_has_its_way),
		T(a_derived_variable_is_not_overridden),
		T(files_are_named_where_nccl_has_to_find_them),
		T(nccl_conf_holds_what_nccl_reads),
		T(nccl_conf_holds_no_value_that_would_be_cut),
		T(a_map_tells_who_uses_what),
		T(a_map_says_null_where_nothing_is_known),
		T(a_map_has_the_rate_that_a_vf_can_send),
		T(a_map_has_an_element_for_each_pair),
		T(a_map_names_the_data_direct_function_of_a_pair),
		T(a_map_shows_the_gid_that_nccl_chooses_itself),
		T(a_cufile_lists_the_ipv4_addresses_of_the_vfs),
		T(a_range_stays_out_of_the_environment_where_a_file_can_make_it_narrower),
		T(a_family_stays_out_of_the_environment_unless_the_operator_says_it),
		T(joined_variables_stay_out_of_the_environment_where_pools_would_collide),
		T(pools_collide_when_two_early_ones_with_devices_set_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
