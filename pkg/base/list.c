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
