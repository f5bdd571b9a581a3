/* Choices on whole machines: published shapes, odd requests, and what must hold for any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/mem.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/synth.h"
#include "topo/rails.h"

#define HGX	 "numa:2 root:4 switch:1 gpu:1 pf:1 vf:8"
#define DGX_A100 "numa:4 root:1 switch:1 gpu:2 pf:2 vf:4"
#define MI300X	 "numa:2 root:4 switch:1 sub:1 gpu:1 upf:1 vf:2"
#define P4D	 "numa:2 root:2 switch:1 gpu:2 pf:1 vf:4"

#define MAX_LIST 256

struct list {
	int v[MAX_LIST];
	size_t n;
};

/* A node with one pool of every VF, by hand: the solver reads nothing else. */
struct machine {
	struct arena *arena;
	struct hw_inventory *inv;
	struct topo *topo;
	struct pool_dev *devs;
	struct pool pool;
	struct node node;
};

static struct machine machine(const char *line)
{
	struct machine m = { .arena = arena_new(1 << 14), .inv = synth_inventory(line) };

	m.topo = topo_new(m.inv, NULL);
	m.node.inv = m.inv;
	m.node.topo = m.topo;
	m.pool.n_devs = synth_count_vfs(m.inv);
	m.devs = arena_array(m.arena, m.pool.n_devs, sizeof(*m.devs));
	m.pool.devs = m.devs;
	for (size_t i = 0; i < m.pool.n_devs; i++)
		m.devs[i] = (struct pool_dev) { .pci = synth_vf(m.inv, i),
						.rdma = -1,
						.healthy = true };
	return m;
}

static void machine_done(struct machine *m)
{
	topo_free(m->topo);
	hw_inventory_free(m->inv);
	arena_free(m->arena);
}
#define _cleanup_machine_ __attribute__((cleanup(machine_done)))

static struct list numbers(int from, int to)
{
	struct list l = { .n = 0 };

	for (int i = from; i < to; i++)
		l.v[l.n++] = i;
	return l;
}

static struct list gpus(const struct machine *m, int from, int to)
{
	struct list l = numbers(from, to);

	for (size_t i = 0; i < l.n; i++)
		l.v[i] = synth_gpu(m->inv, (size_t)l.v[i]);
	return l;
}

struct request {
	struct list available, must, gpus, busy;
	size_t want;
};

static struct choose_out choose(const struct machine *m, const struct request *r, bool runner_up)
{
	struct choose_in in = {
		.node = &m->node,
		.pool = &m->pool,
		.available = r->available.v,
		.n_available = r->available.n,
		.must = r->must.v,
		.n_must = r->must.n,
		.want = r->want,
		.gpus.v = r->gpus.v,
		.gpus.n = r->gpus.n,
		.busy_gpus.v = r->busy.v,
		.busy_gpus.n = r->busy.n,
	};

	return align_choose(&in, runner_up, m->arena);
}

/* GPUs [from, to) of a machine where all VFs are free. */
static struct request request(const struct machine *m, int from, int to, size_t want)
{
	return (struct request) {
		.available = numbers(0, (int)m->pool.n_devs),
		.gpus = gpus(m, from, to),
		.want = want,
	};
}

static int pf_of(const struct machine *m, int dev)
{
	int place = topo_place(m->topo, m->pool.devs[dev].pci);

	for (size_t i = 0;; i++)
		if (synth_pf(m->inv, i) == place)
			return (int)i;
}

static size_t count_pfs(const struct machine *m, const struct choose_out *out)
{
	size_t n = 0;

	for (size_t i = 0; i < out->n_chosen; i++)
		n += i == 0 || pf_of(m, out->chosen[i]) != pf_of(m, out->chosen[i - 1]);
	return n;
}

