/*
 * gRPC's timers without its threads. Two of them wake up once a second at least, whether there is a
 * timer or not, and no setting stops them (docs/design/grpc.md §2). gRPC stops them itself before
 * it forks, by a function that its libraries export and its headers do not declare; while they are
 * stopped, the timers are looked at when another says so. That is this thread: once a second at
 * most when it is awake anyway, and that often while a call of ours is under way or a channel
 * connects, for gRPC gives up a peer that is silent by a timer. Where a gRPC has no such functions
 * its threads stay.
 */
#include "rpc/rpc-internal.h"

#include "base/clock.h"

#define TICK_MS 1000

__attribute__((weak)) void
grpc_threads(bool enabled) __asm__("_Z32grpc_timer_manager_set_threadingb");
__attribute__((weak)) void grpc_tick(void) __asm__("_Z23grpc_timer_manager_tickv");

void ticks_take_over(void)
{
	if (grpc_threads && grpc_tick)
		grpc_threads(false);
}

void ticks_run(struct rpc *rpc)
{
	int64_t now = grpc_threads && grpc_tick ? clock_mono_ms() : 0;

	if (now - rpc->ticked_ms < TICK_MS)
		return;
	rpc->ticked_ms = now;
	grpc_tick();
}

static bool is_needed(const struct rpc *rpc)
{
	struct rpc_channel *ch = LIST_FIRST(&rpc->channels);

	while (ch && !channel_busy(ch))
		ch = channel_next(ch);
	return ch;
}

/* ticks_run() comes after every timer. */
static void tick(void *arg)
{
	struct rpc *rpc = arg;

	rpc->tick = NULL;
	ticks_expect(rpc);
}

void ticks_expect(struct rpc *rpc)
{
	bool needed = grpc_threads && grpc_tick && is_needed(rpc);

	if (needed && !rpc->tick) {
		rpc->tick = rpc_after(rpc, TICK_MS, tick, rpc);
	} else if (!needed && rpc->tick) {
		rpc_timer_cancel(rpc->tick);
		rpc->tick = NULL;
	}
}
