/* Early binding as a whole: the plugin between PodResources, pod specs, a GPU plugin and the
 * ledger. */
#include "support/machine.h"

#include <pthread.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "choice/choice.h"
#include "grant/rundir.h"
#include "grant/vfprobe.h"
#include "holds/holds.h"
#include "kubeclient/gpuplugin.h"
#include "kubeclient/podres.h"
#include "kubemsg/messages.h"
#include "kubemsg/podspec.h"
#include "kubepeer/kubepeer.h"
#include "ledger/ledger.h"
#include "plugin/plugin-internal.h"
#include "status/stats.h"
#include "pods/holders.h"
#include "support/fakevfs.h"
#include "tracker/tracker-internal.h"
#include "unit/plugin/caller.h"

/* Four switches, two on each NUMA node, each with two GPUs and a PF with four VFs. */
#define MACHINE	 "numa:2 switch:2 gpu:2 pf:1 vf:4"
#define VFS	 16
#define RESOURCE "rdma/vf"
#define GPU	 "nvidia.com/gpu"
#define NOTHING	 ((struct bytes) { NULL, 0 })
#define BRIEF_MS 2000 /* for PodResources, where somebody hangs; else the machine may be busy */

enum manners { ANSWERS, FAILS, HANGS, OLD };
enum gpu_manners { PREFERS_LAST, MUTE, GPU_HANGS, NONSENSE, FOREIGN };
enum gpu_ids { WHOLE, MIG, REPLICAS };

/* Pods as text, for what they hold and for what they ask: "p: g0,g1 v3; q: v0", "p: g2 v1; q: v1".
 */
static struct {
	enum manners manners, specs_manners;
	bool grouped; /* ids as 1.20 tells them, not one by one as 1.36 */
	const char *held, *specs;
	struct rpc_server *server;
	struct rpc_call *hung;
	podspec_done_fn specs_done; /* hangs */
	void *specs_arg;
	unsigned lists, gets, fetches;
} k;

static struct {
	enum gpu_manners manners;
	enum gpu_ids ids;
	struct rpc_server *server;
	struct rpc_call *hung;
	unsigned asked;
	size_t offered;
	const char *first; /* offered */
} gpu;

static struct pool_config pool_cfg;
static const struct config cfg = { .pools = &pool_cfg, .n_pools = 1 };
static struct machine m;
static struct arena *a;
static struct plugin_env env;
static struct plugin *p;
static struct stats *counts;  /* of p */
static struct holds *holds;   /* the tracker's */
static struct ledger *ledger; /* of holds */
static unsigned users;	      /* of the RDMA devices of VFs 8 to 10 */
static unsigned warnings;
static char *plugin_dir, *pods_path, *gpu_path;

static const char *vf(size_t i)
{
	return m.pool->devs[i].id;
}

static const char *gpu_id(size_t i, struct arena *to)
{
	if (gpu.ids == MIG)
		return arena_printf(to, "MIG-%zu", i);
	if (gpu.ids == REPLICAS)
		return arena_printf(to, "%s::0", m.node->inv->gpu[i].uuid);
	return m.node->inv->gpu[i].uuid;
}

/* --- PodResources --- */

static void add_held(struct held *h, const char *resource, const char *id)
{
	h->resource = resource;
	h->ids.v[h->ids.n++] = id;
}

/* "g0,g1 v3"; the second container of a pod stands behind a "|" */
static struct pod_container parse_held(char *text, const char *name, struct arena *to)
{
	struct held *held = arena_array(to, 2, sizeof(*held));
	size_t n = 2;
	char *save;

	for (int i = 0; i < 2; i++)
		held[i].ids.v = arena_array(to, VFS, sizeof(char *));
	for (char *word = strtok_r(text, " ,", &save); word; word = strtok_r(NULL, " ,", &save)) {
		size_t i = (size_t)atoi(word + 1);

		if (*word == 'g')
			add_held(&held[0], GPU, gpu_id(i, to));
		else
			add_held(&held[1], RESOURCE, vf(i));
	}
	if (!held[1].resource)
		n--;
	if (!held[0].resource && n--)
		held++;
	return (struct pod_container) { .name = name, .held = held, .n_held = n };
}

static struct pod_list held_now(struct arena *to)
{
	struct pod_list l = { arena_array(to, 16, sizeof(*l.v)), 0 };
	char *save;

	for (char *entry = strtok_r(arena_strdup(to, k.held), ";", &save); entry;
	     entry = strtok_r(NULL, ";", &save)) {
		char *colon = strchr(entry, ':');
		struct pod *pod = &l.v[l.n++];
		char *second;

		*colon = '\0';
		*pod = (struct pod) { "default", entry + strspn(entry, " "),
				      arena_array(to, 2, sizeof(*pod->containers)), 1 };
		second = strchr(colon + 1, '|');
		if (second) {
			*second = '\0';
			pod->containers[pod->n_containers++] = parse_held(second + 1, "d", to);
		}
		pod->containers[0] = parse_held(colon + 1, "c", to);
	}
	return l;
}

static bool misbehaves(struct rpc_call *call)
{
	if (k.manners == FAILS)
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	else if (k.manners == HANGS)
		k.hung = call;
	else if (k.manners == OLD)
		rpc_reply(call, RPC_UNIMPLEMENTED, "unknown method", NOTHING);
	return k.manners != ANSWERS;
}

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct pod_list l;

	(void)ctx;
	(void)request;
	k.lists++;
	if (misbehaves(call))
		return;
	l = held_now(rpc_call_arena(call));
	rpc_reply(call, RPC_OK, NULL, peer_encode_pod_list(&l, !k.grouped, rpc_call_arena(call)));
}

static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *to = rpc_call_arena(call);
	const char *ns, *name;
	struct pod_list l;

	(void)ctx;
	assert_int_equal(peer_decode_pod_get_request(request, to, &ns, &name, NULL), 0);
	k.gets += *name != '\0';
	if (misbehaves(call))
		return;
	l = held_now(to);
	for (size_t i = 0; i < l.n; i++) {
		if (str_eq(l.v[i].name, name)) {
			rpc_reply(call, RPC_OK, NULL,
				  peer_encode_pod_get_reply(&l.v[i], !k.grouped, to));
			return;
		}
	}
	rpc_reply(call, RPC_UNKNOWN, "pod not found", NOTHING);
}

