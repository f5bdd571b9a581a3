/*
 * Linked with --wrap for malloc and its like (CMakeLists.txt). Sizes are rounded up to 32 bytes,
 * those above 16 KiB to powers of two; a free list for each.
 */
#include "heap.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SIM_HEAP

enum { REGION = 16 << 20, STEP = 32, SMALL = 512, LARGE = 12 };

struct piece {
	size_t size;
	struct piece *next; /* when free; else the first of the user's bytes */
};
struct region {
	size_t used;
	struct piece *free[SMALL + LARGE];
	_Alignas(16) unsigned char bytes[REGION];
};
static struct region region;
static bool on;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

static bool is_ours(const void *p)
{
	return (uintptr_t)p >= (uintptr_t)region.bytes &&
	       (uintptr_t)p < (uintptr_t)region.bytes + REGION;
}

/* Where free ones of this size are; the size is rounded up. */
static struct piece **list_of(size_t *size)
{
	size_t steps = (*size + STEP - 1) / STEP, class = SMALL;

	if (steps < SMALL) {
		*size = steps * STEP;
		return &region.free[steps];
	}
	for (*size = STEP * SMALL; *size < steps * STEP; *size *= 2)
		class ++;
	return &region.free[class];
}

/* 16 bytes before what is given out: its size. */
static void *take(size_t n)
{
	size_t size = n + 16;
	struct piece **free = list_of(&size), *p = *free;

	if (p) {
		*free = p->next;
	} else {
		if (size > REGION - region.used) {
			fputs("sim-holds: the region is full\n", stderr);
			abort();
		}
		p = (struct piece *)(void *)(region.bytes + region.used);
		region.used += size;
		p->size = size;
	}
	return (unsigned char *)p + 16;
}

void *__wrap_malloc(size_t n)
{
	return on ? take(n) : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return on ? memset(take(n * size), 0, n * size) : __real_calloc(n, size);
}

void __wrap_free(void *p)
{
	struct piece *piece = (struct piece *)(void *)((unsigned char *)p - 16), **list;
	size_t size;

	if (!is_ours(p)) {
		__real_free(p);
		return;
	}
	size = piece->size;
	list = list_of(&size);
	piece->next = *list;
	*list = piece;
}

void *__wrap_realloc(void *p, size_t n)
{
	size_t room;
	void *now;

	if (p && !is_ours(p))
		return __real_realloc(p, n);
	if (!p)
		return __wrap_malloc(n);
	room = ((struct piece *)(void *)((unsigned char *)p - 16))->size - 16;
	if (n <= room)
		return p;
	now = memcpy(take(n), p, room);
	__wrap_free(p);
	return now;
}

char *__wrap_strdup(const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(__wrap_malloc(n), s, n);
}

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	char small[1024];
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	*ret = __wrap_malloc((size_t)n + 1);
	vsnprintf(*ret, (size_t)n + 1, fmt, again);
	va_end(again);
	return n;
}

bool heap_there(void)
{
	return true;
}

void heap_on(void)
{
	on = true;
}

void heap_off(void)
{
	on = false;
}

void heap_reset(void)
{
	region.used = 0;
	memset(region.free, 0, sizeof(region.free));
}

uint64_t heap_hash(uint64_t h, uint64_t (*hash)(const void *p, size_t n, uint64_t h))
{
	return hash(&region, offsetof(struct region, bytes) + region.used, h);
}

void heap_save(struct heap_copy *to)
{
	size_t size = offsetof(struct region, bytes) + region.used;

	if (size > to->used)
		to->bytes = __real_realloc(to->bytes, size);
	to->used = size;
	memcpy(to->bytes, &region, size);
}

void heap_restore(const struct heap_copy *from)
{
	memcpy(&region, from->bytes, from->used);
}

void heap_copy_done(struct heap_copy *c)
{
	__real_free(c->bytes);
	*c = (struct heap_copy) { 0, NULL };
}

#else

bool heap_there(void)
{
	return false;
}

void heap_on(void)
{
}

void heap_off(void)
{
}

void heap_reset(void)
{
}

uint64_t heap_hash(uint64_t h, uint64_t (*hash)(const void *p, size_t n, uint64_t h))
{
	(void)hash;
	return h;
}

void heap_save(struct heap_copy *to)
{
	(void)to;
}

void heap_restore(const struct heap_copy *from)
{
	(void)from;
}

void heap_copy_done(struct heap_copy *c)
{
	(void)c;
}

#endif
