/* GPUs: by vendor and class, with the facts of their drivers. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

#define NVIDIA 0x10de

/* VGA, 3D, other display controller; processing accelerator (MI300X). */
#define VENDOR(id, name)                                                                           \
	{ id, 0x0300, name }, { id, 0x0302, name }, { id, 0x0380, name },                          \
	{                                                                                          \
		id, 0x1200, name                                                                   \
	}
const struct gpu_match gpu_match_default[] = {
	VENDOR(NVIDIA, "NVIDIA"),
	VENDOR(0x1002, "AMD"),
	VENDOR(0x8086, "Intel"),
};
const size_t gpu_match_default_n = ARRAY_LEN(gpu_match_default);

/* "Key: \t\t value" of one line, or NULL. */
static char *value_of(char *line, const char *key)
{
	size_t n = strlen(key);

	return str_starts(line, key) && line[n] == ':' ? str_trim(line + n + 1) : NULL;
}

static void read_nvidia(struct scan *s, struct bdf bdf, struct hw_gpu *gpu)
{
	char text[4096], addr[BDF_STRLEN], *value, *save = NULL;
	int n = sysroot_read(s->root, text, sizeof(text), "proc/driver/nvidia/gpus/%s/information",
			     bdf_format(bdf, addr));

	if (n < 0)
		return; /* no driver of that kind, or bound to vfio-pci */
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		/* Until the driver has initialised the device it writes "GPU-????????-????-…". */
		if ((value = value_of(line, "Model")) && *value)
			gpu->model = arena_strdup(s->arena, value);
		else if ((value = value_of(line, "GPU UUID")) && str_starts(value, "GPU-") &&
			 !strchr(value, '?'))
			gpu->uuid = arena_strdup(s->arena, value);
		else if ((value = value_of(line, "Device Minor")) &&
			 str_to_int(value, &gpu->minor) < 0)
			gpu->minor = -1;
	}
}

static int find_card(void *arg, const char *name)
{
	int *card = arg, n;

	if (str_starts(name, "card") && !str_to_int(name + strlen("card"), &n) && n >= 0)
		*card = n;
	return 0;
}

void scan_function_gpu(struct scan *s, const struct dir *dev, const struct hw_pci *f, int pci)
{
	const struct gpu_match *match = NULL;
	struct hw_gpu gpu = { .pci = pci, .minor = -1, .card = -1 };
	_cleanup_dir_ struct dir drm = DIR_CLOSED;

	for (size_t i = 0; i < s->n_gpus && !match; i++) {
		if (s->gpus[i].vendor == f->vendor && s->gpus[i].class_hi == f->class_code >> 8)
			match = &s->gpus[i];
	}
	/* A VF of a GPU that is here is a part of it (hw_gpu_of_id()). */
	if (!match || f->is_vf)
		return;
	gpu.vendor = arena_strdup(s->arena, match->name);
	if (!dir_open(dev, "drm", &drm))
		dir_each(&drm, find_card, &gpu.card);
	if (f->vendor == NVIDIA)
		read_nvidia(s, f->bdf, &gpu);
	s->gpu = xgrow(s->gpu, &s->cap_gpu, s->n_gpu + 1, sizeof(*s->gpu));
	s->gpu[s->n_gpu++] = gpu;
}
