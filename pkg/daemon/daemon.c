#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/binding-internal.h"
#include "daemon/state-internal.h"
#include "daemon/probefiles-internal.h"
#include "daemon/scanner-internal.h"
#include "daemon/service-internal.h"
#include "daemon/topofile-internal.h"
#include "daemon/watchdog-internal.h"
#include "kubeapi/events.h"
#include "kubeapi/objects.h"
#include "kubeapi/specs.h"
#include "load/configfiles.h"
#include "load/reload.h"
#include "localsocket/localsocket.h"
#include "plugin/plugin.h"
#include "pool/node.h"
#include "report/findings.h"
#include "report/http.h"
#include "report/nfdfile.h"
#include "report/ready.h"
#include "rpc/rpc.h"
#include "sysroot/sysroot.h"
#include "load/watch.h"

/* While another railmated has the ledger: the pods that come between its end and our registration
 * are refused for good. */
#define LOCK_TICK_MS	  5
#define LOCK_SLOW_MS	  100
#define LOCK_LONG_WAIT_MS 60000 /* an update is over by then */

struct daemon {
	const struct daemon_options *opt;
	struct err *failure; /* of the loop's functions */
	struct sysroot *root;
	struct rpc *rpc;
	uv_loop_t loop;
	uv_signal_t sigterm, sigint, sighup;
	uv_timer_t rescan, again, lock, empty_timer;
	struct watch_dir *dir; /* the kubelet's */
	uv_poll_t dir_poll;
	struct watchdog *watchdog;

	struct state state;
	bool has_ledger; /* false: another railmated has it */
	int64_t waits_since_ms;
	bool serving;

	struct scanner *scanner; /* the newest node, and its configuration */
	struct unlisted *unlisted;
	struct reload *reload;
	struct config *next; /* shall follow that of the scanner; NULL: none */
	struct holdings *holdings;
	struct autobind *autobind;

	struct service *service; /* on the rpc thread */
	bool specs_loaded;	 /* not before there is something to allocate */

