#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct block {
	struct block *next;
	size_t size, used;
	_Alignas(max_align_t) unsigned char data[];
};

struct arena {
	struct block *head; /* the block being filled; older ones follow */
	size_t used;
};

static struct block *block_new(size_t size, struct block *next)
{
	struct block *b = xcalloc(1, sizeof(*b) + size);

	b->size = size;
	b->next = next;
	return b;
}

struct arena *arena_new(size_t first_block)
{
	struct arena *a = xcalloc(1, sizeof(*a));

	a->head = block_new(first_block ? first_block : 1024, NULL);
	return a;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	struct block *b = a->head;
	void *p;

	if (size > SIZE_MAX / 4)
		abort();
	size = (size + align - 1) / align * align;
	if (b->size - b->used < size) {
		size_t want = b->size * 2 > size ? b->size * 2 : size;

		b = a->head = block_new(want, b);
	}
	p = b->data + b->used;
	b->used += size;
	a->used += size;
	return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 4 / size)
		abort();
	return arena_alloc(a, n * size);
}

void *arena_copy(struct arena *a, const void *p, size_t size)
{
	void *out = arena_alloc(a, size);

	if (size)
		memcpy(out, p, size);
	return out;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return s ? arena_copy(a, s, strlen(s) + 1) : NULL;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	char text[256], *out;
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n < 0)
		abort();
	if ((size_t)n < sizeof(text)) {
		out = arena_copy(a, text, (size_t)n + 1);
	} else {
		out = arena_alloc(a, (size_t)n + 1);
		vsnprintf(out, (size_t)n + 1, fmt, again);
	}
	va_end(again);
	return out;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *out;

	va_start(ap, fmt);
	out = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return out;
}

size_t arena_used(const struct arena *a)
{
	return a->used;
}

void arena_free(struct arena *a)
{
	struct block *next;

	if (!a)
		return;
	for (struct block *b = a->head; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

void arena_freep(struct arena **a)
{
	arena_free(*a);
}
