/*
 * Registration by the kubelet's plugin watcher: it finds our socket in its registry, asks GetInfo
 * and dials. A kubelet that restarts comes back by itself; one whose stream ended does nothing
 * until the socket file is created anew.
 */
#include "plugin/plugin-internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubemsg/messages.h"
#include "pool/node.h"
#include "stats/stats.h"

#define FALLBACK_MS    10000
#define SETTLE_MS      5000
#define BACKOFF_MAX_MS 5000
#define ASKED_MS       15000

static void give_up(void *arg)
{
	struct plugin *p = arg;

	p->fallback_timer = NULL;
	if (p->asked)
		return;
	log_info(
		"kubelet",
		"the kubelet has not looked at the registry: registering with kubelet.sock instead resource=%s path=%s socket=%s/kubelet.sock",
		p->resource, p->env->registry_dir, p->env->plugin_dir);
	p->fell_back = true;
	plugin_watch_done(p);
	plugin_stop_serving(p);
	plugin_serve(p);
}

/* The kubelet that finds our socket has one of its own, for registration. */
static bool find_kubelet(const struct plugin *p, struct rpc_peer *ret)
{
	_cleanup_free_ char *path = xasprintf("%s/kubelet.sock", p->env->plugin_dir);

	ret->uid = (uid_t)-1;
	return rpc_socket_accepts(path, ret) && ret->uid != (uid_t)-1;
}

void plugin_watch_started(struct plugin *p)
{
	unsigned ms = p->env->registry_patience_ms ? p->env->registry_patience_ms : FALLBACK_MS;
	struct rpc_peer kubelet;

	if (find_kubelet(p, &kubelet))
		rpc_server_trust(p->server, &kubelet);

	if (p->env->registration == REGISTER_AUTO)
		p->fallback_timer = rpc_after(p->env->rpc, ms, give_up, p);
}

static void create_again_later(struct plugin *p);

static void create_now(struct plugin *p)
{
	struct err err = { 0 };

	if (plugin_has_stream(p) || !p->server || plugin_move(p, &err) == 0)
		return;
	plugin_warn(p, WARN_SERVE, "the resource is not served error=%s", err.msg);
	create_again_later(p);
}

static void create_again(void *arg)
{
	struct plugin *p = arg;

	p->watch_timer = NULL;
	if (p->offered)
		plugin_offered_await_end(p->offered, create_now);
	else
		create_now(p);
}

static void create_again_later(struct plugin *p)
{
	unsigned shift = p->watch_failures < 9 ? p->watch_failures : 9, ms = 10u << shift;

	p->watch_failures++;
	rpc_timer_cancel(STEAL(p->watch_timer));
	p->watch_timer =
		rpc_after(p->env->rpc, plugin_jitter(p, ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS),
			  create_again, p);
}

void plugin_watch_opened(struct plugin *p)
{
	const struct pool *pool = plugin_pool(p);

	if (p->watch_opened_ms) /* the stream of one kubelet stays open */
		stats_count_kubelet(p->counts);
	p->watch_opened_ms = clock_mono_ms();
	log_info("kubelet", "registered by the kubelet's plugin watcher resource=%s devices=%zu",
		 p->resource, pool ? pool->n_devs : 0);
	plugin_pods_reset(p);
	plugin_pods_prime(p);
}

void plugin_watch_closed(struct plugin *p)
{
	if (clock_mono_ms() - p->watch_opened_ms > SETTLE_MS)
		p->watch_failures = 0;
	log_info("kubelet", "the kubelet's stream ended, creating the socket again resource=%s",
		 p->resource);
	create_again_later(p);
}

/* Is it the kubelet? */
static enum rpc_kin kin_of(const struct plugin *p, const struct rpc_peer *peer)
{
	struct rpc_peer kubelet;

	return find_kubelet(p, &kubelet) ? rpc_peer_compare(&kubelet, peer) : RPC_PEER_UNKNOWN;
}

/* Where processes cannot be distinguished: a peer that has just asked GetInfo. */
bool plugin_watch_is_kubelet(const struct plugin *p, const struct rpc_peer *peer)
{
	enum rpc_kin kin = kin_of(p, peer);

	return kin == RPC_PEER_SAME ||
	       (kin == RPC_PEER_UNKNOWN && clock_mono_ms() - p->asked_ms < ASKED_MS);
}

void plugin_watch_done(struct plugin *p)
{
	rpc_timer_cancel(STEAL(p->watch_timer));
	rpc_timer_cancel(STEAL(p->fallback_timer));
	plugin_offered_await_nothing(p->offered);
}

/* Endpoint "" is the socket that was asked. Each client is answered; what another one than the
 * kubelet asks, or reports to the next call, counts for nothing. */
void plugin_get_info(void *ctx, struct rpc_call *call, struct bytes request)
{
	static const char *versions[] = { "v1beta1" };
	struct plugin *p = ctx;
	const struct plugin_info info = {
		"DevicePlugin", p->resource, "", { versions, ARRAY_LEN(versions) }
	};

	(void)request;
	if (kin_of(p, rpc_call_peer(call)) != RPC_PEER_OTHER) {
		p->asked = true;
		p->asked_ms = clock_mono_ms();
	}
	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_plugin_info, &info, rpc_call_arena(call)));
}

void plugin_notify_status(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct plugin *p = ctx;
	struct registration_status status;
	struct err err = { 0 };

	if (kubemsg_decode(&kubemsg_registration_status, request, rpc_call_arena(call), &status,
			   &err) < 0) {
		rpc_reply(call, rpc_status_of(err.code), err.msg, (struct bytes) { NULL, 0 });
		return;
	}
	if (kin_of(p, rpc_call_peer(call)) == RPC_PEER_OTHER) {
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { NULL, 0 });
		return;
	}
	if (status.registered) {
		p->stats.registrations++;
		plugin_warn_reset(p, WARN_REGISTER);
	} else {
		p->stats.register_failures++;
		plugin_warn(p, WARN_REGISTER, "the kubelet did not register the resource error=%s",
			    status.error);
		if (!p->dying)
			create_again_later(p);
	}
	rpc_reply(call, RPC_OK, NULL, (struct bytes) { NULL, 0 });
}
