/* Two clocks. mono: never set back, for deadlines; wall: Unix time, for people and files. Any
 * thread. */
#ifndef RAILMATE_BASE_CLOCK_H
#define RAILMATE_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_mono_ns(void);
int64_t clock_mono_ms(void);
int64_t clock_wall_ms(void);
/* From now to the next multiple of every_ms that is half of it away at least: timers that wait for
 * the same multiples wake the process up once. */
unsigned clock_coarse_ms(int64_t now_ms, unsigned every_ms);

#endif
