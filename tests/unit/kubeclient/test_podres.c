#include "support/onrpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeclient/podres.h"
#include "kubepeer/kubepeer.h"

#define NOTHING	   ((struct bytes) { NULL, 0 })
#define TIMEOUT_MS 30000 /* a busy machine takes its time */

/* --- a kubelet's PodResources --- */

enum kubelet { HAS_GET, GET_IS_OFF, OLD };
enum manners { ANSWER, RATE_LIMIT, HANG, GARBAGE, FAIL };

static struct {
	enum kubelet kubelet;
	enum manners manners;
	unsigned limited; /* this many more calls are rejected */
	struct rpc_server *server;
	struct rpc_call *hung;
	unsigned probes, gets, lists, allocatables;
} k;

static char dir[] = "/tmp/rm-podres.XXXXXX";
static char *socket_path;
static struct arena *a;
static struct podres *p;

/* What came of the last question. */
static struct {
	unsigned times;
	enum podres_result result;
	size_t n_pods;
	const char *why, *pod, *container, *id;
} got;

static void drop_hung(void)
{
	if (k.hung)
		rpc_reply(k.hung, RPC_UNAVAILABLE, "going", NOTHING);
	k.hung = NULL;
}

/* Did it answer by being rude? */
static bool misbehaves(struct rpc_call *call)
{
	if (k.limited) {
		k.limited--;
		rpc_reply(call, RPC_RESOURCE_EXHAUSTED, "rejected by rate limit", NOTHING);
		return true;
	}
	switch (k.manners) {
	case ANSWER:
		return false;
	case HANG:
		drop_hung();
		k.hung = call;
		return true;
	case GARBAGE:
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { (const uint8_t *)"\xff", 1 });
		return true;
	default:
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
		return true;
	}
}

static struct pod the_pod(void)
{
	static const char *ids[] = { "GPU-1" };
	static struct held held = { "nvidia.com/gpu", { ids, 1 } };
	static struct pod_container container = { .name = "main", .held = &held, .n_held = 1 };

	return (struct pod) { "default", "p0", &container, 1 };
}

static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct pod pod = the_pod();
	const char *ns, *name;

	(void)ctx;
	assert_int_equal(
		peer_decode_pod_get_request(request, rpc_call_arena(call), &ns, &name, NULL), 0);
	if (*name)
		k.gets++;
	else
		k.probes++;
	if (k.kubelet == OLD)
		rpc_reply(call, RPC_UNIMPLEMENTED, "unknown method Get", NOTHING);
	else if (*name && misbehaves(call))
		return;
	else if (k.kubelet == GET_IS_OFF)
		rpc_reply(call, RPC_UNKNOWN, "PodResources API Get method disabled", NOTHING);
	else if (str_eq(ns, "default") && str_eq(name, "p0"))
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_pod_get_reply(&pod, true, rpc_call_arena(call)));
	else
		rpc_reply(call, RPC_UNKNOWN, "pod x in namespace y not found", NOTHING);
}

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct pod pod = the_pod();
	struct pod_list list = { &pod, 1 };

	(void)ctx;
	(void)request;
	k.lists++;
	if (!misbehaves(call))
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_pod_list(&list, true, rpc_call_arena(call)));
}

static void on_allocatable(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct pod pod = the_pod();

	(void)ctx;
	(void)request;
	k.allocatables++;
	if (!misbehaves(call))
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_allocatable(pod.containers, true, rpc_call_arena(call)));
}

static void serve_fn(void *arg)
{
	static const struct rpc_method methods[] = { { .path = PATH_POD_GET, .unary = on_get },
						     { .path = PATH_POD_LIST, .unary = on_list },
						     { .path = PATH_ALLOCATABLE,
						       .unary = on_allocatable } };

	(void)arg;
	assert_int_equal(rpc_server_open(rpc, socket_path, methods, 3, NULL, &k.server, NULL), 0);
}

static void stop_fn(void *arg)
{
	(void)arg;
	drop_hung();
	if (k.server)
		rpc_server_close(STEAL(k.server), NULL, NULL);
}

static void close_fn(void *arg)
{
	(void)arg;
	kubeclient_podres_close(STEAL(p));
}

