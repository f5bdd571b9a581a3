/*
 * Rails in NCCL_IB_HCA and device-info: what is written, and what each release of NCCL and its
 * relatives makes of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render.h"
#include "support/synth.h"
#include "topo/rails.h"
#include "topo/topo.h"

/* Two PFs near two GPUs, a VF each. */
#define MACHINE "numa:1 root:2 switch:1 gpu:1 pf:1 vf:1"
#define VFS_MAX 16

struct bench {
	struct arena *arena;
	struct hw_inventory *inv;
	struct topo *topo;
	struct topo_rails *rails;
	struct pool_config cfg;
	struct pool_dev devs[VFS_MAX];
	struct pool pool;
	struct node node;
	struct grant_dev grant_devs[VFS_MAX];
	struct grant grant;
};

/* name NULL: counted by the GPUs; else the PFs' names and rails, as many as there are. */
static struct bench *bench_new(const char *line, enum nccl_rails said,
			       const struct topo_rail_name *names, size_t n)
{
	struct bench *b = xcalloc(1, sizeof(*b));
	size_t n_devs = n > 2 ? n : 2;

	b->arena = arena_new(4096);
	b->inv = synth_inventory(line);
	b->topo = topo_new(b->inv, NULL);
	b->rails = topo_rails_new(b->topo, names, n);
	b->cfg = (struct pool_config) { .resource = "rdma/vf",
					.prefix = "rdma",
					.name = "vf",
					.is_rdma = true,
					.profiles = PROFILE_NCCL,
					.roce_version = 2,
					.pkey = -1,
					.nccl_rails = said };
	for (size_t i = 0; i < n_devs; i++) {
		int pci = synth_vf(b->inv, i), rdma = hw_find_rdma(b->inv, pci);
		char *id = arena_alloc(b->arena, BDF_STRLEN);

		b->devs[i] = (struct pool_dev) { .id = bdf_format(b->inv->pci[pci].bdf, id),
						 .pci = pci,
						 .rdma = rdma,
						 .healthy = true };
		b->grant_devs[i] = (struct grant_dev) { .dev = &b->devs[i],
							.rdma = b->inv->rdma[rdma].name,
							.uverbs = b->inv->rdma[rdma].uverbs };
	}
	b->pool = (struct pool) { &b->cfg, b->devs, n_devs };
	b->node = (struct node) {
		.inv = b->inv, .topo = b->topo, .rails = b->rails, .pools = &b->pool, .n_pools = 1
	};
	b->grant = (struct grant) {
		.node = &b->node, .pool = &b->pool, .devs = b->grant_devs, .n_devs = n_devs
	};
	return b;
}

static void bench_free(struct bench **b)
{
	topo_rails_free((*b)->rails);
	topo_free((*b)->topo);
	hw_inventory_free((*b)->inv);
	arena_free((*b)->arena);
	free(*b);
}
#define _cleanup_bench_ __attribute__((cleanup(bench_free)))

static const char *hca_list(struct bench *b)
{
	struct err err = { 0 };
	struct edits e;

	assert_int_equal(render_grant(&b->grant, b->arena, &e, &err), 0);
	for (size_t i = 0; i < e.n_envs; i++) {
		if (!strcmp(e.envs[i].key, "NCCL_IB_HCA"))
			return e.envs[i].value;
	}
	fail_msg("there is no NCCL_IB_HCA");
	return NULL;
}

static const char *hcas(enum nccl_rails said, const struct topo_rail_name *names, size_t n,
			struct arena *arena)
{
	_cleanup_bench_ struct bench *b = bench_new(MACHINE, said, names, n);

	return arena_strdup(arena, hca_list(b));
}

static const struct topo_rail_name two_rails[] = { { "mlx5_0", 5, false, 0 },
						   { "mlx5_2", 2, false, 0 } };
static const struct topo_rail_name two_planes[] = { { "mlx5_0", 7, false, 0 },
						    { "mlx5_2", 7, false, 0 } };
static const struct topo_rail_name one_named[] = { { "mlx5_2", 0, false, 0 } };
static const struct topo_rail_name other_planes[] = { { "mlx5_0", 7, true, 1 },
						      { "mlx5_2", 7, true, 0 } };
