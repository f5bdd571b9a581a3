#include "report/http.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "discover/discover.h"
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "report/facts.h"
#include "report/findings.h"
#include "report/picture.h"
#include "rpc/rpc.h"
#include "status/status.h"
#include "report/web.h"

#define RETRY_MS    2000
#define FRESH_NS    INT64_C(1000000000)
#define PATIENCE_MS 250
/* /healthz: the watchdog asks every 5 s. */
#define SILENCE_MS 10000
#define TEXT	   "text/plain; charset=utf-8"
#define METRICS	   "text/plain; version=0.0.4; charset=utf-8"
#define HTML	   "text/html; charset=utf-8"

struct report_http {
	struct report_http_env env;
	/* main thread */
	uv_timer_t retry;
	uv_poll_t first; /* for the first connection */
	int fd;		 /* that listens for it; -1: none does */
	bool closed;
	bool complained;
	struct web *web; /* NULL: not now */
	struct picture *picture;
	int64_t began_ms;
	char node_name[256], host_name[256];

	pthread_mutex_t lock; /* for all up to the next gap */
	pthread_cond_t came;
	bool asked; /* the rpc thread will answer */
	uint64_t known;
	struct report_facts *fresh; /* its answer; NULL: none that was not taken */
	struct status_machine machine;
	char *config_error, *config_left_out;
	struct findings_report *new_report; /* NULL: none that was not taken */
	uint64_t notes;			    /* changes of the four above */

	/* the server's thread */
	struct report_facts *facts;	/* NULL: none yet */
	int64_t facts_ns;		/* when they were asked for */
	struct findings_report *report; /* NULL: none yet */
	struct ledger *ledger;		/* NULL: none yet */
	uint64_t ledger_generation;	/* UINT64_MAX: none */
	struct arena *ports_arena;
	struct hw_port_stats *ports;
	size_t n_ports;
	struct hw_vf_stats *vf_stats;
	size_t n_vf_stats;
	uint64_t taken_notes; /* notes as they were before a page was made */
	char policy[512];     /* of the page that is being answered */
	struct made {
		int64_t facts_ns; /* of the facts that it was made of; 0: it was not made */
		uint64_t notes;
		struct web_reply reply;
	} page, metrics;
};

/* --- on the rpc thread --- */

static void answer_on_rpc(void *arg)
{
	struct report_http *w = arg;
	struct report_facts *f;
	uint64_t known;

	pthread_mutex_lock(&w->lock);
	known = w->known;
	pthread_mutex_unlock(&w->lock);
	f = w->env.facts(w->env.ctx, known);
	pthread_mutex_lock(&w->lock);
	w->fresh = f;
	w->asked = false;
	pthread_cond_signal(&w->came);
	pthread_mutex_unlock(&w->lock);
}

static void report_free(struct findings_report *r)
{
	if (r)
		arena_free(r->arena);
}

/* --- on the server's thread --- */

static void take(struct report_http *w, struct report_facts *f)
{
	if (!f)
		return;
	if (f->ledger) {
		ledger_free(w->ledger);
		w->ledger = STEAL(f->ledger);
		w->ledger_generation = f->ledger_generation;
	}
	report_facts_free(w->facts);
	w->facts = f;
}

