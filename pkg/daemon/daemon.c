#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "daemon/binding.h"
#include "daemon/control.h"
#include "daemon/emptypools.h"
#include "daemon/evidence.h"
#include "daemon/load.h"
#include "daemon/qos.h"
#include "daemon/ready.h"
#include "daemon/specs.h"
#include "daemon/state.h"
#include "daemon/topofile.h"
#include "daemon/unlisted.h"
#include "daemon/watchdog.h"
#include "discover/cgroup.h"
#include "discover/sysroot.h"
#include "grant/records.h"
#include "grant/rundir.h"
#include "grant/vfprobe.h"
#include "hw/inventory.h"
#include "kubeclient/checkpoint.h"
#include "kubeclient/gpuplugin.h"
#include "kubeclient/podres.h"
#include "kubeclient/runtime.h"
#include "latebind/latebind.h"
#include "netlink/netlink.h"
#include "plugin/plugin.h"
#include "pods/holders.h"
#include "pool/empty.h"
#include "pool/node.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"
#include "watch/watch.h"

/* A burst of events (64 VFs appearing) is one scan: the first event arms the timer. */
#define SETTLE_MS 200
/* A runtime reads a spec that changed within some milliseconds (docs/design/kubelet.md §4). */
#define CDI_SETTLE_MS 20
/* While another railmated has the ledger: the pods that come between its end and our registration
 * are refused for good. */
#define LOCK_TICK_MS	  5
#define LOCK_SLOW_MS	  100
#define LOCK_LONG_WAIT_MS 60000 /* an update is over by then */

struct daemon {
	const struct daemon_options *opt;
	struct config *cfg;
	struct sysroot *root;
	struct rpc *rpc;
	struct state state;
	struct node *node; /* the newest one; main thread */
	bool has_ledger;   /* false: another railmated has it */
	bool serving;
	struct evidence *evidence; /* NULL: every pool has its binding */
	int64_t waits_since_ms;
	struct ready ready;
	struct err *failure; /* of what the loop does; main thread */

	struct plugin_env env;
	char *registry_dir, *pod_resources, *checkpoint;
	const char *plugin_dirs[2]; /* of all device plugins */
	struct specs *specs;
	bool specs_loaded;	 /* not before there is something to allocate */
	struct plugin **plugins; /* one per pool; rpc thread */
	struct records *records; /* with the first node; rpc thread */

	struct watch_dir *dir;
	struct watch_hw *hw;
	uv_loop_t loop;
	uv_signal_t sigterm, sigint, sighup;
	uv_timer_t settle, rescan, lock;
	uv_poll_t dir_poll, hw_poll[2];
	struct control *control;
	struct unlisted *unlisted;
	struct qos *qos; /* NULL: not this machine's */
	struct watchdog *watchdog;
	struct emptypools *emptypools; /* NULL: not wanted, or not serving yet */
};

/* --- on the rpc thread --- */

struct publication {
	struct daemon *d;
	struct node *node;
};

static size_t n_plugins(const struct daemon *d)
{
	return d->cfg->n_pools + d->cfg->n_shared;
}

/* Those of VFs first, then those of shared HCAs. */
static struct plugin *new_plugin(const struct daemon *d, size_t i)
{
	if (i < d->cfg->n_pools)
		return plugin_new(&d->env, d->cfg->pools[i].resource);
	return plugin_new_shared(&d->env, d->cfg->shared[i - d->cfg->n_pools].resource);
}

/* VFs drain, or drain no more, or are free; slots are bound. */
static void relist(void *arg)
{
	struct daemon *d = arg;

	if (d->records)
		records_sweep(d->records);
	for (size_t i = 0; i < n_plugins(d); i++) {
		if (d->plugins[i])
			plugin_relist(d->plugins[i]);
	}
}

static void note_unlisted(void *arg, const struct node_seed *seed)
{
	struct daemon *d = arg;

	unlisted_add(d->unlisted, seed);
}

static void note_of_latebind(void *arg, const char *event)
{
	(void)arg;
	log_event(LOG_LEVEL_WARN, "binding", event);
}

/* Late pools need PodResources: nobody else tells which container starts. */
static struct latebind *open_latebind(struct daemon *d)
{
	const struct latebind_env env = { .rpc = d->rpc,
					  .root = d->root,
					  .podres = d->env.podres,
					  .tracker = d->env.tracker,
					  .specs = specs_source(d->specs),
					  .claims = specs_claims(d->specs),
					  .cdi_dir = d->opt->cdi_dir,
					  .checkpoint = d->checkpoint,
					  .rundir = d->env.rundir,
					  .vfprobe = d->env.vfprobe,
					  .settle_ms = CDI_SETTLE_MS,
					  .note = note_of_latebind,
					  .ctx = d };

