/* How far apart two words are: "did you mean …?" */
#include <string.h>
#include <strings.h>

#include "config/config-internal.h"

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return !strncasecmp(&a, &b, 1);
}

/* Optimal string alignment: letters changed, added, left out, and neighbours that changed places.
 */
size_t word_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2], *spare;
	size_t n = strlen(b);

	if (strlen(a) > WORD_MAX || n > WORD_MAX)
		return WORD_MAX + 1;
	for (size_t k = 0; k <= n; k++)
		last[k] = k;
	for (size_t i = 1; a[i - 1]; i++) {
		row[0] = i;
		for (size_t k = 1; k <= n; k++) {
			row[k] = min2(last[k] + 1, row[k - 1] + 1);
			row[k] = min2(row[k], last[k - 1] + !same(a[i - 1], b[k - 1]));
			if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]))
				row[k] = min2(row[k], before[k - 2] + 1);
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[n];
}
