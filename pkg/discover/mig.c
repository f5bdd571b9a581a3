/*
 * MIG devices of NVIDIA's GPUs: an id, "MIG-<uuid>", does not name the GPU. The CDI spec of the GPU
 * plugin does, by the device nodes; and where the driver shows that one GPU alone has any
 * (/proc/driver/nvidia/capabilities/gpuN/mig/giM), every id is of that one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"
#include "document/document.h"

#define CAPABILITIES "proc/driver/nvidia/capabilities"
#define SPEC_MAX     (1 << 20)
#define MIGS_MAX     1024 /* seven a GPU are usual */

/* --- the one GPU that has some --- */

static int count_instance(void *arg, const char *name)
{
	size_t *n = arg;

	*n += str_starts(name, "gi");
	return 0;
}

/* How many GPU instances it has; negative: that is not known. */
static int instances_of(const struct scan *s, const struct hw_gpu *gpu)
{
	char dir[96];
	size_t n = 0;
	int r;

	if (gpu->minor < 0)
		return -ENODATA;
	snprintf(dir, sizeof(dir), CAPABILITIES "/gpu%d/mig", gpu->minor);
	r = sysroot_each(s->root, dir, count_instance, &n);
	return r == -ENOENT ? 0 : r < 0 ? r : (int)n;
}

static void find_only(struct scan *s)
{
	struct hw_gpu *only = NULL;

	if (!sysroot_exists(s->root, CAPABILITIES))
		return;
	for (size_t i = 0; i < s->n_gpu; i++) {
		struct hw_gpu *gpu = &s->gpu[i];
		int n = str_eq(s->pci[gpu->pci].driver, "nvidia") ? instances_of(s, gpu) : 0;

		if (n < 0 || (n && only))
			return;
		only = n ? gpu : only;
	}
	if (only)
		only->only_mig = true;
}

/* --- CDI specs --- */

static const struct item *list_of(const struct item *object, const char *key)
{
	static const struct item none = { .type = ITEM_LIST };
	const struct item *list = item_get(object, key);

	return list && list->type == ITEM_LIST ? list : &none;
}

/* -1: none has this number, or two have. */
static int gpu_of_minor(const struct scan *s, const char *number)
{
	int minor, found = -1;

	if (str_to_int(number, &minor) < 0)
		return -1;
	for (size_t i = 0; i < s->n_gpu; i++) {
		if (s->gpu[i].minor != minor || !str_eq(s->gpu[i].vendor, "NVIDIA"))
			continue;
		if (found >= 0)
			return -1;
		found = s->gpu[i].pci;
	}
	return found;
}

/* By its only node /dev/nvidiaN; -1: it has none, or several. */
static int gpu_of_device(const struct scan *s, const struct item *device)
{
	static const char prefix[] = "/dev/nvidia";
	const struct item *nodes = list_of(item_get(device, "containerEdits"), "deviceNodes");
	int found = -1;

	for (size_t i = 0; i < nodes->n_kids; i++) {
		const char *path = item_string(&nodes->kids[i], "path");
		int pci;

		if (!path || !str_starts(path, prefix) ||
		    !isdigit((unsigned char)path[strlen(prefix)]))
			continue;
		pci = gpu_of_minor(s, path + strlen(prefix));
		if (pci < 0 || (found >= 0 && found != pci))
			return -1;
		found = pci;
	}
	return found;
}

/* Two specs that say different things of one id know nothing of it. */
static void add_mig(struct scan *s, const char *id, int pci)
{
	for (size_t i = 0; i < s->n_mig; i++) {
		if (!strcasecmp(s->mig[i].id, id)) {
			s->mig[i].pci = s->mig[i].pci == pci ? pci : -1;
			return;
		}
	}
	if (s->n_mig == MIGS_MAX)
		return;
	s->mig = xgrow(s->mig, &s->cap_mig, s->n_mig + 1, sizeof(*s->mig));
	s->mig[s->n_mig++] = (struct hw_mig) { arena_strdup(s->arena, id), pci };
}

struct spec_dir {
	struct scan *s;
	const char *path;
};

/* Of a plugin or toolkit of NVIDIA's, by its name: there may be hundreds of other specs. */
static int take_spec(void *arg, const char *name)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	const struct spec_dir *dir = arg;
	struct scan *s = dir->s;
	_cleanup_free_ char *text = NULL;
	const struct item *spec, *devices;
	size_t len = strlen(name);
	struct err err = { 0 };
	int n;

	if (!strstr(name, "nvidia") || len < 6 || strcmp(name + len - 5, ".json") != 0)
		return 0;
	text = xcalloc(1, SPEC_MAX);
	n = sysroot_read(s->root, text, SPEC_MAX, "%s/%s", dir->path, name);
	if (n == -ENOENT) /* it was replaced */
		return 0;
	if (n < 0)
		err_set(&err, -n, "%s/%s: %s", dir->path, name, strerror(-n));
	else
		n = document_parse(text, (size_t)n, arena_printf(a, "%s/%s", dir->path, name), a,
				   &spec, &err);
	if (n < 0) {
		scan_note(s, "MIG devices of a CDI spec are not known: %s", err.msg);
		return 0;
	}
	devices = list_of(spec, "devices");
	for (size_t i = 0; i < devices->n_kids; i++) {
		const char *id = item_string(&devices->kids[i], "name");

		if (id && str_starts(id, "MIG-"))
			add_mig(s, id, gpu_of_device(s, &devices->kids[i]));
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct hw_mig *)a)->id, ((const struct hw_mig *)b)->id);
}

void scan_migs(struct scan *s)
{
	static const char *const dirs[] = { "etc/cdi", "var/run/cdi" };
	bool any = false;

	for (size_t i = 0; i < s->n_gpu; i++)
		any |= str_eq(s->gpu[i].vendor, "NVIDIA");
	if (!any)
		return;
	find_only(s);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		struct spec_dir dir = { .s = s, .path = dirs[i] };
		int r = sysroot_each(s->root, dirs[i], take_spec, &dir);

		if (r < 0 && r != -ENOENT)
			scan_note(s, "MIG devices of CDI specs are not known: %s: %s", dirs[i],
				  strerror(-r));
	}
	if (s->n_mig)
		qsort(s->mig, s->n_mig, sizeof(*s->mig), by_id);
}
