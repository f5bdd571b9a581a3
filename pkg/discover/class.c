/* Which netdevs and RDMA devices belong to which function, from the texts of the class directories'
 * links. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "discover/scan-internal.h"

static const struct {
	const char *dir, *folder;
} classes[CLASS_MAX] = {
	[CLASS_NET] = { "sys/class/net", "net" },
	[CLASS_RDMA] = { "sys/class/infiniband", "infiniband" },
	[CLASS_VERBS] = { "sys/class/infiniband_verbs", "infiniband_verbs" },
};

/* Cuts the last component off; NULL when nothing is left. */
static char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

struct filling {
	struct scan *s;
	const struct dir *dir;
	enum class_kind kind;
};

static int add_link(void *arg, const char *name)
{
	struct filling *f = arg;
	struct class_map *map = &f->s->classes[f->kind];
	const char *last = NULL, *folder, *addr;
	char target[PATH_MAX];
	struct bdf bdf;

	/* "…/<address>/<folder>/<name>" */
	if (dir_link(f->dir, name, target, sizeof(target)) >= 0)
		last = cut_last(target);
	folder = last ? cut_last(target) : NULL;
	addr = folder ? cut_last(target) : NULL;
	if (!addr || strcmp(last, name) != 0 || strcmp(folder, classes[f->kind].folder) != 0 ||
	    bdf_parse(addr, &bdf) < 0) {
		names_add(&map->others, name);
		return 0;
	}
	map->links = xgrow(map->links, &map->cap, map->n + 1, sizeof(*map->links));
	map->links[map->n++] =
		(struct class_link) { .bdf = bdf, .name = arena_strdup(f->s->arena, name) };
	return 0;
}

static int by_function(const void *a, const void *b)
{
	const struct class_link *la = a, *lb = b;
	int c = bdf_cmp(la->bdf, lb->bdf);

	return c ? c : strcmp(la->name, lb->name);
}

void scan_classes(struct scan *s)
{
	for (int kind = 0; kind < CLASS_MAX; kind++) {
		_cleanup_dir_ struct dir dir = DIR_CLOSED;
		struct class_map *map = &s->classes[kind];
		struct filling f = { s, &dir, (enum class_kind)kind };

		if (dir_open_path(s->root, classes[kind].dir, &dir) < 0)
			continue;
		dir_each(&dir, add_link, &f);
		if (map->n > 1)
			qsort(map->links, map->n, sizeof(*map->links), by_function);
	}
}

void classes_done(struct scan *s)
{
	for (int kind = 0; kind < CLASS_MAX; kind++) {
		free(s->classes[kind].links);
		names_done(&s->classes[kind].others);
	}
}

static int by_address(const void *bdf, const void *link)
{
	return bdf_cmp(*(const struct bdf *)bdf, ((const struct class_link *)link)->bdf);
}

int scan_class_names(struct scan *s, enum class_kind kind, const struct dir *dev, struct bdf bdf,
		     struct names *ret)
{
	struct class_map *map = &s->classes[kind];
	size_t first = list_place(&bdf, map->links, map->n, sizeof(*map->links), by_address);

	for (size_t i = first; i < map->n && !bdf_cmp(map->links[i].bdf, bdf); i++) {
		map->links[i].taken = true;
		names_add(ret, map->links[i].name);
	}
	return ret->n ? 0 : names_below(dev, classes[kind].folder, ret);
}

void scan_class_rest(const struct scan *s, enum class_kind kind, struct names *ret)
{
	const struct class_map *map = &s->classes[kind];

	for (size_t i = 0; i < map->n; i++) {
		if (!map->links[i].taken)
			names_add(ret, map->links[i].name);
	}
	for (size_t i = 0; i < map->others.n; i++)
		names_add(ret, map->others.v[i]);
	names_sort(ret);
}
