#include "support/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "endpoint/endpoint-internal.h"
#include "kubeclient/podres.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"
#include "plugin/plugin-internal.h"
#include "plugin/plugin.h"
#include "pods/holders.h"
#include "rpc/rpc.h"
#include "support/nodes.h"
#include "unit/plugin/caller.h"

#define MACHINE	 "numa:2 switch:2 gpu:2 pf:1 vf:4"
#define RESOURCE "rdma/vf"
#define NOTHING	 ((struct bytes) { NULL, 0 })

/* --- a kubelet, as far as a plugin meets it --- */

enum manners {
	DIAL_FIRST,   /* 1.27 and later: options and stream within Register */
	ANSWER_FIRST, /* 1.20: Register returns, then it dials */
	REFUSE,
	HANG, /* Register never returns */
	NEVER_DIAL,
};

enum pods_manners { PODS_ANSWER, PODS_OLD, PODS_FAIL, PODS_HANG, PODS_BUSY_ONCE, PODS_GARBAGE };

static struct {
	enum manners manners;
	struct rpc_server *server;
	struct rpc_channel *channel; /* to the plugin */
	struct rpc_subscription *stream;
	struct rpc_call *hung;
	unsigned registers, streams, ended, lists, devices, unhealthy;
	unsigned ended_at_register; /* how many streams had ended when the last Register came */
	char endpoint[128];
} k;

static struct {
	enum pods_manners manners;
	struct rpc_server *server;
	struct rpc_call *hung;
	struct pod_list pods;
	unsigned gets, lists;
} pods;

static struct pool_config pool_cfg;
static const struct config cfg = { .pools = &pool_cfg, .n_pools = 1 };
static struct machine m;
static struct arena *a;
static struct plugin_env env;
static struct plugin *p;
static char *plugin_dir, *registry_dir, *pods_path, *devinfo_dir, *kubelet_sock;
static unsigned warnings;

/* --- the kubelet's side, on the rpc thread --- */

static void got_list(void *arg, struct bytes body)
{
	_cleanup_arena_ struct arena *tmp = arena_new(0);
	struct device_list l;

	(void)arg;
	assert_int_equal(peer_decode_device_list(body, tmp, &l, NULL), 0);
	k.lists++;
	k.devices = (unsigned)l.n;
	k.unhealthy = 0;
	for (size_t i = 0; i < l.n; i++)
		k.unhealthy += !l.v[i].healthy;
}

static void stream_over(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	(void)status;
	(void)message;
	(void)body;
	k.ended++;
	if (k.stream == *(struct rpc_subscription **)arg)
		k.stream = NULL;
	free(arg);
}

static void open_stream(void)
{
	struct rpc_subscription **self = xcalloc(1, sizeof(*self));

	k.streams++;
	k.stream = *self = rpc_call_stream(k.channel, PATH_LIST_AND_WATCH, NOTHING, got_list,
					   stream_over, self);
}

static void got_options(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	_cleanup_arena_ struct arena *tmp = arena_new(0);
	struct rpc_call *call = arg;
	struct plugin_options o = { 0 };

	if (status != RPC_OK || kubemsg_decode(&kubemsg_options, body, tmp, &o, NULL) < 0 ||
	    !o.preferred_allocation) {
		rpc_reply(call, RPC_UNKNOWN, message, NOTHING);
		return;
	}
	open_stream();
	rpc_reply(call, RPC_OK, NULL, NOTHING);
}

static void dial(const char *path)
{
	rpc_channel_close(k.channel);
	k.channel = rpc_channel_open(rpc, path, 4 << 20);
}

static void handle_register(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct register_request r;
	char path[256];

	(void)ctx;
	assert_int_equal(peer_decode_register(request, rpc_call_arena(call), &r, NULL), 0);
	assert_string_equal(r.version, "v1beta1");
	assert_string_equal(r.resource, RESOURCE);
	assert_true(r.options.preferred_allocation);
	k.registers++;
	k.ended_at_register = k.ended;
	snprintf(k.endpoint, sizeof(k.endpoint), "%s", r.endpoint);
	snprintf(path, sizeof(path), "%s/%s", plugin_dir, r.endpoint);
	switch (k.manners) {
	case DIAL_FIRST:
		dial(path);
		rpc_call_unary(k.channel, PATH_OPTIONS, NOTHING, 5000, got_options, call);
		return;
	case ANSWER_FIRST:
		rpc_reply(call, RPC_OK, NULL, NOTHING);
		dial(path);
		open_stream();
		return;
	case REFUSE:
		rpc_reply(call, RPC_UNKNOWN, "the resource name is not to my liking", NOTHING);
		return;
	case HANG:
		k.hung = call;
		return;
	case NEVER_DIAL:
		rpc_reply(call, RPC_OK, NULL, NOTHING);
		return;
	}
}

