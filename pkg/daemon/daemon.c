#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
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
#include "base/str.h"
#include "config/config.h"
#include "daemon/autobind.h"
#include "daemon/holdings.h"
#include "daemon/links.h"
#include "daemon/qos.h"
#include "daemon/service.h"
#include "daemon/state.h"
#include "daemon/topofile.h"
#include "daemon/unlisted.h"
#include "daemon/watchdog.h"
#include "discover/sysroot.h"
#include "events/events.h"
#include "hw/inventory.h"
#include "kubeapi/specs.h"
#include "load/configfiles.h"
#include "load/load.h"
#include "load/reload.h"
#include "localsocket/localsocket.h"
#include "netlink/netlink.h"
#include "plugin/plugin.h"
#include "pool/empty.h"
#include "pool/node.h"
#include "report/findings.h"
#include "report/http.h"
#include "report/nfdfile.h"
#include "report/ready.h"
#include "rpc/rpc.h"
#include "watch/watch.h"

/* A burst of events (64 VFs appearing) is one scan: the first event arms the timer. */
#define SETTLE_MS 200
/* Scans that a lost link starts at once: so many within such a time. */
#define HURRY_MAX      8
#define HURRY_EVERY_MS 10000
/* While another railmated has the ledger: the pods that come between its end and our registration
 * are refused for good. */
#define LOCK_TICK_MS	  5
#define LOCK_SLOW_MS	  100
#define LOCK_LONG_WAIT_MS 60000 /* an update is over by then */

struct daemon {
	const struct daemon_options *opt;
	struct config *cfg;  /* of the newest node; main thread */
	struct config *next; /* that shall follow it; NULL: none */
	struct sysroot *root;
	struct rpc *rpc;
	struct state state;
	struct node *node; /* the newest one; main thread */
	bool has_ledger;   /* false: another railmated has it */
	bool serving;
	struct autobind *autobind;
	int64_t waits_since_ms;
	struct ready ready;
	struct err *failure; /* of what the loop does; main thread */

	struct service *service; /* on the rpc thread */
	bool specs_loaded;	 /* not before there is something to allocate */

	struct watch_dir *dir;
	struct watch_hw *hw;
	uv_loop_t loop;
	uv_signal_t sigterm, sigint, sighup;
	uv_timer_t settle, rescan, lock;
	uv_poll_t dir_poll, hw_poll[2];
	struct localsocket *localsocket;
	struct unlisted *unlisted;
	bool link_lost;	    /* by the events that are being read */
	int64_t hurried_ms; /* since when */
	unsigned n_hurried; /* scans were made for a lost link */
	struct qos *qos;    /* NULL: not this machine's */
	struct watchdog *watchdog;
	struct report_http *web;   /* NULL: --metrics-address=none */
	struct findings *findings; /* NULL: neither HTTP nor a feature file is served */
	bool has_verdict;
	enum status_found verdict; /* doctor's */
	struct reload *reload;
	struct holdings *holdings;
	struct links *links;
	struct events *events; /* NULL: not wanted */
	uv_timer_t links_timer, empty_timer;
};

/* --- on the rpc thread --- */

static struct podres *open_podres(void *arg)
{
	struct daemon *d = arg;

	return service_podres(d->service);
}

static struct report_facts *facts_on_rpc(void *arg, uint64_t known)
{
	const struct daemon *d = arg;

	return service_facts(d->service, known);
}

static void close_on_rpc(void *arg)
{
	struct daemon *d = arg;

	autobind_close(d->autobind);
	service_close(d->service);
}

/* --- on the main thread --- */

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

static int load_parts(struct daemon *d, struct node_parts *parts, struct node **ret,
		      struct err *err)
{
	parts->previous = d->node;
	parts->links = links_degraded(d->links, &parts->n_links);
	return load_node_of(d->root, parts, ret, err);
}

/* Not before doctor has looked: the label of its verdict, which an earlier start made, shall not go
 * and come back. What is empty needs none. */
static void keep_nfdfile(const struct daemon *d)
{
	if (d->has_verdict || pool_is_idle(d->node))
		nfdfile_keep(d->opt->nfd_file, d->node, d->verdict);
}

