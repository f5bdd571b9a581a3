#include "support/testarena.h"

#include "base/mem.h"

struct arena *arena;

int arena_set_up(void **state)
{
	(void)state;
	arena = arena_new(0);
	return 0;
}

int arena_tear_down(void **state)
{
	(void)state;
	arena_free(STEAL(arena));
	return 0;
}