static const struct rpc_method kubelet_methods[] = { { .path = PATH_REGISTER,
						       .unary = handle_register } };

static void kubelet_start_fn(void *arg)
{
	struct err err = { 0 };

	(void)arg;
	if (rpc_server_open(rpc, kubelet_sock, kubelet_methods, 1, NULL, &k.server, &err) < 0)
		fail_msg("%s", err.msg);
}

static void drop_hung(struct rpc_call **call)
{
	if (*call)
		rpc_reply(*call, RPC_UNAVAILABLE, "going", NOTHING);
	*call = NULL;
}

static void kubelet_stop_fn(void *arg)
{
	(void)arg;
	drop_hung(&k.hung);
	if (k.channel)
		rpc_channel_close(STEAL(k.channel));
	if (k.server)
		rpc_server_close(STEAL(k.server), NULL, NULL);
}

static void wipe_sockets(void)
{
	DIR *d = opendir(plugin_dir);
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_type == DT_SOCK)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
}

static void kubelet_start(void)
{
	wipe_sockets();
	on_rpc(kubelet_start_fn, NULL);
}

static void kubelet_stop(void)
{
	on_rpc(kubelet_stop_fn, NULL);
}

static void drop_stream_fn(void *arg)
{
	(void)arg;
	if (k.stream)
		rpc_subscription_cancel(k.stream);
}

/* --- PodResources --- */

static void handle_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	pods.gets++;
	if (pods.manners == PODS_OLD)
		rpc_reply(call, RPC_UNIMPLEMENTED, "unknown method Get", NOTHING);
	else
		rpc_reply(call, RPC_UNKNOWN, "pod not found", NOTHING);
}

static void handle_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	pods.lists++;
	switch (pods.manners) {
	case PODS_BUSY_ONCE:
		pods.manners = PODS_ANSWER;
		rpc_reply(call, RPC_RESOURCE_EXHAUSTED, "rejected by rate limit", NOTHING);
		return;
	case PODS_ANSWER:
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_pod_list(&pods.pods, true, rpc_call_arena(call)));
		return;
	case PODS_GARBAGE:
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { (const uint8_t *)"\xff", 1 });
		return;
	case PODS_HANG:
		drop_hung(&pods.hung);
		pods.hung = call;
		return;
	default:
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	}
}

static const struct rpc_method pods_methods[] = { { .path = PATH_POD_GET, .unary = handle_get },
						  { .path = PATH_POD_LIST, .unary = handle_list } };

static void pods_start_fn(void *arg)
{
	(void)arg;
	assert_int_equal(rpc_server_open(rpc, pods_path, pods_methods, 2, NULL, &pods.server, NULL),
			 0);
}

static void pods_stop_fn(void *arg)
{
	(void)arg;
	drop_hung(&pods.hung);
	if (pods.server)
		rpc_server_close(STEAL(pods.server), NULL, NULL);
}

static void podres_close_fn(void *arg)
{
	(void)arg;
	kubeclient_podres_close(STEAL(env.podres));
	pods_holders_free(STEAL(env.holders));
}

/* --- the plugin --- */

static void new_fn(void *arg)
{
	(void)arg;
	p = plugin_new(&env, RESOURCE);
	plugin_update(p, m.node);
}

static void kick_fn(void *arg)
{
	(void)arg;
	plugin_kick(p);
}

static void update_fn(void *arg)
{
	plugin_update(p, arg);
}

static void free_fn(void *arg)
{
	(void)arg;
	if (p)
		plugin_free(STEAL(p));
}

static bool registered(void)
{
	return plugin_is_registered(p);
}

static bool kubelet_has_list(void)
{
	return k.stream && k.lists > 0;
}

static bool registered_once(void)
{
	return plugin_stats(p).endpoint.registrations == 1;
}

static void start_plugin(void)
{
	on_rpc(new_fn, NULL);
}

static void start_all(void)
{
	kubelet_start();
	start_plugin();
	wait_until(kubelet_has_list);
}

static void kick(void)
{
	on_rpc(kick_fn, NULL);
}

static void count_warnings(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)line;
	if (level <= LOG_LEVEL_WARN)
		__atomic_add_fetch(&warnings, 1, __ATOMIC_RELAXED);
}

