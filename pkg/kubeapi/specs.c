/*
 * Pod specs and ResourceClaims: where the API server is, its list of pods, claims one by one, and
 * which source of pod specs is asked. On the rpc thread; transfer.c talks.
 */
#include "kubeapi/specs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/objects.h"
#include "kubeapi/transfer-internal.h"
#include "kubeclient/podsapi.h"
#include "kubeclient/podspec_queue.h"
#include "kubemsg/podspec.h"
#include "rpc/rpc.h"

/* --- where the API server is --- */

int apiserver_url(char **ret, struct err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");

	if (!host || !*host)
		return err_set(err, EINVAL,
			       "KUBERNETES_SERVICE_HOST does not say where the API server is");
	*ret = xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
			 port && *port ? port : "443");
	return 0;
}

int apiserver_node(const char *given, const char **ret, struct err *err)
{
	static const char legal[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	const char *node = given ? given : getenv("NODE_NAME");

	if (!node || !*node)
		return err_set(err, EINVAL,
			       "neither --node-name nor NODE_NAME says which node this is");
	if (node[strspn(node, legal)])
		return err_set(err, EINVAL, "'%s' is not the name of a node", node);
	*ret = node;
	return 0;
}

/* --- pods --- */

struct kubeapi {
	struct podspec_source source;
	char *name, *url;
	struct transfer *transfer;
	struct spec_queue queue;
};

static void kubeapi_free(struct kubeapi *k)
{
	free(k->name);
	free(k->url);
	free(k);
}

static void on_pods(void *arg, struct answer *a)
{
	struct kubeapi *k = arg;
	struct spec_list list = { a->pods.v, a->pods.n };

	kubeclient_queue_answer(&k->queue, a->err.code ? NULL : &list,
				a->err.code ? a->err.msg : NULL);
	kubeapi_answer_free(a);
}

static void begin(void *ctx, unsigned timeout_ms)
{
	struct kubeapi *k = ctx;

	(void)timeout_ms; /* cancel() comes */
	kubeapi_transfer_begin(k->transfer,
			       &(struct transfer_request) { .method = "GET", .url = k->url });
}

static void cancel(void *ctx)
{
	struct kubeapi *k = ctx;

	kubeapi_transfer_cancel(k->transfer);
}

static void fetch_pods(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	struct kubeapi *k = ctx;

	kubeclient_queue_add(&k->queue, timeout_ms, done, arg);
}

int kubeapi_open(struct rpc *rpc, const struct kubeapi_options *opt, struct kubeapi **ret,
		 struct err *err)
{
	struct kubeapi *k;
	int r;

	if (!str_starts(opt->url, "https://"))
		return err_set(err, EINVAL, "'%s' does not begin with https://", opt->url);
	if (!opt->ca_file)
		return err_set(err, EINVAL, "%s: no file says whose certificates to take",
			       opt->url);
	k = xcalloc(1, sizeof(*k));
	*k = (struct kubeapi) { .name = xstrdup(opt->name), .url = xstrdup(opt->url) };
	k->source = (struct podspec_source) { .name = k->name, .fetch = fetch_pods, .ctx = k };
	k->queue = (struct spec_queue) {
		.rpc = rpc, .what = k->url, .begin = begin, .cancel = cancel, .ctx = k
	};
	r = kubeapi_transfer_open(opt, TRANSFER_PODS, rpc, on_pods, k, &k->transfer, err);
	if (r < 0) {
		kubeapi_free(k);
		return r;
	}
	*ret = k;
	return 0;
}

const struct podspec_source *kubeapi_source(const struct kubeapi *k)
{
	return &k->source;
}

void kubeapi_close(struct kubeapi *k)
{
	if (!k)
		return;
	k->queue.ended = true;
	kubeclient_queue_answer(&k->queue, NULL, "railmated is stopping");
	kubeapi_transfer_close(k->transfer);
	kubeapi_free(k);
}

/* --- claims --- */

struct question {
	draclaim_done_fn done;
	void *arg;
};

static int read_claim(struct bytes body, struct api_claim *claim, struct err *err)
{
	struct api_list list;
	int r;

	kubemsg_list_begin(&list, kubemsg_list_claim, claim);
	r = kubemsg_list_push(&list, (const char *)body.data, body.len, err);
	if (r == 0)
		r = kubemsg_list_end(&list, err);
	kubemsg_list_done(&list);
	if (r < 0)
		return err_wrap(err, "the answer about the claim");
	return claim->found ? 0 : err_set(err, ENOENT, "the API server knows no such claim");
}

static void on_claim(void *arg, long status, struct bytes body, const char *why)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	_cleanup_free_ struct question *q = arg;
	struct api_claim claim = { .arena = a };
	struct err err = { 0 };

	(void)status;
	if (!why && read_claim(body, &claim, &err) < 0)
		why = err.msg;
	q->done(q->arg, why ? NULL : &claim.claim, why);
}

