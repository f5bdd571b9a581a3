#include "support/onrpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubeclient/gpuplugin.h"

#define NOTHING ((struct bytes) { NULL, 0 })
#define RES	"nvidia.com/gpu"

/* --- GPU plugins: in a process of their own, as our own sockets are never asked --- */

enum manners { PREFERS_LAST, MUTE, HANGS, FOREIGN, TOO_FEW, TWICE, GARBAGE, ERROR };

#define FAKES 2

struct fake {
	_Atomic enum manners manners;
	struct rpc_server *server;
	struct rpc_call *hung;
	_Atomic unsigned options, asked;
};

static struct fake *fakes; /* shared with the child */
static char dir[] = "/tmp/rm-gpu.XXXXXX";
static struct arena *a;
static struct gpuplugin *g;
static const char *dirs[1];
static unsigned timeout_ms;

static struct {
	unsigned times;
	size_t n;
	bool random;
	const char *ids[8], *why;
} got;

static void on_options(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct fake *f = ctx;
	const struct plugin_options options = { .preferred_allocation = f->manners != MUTE };

	(void)request;
	f->options++;
	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_options, &options, rpc_call_arena(call)));
}

static void answer_ids(struct rpc_call *call, const char **v, size_t n)
{
	struct ids ids = { v, n };
	struct id_lists lists = { &ids, 1 };

	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_preferred_reply, &lists, rpc_call_arena(call)));
}

static void on_preferred(void *ctx, struct rpc_call *call, struct bytes request)
{
	const char *foreign[] = { "GPU-x", "GPU-y" }, *twice[2];
	struct fake *f = ctx;
	struct preferred_request r;
	const struct ids *offered;
	enum manners manners = f->manners;

	f->asked++;
	assert_int_equal(
		kubemsg_decode(&kubemsg_preferred, request, rpc_call_arena(call), &r, NULL), 0);
	assert_int_equal(r.v[0].must.n, 0);
	offered = &r.v[0].available;
	twice[0] = twice[1] = offered->v[0];
	switch (manners) {
	case HANGS:
		f->hung = call;
		return;
	case FOREIGN:
		answer_ids(call, foreign, 2);
		return;
	case TOO_FEW:
		answer_ids(call, offered->v, 1);
		return;
	case TWICE:
		answer_ids(call, twice, 2);
		return;
	case GARBAGE:
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { (const uint8_t *)"\xff", 1 });
		return;
	case ERROR:
		rpc_reply(call, RPC_UNKNOWN, "GPU is lost", NOTHING);
		return;
	default:
		answer_ids(call, offered->v + offered->n - (size_t)r.v[0].size,
			   (size_t)r.v[0].size);
	}
}

static const struct rpc_method methods[] = { { .path = PATH_OPTIONS, .unary = on_options },
					     { .path = PATH_PREFERRED, .unary = on_preferred } };

/* To the child: serve fakes[i] at a path, or stop it (no path). It answers with a byte. */
struct order {
	int i;
	char path[64];
};

static void obey_fn(void *arg)
{
	const struct order *o = arg;
	struct fake *f = &fakes[o->i];

	if (*o->path) {
		if (rpc_server_open(rpc, o->path, methods, 2, f, &f->server, NULL) < 0)
			_exit(1);
		return;
	}
	if (f->hung)
		rpc_reply(STEAL(f->hung), RPC_UNAVAILABLE, "going", NOTHING);
	if (f->server)
		rpc_server_close(STEAL(f->server), NULL, NULL);
}

static int orders[2], answers[2];
static pid_t child;

static void live_as_child(void)
{
	struct order o;

	close(orders[1]);
	if (rpc_start(&rpc, NULL) < 0)
		_exit(1);
	while (read(orders[0], &o, sizeof(o)) == sizeof(o)) {
		rpc_run(rpc, obey_fn, &o);
		if (write(answers[1], "", 1) != 1)
			break;
	}
	_exit(0);
}

static void give_order(int i, const char *file)
{
	struct order o = { .i = i };
	char byte;

	if (file)
		snprintf(o.path, sizeof(o.path), "%s/%s", dir, file);
	assert_int_equal(write(orders[1], &o, sizeof(o)), sizeof(o));
	assert_int_equal(read(answers[0], &byte, 1), 1);
}

static void serve(int i, const char *file, enum manners manners)
{
	fakes[i].manners = manners;
	give_order(i, file);
}

static void close_fn(void *arg)
{
	(void)arg;
	kubeclient_gpuplugin_close(STEAL(g));
}

static void open_with(const char *socket)
{
	dirs[0] = dir;
	g = kubeclient_gpuplugin_open(rpc, dirs, 1, socket);
}

