/* When directories of containers go that a lost ledger does not know: not before the kubelet has told who
 * runs. */
#include "unit/kubelet/machine.h"
#include "unit/kubelet/onrpc.h"

#include "base/arena.h"
#include "kubelet/keeper.h"
#include "kubelet/messages.h"
#include "kubelet/podres.h"
#include "kubelet/rundir.h"
#include "kubelet/sweeper.h"
#include "ledger/ledger.h"

#define MACHINE	 "numa:1 switch:1 gpu:1 pf:1 vf:4"
#define RESOURCE "rdma/vf"
#define NOTHING	 ((struct bytes) { NULL, 0 })

static struct pool_config pool_cfg = {
	.resource = RESOURCE, .prefix = "rdma", .name = "vf", .is_rdma = true
};
static const struct config cfg = { .pools = &pool_cfg, .n_pools = 1 };
static struct machine m;
static struct arena *a;
static struct rpc_server *server;
static struct podres *podres;
static struct keeper *k;
static struct rundir *rundir;
static struct sweeper *s;
static char *socket_path;
static const char *held; /* the VF that the kubelet says a container has; NULL none */
static bool fails;
static unsigned lists, wanted;

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct held holds = { RESOURCE, { &held, 1 } };
	struct pod_container c = { .name = "main", .held = &holds, .n_held = held ? 1 : 0 };
	struct pod pod = { "default", "p", &c, 1 };
	const struct pod_list list = { &pod, 1 };

	(void)ctx;
	(void)request;
	lists++;
	if (fails)
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	else
		rpc_reply(call, RPC_OK, NULL, msg_encode_pod_list(&list, true, rpc_call_arena(call)));
}

/* It is there: this kubelet is not too old for a List. */
static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	rpc_reply(call, RPC_UNKNOWN, "pod not found", NOTHING);
}

static int nobody(void *ctx, const char *rdma, unsigned *ret_users)
{
	(void)ctx;
	(void)rdma;
	*ret_users = 0;
	return 0;
}

static void sweep_fn(void *arg)
{
	(void)arg;
	sweeper_sweep(s);
}

static void begin(void *arg)
{
	static const struct rpc_method methods[] = { { .path = PATH_POD_LIST, .unary = on_list },
						     { .path = PATH_POD_GET, .unary = on_get } };
	bool asks = *(bool *)arg;

	assert_int_equal(rpc_server_open(rpc, socket_path, methods, 2, NULL, &server, NULL), 0);
	podres = podres_open(rpc, socket_path);
	k = keeper_new(rpc, ledger_new(), NULL, nobody, NULL);
	keeper_update(k, m.node);
	rundir = rundir_new(arena_printf(a, "%s/run", m.dir));
	s = sweeper_new(&(struct sweeper_env) { .rpc = rpc,
						.rundir = rundir,
						.keeper = k,
						.podres = asks ? podres : NULL,
						.patience_ms = 1 });
	sweeper_update(s, m.node);
}

static void end(void *arg)
{
	(void)arg;
	sweeper_free(STEAL(s));
	keeper_free(STEAL(k));
	rundir_free(STEAL(rundir));
	podres_close(STEAL(podres));
	rpc_server_close(STEAL(server), NULL, NULL);
}

static const char *vf(size_t i)
{
	return m.pool->devs[i].id;
}

static bool there(size_t i)
{
	return access(arena_printf(a, "%s/run/vf-%s", m.dir, vf(i)), F_OK) == 0;
}

static int set_up(void **state)
{
	struct rundir *before;

	(void)state;
	a = arena_new(0);
	m = machine_open(MACHINE, &cfg);
	socket_path = arena_printf(a, "%s/pods.sock", m.dir);
	held = NULL;
	fails = false;
	lists = 0;
	before = rundir_new(arena_printf(a, "%s/run", m.dir));
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(rundir_make(before, vf(i), NULL), 0);
	rundir_free(before);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	on_rpc(end, NULL);
	machine_close(&m);
	arena_free(a);
	return 0;
}

static void start(bool asks)
{
	on_rpc(begin, &asks);
}

static bool second_is_gone(void)
{
	return !there(1);
}

static bool enough_lists(void)
{
	return lists >= wanted;
}

static void who_runs_keeps_his_files_and_the_others_go(void **state)
{
	(void)state;
	held = vf(0);
	start(true);
	wait_until(second_is_gone);
	assert_true(there(0));
	assert_non_null(ledger_find(keeper_ledger(k), vf(0)));
	on_rpc(sweep_fn, NULL);
	assert_true(there(0));
}

static void a_kubelet_that_does_not_answer_is_asked_again(void **state)
{
	(void)state;
	fails = true;
	start(true);
	wanted = 3;
	wait_until(enough_lists);
	assert_true(there(0));
	assert_true(there(1));
}

static void where_nobody_tells_nothing_goes(void **state)
{
	(void)state;
	start(false);
	on_rpc(sweep_fn, NULL);
	assert_true(there(0));
	assert_true(there(1));
	assert_int_equal(lists, 0);
}

static void nobody_is_asked_when_nothing_is_left(void **state)
{
	(void)state;
	fixture_remove_tree(arena_printf(a, "%s/run", m.dir));
	start(true);
	for (int i = 0; i < 20; i++)
		on_rpc(sweep_fn, NULL);
	assert_int_equal(lists, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_runs_keeps_his_files_and_the_others_go),
		TEST(a_kubelet_that_does_not_answer_is_asked_again),
		TEST(where_nobody_tells_nothing_goes),
		TEST(nobody_is_asked_when_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
