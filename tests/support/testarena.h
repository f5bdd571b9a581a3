/* An arena that lives as long as a test, or as a group of tests: its set-up and tear-down. */
#ifndef RAILMATE_TESTS_SUPPORT_TESTARENA_H
#define RAILMATE_TESTS_SUPPORT_TESTARENA_H

#include "base/arena.h"

extern struct arena *arena;

int arena_set_up(void **state);
int arena_tear_down(void **state);

#endif
