/*
 * A GPU device plugin like the vendors': offers the GPUs of a machine under --root, says their NUMA
 * node, prefers GPUs that are close to each other, and registers again when the kubelet comes back.
 * A poll, every 20 ms unless told otherwise, is all the supervision it has. It can also offer parts
 * of GPUs (MIG, time slices), answer a preference late (--delay) or with nonsense.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "kubemsg/messages.h"
#include "rpc/rpc.h"
#include "sim/vendor.h"
#include "sysroot/sysroot.h"
#include "topo/topo.h"

#define TICK_MS		    20 /* --poll: a slow machine can do without so many */
#define REGISTER_TIMEOUT_MS 15000
/* A Register that was answered and brought no stream is repeated after this: 5 s, for one that
 * comes while the kubelet still dials ends the stream of the first. */
#define STREAM_GRACE_TICKS 250

enum parts { WHOLE, MIG, REPLICAS };

/* A preference that is answered late. */
struct late {
	LIST_ENTRY(late) link;
	struct fakegpu *g;
	struct rpc_call *call;
	struct bytes body;
	struct rpc_timer *timer;
};

struct fakegpu {
	const char *root, *dir, *resource, *endpoint;
	bool no_preferred, nonsense;
	enum parts parts;
	unsigned replicas; /* of each GPU */
	unsigned tick_ms, delay_ms;
	LIST_HEAD(, late) late;
	struct arena *arena;
	struct rpc *rpc;
	struct hw_inventory *inv;
	struct topo *topo;
	const struct vendor *gpus;
	struct device_list list; /* the GPUs, or the parts of them that are offered */
	struct rpc_server *server;
	struct rpc_stream *stream;
	struct rpc_channel *kubelet;
	bool registering, stopping;
	unsigned patience; /* ticks before the next Register */
	struct err err;
};

/* --- what is offered --- */

static const char *part_id(const struct fakegpu *g, const char *id, unsigned part)
{
	if (g->parts == MIG)
		return arena_printf(g->arena, "MIG-%s", str_starts(id, "GPU-") ? id + 4 : id);
	return g->parts == REPLICAS ? arena_printf(g->arena, "%s::%u", id, part) : id;
}

static void make_list(struct fakegpu *g)
{
	size_t n = g->gpus->list.n;

	g->list.v = arena_array(g->arena, n * g->replicas, sizeof(*g->list.v));
	for (size_t i = 0; i < n; i++) {
		for (unsigned k = 0; k < g->replicas; k++) {
			struct device *d = &g->list.v[g->list.n++];

			*d = g->gpus->list.v[i];
			d->id = part_id(g, d->id, k);
		}
	}
}

/* --- GetPreferredAllocation --- */

/* How many of a GPU's parts are on offer. */
static size_t parts_on_offer(const struct fakegpu *g, const struct ids *available, size_t gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < available->n; i++) {
		for (unsigned k = 0; k < g->replicas; k++)
			n += !strcmp(available->v[i], g->list.v[gpu * g->replicas + k].id);
	}
	return n;
}

/* The vendor's "distributed" policy: a part of the GPU that has the most left, and so on. */
static struct ids distribute(const struct fakegpu *g, const struct preferred_container *req,
			     struct arena *a)
{
	struct ids ids = { arena_array(a, req->available.n, sizeof(*ids.v)), 0 };
	size_t n = g->gpus->list.n, *left = arena_array(a, n, sizeof(*left));

	for (size_t i = 0; i < n; i++)
		left[i] = parts_on_offer(g, &req->available, i);
	while (ids.n < (size_t)req->size) {
		size_t most = 0;

		for (size_t i = 1; i < n; i++)
			most = left[i] > left[most] ? i : most;
		if (!n || !left[most])
			break;
		ids.v[ids.n++] = g->list.v[most * g->replicas + g->replicas - left[most]--].id;
	}
	return ids;
}

static struct ids prefer(const struct fakegpu *g, const struct preferred_container *req,
			 struct arena *a)
{
	static const char *nobody[] = { "GPU-of-another-machine" };

	if (g->nonsense)
		return (struct ids) { nobody, 1 };
	return g->parts == WHOLE ? sim_vendor_prefer(g->gpus, req, a) : distribute(g, req, a);
}

static void answer_late(void *arg)
{
	struct late *l = arg;

	LIST_REMOVE(l, link);
	rpc_reply(l->call, RPC_OK, NULL, l->body);
	free(l);
}