static struct timespec patience_ends(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += PATIENCE_MS * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* An answer that came too late for the last question is taken first: it may have the ledger. */
static void ask(struct report_http *w)
{
	struct timespec end = patience_ends();
	struct report_facts *late;
	int r = 0;

	pthread_mutex_lock(&w->lock);
	late = STEAL(w->fresh);
	pthread_mutex_unlock(&w->lock);
	take(w, late);

	pthread_mutex_lock(&w->lock);
	if (!w->asked) {
		w->known = w->ledger_generation;
		w->asked = rpc_post(w->env.rpc, answer_on_rpc, w);
	}
	while (w->asked && r == 0)
		r = pthread_cond_timedwait(&w->came, &w->lock, &end);
	late = STEAL(w->fresh);
	pthread_mutex_unlock(&w->lock);
	if (late)
		w->facts_ns = clock_mono_ns();
	take(w, late);
}

/* Not of HCAs that containers share: their counters are those of all these containers together. */
static void read_vfs(struct report_http *w, const struct hw_inventory *inv)
{
	size_t n = ledger_holds(w->ledger);
	int *vfs = arena_array(w->ports_arena, n, sizeof(*vfs));

	for (size_t i = 0; i < n; i++) {
		struct bdf bdf;
		int pci = bdf_parse(ledger_hold_at(w->ledger, i)->vf, &bdf) < 0
				  ? -1
				  : hw_find_pci(inv, bdf);

		if (pci >= 0 && hw_is_nic_vf(inv, pci))
			vfs[w->n_vf_stats++] = pci;
	}
	w->vf_stats = devstate_vf_stats(w->env.root, inv, vfs, w->n_vf_stats, w->ports_arena);
}

static void read_ports(struct report_http *w)
{
	arena_free(STEAL(w->ports_arena));
	w->n_ports = w->n_vf_stats = 0;
	if (!w->facts || !w->facts->node)
		return;
	w->ports_arena = arena_new(16 * 1024);
	w->ports =
		devstate_port_stats(w->env.root, w->facts->node->inv, w->ports_arena, &w->n_ports);
	if (w->facts->service && w->ledger)
		read_vfs(w, w->facts->node->inv);
}

static bool is_fresh(const struct report_http *w)
{
	return w->facts_ns && clock_mono_ns() - w->facts_ns < FRESH_NS;
}

static void refresh(struct report_http *w)
{
	if (is_fresh(w))
		return;
	ask(w);
	read_ports(w);
}

/* Many who ask get the text made for the first, while its facts are fresh. */
static bool was_made(struct report_http *w, const struct made *made, struct web_reply *ret)
{
	pthread_mutex_lock(&w->lock);
	w->taken_notes = w->notes;
	pthread_mutex_unlock(&w->lock);
	if (!is_fresh(w) || made->facts_ns != w->facts_ns || made->notes != w->taken_notes)
		return false;
	*ret = made->reply;
	ret->body = (struct strbuf)STRBUF_INIT;
	strbuf_add(&ret->body, made->reply.body.s, made->reply.body.len);
	return true;
}

static void keep_made(const struct report_http *w, struct made *made, const struct web_reply *reply)
{
	strbuf_done(&made->reply.body);
	*made = (struct made) { w->facts_ns, w->taken_notes, *reply };
	made->reply.body = (struct strbuf)STRBUF_INIT;
	strbuf_add(&made->reply.body, reply->body.s, reply->body.len);
}

static int64_t ns_of(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
}

static struct status_process process_now(const struct report_http *w)
{
	_cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	struct status_process p = { .started_ns = w->began_ms * 1000000 };
	unsigned long resident = 0;
	struct rusage usage;
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		p.cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
	if (n > 0) {
		text[n] = '\0';
		if (sscanf(text, "%*u %lu", &resident) == 1)
			p.resident_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	return p;
}

/* The strings are in the arena. */
static struct status_facts facts_now(struct report_http *w, struct arena *a)
{
	struct status_facts f = { .process = process_now(w), .now_ms = clock_wall_ms() };

	pthread_mutex_lock(&w->lock);
	f.machine = w->machine;
	f.machine.config_error = arena_strdup(a, w->config_error);
	f.machine.config_left_out = arena_strdup(a, w->config_left_out);
	if (w->new_report) {
		report_free(w->report);
		w->report = STEAL(w->new_report);
	}
	pthread_mutex_unlock(&w->lock);
	f.doctor = w->report ? &w->report->doctor : NULL;
	if (!w->facts)
		return f;
	f.age_ns = clock_mono_ns() - w->facts_ns;
	f.node = w->facts->node;
	f.service = w->facts->service;
	if (f.service)
		f.ledger = w->ledger;
	f.ports = w->ports;
	f.n_ports = w->n_ports;
	f.vf_stats = w->vf_stats;
	f.n_vf_stats = w->n_vf_stats;
	return f;
}

static void answer_metrics(struct report_http *w, const struct web_request *q, struct web_reply *r)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct status_facts f;

	refresh(w);
	if (was_made(w, &w->metrics, r))
		return;
	f = facts_now(w, a);
	r->type = METRICS;
	status_write_metrics(&f, &r->body);
	keep_made(w, &w->metrics, r);
}

static void answer_health(struct report_http *w, const struct web_request *q, struct web_reply *r)
{
	const char *silent = w->env.silent(w->env.ctx, SILENCE_MS);

	r->status = silent ? 503 : 200;
	if (silent)
		strbuf_printf(&r->body, "the %s thread has not answered for %d s\n", silent,
			      SILENCE_MS / 1000);
	else
		strbuf_puts(&r->body, "ok\n");
}

static void answer_ready(struct report_http *w, const struct web_request *q, struct web_reply *r)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct status_facts f;

	refresh(w);
	f = facts_now(w, a);
	r->status = status_write_ready(&f, &r->body) ? 200 : 503;
}

