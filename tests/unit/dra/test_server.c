#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "dra/server.h"
#include "kubepeer/kubepeer.h"
#include "rpc/listen.h"
#include "support/onrpc.h"

#define DRIVER	"vf.railmate.io"
#define NOTHING ((struct bytes) { NULL, 0 })
#define STREAMS 2

static struct arena *a;
static char dir[64];
static const char *path, *registry_path, *kubelet_path;
static struct listen_socket kubelet;
static struct draserver *server;

/* What the server told, and is asked. */
static struct {
	unsigned told, prepares, old;
	bool yes;
	char error[256];
	const struct dra_result *results; /* of each call */
	size_t n_results;
	struct draserver_call *held;
	const struct dra_claim_refs *refs;
	char claims[128]; /* of the last call */
} seen;

/* --- the driver --- */

static void note_claims(const struct dra_claim_refs *refs)
{
	size_t n = 0;

	seen.claims[0] = '\0';
	for (size_t i = 0; i < refs->n; i++)
		n += (size_t)snprintf(seen.claims + n, sizeof(seen.claims) - n, "%s/%s=%s ",
				      refs->v[i].ns, refs->v[i].name, refs->v[i].uid);
}

static void answer(void *arg)
{
	struct draserver_call *call = STEAL(seen.held);
	const struct dra_results list = { seen.results, seen.n_results };

	(void)arg;
	note_claims(seen.refs); /* they are still there */
	draserver_reply(call, &list);
}

static void hold(struct draserver_call *call, const struct dra_claim_refs *refs)
{
	seen.prepares++;
	seen.held = call;
	seen.refs = refs;
	if (seen.results)
		rpc_after(rpc, 2, answer, NULL);
}

static void prepare(void *ctx, struct draserver_call *call, const struct dra_claim_refs *refs)
{
	assert_ptr_equal(ctx, &seen);
	hold(call, refs);
}

static void unprepare(void *ctx, struct draserver_call *call, const struct dra_claim_refs *refs)
{
	assert_ptr_equal(ctx, &seen);
	note_claims(refs);
	draserver_reply(call, &(struct dra_results) { seen.results, seen.n_results });
}

static void registered(void *ctx, bool yes, const char *error)
{
	assert_ptr_equal(ctx, &seen);
	assert_int_equal(yes, !error);
	seen.told++;
	seen.yes = yes;
	snprintf(seen.error, sizeof(seen.error), "%s", error ? error : "");
}

static void is_old(void *ctx)
{
	assert_ptr_equal(ctx, &seen);
	seen.old++;
}

/* --- set-up --- */

static const char *below(const char *name)
{
	return arena_printf(a, "%s/%s", dir, name);
}

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(below(name), 0755), 0);
}

static void start_kubelet(void)
{
	unlink(kubelet_path);
	assert_int_equal(listen_open(kubelet_path, 0600, &kubelet, NULL), 0);
}

static void open_fn(void *arg)
{
	static struct draserver_env env;

	(void)arg;
	env = (struct draserver_env) { .rpc = rpc,
				       .kubelet_root = dir,
				       .plugin_dir = below("device-plugins"),
				       .driver = DRIVER,
				       .prepare = prepare,
				       .unprepare = unprepare,
				       .registered = registered,
				       .old = is_old,
				       .settle_ms = 1,
				       .ctx = &seen };
	server = draserver_open(&env);
}

static bool sockets_are_there(void)
{
	struct socket_id id;

	return rpc_socket_id(path, &id) && rpc_socket_id(registry_path, &id);
}

static int set_up_closed(void **state)
{
	(void)state;
	a = arena_new(4096);
	memset(&seen, 0, sizeof(seen));
	strcpy(dir, "/tmp/railmate-dra-XXXXXX");
	assert_non_null(mkdtemp(dir));
	path = below("plugins/" DRIVER "/dra.sock");
	registry_path = below("plugins_registry/" DRIVER "-reg.sock");
	kubelet_path = below("device-plugins/kubelet.sock");
	make_dir("device-plugins");
	make_dir("plugins_registry");
	start_kubelet();
	return 0;
}

static int set_up(void **state)
{
	int r = set_up_closed(state);

	make_dir("plugins");
	on_rpc(open_fn, NULL);
	wait_until(sockets_are_there);
	return r;
}

static void close_fn(void *arg)
{
	(void)arg;
	draserver_close(STEAL(server));
}

static int tear_down(void **state)
{
	(void)state;
	on_rpc(close_fn, NULL);
	assert_false(sockets_are_there());
	listen_close(&kubelet, kubelet_path);
	assert_int_equal(system(arena_printf(a, "rm -r %s", dir)), 0);
	arena_free(a);
	return 0;
}

/* --- the kubelet --- */