static void answer(struct fakegpu *g, struct rpc_call *call, struct bytes body)
{
	struct late *l;

	if (!g->delay_ms) {
		rpc_reply(call, RPC_OK, NULL, body);
		return;
	}
	l = xcalloc(1, sizeof(*l));
	*l = (struct late) { .g = g, .call = call, .body = body };
	l->timer = rpc_after(g->rpc, g->delay_ms, answer_late, l);
	LIST_INSERT_HEAD(&g->late, l, link);
}

static void on_preferred(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct preferred_request req;
	struct fakegpu *g = ctx;
	struct id_lists reply;
	struct err err = { 0 };

	if (kubemsg_decode(&kubemsg_preferred, request, a, &req, &err) < 0) {
		rpc_reply(call, RPC_INVALID_ARGUMENT, err.msg, (struct bytes) { 0 });
		return;
	}
	reply = (struct id_lists) { .v = arena_array(a, req.n, sizeof(*reply.v)), .n = req.n };
	for (size_t i = 0; i < req.n; i++)
		reply.v[i] = prefer(g, &req.v[i], a);
	answer(g, call, kubemsg_encode(&kubemsg_preferred_reply, &reply, a));
}

/* --- Allocate, the rest of the service --- */

static struct edits edits_for(const struct fakegpu *g, const struct ids *ids, struct arena *a)
{
	struct edits e = { .envs = arena_array(a, 1, sizeof(*e.envs)), .n_envs = 1 };
	_cleanup_strbuf_ struct strbuf visible = STRBUF_INIT;

	for (size_t i = 0; i < g->list.n; i++) { /* in address order, whatever the request's is */
		for (size_t j = 0; j < ids->n; j++) {
			if (!strcmp(ids->v[j], g->list.v[i].id))
				strbuf_printf(&visible, "%s%s", visible.len ? "," : "", ids->v[j]);
		}
	}
	e.envs[0] =
		(struct kv) { .key = str_starts(g->resource, "nvidia") ? "NVIDIA_VISIBLE_DEVICES"
								       : "GPU_DEVICES",
			      .value = arena_strdup(a, strbuf_str(&visible)) };
	return e;
}

static void on_allocate(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct fakegpu *g = ctx;
	struct err err = { 0 };
	struct id_lists lists;
	struct edits *edits;

	if (kubemsg_decode(&kubemsg_allocate, request, a, &lists, &err) < 0) {
		rpc_reply(call, RPC_INVALID_ARGUMENT, err.msg, (struct bytes) { 0 });
		return;
	}
	edits = arena_array(a, lists.n, sizeof(*edits));
	for (size_t i = 0; i < lists.n; i++)
		edits[i] = edits_for(g, &lists.v[i], a);
	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_allocate_reply, &(struct edits_list) { edits, lists.n },
				 a));
}

static struct plugin_options options_of(const struct fakegpu *g)
{
	return (struct plugin_options) { .preferred_allocation = !g->no_preferred };
}

static void on_options(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct plugin_options options = options_of(ctx);

	(void)request;
	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_options, &options, rpc_call_arena(call)));
}

static void on_stream_opened(void *ctx, struct rpc_stream *stream, struct bytes request)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct fakegpu *g = ctx;

	(void)request;
	g->stream = stream;
	rpc_stream_send(stream, kubemsg_encode(&kubemsg_device_list, &g->list, a));
}

static void on_stream_closed(void *ctx, struct rpc_stream *stream)
{
	struct fakegpu *g = ctx;

	if (g->stream == stream)
		g->stream = NULL;
	g->patience = 0;
}

static int open_server(struct fakegpu *g, struct err *err)
{
	static const struct rpc_method methods[] = {
		{ .path = PATH_OPTIONS, .unary = on_options },
		{ .path = PATH_LIST_AND_WATCH,
		  .opened = on_stream_opened,
		  .closed = on_stream_closed },
		{ .path = PATH_PREFERRED, .unary = on_preferred },
		{ .path = PATH_ALLOCATE, .unary = on_allocate },
	};
	char *path = arena_printf(g->arena, "%s/%s", g->dir, g->endpoint);

	return rpc_server_open(g->rpc, path, methods, ARRAY_LEN(methods), g, &g->server, err);
}

/* --- registration --- */

static void on_registered(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct fakegpu *g = arg;

	(void)body;
	if (status != RPC_OK && status != RPC_UNAVAILABLE && !g->stopping)
		fprintf(stderr, "fakegpu: Register: %s\n", message);
	g->registering = false;
	g->patience = status == RPC_OK && !g->stream ? STREAM_GRACE_TICKS : 0;
	rpc_channel_close(STEAL(g->kubelet));
}