/* A random number in the page and its Content-Security-Policy: the browser runs only scripts that
 * carry it. */
static const char *new_nonce(struct arena *a)
{
	uint64_t random[2] = { 0 };

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return "";
	return arena_printf(a, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
}

static void answer_page(struct report_http *w, const struct web_request *q, struct web_reply *r)
{
	const char *const names[] = { w->node_name, w->host_name };
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct status_facts f;
	const char *nonce;

	/* A page of a foreign name that resolves to this node (DNS rebinding) could read ours. */
	if (*q->host && !web_is_host(q->host, names, ARRAY_LEN(names))) {
		r->status = 403;
		strbuf_puts(
			&r->body,
			"this page is not shown under that name: open it by an IP address, localhost or the name of the node\n");
		return;
	}
	refresh(w);
	if (was_made(w, &w->page, r))
		return;
	nonce = new_nonce(a);
	f = facts_now(w, a);
	if (f.node)
		f.picture = picture_show(w->picture,
					 f.node->generation * 1000003 + w->ledger_generation, a,
					 &f.picture_failure);
	f.node_name = w->node_name;
	r->type = HTML;
	snprintf(w->policy, sizeof(w->policy), "%s", status_page_policy(nonce, a));
	r->policy = w->policy;
	status_write_page(&f, nonce, &r->body);
	keep_made(w, &w->page, r);
}

static void answer(void *ctx, const struct web_request *q, struct web_reply *r)
{
	static const struct {
		const char *path;
		void (*answer)(struct report_http *w, const struct web_request *q,
			       struct web_reply *r);
	} pages[] = {
		{ "/", answer_page },
		{ "/metrics", answer_metrics },
		{ "/healthz", answer_health },
		{ "/readyz", answer_ready },
	};

	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		if (strcmp(q->path, pages[i].path))
			continue;
		r->status = 200;
		r->type = TEXT;
		pages[i].answer(ctx, q, r);
	}
}

/* --- on the main thread --- */

static void serve(struct report_http *w);

static void on_retry(uv_timer_t *timer)
{
	serve(timer->data);
}

static void retry(struct report_http *w, const struct err *err)
{
	if (!w->complained && !w->env.waits(w->env.ctx)) {
		log_warn("web", "metrics cannot be served; tried again error=%s", err->msg);
		w->complained = true;
	}
	uv_timer_start(&w->retry, on_retry, RETRY_MS, 0);
}

static void on_first_closed(uv_handle_t *first)
{
	struct report_http *w = first->data;
	struct err err = { 0 };
	int fd = w->fd;

	w->fd = -1;
	if (w->closed)
		close(fd);
	else if (web_start(fd, answer, w, &w->web, &err) < 0)
		retry(w, &err);
}

static void on_first(uv_poll_t *first, int status, int events)
{
	uv_close((uv_handle_t *)first, on_first_closed);
}

/* libmicrohttpd is loaded, and its thread started, at the first connection: without one neither
 * takes memory. */