	struct ready ready;
	char *probe;	       /* the folder that containers are shown; NULL: none */
	struct events *events; /* NULL: not wanted */
	struct localsocket *localsocket;
	struct report_http *web;   /* NULL: --metrics-address=none */
	struct findings *findings; /* NULL: neither HTTP nor a feature file is served */
	bool has_verdict;
	enum status_found verdict; /* doctor's */
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

/* Not before doctor has looked: the label of its verdict, which an earlier start made, shall not go
 * and come back. An empty file needs none. */
static void keep_nfdfile(const struct daemon *d)
{
	const struct node *node = scanner_node(d->scanner);

	if (d->has_verdict || pool_is_idle(node))
		nfdfile_keep(d->opt->nfd_file, node, d->verdict);
}

static void on_findings(void *arg, struct findings_report *report)
{
	const struct status_doctor *found = &report->doctor;
	struct daemon *d = arg;

	if (found->failure)
		log_warn(
			"doctor",
			"doctor could not check the node; tried again when the hardware changes error=%s",
			found->failure);
	else
		log_info("doctor",
			 "doctor has checked the node verdict=%s fail=%" PRIu64 " warn=%" PRIu64
			 " unknown=%" PRIu64,
			 status_found_names[found->verdict], found->n_by_verdict[STATUS_FOUND_FAIL],
			 found->n_by_verdict[STATUS_FOUND_WARN],
			 found->n_by_verdict[STATUS_FOUND_UNKNOWN]);
	d->has_verdict = true;
	d->verdict = found->verdict;
	keep_nfdfile(d);
	report_http_note_doctor(d->web, report);
}

static void show_node(struct daemon *d)
{
	struct node *node = scanner_node(d->scanner);

	topofile_keep(d->opt->run_dir, node);
	keep_nfdfile(d);
	findings_update(d->findings, node);
	service_publish(d->service, node);
}

static void on_scanned(void *arg, int64_t ns, bool ok)
{
	const struct daemon *d = arg;

	report_http_note_scan(d->web, ns, ok);
}

static void on_node(void *arg)
{
	struct daemon *d = arg;

	/* With the first devices: on a node without any, libcurl is not loaded and no pod specs are
	 * asked for. */
	if (!d->specs_loaded && !pool_is_idle(scanner_node(d->scanner))) {
		d->specs_loaded = true;
		service_load_specs(d->service);
	}
	if (d->serving)
		show_node(d);
}

static void on_looked(void *arg)
{
	struct daemon *d = arg;

	if (!d->serving)
		return;
	autobind_check(d->autobind, scanner_config(d->scanner));
	if (d->next) /* whose scan failed, too */
		holdings_ask(d->holdings);
}

static void on_unlisted(void *arg)
{
	const struct daemon *d = arg;

	scanner_again(d->scanner);
}

static void on_rescan(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	reload_check(d->reload);
	scanner_tick(d->scanner);
}

/* In the next turn of the loop: those that came during one look are one more, and others get their
 * turn between the two. */
static void on_again(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	reload_check(d->reload);
	scanner_again(d->scanner);
}

static void on_signal(uv_signal_t *handle, int signo)
{
	struct daemon *d = handle->data;

	if (signo == SIGHUP) {
		uv_timer_start(&d->again, on_again, 0, 0);
		return;
	}
	log_info("daemon", "stopping signal=%s", strsignal(signo));
	uv_stop(&d->loop);
}

static void on_dir(uv_poll_t *poll, int status, int events)
{
	struct daemon *d = poll->data;

	if (watch_dir_drain(d->dir))
		service_kick(d->service);
}

static void watch_signal(struct daemon *d, uv_signal_t *handle, int signo)
{
	uv_signal_init(&d->loop, handle);
	handle->data = d;
	uv_signal_start(handle, on_signal, signo);
}

static int watch_all(struct daemon *d, struct err *err)
{
	uv_timer_t *const timers[] = { &d->rescan, &d->again, &d->lock, &d->empty_timer };
	uint64_t ms = (uint64_t)d->opt->rescan_seconds * 1000;
	int r;

	watch_signal(d, &d->sigterm, SIGTERM);
	watch_signal(d, &d->sigint, SIGINT);
	watch_signal(d, &d->sighup, SIGHUP);
	daemon_hold_signals(false);
	for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
		uv_timer_init(&d->loop, timers[i]);
		timers[i]->data = d;
	}
	if (ms)
		uv_timer_start(&d->rescan, on_rescan, ms, ms);
	r = watch_dir_open(d->opt->kubelet_dir, &d->dir, err);
	if (r < 0)
		return r;
	uv_poll_init(&d->loop, &d->dir_poll, watch_dir_fd(d->dir));
	d->dir_poll.data = d;
	uv_poll_start(&d->dir_poll, UV_READABLE, on_dir);
	scanner_watch(d->scanner, d->opt->rescan_seconds);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* --- one at a time --- */

static void on_empty_timer(uv_timer_t *timer)
{
	const struct daemon *d = timer->data;
	const struct node *node = scanner_node(d->scanner);

	if (node)
		events_of_empty_pools(d->events, node);
}

/* After the start, and after another configuration: devices may still come. */
static void watch_empty_pools(struct daemon *d)
{
	if (d->opt->empty_pool_seconds)
		uv_timer_start(&d->empty_timer, on_empty_timer,
			       (uint64_t)d->opt->empty_pool_seconds * 1000, 0);
}

/* Before the registration with the kubelet: a program that sees our VFs there may ask at once, and
 * waits until the loop runs. */
static void open_localsocket(struct daemon *d)
{
	const struct localsocket_backend backend =
		localsocket_backend_of(service_shared(d->service));

	if (d->opt->control_socket)
		d->localsocket =
			localsocket_open(&d->loop, d->opt->control_socket, d->rpc, &backend);
}

/* With the ledger. A node that was made while we waited is served at once. */
static int serve(struct daemon *d, struct err *err)
{
	d->has_ledger = true;
	scanner_keep_links(d->scanner);
	/* Or on_bindings() comes back; meanwhile the machine can be looked at. */
	if (!autobind_pools(d->autobind, scanner_config(d->scanner), d->state.ledger,
			    &(struct ids) { NULL, 0 }))
		return scanner_node(d->scanner) ? 0 : scanner_scan(d->scanner, err);
	d->serving = true;
	open_localsocket(d);
	if (scanner_node(d->scanner) && !state_is_in(&d->state, scanner_node(d->scanner)))
		scanner_forget(d->scanner);
	if (scanner_node(d->scanner))
		show_node(d);
	else if (scanner_scan(d->scanner, err) < 0)
		return -err->code;
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

static void put_names(struct strbuf *out, const struct config *of, const struct config *without)
{
	for (size_t i = 0; i < of->n_pools; i++) {
		const struct pool_config *other = config_pool(without, of->pools[i].resource);

		if (!of->pools[i].retired && (!other || other->retired))
			strbuf_printf(out, "%s%s", out->len ? "," : "", of->pools[i].resource);
	}
}

static void log_change(struct daemon *d, const struct config *before)
{
	const struct config *cfg = scanner_config(d->scanner);
	_cleanup_strbuf_ struct strbuf added = STRBUF_INIT, removed = STRBUF_INIT;

	put_names(&added, cfg, before);
	put_names(&removed, before, cfg);
	log_info("config",
		 "the new configuration is in use generation=%" PRIu64
		 " pools=%zu added=%s removed=%s",
		 reload_state(d->reload)->generation, cfg->n_pools, added.len ? added.s : "none",
		 removed.len ? removed.s : "none");
}

/* The ledger as it is now: for the next configuration, or for the VFs left over of the last one. */
static void on_holdings(void *arg, const struct ledger *copy, const struct ids *promised)
{
	struct daemon *d = arg;
	struct config *current = scanner_config(d->scanner);
	const struct config *wanted = d->next ? d->next : current;
	struct config *anew;
	_cleanup_free_ bool *retired = NULL;
	_cleanup_free_ struct node_seed *held = NULL;
	struct config *before;
	struct err err = { 0 };
	size_t n_held;

	if (d->next && !autobind_pools(d->autobind, d->next, copy, promised))
		return; /* on_bindings() asks again */
	anew = d->next ? NULL : autobind_anew(d->autobind, current, copy, promised);
	if (anew)
		wanted = anew;
	else if (!d->next && !node_has_left_over(scanner_node(d->scanner)))
		return; /* the kubelet's checkpoint still has slots */
	retired = holdings_retired(copy, current, wanted);
	held = holdings_seeds(copy, &n_held);
	before = config_ref(current);
	if (scanner_adopt(d->scanner, config_retire(wanted, current, retired), held, n_held, &err) <
	    0) {
		log_error(
			"config",
			"the new configuration is not in use yet: the node cannot be scanned error=%s",
			err.msg);
	} else if (d->next) {
		config_free(STEAL(d->next));
		reload_adopted(d->reload);
		log_change(d, before);
		watch_empty_pools(d);
	}
	config_free(before);
	config_free(anew);
}

/* cfg is taken. One that came before and is not in use yet is skipped. */
static void on_config(void *arg, struct config *cfg)
{
	struct daemon *d = arg;
	struct err err = { 0 };

	autobind_inherit(scanner_config(d->scanner), cfg);
	autobind_ask(d->autobind, cfg);
	if (!d->serving) { /* nothing is offered yet */
		scanner_replace(d->scanner, cfg);
		reload_adopted(d->reload);
		if (scanner_scan(d->scanner, &err) < 0)
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
				"another railmated still serves; the node may have two DaemonSets of railmate reason=%s",
				err.msg);
			uv_timer_set_repeat(timer, LOCK_SLOW_MS);
		}
		return;
	}
	uv_timer_stop(timer);
	if (serve(d, d->failure) < 0)
		uv_stop(&d->loop);
}