static void fetch_claim(void *ctx, const char *ns, const char *name, unsigned timeout_ms,
			draclaim_done_fn done, void *arg)
{
	bool legal = kubeapi_objects_is_name(ns) && kubeapi_objects_is_name(name);
	_cleanup_free_ char *path = xasprintf(
		"/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims?fieldSelector=metadata.name%%3D%s",
		ns, name);
	const struct api_request request = { .method = "GET",
					     .path = legal ? path : NULL,
					     .timeout_ms = timeout_ms };
	struct question *q = xcalloc(1, sizeof(*q));

	*q = (struct question) { done, arg };
	kubeapi_objects_do(ctx, &request, on_claim, q);
}

/* Of a page of the API server's list, as kubectl asks for them: more than nodes have. */
#define PAGE_PODS	500u
#define WARM_UP_MS	5000
#define AVOID_MS	1000 /* after a first failure; doubled with each further one */
#define AVOID_DOUBLINGS 6

/* One source, in the order of preference. */
struct candidate {
	const char *name;
	char *socket;		/* the Pods API */
	bool optional;		/* no candidate while its socket is not there */
	char *url, *token, *ca; /* the API server */
	struct podspec_source *podsapi;
	struct kubeapi *kubeapi; /* NULL before it is needed */
	const struct podspec_source *source;

	unsigned failures; /* in a row */
	bool works;
	int64_t avoid_until_ms;
	struct log_rate warned;
	char *why; /* of the last failure */
};

#define CANDIDATES_MAX 2

/* One fetch of ours: goes from candidate to candidate. */
struct ask {
	LIST_ENTRY(ask) link;
	struct specs *specs;
	podspec_done_fn done;
	void *arg;
	int64_t until_ms;
	size_t next;
	struct candidate *asked;
	struct rpc_timer *giving_up;
	struct err err; /* the sentences of all of them */
};

struct specs {
	struct rpc *rpc;
	struct podspec_source source;
	struct candidate v[CANDIDATES_MAX];
	size_t n;
	LIST_HEAD(, ask) asks;
	struct draclaim_source claims;
	struct kubeapi_objects *objects; /* of claims; NULL: no API server is known */
	struct arena *warned; /* owns the names of pods that were warned of and are there */
	const char **warned_pods;
	size_t n_warned;
	bool closing;
};

/* --- one source --- */

static int open_candidate(struct specs *s, struct candidate *c, struct err *err)
{
	const struct kubeapi_options opt = {
		.name = c->name, .url = c->url, .token_file = c->token, .ca_file = c->ca
	};
	int r;

	if (c->source)
		return 0;
	if (c->socket) {
		c->source = c->podsapi = kubeclient_podsapi_open(s->rpc, c->socket);
		return 0;
	}
	r = kubeapi_open(s->rpc, &opt, &c->kubeapi, err);
	if (r == 0)
		c->source = kubeapi_source(c->kubeapi);
	return r;
}

static void close_candidate(struct candidate *c)
{
	kubeclient_podsapi_close(c->podsapi);
	kubeapi_close(c->kubeapi);
	free(c->socket);
	free(c->url);
	free(c->token);
	free(c->ca);
	free(c->why);
}

/* Warned of at the start and when it has worked in between, not at every pod. */
static void failed(struct candidate *c, const char *why)
{
	unsigned doublings = c->failures < AVOID_DOUBLINGS ? c->failures : AVOID_DOUBLINGS;

	c->avoid_until_ms = clock_mono_ms() + ((int64_t)AVOID_MS << doublings);
	free(c->why);
	c->why = xstrdup(why);
	if (!c->failures++ && log_rate_count(&c->warned) == 1)
		log_warn("specs", "cannot read pod specs source=%s error=%s", c->name, why);
	else
		log_debug("specs", "cannot read pod specs source=%s error=%s", c->name, why);
	c->works = false;
}