static void on_allocatable(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *to = rpc_call_arena(call);
	struct held held = { GPU, { arena_array(to, 8, sizeof(char *)), 8 } };
	struct pod_container all = { .name = "", .held = &held, .n_held = 1 };

	(void)ctx;
	(void)request;
	if (misbehaves(call))
		return;
	for (size_t i = 0; i < 8; i++)
		held.ids.v[i] = gpu_id(i, to);
	rpc_reply(call, RPC_OK, NULL, peer_encode_allocatable(&all, true, to));
}

/* --- pod specs --- */

static struct spec_container parse_spec(char *text, struct arena *to)
{
	struct spec_limit *limits = arena_array(to, 2, sizeof(*limits));
	size_t n = 0;
	char *save;

	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		limits[n++] = (struct spec_limit) { *word == 'g' ? GPU : RESOURCE, atoi(word + 1) };
	return (struct spec_container) { "c", SPEC_APP, limits, n, NULL, 0 };
}

static struct spec_list specs_now(struct arena *to)
{
	struct spec_pod *v = arena_array(to, 16, sizeof(*v));
	struct spec_container *c;
	size_t n = 0;
	char *save;

	for (char *entry = strtok_r(arena_strdup(to, k.specs), ";", &save); entry;
	     entry = strtok_r(NULL, ";", &save)) {
		char *colon = strchr(entry, ':');

		*colon = '\0';
		c = arena_array(to, 1, sizeof(*c));
		*c = parse_spec(colon + 1, to);
		entry += strspn(entry, " ");
		v[n] = (struct spec_pod) {
			.ns = "default", .name = entry, .containers = c, .n_containers = 1
		};
		v[n].uid = arena_printf(to, "uid-%s", entry);
		v[n].created = (int64_t)n + 1;
		n++;
	}
	return (struct spec_list) { v, n };
}

static void tell_specs(void *arg)
{
	_cleanup_arena_ struct arena *to = arena_new(0);
	podspec_done_fn done = STEAL(k.specs_done);
	struct spec_list l;

	(void)arg;
	if (k.specs_manners != ANSWERS) {
		done(k.specs_arg, NULL, "401 Unauthorized");
		return;
	}
	l = specs_now(to);
	done(k.specs_arg, &l, NULL);
}

static void fetch(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	(void)ctx;
	k.fetches++;
	k.specs_done = done;
	k.specs_arg = arg;
	rpc_after(rpc, k.specs_manners == HANGS ? timeout_ms : 0, tell_specs, NULL);
}

static const struct podspec_source source = { .name = "API server", .fetch = fetch };

/* --- the GPU plugin --- */

static void on_gpu_options(void *ctx, struct rpc_call *call, struct bytes request)
{
	const struct plugin_options o = { .preferred_allocation = gpu.manners != MUTE };

	(void)ctx;
	(void)request;
	rpc_reply(call, RPC_OK, NULL, kubemsg_encode(&kubemsg_options, &o, rpc_call_arena(call)));
}

static void on_gpu_preferred(void *ctx, struct rpc_call *call, struct bytes request)
{
	const char *nonsense[] = { "GPU-x" };
	struct preferred_request r;
	struct ids ids;
	struct id_lists l = { &ids, 1 };

	(void)ctx;
	gpu.asked++;
	assert_int_equal(
		kubemsg_decode(&kubemsg_preferred, request, rpc_call_arena(call), &r, NULL), 0);
	gpu.offered = r.v[0].available.n;
	gpu.first = arena_strdup(a, r.v[0].available.v[0]);
	ids = (struct ids) { r.v[0].available.v + r.v[0].available.n - (size_t)r.v[0].size,
			     (size_t)r.v[0].size };
	if (gpu.manners == GPU_HANGS) {
		gpu.hung = call;
		return;
	}
	if (gpu.manners == NONSENSE)
		ids.n--;
	if (gpu.manners == FOREIGN)
		ids = (struct ids) { nonsense, 1 };
	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_preferred_reply, &l, rpc_call_arena(call)));
}

/* --- everything up and down, on the rpc thread --- */

static int count_users(void *ctx, const char *rdma, tracker_user_fn seen, void *arg)
{
	(void)ctx;
	for (size_t i = 0; i < m.pool->n_devs; i++) {
		const char *name = m.node->inv->rdma[m.pool->devs[i].rdma].name;

		if (!rdma || !strcmp(rdma, name))
			seen(arg, name, i >= 8 && i <= 10 ? users : 0);
	}
	return 0;
}

static void start_fn(void *arg)
{
	static const struct rpc_method pods[] = { { .path = PATH_POD_LIST, .unary = on_list },
						  { .path = PATH_POD_GET, .unary = on_get },
						  { .path = PATH_ALLOCATABLE,
						    .unary = on_allocatable } };
	static const struct rpc_method gpus[] = { { .path = PATH_OPTIONS, .unary = on_gpu_options },
						  { .path = PATH_PREFERRED,
						    .unary = on_gpu_preferred } };

	(void)arg;
	assert_int_equal(rpc_server_open(rpc, pods_path, pods, 3, NULL, &k.server, NULL), 0);
	assert_int_equal(rpc_server_open(rpc, gpu_path, gpus, 2, NULL, &gpu.server, NULL), 0);
	env.podres = kubeclient_podres_open(rpc, pods_path);
	env.holders = pods_holders_new();
	kubeclient_podres_subscribe(env.podres, pods_holders_hear, env.holders);
	ledger = ledger_new();
	holds = holds_new(ledger, &holds_default_pace, tracker_now());
	holds_event(holds, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = true },
		    tracker_now());
	env.tracker = tracker_new(&(struct tracker_env) {
		.rpc = rpc, .holds = holds, .root = m.root, .users = count_users });
	tracker_update(env.tracker, m.node);
	kubeclient_podres_subscribe(env.podres, tracker_hear, env.tracker);
	env.gpus = kubeclient_gpuplugin_open(rpc, NULL, 0, gpu_path);
	p = plugin_new(&env, RESOURCE);
	plugin_update(p, m.node);
}

static void drop(struct rpc_call **call)
{
	if (*call)
		rpc_reply(*call, RPC_UNAVAILABLE, "going", NOTHING);
	*call = NULL;
}

static void free_plugin_fn(void *arg)
{
	(void)arg;
	if (p)
		plugin_free(STEAL(p));
}

