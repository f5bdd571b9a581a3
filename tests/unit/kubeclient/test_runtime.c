#include "support/onrpc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubeclient/kubeclient-internal.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"

#define NOTHING	   ((struct bytes) { NULL, 0 })
#define TIMEOUT_MS 30000 /* a busy machine takes its time */
#define SOON_MS	   50

/* --- a runtime --- */

enum manners { ANSWER, HANG, GARBAGE, FAIL, NO_STATUS, GARBAGE_STATUS, NOT_CRI };

static struct {
	enum manners manners;
	const char *name, *version;
	struct runtime_status status;
	struct rpc_server *server;
	struct rpc_call *hung;
	unsigned statuses;
} k;

static char dir[] = "/tmp/rm-runtime.XXXXXX";
static char *usual_path, *second_path, *own_path;
static struct runtime *r;

static struct {
	unsigned times;
	enum runtime_cdi answer;
	enum runtime_cni cni;
	char sentence[480], name[64], cni_sentence[480];
} got;

static void drop_hung(void)
{
	if (k.hung)
		rpc_reply(k.hung, RPC_UNAVAILABLE, "going", NOTHING);
	k.hung = NULL;
}

static void on_version(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct runtime_version v = { k.name, k.version };

	(void)ctx;
	(void)request;
	if (k.manners == HANG)
		k.hung = call;
	else if (k.manners == GARBAGE)
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { (const uint8_t *)"\xff", 1 });
	else if (k.manners == FAIL)
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	else
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_runtime_version(&v, rpc_call_arena(call)));
}

static void on_status(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	k.statuses += request.len == 2 && request.data[1]; /* verbose */
	if (k.manners == NO_STATUS)
		rpc_reply(call, RPC_INTERNAL, "cni config uninitialized", NOTHING);
	else if (k.manners == GARBAGE_STATUS)
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { (const uint8_t *)"\xff", 1 });
	else
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_runtime_status(&k.status, rpc_call_arena(call)));
}

static void serve(void *arg)
{
	static const struct rpc_method methods[] = {
		{ .path = PATH_RUNTIME_VERSION, .unary = on_version },
		{ .path = PATH_RUNTIME_STATUS, .unary = on_status },
	};
	struct err err = { 0 };

	if (rpc_server_open(rpc, arg, methods, k.manners == NOT_CRI ? 0 : 2, NULL, &k.server,
			    &err) < 0)
		fail_msg("%s", err.msg);
}

static void stop_serving(void *arg)
{
	(void)arg;
	drop_hung();
	if (k.server)
		rpc_server_close(STEAL(k.server), NULL, NULL);
}

/* --- the one that asks --- */

static void keep(char *out, size_t size, const char *s)
{
	snprintf(out, size, "%s", s ? s : "");
}

static void on_done(void *arg, const struct runtime_answer *answer)
{
	(void)arg;
	got.times++;
	got.answer = answer->cdi;
	got.cni = answer->cni;
	keep(got.sentence, sizeof(got.sentence), answer->sentence);
	keep(got.name, sizeof(got.name), answer->name);
	keep(got.cni_sentence, sizeof(got.cni_sentence), answer->cni_sentence);
}

static void ask(void *arg)
{
	const unsigned *timeout_ms = arg;

	kubeclient_runtime_ask(r, *timeout_ms, on_done, NULL);
	assert_int_equal(got.times, 0); /* never before the return */
}

static bool answered(void)
{
	return got.times == 1;
}

static void ask_within(unsigned timeout_ms)
{
	memset(&got, 0, sizeof(got));
	on_rpc(ask, &timeout_ms);
	wait_until(answered);
}

static void open_it(void *arg)
{
	r = kubeclient_runtime_open(rpc, dir, arg);
}

static void close_it(void *arg)
{
	(void)arg;
	kubeclient_runtime_close(STEAL(r));
}