static const struct topo_rail_name one_plane[] = { { "mlx5_0", 4, true, 1 },
						   { "mlx5_2", 5, true, 1 } };

static void rails_are_said_where_they_are_named_or_asked_for(void **state)
{
	static const struct {
		enum nccl_rails said;
		const struct topo_rail_name *names;
		size_t n;
		const char *want;
	} rows[] = {
		{ NCCL_RAILS_AUTO, NULL, 0, "=mlx5_1:1,mlx5_3:1" },
		{ NCCL_RAILS_ALWAYS, NULL, 0, "=mlx5_1:1:0,mlx5_3:1:1" },
		{ NCCL_RAILS_NEVER, NULL, 0, "=mlx5_1:1,mlx5_3:1" },
		{ NCCL_RAILS_AUTO, two_rails, 2, "=mlx5_1:1:5,mlx5_3:1:2" },
		{ NCCL_RAILS_NEVER, two_rails, 2, "=mlx5_1:1,mlx5_3:1" },
		{ NCCL_RAILS_AUTO, two_planes, 2, "=mlx5_1:1:7:0,mlx5_3:1:7:1" },
		{ NCCL_RAILS_AUTO, other_planes, 2, "=mlx5_1:1:7:1,mlx5_3:1:7:0" },
		{ NCCL_RAILS_AUTO, one_plane, 2, "=mlx5_1:1:4:1,mlx5_3:1:5:1" },
		{ NCCL_RAILS_AUTO, one_named, 1, "=mlx5_1:1,mlx5_3:1:0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_arena_ struct arena *arena = arena_new(256);

		assert_string_equal(hcas(rows[i].said, rows[i].names, rows[i].n, arena),
				    rows[i].want);
	}
}

/* NCCL 2.30.7 ends when a container's NICs have more than 12 planes. */
static void more_planes_than_nccl_takes_are_left_out(void **state)
{
	static const struct {
		size_t vfs, planes;
		bool told;
	} rows[] = { { 12, 12, true }, { 13, 13, false }, { 16, 16, false }, { 16, 12, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct topo_rail_name names[VFS_MAX];
		_cleanup_bench_ struct bench *b = NULL;
		_cleanup_arena_ struct arena *arena = arena_new(256);
		const char *const *notes;
		struct container c = { .n = 1 };
		struct edits e;
		size_t n_notes;
		bool noted = false;

		for (size_t k = 0; k < rows[i].vfs; k++)
			names[k] = (struct topo_rail_name) {
				.nic = arena_printf(arena, "mlx5_%zu", 2 * k),
				.rail = (int)(k / rows[i].planes),
				.has_plane = true,
				.plane = (int)(k % rows[i].planes),
			};
		b = bench_new("numa:1 root:16 switch:1 gpu:1 pf:1 vf:1", NCCL_RAILS_AUTO, names,
			      rows[i].vfs);
		c.grants = &b->grant;
		assert_int_equal(render_container(&c, b->arena, &e, &notes, &n_notes, NULL), 0);
		for (size_t k = 0; k < n_notes; k++)
			noted |= strstr(notes[k], "more than 12 planes") != NULL;
		assert_int_equal(noted, !rows[i].told);
		assert_int_equal(strstr(hca_list(b), "mlx5_5:1:0:2") != NULL, rows[i].told);
		assert_non_null(strstr(hca_list(b), "mlx5_5:1:0"));
	}
}

/* --- distances --- */

static const char *note_with(struct bench *b, const char *part)
{
	struct container c = { .grants = &b->grant, .n = 1 };
	const char *const *notes;
	struct edits e;
	size_t n;

	assert_int_equal(render_container(&c, b->arena, &e, &notes, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		if (strstr(notes[i], part))
			return notes[i];
	}
	return NULL;
}

static void a_vf_that_nccl_does_not_use_is_told(void **state)
{
	_cleanup_bench_ struct bench *b = bench_new(MACHINE, NCCL_RAILS_NEVER, NULL, 0);
	int near = synth_gpu(b->inv, 0), far = synth_gpu(b->inv, 1);
	struct choose_pair pairs[] = { { near, 0, topo_between(b->topo, near, b->devs[0].pci) },
				       { near, 1, topo_between(b->topo, near, b->devs[1].pci) },
				       { far, 1, topo_between(b->topo, far, b->devs[1].pci) } };
	const char *note;

	(void)state;
	b->grant.pairs = pairs;
	assert_null(note_with(b, "NCCL does not use")); /* no GPU is known */
	b->grant.n_pairs = 2;
	note = note_with(b, "NCCL does not use it");
	assert_non_null(note);
	assert_non_null(strstr(note, b->devs[1].id));
	assert_null(strstr(note, b->devs[0].id));
	b->grant.n_pairs = 3; /* the second GPU is beside it */
	assert_null(note_with(b, "NCCL does not use"));
	b->grant.n_pairs = 2;
	b->inv->pci[b->devs[0].pci].rate_mbps = 25000; /* bandwidth comes before distance */
	assert_null(note_with(b, "NCCL does not use"));
	b->inv->pci[b->devs[0].pci].rate_mbps = 0;
	b->grant.n_devs = 1;
	assert_null(note_with(b, "NCCL does not use"));
}

/* Only where more VFs would bring some of them nearer. */
static void gpus_that_share_too_few_vfs_are_told(void **state)
{
	_cleanup_bench_ struct bench *b =
		bench_new("numa:1 root:3 switch:1 gpu:2 pf:1 vf:1", NCCL_RAILS_NEVER, NULL, 0);
	struct choose_pair pairs[6];
	const char *note;

	(void)state;
	for (int i = 0; i < 6; i++) {
		int gpu = synth_gpu(b->inv, i);

		pairs[i] =
			(struct choose_pair) { gpu, 0, topo_between(b->topo, gpu, b->devs[0].pci) };
	}
	b->grant.pairs = pairs;
	b->grant.n_devs = 1;
	b->grant.n_pairs = 2; /* one for two: as is recommended */
	assert_null(note_with(b, "share"));
	b->grant.n_pairs = 5;
	note = note_with(b, "5 GPUs share 1 VF, and 3 of them are far from it");
	assert_non_null(note);
	b->grant.n_devs = 2;
	note = note_with(b, "5 GPUs share 2 VFs, and 1 of them is far from all");
	assert_non_null(note);
	b->grant.n_pairs = 4;
	assert_null(note_with(b, "share"));
}

/* NODE is no class of NCCL's, so both are equally far. */
static void a_vf_of_the_same_node_is_as_far_as_one_of_the_same_root_to_nccl(void **state)
{
	_cleanup_bench_ struct bench *b =
		bench_new("numa:1 root:2 gpu:1 pf:1 vf:1", NCCL_RAILS_NEVER, NULL, 0);
	int gpu = synth_gpu(b->inv, 0);
	struct choose_pair pairs[] = { { gpu, 0, topo_between(b->topo, gpu, b->devs[0].pci) },
				       { gpu, 1, topo_between(b->topo, gpu, b->devs[1].pci) } };

	(void)state;
	assert_int_equal(pairs[0].path.class, TOPO_PHB);
	assert_int_equal(pairs[1].path.class, TOPO_NODE);
	b->grant.pairs = pairs;
	b->grant.n_pairs = 2;
	assert_null(note_with(b, "NCCL does not use"));
}

/* --- the readers --- */

struct entry {
	char name[64];
	int port, rail, plane; /* -1: any, not known */
};

/* A comma ends an entry. The port follows the first colon; whatever follows that is passed over. */
static size_t read_port_only(const char *list, struct entry *ret)
{
	size_t n = 0;

	for (size_t len; *list; list += len + (list[len] == ',')) {
		size_t name = strcspn(list, ":,");

		len = strcspn(list, ",");
		if (!name)
			continue;
		ret[n] = (struct entry) { "", -1, -1, -1 };
		memcpy(ret[n].name, list, name);
		if (list[name] == ':')
			ret[n].port = atoi(list + name + 1);
		n++;
	}
	return n;
}

/* A field that is empty or missing is not known. */
static int field(const char *entry, size_t len, int which)
{
	const char *at = entry, *end = entry + len;

	for (; which && at; which--) {
		at = memchr(at, ':', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return !at || at == end || *at == ':' ? -1 : atoi(at);
}

static size_t read_rails(const char *list, struct entry *ret)
{
	size_t n = read_port_only(list, ret), i = 0;

	for (size_t len; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (!strcspn(list, ":,"))
			continue;
		ret[i].port = field(list, len, 1);
		ret[i].rail = field(list, len, 2);
		ret[i++].plane = field(list, len, 3);
	}
	return n;
}

/* Who reads the variable, and how; docs/design/nccl.md §1.1. */
static const struct reader {
	const char *releases;
	size_t (*read)(const char *list, struct entry *ret);
} readers[] = {
	{ "NCCL 2.3.5", read_port_only },
	{ "NCCL 2.5.6 to 2.30.4", read_port_only },
	{ "NCCL 2.30.7", read_rails },
	{ "RCCL", read_port_only },
	{ "nccl-rdma-sharp-plugins", read_port_only },
};

static void every_release_takes_the_same_ports_and_2_30_7_the_rails(void **state)
{
	_cleanup_arena_ struct arena *arena = arena_new(256);
	const char *plain = hcas(NCCL_RAILS_NEVER, two_planes, 2, arena);
	const char *rich = hcas(NCCL_RAILS_AUTO, two_planes, 2, arena);
	const char *part = hcas(NCCL_RAILS_AUTO, one_named, 1, arena);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
		bool knows = readers[i].read == read_rails;
		struct entry before[4], got[4], half[4];

		print_message("%s\n", readers[i].releases);
		/* behind the '=', which all of them take first */
		assert_int_equal(readers[i].read(plain + 1, before), 2);
		assert_int_equal(readers[i].read(rich + 1, got), 2);
		assert_int_equal(readers[i].read(part + 1, half), 2);
		for (int k = 0; k < 2; k++) {
			assert_string_equal(got[k].name, before[k].name);
			assert_string_equal(half[k].name, before[k].name);
			assert_int_equal(got[k].port, 1);
			assert_int_equal(half[k].port, before[k].port);
			assert_int_equal(before[k].rail, -1);
			assert_int_equal(got[k].rail, knows ? 7 : -1);
			assert_int_equal(got[k].plane, knows ? k : -1);
			assert_int_equal(half[k].rail, knows && k == 1 ? 0 : -1);
			assert_int_equal(half[k].plane, -1);
		}
	}
}

/* --- device-info --- */

static void device_info_has_the_rail_in_an_object_of_its_own(void **state)
{
	_cleanup_bench_ struct bench *planes = bench_new(MACHINE, NCCL_RAILS_NEVER, two_planes, 2);
	_cleanup_bench_ struct bench *one = bench_new(MACHINE, NCCL_RAILS_AUTO, one_named, 1);
	const char *text;

	(void)state;
	text = render_devinfo(&planes->node, &planes->pool, &planes->devs[1], planes->arena);
	assert_non_null(strstr(text, "},\"railmate\":{\"rail\":7,\"plane\":1}}"));
	text = render_devinfo(&one->node, &one->pool, &one->devs[1], one->arena);
	assert_non_null(strstr(text, "},\"railmate\":{\"rail\":0}}"));
	text = render_devinfo(&one->node, &one->pool, &one->devs[0], one->arena);
	assert_null(strstr(text, "railmate"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rails_are_said_where_they_are_named_or_asked_for),
		cmocka_unit_test(a_vf_that_nccl_does_not_use_is_told),
		cmocka_unit_test(gpus_that_share_too_few_vfs_are_told),
		cmocka_unit_test(a_vf_of_the_same_node_is_as_far_as_one_of_the_same_root_to_nccl),
		cmocka_unit_test(more_planes_than_nccl_takes_are_left_out),
		cmocka_unit_test(every_release_takes_the_same_ports_and_2_30_7_the_rails),
		cmocka_unit_test(device_info_has_the_rail_in_an_object_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
