/* Randomness and sets of the device manager, for the simulator and the fakes of the tests. */
#ifndef RAILMATE_SIM_DEVMAN_INTERNAL_H
#define RAILMATE_SIM_DEVMAN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* splitmix64: the same seed gives the same day. */
uint64_t sim_random_below(uint64_t *state, uint64_t n);
void sim_random_shuffle(uint64_t *state, void *items, size_t n, size_t size);

/* A small set of strings, in the order they came. */
struct idset {
	char **v;
	size_t n, cap;
};

bool sim_idset_has(const struct idset *s, const char *id);
void sim_idset_add(struct idset *s, const char *id);
void sim_idset_remove(struct idset *s, const char *id);
void sim_idset_done(struct idset *s);

#endif
