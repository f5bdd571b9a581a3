/* Lists of strings and numbers: arrays and their length. */
#ifndef RAILMATE_BASE_LIST_H
#define RAILMATE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

bool list_has(const char *const *list, size_t n, const char *s); /* NULL equals only NULL */
bool list_has_int(const int *list, size_t n, int value);
bool list_has_sorted(const char *const *list, size_t n, const char *s); /* by list_by_string() */
/* Where key is in a sorted array, or would be: the first element that is not less. As bsearch(). */
size_t list_place(const void *key, const void *list, size_t n, size_t size,
		  int (*compare)(const void *key, const void *element));
/* For qsort() and bsearch() of `const char *`, and of int. */
int list_by_string(const void *a, const void *b);
int list_by_int(const void *a, const void *b);
size_t list_unique_int(int *list, size_t n); /* sorts; how many are left when each is there once */

#endif
