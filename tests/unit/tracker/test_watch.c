/* When the tracker asks the kubelet by itself: Get of each pod, a List where that does not help. */
#include "unit/tracker/tracking.h"

#include "kubeclient/podres.h"
#include "kubepeer/kubepeer.h"

enum kubelet { HAS_GET, GET_IS_OFF, OLD };

static struct {
	enum kubelet kubelet;
	struct rpc_server *server;
	struct podres *podres;
	const char *alive; /* the one pod, with vf[0] and vf[2] */
	bool hangs;	   /* Get is not answered before the end */
	struct rpc_call *hung;
	unsigned gets, lists;
	size_t most_pods; /* that the tracker had counted when it asked */
	bool pauses;	  /* after the first question for q1: for ever, if that is the pace */
} world;

static const char *const world_says_no = "pod x in namespace default not found";

static struct pod living_pod(void)
{
	struct pod_list list = SAYS({ world.alive, vf[0] });
	struct ids *ids = &list.v[0].containers[0].held[0].ids;

	ids->v = arena_array(arena, 2, sizeof(*ids->v));
	ids->v[0] = vf[0];
	ids->v[1] = vf[2];
	ids->n = 2;
	return list.v[0];
}

static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *mine = rpc_call_arena(call);
	struct pod pod = living_pod();
	const char *ns, *pod_name;

	(void)ctx;
	assert_int_equal(peer_decode_pod_get_request(request, mine, &ns, &pod_name, NULL), 0);
	world.gets += *pod_name != '\0';
	if (world.most_pods < tracker->n_pods)
		world.most_pods = tracker->n_pods;
	if (world.pauses && str_eq(pod_name, "q1"))
		tracker->pace.round_ms = 3600000;
	if (world.hangs)
		world.hung = call;
	else if (world.kubelet == OLD)
		rpc_reply(call, RPC_UNIMPLEMENTED, "unknown method Get",
			  (struct bytes) { NULL, 0 });
	else if (world.kubelet == GET_IS_OFF)
		rpc_reply(call, RPC_UNKNOWN, "PodResources API Get method disabled",
			  (struct bytes) { NULL, 0 });
	else if (str_eq(pod_name, world.alive))
		rpc_reply(call, RPC_OK, NULL, peer_encode_pod_get_reply(&pod, true, mine));
	else
		rpc_reply(call, RPC_UNKNOWN, world_says_no, (struct bytes) { NULL, 0 });
}

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct pod pod = living_pod();

	(void)ctx;
	(void)request;
	world.lists++;
	rpc_reply(call, RPC_OK, NULL,
		  peer_encode_pod_list(&(struct pod_list) { &pod, 1 }, true, rpc_call_arena(call)));
}

static void begin_world(void *arg)
{
	static const struct rpc_method methods[] = { { .path = PATH_POD_GET, .unary = on_get },
						     { .path = PATH_POD_LIST, .unary = on_list } };
	const enum kubelet *kubelet = arg;
	char *path = arena_printf(arena, "%s/kubelet.sock", folder);

	memset(&world, 0, sizeof(world));
	world.kubelet = *kubelet;
	world.alive = "p1";
	assert_int_equal(rpc_server_open(rpc, path, methods, 2, NULL, &world.server, NULL), 0);
	world.podres = kubeclient_podres_open(rpc, path);
	tracker_watch(tracker, world.podres);
}

static void end_world(void *arg)
{
	end_tracker(arg);
	if (world.hung)
		rpc_reply(world.hung, RPC_UNKNOWN, world_says_no, (struct bytes) { NULL, 0 });
	kubeclient_podres_close(world.podres);
	rpc_server_close(world.server, NULL, NULL);
}

static void hold_first(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
}

static void hold_second(void *arg)
{
	(void)arg;
	give(1, "p2", NULL);
}

static bool is_kubelet_known(void)
{
	enum podres_support support = kubeclient_podres_state(world.podres).support;

	return !tracker->asked && support != PODRES_UNKNOWN &&
	       (support != PODRES_LIST || world.lists);
}

/* p1 is there, and p2 is not: it has been when this kubelet started its container. */
static void hold_two(void)
{
	on_rpc(hold_first, NULL);
	wait_until(is_kubelet_known);
	on_rpc(hold_second, NULL);
}

static bool is_p2_gone(void)
{
	return hold_of(0) && !hold_of(1);
}

static void pods_that_hold_something_are_asked_for_by_name(void **state)
{
	enum kubelet kubelet = HAS_GET;

	(void)state;
	on_rpc(begin_world, &kubelet);
	hold_two();
	wait_until(is_p2_gone);
	assert_int_equal(world.lists, 0);
	on_rpc(end_world, NULL);
}

