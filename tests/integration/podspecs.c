/*
 * Asks one source of pod specs, for tests: each line "fetch TIMEOUT_MS [N]" on standard input asks
 * N times at once, each answer is one JSON object on standard output, with the milliseconds it
 * took.
 *
 *   podspecs --url URL [--token FILE] [--ca FILE]
 *   podspecs --pods-api SOCKET
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/transfer-internal.h"
#include "kubeclient/podsapi.h"
#include "rpc/rpc.h"

static struct {
	struct rpc *rpc;
	struct kubeapi *kubeapi;
	struct podspec_source *podsapi;
	const struct podspec_source *source;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned timeout_ms, n, open; /* of the line under way */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

struct question {
	int64_t began_us;
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void write_container(struct json *j, const struct spec_container *c)
{
	static const char *const kinds[] = {
		[SPEC_INIT] = "init", [SPEC_SIDECAR] = "sidecar", [SPEC_APP] = "app"
	};

	json_begin_object(j);
	json_kv_string(j, "name", c->name);
	json_kv_string(j, "kind", kinds[c->kind]);
	json_key(j, "limits");
	json_begin_object(j);
	for (size_t i = 0; i < c->n_limits; i++)
		json_kv_int(j, c->limits[i].resource, c->limits[i].count);
	json_end_object(j);
	json_end_object(j);
}

static void write_pod(struct json *j, const struct spec_pod *p)
{
	json_begin_object(j);
	json_kv_string(j, "namespace", p->ns);
	json_kv_string(j, "name", p->name);
	json_kv_string(j, "uid", p->uid);
	json_kv_string(j, "unread", p->unread);
	json_kv_bool(j, "deleted", p->deleted);
	json_kv_int(j, "created", p->created);
	json_key(j, "containers");
	json_begin_array(j);
	for (size_t i = 0; i < p->n_containers; i++)
		write_container(j, &p->containers[i]);
	json_end_array(j);
	json_end_object(j);
}

static void on_done(void *arg, const struct spec_list *specs, const char *why)
{
	_cleanup_free_ struct question *q = arg;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, 0);
	json_begin_object(&j);
	json_kv_int(&j, "us", now_us() - q->began_us);
	json_kv_string(&j, "why", why);
	json_key(&j, "pods");
	json_begin_array(&j);
	for (size_t i = 0; specs && i < specs->n; i++)
		write_pod(&j, &specs->v[i]);
	json_end_array(&j);
	json_end_object(&j);
	puts(strbuf_str(&text));
	fflush(stdout);
	pthread_mutex_lock(&g.lock);
	g.open--;
	pthread_cond_broadcast(&g.changed);
	pthread_mutex_unlock(&g.lock);
}

static void ask(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < g.n; i++) {
		struct question *q = xcalloc(1, sizeof(*q));

		q->began_us = now_us();
		g.source->fetch(g.source->ctx, g.timeout_ms, on_done, q);
	}
}

static void run_line(const char *line)
{
	g.n = 1;
	if (sscanf(line, "fetch %u %u", &g.timeout_ms, &g.n) < 1)
		return;
	pthread_mutex_lock(&g.lock);
	g.open = g.n;
	pthread_mutex_unlock(&g.lock);
	rpc_post(g.rpc, ask, NULL);
	pthread_mutex_lock(&g.lock);
	while (g.open)
		pthread_cond_wait(&g.changed, &g.lock);
	pthread_mutex_unlock(&g.lock);
}

static void close_source(void *arg)
{
	(void)arg;
	kubeapi_close(g.kubeapi);
	kubeclient_podsapi_close(g.podsapi);
}

static int open_source(const struct kubeapi_options *opt, const char *socket)
{
	struct err err = { 0 };

	if (socket) {
		g.source = g.podsapi = kubeclient_podsapi_open(g.rpc, socket);
		return 0;
	}
	if (kubeapi_open(g.rpc, opt, &g.kubeapi, &err) < 0) {
		fprintf(stderr, "podspecs: %s\n", err.msg);
		return -1;
	}
	g.source = kubeapi_source(g.kubeapi);
	return 0;
}

static int parse(int argc, char **argv, struct kubeapi_options *opt, const char **socket)
{
	static const struct option options[] = {
		{ "url", required_argument, NULL, 'u' },
		{ "token", required_argument, NULL, 't' },
		{ "ca", required_argument, NULL, 'c' },
		{ "pods-api", required_argument, NULL, 'p' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'u')
			opt->url = optarg;
		else if (c == 't')
			opt->token_file = optarg;
		else if (c == 'c')
			opt->ca_file = optarg;
		else if (c == 'p')
			*socket = optarg;
		else
			return -1;
	}
	return optind == argc && (opt->url || *socket) ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct kubeapi_options opt = { .name = "test" };
	_cleanup_free_ char *line = NULL;
	const char *socket = NULL;
	struct err err = { 0 };
	size_t cap = 0;
	int r;

	if (parse(argc, argv, &opt, &socket) < 0) {
		fputs("usage: podspecs --url URL [--token FILE] [--ca FILE] | --pods-api SOCKET\n",
		      stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (rpc_start(&g.rpc, &err) < 0) {
		fprintf(stderr, "podspecs: %s\n", err.msg);
		return 1;
	}
	r = open_source(&opt, socket);
	while (r == 0 && getline(&line, &cap, stdin) >= 0)
		run_line(line);
	rpc_run(g.rpc, close_source, NULL);
	rpc_stop(g.rpc);
	return r == 0 ? 0 : 1;
}
