/* Randomness with a seed (splitmix64): the same seed gives the same day. */
#ifndef RAILMATE_SIM_RANDOM_H
#define RAILMATE_SIM_RANDOM_H

#include <stddef.h>
#include <stdint.h>

uint64_t sim_random_below(uint64_t *state, uint64_t n);
void sim_random_shuffle(uint64_t *state, void *items, size_t n, size_t size);

#endif
