/*
 * A GPU's memory for a registration: which ways there are, the best first, and a finding for each
 * that there is not. The makers' libraries are behind gpu-internal.h.
 */
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

/* CUresult of cuda.h and hipError_t have the same numbers for these: no such device, or none that a
 * variable shows. */
enum { INVALID_VALUE = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101 };

enum way { WAY_DATA_DIRECT, WAY_DMABUF_PCIE, WAY_DMABUF, WAY_PEER, WAY_MAX };
static const char *const way_names[] = { "data direct", "dmabuf pcie", "dmabuf", "peer memory" };

struct gpu {
	enum gpu_maker maker;
	const char *name;
	int device;
	void *context;
	bool has_module;      /* for peer memory */
	bool absent[WAY_MAX]; /* not offered; its finding is made */
	struct {
		void *memory;
		int fd;
	} memories[MEMORIES_MAX];
	size_t n;
};

/* --- opening --- */

static enum gpu_maker maker_of(const struct sysroot *root, const char *bdf)
{
	uint64_t vendor;

	return sysroot_read_u64(root, 16, &vendor, "sys/bus/pci/devices/%s/vendor", bdf) == 0 &&
			       vendor == VENDOR_AMD
		       ? GPU_AMD
		       : GPU_NVIDIA;
}

static bool has_module(const struct sysroot *root, enum gpu_maker m)
{
	for (size_t i = 0; gpu_makers[m].peer_modules[i]; i++) {
		if (sysroot_exists(root, "%s", gpu_makers[m].peer_modules[i]))
			return true;
	}
	return false;
}

static int start(struct gpu *g, struct report *r)
{
	const struct gpu_maker_facts *f = &gpu_makers[g->maker];
	const char *visible = getenv(f->visible);
	int error = gpu_find(g->maker, g->name, &g->device);

	if (error == INVALID_VALUE || error == NO_DEVICE || error == INVALID_DEVICE) {
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-hidden", g->name,
			       "%s does not see this GPU: error %d, %s%s%s%s", f->libraries[0],
			       error, gpu_error(g->maker, error), visible ? "; " : "",
			       visible ? f->visible : "", visible ? " is set" : "");
		return -ENODEV;
	}
	if (!error)
		error = gpu_enter(g->maker, g->device, &g->context);
	if (error)
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-driver", g->name,
			       "%s does not start on it: error %d, %s", f->libraries[0], error,
			       gpu_error(g->maker, error));
	return error ? -ENODEV : 0;
}

int gpu_open(const struct sysroot *root, const char *bdf, struct report *r, struct gpu **ret)
{
	struct gpu g = { .maker = maker_of(root, bdf), .name = arena_strdup(r->arena, bdf) };
	const char *why;
	int error = gpu_load(g.maker, r->arena, &why);

	if (error) {
		r->no_gpu_library = true;
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-library", bdf,
			       "The GPU's memory cannot be reached: %s", why);
		return error;
	}
	error = start(&g, r);
	if (error)
		return error;
	g.has_module = has_module(root, g.maker);
	*ret = xcalloc(1, sizeof(**ret));
	**ret = g;
	return 0;
}

void gpu_close(struct gpu *g)
{
	if (!g)
		return;
	gpu_enter(g->maker, g->device, &g->context);
	for (size_t i = 0; i < g->n; i++) {
		closep(&g->memories[i].fd);
		gpu_free(g->maker, g->memories[i].memory);
	}
	gpu_leave(g->maker, g->device);
	free(g);
}

/* --- bytes --- */

static size_t room_of(size_t size)
{
	return (size + GRAIN - 1) / GRAIN * GRAIN;
}

static int copy(const struct wire_memory *m, void *host, bool to_gpu)
{
	struct gpu *g = m->owner;
	void *gpu = m->address;

	if (gpu_enter(g->maker, g->device, &g->context) ||
	    gpu_copy(g->maker, to_gpu ? gpu : host, to_gpu ? host : gpu, m->size, to_gpu))
		return -EIO;
	return 0;
}

int gpu_read(const struct wire_memory *m, void *to)
{
	return copy(m, to, false);
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
	return gpu_has_peer(g->maker, g->device) ||
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
	return gpu_has_dmabuf(g->maker, g->device, way != WAY_DMABUF) ||
	       (way == WAY_DMABUF && say_absent(g, way, "gpu-no-dmabuf", r,
						"The driver exports no dmabuf of this GPU", ""));
}

int gpu_buffer(struct gpu *g, size_t size, struct report *r, struct wire_memory *ret)
{
	struct wire_memory m = { .size = size,
				 .dmabuf_fd = -1,
				 .name = g->name,
				 .fill = fill,
				 .verify = verify,
				 .owner = g };
	int error = g->n == MEMORIES_MAX ? NO_MEMORY : gpu_enter(g->maker, g->device, &g->context);

	if (!error)
		error = gpu_allocate(g->maker, room_of(size), &m.address);
	if (error) {
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-memory", g->name,
			       "%zu bytes of it cannot be allocated: %s", size,
			       gpu_error(g->maker, error));
		return -ENOMEM;
	}
	g->memories[g->n].memory = m.address;
	g->memories[g->n++].fd = -1;
	*ret = m;
	return 0;
}

/* The last memory, by this way; false: the driver refuses it. */
static bool export(struct gpu *g, enum way way, size_t size, struct report *r,
		   struct wire_memory *m)
{
	const char *id;
	int fd = -1, error;

	m->way = way_names[way];
	m->data_direct = way == WAY_DATA_DIRECT;
	if (way == WAY_PEER)
		return true;
	error = gpu_export(g->maker, m->address, size, way != WAY_DMABUF, &fd, &m->dmabuf_offset);
	if (error || fd < 0) {
		id = way == WAY_DMABUF ? "gpu-no-dmabuf" : "gpu-no-pcie";
		return say_absent(g, way, error == NO_MEMORY ? "gpu-bar1" : id, r,
				  way == WAY_DMABUF
					  ? "The driver refuses to export a dmabuf: "
					  : "The driver refuses a dmabuf with PCIe mapping: ",
				  gpu_error(g->maker, error));
	}
	m->dmabuf_fd = g->memories[g->n - 1].fd = fd;
	return true;
}

int gpu_memory(struct gpu *g, size_t size, unsigned way, struct report *r, struct wire_memory *ret)
{
	struct wire_memory m = { .address = NULL };
	unsigned n = 0;

	for (enum way w = 0; w < WAY_MAX; w++) {
		if (!is_offered(g, w, r) || n++ < way)
			continue;
		if (!m.address && gpu_buffer(g, size, r, &m) < 0)
			return -ENOMEM;
		if (export(g, w, room_of(size), r, &m)) {
			*ret = m;
			return 0;
		}
	}
	if (way == 0)
		report_finding(r, OUTCOME_BROKEN, "gpu-no-way", g->name,
			       "No NIC can be given memory of this GPU: no dmabuf, no peer memory");
	return -ENOTSUP;
}