static int setup(void **state)
{
	(void)state;
	memset(&got, 0, sizeof(got));
	for (int i = 0; i < FAKES; i++)
		fakes[i].options = fakes[i].asked = 0;
	a = arena_new(0);
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	timeout_ms = 30000;
	open_with(NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(close_fn, NULL);
	for (int i = 0; i < FAKES; i++)
		give_order(i, NULL);
	for (int i = 0; i < 60000 && rmdir(dir) < 0; i++) /* sockets go a moment later */
		usleep(1000);
	arena_free(a);
	return 0;
}

static int setup_all(void **state)
{
	fakes = mmap(NULL, FAKES * sizeof(*fakes), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(fakes != MAP_FAILED);
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(pipe(answers), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		live_as_child();
	close(orders[0]);
	close(answers[1]);
	return start_rpc(state);
}

static int teardown_all(void **state)
{
	close(orders[1]);
	waitpid(child, NULL, 0);
	close(answers[0]);
	munmap(fakes, FAKES * sizeof(*fakes));
	return stop_rpc(state);
}

/* --- asking --- */

static bool asking;

static void on_done(void *arg, const struct ids *ids, bool random, const char *why)
{
	assert_false(*(bool *)arg);
	got.times++;
	got.random = random;
	got.why = why ? arena_strdup(a, why) : NULL;
	got.n = ids ? ids->n : 0;
	for (size_t i = 0; i < got.n; i++)
		got.ids[i] = arena_strdup(a, ids->v[i]);
}

static void prefer_fn(void *arg)
{
	const char *v[] = { "GPU-0", "GPU-1", "GPU-2", "GPU-3" };
	struct ids available = { v, 4 };

	(void)arg;
	asking = true;
	kubeclient_gpuplugin_prefer(g, RES, &available, 2, timeout_ms, on_done, &asking);
	asking = false;
}

static bool is_done(void)
{
	return got.times > 0;
}

static void prefer(void)
{
	got.times = 0;
	on_rpc(prefer_fn, NULL);
	wait_until(is_done);
	assert_int_equal(got.times, 1);
}

static void assert_prediction(void)
{
	assert_null(got.why);
	assert_int_equal(got.n, 2);
	assert_string_equal(got.ids[0], "GPU-2");
	assert_string_equal(got.ids[1], "GPU-3");
}

static void assert_unknown(const char *why)
{
	assert_int_equal(got.n, 0);
	if (!got.why || !strstr(got.why, why))
		fail_msg("'%s' is not in '%s'", why, got.why ? got.why : "(null)");
}

/* --- tests --- */

static void plugin_is_found_by_its_name_and_asked(void **state)
{
	(void)state;
	serve(0, "nvidia-gpu.sock", PREFERS_LAST);
	prefer();
	assert_prediction();
	prefer();
	assert_prediction();
	assert_int_equal(fakes[0].options, 1);
	assert_int_equal(fakes[0].asked, 2);
}

static void likelier_name_is_asked_first(void **state)
{
	(void)state;
	serve(0, "a-gpu.sock", FOREIGN);
	serve(1, "nvidiaGPU-1700000000.sock", PREFERS_LAST);
	prefer();
	assert_prediction();
	assert_int_equal(fakes[0].asked, 0);
}

static void socket_without_a_word_of_the_resource_is_left_alone(void **state)
{
	(void)state;
	serve(0, "rdma_vf.sock", PREFERS_LAST);
	serve(1, "example.com_fpga.sock", PREFERS_LAST);
	prefer();
	assert_unknown("no socket of a plugin for nvidia.com/gpu");
	assert_int_equal(fakes[0].options + fakes[1].options, 0);
}

static void next_socket_is_asked_when_one_talks_nonsense(void **state)
{
	static const enum manners all[] = { FOREIGN, TOO_FEW, TWICE, GARBAGE, ERROR, MUTE };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		serve(0, "nvidia-gpu.sock", all[i]);
		serve(1, "nvidia.sock", PREFERS_LAST);
		prefer();
		assert_prediction();
		/* and it is not asked again at once */
		fakes[0].asked = fakes[0].options = 0;
		prefer();
		assert_prediction();
		assert_int_equal(fakes[0].asked + fakes[0].options, 0);
		teardown(NULL);
		setup(NULL);
	}
}

static void what_is_wrong_is_told(void **state)
{
	static const struct {
		enum manners manners;
		const char *why;
	} cases[] = {
		{ FOREIGN, "nvidia-gpu.sock: prefers 'GPU-x', which is not free" },
		{ TOO_FEW, "nvidia-gpu.sock: prefers 1 GPUs, not 2" },
		{ TWICE, "nvidia-gpu.sock: prefers 'GPU-0' twice" },
		{ GARBAGE, "nvidia-gpu.sock: " },
		{ ERROR, "nvidia-gpu.sock: GPU is lost" },
		{ MUTE, "nvidia-gpu.sock has no preferred allocation" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		serve(0, "nvidia-gpu.sock", cases[i].manners);
		prefer();
		assert_unknown(cases[i].why);
		assert_int_equal(got.random, cases[i].manners == MUTE);
		teardown(NULL);
		setup(NULL);
	}
}

static void plugin_that_hangs_costs_a_moment_once(void **state)
{
	(void)state;
	serve(0, "nvidia-gpu.sock", PREFERS_LAST);
	prefer();
	fakes[0].manners = HANGS;
	timeout_ms = 60;
	prefer();
	assert_unknown("no answer in time");
	prefer();
	assert_unknown("failed a moment ago");
	assert_in_range(fakes[0].asked, 1, 2); /* 1: the question had not come when time was up */
}

static void time_that_is_over_is_over(void **state)
{
	(void)state;
	serve(0, "nvidia-gpu.sock", HANGS);
	timeout_ms = 10;
	prefer();
	assert_unknown("no answer in time");
	timeout_ms = 0;
	prefer();
	assert_unknown("");
}

static void plugin_that_comes_anew_is_asked_anew(void **state)
{
	(void)state;
	serve(0, "nvidia-gpu.sock", MUTE);
	prefer();
	assert_unknown("no preferred allocation");
	give_order(0, NULL);
	for (int i = 0; i < 20000 && access(arena_printf(a, "%s/nvidia-gpu.sock", dir), F_OK) == 0;
	     i++)
		usleep(1000);
	serve(1, "nvidia-gpu.sock", PREFERS_LAST);
	prefer();
	assert_prediction();
}

static void absent_plugin_is_told(void **state)
{
	(void)state;
	prefer();
	assert_unknown("no socket of a plugin for nvidia.com/gpu was found");
}

static void operator_names_the_socket(void **state)
{
	(void)state;
	serve(0, "x.sock", PREFERS_LAST);
	serve(1, "nvidia-gpu.sock", PREFERS_LAST);
	on_rpc(close_fn, NULL);
	open_with(arena_printf(a, "%s/x.sock", dir));
	prefer();
	assert_prediction();
	assert_int_equal(fakes[1].options, 0);
}

static void hello(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)request;
	++*(unsigned *)ctx;
	rpc_reply(call, RPC_OK, NULL, NOTHING);
}

static struct rpc_server *own;
static unsigned own_calls;

static void serve_own_fn(void *arg)
{
	static const struct rpc_method own_methods[] = { { .path = PATH_OPTIONS, .unary = hello } };

	assert_int_equal(rpc_server_open(rpc, arg, own_methods, 1, &own_calls, &own, NULL), 0);
}

static void close_own_fn(void *arg)
{
	(void)arg;
	rpc_server_close(STEAL(own), NULL, NULL);
}

static void socket_of_ours_is_never_asked(void **state)
{
	(void)state;
	on_rpc(serve_own_fn, arena_printf(a, "%s/nvidia.com_vf.sock", dir));
	prefer();
	assert_unknown("no socket of a plugin");
	assert_int_equal(own_calls, 0);
	on_rpc(close_own_fn, NULL);
}

static bool is_hanging(void)
{
	return fakes[0].asked == 1;
}

static void closing_ends_every_question(void **state)
{
	(void)state;
	serve(0, "nvidia-gpu.sock", HANGS);
	on_rpc(prefer_fn, NULL);
	wait_until(is_hanging);
	on_rpc(close_fn, NULL);
	assert_int_equal(got.times, 1);
	assert_unknown("stopping");
	kubeclient_gpuplugin_close(NULL);
}

static void prefer_and_close_fn(void *arg)
{
	prefer_fn(arg);
	close_fn(arg);
}

static void closing_ends_a_question_that_waits_its_turn(void **state)
{
	(void)state;
	on_rpc(prefer_and_close_fn, NULL);
	assert_int_equal(got.times, 1);
	assert_unknown("stopping");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(plugin_is_found_by_its_name_and_asked),
		T(likelier_name_is_asked_first),
		T(socket_without_a_word_of_the_resource_is_left_alone),
		T(next_socket_is_asked_when_one_talks_nonsense),
		T(what_is_wrong_is_told),
		T(plugin_that_hangs_costs_a_moment_once),
		T(time_that_is_over_is_over),
		T(plugin_that_comes_anew_is_asked_anew),
		T(absent_plugin_is_told),
		T(operator_names_the_socket),
		T(socket_of_ours_is_never_asked),
		T(closing_ends_every_question),
		T(closing_ends_a_question_that_waits_its_turn),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