static void expect_devs(const struct choose_out *out, const int *devs, size_t n)
{
	assert_int_equal(out->n_chosen, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(out->chosen[i], devs[i]);
}
#define EXPECT_DEVS(out, ...)                                                                      \
	expect_devs(&(out), (const int[]) { __VA_ARGS__ },                                         \
		    ARRAY_LEN(((const int[]) { __VA_ARGS__ })))

static void prefers_vf_under_same_switch(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);

	(void)state;
	for (int g = 0; g < 8; g++) {
		struct request r = request(&m, g, g + 1, 1);
		struct choose_out out = choose(&m, &r, false);

		EXPECT_DEVS(out, g * 8);
		assert_int_equal(out.cost, 0);
		assert_int_equal(out.n_pairs, 1);
		assert_int_equal(out.pairs[0].gpu, synth_gpu(m.inv, (size_t)g));
		assert_int_equal(out.pairs[0].dev, g * 8);
		assert_int_equal(out.pairs[0].path.class, TOPO_PIX);
		assert_int_equal(out.pairs[0].path.bridges, 1);
	}
}

/* Both PFs are as near to the GPU: what decides is the rail, and the address where none is known.
 */
static void of_equal_pfs_the_lower_rail_is_taken(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:1 gpu:1 pf:2 vf:2");
	const struct topo_rail_name names[] = {
		{ m.inv->pci[synth_pf(m.inv, 0)].netdev, 3, false, 0 },
		{ m.inv->pci[synth_pf(m.inv, 1)].netdev, 2, false, 0 }
	};
	struct request r = request(&m, 0, 1, 1);
	struct choose_out out = choose(&m, &r, false);
	struct topo_rails *rails = topo_rails_new(m.topo, names, 2);

	(void)state;
	EXPECT_DEVS(out, 0);
	m.node.rails = rails;
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 2);
	r.gpus.n = 0; /* also where the VFs come first */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 2);
	r.want = 3; /* still in the order of the pool */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0, 2, 3);
	topo_rails_free(rails);
}

static void eight_gpus_get_one_vf_of_each_pf(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 0, 8, 8);
	struct choose_out out = choose(&m, &r, false);

	(void)state;
	EXPECT_DEVS(out, 0, 8, 16, 24, 32, 40, 48, 56);
	assert_int_equal(out.cost, 0);
}

/* VF 0 of PF 0 is taken, VF 1 of PF 1: index 2 is the lowest that all have. */
static void the_same_vf_index_is_taken_on_every_pf(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 0, 2, 2);
	struct choose_out out;

	(void)state;
	r.available.n = 0;
	for (int i = 0; i < 16; i++)
		if (i != 0 && i != 9)
			r.available.v[r.available.n++] = i;
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 2, 10);
}

/* The port of a VF as the host sees it. NULL: not known. */
static void set_port(const struct machine *m, int dev, const char *state)
{
	struct hw_port *port = arena_alloc(m->arena, sizeof(*port));
	int rdma = hw_find_rdma(m->inv, m->pool.devs[dev].pci);

	*port = (struct hw_port) { .number = 1, .state = state };
	m->inv->rdma[rdma].ports = port;
	m->inv->rdma[rdma].n_ports = 1;
}

static void a_vf_whose_port_is_down_comes_last(void **state)
{
	_cleanup_machine_ struct machine m = machine("numa:1 switch:1 gpu:1 pf:2 vf:3");
	struct request r = request(&m, 0, 1, 1);
	struct choose_out out;

	(void)state;
	for (int i = 0; i < 6; i++)
		set_port(&m, i, "DOWN");
	out = choose(&m, &r, false);
	expect_devs(&out, (const int[]) { 0 }, 1); /* none is better */
	set_port(&m, 2, "ACTIVE");
	out = choose(&m, &r, false);
	expect_devs(&out, (const int[]) { 2 }, 1);
	set_port(&m, 1, NULL);
	out = choose(&m, &r, false);
	expect_devs(&out, (const int[]) { 1 }, 1); /* what is not known may be up */
	r.want = 2;
	set_port(&m, 5, "ACTIVE");
	out = choose(&m, &r, false);
	expect_devs(&out, (const int[]) { 2, 5 }, 2); /* one of each PF, and the same VF index */
}

static void a_must_vf_leads_the_index(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 0, 4, 4);
	struct choose_out out;

	(void)state;
	r.must = numbers(5, 6);
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 5, 13, 21, 29);
}

static void a_pair_of_gpus_gets_both_nics_of_its_switch(void **state)
{
	_cleanup_machine_ struct machine m = machine(DGX_A100);
	struct request r = request(&m, 2, 4, 2);
	struct choose_out out = choose(&m, &r, false);

	(void)state;
	EXPECT_DEVS(out, 8, 12);
	assert_int_equal(out.cost, 0);
	assert_int_equal(out.pairs[0].dev, 8);
	assert_int_equal(out.pairs[1].dev, 12);
}

