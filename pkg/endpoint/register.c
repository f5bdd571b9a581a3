/* Registration by calling the kubelet: carries out the steps of endpoint_registration_step(). */
#include "endpoint/endpoint-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubemsg/messages.h"
#include "status/stats.h"

/* Within Register the kubelet dials us with 10 s of patience; since 1.35 it stops when our own time
 * is up. */
#define REGISTER_TIMEOUT_MS 16000
#define REPLY_MAX	    (1u << 20)

struct attempt {
	struct endpoint *endpoint; /* NULL: given up */
	struct rpc_channel *channel;
};

static char *kubelet_path(const struct endpoint *e)
{
	return xasprintf("%s/kubelet.sock", e->env->plugin_dir);
}

static struct attempt *attempt_take(struct endpoint *e)
{
	struct attempt *attempt = STEAL(e->attempt);

	if (attempt)
		attempt->endpoint = NULL;
	return attempt;
}

/* The attempt ignores its answer and frees itself then. */
static void cancel_attempt(struct endpoint *e)
{
	struct attempt *attempt = attempt_take(e);

	endpoint_offered_await_nothing(e->offered);
	if (attempt)
		rpc_channel_close(attempt->channel);
}

static void register_answered(void *arg, enum rpc_status status, const char *message,
			      struct bytes body)
{
	struct attempt *attempt = arg;
	struct endpoint *e = attempt->endpoint;

	if (e) {
		attempt_take(e);
		rpc_channel_close(attempt->channel);
	}
	free(attempt);
	if (!e)
		return;
	if (status == RPC_OK) {
		e->stats.registrations++;
		endpoint_warn_reset(e, WARN_REGISTER);
		endpoint_register_event(e, REG_EV_OK);
		return;
	}
	e->stats.register_failures++;
	if (strstr(message, "already connected")) {
		endpoint_register_event(e, REG_EV_TAKEN);
		return;
	}
	endpoint_warn(e, WARN_REGISTER,
		      "the kubelet did not register the resource status=%d error=%s", (int)status,
		      message);
	endpoint_register_event(e, REG_EV_FAILED);
}

static void call_register(struct endpoint *e, const char *path)
{
	_cleanup_arena_ struct arena *a = arena_new(512);
	const struct register_request request = { "v1beta1", strrchr(e->path, '/') + 1,
						  e->plugin.resource, e->plugin.options };
	struct attempt *attempt = xcalloc(1, sizeof(*attempt));

	attempt->endpoint = e;
	attempt->channel = rpc_channel_open(e->env->rpc, path, REPLY_MAX);
	e->attempt = attempt;
	e->known = true;
	e->kubelet_is_new = false;
	rpc_call_unary(attempt->channel, PATH_REGISTER,
		       kubemsg_encode(&kubemsg_register, &request, a), REGISTER_TIMEOUT_MS,
		       register_answered, attempt);
}

/* A kubelet that starts wipes its directory before it accepts: from here on our socket stays. */
static void register_now(struct endpoint *e)
{
	_cleanup_free_ char *path = kubelet_path(e);
	struct err err = { 0 };

	endpoint_serve(e);
	if (!e->server)
		return;
	if (e->known && endpoint_move(e, &err) < 0) {
		endpoint_warn(e, WARN_SERVE, "the resource is not served error=%s", err.msg);
		endpoint_register_event(e, REG_EV_FAILED);
		return;
	}
	rpc_server_trust(e->server, &e->kubelet_peer);
	call_register(e, path);
}

/* Asynchronous whatever happens: the kubelet dials us before it answers. One that was there before
 * us may still be at the end of a former stream; one that came while we run has none. */
static void try_to_register(struct endpoint *e)
{
	_cleanup_free_ char *path = kubelet_path(e);
	struct socket_id now;

	e->try_began_ns = clock_mono_ns();
	if (!rpc_socket_id(path, &now)) {
		endpoint_warn(e, WARN_REGISTER,
			      "waiting for the kubelet: its socket is not there socket=%s", path);
		e->kubelet_is_new = true;
		endpoint_register_event(e, REG_EV_GONE);
		return;
	}
	if (!rpc_socket_same(&now, &e->kubelet)) {
		e->kubelet_is_new |= e->kubelet.ino != 0;
		e->plugin.kubelet_came(e->plugin.ctx);
	}
	e->kubelet = now;
	e->kubelet_peer = (struct rpc_peer) { .uid = (uid_t)-1 };
	if (!rpc_socket_accepts(path, &e->kubelet_peer))
		endpoint_register_event(e, REG_EV_REFUSED);
	else if (e->offered && !e->kubelet_is_new)
		endpoint_offered_await_end(e->offered, register_now);
	else
		register_now(e);
}