static void on_findings(void *arg, struct findings_report *report)
{
	const struct status_doctor *found = &report->doctor;
	struct daemon *d = arg;

	log_info("doctor",
		 "doctor has looked at the node verdict=%s fail=%" PRIu64 " warn=%" PRIu64
		 " unknown=%" PRIu64,
		 status_found_names[found->verdict], found->n_by_verdict[STATUS_FOUND_FAIL],
		 found->n_by_verdict[STATUS_FOUND_WARN], found->n_by_verdict[STATUS_FOUND_UNKNOWN]);
	d->has_verdict = true;
	d->verdict = found->verdict;
	keep_nfdfile(d);
	report_http_note_doctor(d->web, report);
}

static void show_node(struct daemon *d)
{
	topofile_keep(d->opt->run_dir, d->node);
	keep_nfdfile(d);
	findings_update(d->findings, d->node);
	service_publish(d->service, d->node);
}

/* node is taken. */
static void take_scanned(struct daemon *d, struct node *node)
{
	log_notes(d->node, node);
	if (d->qos)
		qos_check(d->qos, node);
	if (d->node && d->node->generation == node->generation) {
		node_unref(node);
		return;
	}
	node_unref(d->node);
	d->node = node;
	log_pools(node);
	/* With the first devices: on a node without any, libcurl is not loaded and no pod specs are
	 * asked for. */
	if (!d->specs_loaded && !pool_is_idle(node)) {
		d->specs_loaded = true;
		service_load_specs(d->service);
	}
	if (d->serving)
		show_node(d);
}

/* A failed scan keeps the last good picture: the kubelet must not lose devices to a passing error.
 */
static int scan(struct daemon *d, struct err *err)
{
	int64_t began_ns = clock_mono_ns();
	struct node_parts parts = { .cfg = d->cfg };
	struct node *node;
	int r;

	/* The ledger, whose strings its seeds are, goes to the rpc thread with the first node. */
	parts.n_seeds = d->state.n_seeds;
	parts.seeds = d->node ? unlisted_seeds(d->unlisted, &parts.n_seeds) : d->state.seeds;
	r = load_parts(d, &parts, &node, err);
	report_http_note_scan(d->web, clock_mono_ns() - began_ns, r == 0);
	if (r < 0)
		return r;
	take_scanned(d, node);
	return 0;
}

/* What is degraded becomes part of the node. */
static void check_links(struct daemon *d)
{
	struct err err = { 0 };

	if (!d->node || !links_check(d->links, d->node, clock_mono_ms()))
		return;
	if (scan(d, &err) < 0)
		log_error("discover",
			  "rescan failed; the previous inventory of the node stays in use error=%s",
			  err.msg);
}

static void on_links(uv_timer_t *timer)
{
	check_links(timer->data);
}

static void scan_again(struct daemon *d)
{
	struct err err = { 0 };

	if (scan(d, &err) < 0)
		log_error("discover",
			  "rescan failed; the previous inventory of the node stays in use error=%s",
			  err.msg);
	if (d->serving)
		autobind_check(d->autobind, d->cfg);
	check_links(d);
	if (d->serving && d->next) /* whose scan failed, too */
		holdings_ask(d->holdings);
}

static void on_unlisted(void *arg)
{
	scan_again(arg);
}

static void on_settled(uv_timer_t *timer)
{
	scan_again(timer->data);
}

/* The safety net is for nodes with something to lose: the first VF of another one comes with an
 * event. */
static void on_rescan(uv_timer_t *timer)
{
	struct daemon *d = timer->data;
	bool hears = d->hw && watch_hw_fd(d->hw, 0) >= 0 && watch_hw_fd(d->hw, 1) >= 0;

	reload_check(d->reload);
	if (!d->node || !pool_is_idle(d->node) || !hears)
		scan_again(d);
}