static bool has_kept(const struct pool_config *pools, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pools[i].kept)
			return true;
	}
	return false;
}

static void show_config(void *arg)
{
	const struct daemon *d = arg;
	const struct reload_state *s = reload_state(d->reload);
	const struct config *cfg = scanner_config(d->scanner);
	const struct event refused = { .about = "configuration",
				       .action = "Configure",
				       .reason = "ConfigRefused",
				       .note = s->error };
	bool kept = has_kept(cfg->pools, cfg->n_pools) || has_kept(cfg->shared, cfg->n_shared);
	_cleanup_free_ char *note = xasprintf(
		"%s%s", cfg->n_errors ? cfg->errors[0] : "",
		kept ? "; a pool with an error that was in use before stays as it was" : "");
	const struct event incomplete = { .about = "configuration",
					  .action = "Configure",
					  .reason = "ConfigIncomplete",
					  .note = note };

	if (s->error)
		events_send(d->events, &refused);
	else if (cfg->n_errors)
		events_send(d->events, &incomplete);
	else
		events_forget(d->events, &refused);
	report_http_note_config(d->web, s->generation, cfg, s->error);
	service_note_refused(d->service, s->error);
}

static const char *silent_thread(void *arg, unsigned ms)
{
	const struct daemon *d = arg;

	return watchdog_silent(d->watchdog, ms);
}

/* --- the start, in order, and the end --- */

static void open_scanner(struct daemon *d, struct config *cfg)
{
	const struct scanner_env env = { .loop = &d->loop,
					 .root = d->root,
					 .run_dir = d->opt->run_dir,
					 .state = &d->state,
					 .unlisted = d->unlisted,
					 .scanned = on_scanned,
					 .came = on_node,
					 .looked = on_looked,
					 .ctx = d };

	d->scanner = scanner_new(&env, cfg);
}