static void worked(struct candidate *c, size_t n_pods)
{
	if (!c->works)
		log_info("specs", "pod specs are read source=%s pods=%zu", c->name, n_pods);
	c->works = true;
	c->failures = 0;
	c->avoid_until_ms = 0;
}

/* Once for each pod, as long as it is there. */
static void warn_of_unread(struct specs *s, const struct spec_list *specs)
{
	struct arena *a = arena_new(0);
	const char **pods = arena_array(a, specs->n, sizeof(*pods));
	size_t n = 0;

	for (size_t i = 0; i < specs->n; i++) {
		const struct spec_pod *p = &specs->v[i];

		if (!p->unread)
			continue;
		pods[n] = arena_printf(a, "%s %s/%s", p->uid ? p->uid : "", p->ns, p->name);
		if (!list_has(s->warned_pods, s->n_warned, pods[n++]))
			log_warn(
				"specs",
				"the spec of a pod is not read: its containers are found by what they hold pod=%s/%s uid=%s reason=%s",
				p->ns, p->name, p->uid, p->unread);
	}
	arena_free(s->warned);
	s->warned = a;
	s->warned_pods = pods;
	s->n_warned = n;
}

/* --- one fetch --- */

static void note(struct ask *ask, const char *why)
{
	struct err before = ask->err;

	if (before.code)
		err_set(&ask->err, EIO, "%s; %s", before.msg, why);
	else
		err_set(&ask->err, EIO, "%s", why);
}

static void conclude(struct ask *ask, const struct spec_list *specs, const char *why)
{
	LIST_REMOVE(ask, link);
	ask->done(ask->arg, specs, why);
	free(ask);
}

static void give_up(void *arg)
{
	struct ask *ask = arg;

	conclude(ask, NULL, ask->err.code ? ask->err.msg : "no source of pod specs is available");
}

static void try_next(struct ask *ask);

static void answered(void *arg, const struct spec_list *specs, const char *why)
{
	struct ask *ask = arg;

	if (ask->specs->closing) {
		conclude(ask, NULL, why);
		return;
	}
	if (specs) {
		worked(ask->asked, specs->n);
		warn_of_unread(ask->specs, specs);
		conclude(ask, specs, NULL);
		return;
	}
	failed(ask->asked, why);
	note(ask, why);
	try_next(ask);
}

static bool is_absent(const struct candidate *c)
{
	return c->optional && access(c->socket, F_OK) < 0;
}

/* Can it be asked now? If not because it failed, the ask learns why. */
static bool is_ready(struct ask *ask, struct candidate *c)
{
	struct err err = { 0 };

	if (is_absent(c))
		return false;
	if (clock_mono_ms() < c->avoid_until_ms) {
		note(ask, c->why);
		return false;
	}
	if (open_candidate(ask->specs, c, &err) < 0) {
		failed(c, err.msg);
		note(ask, err.msg);
		return false;
	}
	return true;
}

static void try_next(struct ask *ask)
{
	struct specs *s = ask->specs;

	while (ask->next < s->n) {
		struct candidate *c = &s->v[ask->next++];
		int64_t left = ask->until_ms - clock_mono_ms();

		if (left <= 0)
			break;
		if (!is_ready(ask, c))
			continue;
		ask->asked = c;
		c->source->fetch(c->source->ctx, (unsigned)left, answered, ask);
		return;
	}
	ask->giving_up = rpc_after(s->rpc, 0, give_up, ask); /* never before fetch() returned */
}

static void fetch(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	struct specs *s = ctx;
	struct ask *ask = xcalloc(1, sizeof(*ask));

	*ask = (struct ask) {
		.specs = s, .done = done, .arg = arg, .until_ms = clock_mono_ms() + timeout_ms
	};
	LIST_INSERT_HEAD(&s->asks, ask, link);
	try_next(ask);
}

static void warmed_up(void *arg, const struct spec_list *specs, const char *why)
{
	(void)why; /* logged already */
}

void specs_warm_up(struct specs *s)
{
	if (s)
		fetch(s, WARM_UP_MS, warmed_up, NULL);
}

/* --- from the command line --- */

static struct candidate *add(struct specs *s, const char *name)
{
	struct candidate *c = &s->v[s->n++];

	c->name = name;
	return c;
}

