#include "support/onrpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "kubeclient/offer.h"
#include "kubeclient/podres.h"
#include "kubepeer/kubepeer.h"

#define NOTHING ((struct bytes) { NULL, 0 })

static struct {
	struct rpc_server *server;
	struct rpc_call *held;
	bool hold, fail;
	unsigned asked;
} k;

static char dir[] = "/tmp/rm-offer.XXXXXX";
static char *socket_path;
static struct podres *podres;
static struct offer *offer;

struct listener {
	unsigned times, absent;
	size_t n_ids;
	int64_t asked_ms;
};
static struct listener first, second;

static void answer(struct rpc_call *call)
{
	static const char *ids[] = { "a", "b" };
	struct held held = { "rdma/vf", { ids, 2 } };
	struct pod_container all = { .name = "", .held = &held, .n_held = 1 };

	rpc_reply(call, RPC_OK, NULL, peer_encode_allocatable(&all, true, rpc_call_arena(call)));
}

static void on_allocatable(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	k.asked++;
	if (k.fail)
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	else if (k.hold)
		k.held = call;
	else
		answer(call);
}

static void hear(void *ctx, const struct pod_container *offered, int64_t asked_ms)
{
	struct listener *l = ctx;
	const struct ids *ids = offered ? kubemsg_held(offered, "rdma/vf") : NULL;

	l->times++;
	l->absent += !offered;
	l->n_ids = ids ? ids->n : 0;
	l->asked_ms = asked_ms;
}

static void open_fn(void *arg)
{
	static const struct rpc_method methods[] = { { .path = PATH_ALLOCATABLE,
						       .unary = on_allocatable } };

	(void)arg;
	assert_int_equal(rpc_server_open(rpc, socket_path, methods, 1, NULL, &k.server, NULL), 0);
	podres = kubeclient_podres_open(rpc, socket_path);
	offer = kubeclient_offer_open(rpc, podres);
	kubeclient_offer_subscribe(offer, hear, &first);
	kubeclient_offer_subscribe(offer, hear, &second);
}

static void close_fn(void *arg)
{
	(void)arg;
	if (k.held)
		rpc_reply(STEAL(k.held), RPC_UNAVAILABLE, "going", NOTHING);
	kubeclient_offer_subscribe(offer, NULL, &first);
	kubeclient_offer_subscribe(offer, NULL, &second);
	kubeclient_offer_close(offer);
	kubeclient_podres_close(podres);
	rpc_server_close(k.server, NULL, NULL);
}

static void look_fn(void *arg)
{
	kubeclient_offer_look(offer, *(unsigned *)arg);
}

static void look(unsigned ms)
{
	on_rpc(look_fn, &ms);
}

static void leave_fn(void *arg)
{
	kubeclient_offer_subscribe(offer, NULL, arg);
}

static void release_fn(void *arg)
{
	(void)arg;
	answer(STEAL(k.held));
}

static bool heard_once(void)
{
	return first.times == 1;
}

static bool heard_twice(void)
{
	return first.times == 2;
}

static bool is_held(void)
{
	return k.held != NULL;
}

static int setup(void **state)
{
	(void)state;
	memset(&k, 0, sizeof(k));
	first = second = (struct listener) { 0 };
	on_rpc(open_fn, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(close_fn, NULL);
	return 0;
}

static void one_question_serves_all_who_listen(void **state)
{
	(void)state;
	look(0);
	wait_until(heard_once);
	assert_int_equal(k.asked, 1);
	assert_int_equal(first.n_ids, 2);
	assert_int_equal(second.n_ids, 2);
	assert_int_equal(first.absent, 0);
}

static void an_answer_that_does_not_come_is_told_too(void **state)
{
	(void)state;
	k.fail = true;
	look(0);
	wait_until(heard_once);
	assert_int_equal(first.absent, 1);
}

static void a_question_under_way_does_not_count_for_a_later_look(void **state)
{
	int64_t since;

	(void)state;
	k.hold = true;
	look(0);
	wait_until(is_held);
	k.hold = false;
	since = clock_mono_ms();
	look(0);
	on_rpc(release_fn, NULL);
	wait_until(heard_twice);
	assert_true(first.asked_ms >= since);
	assert_int_equal(k.asked, 2);
}

static void who_left_hears_nothing(void **state)
{
	(void)state;
	on_rpc(leave_fn, &second);
	look(0);
	wait_until(heard_once);
	assert_int_equal(second.times, 0);
}

static int all_setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	socket_path = xasprintf("%s/kubelet.sock", dir);
	return start_rpc(state);
}

static int all_teardown(void **state)
{
	int r = stop_rpc(state);

	rmdir(dir);
	free(socket_path);
	return r;
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_question_serves_all_who_listen),
		T(an_answer_that_does_not_come_is_told_too),
		T(a_question_under_way_does_not_count_for_a_later_look),
		T(who_left_hears_nothing),
	};

	return cmocka_run_group_tests(tests, all_setup, all_teardown);
}
