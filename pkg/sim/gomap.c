#include "sim/gomap.h"

#include <assert.h>
#include <string.h>

#include "sim/random.h"

static void walk_once(uint64_t *random, int *items, size_t n)
{
	size_t start = random_below(random, GOMAP_CELLS), done = 0;
	int walked[GOMAP_CELLS];

	for (size_t i = 0; i < GOMAP_CELLS; i++) {
		size_t cell = (start + i) % GOMAP_CELLS;

		if (cell < n)
			walked[done++] = items[cell];
	}
	memcpy(items, walked, n * sizeof(*items));
}

void gomap_walk(uint64_t *random, int *items, size_t n, unsigned copies)
{
	assert(n <= GOMAP_CELLS);
	for (unsigned i = 0; i <= copies; i++)
		walk_once(random, items, n);
}
