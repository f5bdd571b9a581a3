#include "sim/gomap-internal.h"

#include <assert.h>
#include <string.h>

#include "sim/random.h"

void sim_gomap_walk(uint64_t *random, int *items, size_t n, unsigned copies)
{
	int walked[GOMAP_CELLS];

	assert(n <= GOMAP_CELLS);
	for (unsigned copy = 0; copy <= copies; copy++) {
		size_t start = sim_random_below(random, GOMAP_CELLS), done = 0;

		for (size_t i = 0; i < GOMAP_CELLS; i++) {
			size_t cell = (start + i) % GOMAP_CELLS;

			if (cell < n)
				walked[done++] = items[cell];
		}
		memcpy(items, walked, n * sizeof(*items));
	}
}
