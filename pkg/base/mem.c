#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