static void add_pods_api(struct specs *s, const char *kubelet_root, bool optional)
{
	struct candidate *c = add(s, "kubelet's Pods API");

	c->socket = xasprintf("%s/pods-api/pods-api.sock", kubelet_root);
	c->optional = optional;
}

static int add_api_server(struct specs *s, const struct specs_options *opt, struct err *err)
{
	_cleanup_free_ char *server = NULL;
	const char *node;
	struct candidate *c;
	int r;

	r = apiserver_url(&server, err);
	if (r == 0)
		r = apiserver_node(opt->node_name, &node, err);
	if (r < 0)
		return r;
	c = add(s, "API server");
	c->token = xasprintf("%s/token", opt->service_account);
	c->ca = xasprintf("%s/ca.crt", opt->service_account);
	/* Pods that ended are kept by the thousand. */
	c->url = xasprintf(
		"%s/api/v1/pods?fieldSelector=spec.nodeName%%3D%s%%2Cstatus.phase%%21%%3DSucceeded%%2Cstatus.phase%%21%%3DFailed&limit=%u",
		server, node, PAGE_PODS);
	return 0;
}

static void add_what_there_is(struct specs *s, const struct specs_options *opt,
			      const char *kubelet_root)
{
	_cleanup_free_ char *token = xasprintf("%s/token", opt->service_account);
	struct err err = { 0 };

	add_pods_api(s, kubelet_root, true);
	if (access(token, R_OK) < 0)
		return;
	if (add_api_server(s, opt, &err) < 0)
		log_debug("specs", "the API server is not asked reason=%s", err.msg);
}

static int add_candidates(struct specs *s, const struct specs_options *opt,
			  const char *kubelet_root, struct err *err)
{
	if (opt->mode == SPECS_API_SERVER)
		return add_api_server(s, opt, err);
	if (opt->mode == SPECS_PODS_API)
		add_pods_api(s, kubelet_root, false);
	else
		add_what_there_is(s, opt, kubelet_root);
	return 0;
}

static void specs_free(struct specs *s)
{
	for (size_t i = 0; i < s->n; i++)
		close_candidate(&s->v[i]);
	kubeapi_objects_close(s->objects);
	arena_free(s->warned);
	free(s);
}

/* The one that will be asked: loading libcurl takes 10 ms that the rpc thread shall not lose. */
void specs_load(struct specs *s)
{
	struct err err = { 0 };
	size_t i = 0;

	if (!s)
		return;
	while (i < s->n && is_absent(&s->v[i]))
		i++;
	if (i < s->n && open_candidate(s, &s->v[i], &err) < 0)
		failed(&s->v[i], err.msg);
}

int specs_open(struct rpc *rpc, const struct specs_options *opt, const char *kubelet_root,
	       struct specs **ret, struct err *err)
{
	struct specs *s;

	*ret = NULL;
	if (opt->mode == SPECS_OFF)
		return 0;
	s = xcalloc(1, sizeof(*s));
	s->rpc = rpc;
	s->source = (struct podspec_source) { .name = "pod specs", .fetch = fetch, .ctx = s };
	LIST_INIT(&s->asks);
	if (add_candidates(s, opt, kubelet_root, err) < 0) {
		specs_free(s);
		return err_wrap(err, "pod specs");
	}
	if (kubeapi_objects_open(rpc, opt->service_account, &s->objects, NULL) == 0)
		s->claims = (struct draclaim_source) { .fetch = fetch_claim, .ctx = s->objects };
	*ret = s;
	return 0;
}

const struct podspec_source *specs_source(const struct specs *s)
{
	return s ? &s->source : NULL;
}

const struct draclaim_source *specs_claims(const struct specs *s)
{
	return s && s->objects ? &s->claims : NULL;
}

bool specs_are_there(const struct specs *s)
{
	for (size_t i = 0; s && i < s->n; i++) {
		if (!is_absent(&s->v[i]))
			return true;
	}
	return false;
}

void specs_close(struct specs *s)
{
	struct ask *ask, *next;

	if (!s)
		return;
	s->closing = true;
	for (ask = LIST_FIRST(&s->asks); ask; ask = next) {
		next = LIST_NEXT(ask, link);
		if (!ask->giving_up)
			continue; /* its source ends it, with an answer */
		rpc_timer_cancel(ask->giving_up);
		give_up(ask);
	}
	specs_free(s);
}