	return d->env.podres ? latebind_new(&env) : NULL;
}

static int pod_runs(void *arg, const char *uid)
{
	const struct daemon *d = arg;

	return cgroup_pod_runs(d->opt->cgroup_dir, uid);
}

/* What containers are given when they start. */
static void open_contents(struct daemon *d)
{
	const struct vfprobe_env env = { .rpc = d->rpc,
					 .root = d->opt->root,
					 .netns_dir = d->opt->netns_dir };

	d->env.vfprobe = vfprobe_new(&env);
	if (d->opt->run_dir)
		d->env.rundir = rundir_new(d->opt->run_dir);
}

static void open_podres(struct daemon *d)
{
	d->env.podres = podres_open(d->rpc, d->pod_resources);
	d->env.holders = holders_new();
	podres_subscribe(d->env.podres, holders_hear, d->env.holders);
}

/* With the first node: what all plugins share. */
static void open_on_rpc(struct daemon *d)
{
	if (d->opt->pod_resources)
		open_podres(d);
	d->env.tracker = state_make_tracker(&d->state, d->rpc, d->root, relist, d);
	tracker_listen_unlisted(d->env.tracker, note_unlisted, d);
	holds_set_blind(tracker_holds(d->env.tracker), !d->env.podres);
	if (d->env.podres)
		tracker_watch(d->env.tracker, d->env.podres);
	tracker_follow(d->env.tracker, d->checkpoint, d->opt->cgroup_dir ? pod_runs : NULL, d);
	open_contents(d);
	d->env.latebind = open_latebind(d);
	if (d->opt->ask_runtime)
		d->env.runtime = runtime_open(d->rpc, d->opt->root, d->opt->runtime_socket);
	if (d->env.podres && d->opt->predict_gpus)
		d->env.gpus = gpuplugin_open(d->rpc, d->plugin_dirs, ARRAY_LEN(d->plugin_dirs),
					     d->opt->gpu_plugin);
}

static bool claim_specs(void *latebind)
{
	return latebind_claim(latebind);
}

static void tidy_specs(void *latebind)
{
	latebind_tidy(latebind);
}

/* Before anything is given. */
static void read_records(struct daemon *d)
{
	struct records_env env = { .rpc = d->rpc,
				   .tracker = d->env.tracker,
				   .rundir = d->env.rundir };

	if (d->env.latebind) {
		env.claim = claim_specs;
		env.tidy = tidy_specs;
		env.specs = d->env.latebind;
	}
	d->records = records_new(&env);
	records_read(d->records);
}

static void publish_on_rpc(void *arg)
{
	struct publication *p = arg;
	struct daemon *d = p->d;

	if (!d->env.tracker)
		open_on_rpc(d);
	tracker_update(d->env.tracker, p->node);
	if (d->env.latebind)
		latebind_update(d->env.latebind, p->node);
	if (!d->records)
		read_records(d);
	records_sweep(d->records);
	for (size_t i = 0; i < n_plugins(d); i++) {
		if (!d->plugins[i])
			d->plugins[i] = new_plugin(d, i);
		plugin_update(d->plugins[i], p->node);
	}
	node_unref(p->node);
	free(p);
}

static void kick_on_rpc(void *arg)
{
	struct daemon *d = arg;

	if (!d->env.specs && specs_are_there(d->specs)) /* a kubelet came that has the Pods API */
		d->env.specs = specs_source(d->specs);
	for (size_t i = 0; i < n_plugins(d); i++) {
		if (d->plugins[i])
			plugin_kick(d->plugins[i]);
	}
}

static void close_on_rpc(void *arg)
{
	struct daemon *d = arg;

	for (size_t i = 0; i < n_plugins(d); i++) {
		if (d->plugins[i]) /* none, when the start failed */
			plugin_free(STEAL(d->plugins[i]));
	}
	gpuplugin_close(STEAL(d->env.gpus));
	runtime_close(STEAL(d->env.runtime));
	evidence_close(d->evidence);
	records_free(STEAL(d->records));
	latebind_free(STEAL(d->env.latebind));
	tracker_free(STEAL(d->env.tracker));
	vfprobe_free(STEAL(d->env.vfprobe));
	rundir_free(STEAL(d->env.rundir));
	podres_close(STEAL(d->env.podres));
	holders_free(STEAL(d->env.holders));
	specs_close(STEAL(d->specs));
}