static void stop_fn(void *arg)
{
	free_plugin_fn(arg);
	kubeclient_gpuplugin_close(STEAL(env.gpus));
	kubeclient_podres_subscribe(env.podres, NULL, env.tracker);
	tracker_free(STEAL(env.tracker));
	kubeclient_podres_close(STEAL(env.podres));
	pods_holders_free(STEAL(env.holders));
	grant_probe_free(STEAL(env.vfprobe));
	env.rundir = NULL;
	drop(&k.hung);
	drop(&gpu.hung);
	rpc_server_close(STEAL(k.server), NULL, NULL);
	rpc_server_close(STEAL(gpu.server), NULL, NULL);
}

static void count_warnings(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	if (level <= LOG_LEVEL_WARN && !strstr(line, "waiting for the kubelet"))
		__atomic_add_fetch(&warnings, 1, __ATOMIC_RELAXED);
}

static int setup(void **state)
{
	(void)state;
	memset(&k, 0, sizeof(k));
	memset(&gpu, 0, sizeof(gpu));
	k.held = k.specs = "";
	users = warnings = 0;
	pool_cfg = (struct pool_config) { .resource = RESOURCE,
					  .prefix = "rdma",
					  .name = "vf",
					  .is_rdma = true,
					  .gid = GID_OFF,
					  .network = NETWORK_HOST };
	a = arena_new(0);
	m = fake_machine_open(MACHINE, &cfg);
	plugin_dir = arena_printf(a, "%s/k", m.dir);
	pods_path = arena_printf(a, "%s/p.sock", m.dir);
	gpu_path = arena_printf(a, "%s/g.sock", m.dir);
	machine_dir(&m, "k");
	log_setup(LOG_LEVEL_WARN, count_warnings, NULL);
	env = (struct plugin_env) { .endpoint.rpc = rpc,
				    .root = m.root,
				    .endpoint.plugin_dir = plugin_dir,
				    .endpoint.registry_dir = plugin_dir,
				    .specs = &source,
				    .pod_resources_timeout_ms = 10000,
				    .start_timeout_ms = 10000,
				    .stats = counts = stats_new() };
	on_rpc(start_fn, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(stop_fn, NULL);
	stats_free(counts);
	fake_machine_close(&m);
	arena_free(a);
	return 0;
}

/* --- the kubelet's calls --- */

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

/* "3,4" or "0-15" */
static struct ids ids_of(const char *text)
{
	struct ids ids = { arena_array(a, VFS, sizeof(*ids.v)), 0 };
	char *save;

	for (char *word = strtok_r(arena_strdup(a, text), ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		int first = atoi(word),
		    last = strchr(word, '-') ? atoi(strchr(word, '-') + 1) : first;

		for (int i = first; i <= last; i++)
			ids.v[ids.n++] = vf((size_t)i);
	}
	return ids;
}

static struct bytes preferred_request(const char *available, const char *must, int size)
{
	struct preferred_container c = { ids_of(available), ids_of(must), size };
	const struct preferred_request r = { &c, 1 };

	return kubemsg_encode(&kubemsg_preferred, &r, a);
}

static size_t index_of(const char *id)
{
	for (size_t i = 0; i < VFS; i++) {
		if (str_eq(vf(i), id))
			return i;
	}
	fail_msg("%s is not a VF", id);
	return 0;
}

/* The answer as text, in order: "0,4". */
static const char *preferred_in(struct reply r)
{
	bool chosen[VFS] = { false };
	struct strbuf text = STRBUF_INIT;
	struct id_lists l;
	const char *copy;

	assert_int_equal(r.status, RPC_OK);
	assert_int_equal(kubemsg_decode(&kubemsg_preferred_reply, r.body, a, &l, NULL), 0);
	for (size_t i = 0; i < l.v[0].n; i++)
		chosen[index_of(l.v[0].v[i])] = true;
	for (size_t i = 0; i < VFS; i++) {
		if (chosen[i])
			strbuf_printf(&text, "%s%zu", text.len ? "," : "", i);
	}
	copy = arena_strdup(a, strbuf_str(&text));
	strbuf_done(&text);
	return copy;
}

static const char *prefer_of(const char *available, const char *must, int size)
{
	return preferred_in(call(PATH_PREFERRED, preferred_request(available, must, size)));
}

static const char *prefer(int size)
{
	return prefer_of("0-15", "", size);
}

static void allocate(const char *vfs)
{
	struct ids ids = ids_of(vfs);
	const struct id_lists l = { &ids, 1 };

	assert_int_equal(call(PATH_ALLOCATE, peer_encode_allocate(&l, a)).status, RPC_OK);
}

static struct reply start(const char *vfs)
{
	struct ids ids = ids_of(vfs);

	return call(PATH_PRE_START, peer_encode_pre_start(&ids, a));
}

static struct {
	uint64_t all, best;
} pairs;
static void copy_pairs_fn(void *arg)
{
	const struct stats_pool *counted = stats_of(counts, RESOURCE);

	(void)arg;
	pairs.all = 0;
	for (int i = 0; i < TOPO_CLASS_MAX; i++)
		pairs.all += counted->pairs[i];
	pairs.best = counted->pairs_best;
}

/* GPU-VF pairs of containers that started; as many of them as good as they could be. */
static void assert_pairs(uint64_t all, uint64_t best)
{
	on_rpc(copy_pairs_fn, NULL);
	assert_int_equal(pairs.all, all);
	assert_int_equal(pairs.best, best);
}

static const struct ledger_hold *hold(size_t i)
{
	return ledger_find(ledger_now(ledger), vf(i));
}

static const struct ledger_decision *last_decision(void)
{
	const struct ledger *l = ledger_now(ledger);

	assert_true(ledger_decisions(l) > 0);
	return ledger_decision_at(l, ledger_decisions(l) - 1);
}

static const char *gpu_address(size_t i)
{
	char text[BDF_STRLEN];

	return arena_strdup(a, bdf_format(m.node->inv->pci[m.node->inv->gpu[i].pci].bdf, text));
}

/* --- who it is --- */

static void vfs_of_a_container_with_gpus_are_beside_them(void **state)
{
	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: g5";
	assert_string_equal(prefer(1), "8");
	assert_int_equal(gpu.asked, 0);
}

static void kubelet_may_group_ids_as_it_likes(void **state)
{
	(void)state;
	k.grouped = true;
	k.specs = "p: g2 v2";
	k.held = "p: g5,g6";
	assert_string_equal(prefer(2), "8,12");
	allocate("8,12");
	k.held = "p: g5,g6 v8,v12";
	assert_int_equal(start("12,8").status, RPC_OK);
	assert_pairs(2, 2);
}

static void pod_with_gpus_only_is_not_mistaken_for_the_one_that_asks(void **state)
{
	(void)state;
	k.specs = "q: g1; p: g1 v1";
	k.held = "q: g0; p: ";
	assert_string_equal(prefer(1), "12"); /* the plugin prefers the last GPU */
	assert_int_equal(gpu.asked, 1);
}

static void get_is_enough_when_everybody_else_is_known(void **state)
{
	unsigned lists;

	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: g5";
	prefer(1);
	allocate("8");
	lists = k.lists;
	k.specs = "p: g1 v1; q: g1 v1";
	k.held = "p: g5 v8; q: g2";
	/* p's VF has not been seen yet, and somebody might have come unseen */
	assert_string_equal(prefer_of("0-7,9-15", "", 1), "4");
	assert_int_equal(k.lists, lists + 1);
	k.held = "p: g5 v8; q: g2 v4; r: g0";
	k.specs = "p: g1 v1; q: g1 v1; r: g1 v1";
	allocate("4");
	start("4"); /* Get of q */
	lists = k.lists;
	assert_string_equal(prefer_of("0-3,5-7,9-15", "", 1), "0");
	assert_int_equal(k.lists, lists);
	assert_int_equal(k.gets, 2);
	assert_string_equal(last_decision()->source, "PodResources List");
	allocate("0");
	assert_string_equal(last_decision()->source, "PodResources Get");
}

static void reused_devices_are_asked_about_by_get_only(void **state)
{
	(void)state;
	k.specs = "p: g2 v2";
	k.held = "p: g6,g7";
	assert_string_equal(prefer(2), "12,13"); /* the kubelet's version is known now */
	k.specs = "p: g2 v2; q: v1 g1";
	k.held = "p: g6,g7; q: g0";
	/* nobody of these has an earlier container: the answer does without, and without a List */
	assert_string_equal(prefer_of("0-15", "4", 2), prefer_of("0-15", "4", 2));
	assert_int_equal(k.lists, 1);
}

static void specs_that_fail_are_left_alone_for_a_while(void **state)
{
	(void)state;
	k.specs_manners = FAILS;
	k.held = "p: g5";
	assert_string_equal(prefer(1), "8");
	assert_string_equal(prefer(1), "8");
	assert_int_equal(k.fetches, 1);
	assert_int_equal(warnings, 0); /* the daemon's: it knows the other sources */
}

static void slow_specs_are_not_waited_for(void **state)
{
	(void)state;
	k.specs_manners = HANGS;
	env.pod_resources_timeout_ms = 3 * BRIEF_MS; /* PodResources is to answer within it */
	k.held = "p: g5";
	assert_string_equal(prefer(1), "8");
}

static void specs_that_lag_behind_are_made_up_for(void **state)
{
	(void)state;
	k.specs = "";
	k.held = "p: g5";
	assert_string_equal(prefer(1), "8");
}

/* --- VFs first --- */

static void vfs_are_beside_the_gpus_that_will_come(void **state)
{
	(void)state;
	k.specs = "q: g2 v1; p: g2 v1";
	k.held = "q: g6,g7 v12; p: ";
	assert_string_equal(prefer_of("0-11,13-15", "", 1), "8");
	assert_int_equal(gpu.offered, 6);
	allocate("8");
	assert_int_equal(last_decision()->known, LEDGER_GPUS_PREDICTED);
	assert_string_equal(last_decision()->source, "nvidia.com/gpu's GetPreferredAllocation");
	assert_int_equal(last_decision()->n_gpus, 2);
	assert_string_equal(last_decision()->gpus[0], gpu_address(4));
}

static void without_specs_as_many_gpus_as_vfs_are_assumed(void **state)
{
	(void)state;
	env.specs = NULL;
	k.held = "p: ";
	assert_string_equal(prefer(2), "12,13");
	assert_int_equal(gpu.asked, 1);
}

static void nothing_is_predicted_for_who_wants_no_gpus(void **state)
{
	(void)state;
	k.specs = "p: v2";
	k.held = "p: ";
	prefer(2);
	assert_int_equal(gpu.asked, 0);
}

/* What is answered when nothing at all is known. */
static const char *blind(int size)
{
	const char *answer;

	k.manners = FAILS;
	answer = prefer(size);
	k.manners = ANSWERS;
	return answer;
}

static void prediction_that_fails_leaves_the_best_zone(void **state)
{
	static const enum gpu_manners all[] = { NONSENSE, FOREIGN, GPU_HANGS };

	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: ";
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		gpu.manners = all[i];
		if (all[i] == GPU_HANGS)
			env.pod_resources_timeout_ms = BRIEF_MS;
		assert_string_equal(prefer(1), blind(1));
		assert_int_equal(gpu.asked, 1);
		teardown(NULL);
		setup(NULL);
		k.specs = "p: g1 v1";
		k.held = "p: ";
	}
}

static void parts_of_gpus_are_not_predicted(void **state)
{
	static const enum gpu_ids all[] = { MIG, REPLICAS };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		k.specs = "p: g1 v1";
		k.held = "p: ";
		gpu.ids = all[i];
		assert_string_equal(prefer(1), blind(1));
		assert_int_equal(gpu.asked, 0);
		teardown(NULL);
		setup(NULL);
	}
}