/* Containers of one VF: the second goes to the switch's other NIC. */
static void containers_spread_over_equal_pfs(void **state)
{
	_cleanup_machine_ struct machine m = machine(DGX_A100);
	struct request r = request(&m, 1, 2, 1);
	struct choose_out out;

	(void)state;
	r.available = numbers(1, 32);
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 4);
}

static void a_nic_one_level_up_is_still_the_best(void **state)
{
	_cleanup_machine_ struct machine m = machine(MI300X);
	struct request r = request(&m, 0, 8, 8);
	struct choose_out out = choose(&m, &r, false);

	(void)state;
	EXPECT_DEVS(out, 0, 2, 4, 6, 8, 10, 12, 14);
	assert_int_equal(out.cost, 8);
	assert_int_equal(out.pairs[7].path.class, TOPO_PXB);
}

/* Two GPUs share a NIC: distance comes before one VF per PF. */
static void two_gpus_of_a_shared_nic_get_two_of_its_vfs(void **state)
{
	_cleanup_machine_ struct machine m = machine(P4D);
	struct request r = request(&m, 2, 4, 2);
	struct choose_out out = choose(&m, &r, false);

	(void)state;
	EXPECT_DEVS(out, 4, 5);
	assert_int_equal(out.cost, 0);
}

static void the_numa_node_counts_where_nothing_is_closer(void **state)
{
	_cleanup_machine_ struct machine m = machine("numa:2 root:2 gpu:1 pf:1 vf:2");
	struct request r = request(&m, 3, 4, 1);
	struct choose_out out;

	(void)state;
	r.available = numbers(0, 6); /* not the NIC of its own root complex */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 4);
	assert_int_equal(out.pairs[0].path.class, TOPO_NODE);
	assert_int_equal(out.cost, 3);
}

static void unequal_numbers_are_balanced(void **state)
{
	static const struct {
		const char *line;
		int gpus;
		size_t want, pairs, pfs;
		int cost;
	} rows[] = {
		{ DGX_A100, 4, 2, 4, 2, 0 }, /* one VF for each switch, for two GPUs each */
		{ DGX_A100, 2, 4, 4, 2, 0 }, /* two on each NIC of the switch */
		{ HGX, 2, 4, 4, 2, 0 },	     /* distance comes before one VF per PF */
		{ HGX, 4, 2, 4, 2, 6 },	     /* two PIX, two NODE */
		{ HGX, 3, 2, 3, 2, 3 },	     /* loads 2 and 1 */
		{ HGX, 1, 8, 8, 1, 0 },	     /* all VFs of its own PF */
		{ HGX, 8, 1, 8, 1, 25 },     /* one PIX, three NODE, four SYS */
		{ P4D, 8, 4, 8, 4, 0 },
		{ P4D, 8, 3, 8, 3,
		  7 }, /* 3 + 3 + 2: two VFs take one of the fourth switch's GPUs, NODE and SYS */
		{ HGX, 8, 7, 8, 7, 3 },
		{ HGX, 7, 9, 9, 7, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_machine_ struct machine m = machine(rows[i].line);
		struct request r = request(&m, 0, rows[i].gpus, rows[i].want);
		struct choose_out out = choose(&m, &r, false);

		assert_int_equal(out.n_chosen, rows[i].want);
		assert_int_equal(out.n_pairs, rows[i].pairs);
		assert_int_equal(out.cost, rows[i].cost);
		assert_int_equal(count_pfs(&m, &out), rows[i].pfs);
	}
}

/* The NIC beside GPU 0 has nothing left. GPU 1 is free, GPU 2 is not: its NIC's VF harms nobody. */
static void vfs_beside_free_gpus_are_kept(void **state)
{
	_cleanup_machine_ struct machine m = machine("switch:4 gpu:1 pf:1 vf:1");
	struct request r = request(&m, 0, 1, 1);
	struct choose_out out;

	(void)state;
	r.available = numbers(1, 4);
	r.busy = gpus(&m, 2, 3);
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 2);
}