static struct reply call(const char *socket, const char *method, struct bytes request)
{
	return call_whole((struct client_call) {
		.socket = socket, .path = method, .request = request, .arena = a });
}

static struct bytes claims(void)
{
	struct dra_claim_ref v[] = { { "ns", "u1", "c" }, { "ns", "u2", "d" } };

	return peer_encode_dra_claims(&(struct dra_claim_refs) { v, ARRAY_LEN(v) }, a);
}

static void notify(bool yes, const char *error)
{
	const struct registration_status status = { yes, error };

	assert_int_equal(
		call(registry_path, PATH_NOTIFY_STATUS, peer_encode_registration_status(&status, a))
			.status,
		RPC_OK);
}

static bool is_registered(void)
{
	return draserver_is_registered(server);
}

/* One that watches the health of devices. */
static struct watch {
	const char *method;
	struct rpc_channel *channel;
	struct rpc_subscription *stream;
	unsigned messages;
	size_t n;
	int health; /* of the first device */
	bool ended;
} watches[STREAMS];

static void on_health(void *arg, struct bytes body)
{
	struct arena *scratch = arena_new(1024);
	struct dra_health_list list;
	struct watch *w = arg;

	assert_int_equal(peer_decode_dra_health(body, scratch, &list, NULL), 0);
	w->n = list.n;
	w->health = list.n ? list.v[0].health : -1;
	w->messages++;
	arena_free(scratch);
}

static void on_end(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct watch *w = arg;

	(void)message;
	(void)body;
	assert_int_equal(status, RPC_UNAVAILABLE);
	w->ended = true;
	rpc_channel_close(w->channel);
}

static void watch_fn(void *arg)
{
	struct watch *w = arg;

	w->channel = rpc_channel_open(rpc, path, 1 << 20);
	w->stream = rpc_call_stream(w->channel, w->method, NOTHING, on_health, on_end, w);
}

static void tell_health_fn(void *arg)
{
	const struct dra_health v[] = {
		{ .pool = "n1", .device = "vf-0", .health = *(const int *)arg },
		{ .pool = "n1", .device = "vf-1", .health = DRA_HEALTHY },
	};

	draserver_health(server, &(struct dra_health_list) { v, ARRAY_LEN(v) });
}

static void tell_health(int health)
{
	on_rpc(tell_health_fn, &health);
}

/* --- tests --- */

