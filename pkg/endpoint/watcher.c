/*
 * Registration by the kubelet's plugin watcher: it finds our socket in its registry, asks GetInfo
 * and dials. A kubelet that restarts comes back by itself; one whose stream ended does nothing
 * until the socket file is created anew.
 */
#include "endpoint/endpoint-internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubeclient/registry.h"
#include "kubemsg/messages.h"
#include "status/stats.h"

#define FALLBACK_MS    10000
#define SETTLE_MS      5000
#define BACKOFF_MAX_MS 5000
#define ASKED_MS       15000

static void give_up(void *arg)
{
	struct endpoint *e = arg;

	e->fallback_timer = NULL;
	if (e->asked)
		return;
	log_info(
		"kubelet",
		"the kubelet has not looked at the registry: registering with kubelet.sock instead resource=%s path=%s socket=%s/kubelet.sock",
		e->plugin.resource, e->env->registry_dir, e->env->plugin_dir);
	e->fell_back = true;
	endpoint_watch_done(e);
	endpoint_stop(e);
	endpoint_serve(e);
}

void endpoint_watch_started(struct endpoint *e)
{
	unsigned ms = e->env->registry_patience_ms ? e->env->registry_patience_ms : FALLBACK_MS;
	struct rpc_peer kubelet;

	if (kubeclient_registry_find(e->env->plugin_dir, &kubelet))
		rpc_server_trust(e->server, &kubelet);

	if (e->env->registration == REGISTER_AUTO)
		e->fallback_timer = rpc_after(e->env->rpc, ms, give_up, e);
}

static void create_again_later(struct endpoint *e);

static void create_now(struct endpoint *e)
{
	struct err err = { 0 };

	if (endpoint_has_stream(e) || !e->server || endpoint_move(e, &err) == 0)
		return;
	endpoint_warn(e, WARN_SERVE, "the resource is not served error=%s", err.msg);
	create_again_later(e);
}

static void create_again(void *arg)
{
	struct endpoint *e = arg;

	e->watch_timer = NULL;
	if (e->offered)
		endpoint_offered_await_end(e->offered, create_now);
	else
		create_now(e);
}

static void create_again_later(struct endpoint *e)
{
	unsigned shift = e->watch_failures < 9 ? e->watch_failures : 9, ms = 10u << shift;

	e->watch_failures++;
	rpc_timer_cancel(STEAL(e->watch_timer));
	e->watch_timer = rpc_after(e->env->rpc,
				   endpoint_jitter(e, ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS),
				   create_again, e);
}

void endpoint_watch_opened(struct endpoint *e)
{
	if (e->watch_opened_ms) /* the stream of one kubelet stays open */
		stats_count_kubelet(e->plugin.counts);
	e->watch_opened_ms = clock_mono_ms();
	log_info("kubelet", "registered by the kubelet's plugin watcher resource=%s devices=%zu",
		 e->plugin.resource, e->n_listed);
	e->plugin.kubelet_came(e->plugin.ctx);
	e->plugin.registered(e->plugin.ctx);
}

void endpoint_watch_closed(struct endpoint *e)
{
	if (clock_mono_ms() - e->watch_opened_ms > SETTLE_MS)
		e->watch_failures = 0;
	log_info("kubelet", "the kubelet's stream ended, creating the socket again resource=%s",
		 e->plugin.resource);
	create_again_later(e);
}

/* Where processes cannot be distinguished: a peer that has just asked GetInfo. */
bool endpoint_watch_is_kubelet(const struct endpoint *e, const struct rpc_peer *peer)
{
	enum rpc_kin kin = kubeclient_registry_kin(e->env->plugin_dir, peer);

	return kin == RPC_PEER_SAME ||
	       (kin == RPC_PEER_UNKNOWN && clock_mono_ms() - e->asked_ms < ASKED_MS);
}

void endpoint_watch_done(struct endpoint *e)
{
	rpc_timer_cancel(STEAL(e->watch_timer));
	rpc_timer_cancel(STEAL(e->fallback_timer));
	endpoint_offered_await_nothing(e->offered);
}

/* Endpoint "" is the socket that was asked. */
void endpoint_get_info(void *ctx, struct rpc_call *call, struct bytes request)
{
	static const char *versions[] = { "v1beta1" };
	struct endpoint *e = ctx;
	const struct plugin_info info = {
		"DevicePlugin", e->plugin.resource, "", { versions, ARRAY_LEN(versions) }
	};

	if (!kubeclient_registry_tell(call, e->env->plugin_dir, &info))
		return;
	e->asked = true;
	e->asked_ms = clock_mono_ms();
}

static void heard(void *ctx, const struct registration_status *status)
{
	struct endpoint *e = ctx;

	if (status->registered) {
		e->stats.registrations++;
		endpoint_warn_reset(e, WARN_REGISTER);
		return;
	}
	e->stats.register_failures++;
	endpoint_warn(e, WARN_REGISTER, "the kubelet did not register the resource error=%s",
		      status->error);
	if (!e->dying)
		create_again_later(e);
}

void endpoint_notify_status(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct endpoint *e = ctx;

	kubeclient_registry_hear(call, e->env->plugin_dir, request, heard, e);
}
