/*
 * Heap helpers. Out of memory aborts (HACKING.md, Conventions): gRPC core does the same, a
 * DaemonSet restarts, and no error path needs to be written that no test can reach. Sizes that come
 * from the wire or a file are bounded before they get here.
 */
#ifndef RAILMATE_BASE_MEM_H
#define RAILMATE_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

void *xcalloc(size_t n, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* Grow a heap array so that at least `need` elements fit; doubles, updates *cap. */
void *xgrow(void *p, size_t *cap, size_t need, size_t size);

/* Targets of the cleanup attribute. */
void freep(void *p);	    /* free(*(void **)p) */
void closep(const int *fd); /* close when >= 0; errno is kept */
#define _cleanup_free_	__attribute__((cleanup(freep)))
#define _cleanup_close_ __attribute__((cleanup(closep)))
#define _cleanup_(fn)	__attribute__((cleanup(fn)))
#define STEAL(p)                                                                                   \
	__extension__({                                                                            \
		__typeof__(p) stolen_ = (p);                                                       \
		(p) = NULL;                                                                        \
		stolen_;                                                                           \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