static void gpus_that_the_kubelet_draws_are_counted(void **state)
{
	const struct identified drawn = { .n_drawn = 2 };
	struct preferred_container c = { ids_of("0-15"), { NULL, 0 }, 1 };
	struct ids expected = choice_decide(m.node, m.pool, &c, &drawn, NULL, a, NULL);

	(void)state;
	k.specs = "p: g2 v1";
	k.held = "p: ";
	gpu.manners = MUTE;
	assert_int_equal(index_of(expected.v[0]), (size_t)atoi(prefer(1)));
}

static void only_gpus_of_the_nodes_that_were_decided_on_are_offered(void **state)
{
	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: ";
	assert_string_equal(prefer_of("0-7", "", 1), "4");
	assert_int_equal(gpu.offered, 4);
	assert_string_equal(gpu.first, m.node->inv->gpu[0].uuid);
}

/* --- the ledger --- */

static void allocate_is_recorded(void **state)
{
	const struct ledger_decision *d;

	(void)state;
	k.specs = "p: g1 v2";
	k.held = "p: g5";
	assert_string_equal(prefer(2), "8,9");
	allocate("9,8");
	d = last_decision();
	assert_int_equal(d->known, LEDGER_GPUS_KNOWN);
	assert_string_equal(d->source, "PodResources List");
	assert_string_equal(d->owner.pod, "p");
	assert_string_equal(d->owner.uid, "uid-p");
	assert_int_equal(d->asked, 2);
	assert_int_equal(d->n_gpus, 1);
	assert_string_equal(d->gpus[0], gpu_address(5));
	assert_int_equal(d->n_free, 4);
	assert_int_equal(d->free[0].free, 4);
	assert_int_equal(d->n_chosen, 2);
	assert_string_equal(d->chosen[0], vf(8));
	assert_int_equal(d->n_pairs, 2);
	assert_string_equal(d->pairs[0].path, "PIX");
	assert_int_equal(d->cost, 0);
	assert_int_equal(d->n_alternative, 2);
	assert_true(d->alternative_cost > 0);
	assert_int_equal(hold(8)->decision, d->number);
	assert_string_equal(hold(9)->owner.container, "c");
	assert_null(hold(0));
}

