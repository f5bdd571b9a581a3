#include "sim/random.h"

#include <string.h>

#include "base/mem.h"

uint64_t sim_random_below(uint64_t *state, uint64_t n)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}

void sim_random_shuffle(uint64_t *state, void *items, size_t n, size_t size)
{
	_cleanup_free_ void *spare = xcalloc(1, size);
	char *at = items;

	for (size_t i = n; i > 1; i--) {
		size_t j = sim_random_below(state, i);

		memcpy(spare, at + j * size, size);
		memmove(at + j * size, at + (i - 1) * size, size);
		memcpy(at + (i - 1) * size, spare, size);
	}
}
