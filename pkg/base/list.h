/* Lists of strings and numbers: arrays and their length. */
#ifndef RAILMATE_BASE_LIST_H
#define RAILMATE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

bool list_has(const char *const *list, size_t n, const char *s); /* NULL equals only NULL */
bool list_has_int(const int *list, size_t n, int value);
/* For qsort() and bsearch() of `const char *`, and of int. */
int list_by_string(const void *a, const void *b);
int list_by_int(const void *a, const void *b);
size_t list_unique_int(int *list, size_t n); /* sorts; how many are left when each is there once */

#endif
