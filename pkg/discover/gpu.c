/* GPUs, their partitions, and how two of them reach each other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "discover/scan-internal.h"
#include "sysroot/sysroot.h"

/* GPUs: by vendor and class, with the facts of their drivers. */

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

/*
 * How GPUs reach each other, as far as the kernel shows it: amdgpu's topology
 * (drivers/gpu/drm/amd/amdkfd, kfd_topology.c: io_links of type 11 are XGMI), and NVSwitches, which
 * are PCI functions. NVLink without them is known to NVIDIA's library alone.
 */

#define KFD_XGMI  11
#define MAX_NODES 256

/* "key value" lines; false: there is no such key. */
static bool property(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = str_next_line(line)) {
		if (!strncmp(line, key, len) && line[len] == ' ')
			return sscanf(line + len, " %" SCNu64, ret) == 1;
	}
	return false;
}

struct kfd {
	const struct sysroot *root;
	const struct hw_inventory *inv;
	struct gpu_links *links;
	int gpu[MAX_NODES]; /* of a node; -1 */
	int node;	    /* whose links are read */
};

/* The function of a node; -1. A partition's has its own number in place of the function's. */
static int function_of(const struct hw_inventory *inv, const char *text)
{
	uint64_t domain = 0, location;
	struct bdf bdf;
	int pci;

	property(text, "domain", &domain);
	if (!property(text, "location_id", &location) || !location)
		return -1;
	bdf = (struct bdf) { .domain = (uint32_t)domain,
			     .bus = (uint8_t)(location >> 8),
			     .dev = (uint8_t)(location >> 3 & 31),
			     .fn = (uint8_t)(location & 7) };
	pci = hw_find_pci(inv, bdf);
	if (hw_find_gpu(inv, pci) >= 0)
		return pci;
	bdf.fn = 0;
	pci = hw_find_pci(inv, bdf);
	return hw_find_gpu(inv, pci) < 0 ? -1 : pci;
}

static int take_node(void *arg, const char *name)
{
	struct kfd *k = arg;
	char text[4096];
	int node;

	if (str_to_int(name, &node) < 0 || node < 0 || node >= MAX_NODES ||
	    sysroot_read(k->root, text, sizeof(text), KFD_NODES "/%d/properties", node) <= 0)
		return 0;
	k->gpu[node] = hw_find_gpu(k->inv, function_of(k->inv, text));
	return 0;
}

/* --- partitions --- */

#define PLATFORM "sys/devices/platform"

struct parts {
	const struct sysroot *root;
	struct hw_inventory *inv;
	int minor; /* of the render node that is looked for; -1 */
	int pci;   /* the function found; -1 */
	size_t cap;
	struct hw_gpu_part *v;
	size_t n;
};

static int take_render_node(void *arg, const char *name)
{
	struct parts *p = arg;

	if (str_starts(name, "renderD") && str_to_int(name + strlen("renderD"), &p->minor) < 0)
		p->minor = -1;
	return 0;
}

static int find_minor(void *arg, const char *name)
{
	struct parts *p = arg;
	uint64_t minor;
	char text[4096];

	if (sysroot_read(p->root, text, sizeof(text), KFD_NODES "/%s/properties", name) > 0 &&
	    property(text, "drm_render_minor", &minor) && minor == (uint64_t)p->minor)
		p->pci = function_of(p->inv, text);
	return 0;
}

static int take_part(void *arg, const char *name)
{
	struct parts *p = arg;
	char dir[128];
	int number;

	if (!str_starts(name, "amdgpu_xcp_") ||
	    str_to_int(name + strlen("amdgpu_xcp_"), &number) < 0)
		return 0;
	p->minor = p->pci = -1;
	snprintf(dir, sizeof(dir), PLATFORM "/amdgpu_xcp_%d/drm", number);
	sysroot_each(p->root, dir, take_render_node, p);
	if (p->minor >= 0)
		sysroot_each(p->root, KFD_NODES, find_minor, p);
	if (p->pci < 0)
		return 0;
	p->v = xgrow(p->v, &p->cap, p->n + 1, sizeof(*p->v));
	p->v[p->n++] = (struct hw_gpu_part) { number, p->pci };
	return 0;
}

