/* Registration by calling the kubelet: carries out what plugin_registration_step() says. */
#include "plugin/plugin-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubemsg/messages.h"
#include "pool/node.h"
#include "stats/stats.h"

/* Within Register the kubelet dials us with 10 s of patience; since 1.35 it stops when our own time
 * is up. */
#define REGISTER_TIMEOUT_MS 16000
#define REPLY_MAX	    (1u << 20)

struct attempt {
	struct plugin *plugin; /* NULL: given up */
	struct rpc_channel *channel;
};

static char *kubelet_path(const struct plugin *p)
{
	return xasprintf("%s/kubelet.sock", p->env->plugin_dir);
}

static struct attempt *attempt_take(struct plugin *p)
{
	struct attempt *attempt = STEAL(p->attempt);

	if (attempt)
		attempt->plugin = NULL;
	return attempt;
}

/* The attempt ignores its answer and frees itself then. */
static void cancel_attempt(struct plugin *p)
{
	struct attempt *attempt = attempt_take(p);

	plugin_offered_await_nothing(p->offered);
	if (attempt)
		rpc_channel_close(attempt->channel);
}

static void register_answered(void *arg, enum rpc_status status, const char *message,
			      struct bytes body)
{
	struct attempt *attempt = arg;
	struct plugin *p = attempt->plugin;

	(void)body;
	if (p) {
		attempt_take(p);
		rpc_channel_close(attempt->channel);
	}
	free(attempt);
	if (!p)
		return;
	if (status == RPC_OK) {
		p->stats.registrations++;
		plugin_warn_reset(p, WARN_REGISTER);
		plugin_register_event(p, REG_EV_OK);
		return;
	}
	p->stats.register_failures++;
	if (strstr(message, "already connected")) {
		plugin_register_event(p, REG_EV_TAKEN);
		return;
	}
	plugin_warn(p, WARN_REGISTER,
		    "the kubelet did not register the resource status=%d error=%s", (int)status,
		    message);
	plugin_register_event(p, REG_EV_FAILED);
}

static void call_register(struct plugin *p, const char *path)
{
	_cleanup_arena_ struct arena *a = arena_new(512);
	const struct register_request request = { "v1beta1", strrchr(p->endpoint.path, '/') + 1,
						  p->resource, plugin_options(p) };
	struct attempt *attempt = xcalloc(1, sizeof(*attempt));

	attempt->plugin = p;
	attempt->channel = rpc_channel_open(p->env->rpc, path, REPLY_MAX);
	p->attempt = attempt;
	p->endpoint.known = true;
	p->kubelet_is_new = false;
	rpc_call_unary(attempt->channel, PATH_REGISTER,
		       kubemsg_encode(&kubemsg_register, &request, a), REGISTER_TIMEOUT_MS,
		       register_answered, attempt);
}

/* A kubelet that starts wipes its directory before it accepts: from here on our socket stays. */
static void register_now(struct plugin *p)
{
	_cleanup_free_ char *path = kubelet_path(p);
	struct err err = { 0 };

	plugin_serve(p);
	if (!p->server)
		return;
	if (p->endpoint.known && plugin_move(p, &err) < 0) {
		plugin_warn(p, WARN_SERVE, "the resource is not served error=%s", err.msg);
		plugin_register_event(p, REG_EV_FAILED);
		return;
	}
	rpc_server_trust(p->server, &p->kubelet_peer);
	call_register(p, path);
}

/* Asynchronous whatever happens: the kubelet dials us before it answers. One that was there before
 * us may still be at the end of a former stream; one that came while we run has none. */
static void try_to_register(struct plugin *p)
{
	_cleanup_free_ char *path = kubelet_path(p);
	struct socket_id now;

	p->try_began_ns = clock_mono_ns();
	if (!rpc_socket_id(path, &now)) {
		plugin_warn(p, WARN_REGISTER,
			    "waiting for the kubelet: its socket is not there socket=%s", path);
		p->kubelet_is_new = true;
		plugin_register_event(p, REG_EV_GONE);
		return;
	}
	if (!rpc_socket_same(&now, &p->kubelet)) {
		p->kubelet_is_new |= p->kubelet.ino != 0;
		plugin_pods_reset(p);
	}
	p->kubelet = now;
	p->kubelet_peer = (struct rpc_peer) { .uid = (uid_t)-1 };
	if (!rpc_socket_accepts(path, &p->kubelet_peer))
		plugin_register_event(p, REG_EV_REFUSED);
	else if (p->offered && !p->kubelet_is_new)
		plugin_offered_await_end(p->offered, register_now);
	else
		register_now(p);
}

