/* Schedules: running, writing, reading, shrinking them; many by chance, all of a small world. */
#ifndef SIM_HOLDS_RUN_H
#define SIM_HOLDS_RUN_H

#include "sim.h"

enum { STEPS_MAX = 400 };
struct schedule {
	struct config cfg;
	struct step steps[STEPS_MAX];
	unsigned n;
};

/* False: an invariant did not hold, and broken says which. trace: every step and sentence goes to
 * stdout. */
bool schedule_run(const struct schedule *s, bool trace, char *broken, size_t size);
void schedule_random(struct schedule *ret, uint64_t seed, unsigned n, char *broken, size_t size);
void schedule_shrink(struct schedule *s); /* while it still fails */
int schedule_write(const struct schedule *s, const char *path, const char *broken);
int schedule_read(struct schedule *ret, const char *path);
/*
 * Every interleaving of the small world with up to that many faults (explore.c). fine: also
 * railmated's death at each single action, as the one fault. False: ret_failed does not hold.
 */
struct explored {
	unsigned long long runs, states;
};
enum binding { BINDING_EARLY, BINDING_LATE, BINDING_CLAIMS, BINDINGS };
bool explore(enum binding binding, unsigned faults, bool fine, struct explored *ret,
	     struct schedule *ret_failed);

#endif
