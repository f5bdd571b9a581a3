#include "pods/gpus.h"

#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pods/pods-internal.h"
#include "pool/node.h"

/* An address in a DRA device's name, where only letters, digits and dashes are legal:
 * "0000-03-00-0-0x56c0". */
static int gpu_of_dashes(const struct hw_inventory *inv, const char *name)
{
	static const char shape[] = "dddd:dd:dd.d";
	char text[sizeof(shape)];
	struct bdf bdf;
	int pci;

	if (strlen(name) < sizeof(text) - 1)
		return -1;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		if (shape[i] != 'd' && name[i] != '-')
			return -1;
		text[i] = shape[i] == 'd' ? name[i] : shape[i];
	}
	text[sizeof(text) - 1] = '\0';
	if (bdf_parse(text, &bdf) < 0)
		return -1;
	pci = hw_find_pci(inv, bdf);
	return hw_find_gpu(inv, pci) < 0 ? -1 : pci;
}

/* By the number that text begins with, up to a dash or the end. */
static int gpu_of_number(const struct hw_inventory *inv, const char *driver, const char *text)
{
	size_t n = strcspn(text, "-");
	char digits[8];
	int v;

	if (!n || n >= sizeof(digits))
		return -1;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (str_to_int(digits, &v) < 0 || v < 0)
		return -1;
	for (size_t i = 0; i < inv->n_gpu; i++) {
		const struct hw_gpu *gpu = &inv->gpu[i];

		if (strstr(driver, "amd.com") ? gpu->card == v
					      : gpu->minor == v && str_eq(gpu->vendor, "NVIDIA"))
			return gpu->pci;
	}
	return -1;
}

/*
 * How the drivers name their devices: NVIDIA's "gpu-<minor>" ("gpu-<minor>-mig-…" is a part of it),
 * AMD's "gpu-<card>-<render node>", Intel's an address; a UUID or an address in any of them.
 */
static int gpu_of_device(const struct hw_inventory *inv, const char *driver, const char *name)
{
	_cleanup_free_ char *uuid = NULL;
	int gpu = hw_gpu_of_id(inv, NULL, name);

	if (gpu < 0)
		gpu = gpu_of_dashes(inv, name);
	if (gpu < 0 && str_starts(name, "gpu-")) {
		uuid = xasprintf("GPU-%s", name + strlen("gpu-"));
		gpu = hw_gpu_of_id(inv, NULL, uuid);
		if (gpu < 0)
			gpu = gpu_of_dashes(inv, name + strlen("gpu-"));
		if (gpu < 0)
			gpu = gpu_of_number(inv, driver, name + strlen("gpu-"));
	}
	return gpu;
}

static int gpu_of_dynamic(const struct hw_inventory *inv, const struct dynamic *d)
{
	int gpu = gpu_of_device(inv, d->driver, d->device);

	/* "vendor/class=name": names as the vendors' CDI specs have them, an index, a UUID, or a
	 * claim's "<uid>-gpu-0". */
	for (size_t i = 0; gpu < 0 && i < d->cdi.n; i++) {
		const char *name = strchr(d->cdi.v[i], '='), *inner;

		if (!name)
			continue;
		name++;
		gpu = gpu_of_device(inv, d->driver, name);
		inner = strstr(name, "gpu-");
		if (gpu < 0 && inner)
			gpu = gpu_of_device(inv, d->driver, inner);
		if (gpu < 0 && str_starts(d->cdi.v[i], "nvidia.com/gpu="))
			gpu = hw_gpu_of_id(inv, "nvidia.com/gpu",
					   name + (str_starts(name, "gpu") ? strlen("gpu") : 0));
	}
	return gpu;
}

bool pods_names_gpu(const struct hw_inventory *inv, const struct dynamic *d)
{
	return gpu_of_dynamic(inv, d) >= 0;
}

bool pods_gives_gpus(const char *name)
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

struct pods_gpus pods_gpus(const struct node *node, const struct pod_container *c,
			   const char *except, struct arena *a)
{
	struct pods_gpus r = { 0 };
	struct gpu_set held = pods_gpus_but(c, except, node->inv, a);
	size_t n = held.n;

	r.n_unknown = held.n_unknown;
	r.v = arena_array(a, n + c->n_dynamic, sizeof(*r.v));
	if (n)
		memcpy(r.v, held.v, n * sizeof(*r.v));
	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *h = &c->held[i];
		bool gives = pods_gives_gpus(h->resource) && !node_pool(node, h->resource);

		for (size_t k = 0; gives && !r.unknown && k < h->ids.n; k++) {
			if (hw_gpu_of_id(node->inv, h->resource, h->ids.v[k]) < 0)
				r.unknown = no_gpu_here(h->ids.v[k], h->resource, a);
		}
	}
	for (size_t i = 0; i < c->n_dynamic; i++) {
		const struct dynamic *d = &c->dynamic[i];
		bool gives = pods_gives_gpus(d->driver);
		int gpu = gpu_of_dynamic(node->inv, d);

		if (gpu >= 0)
			r.v[n++] = gpu;
		else if (gives && !r.n_unknown++ && !r.unknown)
			r.unknown = no_gpu_here(d->device, d->driver, a);
		if ((gives || gpu >= 0) && !r.driver)
			r.driver = d->driver;
	}
	r.n = list_unique_int(r.v, n);
	return r;
}

enum pods_claim pods_claim_gpus(const struct node *node, const struct pod *pod,
				const struct pod_container *c, const char *claim)
{
	bool several = false;
	size_t n_with = 0;
	int first = -1;

	for (size_t i = 0; i < c->n_dynamic; i++) {
		const struct dynamic *d = &c->dynamic[i];
		int gpu = str_eq(d->claim, claim) ? gpu_of_dynamic(node->inv, d) : -1;

		several |= gpu >= 0 && first >= 0 && gpu != first;
		first = gpu >= 0 ? gpu : first;
	}
	if (!several)
		return PODS_CLAIM_ONE;
	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct pod_container *other = &pod->containers[i];
		bool shown = false;

		for (size_t k = 0; k < other->n_dynamic; k++)
			shown |= str_eq(other->dynamic[k].claim, claim);
		n_with += shown;
	}
	return n_with > 1 ? PODS_CLAIM_SHARED : PODS_CLAIM_SEVERAL;
}