static void hold_four_more(void *arg)
{
	(void)arg;
	give(1, "q1", NULL);
	give(3, "q2", NULL);
	give(4, "q3", NULL);
	give(5, "q4", NULL);
	world.most_pods = 0;
}

static bool are_four_gone(void)
{
	return !hold_of(1) && !hold_of(3) && !hold_of(4) && !hold_of(5);
}

/* The pace is for all of them, not for each: they came when one pod had been counted. */
static void pods_that_came_since_the_last_round_make_it_no_longer(void **state)
{
	enum kubelet kubelet = HAS_GET;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_first, NULL);
	wait_until(is_kubelet_known); /* what starts earlier is not of this kubelet */
	on_rpc(hold_four_more, NULL);
	wait_until(are_four_gone);
	assert_in_range(world.most_pods, 4, 5); /* one may have gone */
	on_rpc(end_world, NULL);
}

static void hold_slowly(void *arg)
{
	(void)arg;
	world.pauses = true;
	give(1, "q1", NULL);
	open_device = rdma_of(1);
	open_users = 1;
	world.gets = 0;
}

static bool does_q1_drain(void)
{
	return is_draining(1);
}

static void a_pod_that_was_missed_once_is_asked_for_again_soon(void **state)
{
	enum kubelet kubelet = HAS_GET;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_first, NULL);
	wait_until(is_kubelet_known);
	on_rpc(hold_slowly, NULL);
	wait_until(does_q1_drain);
	assert_in_range(world.gets, 2, 8);
	on_rpc(end_world, NULL);
}

static void hold_nameless(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	give(2, NULL, NULL);
	give(3, NULL, NULL);
}

static bool is_named(void)
{
	return hold_of(2) && *hold_of(2)->owner.pod;
}

static void a_hold_without_a_name_takes_a_list(void **state)
{
	enum kubelet kubelet = HAS_GET;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_nameless, NULL);
	wait_until(is_named);
	assert_string_equal(hold_of(2)->owner.pod, "p1");
	on_rpc(end_world, NULL);
}

static void hear_and_give(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	assert_true(tracker->busy_ms > 0);
	tracker->busy_ms = 0;
	open_device = rdma_of(0);
	open_users = 1;
	told(SAYS({ "p2", vf[1] }));
	told(SAYS({ "p2", vf[1] }));
	assert_true(is_draining(0));
	set_node(inventory());
	assert_int_equal(tracker->busy_ms, 0);
}

/* Pods are asked for several times a second: a List that waits for a pause of these never comes. */
static void answers_and_rescans_do_not_put_off_a_list(void **state)
{
	(void)state;
	on_rpc(hear_and_give, NULL);
}

static void a_kubelet_without_get_is_asked_for_a_list(void **state)
{
	enum kubelet kubelet = GET_IS_OFF;

	(void)state;
	on_rpc(begin_world, &kubelet);
	hold_two();
	wait_until(is_p2_gone);
	assert_true(world.lists > 0);
	on_rpc(end_world, NULL);
}

static bool is_old_known(void)
{
	return kubeclient_podres_state(world.podres).support == PODRES_NOTHING;
}

static void an_old_kubelet_is_left_alone(void **state)
{
	enum kubelet kubelet = OLD;
	unsigned gets;

	(void)state;
	on_rpc(begin_world, &kubelet);
	hold_two();
	wait_until(is_old_known);
	gets = world.gets;
	usleep(100000);
	assert_int_equal(world.gets, gets);
	assert_int_equal(world.lists, 0);
	assert_non_null(hold_of(1));
	on_rpc(end_world, NULL);
}

static void begin_asking(void *arg)
{
	enum kubelet kubelet = HAS_GET;

	(void)arg;
	begin_world(&kubelet);
	world.hangs = true;
	give(0, "p1", NULL);
}

static bool is_asking(void)
{
	return tracker->asked && world.hung;
}

static void an_answer_that_comes_after_the_end_is_for_nobody(void **state)
{
	(void)state;
	on_rpc(begin_asking, NULL);
	wait_until(is_asking);
	on_rpc(end_world, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pods_that_hold_something_are_asked_for_by_name),
		TEST(pods_that_came_since_the_last_round_make_it_no_longer),
		TEST(a_pod_that_was_missed_once_is_asked_for_again_soon),
		TEST(a_hold_without_a_name_takes_a_list),
		TEST(answers_and_rescans_do_not_put_off_a_list),
		TEST(a_kubelet_without_get_is_asked_for_a_list),
		TEST(an_old_kubelet_is_left_alone),
		TEST(an_answer_that_comes_after_the_end_is_for_nobody),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