static void warm_up_on_rpc(void *arg)
{
	struct daemon *d = arg;

	specs_warm_up(d->specs);
}

/* --- on the main thread --- */

static void publish(struct daemon *d)
{
	struct publication *p = xcalloc(1, sizeof(*p));

	*p = (struct publication) { d, node_ref(d->node) };
	if (!rpc_post(d->rpc, publish_on_rpc, p)) {
		node_unref(p->node);
		free(p);
	}
}

/* A sentence is logged when it is new, not at every scan. What a pool misses on a node that is not
 * meant for it is no warning. */
static void log_notes(const struct node *before, const struct node *now)
{
	void (*say)(const char *, const char *, ...) = pool_is_idle(now) ? log_info : log_warn;

	for (size_t i = 0; i < now->inv->n_notes; i++) {
		if (!before ||
		    !list_has(before->inv->notes, before->inv->n_notes, now->inv->notes[i]))
			log_warn("discover", "the node shows what was not expected reason=%s",
				 now->inv->notes[i]);
	}
	for (size_t i = 0; i < now->n_notes; i++) {
		if (!before || !list_has(before->notes, before->n_notes, now->notes[i]))
			say("pool", "the node is not as the configuration expects it reason=%s",
			    now->notes[i]);
	}
}

static void log_pools(const struct node *node)
{
	if (pool_is_idle(node))
		log_info("pool",
			 "this node has no VF with RDMA: nothing is offered until there is one");
	for (size_t i = 0; i < node->n_pools; i++) {
		size_t healthy = 0;

		for (size_t k = 0; k < node->pools[i].n_devs; k++)
			healthy += node->pools[i].devs[k].healthy;
		log_info("pool",
			 "the VFs of the pool were counted resource=%s devices=%zu healthy=%zu",
			 node->pools[i].cfg->resource, node->pools[i].n_devs, healthy);
	}
	for (size_t i = 0; i < node->n_shared; i++)
		log_info("pool",
			 "the HCAs of the pool were counted resource=%s devices=%zu shares=%u",
			 node->shared[i].cfg->resource, node->shared[i].n_devs,
			 node->shared[i].cfg->shares);
}

/* The strings of the ledger's seeds are its own, and it goes to the rpc thread with the first node.
 */
static int load_next_node(struct daemon *d, struct node **ret, struct err *err)
{
	const struct node_seed *seeds = d->state.seeds;
	size_t n = d->state.n_seeds;

	if (d->node)
		seeds = unlisted_seeds(d->unlisted, &n);
	return load_node_seeded(d->root, d->cfg, d->node, seeds, n, ret, err);
}

/* With the first devices: a node without any shall not pay for libcurl, and asks nobody. */
static void load_specs(struct daemon *d)
{
	if (d->specs_loaded || pool_is_idle(d->node))
		return;
	d->specs_loaded = true;
	specs_load(d->specs);
	rpc_post(d->rpc, warm_up_on_rpc, d);
}

static void show_node(struct daemon *d)
{
	topofile_keep(d->opt->run_dir, d->node);
	publish(d);
}

/* A failed scan keeps the last good picture: the kubelet must not lose devices to a passing error.
 */
static int scan(struct daemon *d, struct err *err)
{
	struct node *node;
	int r;

	r = load_next_node(d, &node, err);
	if (r < 0)
		return r;
	log_notes(d->node, node);
	if (d->qos)
		qos_look(d->qos, node);
	if (d->node && d->node->generation == node->generation) {
		node_unref(node);
		return 0;
	}
	node_unref(d->node);
	d->node = node;
	log_pools(node);
	load_specs(d);
	if (d->serving)
		show_node(d);
	return 0;
}

/* Multus may be installed after pools were bound, on a new node within seconds. */
static void look_at_cni(struct daemon *d)
{
	bool concerned = false;

	for (size_t i = 0; d->serving && d->evidence && i < d->cfg->n_pools; i++) {
		const struct pool_config *pool = &d->cfg->pools[i];

		concerned |= pool->binding_auto && pool->binding == BINDING_LATE &&
			     pool->network != NETWORK_HOST;
	}
	if (concerned)
		evidence_look_again(d->evidence);
}