static void the_kubelet_finds_the_driver(void **state)
{
	struct plugin_info info;
	struct reply r = call(registry_path, PATH_GET_INFO, NOTHING);
	struct stat st;

	(void)state;
	assert_int_equal(r.status, RPC_OK);
	assert_int_equal(peer_decode_plugin_info(r.body, a, &info, NULL), 0);
	assert_string_equal(info.type, "DRAPlugin");
	assert_string_equal(info.name, DRIVER);
	assert_string_equal(info.endpoint, path);
	assert_int_equal(info.versions.n, 4);
	assert_string_equal(info.versions.v[0], "v1.DRAPlugin");
	assert_string_equal(info.versions.v[1], "v1beta1.DRAPlugin");
	assert_string_equal(info.versions.v[2], "v1.DRAResourceHealth");
	assert_string_equal(info.versions.v[3], "v1alpha1.DRAResourceHealth");
	assert_false(is_on_rpc(is_registered));
	notify(true, "");
	assert_true(seen.yes);
	assert_true(is_on_rpc(is_registered));
	/* Nobody else may reach them. */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(stat(registry_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
}

static void a_refusal_of_the_kubelet_is_told(void **state)
{
	(void)state;
	notify(true, "");
	notify(false, "none of the services is supported");
	assert_int_equal(seen.told, 2);
	assert_false(seen.yes);
	assert_string_equal(seen.error, "none of the services is supported");
	assert_false(is_on_rpc(is_registered));
	assert_int_equal(call(registry_path, PATH_NOTIFY_STATUS,
			      (struct bytes) { (const uint8_t *)"\xff", 1 })
				 .status,
			 RPC_INVALID_ARGUMENT);
	assert_int_equal(seen.told, 2);
}

static void another_kubelet_registers_anew(void **state)
{
	(void)state;
	notify(true, "");
	listen_close(&kubelet, kubelet_path);
	start_kubelet();
	assert_false(is_on_rpc(is_registered));
	notify(true, "");
	assert_true(is_on_rpc(is_registered));
}

/* The kubelet is a child of ours here, and we are somebody else. */
static void only_the_kubelet_registers_it(void **state)
{
	pid_t child;
	int ready[2];
	char c;

	(void)state;
	listen_close(&kubelet, kubelet_path);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct listen_socket theirs;

		_exit(listen_open(kubelet_path, 0600, &theirs, NULL) == 0 &&
				      write(ready[1], "", 1) == 1
			      ? pause()
			      : 1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(call(registry_path, PATH_GET_INFO, NOTHING).status, RPC_OK);
	notify(true, "");
	notify(false, "none of the services is supported");
	assert_int_equal(seen.told, 0);
	assert_false(is_on_rpc(is_registered));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]);
	unlink(kubelet_path);
}

static void assert_prepares(const char *method)
{
	const struct dra_device device = { .pool = "n1", .device = "vf-0", .share = "s" };
	const struct dra_result results[] = { { .uid = "u1", .v = &device, .n = 1 },
					      { .uid = "u2", .error = "no VF is free" } };
	struct dra_results back;
	struct reply r;

	seen.results = results;
	seen.n_results = ARRAY_LEN(results);
	r = call(path, method, claims());
	assert_int_equal(r.status, RPC_OK);
	assert_string_equal(seen.claims, "ns/c=u1 ns/d=u2 ");
	assert_int_equal(peer_decode_dra_prepare_reply(r.body, a, &back, NULL), 0);
	assert_int_equal(back.n, 2);
	assert_int_equal(back.v[0].n, 1);
	assert_string_equal(back.v[0].v[0].device, "vf-0");
	assert_string_equal(back.v[1].error, "no VF is free");
}

static void claims_are_prepared_later(void **state)
{
	(void)state;
	assert_prepares(PATH_DRA_PREPARE);
	assert_prepares(PATH_DRA_PREPARE_V1BETA1);
}

static void assert_unprepares(const char *method)
{
	const struct dra_result results[] = { { .uid = "u1" }, { .uid = "u2", .error = "in use" } };
	struct dra_results back;
	struct reply r;

	seen.results = results;
	seen.n_results = ARRAY_LEN(results);
	seen.claims[0] = '\0';
	r = call(path, method, claims());
	assert_int_equal(r.status, RPC_OK);
	assert_string_equal(seen.claims, "ns/c=u1 ns/d=u2 ");
	assert_int_equal(peer_decode_dra_unprepare_reply(r.body, a, &back, NULL), 0);
	assert_int_equal(back.n, 2);
	assert_null(back.v[0].error);
	assert_string_equal(back.v[1].error, "in use");
}

static void claims_are_unprepared(void **state)
{
	(void)state;
	assert_unprepares(PATH_DRA_UNPREPARE);
	assert_unprepares(PATH_DRA_UNPREPARE_V1BETA1);
}

static void bytes_that_are_no_claims_are_refused(void **state)
{
	struct dra_claim_ref nameless = { "ns", "", "c" };
	struct bytes request = peer_encode_dra_claims(&(struct dra_claim_refs) { &nameless, 1 }, a);
	struct reply r = call(path, PATH_DRA_PREPARE, request);

	(void)state;
	assert_int_equal(r.status, RPC_INVALID_ARGUMENT);
	assert_string_equal(r.message, "a claim lacks its namespace, uid or name");
	assert_int_equal(call(path, PATH_DRA_UNPREPARE, request).status, RPC_INVALID_ARGUMENT);
	assert_int_equal(seen.prepares, 0);
	assert_int_equal(seen.claims[0], '\0');
}

static bool both_know_that_it_is_healthy(void)
{
	return watches[0].n == 2 && watches[0].health == DRA_HEALTHY && watches[1].n == 2 &&
	       watches[1].health == DRA_HEALTHY;
}

static bool both_know_that_it_is_not(void)
{
	return watches[0].health == DRA_UNHEALTHY && watches[1].health == DRA_UNHEALTHY;
}

static bool both_ended(void)
{
	return watches[0].ended && watches[1].ended;
}

static void health_is_told_to_every_stream(void **state)
{
	unsigned messages;

	(void)state;
	memset(watches, 0, sizeof(watches));
	watches[0].method = PATH_DRA_HEALTH;
	watches[1].method = PATH_DRA_HEALTH_V1ALPHA1;
	on_rpc(watch_fn, &watches[0]);
	tell_health(DRA_HEALTHY);
	on_rpc(watch_fn, &watches[1]);
	wait_until(both_know_that_it_is_healthy);
	messages = watches[0].messages;
	tell_health(DRA_HEALTHY);
	tell_health(DRA_UNHEALTHY);
	wait_until(both_know_that_it_is_not);
	assert_int_equal(watches[0].messages, messages + 1); /* it is not told what it knows */
	on_rpc(close_fn, NULL);
	wait_until(both_ended);
}

static void check_fn(void *arg)
{
	(void)arg;
	draserver_check(server);
}

static unsigned times_old(void)
{
	notify(true, "");
	usleep(2000);
	on_rpc(check_fn, NULL);
	on_rpc(check_fn, NULL);
	return seen.old;
}

static void a_kubelet_before_1_37_is_known_by_the_health_it_watches(void **state)
{
	(void)state;
	memset(watches, 0, sizeof(watches));
	watches[0].method = PATH_DRA_HEALTH_V1ALPHA1;
	watches[1].method = PATH_DRA_HEALTH;
	tell_health(DRA_HEALTHY);
	on_rpc(check_fn, NULL);
	assert_int_equal(seen.old, 0); /* nobody has registered it yet */
	assert_int_equal(times_old(), 1);
	on_rpc(watch_fn, &watches[0]);
	assert_int_equal(times_old(), 2);
	on_rpc(watch_fn, &watches[1]);
	wait_until(both_know_that_it_is_healthy);
	assert_int_equal(times_old(), 2);
	on_rpc(close_fn, NULL);
	wait_until(both_ended);
}

static bool is_held(void)
{
	return seen.held;
}

static void removed_sockets_are_opened_again(void **state)
{
	const struct dra_result result = { .uid = "u1" };
	struct client_call begun = {
		.socket = path, .path = PATH_DRA_PREPARE, .request = claims(), .arena = a
	};
	struct socket_id before, now;

	(void)state;
	call_begin(&begun);
	wait_until(is_held);
	unlink(path);
	assert_true(rpc_socket_id(registry_path, &before));
	on_rpc(check_fn, NULL);
	assert_true(sockets_are_there());
	assert_true(rpc_socket_id(registry_path, &now));
	assert_true(rpc_socket_same(&before, &now));
	unlink(path);
	rmdir(below("plugins/" DRIVER));
	unlink(registry_path);
	on_rpc(check_fn, NULL);
	assert_true(sockets_are_there());
	assert_int_equal(call(registry_path, PATH_GET_INFO, NOTHING).status, RPC_OK);
	seen.results = &result;
	seen.n_results = 1;
	on_rpc(answer, NULL);
	assert_int_equal(call_end(&begun).status, RPC_OK); /* it went on meanwhile */
	assert_int_equal(seen.told, 0);
}

static bool was_told(void)
{
	return seen.told;
}

static void a_folder_that_is_missing_is_told_once_and_awaited(void **state)
{
	(void)state;
	on_rpc(open_fn, NULL);
	wait_until(was_told);
	assert_false(seen.yes);
	assert_non_null(strstr(seen.error, "create "));
	assert_non_null(strstr(seen.error, "plugins/" DRIVER));
	on_rpc(check_fn, NULL);
	assert_int_equal(seen.told, 1);
	make_dir("plugins");
	wait_until(sockets_are_there);
	assert_int_equal(seen.told, 1);
}

static void another_process_on_the_socket_is_left_alone(void **state)
{
	struct listen_socket other;

	(void)state;
	make_dir("plugins");
	make_dir("plugins/" DRIVER);
	assert_int_equal(listen_open(path, 0660, &other, NULL), 0);
	on_rpc(open_fn, NULL);
	wait_until(was_told);
	assert_non_null(strstr(seen.error, "another process is listening"));
	assert_true(listen_intact(&other, path));
	assert_false(sockets_are_there());
	listen_close(&other, path);
	wait_until(sockets_are_there);
}

static void a_call_may_be_answered_after_the_end(void **state)
{
	const struct dra_result result = { .uid = "u1" };
	struct client_call begun = {
		.socket = path, .path = PATH_DRA_PREPARE, .request = claims(), .arena = a
	};

	(void)state;
	call_begin(&begun);
	wait_until(is_held);
	on_rpc(close_fn, NULL);
	assert_int_equal(call_end(&begun).status, RPC_UNAVAILABLE);
	seen.results = &result;
	seen.n_results = 1;
	on_rpc(answer, NULL);
}

int main(void)
{
#define T(f)	    cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define T_CLOSED(f) cmocka_unit_test_setup_teardown(f, set_up_closed, tear_down)
	const struct CMUnitTest tests[] = {
		T(the_kubelet_finds_the_driver),
		T(a_refusal_of_the_kubelet_is_told),
		T(another_kubelet_registers_anew),
		T(only_the_kubelet_registers_it),
		T(claims_are_prepared_later),
		T(claims_are_unprepared),
		T(bytes_that_are_no_claims_are_refused),
		T(health_is_told_to_every_stream),
		T(a_kubelet_before_1_37_is_known_by_the_health_it_watches),
		T(removed_sockets_are_opened_again),
		T_CLOSED(a_folder_that_is_missing_is_told_once_and_awaited),
		T_CLOSED(another_process_on_the_socket_is_left_alone),
		T(a_call_may_be_answered_after_the_end),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
