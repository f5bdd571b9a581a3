/* The host's memory of a transfer, and the pattern that every memory is filled with. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/mem.h"
#include "wire-internal.h"

void wire_pattern(void *bytes, size_t size, uint64_t seed)
{
	unsigned char *to = bytes;

	for (size_t i = 0; i < size; i += 8) {
		uint64_t z = (seed + i / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z ^= z >> 27;
		memcpy(to + i, &z, size - i < 8 ? size - i : 8);
	}
}

static int host_fill(struct wire_memory *m, uint64_t seed)
{
	wire_pattern(m->address, m->size, seed);
	return 0;
}

static int host_verify(struct wire_memory *m, uint64_t seed)
{
	_cleanup_free_ char *expected = xcalloc(1, m->size);

	wire_pattern(expected, m->size, seed);
	return memcmp(expected, m->address, m->size) == 0 ? 0 : -EILSEQ;
}

int wire_memory_host(size_t size, struct wire_memory *ret)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	memset(p, 0, size); /* on the node where this thread runs */
	*ret = (struct wire_memory) {
		.address = p,
		.size = size,
		.dmabuf_fd = -1,
		.name = "host",
		.fill = host_fill,
		.verify = host_verify,
	};
	return 0;
}

void wire_memory_free(struct wire_memory *m)
{
	if (m->address)
		munmap(m->address, m->size);
	m->address = NULL;
}

const char *wire_memory_difference(const struct wire_memory *m, uint64_t seed, struct arena *a)
{
	_cleanup_free_ unsigned char *expected = NULL;
	const unsigned char *came = m->address;
	size_t first = m->size, n = 0;

	if (m->fill != host_fill)
		return "";
	expected = xcalloc(1, m->size);
	wire_pattern(expected, m->size, seed);
	for (size_t i = m->size; i-- > 0;) {
		if (came[i] == expected[i])
			continue;
		first = i;
		n++;
	}
	return arena_printf(a, ": %zu of %zu, the first at offset %zu", n, m->size, first);
}