static void do_register(struct fakegpu *g)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct register_request req = { .version = "v1beta1",
					.endpoint = g->endpoint,
					.resource = g->resource,
					.options = options_of(g) };

	g->registering = true;
	g->kubelet = rpc_channel_open(g->rpc, arena_printf(a, "%s/kubelet.sock", g->dir), 1u << 20);
	rpc_call_unary(g->kubelet, PATH_REGISTER, kubemsg_encode(&kubemsg_register, &req, a),
		       REGISTER_TIMEOUT_MS, on_registered, g);
}

/* A socket that was wiped is a kubelet that came anew: its old stream is over, or about to be. */
static void on_tick(void *arg)
{
	struct fakegpu *g = arg;
	struct err err = { 0 };

	if (g->stopping)
		return;
	rpc_after(g->rpc, g->tick_ms, on_tick, g);
	if (rpc_server_relisten(g->server, &err) < 0)
		return; /* the directory may be away */
	if (g->stream || g->registering)
		return;
	if (g->patience)
		g->patience--;
	else
		do_register(g);
}

/* --- the program --- */

static void start(void *arg)
{
	struct fakegpu *g = arg;

	if (open_server(g, &g->err) < 0)
		kill(getpid(), SIGTERM);
	else
		on_tick(g);
}

static void stop(void *arg)
{
	struct fakegpu *g = arg;
	struct late *l;

	g->stopping = true;
	while ((l = LIST_FIRST(&g->late))) {
		rpc_timer_cancel(l->timer);
		answer_late(l);
	}
	if (g->server)
		rpc_server_close(g->server, NULL, NULL);
	g->server = NULL;
}

static int load(struct fakegpu *g, struct err *err)
{
	struct sysroot *root;
	int r = sysroot_open(g->root, &root, err);

	if (r < 0)
		return r;
	r = discover_host(root, NULL, 0, NULL, &g->inv, err);
	sysroot_close(root);
	if (r < 0)
		return r;
	g->topo = topo_new(g->inv, NULL);
	g->gpus = sim_vendor_new(g->inv, g->topo, g->resource, g->arena);
	make_list(g);
	return 0;
}

static int serve(struct fakegpu *g, struct err *err)
{
	sigset_t signals;
	int sig;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (rpc_start(&g->rpc, err) < 0)
		return -err->code;
	rpc_post(g->rpc, start, g);
	sigwait(&signals, &sig);
	rpc_post(g->rpc, stop, g);
	rpc_stop(g->rpc);
	*err = g->err;
	return -g->err.code;
}

static int parse_options(int argc, char **argv, struct fakegpu *g)
{
	static const struct option options[] = {
		{ "root", required_argument, NULL, 'r' },
		{ "kubelet-dir", required_argument, NULL, 'd' },
		{ "resource", required_argument, NULL, 'n' },
		{ "no-preferred", no_argument, NULL, 'p' },
		{ "endpoint", required_argument, NULL, 'e' },
		{ "poll", required_argument, NULL, 't' },
		{ "delay", required_argument, NULL, 'w' },
		{ "replicas", required_argument, NULL, 's' },
		{ "mig", no_argument, NULL, 'm' },
		{ "nonsense", no_argument, NULL, 'x' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'r':
			g->root = optarg;
			break;
		case 'd':
			g->dir = optarg;
			break;
		case 'n':
			g->resource = optarg;
			break;
		case 'e':
			g->endpoint = optarg;
			break;
		case 't':
			g->tick_ms = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			g->no_preferred = true;
			break;
		case 'w':
			g->delay_ms = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			g->parts = REPLICAS;
			g->replicas = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'm':
			g->parts = MIG;
			break;
		case 'x':
			g->nonsense = true;
			break;
		default:
			return -1;
		}
	}
	return optind == argc && g->dir && g->tick_ms && g->replicas ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct fakegpu g = { .root = "/",
			     .resource = "nvidia.com/gpu",
			     .endpoint = "fakegpu.sock",
			     .tick_ms = TICK_MS,
			     .replicas = 1 };
	struct err err = { 0 };
	int r;

	if (parse_options(argc, argv, &g) < 0) {
		fputs("usage: fakegpu --kubelet-dir DIR [--root DIR] [--resource NAME] [--endpoint FILE] [--poll MS] [--no-preferred | --nonsense] [--delay MS] [--mig | --replicas N]\n",
		      stderr);
		return 2;
	}
	g.arena = arena_new(4096);
	r = load(&g, &err);
	if (r == 0)
		r = serve(&g, &err);
	if (r < 0)
		fprintf(stderr, "fakegpu: %s\n", err.msg);
	topo_free(g.topo);
	hw_inventory_free(g.inv);
	arena_free(g.arena);
	return r < 0 ? 1 : 0;
}