static void allocation_that_nobody_asked_about_is_recorded_too(void **state)
{
	(void)state;
	allocate("3");
	assert_int_equal(last_decision()->known, LEDGER_GPUS_UNKNOWN);
	assert_int_equal(last_decision()->n_free, 0);
	assert_string_equal(hold(3)->owner.pod, "");
}

static void drain_fn(void *arg)
{
	struct ledger_hold h = *ledger_find(ledger, arg);

	h.draining = true;
	ledger_put(ledger, &h);
}

static void vfs_that_drain_are_taken_last(void **state)
{
	(void)state;
	allocate("8,9,10,11");
	users = 1;
	on_rpc(drain_fn, (void *)vf(8));
	on_rpc(drain_fn, (void *)vf(9));
	on_rpc(drain_fn, (void *)vf(10));
	k.specs = "p: g1 v2";
	k.held = "p: g5; q: v11";
	assert_string_equal(prefer_of("8-10,12", "", 1), "12");
	/* too few without them */
	assert_string_equal(prefer_of("8-10,12", "", 2), "8,12");
}

static void vf_whose_pod_is_gone_is_free_at_once(void **state)
{
	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: g5";
	prefer(1);
	allocate("8");
	k.specs = "q: g1 v1";
	k.held = "q: g5";
	assert_string_equal(prefer(1), "8");
	assert_null(hold(8));
}

/* --- PreStartContainer --- */

static void admit(const char *pod, const char *gpus, const char *vfs)
{
	k.specs = arena_printf(a, "%s: g1 v1", pod);
	k.held = arena_printf(a, "%s: %s", pod, gpus);
	prefer(1);
	allocate(vfs);
	k.held = arena_printf(a, "%s: %s v%s", pod, gpus, vfs);
}

static void container_that_starts_is_compared_and_counted_once(void **state)
{
	(void)state;
	admit("p", "g5", "8");
	assert_int_equal(start("8").status, RPC_OK);
	assert_pairs(1, 1);
	assert_true(last_decision()->checked);
	assert_int_equal(last_decision()->real_cost, 0);
	assert_int_equal(last_decision()->n_real_gpus, 1);
	assert_string_equal(last_decision()->real_gpus[0], gpu_address(5));
	assert_string_equal(hold(8)->owner.uid, "uid-p");
	assert_int_equal(start("8").status, RPC_OK);
	assert_pairs(1, 1);
	assert_int_equal(k.lists, 1);
}

static void wrong_prediction_is_counted_and_told(void **state)
{
	const struct ledger_decision *d;

	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: ";
	assert_string_equal(prefer(1), "12");
	allocate("12");
	k.held = "p: g0 v12";
	assert_int_equal(start("12").status, RPC_OK);
	d = last_decision();
	assert_pairs(1, 0);
	assert_int_equal(d->real_cost, 4);
	assert_int_equal(d->best_cost, 0);
	assert_string_equal(d->real_gpus[0], gpu_address(0));
	assert_int_equal(warnings, 0);
}

static void wrong_prediction_is_a_warning_where_the_pool_is_strict(void **state)
{
	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: ";
	prefer(1);
	allocate("12");
	k.held = "p: g0 v12";
	pool_cfg.strict = true;
	assert_int_equal(start("12").status, RPC_OK);
	assert_int_equal(warnings, 1);
}

static void what_was_not_free_then_does_not_count_as_missed(void **state)
{
	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: ";
	assert_string_equal(prefer_of("12-15", "", 1), "12");
	allocate("12");
	k.held = "p: g0 v12";
	start("12");
	assert_pairs(1, 1);
	assert_int_equal(last_decision()->real_cost, 4);
}

static void owner_that_was_not_known_is_named(void **state)
{
	(void)state;
	allocate("3");
	k.held = "p: g0 v3";
	assert_int_equal(start("3").status, RPC_OK);
	assert_string_equal(hold(3)->owner.pod, "p");
	assert_string_equal(last_decision()->owner.container, "c");
}

/* p has a GPU and never asked for VFs; q, whose VFs came first, was taken for it. */
static void vf_whose_owner_was_a_wrong_guess_is_not_refused(void **state)
{
	const char *vfs;

	(void)state;
	k.held = "p: g0";
	vfs = prefer(1);
	allocate(vfs);
	assert_string_equal(hold(strtoul(vfs, NULL, 10))->owner.pod, "p");
	k.held = arena_printf(a, "p: g0; q: g5 v%s", vfs);
	assert_int_equal(start(vfs).status, RPC_OK);
	assert_string_equal(hold(strtoul(vfs, NULL, 10))->owner.pod, "q");
	assert_string_equal(last_decision()->owner.pod, "q");
	assert_int_equal(last_decision()->n_real_gpus, 1);
	assert_int_equal(warnings, 0);
}

static void vf_that_two_live_containers_have_is_refused_to_the_second(void **state)
{
	struct reply r;

	(void)state;
	admit("p", "g5", "8");
	assert_int_equal(start("8").status, RPC_OK);
	allocate("8"); /* the kubelet has forgotten p's */
	k.held = "p: g5 v8; q: g0 v8";
	r = start("8");
	assert_int_equal(r.status, RPC_UNAVAILABLE);
	assert_non_null(strstr(r.message, "is held by container c of pod default/p"));
	assert_string_equal(hold(8)->owner.pod, "p");
	/* p is over */
	k.held = "q: g0 v8";
	assert_int_equal(start("8").status, RPC_OK);
	assert_string_equal(hold(8)->owner.pod, "q");
}

