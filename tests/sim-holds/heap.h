/*
 * The heap of what is under test: one region at a fixed place, so that a world can be copied away
 * with everything that it points to, and forgotten whole. Allocations between heap_on() and
 * heap_off() lie there. With sanitizers there is none: they watch the real heap.
 */
#ifndef SIM_HOLDS_HEAP_H
#define SIM_HOLDS_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_copy {
	size_t used;
	unsigned char *bytes;
};

bool heap_there(void);
void heap_on(void);
void heap_off(void);
void heap_reset(void);
uint64_t heap_hash(uint64_t h, uint64_t (*hash)(const void *p, size_t n, uint64_t h));
void heap_save(struct heap_copy *to); /* bytes: grown as needed, by the real heap */
void heap_restore(const struct heap_copy *from);
void heap_copy_done(struct heap_copy *c);

#endif