static void on_signal(uv_signal_t *handle, int signo)
{
	struct daemon *d = handle->data;

	if (signo == SIGHUP) {
		reload_check(d->reload);
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
		service_kick(d->service);
}

/* The interface of a PF whose link was up, as far as we know? Those of containers come and go all
 * the time. */
static void on_down(void *arg, const char *netdev)
{
	struct daemon *d = arg;

	for (size_t i = 0; d->node && i < d->node->inv->n_pci; i++) {
		const struct hw_pci *fn = &d->node->inv->pci[i];

		d->link_lost |= !fn->is_vf && fn->carrier == 1 && str_eq(fn->netdev, netdev);
	}
}

/* A lost link is reported to the kubelet at once; bursts of new devices wait until they end. After
 * a loss it is scanned once more: an RDMA port may say so later than its interface. */
static void on_hw(uv_poll_t *poll, int status, int events)
{
	struct daemon *d = poll->data;
	int64_t now = clock_mono_ms();

	(void)status;
	(void)events;
	d->link_lost = false;
	if (!watch_hw_drain(d->hw, (int)(poll - d->hw_poll), on_down, d))
		return;
	if (!uv_is_active((uv_handle_t *)&d->settle))
		uv_timer_start(&d->settle, on_settled, SETTLE_MS, 0);
	if (!d->link_lost)
		return;
	/* A link that flaps is followed at the pace of what settles. */
	if (now - d->hurried_ms >= HURRY_EVERY_MS) {
		d->hurried_ms = now;
		d->n_hurried = 0;
	}
	if (d->n_hurried++ < HURRY_MAX)
		scan_again(d);
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

static int watch_all(struct daemon *d, struct err *err)
{
	uv_timer_t *const timers[] = { &d->settle, &d->rescan, &d->lock, &d->links_timer,
				       &d->empty_timer };
	uint64_t ms = (uint64_t)d->opt->rescan_seconds * 1000;
	struct err no_events = { 0 };
	int r;

	watch_signal(d, &d->sigterm, SIGTERM);
	watch_signal(d, &d->sigint, SIGINT);
	watch_signal(d, &d->sighup, SIGHUP);
	daemon_hold_signals(false);
	for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
		uv_timer_init(&d->loop, timers[i]);
		timers[i]->data = d;
	}
	uv_timer_start(&d->links_timer, on_links, 0, LINKS_EVERY_MS);
	if (ms)
		uv_timer_start(&d->rescan, on_rescan, ms, ms);
	r = watch_dir_open(d->opt->kubelet_dir, &d->dir, err);
	if (r < 0)
		return r;
	watch_fd(d, &d->dir_poll, watch_dir_fd(d->dir), on_dir);
	/* Events of this machine say nothing about a tree below another root: there, only SIGHUP
	 * and the timer do. */
	if (!sysroot_is_live(d->root))
		return 0;
	if (watch_hw_open(&d->hw, &no_events) < 0 || no_events.code)
		log_warn("watch", "changes are found by the scan seconds=%u error=%s",
			 d->opt->rescan_seconds, no_events.msg);
	for (int i = 0; d->hw && i < 2; i++)
		watch_fd(d, &d->hw_poll[i], watch_hw_fd(d->hw, i), on_hw);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* --- one at a time --- */

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

static void on_empty_timer(uv_timer_t *timer)
{
	const struct daemon *d = timer->data;

	if (d->node)
		events_of_empty_pools(d->events, d->node);
}

/* After the start, and after another configuration: devices may still come. */
static void watch_empty_pools(struct daemon *d)
{
	if (d->opt->empty_pool_seconds)
		uv_timer_start(&d->empty_timer, on_empty_timer,
			       (uint64_t)d->opt->empty_pool_seconds * 1000, 0);
}

/* With the ledger. A picture that was made while we waited is served at once. */
static int serve(struct daemon *d, struct err *err)
{
	d->has_ledger = true;
	if (!autobind_pools(d->autobind, d->cfg, d->state.ledger)) /* on_bindings() comes back;
							meanwhile the machine can be looked at */
		return d->node ? 0 : scan(d, err);
	d->serving = true;
	if (d->node && !knows_all_held(d))
		node_unref(STEAL(d->node));
	if (d->node)
		show_node(d);
	else if (scan(d, err) < 0)
		return -err->code;
	if (d->opt->control_socket) {
		const struct localsocket_backend backend =
			localsocket_backend_of(service_shared(d->service));

		d->localsocket =
			localsocket_open(&d->loop, d->opt->control_socket, d->rpc, &backend);
	}
	service_wait(d->service); /* now the sockets of the plugins are there */
	ready_say(&d->ready, "serving");
	watch_empty_pools(d);
	return 0;
}

static void on_bindings(void *arg)
{
	struct daemon *d = arg;

	if (d->has_ledger && !d->serving && serve(d, d->failure) < 0)
		uv_stop(&d->loop);
	else if (d->serving && d->next)
		holdings_ask(d->holdings);
}

/* --- another configuration --- */

static const struct pool_config *find_pool(const struct config *cfg, const char *resource)
{
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (!strcmp(cfg->pools[i].resource, resource))
			return &cfg->pools[i];
	}
	return NULL;
}

static void put_names(struct strbuf *out, const struct config *of, const struct config *without)
{
	for (size_t i = 0; i < of->n_pools; i++) {
		const struct pool_config *other = find_pool(without, of->pools[i].resource);

		if (!of->pools[i].retired && (!other || other->retired))
			strbuf_printf(out, "%s%s", out->len ? "," : "", of->pools[i].resource);
	}
}

static void tell_change(struct daemon *d, const struct config *before)
{
	_cleanup_strbuf_ struct strbuf added = STRBUF_INIT, removed = STRBUF_INIT;

	put_names(&added, d->cfg, before);
	put_names(&removed, before, d->cfg);
	log_info("config",
		 "the new configuration is in use generation=%" PRIu64
		 " pools=%zu added=%s removed=%s",
		 reload_state(d->reload)->generation, d->cfg->n_pools, added.len ? added.s : "none",
		 removed.len ? removed.s : "none");
}

/* The ledger as it is now: for the next configuration, or for what is left over of the last one. */
static void on_holdings(void *arg, const struct ledger *copy)
{
	struct daemon *d = arg;
	const struct config *wanted = d->next ? d->next : d->cfg;
	_cleanup_free_ bool *retired = NULL;
	_cleanup_free_ struct node_seed *held = NULL;
	struct node_parts parts = { .held_only = true };
	struct config *cfg, *before;
	struct err err = { 0 };
	struct node *node;

	if (d->next && !autobind_pools(d->autobind, d->next, copy))
		return; /* on_bindings() asks again */
	retired = holdings_retired(copy, d->cfg, wanted);
	held = holdings_seeds(copy, &parts.n_seeds);
	cfg = config_retire(wanted, d->cfg, retired);
	parts.cfg = cfg;
	parts.seeds = held;
	if (load_parts(d, &parts, &node, &err) < 0) {
		config_free(cfg);
		log_error("config", "the new configuration waits for a scan error=%s", err.msg);
		return;
	}
	before = d->cfg;
	d->cfg = cfg;
	take_scanned(d, node);
	if (d->next) {
		config_free(STEAL(d->next));
		reload_adopted(d->reload);
		tell_change(d, before);
		watch_empty_pools(d);
	}
	config_free(before);
}

/* cfg is taken. One that came before and is not in use yet is skipped. */
static void on_config(void *arg, struct config *cfg)
{
	struct daemon *d = arg;
	struct err err = { 0 };

	autobind_inherit(d->cfg, cfg);
	autobind_ask(d->autobind, cfg);
	if (!d->serving) { /* nothing is offered yet */
		config_free(d->cfg);
		d->cfg = cfg;
		d->node = node_unref(d->node);
		reload_adopted(d->reload);
		if (scan(d, &err) < 0)
			log_error("discover", "the node cannot be scanned error=%s", err.msg);
		return;
	}
	config_free(d->next);
	d->next = cfg;
	holdings_ask(d->holdings);
}

static void on_lock(uv_timer_t *timer)
{
	struct daemon *d = timer->data;
	struct err err = { 0 };
	int r = state_open(&d->state, d->opt->state_dir, d->root, &err);

	if (r == -EBUSY) {
		if (uv_timer_get_repeat(timer) == LOCK_TICK_MS &&
		    clock_mono_ms() - d->waits_since_ms > LOCK_LONG_WAIT_MS) {
			log_warn(
				"ledger",
				"another railmated still serves; are there two DaemonSets of railmate? reason=%s",
				err.msg);
			uv_timer_set_repeat(timer, LOCK_SLOW_MS);
		}
		return;
	}
	uv_timer_stop(timer);
	if (serve(d, d->failure) < 0)
		uv_stop(&d->loop);
}

static void show_config(void *arg)
{
	const struct daemon *d = arg;
	const struct reload_state *s = reload_state(d->reload);
	const struct event refused = { .action = "Configure",
				       .reason = "ConfigRefused",
				       .note = s->error };

	if (s->error)
		events_send(d->events, &refused);
	if (d->web)
		report_http_note_config(d->web, s->generation, d->cfg->n_errors, s->error);
}

static const char *silent_thread(void *arg, unsigned ms)
{
	const struct daemon *d = arg;

	return watchdog_silent(d->watchdog, ms);
}

static void open_web(struct daemon *d)
{
	const struct report_http_env env = { .loop = &d->loop,
					     .rpc = d->rpc,
					     .root = d->root,
					     .address = d->opt->metrics_address,
					     .silent = silent_thread,
					     .facts = facts_on_rpc,
					     .ctx = d };

	if (!d->opt->metrics_address)
		return;
	d->web = report_http_open(&env);
	show_config(d);
}

static int begin(struct daemon *d, struct err *err)
{
	struct err busy = { 0 };

	if (state_open(&d->state, d->opt->state_dir, d->root, &busy) == 0)
		return serve(d, err);
	log_info("ledger", "waiting for the end of another railmated reason=%s", busy.msg);
	/* All that can be done before the other one ends is done now. */
	state_peek(&d->state, d->opt->state_dir);
	d->waits_since_ms = clock_mono_ms();
	uv_timer_start(&d->lock, on_lock, LOCK_TICK_MS, LOCK_TICK_MS);
	if (scan(d, err) < 0)
		return -err->code;
	ready_say(&d->ready, "waiting");
	return 0;
}

static int open_service(struct daemon *d, struct err *err)
{
	struct service_env env = { .opt = d->opt,
				   .rpc = d->rpc,
				   .root = d->root,
				   .state = &d->state,
				   .holdings = d->holdings,
				   .unlisted = d->unlisted,
				   .events = d->events };
	int r = specs_open(d->rpc, &d->opt->specs, d->opt->kubelet_root, &env.specs, err);

	if (r == 0)
		d->service = service_new(&env);
	return r;
}

static void open_autobind(struct daemon *d)
{
	const struct autobind_env env = { .loop = &d->loop,
					  .rpc = d->rpc,
					  .opt = d->opt,
					  .checkpoint = service_checkpoint(d->service),
					  .open_podres = open_podres,
					  .known = on_bindings,
					  .ctx = d };

	d->autobind = autobind_new(&env);
	autobind_ask(d->autobind, d->cfg);
}

static int run(struct daemon *d, struct config_text *text, struct err *err)
{
	int r;

	rpc_set_user_agent(d->rpc, "railmated/" RAILMATE_VERSION);
	if (uv_loop_init(&d->loop) < 0)
		return err_set(err, EIO, "cannot make the event loop");
	d->unlisted = unlisted_new(&d->loop, on_unlisted, d);
	d->links = links_new(d->root);
	if (d->opt->metrics_address || d->opt->nfd_file)
		d->findings = findings_new(&d->loop, d->root, on_findings, d);
	d->events = events_start(&d->loop, &d->opt->specs, d->opt->events, d->opt->node_condition);
	d->holdings = holdings_new(&d->loop, d->rpc, on_holdings, d);
	d->reload = reload_new(&d->loop, d->opt->config_files, text, on_config, d);
	reload_listen(d->reload, show_config);
	if (sysroot_is_live(d->root))
		d->qos = qos_new(netlink_dcb);
	r = open_service(d, err);
	if (r == 0)
		r = watch_all(d, err);
	if (r == 0)
		open_autobind(d);
	if (r == 0) {
		d->watchdog = watchdog_start(&d->loop, d->rpc, 0, NULL, NULL);
		open_web(d);
		r = begin(d, err);
	}
	if (r == 0) {
		uv_run(&d->loop, UV_RUN_DEFAULT);
		r = -err->code;
	}
	report_http_close(d->web);
	rpc_post(d->rpc, close_on_rpc, d);
	rpc_stop(d->rpc);
	localsocket_close(d->localsocket);
	events_stop(d->events);
	findings_close(d->findings);
	uv_walk(&d->loop, close_handle, NULL);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	uv_loop_close(&d->loop);
	watch_dir_close(d->dir);
	watch_hw_close(d->hw);
	events_free(d->events);
	localsocket_free(d->localsocket);
	report_http_free(d->web);
	watchdog_free(d->watchdog);
	unlisted_free(d->unlisted);
	reload_free(d->reload);
	holdings_free(d->holdings);
	links_free(d->links);
	findings_free(d->findings);
	config_free(d->next);
	autobind_free(d->autobind);
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

int daemon_run(const struct daemon_options *opt, struct config *cfg, struct config_text *text,
	       struct err *err)
{
	struct daemon d = { .opt = opt, .cfg = config_ref(cfg), .failure = err };
	int r;

	r = sysroot_open(opt->root, &d.root, err);
	if (r < 0)
		return r;
	ready_begin(&d.ready, opt->ready_file);
	r = rpc_start(&d.rpc, err);
	if (r == 0)
		r = run(&d, text, err);
	ready_end(&d.ready);
	state_close(&d.state);
	node_unref(d.node);
	config_free(d.cfg);
	service_free(d.service);
	sysroot_close(d.root);
	return r;
}
