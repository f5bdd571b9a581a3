#include "base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
	return clock_mono_ns() / 1000000;
}

int64_t clock_wall_ms(void)
{
	return read_ns(CLOCK_REALTIME) / 1000000;
}

unsigned clock_coarse_ms(int64_t now_ms, unsigned every_ms)
{
	unsigned left = every_ms - (unsigned)(now_ms % every_ms);

	return 2 * left < every_ms ? left + every_ms : left;
}