static int setup(void **state)
{
	(void)state;
	memset(&k, 0, sizeof(k));
	k.name = "containerd";
	k.version = "2.1.0";
	on_rpc(open_it, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(close_it, NULL);
	on_rpc(stop_serving, NULL);
	unlink(usual_path);
	return 0;
}

static char *make_below(const char *folder, const char *name)
{
	_cleanup_free_ char *run = xasprintf("%s/run", dir),
			    *path = xasprintf("%s/run/%s", dir, folder);

	mkdir(run, 0755);
	mkdir(path, 0755);
	return xasprintf("%s/run/%s/%s", dir, folder, name);
}

static int start(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	usual_path = make_below("containerd", "containerd.sock");
	second_path = make_below("crio", "crio.sock");
	own_path = xasprintf("%s/own.sock", dir);
	return start_rpc(state);
}

static int stop(void **state)
{
	static const char *const folders[] = { "/run/containerd", "/run/crio", "/run", "" };

	stop_rpc(state);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		_cleanup_free_ char *path = xasprintf("%s%s", dir, folders[i]);

		rmdir(path);
	}
	free(usual_path);
	free(second_path);
	free(own_path);
	return 0;
}

static void expect(enum runtime_cdi answer, const char *part)
{
	assert_int_equal(got.answer, answer);
	if (!strstr(got.sentence, part))
		fail_msg("'%s' is not in '%s'", part, got.sentence);
}

/* --- tests --- */