static void scan_again(struct daemon *d)
{
	struct err err = { 0 };

	if (scan(d, &err) < 0)
		log_error("discover",
			  "rescan failed; the previous inventory of the node stays in use error=%s",
			  err.msg);
	look_at_cni(d);
}

static void on_unlisted(void *arg)
{
	scan_again(arg);
}

static void on_settled(uv_timer_t *timer)
{
	scan_again(timer->data);
}

static bool hears_of_changes(const struct daemon *d)
{
	return d->hw && watch_hw_fd(d->hw, 0) >= 0 && watch_hw_fd(d->hw, 1) >= 0;
}

/* The safety net is for nodes with something to lose: the first VF of another one comes with an
 * event. */
static void on_rescan(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	if (!d->node || !pool_is_idle(d->node) || !hears_of_changes(d))
		scan_again(d);
}

static void on_signal(uv_signal_t *handle, int signo)
{
	struct daemon *d = handle->data;

	if (signo == SIGHUP) {
		scan_again(d);
		return;
	}
	log_info("daemon", "stopping signal=%s", strsignal(signo));
	uv_stop(&d->loop);
}

static void on_dir(uv_poll_t *poll, int status, int events)
{
	struct daemon *d = poll->data;

	(void)status;
	(void)events;
	if (watch_dir_drain(d->dir))
		rpc_post(d->rpc, kick_on_rpc, d);
}

static void on_hw(uv_poll_t *poll, int status, int events)
{
	struct daemon *d = poll->data;

	(void)status;
	(void)events;
	if (watch_hw_drain(d->hw, (int)(poll - d->hw_poll)) &&
	    !uv_is_active((uv_handle_t *)&d->settle))
		uv_timer_start(&d->settle, on_settled, SETTLE_MS, 0);
}

static void watch_signal(struct daemon *d, uv_signal_t *handle, int signo)
{
	uv_signal_init(&d->loop, handle);
	handle->data = d;
	uv_signal_start(handle, on_signal, signo);
}

static void watch_fd(struct daemon *d, uv_poll_t *poll, int fd, uv_poll_cb cb)
{
	if (fd < 0)
		return;
	uv_poll_init(&d->loop, poll, fd);
	poll->data = d;
	uv_poll_start(poll, UV_READABLE, cb);
}

/* Events of this machine say nothing about a tree below another root: there, only SIGHUP and the
 * timer do. */
static void watch_hardware(struct daemon *d)
{
	struct err err = { 0 };

	if (!sysroot_is_live(d->root))
		return;
	if (watch_hw_open(&d->hw, &err) < 0 || err.code)
		log_warn("watch", "changes are found by the scan seconds=%u error=%s",
			 d->opt->rescan_seconds, err.msg);
	for (int i = 0; d->hw && i < 2; i++)
		watch_fd(d, &d->hw_poll[i], watch_hw_fd(d->hw, i), on_hw);
}

static void start_timers(struct daemon *d)
{
	uint64_t ms = (uint64_t)d->opt->rescan_seconds * 1000;

	uv_timer_init(&d->loop, &d->settle);
	uv_timer_init(&d->loop, &d->rescan);
	uv_timer_init(&d->loop, &d->lock);
	d->settle.data = d->rescan.data = d->lock.data = d;
	if (ms)
		uv_timer_start(&d->rescan, on_rescan, ms, ms);
}

