#include "pods/gpus.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pods/identify.h"
#include "pool/node.h"

static int gpu_at(const struct hw_inventory *inv, struct bdf bdf)
{
	int pci = hw_find_pci(inv, bdf);

	return hw_find_gpu(inv, pci) < 0 ? -1 : pci;
}

/* An address in a DRA device's name, where only letters, digits and dashes are legal:
 * "0000-03-00-0-0x56c0".
 */
static int gpu_of_dashes(const struct hw_inventory *inv, const char *name)
{
	static const char shape[] = "dddd:dd:dd.d";
	char text[sizeof(shape)];
	struct bdf bdf;

	if (strlen(name) < sizeof(text) - 1)
		return -1;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		if (shape[i] != 'd' && name[i] != '-')
			return -1;
		text[i] = shape[i] == 'd' ? name[i] : shape[i];
	}
	text[sizeof(text) - 1] = '\0';
	return bdf_parse(text, &bdf) < 0 ? -1 : gpu_at(inv, bdf);
}

static int gpu_of_minor(const struct hw_inventory *inv, int minor)
{
	for (size_t i = 0; i < inv->n_gpu; i++) {
		if (inv->gpu[i].minor == minor && str_eq(inv->gpu[i].vendor, "NVIDIA"))
			return inv->gpu[i].pci;
	}
	return -1;
}

static int gpu_of_card(const struct hw_inventory *inv, int card)
{
	for (size_t i = 0; i < inv->n_gpu; i++) {
		if (inv->gpu[i].card == card)
			return inv->gpu[i].pci;
	}
	return -1;
}

/* The number that stands behind the prefix, up to a dash or the end; -1: there is none. */
static int number_behind(const char *text, const char *prefix)
{
	char digits[8];
	size_t n;
	int v;

	if (!str_starts(text, prefix))
		return -1;
	text += strlen(prefix);
	n = strcspn(text, "-");
	if (!n || n >= sizeof(digits))
		return -1;
	memcpy(digits, text, n);
	digits[n] = '\0';
	return str_to_int(digits, &v) < 0 ? -1 : v;
}

/*
 * How the drivers name their devices: NVIDIA's "gpu-<minor>" ("gpu-<minor>-mig-…" is a part of it),
 * AMD's "gpu-<card>-<render node>", Intel's an address; a UUID or an address in any of them.
 */
static int gpu_of_device(const struct hw_inventory *inv, const char *driver, const char *name)
{
	_cleanup_free_ char *uuid = NULL;
	int gpu = hw_gpu_of_id(inv, NULL, name), number;

	if (gpu < 0)
		gpu = gpu_of_dashes(inv, name);
	if (gpu < 0 && str_starts(name, "gpu-")) {
		uuid = xasprintf("GPU-%s", name + strlen("gpu-"));
		gpu = hw_gpu_of_id(inv, NULL, uuid);
		if (gpu < 0)
			gpu = gpu_of_dashes(inv, name + strlen("gpu-"));
	}
	number = number_behind(name, "gpu-");
	if (gpu < 0 && number >= 0)
		gpu = strstr(driver, "amd.com") ? gpu_of_card(inv, number)
						: gpu_of_minor(inv, number);
	return gpu;
}

/* "vendor/class=name": names as the vendors' CDI specs have them, an index, a UUID, or a claim's
 * "<uid>-gpu-0". */
static int gpu_of_cdi(const struct hw_inventory *inv, const char *driver, const char *cdi)
{
	const char *name = strchr(cdi, '='), *inner;
	int gpu;

	if (!name)
		return -1;
	name++;
	gpu = gpu_of_device(inv, driver, name);
	inner = strstr(name, "gpu-");
	if (gpu < 0 && inner)
		gpu = gpu_of_device(inv, driver, inner);
	if (gpu < 0 && str_starts(cdi, "nvidia.com/gpu="))
		gpu = hw_gpu_of_id(inv, "nvidia.com/gpu",
				   name + (str_starts(name, "gpu") ? strlen("gpu") : 0));
	return gpu;
}

