/*
 * A GPU's memory for a registration: which ways there are, the best first, and a finding for each
 * that there is not. The makers' libraries are behind gpu-internal.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "gpu-internal.h"
#include "gpu.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "told.h"
#include "wire.h"

/* An allocation of this grain is aligned to pages of every size that a kernel has. */
#define GRAIN	     ((size_t)2 << 20)
#define MEMORIES_MAX 64
#define VENDOR_AMD   0x1002

enum way { WAY_DATA_DIRECT, WAY_DMABUF_PCIE, WAY_DMABUF, WAY_PEER, WAY_MAX };
static const char *const way_names[] = { "data direct", "dmabuf pcie", "dmabuf", "peer memory" };

struct gpu {
	const struct gpu_library *library;
	const char *name;
	int device;
	void *context;
	bool has_module;      /* for peer memory */
	bool absent[WAY_MAX]; /* not offered, and said so */
	struct {
		void *memory;
		int fd;
	} memories[MEMORIES_MAX];
	size_t n;
};

/* --- opening --- */

static const struct gpu_library *library_of(const struct sysroot *root, const char *bdf)
{
	uint64_t vendor;

	return sysroot_read_u64(root, 16, &vendor, "sys/bus/pci/devices/%s/vendor", bdf) == 0 &&
			       vendor == VENDOR_AMD
		       ? &gpu_hip
		       : &gpu_cuda;
}

/* It is never closed: libraries with threads of their own do not survive that. */
static int load(const struct gpu_library *l, const char *bdf, struct report *r)
{
	const char *why = NULL;
	void *lib = NULL;

	for (size_t i = 0; l->names[i] && !lib; i++) {
		lib = dlopen(l->names[i], RTLD_NOW | RTLD_LOCAL);
		if (!lib && !why)
			why = arena_strdup(r->arena, dlerror());
	}
	if (lib && l->load(lib) == 0)
		return 0;
	r->no_gpu_library = true;
	report_finding(r, OUTCOME_NOT_MEASURED, "gpu-library", bdf,
		       "The GPU's memory cannot be reached: %s",
		       lib ? arena_printf(r->arena, "%s lacks functions", l->names[0]) : why);
	return -ENOSYS;
}

static int find(const struct gpu_library *l, const char *bdf, struct report *r, int *device)
{
	const char *visible = getenv(l->visible);
	int error = l->start();

	if (error) {
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-driver", bdf,
			       "%s does not start: error %d, %s", l->names[0], error,
			       l->error(error));
		return -ENODEV;
	}
	error = l->find(bdf, device);
	if (error)
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-hidden", bdf,
			       "%s does not see this GPU: error %d, %s%s%s%s", l->names[0], error,
			       l->error(error), visible ? "; " : "", visible ? l->visible : "",
			       visible ? " is set" : "");
	return error ? -ENODEV : 0;
}

int gpu_open(const struct sysroot *root, const char *bdf, struct report *r, struct gpu **ret)
{
	const struct gpu_library *l = library_of(root, bdf);
	struct gpu *g;
	int device, error = load(l, bdf, r);

	if (error == 0)
		error = find(l, bdf, r, &device);
	if (error)
		return error;
	g = xcalloc(1, sizeof(*g));
	*g = (struct gpu) { .library = l, .name = arena_strdup(r->arena, bdf), .device = device };
	error = l->enter(device, &g->context);
	if (error) {
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-driver", bdf,
			       "No context can be made on it: error %d, %s", error,
			       l->error(error));
		free(g);
		return -ENODEV;
	}
	for (size_t i = 0; l->peer_modules[i]; i++)
		g->has_module |= sysroot_exists(root, "%s", l->peer_modules[i]);
	*ret = g;
	return 0;
}

void gpu_close(struct gpu *g)
{
	if (!g)
		return;
	g->library->enter(g->device, &g->context);
	for (size_t i = 0; i < g->n; i++) {
		closep(&g->memories[i].fd);
		g->library->free(g->memories[i].memory);
	}
	g->library->leave(g->device);
	free(g);
}

/* --- bytes --- */

static int copy(const struct wire_memory *m, void *host, bool to_gpu)
{
	struct gpu *g = m->owner;
	void *gpu = m->address;

	if (g->library->enter(g->device, &g->context) ||
	    g->library->copy(to_gpu ? gpu : host, to_gpu ? host : gpu, m->size, to_gpu))
		return -EIO;
	return 0;
}

static int fill(struct wire_memory *m, uint64_t seed)
{
	_cleanup_free_ void *bytes = xcalloc(1, m->size);

	wire_pattern(bytes, m->size, seed);
	return copy(m, bytes, true);
}