static void runtimes_are_judged_by_version_and_configuration(void **state)
{
	static const struct {
		const char *name, *version, *config;
		enum runtime_cdi answer;
		const char *sentence;
	} cases[] = {
		{ "containerd", "1.6.20~ds1", NULL, RUNTIME_NO_CDI,
		  "containerd 1.6.20~ds1 has no CDI, which came with 1.7.2" },
		{ "containerd", "v1.5.9", "{\"enableCDI\": true}", RUNTIME_NO_CDI,
		  "containerd v1.5.9 has no CDI, which came with 1.7.2" },
		{ "containerd", "v1.7.0", "{\"enableCDI\": true}", RUNTIME_CDI_UNKNOWN,
		  "containerd v1.7.0 takes CDI devices only from kubelets before 1.32" },
		{ "containerd", "v1.7.27", "{\"enableCDI\": true}", RUNTIME_CDI, NULL },
		{ "containerd", "v1.7.27", "{\"x\": [1], \"enableCDI\": false}", RUNTIME_NO_CDI,
		  "CDI is switched off in containerd v1.7.27: set enable_cdi = true in its configuration" },
		{ "containerd", "1.7.27", NULL, RUNTIME_CDI_UNKNOWN,
		  "containerd 1.7.27 does not report whether enable_cdi is set" },
		{ "containerd", "1.7.27", "{\"enableCDI\": \"yes\"}", RUNTIME_CDI_UNKNOWN,
		  "containerd 1.7.27 does not report whether enable_cdi is set" },
		{ "containerd", "1.7.27", "{\"enableCDI\": tr", RUNTIME_CDI_UNKNOWN,
		  "containerd 1.7.27 does not report whether enable_cdi is set" },
		{ "containerd", "2.0.0-rc.1", NULL, RUNTIME_CDI, NULL },
		{ "containerd", "2.2.1", "{\"enableCDI\": true}", RUNTIME_CDI, NULL },
		{ "containerd", "2.2.1", "{\"enableCDI\": false}", RUNTIME_NO_CDI,
		  "CDI is switched off in containerd 2.2.1: set enable_cdi = true in its configuration" },
		{ "cri-o", "1.22.5", NULL, RUNTIME_NO_CDI,
		  "cri-o 1.22.5 has no CDI, which came with 1.28" },
		{ "cri-o", "1.24.1", NULL, RUNTIME_CDI_UNKNOWN,
		  "cri-o 1.24.1 takes CDI devices only from kubelets before 1.32" },
		{ "cri-o", "1.28.0", NULL, RUNTIME_CDI, NULL },
		{ "cri-o", "1.34.0", "{\"enableCDI\": false}", RUNTIME_CDI,
		  NULL }, /* it has no such setting */
		{ "docker", "25.0.3", NULL, RUNTIME_CDI_UNKNOWN,
		  "docker 25.0.3 is not known here" },
		{ "containerd", "", NULL, RUNTIME_CDI_UNKNOWN, "containerd  is not known here" },
		{ "containerd", "main", NULL, RUNTIME_CDI_UNKNOWN,
		  "containerd main is not known here" },
		{ "", "1.2.3", NULL, RUNTIME_CDI_UNKNOWN,
		  "a runtime without a name 1.2.3 is not known here" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_arena_ struct arena *a = arena_new(1024);
		const char *sentence;
		enum runtime_cdi answer = kubeclient_runtime_judge(cases[i].name, cases[i].version,
								   cases[i].config, a, &sentence);

		if (answer != cases[i].answer)
			fail_msg("%s %s: %d", cases[i].name, cases[i].version, (int)answer);
		if (cases[i].sentence)
			assert_string_equal(sentence, cases[i].sentence);
		else
			assert_null(sentence);
	}
}

#define PLUGIN(type) "{\"Network\": {\"type\": \"" type "\"}, \"Source\": \"{}\"}"
#define NETWORK(plugins)                                                                           \
	"{\"Config\": {\"Name\": \"x\", \"Plugins\": [" plugins "]}, \"IFName\": \"eth0\"}"
#define CNI(networks) "{\"PluginConfDir\": \"/etc/cni/net.d\", \"Networks\": [" networks "]}"
#define LOOPBACK      NETWORK(PLUGIN("loopback"))

static void its_cni_plugins_are_judged_by_type(void **state)
{
	static const char untold[] = "it does not report which CNI plugins it uses";
	static const struct {
		const char *cni;
		enum runtime_cni answer;
		const char *sentence;
	} cases[] = {
		{ CNI(LOOPBACK "," NETWORK(PLUGIN("calico") "," PLUGIN("portmap"))),
		  RUNTIME_CNI_KEEPS_IDS, NULL },
		{ CNI(LOOPBACK "," NETWORK(PLUGIN("multus-shim"))), RUNTIME_CNI_PASSES_IDS,
		  "the CNI plugin multus-shim hands device ids on to others" },
		{ CNI(NETWORK(PLUGIN("multus")) "," LOOPBACK "," NETWORK("{}")),
		  RUNTIME_CNI_PASSES_IDS, "the CNI plugin multus hands device ids on to others" },
		{ CNI(NETWORK(PLUGIN("tuning") "," PLUGIN("danm"))), RUNTIME_CNI_PASSES_IDS,
		  "the CNI plugin danm hands device ids on to others" },
		{ CNI(LOOPBACK), RUNTIME_CNI_UNKNOWN, "it has no CNI network yet" },
		{ CNI(""), RUNTIME_CNI_UNKNOWN, "it has no CNI network yet" },
		{ "{\"Networks\": null}", RUNTIME_CNI_UNKNOWN, "it has no CNI network yet" },
		{ CNI(NETWORK(PLUGIN("calico") ",{}")), RUNTIME_CNI_UNKNOWN, untold },
		{ CNI(NETWORK(PLUGIN("calico")) ",{\"IFName\": 1}"), RUNTIME_CNI_UNKNOWN, untold },
		{ "{}", RUNTIME_CNI_UNKNOWN, untold },
		{ "[1]", RUNTIME_CNI_UNKNOWN, untold },
		{ "{\"Networks\": [", RUNTIME_CNI_UNKNOWN, untold },
		{ NULL, RUNTIME_CNI_UNKNOWN, untold },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_arena_ struct arena *a = arena_new(1024);
		const char *sentence;
		enum runtime_cni answer =
			kubeclient_runtime_judge_cni("it", cases[i].cni, a, &sentence);

		if (answer != cases[i].answer)
			fail_msg("%s: %d", cases[i].cni, (int)answer);
		if (cases[i].sentence)
			assert_string_equal(sentence, cases[i].sentence);
		else
			assert_null(sentence);
	}
}

static void its_name_and_its_cni_plugins_are_told(void **state)
{
	(void)state;
	k.status.cni = CNI(LOOPBACK "," NETWORK(PLUGIN("multus-shim")));
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI, "");
	assert_string_equal(got.name, "containerd 2.1.0");
	assert_int_equal(got.cni, RUNTIME_CNI_PASSES_IDS);
	k.manners = NO_STATUS;
	ask_within(TIMEOUT_MS);
	assert_int_equal(got.cni, RUNTIME_CNI_UNKNOWN);
	assert_string_equal(got.cni_sentence,
			    "containerd 2.1.0 does not report which CNI plugins it uses");
}