static int setup(void **state)
{
	(void)state;
	memset(&k, 0, sizeof(k));
	memset(&got, 0, sizeof(got));
	a = arena_new(0);
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	socket_path = arena_printf(a, "%s/p.sock", dir);
	p = kubeclient_podres_open(rpc, socket_path);
	on_rpc(serve_fn, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(close_fn, NULL);
	on_rpc(stop_fn, NULL);
	unlink(socket_path);
	assert_int_equal(rmdir(dir), 0);
	arena_free(a);
	return 0;
}

/* --- asking --- */

static void on_done(void *arg, enum podres_result result, const struct pod_list *pods,
		    const char *why)
{
	bool *asking = arg;

	assert_false(*asking);
	got.times++;
	got.result = result;
	got.why = why ? arena_strdup(a, why) : NULL;
	got.n_pods = pods ? pods->n : 0;
	if (!got.n_pods)
		return;
	got.pod = arena_strdup(a, pods->v[0].name);
	got.container = arena_strdup(a, pods->v[0].containers[0].name);
	got.id = arena_strdup(a, pods->v[0].containers[0].held[0].ids.v[0]);
}

static bool asking;
static unsigned timeout_ms = TIMEOUT_MS;

static void list_fn(void *arg)
{
	(void)arg;
	asking = true;
	kubeclient_podres_ask(
		p, &(struct podres_question) { .kind = PODRES_ASK_LIST, .timeout_ms = timeout_ms },
		on_done, &asking);
	asking = false;
}

static void get_fn(void *arg)
{
	asking = true;
	kubeclient_podres_ask(p,
			      &(struct podres_question) { .kind = PODRES_ASK_GET,
							  .ns = "default",
							  .name = arg,
							  .timeout_ms = timeout_ms },
			      on_done, &asking);
	asking = false;
}

static void allocatable_fn(void *arg)
{
	(void)arg;
	asking = true;
	kubeclient_podres_ask(p,
			      &(struct podres_question) { .kind = PODRES_ASK_ALLOCATABLE,
							  .timeout_ms = timeout_ms },
			      on_done, &asking);
	asking = false;
}

static bool is_done(void)
{
	return got.times > 0;
}

static void ask(void (*how)(void *arg), const char *name)
{
	got.times = 0;
	on_rpc(how, (void *)name);
	wait_until(is_done);
	assert_int_equal(got.times, 1);
}

static void assert_why(const char *text)
{
	if (!got.why || !strstr(got.why, text))
		fail_msg("'%s' is not in '%s'", text, got.why ? got.why : "(null)");
}

/* --- tests --- */

static void list_tells_who_holds_what(void **state)
{
	(void)state;
	ask(list_fn, NULL);
	assert_int_equal(got.result, PODRES_OK);
	assert_int_equal(got.n_pods, 1);
	assert_string_equal(got.pod, "p0");
	assert_string_equal(got.id, "GPU-1");
}

static char heard[256];

static void hear(void *ctx, const struct pods_said *said)
{
	size_t len = strlen(heard);

	assert_ptr_equal(ctx, heard);
	assert_int_equal(got.times, 0); /* before whoever asked */
	assert_true(said->asked_ms && said->asked_ms <= clock_mono_ms());
	assert_int_equal(said->kubelet, kubeclient_podres_state(p).kubelet);
	snprintf(heard + len, sizeof(heard) - len, "%s %zu;", said->all ? "all" : said->name,
		 said->pods->n);
}

static void subscribe_fn(void *arg)
{
	(void)arg;
	kubeclient_podres_subscribe(p, hear, heard);
}

static void unsubscribe_fn(void *arg)
{
	(void)arg;
	kubeclient_podres_subscribe(p, NULL, heard);
}

static void subscribers_are_told_what_the_kubelet_said(void **state)
{
	(void)state;
	heard[0] = '\0';
	on_rpc(subscribe_fn, NULL);
	ask(list_fn, NULL);
	ask(get_fn, "p0");
	ask(get_fn, "other");
	ask(get_fn, ""); /* asks for nobody */
	ask(allocatable_fn, NULL);
	assert_string_equal(heard, "all 1;p0 1;other 0;");
	on_rpc(unsubscribe_fn, NULL);
	ask(list_fn, NULL);
	assert_string_equal(heard, "all 1;p0 1;other 0;");
}

static void kubelet_is_probed_once_before_the_first_list(void **state)
{
	(void)state;
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_UNKNOWN);
	ask(list_fn, NULL);
	ask(list_fn, NULL);
	assert_int_equal(k.probes, 1);
	assert_int_equal(k.lists, 2);
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_GET);
}

static void kubelet_before_1_27_is_never_asked_for_a_list(void **state)
{
	(void)state;
	k.kubelet = OLD;
	ask(list_fn, NULL);
	assert_int_equal(got.result, PODRES_FAILED);
	assert_why("older than 1.27");
	ask(list_fn, NULL);
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_NOTHING);
	assert_int_equal(k.probes, 1);
	assert_int_equal(k.lists, 0);
}

static void get_tells_of_one_pod_without_a_probe(void **state)
{
	(void)state;
	ask(get_fn, "p0");
	assert_int_equal(got.result, PODRES_OK);
	assert_int_equal(got.n_pods, 1);
	assert_string_equal(got.container, "main");
	assert_int_equal(k.probes, 0);
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_GET);
}

