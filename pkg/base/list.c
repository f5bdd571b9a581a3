#include "base/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

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