static int by_number(const void *a, const void *b)
{
	return ((const struct hw_gpu_part *)a)->number - ((const struct hw_gpu_part *)b)->number;
}

void scan_gpu_parts(const struct sysroot *root, struct hw_inventory *inv)
{
	struct parts p = { .root = root, .inv = inv };

	if (!inv->n_gpu)
		return;
	sysroot_each(root, PLATFORM, take_part, &p);
	if (p.n)
		qsort(p.v, p.n, sizeof(*p.v), by_number);
	inv->part = arena_copy(inv->arena, p.v, p.n * sizeof(*p.v));
	inv->n_part = p.n;
	free(p.v);
}

/* --- links --- */

static void set(struct gpu_links *l, int a, int b, enum gpu_link link)
{
	l->link[(size_t)a * l->n + (size_t)b] = link;
	l->link[(size_t)b * l->n + (size_t)a] = link;
}

static int take_link(void *arg, const char *name)
{
	struct kfd *k = arg;
	uint64_t type, to;
	char text[1024];

	if (sysroot_read(k->root, text, sizeof(text), KFD_NODES "/%d/io_links/%s/properties",
			 k->node, name) <= 0 ||
	    !property(text, "type", &type) || !property(text, "node_to", &to) || to >= MAX_NODES)
		return 0;
	if (type == KFD_XGMI && k->gpu[to] >= 0 && k->gpu[to] != k->gpu[k->node])
		set(k->links, k->gpu[k->node], k->gpu[to], GPU_LINK_XGMI);
	return 0;
}

static bool is_of_board(const struct hw_inventory *inv, size_t gpu, uint16_t device)
{
	const struct hw_pci *p = &inv->pci[inv->gpu[gpu].pci];

	return p->vendor == NVIDIA && p->device == device;
}

/* sysfs does not show which GPUs are connected to the NVSwitches: all of NVIDIA's are taken for it,
 * if they are of one kind. */
static void read_nvswitch(const struct hw_inventory *inv, struct gpu_links *l)
{
	uint16_t device = 0;
	bool any = false;

	for (size_t i = 0; i < inv->n_pci && !any; i++)
		any = inv->pci[i].vendor == NVIDIA && str_eq(inv->pci[i].driver, "nvidia-nvswitch");
	for (size_t i = 0; any && i < l->n; i++) {
		const struct hw_pci *p = &inv->pci[inv->gpu[i].pci];

		if (p->vendor == NVIDIA && device && p->device != device)
			return;
		if (p->vendor == NVIDIA)
			device = p->device;
	}
	for (size_t a = 0; any && a < l->n; a++) {
		for (size_t b = 0; b < a; b++) {
			if (is_of_board(inv, a, device) && is_of_board(inv, b, device))
				set(l, (int)a, (int)b, GPU_LINK_NVLINK);
		}
	}
}

struct gpu_links discover_gpu_links(const struct sysroot *root, const struct hw_inventory *inv,
				    struct arena *arena)
{
	struct gpu_links links = { .n = inv->n_gpu };
	struct kfd k = { .root = root, .inv = inv, .links = &links };

	links.link = arena_array(arena, links.n * links.n + 1, sizeof(*links.link));
	memset(k.gpu, 0xff, sizeof(k.gpu));
	read_nvswitch(inv, &links);
	if (sysroot_each(root, KFD_NODES, take_node, &k) < 0)
		return links;
	/* Two GPUs of the topology without a link of their own have PCIe. */
	for (int a = 0; a < MAX_NODES; a++) {
		for (int b = 0; b < a; b++) {
			if (k.gpu[a] >= 0 && k.gpu[b] >= 0 && k.gpu[a] != k.gpu[b])
				set(&links, k.gpu[a], k.gpu[b], GPU_LINK_PCIE);
		}
	}
	for (k.node = 0; k.node < MAX_NODES; k.node++) {
		char dir[96];

		snprintf(dir, sizeof(dir), KFD_NODES "/%d/io_links", k.node);
		if (k.gpu[k.node] >= 0)
			sysroot_each(root, dir, take_link, &k);
	}
	return links;
}