static void without_gpus_a_group_that_fits_is_taken(void **state)
{
	_cleanup_machine_ struct machine m = machine(DGX_A100);
	struct request r = request(&m, 0, 0, 2);
	struct choose_out out;

	(void)state;
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0, 4);
	assert_int_equal(out.n_pairs, 0);
	r.busy = gpus(&m, 0, 1); /* half of the first switch: another is whole */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 8, 12);
	r.want = 1; /* the half one is the closest fit */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0);
}

static void without_gpus_vfs_are_taken_beside_free_gpus(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 0, 0, 2);
	struct choose_out out;

	(void)state;
	r.busy = gpus(&m, 0, 6);
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 48, 56);
	r.busy = gpus(&m, 1, 3); /* GPUs 0 and 3 fit, the other node stays whole */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0, 24);
}

static void without_gpus_must_vfs_are_joined(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 0, 0, 4);
	struct choose_out out;

	(void)state;
	r.must = numbers(57, 58);
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 33, 41, 49, 57);
}

static void without_any_gpu_one_node_is_packed_and_its_pfs_spread(void **state)
{
	_cleanup_machine_ struct machine m = machine("numa:2 root:2 switch:1 pf:1 vf:4");
	struct request r = request(&m, 0, 0, 2);
	struct choose_out out;

	(void)state;
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0, 4);
	r.want = 6; /* five fit on neither PF alone, six on one node */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0, 1, 2, 4, 5, 6);
	r.available = numbers(4, 16); /* only one node has six */
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 8, 9, 10, 12, 13, 14);
}

static void the_size_is_clamped(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 0, 2, 100);
	struct choose_out out;

	(void)state;
	r.available = numbers(3, 7);
	out = choose(&m, &r, true);
	EXPECT_DEVS(out, 3, 4, 5, 6);
	assert_int_equal(out.n_runner_up, 0);
	r.want = 1;
	r.must = numbers(4, 6);
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 4, 5);
	r.want = 0;
	r.must.n = 0;
	out = choose(&m, &r, true);
	assert_int_equal(out.n_chosen, 0);
	r.available.n = 0;
	r.want = 2;
	out = choose(&m, &r, true);
	assert_int_equal(out.n_chosen, 0);
	assert_int_equal(out.n_pairs, 0);
}

static void the_runner_up_uses_other_pfs(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 1, 2, 1);
	struct choose_out out = choose(&m, &r, true);

	(void)state;
	EXPECT_DEVS(out, 8);
	assert_int_equal(out.n_runner_up, 1);
	assert_int_equal(out.runner_up[0], 0);
	assert_int_equal(out.runner_up_cost, 3);
}

static void decided_vfs_are_paired_with_the_nearest_gpus(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct list two = gpus(&m, 3, 5);
	const int swapped[] = { two.v[1], two.v[0] }, devs[] = { 33, 25 };
	struct choose_in in = { .node = &m.node, .pool = &m.pool, .gpus.v = swapped, .gpus.n = 2 };
	struct choose_out out = align_pairs(&in, devs, 2, m.arena);

	(void)state;
	EXPECT_DEVS(out, 25, 33);
	assert_int_equal(out.n_pairs, 2);
	assert_int_equal(out.pairs[0].gpu, two.v[0]);
	assert_int_equal(out.pairs[0].dev, 25);
	assert_int_equal(out.pairs[1].dev, 33);
	assert_int_equal(out.cost, 0);
	in.gpus.n = 0;
	assert_int_equal(align_pairs(&in, devs, 2, m.arena).n_pairs, 0);
}