static int setup(void **state)
{
	(void)state;
	memset(&k, 0, sizeof(k));
	memset(&pods, 0, sizeof(pods));
	pool_cfg = (struct pool_config) { .resource = RESOURCE,
					  .prefix = "rdma",
					  .name = "vf",
					  .is_rdma = true,
					  .profiles = PROFILE_NCCL };
	a = arena_new(0);
	m = fake_machine_open(MACHINE, &cfg);
	plugin_dir = arena_printf(a, "%s/k", m.dir);
	registry_dir = arena_printf(a, "%s/r", m.dir);
	devinfo_dir = arena_printf(a, "%s/run/devinfo/dp", m.dir);
	pods_path = arena_printf(a, "%s/p.sock", m.dir);
	kubelet_sock = arena_printf(a, "%s/kubelet.sock", plugin_dir);
	machine_dir(&m, "k");
	machine_dir(&m, "r");
	warnings = 0;
	log_setup(LOG_LEVEL_WARN, count_warnings, NULL);
	env = (struct plugin_env) { .endpoint.rpc = rpc,
				    .root = m.root,
				    .endpoint.plugin_dir = plugin_dir,
				    .endpoint.registry_dir = registry_dir,
				    .devinfo_dir = devinfo_dir,
				    /* A busy machine's answer counts, too. */
				    .pod_resources_timeout_ms = 20000,
				    .start_timeout_ms = 20000 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(free_fn, NULL);
	kubelet_stop();
	on_rpc(pods_stop_fn, NULL);
	on_rpc(podres_close_fn, NULL);
	fake_machine_close(&m);
	arena_free(a);
	return 0;
}

/* --- calling the plugin --- */

static struct client_call to_plugin(const char *path, struct bytes request)
{
	return (struct client_call) { .socket = caller_socket_in(plugin_dir, a),
				      .path = path,
				      .request = request,
				      .arena = a };
}

static struct reply call(const char *path, struct bytes request)
{
	return call_whole(to_plugin(path, request));
}

static const char *id(size_t i)
{
	return m.pool->devs[i].id;
}

static struct bytes preferred_request(size_t n_must, int size)
{
	struct preferred_container c = { { arena_array(a, 16, sizeof(char *)), 16 },
					 { arena_array(a, 16, sizeof(char *)), n_must },
					 size };
	struct preferred_request r = { &c, 1 };

	for (size_t i = 0; i < 16; i++)
		c.available.v[i] = id(i);
	for (size_t i = 0; i < n_must; i++)
		c.must.v[i] = id(i);
	return kubemsg_encode(&kubemsg_preferred, &r, a);
}

static struct ids preferred(size_t n_must, int size)
{
	struct reply r = call(PATH_PREFERRED, preferred_request(n_must, size));
	struct id_lists l;

	assert_int_equal(r.status, RPC_OK);
	assert_int_equal(kubemsg_decode(&kubemsg_preferred_reply, r.body, a, &l, NULL), 0);
	assert_int_equal(l.n, 1);
	return l.v[0];
}

static struct bytes allocate_request(const char **v, size_t n)
{
	struct ids ids = { v, n };
	struct id_lists l = { &ids, 1 };

	return peer_encode_allocate(&l, a);
}

static const char *env_of(const struct reply *r, const char *key)
{
	struct edits *e;
	size_t n;

	assert_int_equal(r->status, RPC_OK);
	assert_int_equal(peer_decode_allocate_reply(r->body, a, &e, &n, NULL), 0);
	assert_int_equal(n, 1);
	for (size_t i = 0; i < e[0].n_envs; i++) {
		if (!strcmp(e[0].envs[i].key, key))
			return e[0].envs[i].value;
	}
	return NULL;
}

static struct plugin_stats stats_copy;
static bool copy_stats(void)
{
	stats_copy = plugin_stats(p);
	return true;
}

static const struct plugin_stats *stats(void)
{
	is_on_rpc(copy_stats);
	return &stats_copy;
}

static void expect_registered(void)
{
	wait_until(kubelet_has_list);
	assert_true(is_on_rpc(registered));
	assert_int_equal(k.devices, 16);
}

/* --- registration --- */

static void registers_with_a_kubelet_that_dials_first(void **state)
{
	(void)state;
	start_all();
	wait_until(registered_once);
	expect_registered();
	assert_string_equal(k.endpoint, strrchr(caller_socket_in(plugin_dir, a), '/') + 1);
	assert_int_equal(k.registers, 1);
	assert_int_equal(k.unhealthy, 0);
	assert_int_equal(warnings, 0);
}

static void registers_with_a_kubelet_that_answers_first(void **state)
{
	(void)state;
	k.manners = ANSWER_FIRST;
	start_all();
	expect_registered();
	assert_int_equal(k.registers, 1);
}

static void waits_for_a_kubelet_that_comes_later(void **state)
{
	(void)state;
	start_plugin();
	assert_false(is_on_rpc(registered));
	assert_int_equal(warnings, 1);
	kubelet_start();
	kick();
	expect_registered();
}

static bool second_stream(void)
{
	return k.streams >= 2 && k.stream && k.lists >= 2;
}

static void stream_that_ends_is_registered_again(void **state)
{
	(void)state;
	start_all();
	on_rpc(drop_stream_fn, NULL);
	wait_until(second_stream);
	assert_int_equal(k.registers, 2);
}

static void socket_that_was_wiped_is_created_again(void **state)
{
	struct reply r;

	(void)state;
	start_all();
	assert_int_equal(unlink(caller_socket_in(plugin_dir, a)), 0);
	kick();
	r = call(PATH_OPTIONS, NOTHING);
	assert_int_equal(r.status, RPC_OK);
	assert_int_equal(k.registers, 1); /* the stream still stands */
}

static void restart_kubelet(bool with_kick)
{
	kubelet_stop();
	k.lists = 0;
	kubelet_start();
	if (with_kick)
		kick();
	wait_until(kubelet_has_list);
}

static void kubelet_that_restarts_is_registered_with(void **state)
{
	(void)state;
	start_all();
	restart_kubelet(true);
	expect_registered();
}

static void kubelet_that_restarts_is_found_without_an_event(void **state)
{
	(void)state;
	start_all();
	restart_kubelet(false);
	expect_registered();
}

/* The old kubelet's stream looks alive, but the socket is another one: up to 1.36 the old stream's
 * end would take the new registration along. */
static void old_stream_ends_before_the_new_registration(void **state)
{
	(void)state;
	start_all();
	on_rpc(drop_stream_fn, NULL);
	wait_until(second_stream);
	k.lists = 0;
	machine_remove(&m, "k/kubelet.sock");
	on_rpc(kubelet_start_fn, NULL);
	kick();
	wait_until(kubelet_has_list);
	assert_int_equal(k.registers, 3);
	assert_int_equal(k.ended_at_register, 2);
}

static bool five_failures(void)
{
	return plugin_stats(p).endpoint.register_failures >= 5;
}

static void refused_registration_is_tried_again_and_told_once(void **state)
{
	(void)state;
	k.manners = REFUSE;
	kubelet_start();
	start_plugin();
	wait_until(five_failures);
	assert_int_equal(warnings, 1);
	k.manners = DIAL_FIRST;
	expect_registered();
}

static bool call_hangs(void)
{
	return k.hung;
}

static void registration_that_hangs_ends_with_its_kubelet(void **state)
{
	(void)state;
	k.manners = HANG;
	kubelet_start();
	start_plugin();
	wait_until(call_hangs);
	k.manners = DIAL_FIRST;
	/* a new socket file, while the old kubelet still keeps our call */
	machine_remove(&m, "k/kubelet.sock");
	on_rpc(kubelet_start_fn, NULL);
	kick();
	expect_registered();
	assert_int_equal(stats()->endpoint.register_failures, 0);
}

static void kubelet_that_dies_within_register_is_waited_for(void **state)
{
	(void)state;
	k.manners = HANG;
	kubelet_start();
	start_plugin();
	wait_until(call_hangs);
	k.manners = DIAL_FIRST;
	restart_kubelet(true);
	expect_registered();
}

static void plugin_can_go_while_register_hangs(void **state)
{
	(void)state;
	k.manners = HANG;
	kubelet_start();
	start_plugin();
	wait_until(call_hangs);
	on_rpc(free_fn, NULL);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void socket_file_that_does_not_listen_yet_is_tried_again(void **state)
{
	int fd;

	(void)state;
	fd = listen_at(kubelet_sock);
	start_plugin();
	close(fd);
	unlink(kubelet_sock);
	on_rpc(kubelet_start_fn, NULL);
	expect_registered();
}

static void every_registration_has_a_path_of_its_own(void **state)
{
	const char *first, *second;

	(void)state;
	start_all();
	first = caller_socket_in(plugin_dir, a);
	restart_kubelet(true);
	expect_registered();
	second = caller_socket_in(plugin_dir, a);
	assert_string_not_equal(first, second);
	assert_string_equal(k.endpoint, strrchr(second, '/') + 1);
	assert_int_equal(access(first, F_OK), -1);
}

static void sockets_that_killed_instances_left_are_removed(void **state)
{
	static const char *const names[] = { "rdma_vf.0123abcd.7.sock", "rdma_vf.0123abcd.8.sock",
					     "rdma_vf.sock", "rdma_vfs.0123abcd.7.sock" };
	int fds[ARRAY_LEN(names)];

	(void)state;
	kubelet_start();
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		fds[i] = listen_at(arena_printf(a, "%s/%s", plugin_dir, names[i]));
	assert_int_equal(listen(fds[1], 8), 0); /* of one that lives */
	start_plugin();
	expect_registered();
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(access(arena_printf(a, "%s/%s", plugin_dir, names[i]), F_OK),
				 i == 0 ? -1 : 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		close(fds[i]);
}

static void directory_that_is_not_there_is_told_and_waited_out(void **state)
{
	_cleanup_free_ char *away = xasprintf("%s.away", plugin_dir);

	(void)state;
	on_rpc(kubelet_start_fn, NULL);
	assert_int_equal(rename(plugin_dir, away), 0);
	start_plugin();
	assert_int_equal(warnings, 1);
	assert_int_equal(rename(away, plugin_dir), 0);
	kick();
	expect_registered();
}

static size_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void sixty_restarts_leak_no_descriptor(void **state)
{
	size_t before = 0, after;

	(void)state;
	start_all();
	for (int i = 0; i < 64; i++) {
		restart_kubelet(i % 32 != 0);
		if (i == 3)
			before = open_files();
	}
	for (int i = 0; i < 20000 && (after = open_files()) > before + 3; i++)
		usleep(1000); /* closing servers let go after the last of their connections */
	assert_true(after <= before + 3);
	assert_int_equal(k.devices, 16);
}

/* --- the list --- */

static bool two_lists(void)
{
	return k.lists >= 2;
}

static struct node *next_node(bool smaller)
{
	struct hw_inventory *inv = synth_inventory(MACHINE);

	if (smaller)
		inv->pci[synth_pf(inv, 0)].carrier = 0;
	return node_new(inv, &cfg, m.node);
}

static void list_is_sent_only_when_it_changed(void **state)
{
	struct node *same = next_node(false), *other;

	(void)state;
	start_all();
	on_rpc(update_fn, same);
	for (size_t i = 0; i < same->pools[0].n_devs; i++)
		((struct pool_dev *)(uintptr_t)same->pools[0].devs)[i].healthy = true;
	other = next_node(false);
	((struct pool_dev *)(uintptr_t)other->pools[0].devs)[3].healthy = false;
	on_rpc(update_fn, other);
	wait_until(two_lists);
	assert_int_equal(k.unhealthy, 1);
	node_unref(same);
	node_unref(other);
}

static void pool_without_devices_is_not_served(void **state)
{
	struct hw_inventory *inv = synth_inventory("gpu:1");
	struct node *empty = node_new(inv, &cfg, NULL);

	(void)state;
	kubelet_start();
	p = NULL;
	node_unref(m.node);
	m.node = node_ref(empty);
	start_plugin();
	kick();
	assert_int_equal(access(caller_socket_in(plugin_dir, a), F_OK), -1);
	assert_int_equal(k.registers, 0);
	node_unref(empty);
}

/* --- the calls --- */

static void garbage_is_an_invalid_argument(void **state)
{
	static const char *const paths[] = { PATH_PREFERRED, PATH_ALLOCATE, PATH_PRE_START };

	(void)state;
	start_all();
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct reply r = call(paths[i], (struct bytes) { (const uint8_t *)"\xff\xff", 2 });

		assert_int_equal(r.status, RPC_INVALID_ARGUMENT);
		assert_non_null(strstr(r.message, "are not protobuf"));
	}
	assert_int_equal(call("/v1beta1.DevicePlugin/Nonsense", NOTHING).status, RPC_UNIMPLEMENTED);
}

static void allocate_of_a_cut_id_is_not_mistaken(void **state)
{
	uint8_t wire[64];
	size_t n = strlen(id(0));
	struct reply r;

	(void)state;
	start_all();
	wire[0] = 0x0a;
	wire[1] = (uint8_t)(n + 4);
	wire[2] = 0x0a;
	wire[3] = (uint8_t)(n + 2);
	memcpy(wire + 4, id(0), n);
	memcpy(wire + 4 + n, "\0x", 2);
	r = call(PATH_ALLOCATE, (struct bytes) { wire, n + 6 });
	assert_int_equal(r.status, RPC_INVALID_ARGUMENT);
	assert_string_equal(r.message,
			    "ContainerAllocateRequest: a value of devices_ids holds a NUL byte");
}

static void allocate_grants_or_tells_why_not(void **state)
{
	const char *good[] = { id(4) }, *bad[] = { "0000:ff:00.0" };
	struct reply r;

	(void)state;
	start_all();
	r = call(PATH_ALLOCATE, allocate_request(good, 1));
	assert_string_equal(env_of(&r, "PCIDEVICE_RDMA_VF"), id(4));
	r = call(PATH_ALLOCATE, allocate_request(bad, 1));
	assert_int_equal(r.status, RPC_NOT_FOUND);
	assert_string_equal(
		r.message,
		"device '0000:ff:00.0' is not in the pool rdma/vf of this node: was the configuration changed?");
}

static void pre_start_knows_its_devices(void **state)
{
	const char *good[] = { id(4) }, *bad[] = { "x" };
	struct ids known = { good, 1 }, unknown = { bad, 1 };

	(void)state;
	start_all();
	assert_int_equal(call(PATH_PRE_START, peer_encode_pre_start(&known, a)).status, RPC_OK);
	assert_int_equal(call(PATH_PRE_START, peer_encode_pre_start(&unknown, a)).status,
			 RPC_NOT_FOUND);
}

/* --- PodResources --- */

static void use_pods(enum pods_manners manners)
{
	static struct held held[2];
	static struct pod_container c[2];
	static struct pod list[2];
	const char **gpu = arena_array(a, 2, sizeof(*gpu));

	/* an old pod with the first GPU, and a new one with the third, which sits on the second
	 * switch */
	gpu[0] = m.node->inv->gpu[0].uuid;
	gpu[1] = m.node->inv->gpu[2].uuid;
	for (int i = 0; i < 2; i++) {
		held[i] = (struct held) { "nvidia.com/gpu", { &gpu[i], 1 } };
		c[i] = (struct pod_container) { .name = "main", .held = &held[i], .n_held = 1 };
		list[i] = (struct pod) { "default", i ? "new" : "old", &c[i], 1 };
	}
	pods.manners = manners;
	pods.pods = (struct pod_list) { list, 1 };
	env.podres = kubeclient_podres_open(rpc, pods_path);
	env.holders = pods_holders_new();
	kubeclient_podres_subscribe(env.podres, pods_holders_hear, env.holders);
	on_rpc(pods_start_fn, NULL);
	start_all();
}

static bool primed(void)
{
	return p->primed;
}

/* So long ago that who is in the first List was there before. */
static bool primed_long_ago(void)
{
	return p->primed && clock_mono_ms() - p->primed_ms >= env.overtaking_ms;
}

static void use_pods_that_were_there_before(void)
{
	use_pods(PODS_ANSWER);
	wait_until(primed_long_ago);
}

static void vfs_beside_the_gpus_of_the_new_container_are_preferred(void **state)
{
	const char *v[1];
	struct reply r;
	struct ids ids;

	(void)state;
	use_pods_that_were_there_before();
	pods.pods.n = 2;
	ids = preferred(0, 1);
	assert_int_equal(ids.n, 1);
	assert_string_equal(ids.v[0], id(4));
	v[0] = ids.v[0];
	r = call(PATH_ALLOCATE, allocate_request(v, 1));
	assert_non_null(env_of(&r, "RAILMATE_RDMA_VF_MAP"));
	assert_int_equal(pods.lists, 2);
	/* the pairs were for that container only */
	r = call(PATH_ALLOCATE, allocate_request(v, 1));
	assert_null(env_of(&r, "RAILMATE_RDMA_VF_MAP"));
}

/* The answer to the first List shows the container whose call it has overtaken. */
static void container_that_the_first_list_shows_may_be_the_one_that_asks(void **state)
{
	const char *v[1];
	struct reply r;

	(void)state;
	env.overtaking_ms = 60000;
	use_pods(PODS_ANSWER);
	wait_until(primed);
	v[0] = preferred(0, 1).v[0];
	r = call(PATH_ALLOCATE, allocate_request(v, 1));
	assert_non_null(env_of(&r, "RAILMATE_RDMA_VF_MAP")); /* its GPUs are known */
}

static void nothing_is_asked_while_devices_are_set_aside(void **state)
{
	(void)state;
	use_pods(PODS_ANSWER);
	wait_until(primed);
	assert_int_equal(preferred(2, 3).n, 3);
	assert_int_equal(pods.lists, 1);
}

static bool probed_old(void)
{
	return pods.gets == 1;
}

static void old_kubelet_is_never_asked_for_a_list(void **state)
{
	(void)state;
	use_pods(PODS_OLD);
	wait_until(probed_old);
	assert_int_equal(preferred(0, 2).n, 2);
	assert_int_equal(preferred(0, 2).n, 2);
	assert_int_equal(pods.lists, 0);
	assert_int_equal(pods.gets, 1);
}

static void answers_though_pod_resources_fail(void **state)
{
	static const enum pods_manners all[] = { PODS_FAIL, PODS_GARBAGE, PODS_HANG };

	(void)state;
	use_pods(PODS_ANSWER);
	wait_until(primed);
	env.pod_resources_timeout_ms = 200;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		pods.manners = all[i];
		assert_int_equal(preferred(0, 4).n, 4);
	}
	assert_int_equal(stats()->pod_list_failures, 3);
	assert_int_equal(warnings, 1);
	on_rpc(pods_stop_fn, NULL);
	assert_int_equal(preferred(0, 4).n, 4);
}

static void rate_limit_is_tried_once_more(void **state)
{
	(void)state;
	use_pods_that_were_there_before();
	pods.pods.n = 2;
	pods.manners = PODS_BUSY_ONCE;
	assert_string_equal(preferred(0, 1).v[0], id(4));
	assert_int_equal(stats()->pod_list_failures, 0);
}

static bool list_hangs(void)
{
	return pods.hung;
}

static void plugin_can_go_while_a_list_is_under_way(void **state)
{
	struct client_call c;

	(void)state;
	use_pods(PODS_ANSWER);
	wait_until(primed);
	c = to_plugin(PATH_PREFERRED, preferred_request(0, 1));
	pods.manners = PODS_HANG;
	call_begin(&c);
	wait_until(list_hangs);
	on_rpc(free_fn, NULL);
	assert_int_equal(call_end(&c).status, RPC_UNAVAILABLE);
}

/* --- device-info files --- */

static char *devinfo_path(size_t i)
{
	return arena_printf(a, "%s/rdma-vf-%s-device.json", devinfo_dir, id(i));
}

static bool devinfo_complete(void)
{
	return access(devinfo_path(15), F_OK) == 0;
}

static void device_info_files_are_written_and_kept(void **state)
{
	struct stat st;

	(void)state;
	start_all();
	wait_until(devinfo_complete);
	assert_int_equal(stat(devinfo_path(0), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	on_rpc(free_fn, NULL);
	assert_int_equal(access(devinfo_path(0), F_OK), 0);
}

static bool third_devinfo_there(void)
{
	return access(devinfo_path(2), F_OK) == 0;
}

static void device_info_file_that_vanished_is_there_after_allocate(void **state)
{
	const char *v[] = { id(2) };

	(void)state;
	start_all();
	wait_until(devinfo_complete);
	unlink(devinfo_path(2));
	assert_int_equal(call(PATH_ALLOCATE, allocate_request(v, 1)).status, RPC_OK);
	wait_until(third_devinfo_there); /* written after the reply */
}

static bool warned_once(void)
{
	return warnings == 1;
}

static void device_info_that_cannot_be_written_does_not_stop_allocate(void **state)
{
	const char *v[] = { id(2) };

	(void)state;
	machine_file(&m, "", "run/devinfo");
	start_all();
	assert_int_equal(call(PATH_ALLOCATE, allocate_request(v, 1)).status, RPC_OK);
	wait_until(warned_once);
}

/* --- the plugin watcher --- */

static void watcher_dial_fn(void *arg)
{
	(void)arg;
	dial(caller_socket_in(registry_dir, a));
	open_stream();
}

static ino_t registry_inode(void)
{
	struct stat st;

	return stat(caller_socket_in(registry_dir, a), &st) == 0 ? st.st_ino : 0;
}

/* Before it is given up. */
static void start_and_note_inode_fn(void *ret)
{
	new_fn(NULL);
	*(ino_t *)ret = registry_inode();
}

static int64_t registry_born(void)
{
	struct stat st;

	if (stat(caller_socket_in(registry_dir, a), &st) < 0)
		return 0;
	return st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
}

static int64_t born_before;
static bool created_again(void)
{
	int64_t born = registry_born();

	return born && born != born_before;
}

static struct reply call_registry(const char *path, struct bytes request)
{
	struct client_call c = to_plugin(path, request);

	c.socket = caller_socket_in(registry_dir, a);
	return call_whole(c);
}

static void plugin_watcher_registers_it(void **state)
{
	const struct registration_status yes = { true, "" };
	struct plugin_info info;
	struct reply r;

	(void)state;
	env.endpoint.registration = REGISTER_WATCHER;
	start_plugin();
	assert_true(registry_inode());
	r = call_registry(PATH_GET_INFO, NOTHING);
	assert_int_equal(peer_decode_plugin_info(r.body, a, &info, NULL), 0);
	assert_string_equal(info.type, "DevicePlugin");
	assert_string_equal(info.name, RESOURCE);
	assert_string_equal(info.endpoint, "");
	assert_string_equal(info.versions.v[0], "v1beta1");
	on_rpc(watcher_dial_fn, NULL);
	wait_until(kubelet_has_list);
	assert_int_equal(
		call_registry(PATH_NOTIFY_STATUS, peer_encode_registration_status(&yes, a)).status,
		RPC_OK);
	assert_int_equal(stats()->endpoint.registrations, 1);
	assert_true(is_on_rpc(registered));
	/* the kubelet lets go: only a new socket file makes it look again */
	born_before = registry_born();
	on_rpc(drop_stream_fn, NULL);
	wait_until(created_again);
	on_rpc(watcher_dial_fn, NULL);
	wait_until(second_stream);
}

static void refusal_of_the_plugin_watcher_is_told_and_tried_again(void **state)
{
	const struct registration_status no = { false, "not now" };

	(void)state;
	env.endpoint.registration = REGISTER_WATCHER;
	start_plugin();
	born_before = registry_born();
	assert_int_equal(
		call_registry(PATH_NOTIFY_STATUS, peer_encode_registration_status(&no, a)).status,
		RPC_OK);
	wait_until(created_again);
	assert_int_equal(warnings, 1);
	assert_int_equal(stats()->endpoint.register_failures, 1);
	assert_int_equal(
		call_registry(PATH_NOTIFY_STATUS, (struct bytes) { (const uint8_t *)"\xff", 1 })
			.status,
		RPC_INVALID_ARGUMENT);
}

static void registry_that_nobody_watches_is_given_up(void **state)
{
	ino_t inode;

	(void)state;
	env.endpoint.registration = REGISTER_AUTO;
	env.endpoint.registry_patience_ms = 50;
	kubelet_start();
	on_rpc(start_and_note_inode_fn, &inode);
	assert_true(inode);
	expect_registered();
	assert_false(registry_inode());
}

static bool is_settled(void)
{
	return !p->endpoint->fallback_timer;
}

static void registry_that_is_watched_is_kept(void **state)
{
	(void)state;
	env.endpoint.registration = REGISTER_AUTO;
	env.endpoint.registry_patience_ms = 8000; /* as long as we may take to ask */
	kubelet_start();
	start_plugin();
	assert_int_equal(call_registry(PATH_GET_INFO, NOTHING).status, RPC_OK);
	wait_until(is_settled);
	assert_true(registry_inode());
	assert_int_equal(k.registers, 0);
}

static void without_a_registry_the_kubelet_is_called(void **state)
{
	(void)state;
	env.endpoint.registration = REGISTER_AUTO;
	machine_remove(&m, "r");
	kubelet_start();
	start_plugin();
	expect_registered();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(registers_with_a_kubelet_that_dials_first),
		T(registers_with_a_kubelet_that_answers_first),
		T(waits_for_a_kubelet_that_comes_later),
		T(stream_that_ends_is_registered_again),
		T(socket_that_was_wiped_is_created_again),
		T(kubelet_that_restarts_is_registered_with),
		T(kubelet_that_restarts_is_found_without_an_event),
		T(old_stream_ends_before_the_new_registration),
		T(refused_registration_is_tried_again_and_told_once),
		T(registration_that_hangs_ends_with_its_kubelet),
		T(kubelet_that_dies_within_register_is_waited_for),
		T(plugin_can_go_while_register_hangs),
		T(socket_file_that_does_not_listen_yet_is_tried_again),
		T(every_registration_has_a_path_of_its_own),
		T(sockets_that_killed_instances_left_are_removed),
		T(directory_that_is_not_there_is_told_and_waited_out),
		T(sixty_restarts_leak_no_descriptor),
		T(list_is_sent_only_when_it_changed),
		T(pool_without_devices_is_not_served),
		T(garbage_is_an_invalid_argument),
		T(allocate_of_a_cut_id_is_not_mistaken),
		T(allocate_grants_or_tells_why_not),
		T(pre_start_knows_its_devices),
		T(vfs_beside_the_gpus_of_the_new_container_are_preferred),
		T(container_that_the_first_list_shows_may_be_the_one_that_asks),
		T(nothing_is_asked_while_devices_are_set_aside),
		T(old_kubelet_is_never_asked_for_a_list),
		T(answers_though_pod_resources_fail),
		T(rate_limit_is_tried_once_more),
		T(plugin_can_go_while_a_list_is_under_way),
		T(device_info_files_are_written_and_kept),
		T(device_info_file_that_vanished_is_there_after_allocate),
		T(device_info_that_cannot_be_written_does_not_stop_allocate),
		T(plugin_watcher_registers_it),
		T(refusal_of_the_plugin_watcher_is_told_and_tried_again),
		T(registry_that_nobody_watches_is_given_up),
		T(registry_that_is_watched_is_kept),
		T(without_a_registry_the_kubelet_is_called),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