static void pod_that_is_not_there_is_gone(void **state)
{
	(void)state;
	ask(get_fn, "other");
	assert_int_equal(got.result, PODRES_GONE);
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_GET);
}

static void get_that_is_switched_off_leaves_list(void **state)
{
	(void)state;
	k.kubelet = GET_IS_OFF;
	ask(get_fn, "p0");
	assert_int_equal(got.result, PODRES_FAILED);
	assert_why("disabled");
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_LIST);
	ask(list_fn, NULL);
	assert_int_equal(got.result, PODRES_OK);
	assert_int_equal(k.probes, 0);
}

static void allocatable_devices_come_as_one_container(void **state)
{
	(void)state;
	ask(allocatable_fn, NULL);
	assert_int_equal(got.result, PODRES_OK);
	assert_int_equal(got.n_pods, 1);
	assert_string_equal(got.container, "");
	assert_string_equal(got.id, "GPU-1");
}

static void rate_limit_is_waited_out(void **state)
{
	(void)state;
	ask(list_fn, NULL);
	k.limited = 4;
	ask(list_fn, NULL);
	assert_int_equal(got.result, PODRES_OK);
	assert_int_equal(k.lists, 6);
}

#define PATIENCE_MS 500 /* podres.c's */

static unsigned quiet_answers;
static int64_t quiet_since_ms;

static void on_quiet_done(void *arg, enum podres_result result, const struct pod_list *pods,
			  const char *why)
{
	(void)arg;
	(void)pods;
	(void)why;
	quiet_answers += result == PODRES_OK;
}

static bool is_quiet_done(void)
{
	return quiet_answers > 0;
}

/* A machine that is busy may take longer for everything else. */
static bool is_patience_over(void)
{
	return clock_mono_ms() - quiet_since_ms >= PATIENCE_MS;
}

static void list_quietly_fn(void *arg)
{
	(void)arg;
	quiet_since_ms = clock_mono_ms();
	kubeclient_podres_note_admission(p, 60000);
	kubeclient_podres_ask(p,
			      &(struct podres_question) { .kind = PODRES_ASK_LIST_QUIETLY,
							  .timeout_ms = TIMEOUT_MS },
			      on_quiet_done, NULL);
}

static void a_list_that_nobody_waits_for_lets_an_admission_pass_for_a_while(void **state)
{
	(void)state;
	ask(get_fn, "p0");
	quiet_answers = 0;
	on_rpc(list_quietly_fn, NULL);
	ask(list_fn, NULL);
	assert_true(k.lists == 1 || is_patience_over());
	wait_until(is_quiet_done);
	assert_true(is_patience_over());
	assert_int_equal(k.lists, 2);
}

static void closing_ends_a_question_that_waits_for_a_quiet_moment(void **state)
{
	(void)state;
	ask(get_fn, "p0");
	on_rpc(list_quietly_fn, NULL);
	on_rpc(close_fn, NULL);
	assert_true(k.lists == 0 || is_patience_over());
}

static void rate_limited_get_is_no_verdict_on_the_kubelet(void **state)
{
	(void)state;
	k.limited = 2;
	ask(get_fn, "p0");
	assert_int_equal(got.result, PODRES_OK);
	assert_int_equal(k.gets, 3);
}

static void rate_limit_that_lasts_ends_with_the_time(void **state)
{
	(void)state;
	ask(list_fn, NULL);
	k.limited = 1000;
	timeout_ms = 3000; /* the first answer comes within it */
	ask(list_fn, NULL);
	timeout_ms = TIMEOUT_MS;
	assert_int_equal(got.result, PODRES_FAILED);
	assert_why("rate limit");
	assert_true(k.lists < 400);
}

static void too_slow_an_answer_is_not_waited_for(void **state)
{
	(void)state;
	ask(list_fn, NULL);
	k.manners = HANG;
	timeout_ms = 40;
	ask(list_fn, NULL);
	timeout_ms = TIMEOUT_MS;
	assert_int_equal(got.result, PODRES_FAILED);
	assert_why("List: no answer within 40 ms");
}

static void what_does_not_parse_is_a_failure(void **state)
{
	static void (*const ways[])(void *arg) = { list_fn, get_fn, allocatable_fn };

	(void)state;
	ask(list_fn, NULL);
	k.manners = GARBAGE;
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		ask(ways[i], "p0");
		assert_int_equal(got.result, PODRES_FAILED);
		assert_why(socket_path);
	}
}

static void error_of_the_kubelet_is_told(void **state)
{
	(void)state;
	ask(list_fn, NULL);
	k.manners = FAIL;
	ask(list_fn, NULL);
	assert_int_equal(got.result, PODRES_FAILED);
	assert_why("List: out of order");
	ask(allocatable_fn, NULL);
	assert_why("GetAllocatableResources: out of order");
}