static int watch_all(struct daemon *d, struct err *err)
{
	int r;

	watch_signal(d, &d->sigterm, SIGTERM);
	watch_signal(d, &d->sigint, SIGINT);
	watch_signal(d, &d->sighup, SIGHUP);
	daemon_hold_signals(false);
	start_timers(d);
	r = watch_dir_open(d->opt->kubelet_dir, &d->dir, err);
	if (r < 0)
		return r;
	watch_fd(d, &d->dir_poll, watch_dir_fd(d->dir), on_dir);
	watch_hardware(d);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void close_loop(struct daemon *d)
{
	uv_walk(&d->loop, close_handle, NULL);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	uv_loop_close(&d->loop);
	watch_dir_close(d->dir);
	watch_hw_close(d->hw);
}

static void fill_env(struct daemon *d)
{
	const struct daemon_options *opt = d->opt;

	d->registry_dir = xasprintf("%s/plugins_registry", opt->kubelet_root);
	d->plugin_dirs[0] = opt->kubelet_dir;
	d->plugin_dirs[1] = d->registry_dir;
	d->checkpoint = xasprintf("%s/kubelet_internal_checkpoint", opt->kubelet_dir);
	d->pod_resources = xasprintf("%s/pod-resources/kubelet.sock", opt->kubelet_root);
	d->env = (struct plugin_env) {
		.rpc = d->rpc,
		.root = d->root,
		.plugin_dir = opt->kubelet_dir,
		.registry_dir = d->registry_dir,
		.devinfo_dir = opt->devinfo_dir,
		.registration = opt->registration,
		.cdi = opt->cdi,
		.pod_resources_timeout_ms = opt->pod_resources_timeout_ms,
	};
}

/* --- one at a time --- */

static void nothing(void *arg)
{
	(void)arg;
}

/* The sockets of the plugins are there. */
static void say_serving(struct daemon *d)
{
	rpc_run(d->rpc, nothing, NULL);
	ready_say(&d->ready, "serving");
}

static void open_control(struct daemon *d)
{
	const struct control_backend backend = control_backend_of(&d->env);

	if (d->opt->control_socket)
		d->control = control_open(&d->loop, d->opt->control_socket, d->rpc, &backend);
}

/* Held VFs may be out of sight (in a pod's network); the picture has to know all of them. */
static bool knows_all_held(const struct daemon *d)
{
	for (size_t i = 0; i < d->state.n_seeds; i++) {
		const struct node_seed *seed = &d->state.seeds[i];
		const struct pool *pool = node_pool(d->node, seed->resource);

		if (pool && !pool_find(pool, seed->vf))
			return false;
	}
	return true;
}

static const struct node *newest_node(void *ctx)
{
	const struct daemon *d = ctx;

	return d->node;
}

static void watch_empty_pools(struct daemon *d)
{
	if (d->opt->empty_pool_seconds)
		d->emptypools = emptypools_start(&d->loop, &d->opt->specs,
						 d->opt->empty_pool_seconds, newest_node, d);
}

/* --- pools that leave their binding open --- */

static enum binding_held held_of(const struct daemon *d, size_t pool,
				 const struct pod_list *checkpoint)
{
	return binding_held(d->state.ledger, checkpoint, d->cfg->pools[pool].resource);
}

static void bind_pool(struct daemon *d, size_t i, enum binding_held held)
{
	const struct pool_config *pool = &d->cfg->pools[i];
	const char *why;
	enum pool_binding binding =
		binding_decide(evidence_facts(d->evidence), held, pool->network, &why);

	config_bind(d->cfg, i, binding, why);
	log_info("binding", "binding auto was decided resource=%s binding=%s reason=%s",
		 pool->resource, binding == BINDING_LATE ? "late" : "early", why);
}

/* The kubelet takes a pod out of its checkpoint only when the next one asks for devices. */
static struct pod_list pods_of_checkpoint(struct daemon *d, struct arena *a)
{
	struct pod_list all = checkpoint_pods(d->checkpoint, a), pods = { all.v, 0 };

	for (size_t i = 0; i < all.n; i++) {
		if (!d->opt->cgroup_dir || pod_runs(d, all.v[i].name) != 0)
			pods.v[pods.n++] = all.v[i];
	}
	return pods;
}

/* With the ledger, before any pool is offered. False: what it depends on is not known yet. */
static bool bind_pools(struct daemon *d)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct pod_list checkpoint;

	if (!d->evidence)
		return true;
	checkpoint = pods_of_checkpoint(d, a);
	for (size_t i = 0; i < d->cfg->n_pools && !evidence_facts(d->evidence); i++) {
		if (d->cfg->pools[i].binding_auto && !held_of(d, i, &checkpoint))
			return false;
	}
	for (size_t i = 0; i < d->cfg->n_pools; i++) {
		if (d->cfg->pools[i].binding_auto)
			bind_pool(d, i, held_of(d, i, &checkpoint));
	}
	return true;
}

/* With the ledger. A picture that was made while we waited is served at once. */
static int serve(struct daemon *d, struct err *err)
{
	d->has_ledger = true;
	if (!bind_pools(d)) /* on_evidence() comes back; meanwhile the machine can be looked at */
		return d->node ? 0 : scan(d, err);
	d->serving = true;
	if (d->node && !knows_all_held(d))
		node_unref(STEAL(d->node));
	if (d->node)
		show_node(d);
	else if (scan(d, err) < 0)
		return -err->code;
	open_control(d);
	say_serving(d);
	watch_empty_pools(d);
	return 0;
}

