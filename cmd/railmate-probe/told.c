/*
 * map.json and nccl.conf of a container → records. The container may have replaced both: sizes are
 * limited, what is malformed is a sentence, and no name of it with a slash reaches a path.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "document/document.h"
#include "hw/bdf.h"
#include "sysroot/sysroot.h"
#include "told.h"

#define FILE_MAX  ((size_t)1 << 20)
#define PAIRS_MAX 4096 /* of GPUs and VFs: many times what a node has */

/* A PCI address in the kernel's own form; NULL: none. */
static const char *address(const struct item *pair, const char *key, struct arena *a)
{
	const char *text = item_string(pair, key);
	char buf[BDF_STRLEN];
	struct bdf bdf;

	if (!text || bdf_parse(text, &bdf) < 0)
		return NULL;
	return arena_strdup(a, bdf_format(bdf, buf));
}

/* Text that may be shown on a terminal; NULL: none. */
static const char *shown(const struct item *object, const char *key, struct arena *a)
{
	char *text = arena_strdup(a, item_string(object, key));

	if (text)
		str_printable(text, strlen(text), "");
	return text;
}

/* A name that may stand in a path of /sys or /dev; NULL: none. */
static const char *name(const struct item *pair, const char *key, struct arena *a)
{
	const char *text = shown(pair, key, a);

	return text && *text && *text != '.' && !strchr(text, '/') ? text : NULL;
}

static int small_number(const struct item *pair, const char *key)
{
	int64_t n = item_number(pair, key, -1);

	return n < 0 || n > 65535 ? -1 : (int)n;
}

static size_t vf_of(struct told *told, const char *bdf, const struct item *pair, struct arena *a)
{
	const struct item *gid = item_get(pair, "gid");
	struct told_vf *vf;
	int port;

	for (size_t i = 0; i < told->n_vfs; i++) {
		if (str_eq(told->vfs[i].bdf, bdf))
			return i;
	}
	vf = &told->vfs[told->n_vfs];
	port = small_number(pair, "port");
	*vf = (struct told_vf) {
		.bdf = bdf,
		.hca = name(pair, "hca", a),
		.port = port > 0 && port < 256 ? port : 1,
		.netdev = name(pair, "netdev", a),
		.rail = small_number(pair, "rail"),
		.plane = small_number(pair, "plane"),
		.mbps = item_number(pair, "mbps", -1),
		.gid_index = gid ? small_number(gid, "index") : -1,
		.gid = gid ? shown(gid, "address", a) : NULL,
		.gid_type = gid ? shown(gid, "type", a) : NULL,
		.data_direct = address(pair, "data_direct", a),
	};
	return told->n_vfs++;
}

static size_t gpu_of(struct told *told, const char *bdf)
{
	for (size_t i = 0; i < told->n_gpus; i++) {
		if (str_eq(told->gpus[i].bdf, bdf))
			return i;
	}
	told->gpus[told->n_gpus].bdf = bdf;
	return told->n_gpus++;
}

/* A function with several ports has a line for each. */
static void take_pair(struct told *told, size_t gpu, size_t vf)
{
	for (size_t i = 0; i < told->n_pairs; i++) {
		if (told->pairs[i].gpu == gpu && told->pairs[i].vf == vf)
			return;
	}
	told->pairs[told->n_pairs++] = (struct told_pair) { gpu, vf };
}

static int take_map(const struct item *map, const char *path, struct arena *a, struct told *told,
		    struct err *err)
{
	const struct item *list = item_get(map, "gpus");

	if (item_number(map, "version", -1) != 1)
		return err_set(
			err, EBADMSG,
			"%s is not of version 1: railmate-probe is of another release than railmated",
			path);
	if (!list || list->type != ITEM_LIST || list->n_kids > PAIRS_MAX)
		return err_set(err, EBADMSG, "%s: \"gpus\" is not a list of at most %d elements",
			       path, PAIRS_MAX);
	told->pod = shown(map, "pod", a);
	told->container = shown(map, "container", a);
	told->vfs = arena_array(a, list->n_kids + 1, sizeof(*told->vfs));
	told->gpus = arena_array(a, list->n_kids + 1, sizeof(*told->gpus));
	told->pairs = arena_array(a, list->n_kids + 1, sizeof(*told->pairs));
	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *pair = &list->kids[i];
		const char *vf = address(pair, "vf", a), *gpu = address(pair, "gpu", a);
		size_t at;

		if (!vf)
			return err_set(err, EBADMSG, "%s: line %d: no PCI address in \"vf\"", path,
				       pair->line);
		at = vf_of(told, vf, pair, a);
		if (gpu)
			take_pair(told, gpu_of(told, gpu), at);
	}
	return 0;
}

/* NCCL_IB_GID_INDEX: the environment wins, then the file that railmate wrote, as in NCCL. */
static int nccl_gid_index(const struct sysroot *root, const char *dir, struct arena *a)
{
	static const char key[] = "NCCL_IB_GID_INDEX=";
	const char *value = sysroot_is_live(root) ? getenv("NCCL_IB_GID_INDEX") : NULL;
	char *text = arena_alloc(a, FILE_MAX), *line, *rest;
	int index;

	if (!value && sysroot_read(root, text, FILE_MAX, "%s/nccl.conf", dir) >= 0) {
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			if (str_starts(line, key))
				value = str_trim(line + sizeof(key) - 1);
		}
	}
	return value && str_to_int(value, &index) == 0 && index >= 0 ? index : -1;
}

int told_read(const struct sysroot *root, const char *dir, struct arena *a, struct told *ret,
	      struct err *err)
{
	const char *path = arena_printf(a, "%s/map.json", dir);
	char *text = arena_alloc(a, FILE_MAX);
	int len = sysroot_read(root, text, FILE_MAX, "%s", path), r;
	struct told told = { .vfs = NULL };
	const struct item *map;

	if (len == -EFBIG)
		return err_set(err, EBADMSG, "%s is larger than %zu bytes", path, FILE_MAX);
	if (len < 0)
		return err_set(err, -len, "%s: %s", path, strerror(-len));
	r = document_parse(text, (size_t)len, path, a, &map, err);
	if (r < 0)
		return r;
	r = take_map(map, path, a, &told, err);
	if (r < 0)
		return r;
	told.nccl_gid_index = nccl_gid_index(root, dir, a);
	*ret = told;
	return 0;
}

static bool both_known(int a, int b)
{
	return a >= 0 && b >= 0;
}

bool told_apart(int rail, int plane, int other_rail, int other_plane)
{
	return (both_known(rail, other_rail) && rail != other_rail) ||
	       (both_known(plane, other_plane) && plane != other_plane);
}
