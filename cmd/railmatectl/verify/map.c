/* map.json: the VFs that a container was given. Unknown keys are for newer readers. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "document/document.h"
#include "verify/verify-internal.h"

#define MAP_VERSION 1
#define MAX_ENTRIES 1024 /* every GPU with every HCA of the largest machine */

/* "0000:1b:00.0" as NCCL prints it: 0x1b000 */
static uint64_t bus_of(const char *address)
{
	uint64_t bus = 0;

	for (const char *p = address; p && *p; p++) {
		if (*p == ':' || *p == '.')
			continue;
		if (!isxdigit((unsigned char)*p))
			return 0;
		bus = bus << 4 |
		      (uint64_t)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 0x20) - 'a' + 10);
	}
	return bus;
}

static int read_text(const struct item *object, const char *key, const char *name, const char **ret,
		     struct err *err)
{
	const struct item *item = item_get(object, key);

	if (!item || item->type == ITEM_NULL)
		return 0;
	if (item->type != ITEM_STRING)
		return err_set(err, EINVAL, "%s:%d: %s has to be a string or null", name,
			       item->line, key);
	*ret = item->string;
	return 0;
}

static bool is_number(const struct item *item, int64_t low, int64_t high)
{
	return item && item->type == ITEM_NUMBER && item->whole && item->number >= low &&
	       item->number <= high;
}

static int read_entry(const struct item *object, const char *name, struct map_entry *e,
		      struct err *err)
{
	const struct item *port = item_get(object, "port"), *gid = item_get(object, "gid"), *index;
	int r;

	if (object->type != ITEM_OBJECT)
		return err_set(err, EINVAL, "%s:%d: an element of gpus has to be an object", name,
			       object->line);
	if ((r = read_text(object, "hca", name, &e->hca, err)) < 0 ||
	    (r = read_text(object, "gpu", name, &e->gpu, err)) < 0 ||
	    (r = read_text(object, "vf", name, &e->vf, err)) < 0 ||
	    (r = read_text(object, "netdev", name, &e->netdev, err)) < 0 ||
	    (r = read_text(object, "path", name, &e->path, err)) < 0)
		return r;
	if (port && port->type != ITEM_NULL && !is_number(port, 1, 255))
		return err_set(err, EINVAL, "%s:%d: port has to be a number from 1 to 255", name,
			       port->line);
	e->port = port && port->type != ITEM_NULL ? (uint64_t)port->number : 1;
	index = gid && gid->type == ITEM_OBJECT ? item_get(gid, "index") : NULL;
	if (gid && gid->type != ITEM_NULL && !is_number(index, 0, 65535))
		return err_set(err, EINVAL, "%s:%d: gid has to be null or an object with its index",
			       name, gid->line);
	e->gid_index = index ? (int64_t)index->number : -1;
	e->mbps = item_number(object, "mbps", 0) > 0 ? item_number(object, "mbps", 0) : 0;
	if (!item_get(object, "hca") || (e->hca && !*e->hca))
		return err_set(
			err, EINVAL,
			"%s:%d: an element of gpus needs hca, the name of the RDMA device, or null",
			name, object->line);
	e->gpu_bus = bus_of(e->gpu);
	if (e->gpu && !e->gpu_bus)
		return err_set(err, EINVAL, "%s:%d: gpu has to be a PCI address (dddd:bb:dd.f)",
			       name, object->line);
	return 0;
}

int verify_add_map(struct verify *v, const char *host, const char *text, size_t len,
		   const char *name, struct err *err)
{
	struct map *map = arena_alloc(v->arena, sizeof(*map));
	const struct item *top, *list;
	int r;

	r = document_parse(text, len, name, v->arena, &top, err);
	if (r < 0)
		return r;
	list = item_get(top, "gpus");
	if (top->type != ITEM_OBJECT || item_number(top, "version", 0) != MAP_VERSION)
		return err_set(err, EINVAL,
			       "%s: not a map of version %d (\"version\": %d is missing)", name,
			       MAP_VERSION, MAP_VERSION);
	if (!list || list->type != ITEM_LIST)
		return err_set(err, EINVAL, "%s: gpus has to be a list", name);
	if (list->n_kids > MAX_ENTRIES)
		return err_set(err, EINVAL, "%s: gpus has %zu elements, more than %d", name,
			       list->n_kids, MAX_ENTRIES);
	map->entries = arena_array(v->arena, list->n_kids, sizeof(*map->entries));
	for (size_t i = 0; i < list->n_kids; i++) {
		struct map_entry e = { 0 };

		r = read_entry(&list->kids[i], name, &e, err);
		if (r < 0)
			return r;
		if (e.hca) /* a VF of a network pool has none */
			map->entries[map->n_entries++] = e;
	}
	for (const struct map *m = v->maps; m; m = m->next) {
		if (str_eq(m->host, host))
			return err_set(err, EINVAL, "%s: there is a map for %s already", name,
				       host ? host : "every host");
	}
	map->host = arena_strdup(v->arena, host);
	map->next = v->maps;
	v->maps = map;
	return 0;
}

const struct map *verify_map_of(const struct verify *v, const char *host)
{
	const struct map *any = NULL;

	for (const struct map *m = v->maps; m; m = m->next) {
		if (str_eq(m->host, host))
			return m;
		if (!m->host)
			any = m;
	}
	return any;
}

/* port 0: any. */
const struct map_entry *map_entry_of(const struct map *map, const char *hca, size_t len,
				     uint64_t port)
{
	for (size_t i = 0; i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];

		if (strlen(e->hca) == len && !strncmp(e->hca, hca, len) &&
		    (!port || e->port == port))
			return e;
	}
	return NULL;
}

bool verify_mapped(const struct verify *v, const char *hca, uint64_t port, const char **gpu,
		   const char **vf)
{
	for (const struct map *m = v->maps; m; m = m->next) {
		const struct map_entry *e = map_entry_of(m, hca, strlen(hca), port);

		if (!e)
			continue;
		*gpu = e->gpu;
		*vf = e->vf;
		return true;
	}
	return false;
}