/* What DRA cannot do without. */
static int open_claims(struct daemon *d, struct service_env *ret, struct err *err)
{
	if (!d->opt->pod_resources)
		return err_set(
			err, EINVAL,
			"--serve=dra needs the GPUs of pods, which --pod-resources=off forbids to ask for");
	if (d->opt->cdi == CDI_OFF || d->opt->cdi_dir_missing)
		return err_set(
			err, EINVAL,
			"--serve=dra needs CDI: the folder of --cdi-dir has to be the host's");
	if (d->opt->specs.mode == SPECS_OFF || d->opt->specs.mode == SPECS_PODS_API)
		return err_set(
			err, EINVAL,
			"--serve=dra needs pod specs of the API server, which --pod-specs excludes");
	if (kubeapi_objects_open(d->rpc, d->opt->specs.service_account, &ret->objects, err) < 0 ||
	    kubeapi_objects_open(d->rpc, d->opt->specs.service_account, &ret->questions, err) < 0)
		return err_wrap(err, "--serve=dra needs the API server");
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
				   .events = d->events,
				   .probe = d->probe };
	struct specs_options specs = d->opt->specs;
	bool claims = d->opt->config_files->by_claims;
	int r = claims ? open_claims(d, &env, err) : 0;

	/* The Pods API does not tell which claims were made for a pod: docs/design/kubelet.md §2.4
	 */
	if (claims)
		specs.mode = SPECS_API_SERVER;
	if (r == 0)
		r = specs_open(d->rpc, &specs, d->opt->kubelet_root, &env.specs, err);
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
	autobind_ask(d->autobind, scanner_config(d->scanner));
}

static bool waits_for_another(void *ctx)
{
	struct daemon *d = ctx;

	return uv_is_active((uv_handle_t *)&d->lock);
}

static void open_web(struct daemon *d)
{
	const struct report_http_env env = { .loop = &d->loop,
					     .rpc = d->rpc,
					     .root = d->root,
					     .address = d->opt->metrics_address,
					     .root_path = d->opt->root,
					     .control_socket = d->opt->control_socket,
					     .state_dir = d->opt->state_dir,
					     .files = d->opt->config_files,
					     .silent = silent_thread,
					     .facts = facts_on_rpc,
					     .waits = waits_for_another,
					     .ctx = d };

	if (!d->opt->metrics_address)
		return;
	d->web = report_http_open(&env);
}

static void open_findings(struct daemon *d)
{
	const struct findings_env env = { .loop = &d->loop,
					  .machine = { d->opt->root, d->opt->config_files },
					  .found = on_findings,
					  .ctx = d };

	if (d->opt->metrics_address || d->opt->nfd_file)
		d->findings = findings_new(&env);
}

static int open_all(struct daemon *d, struct config *cfg, struct config_text *text, struct err *err)
{
	const struct daemon_options *opt = d->opt;
	int r;

	/* Reports of other threads and of files to the main thread. */
	d->unlisted = unlisted_new(&d->loop, on_unlisted, d);
	d->holdings = holdings_new(&d->loop, d->rpc, on_holdings, d);
	d->reload = reload_new(&d->loop, opt->config_files, text, cfg, on_config, d);
	reload_listen(d->reload, show_config);
	d->events = events_start(&d->loop, &opt->specs, opt->events, opt->node_condition);
	open_findings(d);
	/* The node, and the service for the kubelet. */
	open_scanner(d, cfg);
	d->probe = probefiles_keep(opt->probe, opt->run_dir ? opt->state_dir : NULL);
	r = open_service(d, err);
	if (r < 0)
		return r;
	r = watch_all(d, err);
	if (r < 0)
		return r;
	open_autobind(d);
	d->watchdog = watchdog_start(&d->loop, d->rpc, 0, NULL, NULL);
	open_web(d);
	show_config(d);
	return 0;
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
	if (scanner_scan(d->scanner, err) < 0)
		return -err->code;
	ready_say(&d->ready, "waiting");
	return 0;
}

/* First the pages, which ask the rpc thread, then that thread, then all that is on the loop. */
static void close_all(struct daemon *d)
{
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
	events_free(d->events);
	localsocket_free(d->localsocket);
	report_http_free(d->web);
	watchdog_free(d->watchdog);
	unlisted_free(d->unlisted);
	reload_free(d->reload);
	holdings_free(d->holdings);
	findings_free(d->findings);
	config_free(d->next);
	autobind_free(d->autobind);
	free(d->probe);
}

static int run(struct daemon *d, struct config *cfg, struct config_text *text, struct err *err)
{
	int r;

	rpc_set_user_agent(d->rpc, "railmated/" RAILMATE_VERSION);
	if (uv_loop_init(&d->loop) < 0)
		return err_set(err, EIO, "cannot make the event loop");
	r = open_all(d, cfg, text, err);
	if (r == 0)
		r = begin(d, err);
	if (r == 0) {
		uv_run(&d->loop, UV_RUN_DEFAULT);
		r = -err->code;
	}
	close_all(d);
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
	struct daemon d = { .opt = opt, .failure = err };
	int r;

	r = sysroot_open(opt->root, &d.root, err);
	if (r < 0)
		return r;
	ready_begin(&d.ready, opt->ready_file);
	r = rpc_start(&d.rpc, err);
	if (r == 0)
		r = run(&d, cfg, text, err);
	ready_end(&d.ready);
	state_close(&d.state);
	scanner_free(d.scanner);
	service_free(d.service);
	sysroot_close(d.root);
	return r;
}
