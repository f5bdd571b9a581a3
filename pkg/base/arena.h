/*
 * Memory that is freed together: one arena per snapshot, one per RPC. Nothing inside is freed on
 * its own. Not thread-safe; an arena belongs to one owner at a time.
 */
#ifndef RAILMATE_BASE_ARENA_H
#define RAILMATE_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct arena *arena_new(size_t first_block);
void *arena_alloc(struct arena *a, size_t size);	       /* zeroed, aligned for any type */
void *arena_array(struct arena *a, size_t n, size_t size);     /* zeroed; aborts on overflow */
void *arena_copy(struct arena *a, const void *p, size_t size); /* arena_alloc + memcpy */
char *arena_strdup(struct arena *a, const char *s);	       /* NULL gives NULL */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
size_t arena_used(const struct arena *a); /* bytes handed out so far */
void arena_free(struct arena *a);	  /* NULL is fine */
void arena_freep(struct arena **a);
#define _cleanup_arena_ __attribute__((cleanup(arena_freep)))

#endif