/* Of three GPUs one is a function that is known: two VFs are for the others, wherever they are. */
static void gpus_that_are_partly_known_get_their_part(void **state)
{
	static const struct {
		size_t known, unknown, want, pairs;
	} rows[] = { { 1, 2, 3, 1 }, { 1, 1, 2, 1 }, { 2, 1, 3, 2 }, { 1, 3, 8, 2 },
		     { 1, 7, 1, 1 }, { 2, 6, 8, 2 }, { 3, 0, 3, 3 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_machine_ struct machine m = machine(MI300X);
		struct list gpu = gpus(&m, 0, (int)rows[i].known),
			    free = numbers(0, (int)m.pool.n_devs);
		struct choose_in in = { .node = &m.node,
					.pool = &m.pool,
					.available = free.v,
					.n_available = free.n,
					.want = rows[i].want,
					.gpus = { gpu.v, gpu.n, rows[i].unknown } };
		struct choose_out out = align_choose(&in, true, m.arena), again;

		assert_int_equal(out.n_chosen, rows[i].want);
		assert_int_equal(out.n_pairs, rows[i].pairs);
		for (size_t k = 0; k < out.n_pairs; k++)
			assert_int_equal(out.pairs[k].path.class, TOPO_PXB);
		for (size_t k = 1; k < out.n_chosen; k++)
			assert_true(out.chosen[k - 1] < out.chosen[k]);
		again = align_pairs(&in, out.chosen, out.n_chosen, m.arena);
		assert_int_equal(again.n_chosen, rows[i].want);
		assert_int_equal(again.n_pairs, rows[i].pairs);
		assert_int_equal(again.cost, out.cost);
	}
}

static void a_vanished_device_is_far_from_everything(void **state)
{
	_cleanup_machine_ struct machine m = machine(HGX);
	struct request r = request(&m, 0, 1, 1);
	struct choose_out out;

	(void)state;
	m.devs[0].pci = -1;
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 1);
	r.must = numbers(0, 1);
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0);
	assert_int_equal(out.cost, 4);
	assert_int_equal(out.pairs[0].path.class, TOPO_SYS);
	r.gpus.n = 0;
	out = choose(&m, &r, false);
	EXPECT_DEVS(out, 0);
}

/* Passed-through VFs on a flattened machine: the nodes are all there is. */
static void vfs_without_pfs_are_spread_by_node(void **state)
{
	_cleanup_machine_ struct machine m =
		machine("numa:2 root:4 gpu:1 pf:1 vf:1 flat nopf hyper");
	struct request r = request(&m, 4, 8, 4);
	struct choose_out out = choose(&m, &r, false);

	(void)state;
	EXPECT_DEVS(out, 4, 5, 6, 7);
	assert_int_equal(out.cost, 8); /* own root complex: PHB each */
}

static uint64_t seed = 7;

static int roll(int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)((seed >> 33) % (uint64_t)n);
}

static void shuffle(struct list *l)
{
	for (size_t i = l->n; i > 1; i--) {
		size_t k = (size_t)roll((int)i);
		int swap = l->v[i - 1];

		l->v[i - 1] = l->v[k];
		l->v[k] = swap;
	}
}

static struct list some(const struct list *l, int one_in)
{
	struct list out = { .n = 0 };

	for (size_t i = 0; i < l->n; i++)
		if (roll(one_in) == 0)
			out.v[out.n++] = l->v[i];
	return out;
}

static struct request random_request(const struct machine *m)
{
	struct list all_gpus = gpus(m, 0, (int)m->inv->n_gpu),
		    all = numbers(0, (int)m->pool.n_devs);
	struct request r = { .want = (size_t)roll(10) };
	int one_in = 1 + roll(4);

	r.available = some(&all, 1 + roll(3));
	r.must = some(&r.available, 12);
	for (size_t i = 0; i < all_gpus.n; i++) {
		struct list *to = roll(one_in) == 0 ? &r.gpus : &r.busy;

		if (to == &r.gpus || roll(2))
			to->v[to->n++] = all_gpus.v[i];
	}
	if (roll(6) == 0)
		r.gpus.n = 0;
	return r;
}

static void check_request(const struct request *r, const struct choose_out *out)
{
	size_t size = r->want < r->available.n ? r->want : r->available.n, found = 0;

	assert_int_equal(out->n_chosen, size > r->must.n ? size : r->must.n);
	for (size_t i = 0; i < out->n_chosen; i++) {
		bool known = false;

		for (size_t k = 0; k < r->available.n; k++)
			known = known || r->available.v[k] == out->chosen[i];
		for (size_t k = 0; k < r->must.n; k++)
			found += r->must.v[k] == out->chosen[i];
		assert_true(known && (i == 0 || out->chosen[i - 1] < out->chosen[i]));
	}
	assert_int_equal(found, r->must.n);
}