static void vf_that_two_containers_of_one_pod_have_is_refused_to_the_second(void **state)
{
	struct reply r;

	(void)state;
	k.held = "p: g5";
	allocate("8");
	allocate("8"); /* the kubelet has lost its reservation */
	k.held = "p: g5 v8 | v8";
	assert_int_equal(start("8").status, RPC_OK);
	assert_string_equal(hold(8)->owner.container, "c");
	r = start("8");
	assert_int_equal(r.status, RPC_UNAVAILABLE);
	assert_non_null(strstr(r.message, "is held by container c of pod default/p"));
	assert_non_null(strstr(r.message, "another container of the pod"));
	assert_string_equal(hold(8)->owner.container, "c");
}

static void two_sets_that_share_a_vf_are_told_apart(void **state)
{
	(void)state;
	k.held = "p: v3,v4; q: v4,v5";
	allocate("3,4");
	assert_int_equal(start("3,4").status, RPC_OK);
	allocate("4,5");
	assert_int_equal(start("4,5").status, RPC_UNAVAILABLE);
	assert_int_equal(start("3,4").status, RPC_OK);
	k.held = "q: v4,v5";
	assert_int_equal(start("4,5").status, RPC_OK);
}

static void vf_that_a_gone_pods_container_still_has_open_is_refused(void **state)
{
	struct reply r;

	(void)state;
	admit("p", "g5", "8");
	start("8");
	/* p is deleted by force: the kubelet forgets it, its container goes on for a moment */
	users = 2;
	k.held = "q: g4";
	k.specs = "q: g1 v1";
	allocate("8");
	k.held = "q: g4 v8";
	r = start("8");
	assert_int_equal(r.status, RPC_UNAVAILABLE);
	assert_non_null(strstr(r.message, "is held by container c of pod default/p"));
	users = 0;
	assert_int_equal(start("8").status, RPC_OK);
	assert_string_equal(hold(8)->owner.pod, "q");
	users = 1; /* its own, or that of another pod of this name: without a UID nothing tells */
	assert_int_equal(start("8").status, RPC_UNAVAILABLE);
	users = 0;
	assert_int_equal(start("8").status, RPC_OK);
}

/* What was there before the kubelet gave it away is not the last container's. */
static void vf_that_was_free_when_it_was_given_is_not_refused(void **state)
{
	(void)state;
	users = 1;
	admit("p", "g5", "8");
	assert_int_equal(start("8").status, RPC_OK);
}

static const struct hw_rdma *rdma_of(size_t i)
{
	return &m.node->inv->rdma[m.pool->devs[i].rdma];
}

static void hide_rdma(size_t i)
{
	machine_remove(&m, DEV "/infiniband", vf(i));
	machine_remove(&m, DEV "/infiniband_verbs", vf(i));
}

static void assert_start_refused(const char *vfs, const char *words)
{
	struct reply r = start(vfs);

	assert_int_equal(r.status, RPC_UNAVAILABLE);
	if (!strstr(r.message, words))
		fail_msg("'%s' does not say '%s'", r.message, words);
}

/* The runtime looks the node up by its name: it would be that of another VF. */
static void node_that_has_become_another_vfs_is_not_handed_out(void **state)
{
	const char *given = rdma_of(8)->uverbs, *rdma = rdma_of(8)->name;

	(void)state;
	admit("p", "g5", "8");
	assert_string_equal(last_decision()->nodes[0], given);
	hide_rdma(8);
	machine_put_rdma(&m, vf(8), rdma, "uverbs99");
	assert_start_refused("8",
			     arena_printf(a, "was given /dev/infiniband/%s, which is gone", given));
	machine_file(&m, "mlx5_other\n", "sys/class/infiniband_verbs/%s/ibdev", given);
	assert_start_refused("8", arena_printf(a, "%s has /dev/infiniband/uverbs99 now", vf(8)));
	assert_start_refused("8", "which is that of mlx5_other: delete the pod");
	/* a new pod */
	k.held = "p: ";
	admit("q", "g5", "8");
	assert_int_equal(start("8").status, RPC_OK);
	assert_string_equal(last_decision()->nodes[0], "uverbs99");
	assert_string_equal(hold(8)->owner.pod, "q");
}

/* The kubelet gives away what it thinks free before we know that its last pod is gone. */
static void node_that_the_last_pod_was_given_says_nothing_about_the_next_one(void **state)
{
	(void)state;
	admit("p", "g5", "8");
	hide_rdma(8);
	machine_put_rdma(&m, vf(8), rdma_of(8)->name, "uverbs99");
	assert_start_refused("8", "delete the pod");
	allocate("8");
	assert_string_equal(hold(8)->owner.pod, ""); /* nothing has started with it */
	k.specs = "q: g1 v1";
	k.held = "q: g4 v8";
	assert_int_equal(start("8").status, RPC_OK);
	assert_string_equal(hold(8)->owner.pod, "q");
	assert_int_equal(start("8").status, RPC_OK);
}

static void node_is_checked_also_while_its_device_is_in_the_pods_network(void **state)
{
	const char *given = rdma_of(8)->uverbs;

	(void)state;
	admit("p", "g5", "8");
	assert_int_equal(start("8").status, RPC_OK);
	hide_rdma(8);
	assert_start_refused("8", "has no verbs node now");
	machine_file(&m, "mlx5_other\n", "sys/class/infiniband_verbs/%s/ibdev", given);
	assert_start_refused("8", "which is that of mlx5_other");
	machine_file(&m, arena_printf(a, "%s\n", rdma_of(8)->name),
		     "sys/class/infiniband_verbs/%s/ibdev", given);
	assert_int_equal(start("8").status, RPC_OK);
}

static void unknown_device_is_refused_for_good(void **state)
{
	const char *bad[] = { "0000:ff:00.0" };
	struct ids ids = { bad, 1 };

	(void)state;
	assert_int_equal(call(PATH_PRE_START, peer_encode_pre_start(&ids, a)).status,
			 RPC_NOT_FOUND);
}

static void container_starts_though_pod_resources_fail(void **state)
{
	(void)state;
	admit("p", "g5", "8");
	k.manners = FAILS;
	assert_int_equal(start("8").status, RPC_OK);
	assert_int_equal(start("8").status, RPC_OK);
	assert_int_equal(warnings, 1);
	assert_false(last_decision()->checked);
	k.manners = ANSWERS;
	assert_int_equal(start("8").status, RPC_OK);
	assert_pairs(1, 1);
}

static void container_starts_though_the_kubelet_is_old(void **state)
{
	(void)state;
	k.manners = OLD;
	prefer(1);
	allocate("8");
	assert_int_equal(start("8").status, RPC_OK);
	assert_int_equal(k.lists, 0);
	assert_int_equal(warnings, 0);
}

