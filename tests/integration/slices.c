/*
 * Keeps the ResourceSlices of a machine that is described by a line (tests/support/synth.h), for
 * tests: commands on standard input, an answer to each, a JSON object a line.
 *
 *   slices --account DIR --machine LINE [--node NAME] [--exact]
 *
 *   want N                       that many slots, or the places of the machine (--exact); 0:
 * nothing look                         as after a registration ask MS METHOD PATH [BODY]    any
 * request
 *
 * The answer to want and look comes when all is written, or cannot be; KUBERNETES_SERVICE_HOST and
 * _PORT say where the API server is.
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "dra/publish.h"
#include "dra/slices.h"
#include "kubeapi/objects.h"
#include "pool/node.h"
#include "rpc/rpc.h"
#include "support/nodes.h"
#include "support/synth.h"

#define DRIVER	  "vf.railmate.io"
#define SLOTS_MAX 4096

static struct {
	struct rpc *rpc;
	struct kubeapi_objects *objects;
	struct publish *publish;
	struct node *node;
	const char *name;
	bool exact;
	unsigned slots[SLOTS_MAX]; /* 0, 1, … */
	struct strbuf said;	   /* of publish */
	bool done;
} g = { .name = "worker-1" };

/* A request of the line that is read. */
static struct {
	struct api_request request;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool answered;
} one = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void print(struct strbuf *text)
{
	puts(strbuf_str(text));
	fflush(stdout);
	strbuf_done(text);
}

/* --- ask --- */

static void on_answer(void *arg, long status, struct bytes body, const char *why)
{
	struct strbuf text = STRBUF_INIT;
	_cleanup_free_ char *copy = xasprintf("%.*s", (int)body.len, (const char *)body.data);
	struct json j;

	(void)arg;
	json_init(&j, &text, 0);
	json_begin_object(&j);
	json_kv_int(&j, "status", status);
	json_kv_string(&j, "why", why);
	json_kv_string(&j, "body", copy);
	json_end_object(&j);
	print(&text);
	pthread_mutex_lock(&one.lock);
	one.answered = true;
	pthread_cond_signal(&one.changed);
	pthread_mutex_unlock(&one.lock);
}

static void ask_fn(void *arg)
{
	(void)arg;
	kubeapi_objects_do(g.objects, &one.request, on_answer, NULL);
}

static void ask(const char *line)
{
	char method[16], path[512];
	int body = 0;

	one.answered = false;
	one.request = (struct api_request) { .method = method,
					     .path = path,
					     .accept = "application/json",
					     .type = "application/json" };
	if (sscanf(line, "ask %u %15s %511s %n", &one.request.timeout_ms, method, path, &body) < 3)
		return;
	one.request.body = body && line[body] ? line + body : NULL;
	rpc_run(g.rpc, ask_fn, NULL);
	pthread_mutex_lock(&one.lock);
	while (!one.answered)
		pthread_cond_wait(&one.changed, &one.lock);
	pthread_mutex_unlock(&one.lock);
}

/* --- want, look --- */

static void want_fn(void *arg)
{
	const size_t *n = arg;
	const struct slices_pool pool = {
		.pool = g.node->pools, .exact = g.exact, .slots = g.slots, .n_slots = *n
	};
	const struct slices_in in = { .node = g.node, .v = &pool, .n = 1, .taints = true };

	publish_set(g.publish, *n ? &in : NULL);
}

static void look_fn(void *arg)
{
	(void)arg;
	publish_look(g.publish);
}

static void say_fn(void *arg)
{
	(void)arg;
	g.said.len = 0;
	publish_say(g.publish, &g.said);
	g.done = publish_is_done(g.publish);
}

static void run_round(void (*fn)(void *arg), void *arg)
{
	int64_t began_ns = clock_mono_ns();
	struct strbuf text = STRBUF_INIT;
	struct json j;

	rpc_run(g.rpc, fn, arg);
	do {
		usleep(500);
		rpc_run(g.rpc, say_fn, NULL);
	} while (!g.done && !str_starts(g.said.s, "ResourceSlices are not kept"));
	json_init(&j, &text, 0);
	json_begin_object(&j);
	json_kv_bool(&j, "done", g.done);
	json_kv_string(&j, "said", g.said.s);
	json_kv_int(&j, "us", (clock_mono_ns() - began_ns) / 1000);
	json_end_object(&j);
	print(&text);
}

static void run_line(char *line)
{
	size_t n;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "want %zu", &n) == 1 && n <= SLOTS_MAX)
		run_round(want_fn, &n);
	else if (!strcmp(line, "look"))
		run_round(look_fn, NULL);
	else
		ask(line);
}

/* --- */

static void ask_objects(void *ctx, const struct api_request *request, api_done_fn done, void *arg)
{
	kubeapi_objects_do(ctx, request, done, arg);
}

static void open_fn(void *arg)
{
	(void)arg;
	g.publish = publish_open(&(struct publish_env) { .rpc = g.rpc,
							 .driver = DRIVER,
							 .node_name = g.name,
							 .ask = ask_objects,
							 .ctx = g.objects });
}

static void close_fn(void *arg)
{
	(void)arg;
	publish_close(g.publish);
	kubeapi_objects_close(g.objects);
}

static int parse(int argc, char **argv, const char **account, const char **machine)
{
	static const struct option options[] = {
		{ "account", required_argument, NULL, 'a' },
		{ "machine", required_argument, NULL, 'm' },
		{ "node", required_argument, NULL, 'n' },
		{ "exact", no_argument, NULL, 'e' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'a')
			*account = optarg;
		else if (c == 'm')
			*machine = optarg;
		else if (c == 'n')
			g.name = optarg;
		else if (c == 'e')
			g.exact = true;
		else
			return -1;
	}
	return optind == argc && *account && *machine ? 0 : -1;
}

int main(int argc, char **argv)
{
	const char *account = NULL, *machine = NULL;
	struct config *cfg = config_default();
	_cleanup_free_ char *line = NULL;
	struct err err = { 0 };
	size_t cap = 0;

	if (parse(argc, argv, &account, &machine) < 0) {
		fputs("usage: slices --account DIR --machine LINE [--node NAME] [--exact]\n",
		      stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		g.slots[i] = i;
	g.node = node_new(synth_inventory(machine), cfg, NULL);
	config_free(cfg);
	if (rpc_start(&g.rpc, &err) < 0 ||
	    kubeapi_objects_open(g.rpc, account, &g.objects, &err) < 0) {
		fprintf(stderr, "slices: %s\n", err.msg);
		return 1;
	}
	rpc_run(g.rpc, open_fn, NULL);
	while (getline(&line, &cap, stdin) >= 0)
		run_line(line);
	rpc_run(g.rpc, close_fn, NULL);
	rpc_stop(g.rpc);
	node_unref(g.node);
	strbuf_done(&g.said);
	return 0;
}