static void the_usual_socket_is_found_below_the_root(void **state)
{
	(void)state;
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI, "");
	assert_int_equal(k.statuses, 1);
}

static void the_configuration_is_asked_for(void **state)
{
	(void)state;
	k.version = "1.7.27";
	k.status.config = "{\"enableCDI\": false}";
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_NO_CDI, "set enable_cdi = true");
	expect(RUNTIME_NO_CDI, usual_path);
}

static void a_socket_that_is_named_is_the_only_one(void **state)
{
	(void)state;
	on_rpc(close_it, NULL);
	on_rpc(open_it, own_path);
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI_UNKNOWN, own_path);
	expect(RUNTIME_CDI_UNKNOWN, "no socket of it is here");
}

static void no_socket_is_an_answer(void **state)
{
	(void)state;
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI_UNKNOWN, "no socket of it is here");
	expect(RUNTIME_CDI_UNKNOWN, "run/crio/crio.sock");
}

static void a_socket_that_nobody_listens_on_is_silent(void **state)
{
	int fd = open(usual_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	close(fd);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_SILENT, usual_path);
}

static void a_runtime_that_hangs_is_silent(void **state)
{
	(void)state;
	k.manners = HANG;
	on_rpc(serve, usual_path);
	ask_within(SOON_MS);
	expect(RUNTIME_SILENT, usual_path);
}

static void a_silent_socket_does_not_hide_the_next_one(void **state)
{
	int fd = open(usual_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	close(fd);
	k.name = "cri-o";
	k.version = "1.34.0";
	on_rpc(serve, second_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI, "");
}

static void one_that_speaks_no_cri_is_not_the_runtime(void **state)
{
	(void)state;
	k.manners = NOT_CRI;
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI_UNKNOWN, "it does not speak CRI v1");
}

static void nonsense_is_told(void **state)
{
	(void)state;
	k.manners = GARBAGE;
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI_UNKNOWN, "not protobuf");
}

static void an_error_is_told(void **state)
{
	(void)state;
	k.manners = FAIL;
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI_UNKNOWN, "out of order");
}

static void without_its_configuration_the_version_has_to_do(void **state)
{
	(void)state;
	k.manners = NO_STATUS;
	k.version = "1.6.20";
	on_rpc(serve, usual_path);
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_NO_CDI, "containerd 1.6.20 has no CDI");
	k.manners = GARBAGE_STATUS;
	k.version = "1.7.27";
	ask_within(TIMEOUT_MS);
	expect(RUNTIME_CDI_UNKNOWN, "does not report");
}

static void ask_and_close(void *arg)
{
	ask(arg);
	close_it(NULL);
}

static bool asked(void)
{
	return k.hung != NULL;
}

static void what_is_asked_ends_with_us(void **state)
{
	unsigned timeout_ms = TIMEOUT_MS;

	(void)state;
	memset(&got, 0, sizeof(got));
	on_rpc(ask_and_close, &timeout_ms); /* before the call */
	assert_int_equal(got.times, 1);
	expect(RUNTIME_SILENT, "railmated is stopping");
	on_rpc(open_it, NULL);
	k.manners = HANG;
	on_rpc(serve, usual_path);
	memset(&got, 0, sizeof(got));
	on_rpc(ask, &timeout_ms);
	wait_until(asked);
	on_rpc(close_it, NULL); /* within it */
	assert_int_equal(got.times, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runtimes_are_judged_by_version_and_configuration),
		cmocka_unit_test(its_cni_plugins_are_judged_by_type),
		cmocka_unit_test_setup_teardown(its_name_and_its_cni_plugins_are_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_usual_socket_is_found_below_the_root, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_configuration_is_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(a_socket_that_is_named_is_the_only_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_socket_is_an_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(a_socket_that_nobody_listens_on_is_silent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_runtime_that_hangs_is_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(a_silent_socket_does_not_hide_the_next_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_that_speaks_no_cri_is_not_the_runtime, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nonsense_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(an_error_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(without_its_configuration_the_version_has_to_do,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_asked_ends_with_us, setup, teardown),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