static void init_container_that_nobody_lists_starts(void **state)
{
	(void)state;
	k.held = "p: g1";
	allocate("8");
	assert_int_equal(start("8").status, RPC_OK);
	assert_string_equal(hold(8)->owner.pod, "");
}

static bool list_hangs(void)
{
	return k.hung;
}

static void plugin_can_go_while_a_container_starts(void **state)
{
	struct ids ids = ids_of("8");
	struct client_call c = to_plugin(PATH_PRE_START, peer_encode_pre_start(&ids, a));

	(void)state;
	admit("p", "g5", "8");
	k.manners = HANGS;
	call_begin(&c);
	wait_until(list_hangs);
	on_rpc(free_plugin_fn, NULL);
	assert_int_equal(call_end(&c).status, RPC_UNAVAILABLE);
}

static bool a_start_waits(void)
{
	return !LIST_EMPTY(&p->starts);
}

static void plugin_can_go_while_a_start_waits_for_a_quiet_moment(void **state)
{
	struct ids ids = ids_of("8");
	struct client_call c = to_plugin(PATH_PRE_START, peer_encode_pre_start(&ids, a));

	(void)state;
	allocate("8");
	k.manners = HANGS; /* should the moment be over before the plugin goes */
	call_begin(&c);
	wait_until(a_start_waits);
	on_rpc(free_plugin_fn, NULL);
	assert_int_equal(call_end(&c).status, RPC_UNAVAILABLE);
}

static bool gpu_plugin_hangs(void)
{
	return gpu.hung;
}

static void plugin_can_go_while_the_gpu_plugin_thinks(void **state)
{
	struct client_call c = to_plugin(PATH_PREFERRED, preferred_request("0-15", "", 1));

	(void)state;
	k.specs = "p: g1 v1";
	k.held = "p: ";
	gpu.manners = GPU_HANGS;
	call_begin(&c);
	wait_until(gpu_plugin_hangs);
	on_rpc(free_plugin_fn, NULL);
	assert_int_equal(call_end(&c).status, RPC_UNAVAILABLE);
}

/* At once: later they may have been told. */
static bool plugin_goes_while_specs_hang(void)
{
	if (!k.specs_done)
		return false;
	free_plugin_fn(NULL);
	return true;
}

static bool specs_are_told(void)
{
	return !k.specs_done;
}

static void plugin_can_go_while_specs_are_fetched(void **state)
{
	struct client_call c = to_plugin(PATH_PREFERRED, preferred_request("0-15", "", 1));

	(void)state;
	k.specs_manners = HANGS;
	env.pod_resources_timeout_ms = BRIEF_MS;
	call_begin(&c);
	wait_until(plugin_goes_while_specs_hang);
	assert_int_equal(call_end(&c).status, RPC_UNAVAILABLE);
	wait_until(specs_are_told);
}

/* --- answers that come in another order than the questions --- */

static void answer_as_it_was(void *arg)
{
	const char *now = k.held;
	struct pod_list l;

	k.held = arg;
	l = held_now(a);
	k.held = now;
	rpc_reply(STEAL(k.hung), RPC_OK, NULL, peer_encode_pod_list(&l, true, a));
}

static unsigned lists_before;

static bool is_listed_once_more(void)
{
	return k.lists > lists_before;
}

static void an_older_list_that_comes_later_does_not_hide_the_gpus(void **state)
{
	struct ids eight = ids_of("8");
	struct client_call starts = to_plugin(PATH_PRE_START, peer_encode_pre_start(&eight, a));
	struct client_call prefers = to_plugin(PATH_PREFERRED, preferred_request("0-15", "", 1));

	(void)state;
	prefer(1);
	allocate("8");
	k.manners = HANGS;
	call_begin(&starts);
	wait_until(list_hangs);
	k.manners = ANSWERS;
	k.specs_manners = HANGS;
	env.pod_resources_timeout_ms = 3 * BRIEF_MS;
	k.held = "q: v8; p: g5";
	lists_before = k.lists;
	call_begin(&prefers);
	wait_until(is_listed_once_more);
	on_rpc(answer_as_it_was, (void *)"q: v8");
	assert_int_equal(call_end(&starts).status, RPC_OK);
	assert_string_equal(preferred_in(call_end(&prefers)), "9");
}

/* --- the truth at the start --- */

static void look_first(void *arg)
{
	const struct vfprobe_env with = { .rpc = rpc, .root = m.dir, .probe = fake_vfs_probe };

	(void)arg;
	env.vfprobe = grant_probe_new(&with);
	env.rundir = arena_printf(a, "%s/run", m.dir);
}

static int setup_truth(void **state)
{
	setup(state);
	pool_cfg.profiles = PROFILE_NCCL;
	pool_cfg.network = NETWORK_POD;
	fake_vfs_reset();
	on_rpc(look_first, NULL);
	return 0;
}

static const char *file_of(size_t i, const char *name)
{
	char *text = arena_alloc(a, 8192);
	FILE *f = fopen(arena_printf(a, "%s/run/vf-%s/%s", m.dir, vf(i), name), "re");

	if (!f)
		return "";
	text[fread(text, 1, 8191, f)] = '\0';
	fclose(f);
	return text;
}

static bool are_files_of_4_there(void)
{
	return *file_of(4, "map.json");
}

static void files_tell_what_the_vfs_are_when_their_container_starts(void **state)
{
	(void)state;
	pool_cfg.gid = GID_AUTO;
	allocate("4,5");
	wait_until(are_files_of_4_there);
	assert_non_null(
		strstr(file_of(4, "nccl.conf"), m.node->inv->rdma[m.pool->devs[4].rdma].name));
	k.held = "p: g4 v4,v5";
	assert_int_equal(start("4,5").status, RPC_OK);
	assert_non_null(strstr(file_of(4, "nccl.conf"), "NCCL_IB_HCA==moved_"));
	assert_non_null(strstr(file_of(4, "nccl.conf"), "NCCL_IB_GID_INDEX=3"));
	assert_non_null(strstr(file_of(4, "map.json"), "\"pod\": \"default/p\""));
	assert_string_equal(file_of(5, "map.json"), "");
	assert_int_equal(warnings, 0);
}

static void files_of_allocate_do_not_replace_those_of_a_start_that_came_first(void **state)
{
	(void)state;
	allocate("4,5");
	k.held = "p: g4 v4,v5";
	assert_int_equal(start("4,5").status, RPC_OK);
	usleep(60000);
	assert_non_null(strstr(file_of(4, "map.json"), "\"pod\": \"default/p\""));
}