static int verify(struct wire_memory *m, uint64_t seed)
{
	_cleanup_free_ void *expected = xcalloc(1, m->size), *seen = xcalloc(1, m->size);
	int r = copy(m, seen, false);

	wire_pattern(expected, m->size, seed);
	if (r < 0)
		return r;
	return memcmp(expected, seen, m->size) == 0 ? 0 : -EILSEQ;
}

/* --- ways --- */

static bool has_data_direct(const struct gpu *g, const struct told *told)
{
	for (size_t i = 0; told && i < told->n_pairs; i++) {
		if (str_eq(told->gpus[told->pairs[i].gpu].bdf, g->name) &&
		    told->vfs[told->pairs[i].vf].data_direct)
			return true;
	}
	return false;
}

/* Returns false. */
static bool say_absent(struct gpu *g, enum way way, const char *id, struct report *r,
		       const char *what, const char *why)
{
	if (!g->absent[way])
		report_finding(r, OUTCOME_GOOD, id, g->name, "%s%s", what, why);
	g->absent[way] = true;
	return false;
}

static bool is_peer_offered(struct gpu *g, struct report *r)
{
	if (!g->has_module)
		return say_absent(g, WAY_PEER, "gpu-no-peer", r,
				  "There is no peer memory: ", "its kernel module is not loaded");
	return g->library->has_peer(g->device) ||
	       say_absent(g, WAY_PEER, "gpu-no-peer", r,
			  "There is no peer memory: ", "the driver offers none for this GPU");
}

/* Before anything is asked of the driver for this way. */
static bool is_offered(struct gpu *g, enum way way, struct report *r)
{
	if (g->absent[way])
		return false;
	if (way == WAY_PEER)
		return is_peer_offered(g, r);
	if (way == WAY_DATA_DIRECT && !has_data_direct(g, r->told))
		return false;
	if (way != WAY_DMABUF && !g->library->has_pcie_mapping)
		return false;
	return g->library->has_dmabuf(g->device) ||
	       (way == WAY_DMABUF && say_absent(g, way, "gpu-no-dmabuf", r,
						"The driver exports no dmabuf of this GPU", ""));
}

static int allocate(struct gpu *g, size_t size, struct report *r, void **memory)
{
	int error = g->n == MEMORIES_MAX ? 0 : g->library->allocate(size, memory);

	if (error || g->n == MEMORIES_MAX) {
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-memory", g->name,
			       "%zu bytes of it cannot be allocated: %s", size,
			       error ? g->library->error(error) : "too many memories");
		return -ENOMEM;
	}
	g->memories[g->n].memory = *memory;
	g->memories[g->n++].fd = -1;
	return 0;
}

/* The last memory, by this way; false: the driver refuses it. */
static bool export(struct gpu *g, enum way way, size_t size, struct report *r,
		   struct wire_memory *m)
{
	int fd = -1, error;

	m->way = way_names[way];
	m->data_direct = way == WAY_DATA_DIRECT;
	if (way == WAY_PEER)
		return true;
	error = g->library->export(m->address, size, way != WAY_DMABUF, &fd, &m->dmabuf_offset);
	if (error || fd < 0) {
		say_absent(g, way, way == WAY_DMABUF ? "gpu-no-dmabuf" : "gpu-no-pcie", r,
			   way == WAY_DMABUF ? "The driver refuses to export a dmabuf: "
					     : "The driver refuses a dmabuf with PCIe mapping: ",
			   g->library->error(error));
		return false;
	}
	m->dmabuf_fd = g->memories[g->n - 1].fd = fd;
	return true;
}

int gpu_memory(struct gpu *g, size_t size, unsigned way, struct report *r, struct wire_memory *ret)
{
	struct wire_memory m = { .size = size,
				 .dmabuf_fd = -1,
				 .name = g->name,
				 .fill = fill,
				 .verify = verify,
				 .owner = g };
	size_t room = (size + GRAIN - 1) / GRAIN * GRAIN;
	unsigned n = 0;

	if (g->library->enter(g->device, &g->context))
		return -EIO;
	for (enum way w = 0; w < WAY_MAX; w++) {
		if (!is_offered(g, w, r) || n++ < way)
			continue;
		if (!m.address && allocate(g, room, r, &m.address) < 0)
			return -ENOMEM;
		if (export(g, w, room, r, &m)) {
			*ret = m;
			return 0;
		}
	}
	if (way == 0)
		report_finding(r, OUTCOME_BROKEN, "gpu-no-way", g->name,
			       "No NIC can be given memory of this GPU: no dmabuf, no peer memory");
	return -ENOTSUP;
}