static void absent_kubelet_is_a_failure_and_nothing_learnt(void **state)
{
	(void)state;
	on_rpc(stop_fn, NULL);
	ask(list_fn, NULL);
	assert_int_equal(got.result, PODRES_FAILED);
	ask(get_fn, "p0");
	assert_int_equal(got.result, PODRES_FAILED);
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_UNKNOWN);
}

static void reset_fn(void *arg)
{
	(void)arg;
	kubeclient_podres_reset(p);
}

static void another_kubelet_is_probed_anew(void **state)
{
	(void)state;
	k.kubelet = OLD;
	ask(list_fn, NULL);
	k.kubelet = HAS_GET;
	on_rpc(reset_fn, NULL);
	ask(list_fn, NULL);
	assert_int_equal(got.result, PODRES_OK);
	assert_int_equal(k.probes, 2);
}

static bool is_hanging(void)
{
	return k.hung;
}

static void reset_then_answer_fn(void *arg)
{
	reset_fn(arg);
	rpc_reply(STEAL(k.hung), RPC_UNIMPLEMENTED, "unknown method", NOTHING);
}

static void serve_anew_fn(void *arg)
{
	stop_fn(arg);
	unlink(socket_path);
	serve_fn(arg);
}

static void another_kubelet_is_noticed_by_its_socket(void **state)
{
	uint64_t epoch;

	(void)state;
	ask(list_fn, NULL);
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_GET);
	epoch = kubeclient_podres_state(p).epoch;
	ask(list_fn, NULL);
	assert_int_equal(kubeclient_podres_state(p).epoch, epoch);
	k.kubelet = OLD;
	on_rpc(serve_anew_fn, NULL);
	ask(list_fn, NULL);
	assert_int_equal(kubeclient_podres_state(p).epoch, epoch + 1);
	assert_int_not_equal(kubeclient_podres_state(p).support, PODRES_GET);
	assert_int_equal(k.lists, 2);
}

static void answer_of_the_kubelet_before_says_nothing_of_this_one(void **state)
{
	(void)state;
	k.manners = HANG;
	on_rpc(get_fn, (void *)"p0");
	wait_until(is_hanging);
	on_rpc(reset_then_answer_fn, NULL);
	wait_until(is_done);
	assert_int_equal(got.result, PODRES_FAILED);
	assert_int_equal(kubeclient_podres_state(p).support, PODRES_UNKNOWN);
}

static void closing_ends_every_question(void **state)
{
	(void)state;
	ask(list_fn, NULL);
	got.times = 0;
	k.manners = HANG;
	on_rpc(list_fn, NULL);
	wait_until(is_hanging);
	on_rpc(close_fn, NULL);
	assert_int_equal(got.times, 1);
	assert_int_equal(got.result, PODRES_FAILED);
	assert_why("stopping");
}

static void list_and_close_fn(void *arg)
{
	list_fn(arg);
	close_fn(arg);
}

static void closing_ends_a_question_that_waits_its_turn(void **state)
{
	(void)state;
	k.kubelet = OLD;
	ask(list_fn, NULL);
	got.times = 0;
	on_rpc(list_and_close_fn, NULL);
	assert_int_equal(got.times, 1);
	assert_int_equal(got.result, PODRES_FAILED);
	kubeclient_podres_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(list_tells_who_holds_what),
		T(subscribers_are_told_what_the_kubelet_said),
		T(kubelet_is_probed_once_before_the_first_list),
		T(kubelet_before_1_27_is_never_asked_for_a_list),
		T(get_tells_of_one_pod_without_a_probe),
		T(pod_that_is_not_there_is_gone),
		T(get_that_is_switched_off_leaves_list),
		T(allocatable_devices_come_as_one_container),
		T(a_list_that_nobody_waits_for_lets_an_admission_pass_for_a_while),
		T(closing_ends_a_question_that_waits_for_a_quiet_moment),
		T(rate_limit_is_waited_out),
		T(rate_limited_get_is_no_verdict_on_the_kubelet),
		T(rate_limit_that_lasts_ends_with_the_time),
		T(too_slow_an_answer_is_not_waited_for),
		T(what_does_not_parse_is_a_failure),
		T(error_of_the_kubelet_is_told),
		T(absent_kubelet_is_a_failure_and_nothing_learnt),
		T(another_kubelet_is_probed_anew),
		T(another_kubelet_is_noticed_by_its_socket),
		T(answer_of_the_kubelet_before_says_nothing_of_this_one),
		T(closing_ends_every_question),
		T(closing_ends_a_question_that_waits_its_turn),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
