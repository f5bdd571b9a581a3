#include "daemon/watchdog.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "rpc/rpc.h"

/* Each is a wake-up of two threads. */
#define TICK_MS	  5000
#define TICKS_MAX 2

struct watchdog {
	uv_timer_t timer;
	unsigned tick_ms;
	struct rpc *rpc;
	void (*hung)(void *ctx);
	void *ctx;
	unsigned missed;		 /* ticks since the last answer */
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
	w->missed = 0;
	if (w->hung) {
		w->hung(w->ctx);
		return;
	}
	log_error(
		"daemon",
		"the rpc thread does not answer: aborting, so that the kubelet is served again seconds=%u",
		TICKS_MAX * TICK_MS / 1000);
	abort();
}

static void on_tick(uv_timer_t *timer);

/* Not sooner than half a tick: when the whole process was stopped, the rpc thread gets that long.
 */
static void tick_later(struct watchdog *w)
{
	int64_t now = (int64_t)uv_now(w->timer.loop);

	uv_timer_start(&w->timer, on_tick, clock_coarse_ms(now, w->tick_ms), 0);
}

static void on_tick(uv_timer_t *timer)
{
	struct watchdog *w = timer->data;

	tick_later(w);
	atomic_store(&w->main_ms, clock_mono_ms());
	if (w->asked && !atomic_load(&w->answered)) {
		if (++w->missed >= TICKS_MAX)
			give_up(w);
		return;
	}
	w->missed = 0;
	atomic_store(&w->answered, false);
	w->asked = rpc_post(w->rpc, answer, w); /* false: it is stopping */
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
	tick_later(w);
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