static void expect_same(const struct choose_out *a, const struct choose_out *b)
{
	assert_int_equal(a->cost, b->cost);
	assert_int_equal(a->n_pairs, b->n_pairs);
	expect_devs(a, b->chosen, b->n_chosen);
	assert_int_equal(a->n_runner_up, b->n_runner_up);
	for (size_t i = 0; i < a->n_runner_up; i++)
		assert_int_equal(a->runner_up[i], b->runner_up[i]);
	for (size_t i = 0; i < a->n_pairs; i++) {
		assert_int_equal(a->pairs[i].gpu, b->pairs[i].gpu);
		assert_int_equal(a->pairs[i].dev, b->pairs[i].dev);
	}
}

static void the_order_of_the_lists_is_without_influence(void **state)
{
	static const char *const lines[] = { HGX,
					     DGX_A100,
					     MI300X,
					     P4D,
					     "numa:0 root:3 gpu:2 pf:2 vf:3",
					     "numa:2 gpu:3 pf:1 vf:6; numa:0 gpu:1 pf:1 vf:2" };

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(lines); l++) {
		_cleanup_machine_ struct machine m = machine(lines[l]);

		for (int i = 0; i < 150; i++) {
			struct request r = random_request(&m);
			struct choose_out first = choose(&m, &r, true), second;

			check_request(&r, &first);
			shuffle(&r.available);
			shuffle(&r.must);
			shuffle(&r.gpus);
			shuffle(&r.busy);
			second = choose(&m, &r, true);
			expect_same(&second, &first);
		}
	}
}

/* 64 GPUs, 16 × 127 VFs, and as many wanted as there are or half the GPUs: ends, and is valid. */
static void large_machines_are_answered(void **state)
{
	static const size_t wants[] = { 1, 5, 32, 40, 63, 64, 100, 2032 };
	_cleanup_machine_ struct machine m = machine("numa:4 root:4 switch:1 gpu:4 pf:1 vf:127");
	_cleanup_free_ int *all = xcalloc(m.pool.n_devs, sizeof(*all));
	struct list g = gpus(&m, 0, 64);

	(void)state;
	for (size_t i = 0; i < m.pool.n_devs; i++)
		all[i] = (int)i;
	for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
		struct choose_in in = { .node = &m.node,
					.pool = &m.pool,
					.available = all,
					.n_available = m.pool.n_devs,
					.want = wants[i],
					.gpus.v = g.v,
					.gpus.n = g.n };
		struct choose_out out = align_choose(&in, false, m.arena);

		assert_int_equal(out.n_chosen, wants[i]);
		assert_int_equal(out.n_pairs, wants[i] > 64 ? wants[i] : 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefers_vf_under_same_switch),
		cmocka_unit_test(of_equal_pfs_the_lower_rail_is_taken),
		cmocka_unit_test(eight_gpus_get_one_vf_of_each_pf),
		cmocka_unit_test(the_same_vf_index_is_taken_on_every_pf),
		cmocka_unit_test(a_vf_whose_port_is_down_comes_last),
		cmocka_unit_test(a_must_vf_leads_the_index),
		cmocka_unit_test(a_pair_of_gpus_gets_both_nics_of_its_switch),
		cmocka_unit_test(containers_spread_over_equal_pfs),
		cmocka_unit_test(a_nic_one_level_up_is_still_the_best),
		cmocka_unit_test(two_gpus_of_a_shared_nic_get_two_of_its_vfs),
		cmocka_unit_test(the_numa_node_counts_where_nothing_is_closer),
		cmocka_unit_test(unequal_numbers_are_balanced),
		cmocka_unit_test(vfs_beside_free_gpus_are_kept),
		cmocka_unit_test(without_gpus_a_group_that_fits_is_taken),
		cmocka_unit_test(without_gpus_vfs_are_taken_beside_free_gpus),
		cmocka_unit_test(without_gpus_must_vfs_are_joined),
		cmocka_unit_test(without_any_gpu_one_node_is_packed_and_its_pfs_spread),
		cmocka_unit_test(the_size_is_clamped),
		cmocka_unit_test(the_runner_up_uses_other_pfs),
		cmocka_unit_test(decided_vfs_are_paired_with_the_nearest_gpus),
		cmocka_unit_test(gpus_that_are_partly_known_get_their_part),
		cmocka_unit_test(a_vanished_device_is_far_from_everything),
		cmocka_unit_test(vfs_without_pfs_are_spread_by_node),
		cmocka_unit_test(the_order_of_the_lists_is_without_influence),
		cmocka_unit_test(large_machines_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
