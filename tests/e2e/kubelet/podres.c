/*
 * Asks a kubelet's PodResources service and prints the answer as JSON.
 *
 *	podres SOCKET list
 *	podres SOCKET get NAMESPACE POD
 *	podres SOCKET allocatable
 *
 * Exit 0 answered, 1 refused (the kubelet's words on stderr), 2 wrong command line.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubemsg/messages.h"
#include "rpc/rpc.h"

#define TIMEOUT_MS	 10000
#define LARGEST_ANSWER	 (16u << 20)
#define ATTEMPTS	 20 /* List is limited to so many a second, for all of the node together */
#define BETWEEN_ATTEMPTS 100

static int print_list(struct json *j, struct bytes body, struct arena *a, struct err *err);
static int print_get(struct json *j, struct bytes body, struct arena *a, struct err *err);
static int print_allocatable(struct json *j, struct bytes body, struct arena *a, struct err *err);

static const struct verb {
	const char *name, *path;
	int n_args;
	int (*print)(struct json *j, struct bytes body, struct arena *a, struct err *err);
} verbs[] = {
	{ "list", PATH_POD_LIST, 0, print_list },
	{ "get", PATH_POD_GET, 2, print_get },
	{ "allocatable", PATH_ALLOCATABLE, 0, print_allocatable },
};

struct question {
	const struct verb *verb;
	const char *socket;
	struct bytes request;
	struct rpc *rpc;
	struct rpc_channel *channel;
	struct arena *arena;
	int attempts;
	struct err err;
	struct strbuf out;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static void put_devices(struct json *j, const struct pod_container *c)
{
	json_begin_object(j);
	for (size_t i = 0; i < c->n_held; i++) {
		json_key(j, c->held[i].resource);
		json_begin_array(j);
		for (size_t k = 0; k < c->held[i].ids.n; k++)
			json_put_string(j, c->held[i].ids.v[k]);
		json_end_array(j);
	}
	json_end_object(j);
}

static void put_pod(struct json *j, const struct pod *pod)
{
	json_begin_object(j);
	json_kv_string(j, "namespace", pod->ns);
	json_kv_string(j, "name", pod->name);
	json_key(j, "containers");
	json_begin_array(j);
	for (size_t i = 0; i < pod->n_containers; i++) {
		json_begin_object(j);
		json_kv_string(j, "name", pod->containers[i].name);
		json_key(j, "devices");
		put_devices(j, &pod->containers[i]);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static int print_list(struct json *j, struct bytes body, struct arena *a, struct err *err)
{
	struct pod_list pods;
	int r = kubemsg_decode(&kubemsg_pod_list, body, a, &pods, err);

	if (r < 0)
		return r;
	json_begin_array(j);
	for (size_t i = 0; i < pods.n; i++)
		put_pod(j, &pods.v[i]);
	json_end_array(j);
	return 0;
}

static int print_get(struct json *j, struct bytes body, struct arena *a, struct err *err)
{
	struct pod pod;
	int r = kubemsg_decode(&kubemsg_pod_get_reply, body, a, &pod, err);

	if (r == 0)
		put_pod(j, &pod);
	return r;
}

static int print_allocatable(struct json *j, struct bytes body, struct arena *a, struct err *err)
{
	struct pod_container devices;
	int r = kubemsg_decode(&kubemsg_allocatable, body, a, &devices, err);

	if (r == 0)
		put_devices(j, &devices);
	return r;
}

static void finish(struct question *q)
{
	pthread_mutex_lock(&q->lock);
	q->done = true;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

static void ask(void *arg);

static void answered(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct question *q = arg;
	struct json j;

	if (status == RPC_RESOURCE_EXHAUSTED && ++q->attempts < ATTEMPTS) {
		rpc_after(q->rpc, BETWEEN_ATTEMPTS, ask, q);
		return;
	}
	json_init(&j, &q->out, 0);
	if (status == RPC_OK)
		q->verb->print(&j, body, q->arena, &q->err);
	else
		err_set(&q->err, EIO, "%s: status %d: %s", q->socket, (int)status, message);
	finish(q);
}

static void ask(void *arg)
{
	struct question *q = arg;

	if (!q->channel)
		q->channel = rpc_channel_open(q->rpc, q->socket, LARGEST_ANSWER);
	rpc_call_unary(q->channel, q->verb->path, q->request, TIMEOUT_MS, answered, q);
}

static void await_answer(struct question *q)
{
	pthread_mutex_lock(&q->lock);
	while (!q->done)
		pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

static void hang_up(void *arg)
{
	struct question *q = arg;

	rpc_channel_close(STEAL(q->channel));
}

static const struct verb *verb_named(const char *name, int n_args)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (!strcmp(verbs[i].name, name) && verbs[i].n_args == n_args)
			return &verbs[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	_cleanup_arena_ struct arena *arena = arena_new(1u << 16);
	struct question q = { .arena = arena, .out = STRBUF_INIT };

	q.verb = argc >= 3 ? verb_named(argv[2], argc - 3) : NULL;
	if (!q.verb) {
		fputs("usage: podres SOCKET list | get NAMESPACE POD | allocatable\n", stderr);
		return 2;
	}
	q.socket = argv[1];
	if (q.verb->n_args)
		q.request = kubemsg_encode(&kubemsg_pod_get_request,
					   &(struct pod_name) { argv[3], argv[4] }, arena);
	pthread_mutex_init(&q.lock, NULL);
	pthread_cond_init(&q.changed, NULL);
	if (rpc_start(&q.rpc, &q.err) == 0) {
		rpc_post(q.rpc, ask, &q);
		await_answer(&q);
		rpc_run(q.rpc, hang_up, &q);
		rpc_stop(q.rpc);
	}
	if (q.err.code)
		fprintf(stderr, "podres: %s\n", q.err.msg);
	else
		puts(strbuf_str(&q.out));
	strbuf_done(&q.out);
	return q.err.code ? 1 : 0;
}