static void files_of_many_containers_that_were_allocated_at_once_are_all_written(void **state)
{
	(void)state;
	for (size_t i = 5; i-- > 0;)
		allocate(arena_printf(a, "%zu", 4 + i));
	wait_until(are_files_of_4_there);
	for (size_t i = 4; i < 9; i++)
		assert_non_null(strstr(file_of(i, "map.json"), "has not started yet"));
}

static void files_are_written_at_once_when_the_plugin_goes(void **state)
{
	(void)state;
	allocate("4,5");
	on_rpc(free_plugin_fn, NULL);
	assert_true(are_files_of_4_there());
}

static void what_cannot_be_known_stops_nobody_and_is_told_once(void **state)
{
	(void)state;
	fake_vfs.fails = true;
	allocate("4");
	allocate("5");
	k.held = "p: v4; q: v5";
	assert_int_equal(start("4").status, RPC_OK);
	assert_int_equal(start("5").status, RPC_OK);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(file_of(4, "map.json"), "the kernel is silent"));
	assert_non_null(
		strstr(file_of(4, "nccl.conf"), m.node->inv->rdma[m.pool->devs[4].rdma].name));
}

static void a_fixed_gid_that_is_not_there_is_refused_until_it_is(void **state)
{
	struct reply r;

	(void)state;
	pool_cfg.gid = GID_FIXED;
	pool_cfg.gid_index = 3;
	allocate("4");
	k.held = "p: v4";
	fake_vfs.gid = 5;
	r = start("4");
	assert_int_equal(r.status, RPC_UNAVAILABLE); /* the kubelet asks again */
	assert_non_null(strstr(r.message, vf(4)));
	fake_vfs.gid = 3;
	assert_int_equal(start("4").status, RPC_OK);
	assert_non_null(strstr(file_of(4, "nccl.conf"), "NCCL_IB_GID_INDEX=3"));
}

static void the_files_of_a_container_that_still_has_them_are_left_alone(void **state)
{
	const char *before;

	(void)state;
	allocate("8");
	k.held = "p: v8";
	assert_int_equal(start("8").status, RPC_OK);
	before = file_of(8, "map.json");
	users = 1; /* p is gone for the kubelet, and still at work */
	k.held = "";
	allocate("8");
	usleep(60000);
	assert_string_equal(file_of(8, "map.json"), before);
}

static void a_start_that_looks_while_the_plugin_goes_is_answered(void **state)
{
	struct ids ids = ids_of("4");
	struct client_call c = to_plugin(PATH_PRE_START, peer_encode_pre_start(&ids, a));
	struct reply r;

	(void)state;
	allocate("4");
	k.held = "p: v4";
	fake_vfs.held = true;
	call_begin(&c);
	fake_vfs_wait();
	on_rpc(free_plugin_fn, NULL);
	r = call_end(&c);
	assert_int_equal(r.status, RPC_UNAVAILABLE);
	fake_vfs_let();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f)	 cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TRUTH(f) cmocka_unit_test_setup_teardown(f, setup_truth, teardown)
		TRUTH(files_tell_what_the_vfs_are_when_their_container_starts),
		TRUTH(files_of_allocate_do_not_replace_those_of_a_start_that_came_first),
		TRUTH(files_of_many_containers_that_were_allocated_at_once_are_all_written),
		TRUTH(files_are_written_at_once_when_the_plugin_goes),
		TRUTH(what_cannot_be_known_stops_nobody_and_is_told_once),
		TRUTH(a_fixed_gid_that_is_not_there_is_refused_until_it_is),
		TRUTH(the_files_of_a_container_that_still_has_them_are_left_alone),
		TRUTH(a_start_that_looks_while_the_plugin_goes_is_answered),
		T(vfs_of_a_container_with_gpus_are_beside_them),
		T(kubelet_may_group_ids_as_it_likes),
		T(pod_with_gpus_only_is_not_mistaken_for_the_one_that_asks),
		T(get_is_enough_when_everybody_else_is_known),
		T(reused_devices_are_asked_about_by_get_only),
		T(specs_that_fail_are_left_alone_for_a_while),
		T(slow_specs_are_not_waited_for),
		T(specs_that_lag_behind_are_made_up_for),
		T(vfs_are_beside_the_gpus_that_will_come),
		T(without_specs_as_many_gpus_as_vfs_are_assumed),
		T(nothing_is_predicted_for_who_wants_no_gpus),
		T(prediction_that_fails_leaves_the_best_zone),
		T(parts_of_gpus_are_not_predicted),
		T(gpus_that_the_kubelet_draws_are_counted),
		T(only_gpus_of_the_nodes_that_were_decided_on_are_offered),
		T(allocate_is_recorded),
		T(allocation_that_nobody_asked_about_is_recorded_too),
		T(vfs_that_drain_are_taken_last),
		T(vf_whose_pod_is_gone_is_free_at_once),
		T(container_that_starts_is_compared_and_counted_once),
		T(wrong_prediction_is_counted_and_told),
		T(wrong_prediction_is_a_warning_where_the_pool_is_strict),
		T(what_was_not_free_then_does_not_count_as_missed),
		T(owner_that_was_not_known_is_named),
		T(vf_whose_owner_was_a_wrong_guess_is_not_refused),
		T(vf_that_two_live_containers_have_is_refused_to_the_second),
		T(vf_that_two_containers_of_one_pod_have_is_refused_to_the_second),
		T(two_sets_that_share_a_vf_are_told_apart),
		T(vf_that_a_gone_pods_container_still_has_open_is_refused),
		T(vf_that_was_free_when_it_was_given_is_not_refused),
		T(node_that_has_become_another_vfs_is_not_handed_out),
		T(node_that_the_last_pod_was_given_says_nothing_about_the_next_one),
		T(node_is_checked_also_while_its_device_is_in_the_pods_network),
		T(unknown_device_is_refused_for_good),
		T(container_starts_though_pod_resources_fail),
		T(container_starts_though_the_kubelet_is_old),
		T(init_container_that_nobody_lists_starts),
		T(plugin_can_go_while_a_container_starts),
		T(plugin_can_go_while_a_start_waits_for_a_quiet_moment),
		T(plugin_can_go_while_the_gpu_plugin_thinks),
		T(plugin_can_go_while_specs_are_fetched),
		T(an_older_list_that_comes_later_does_not_hide_the_gpus),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