static void timer_rang(void *arg)
{
	struct endpoint *e = arg;

	e->reg_timer = NULL;
	endpoint_register_event(e, REG_EV_TIMER);
}

static void set_timer(struct endpoint *e, int ms)
{
	if (ms == REG_TIMER_KEEP)
		return;
	rpc_timer_cancel(STEAL(e->reg_timer));
	if (ms == REG_TIMER_OFF)
		return;
	if (e->reg.state == REG_WAITING)
		ms = (int)endpoint_jitter(e, (unsigned)ms);
	e->reg_timer = rpc_after(e->env->rpc, (unsigned)ms, timer_rang, e);
}

static void log_state(struct endpoint *e, enum reg_state before)
{
	if (e->reg.state == before)
		return;
	log_debug("kubelet", "the registration has another state resource=%s before=%s state=%s",
		  e->plugin.resource, endpoint_registration_state_name(before),
		  endpoint_registration_state_name(e->reg.state));
	if (e->reg.state == REG_REGISTERED) {
		/* Only here: the socket of a kubelet that starts may look like two, until its owner
		 * and mode are set. */
		if (e->registered_with.ino && !rpc_socket_same(&e->kubelet, &e->registered_with))
			stats_count_kubelet(e->plugin.counts);
		e->registered_with = e->kubelet;
		log_info("kubelet", "registered with the kubelet resource=%s devices=%zu ms=%.1f",
			 e->plugin.resource, e->n_listed,
			 (double)(clock_mono_ns() - e->try_began_ns) / 1e6);
		e->plugin.registered(e->plugin.ctx);
	} else if (before == REG_REGISTERED) {
		log_info("kubelet", "the kubelet's stream ended, registering again resource=%s",
			 e->plugin.resource);
	}
}

void endpoint_register_event(struct endpoint *e, enum reg_event event)
{
	enum reg_state before = e->reg.state;
	int timer_ms;
	unsigned actions = endpoint_registration_step(&e->reg, event, &timer_ms);

	log_state(e, before);
	set_timer(e, timer_ms);
	if (actions & REG_CANCEL)
		cancel_attempt(e);
	if (actions & REG_END)
		endpoint_end_streams(e);
	if (actions & REG_CALL)
		try_to_register(e);
}

void endpoint_register_anew(struct endpoint *e)
{
	if (e->watched)
		endpoint_end_streams(e);
	else
		endpoint_register_event(e, REG_EV_LOST);
}

void endpoint_check(struct endpoint *e)
{
	_cleanup_free_ char *path = kubelet_path(e);
	struct socket_id now;

	if (!e->server || e->watched)
		return;
	if (!rpc_socket_id(path, &now))
		endpoint_register_event(e, REG_EV_GONE);
	else if (!rpc_socket_same(&now, &e->kubelet))
		endpoint_register_event(e, REG_EV_NEW);
}

/* Is it the process that listens where we register? Where processes cannot be distinguished, every
 * peer counts that comes while we register or wait for the next try: because of another program we
 * may register once more than needed, and never once too few. */
bool endpoint_register_is_kubelet(const struct endpoint *e, const struct rpc_peer *peer)
{
	enum rpc_kin kin = RPC_PEER_UNKNOWN;

	if (e->kubelet_peer.uid != (uid_t)-1)
		kin = rpc_peer_compare(&e->kubelet_peer, peer);
	return kin == RPC_PEER_SAME ||
	       (kin == RPC_PEER_UNKNOWN && endpoint_registration_awaits_stream(&e->reg));
}

void endpoint_register_done(struct endpoint *e)
{
	rpc_timer_cancel(STEAL(e->reg_timer));
	cancel_attempt(e);
}