static void on_evidence(void *arg)
{
	struct daemon *d = arg;

	if (d->has_ledger && !d->serving && serve(d, d->failure) < 0)
		uv_stop(&d->loop);
}

static void ask_for_evidence(struct daemon *d)
{
	for (size_t i = 0; i < d->cfg->n_pools && !d->evidence; i++) {
		if (d->cfg->pools[i].binding_auto)
			d->evidence = evidence_new(&d->loop, d->rpc, d->opt, d->pod_resources,
						   on_evidence, d);
	}
}

static void on_lock(uv_timer_t *timer)
{
	struct daemon *d = timer->data;
	struct err err = { 0 };
	int r = state_open(&d->state, d->opt->state_dir, d->root, &err);

	if (r == -EBUSY) {
		if (uv_timer_get_repeat(timer) == LOCK_TICK_MS &&
		    clock_mono_ms() - d->waits_since_ms > LOCK_LONG_WAIT_MS) {
			log_warn("ledger",
				 "another railmated still serves; are there two DaemonSets of "
				 "railmate? reason=%s",
				 err.msg);
			uv_timer_set_repeat(timer, LOCK_SLOW_MS);
		}
		return;
	}
	uv_timer_stop(timer);
	if (serve(d, d->failure) < 0)
		uv_stop(&d->loop);
}

/* All that can be done before the other one ends is done now. */
static int wait_for_ledger(struct daemon *d, struct err *err)
{
	state_peek(&d->state, d->opt->state_dir);
	d->waits_since_ms = clock_mono_ms();
	uv_timer_start(&d->lock, on_lock, LOCK_TICK_MS, LOCK_TICK_MS);
	if (scan(d, err) < 0)
		return -err->code;
	ready_say(&d->ready, "waiting");
	return 0;
}

static int begin(struct daemon *d, struct err *err)
{
	struct err busy = { 0 };

	if (state_open(&d->state, d->opt->state_dir, d->root, &busy) == 0)
		return serve(d, err);
	log_info("ledger", "waiting for the end of another railmated reason=%s", busy.msg);
	return wait_for_ledger(d, err);
}

static int run(struct daemon *d, struct err *err)
{
	int r;

	rpc_set_user_agent(d->rpc, "railmated/" RAILMATE_VERSION);
	fill_env(d);
	d->plugins = xcalloc(n_plugins(d), sizeof(struct plugin *));
	if (uv_loop_init(&d->loop) < 0)
		return err_set(err, EIO, "cannot make the event loop");
	d->unlisted = unlisted_new(&d->loop, on_unlisted, d);
	if (sysroot_is_live(d->root))
		d->qos = qos_new(netlink_dcb);
	r = specs_open(d->rpc, &d->opt->specs, d->opt->kubelet_root, &d->specs, err);
	d->env.specs = specs_are_there(d->specs) ? specs_source(d->specs) : NULL;
	if (r == 0)
		r = watch_all(d, err);
	if (r == 0)
		ask_for_evidence(d);
	if (r == 0)
		r = begin(d, err);
	if (r == 0) {
		d->watchdog = watchdog_start(&d->loop, d->rpc, 0, NULL, NULL);
		uv_run(&d->loop, UV_RUN_DEFAULT);
		r = -err->code;
	}
	rpc_post(d->rpc, close_on_rpc, d);
	rpc_stop(d->rpc);
	control_close(d->control);
	emptypools_stop(d->emptypools);
	close_loop(d);
	emptypools_free(d->emptypools);
	control_free(d->control);
	watchdog_free(d->watchdog);
	unlisted_free(d->unlisted);
	evidence_free(d->evidence);
	qos_free(d->qos);
	return r;
}

void daemon_hold_signals(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

int daemon_run(const struct daemon_options *opt, struct config *cfg, struct err *err)
{
	struct daemon d = { .opt = opt, .cfg = cfg, .failure = err };
	int r;

	r = sysroot_open(opt->root, &d.root, err);
	if (r < 0)
		return r;
	ready_begin(&d.ready, opt->ready_file);
	r = rpc_start(&d.rpc, err);
	if (r == 0)
		r = run(&d, err);
	ready_end(&d.ready);
	state_close(&d.state);
	node_unref(d.node);
	free(d.plugins);
	free(d.registry_dir);
	free(d.pod_resources);
	free(d.checkpoint);
	sysroot_close(d.root);
	return r;
}