int gpus_of_dynamic(const struct hw_inventory *inv, const struct dynamic *d)
{
	int gpu = gpu_of_device(inv, d->driver, d->device);

	for (size_t i = 0; gpu < 0 && i < d->cdi.n; i++)
		gpu = gpu_of_cdi(inv, d->driver, d->cdi.v[i]);
	return gpu;
}

/* Resources and DRA drivers that give GPUs, or parts of GPUs. */
static bool gives_gpus(const char *name)
{
	static const char *const prefixes[] = { "nvidia.com/gpu", "nvidia.com/mig-", "amd.com/",
						"gpu.intel.com/", "gpu.nvidia.com",  "gpu.amd.com",
						"gpu.intel.com" };

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (str_starts(name, prefixes[i]))
			return true;
	}
	return false;
}

static const char *no_gpu_here(const char *id, const char *from, struct arena *a)
{
	return arena_printf(a, "%.64s of %.64s does not name a GPU of this node", id, from);
}

const char *gpus_unknown(const struct node *node, const struct pod_container *c, struct arena *a)
{
	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *held = &c->held[i];

		for (size_t k = 0; k < held->ids.n && !node_pool(node, held->resource); k++) {
			if (gives_gpus(held->resource) &&
			    hw_gpu_of_id(node->inv, held->resource, held->ids.v[k]) < 0)
				return no_gpu_here(held->ids.v[k], held->resource, a);
		}
	}
	for (size_t i = 0; i < c->n_dynamic; i++) {
		const struct dynamic *d = &c->dynamic[i];

		if (gives_gpus(d->driver) && gpus_of_dynamic(node->inv, d) < 0)
			return no_gpu_here(d->device, d->driver, a);
	}
	return NULL;
}

size_t gpus_held(const struct node *node, const struct pod_container *c, const char *except,
		 struct arena *a, int **ret)
{
	int *held, *all;
	size_t n = identify_gpus(c, except, node->inv, a, &held);

	all = arena_array(a, n + c->n_dynamic, sizeof(*all));
	if (n)
		memcpy(all, held, n * sizeof(*all));
	for (size_t i = 0; i < c->n_dynamic; i++) {
		int gpu = gpus_of_dynamic(node->inv, &c->dynamic[i]);

		if (gpu >= 0)
			all[n++] = gpu;
	}
	*ret = all;
	return identify_unique(all, n);
}

const char *gpus_driver(const struct node *node, const struct pod_container *c)
{
	for (size_t i = 0; i < c->n_dynamic; i++) {
		const struct dynamic *d = &c->dynamic[i];

		if (gives_gpus(d->driver) || gpus_of_dynamic(node->inv, d) >= 0)
			return d->driver;
	}
	return NULL;
}

static bool shows(const struct pod_container *c, const char *claim)
{
	for (size_t i = 0; i < c->n_dynamic; i++) {
		if (str_eq(c->dynamic[i].claim, claim))
			return true;
	}
	return false;
}

bool gpus_are_several(const struct node *node, const struct pod_container *c, const char *claim)
{
	int first = -1;

	for (size_t i = 0; i < c->n_dynamic; i++) {
		const struct dynamic *d = &c->dynamic[i];
		int gpu = str_eq(d->claim, claim) ? gpus_of_dynamic(node->inv, d) : -1;

		if (gpu >= 0 && first >= 0 && gpu != first)
			return true;
		first = gpu >= 0 ? gpu : first;
	}
	return false;
}

bool gpus_are_shared(const struct node *node, const struct pod *pod, const struct pod_container *c,
		     const char *claim)
{
	size_t n_with = 0;

	for (size_t i = 0; i < pod->n_containers; i++)
		n_with += shows(&pod->containers[i], claim);
	return n_with > 1 && gpus_are_several(node, c, claim);
}