static void serve(struct report_http *w)
{
	struct err err = { 0 };

	if (web_listen(w->env.address, &w->fd, &err) < 0) {
		retry(w, &err);
		return;
	}
	log_info("web", "metrics are served address=%s", w->env.address);
	uv_poll_init(w->env.loop, &w->first, w->fd);
	w->first.data = w;
	uv_poll_start(&w->first, UV_READABLE, on_first);
}

static void on_begin(uv_timer_t *timer)
{
	serve(timer->data);
}

static void name_node(struct report_http *w)
{
	const char *name = getenv("NODE_NAME");

	if (gethostname(w->host_name, sizeof(w->host_name) - 1) < 0)
		w->host_name[0] = '\0';
	snprintf(w->node_name, sizeof(w->node_name), "%s", name && *name ? name : w->host_name);
}

static void on_picture(void *ctx)
{
	struct report_http *w = ctx;

	pthread_mutex_lock(&w->lock);
	w->notes++;
	pthread_mutex_unlock(&w->lock);
}

static struct picture *open_picture(struct report_http *w)
{
	const struct picture_env env = { .loop = w->env.loop,
					 .machine = { w->env.root_path, w->env.files },
					 .control_socket = w->env.control_socket,
					 .state_dir = w->env.state_dir,
					 .made = on_picture,
					 .ctx = w };

	return picture_new(&env);
}

struct report_http *report_http_open(const struct report_http_env *env)
{
	struct report_http *w = xcalloc(1, sizeof(*w));
	pthread_condattr_t monotonic;

	w->env = *env;
	w->fd = -1;
	w->ledger_generation = UINT64_MAX;
	w->began_ms = clock_wall_ms();
	name_node(w);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->came, &monotonic);
	pthread_condattr_destroy(&monotonic);
	w->picture = open_picture(w);
	uv_timer_init(env->loop, &w->retry);
	w->retry.data = w;
	uv_timer_start(&w->retry, on_begin, 0, 0); /* after the sockets of the plugins */
	return w;
}

void report_http_note_scan(struct report_http *w, int64_t ns, bool ok)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->notes++;
	w->machine.scans++;
	w->machine.scan_failures += !ok;
	w->machine.scan_ns = ns;
	pthread_mutex_unlock(&w->lock);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; text && *text; text = str_next_line(text))
		n++;
	return n;
}

void report_http_note_config(struct report_http *w, uint64_t generation, const struct config *cfg,
			     const char *refused)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->notes++;
	w->machine.config_generation = generation;
	w->machine.config_errors = count_lines(refused) + cfg->n_errors;
	free(w->config_error);
	w->config_error = refused ? xasprintf("%.*s", (int)strcspn(refused, "\n"), refused) : NULL;
	free(w->config_left_out);
	w->config_left_out = cfg->n_errors ? xstrdup(cfg->errors[0]) : NULL;
	pthread_mutex_unlock(&w->lock);
}

void report_http_note_doctor(struct report_http *w, struct findings_report *report)
{
	if (!w) {
		report_free(report);
		return;
	}
	pthread_mutex_lock(&w->lock);
	w->notes++;
	report_free(w->new_report);
	w->new_report = report;
	pthread_mutex_unlock(&w->lock);
}

void report_http_close(struct report_http *w)
{
	if (!w)
		return;
	w->closed = true;
	web_stop(STEAL(w->web));
	picture_close(w->picture);
	if (w->fd >= 0 && !uv_is_closing((uv_handle_t *)&w->first))
		uv_close((uv_handle_t *)&w->first, on_first_closed);
	uv_close((uv_handle_t *)&w->retry, NULL);
}

void report_http_free(struct report_http *w)
{
	if (!w)
		return;
	report_facts_free(w->fresh);
	report_facts_free(w->facts);
	ledger_free(w->ledger);
	report_free(w->new_report);
	report_free(w->report);
	arena_free(w->ports_arena);
	picture_free(w->picture);
	free(w->config_error);
	free(w->config_left_out);
	strbuf_done(&w->page.reply.body);
	strbuf_done(&w->metrics.reply.body);
	pthread_cond_destroy(&w->came);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
