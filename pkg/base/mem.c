/*
 * Memory: what cannot fail, arenas, and lists that grow.
 */
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"

static void *check(void *p)
{
	if (!p) {
		static const char text[] = "railmate: out of memory\n";

		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			abort();
		abort();
	}
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	return check(calloc(n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return check(strdup(s));
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *out;

	if (vasprintf(&out, fmt, ap) < 0)
		out = NULL;
	return check(out);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *out;

	va_start(ap, fmt);
	out = xvasprintf(fmt, ap);
	va_end(ap);
	return out;
}

void *xgrow(void *p, size_t *cap, size_t need, size_t size)
{
	if (need <= *cap)
		return p;
	*cap = *cap * 2 > need ? *cap * 2 : need + 8;
	if (size && *cap > SIZE_MAX / size)
		return check(NULL);
	return check(realloc(p, size ? *cap * size : 1));
}

void freep(void *p)
{
	free(*(void **)p);
}

void closep(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

/* --- arenas --- */

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

/* --- lists --- */

bool list_has(const char *const *list, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(list[i], s))
			return true;
	}
	return false;
}

bool list_has_int(const int *list, size_t n, int value)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i] == value)
			return true;
	}
	return false;
}

bool list_has_sorted(const char *const *list, size_t n, const char *s)
{
	return n && bsearch(&s, list, n, sizeof(*list), list_by_string);
}

size_t list_place(const void *key, const void *list, size_t n, size_t size,
		  int (*compare)(const void *key, const void *element))
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare(key, (const char *)list + mid * size) > 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int list_by_string(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int list_by_int(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

size_t list_unique_int(int *v, size_t n)
{
	size_t out = 0;

	if (n)
		qsort(v, n, sizeof(*v), list_by_int);
	for (size_t i = 0; i < n; i++) {
		if (!out || v[out - 1] != v[i])
			v[out++] = v[i];
	}
	return out;
}
