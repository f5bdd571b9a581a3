#include "daemon/watchdog-internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "rpc/rpc.h"

#define TICK_MS	       5000 /* each is a wake-up of two threads */
#define TICKS_MAX      2    /* of silence */
#define STEPS_PER_TICK 5    /* while an answer is late */

struct watchdog {
	uv_timer_t timer;
	unsigned tick_ms;
	struct rpc *rpc;
	void (*hung)(void *ctx);
	void *ctx;
	unsigned wait_ms;		 /* until the next tick */
	unsigned silent_ms;		 /* the part of it that counts, since it was asked */
	bool asked;			 /* and not known to be answered */
	atomic_bool answered;		 /* set on the rpc thread */
	_Atomic int64_t main_ms, rpc_ms; /* when they were last heard of */
};

static void answer(void *arg)
{
	struct watchdog *w = arg;

	atomic_store(&w->rpc_ms, clock_mono_ms());
	atomic_store(&w->answered, true);
}

static void give_up(struct watchdog *w)
{
	w->silent_ms = 0;
	if (w->hung) {
		w->hung(w->ctx);
		return;
	}
	log_error(
		"daemon",
		"the rpc thread does not answer: aborting, so that the kubelet is served again seconds=%u",
		TICKS_MAX * w->tick_ms / 1000);
	abort();
}

static void on_tick(uv_timer_t *timer);

static void tick_after(struct watchdog *w, unsigned ms)
{
	w->wait_ms = ms;
	uv_timer_start(&w->timer, on_tick, ms, 0);
}

static void ask(struct watchdog *w)
{
	w->silent_ms = 0;
	atomic_store(&w->answered, false);
	w->asked = rpc_post(w->rpc, answer, w); /* false: it is stopping */
	tick_after(w, clock_coarse_ms((int64_t)uv_now(w->timer.loop), w->tick_ms));
}

/* No more counts than was to be waited: when the whole process was stopped, the rpc thread gets the
 * steps that are left. */
static void on_tick(uv_timer_t *timer)
{
	struct watchdog *w = timer->data;
	int64_t now = clock_mono_ms();
	int64_t since_ms = now - atomic_exchange(&w->main_ms, now);

	if (!w->asked || atomic_load(&w->answered)) {
		ask(w);
		return;
	}
	w->silent_ms += since_ms < w->wait_ms ? (unsigned)since_ms : w->wait_ms;
	tick_after(w, w->tick_ms / STEPS_PER_TICK);
	if (w->silent_ms >= TICKS_MAX * w->tick_ms)
		give_up(w);
}

struct watchdog *watchdog_start(struct uv_loop_s *loop, struct rpc *rpc, unsigned tick_ms,
				void (*hung)(void *ctx), void *ctx)
{
	struct watchdog *w = xcalloc(1, sizeof(*w));

	w->tick_ms = tick_ms ? tick_ms : TICK_MS;
	w->rpc = rpc;
	w->hung = hung;
	w->ctx = ctx;
	atomic_store(&w->main_ms, clock_mono_ms());
	atomic_store(&w->rpc_ms, clock_mono_ms());
	uv_timer_init(loop, &w->timer);
	w->timer.data = w;
	tick_after(w, clock_coarse_ms((int64_t)uv_now(loop), w->tick_ms));
	return w;
}

const char *watchdog_silent(const struct watchdog *w, unsigned ms)
{
	int64_t since = clock_mono_ms() - ms;

	if (atomic_load(&w->main_ms) < since)
		return "main";
	return atomic_load(&w->rpc_ms) < since ? "rpc" : NULL;
}

void watchdog_free(struct watchdog *w)
{
	free(w);
}