static void timer_rang(void *arg)
{
	struct plugin *p = arg;

	p->reg_timer = NULL;
	plugin_register_event(p, REG_EV_TIMER);
}

static void set_timer(struct plugin *p, int ms)
{
	if (ms == REG_TIMER_KEEP)
		return;
	rpc_timer_cancel(STEAL(p->reg_timer));
	if (ms == REG_TIMER_OFF)
		return;
	if (p->reg.state == REG_WAITING)
		ms = (int)plugin_jitter(p, (unsigned)ms);
	p->reg_timer = rpc_after(p->env->rpc, (unsigned)ms, timer_rang, p);
}

static void log_state(struct plugin *p, enum reg_state before)
{
	const struct pool *pool = plugin_pool(p);

	if (p->reg.state == before)
		return;
	log_debug("kubelet", "the registration has another state resource=%s before=%s state=%s",
		  p->resource, plugin_registration_state_name(before),
		  plugin_registration_state_name(p->reg.state));
	if (p->reg.state == REG_REGISTERED) {
		/* Only here: the socket of a kubelet that starts may look like two, until its owner
		 * and mode are set. */
		if (p->registered_with.ino && !rpc_socket_same(&p->kubelet, &p->registered_with))
			stats_count_kubelet(p->counts);
		p->registered_with = p->kubelet;
		log_info("kubelet", "registered with the kubelet resource=%s devices=%zu ms=%.1f",
			 p->resource, pool ? pool->n_devs : 0,
			 (double)(clock_mono_ns() - p->try_began_ns) / 1e6);
		if (!p->shared)
			plugin_pods_prime(p);
	} else if (before == REG_REGISTERED) {
		log_info("kubelet", "the kubelet's stream ended, registering again resource=%s",
			 p->resource);
	}
}

void plugin_register_event(struct plugin *p, enum reg_event event)
{
	enum reg_state before = p->reg.state;
	int timer_ms;
	unsigned actions = plugin_registration_step(&p->reg, event, &timer_ms);

	log_state(p, before);
	set_timer(p, timer_ms);
	if (actions & REG_CANCEL)
		cancel_attempt(p);
	if (actions & REG_END)
		plugin_end_streams(p);
	if (actions & REG_CALL)
		try_to_register(p);
}

void plugin_register_anew(struct plugin *p)
{
	if (p->watched)
		plugin_end_streams(p);
	else
		plugin_register_event(p, REG_EV_LOST);
}

void plugin_register_check(struct plugin *p)
{
	_cleanup_free_ char *path = kubelet_path(p);
	struct socket_id now;

	if (!rpc_socket_id(path, &now))
		plugin_register_event(p, REG_EV_GONE);
	else if (!rpc_socket_same(&now, &p->kubelet))
		plugin_register_event(p, REG_EV_NEW);
}

/* Is it the process that listens where we register? Where processes cannot be distinguished, every
 * peer counts that comes while we register or wait for the next try: because of another program we
 * may register once more than needed, and never once too few. */
bool plugin_register_is_kubelet(const struct plugin *p, const struct rpc_peer *peer)
{
	enum rpc_kin kin = RPC_PEER_UNKNOWN;

	if (p->kubelet_peer.uid != (uid_t)-1)
		kin = rpc_peer_compare(&p->kubelet_peer, peer);
	return kin == RPC_PEER_SAME ||
	       (kin == RPC_PEER_UNKNOWN && plugin_registration_awaits_stream(&p->reg));
}

void plugin_register_done(struct plugin *p)
{
	rpc_timer_cancel(STEAL(p->reg_timer));
	cancel_attempt(p);
}
