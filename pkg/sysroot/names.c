/* The names in a directory. */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "sysroot/dir.h"

void names_done(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
	*names = (struct names)NAMES_EMPTY;
}

void names_add(struct names *names, const char *name)
{
	names->v = xgrow(names->v, &names->cap, names->n + 1, sizeof(*names->v));
	names->v[names->n++] = xstrdup(name);
}

static int add_name(void *arg, const char *name)
{
	names_add(arg, name);
	return 0;
}

void names_sort(struct names *names)
{
	if (names->n > 1)
		qsort(names->v, names->n, sizeof(*names->v), list_by_string);
}

int names_of(const struct dir *d, struct names *ret)
{
	int r = dir_each(d, add_name, ret);

	names_sort(ret);
	return r;
}

int names_below(const struct dir *up, const char *sub, struct names *ret)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;
	int r = dir_open(up, sub, &d);

	return r < 0 ? r : names_of(&d, ret);
}

bool dir_is_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}
