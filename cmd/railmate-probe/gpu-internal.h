/*
 * The libraries of the GPUs' makers behind one set of calls, loaded at run time. Errors are a
 * library's own numbers, 0: none.
 */
#ifndef RAILMATE_PROBE_GPU_INTERNAL_H
#define RAILMATE_PROBE_GPU_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum gpu_maker { GPU_NVIDIA, GPU_AMD };
struct gpu_maker_facts {
	const char *const *libraries;	 /* for dlopen(), NULL at the end */
	const char *const *peer_modules; /* below /; any of them there: peer memory */
	const char *visible;		 /* the variable that hides GPUs */
};
extern const struct gpu_maker_facts gpu_makers[];

/* Its library, which is never closed: it has threads of its own. 0 or -ENOSYS, with the loader's
 * word. */
int gpu_load(enum gpu_maker m, struct arena *a, const char **why);
int gpu_find(enum gpu_maker m, const char *bdf, int *device); /* starts the library, too */
/* From here on the calls mean this device. context: NULL at first, then its own. */
int gpu_enter(enum gpu_maker m, int device, void **context);
void gpu_leave(enum gpu_maker m, int device);
int gpu_allocate(enum gpu_maker m, size_t size, void **memory);
void gpu_free(enum gpu_maker m, void *memory);
int gpu_copy(enum gpu_maker m, void *to, const void *from, size_t n, bool to_gpu);
/* Does the driver offer dmabufs with the mapping by PCIe, dmabufs, memory that peers may reach? */
bool gpu_has_dmabuf(enum gpu_maker m, int device, bool pcie);
bool gpu_has_peer(enum gpu_maker m, int device);
int gpu_export(enum gpu_maker m, void *memory, size_t size, bool pcie, int *fd, uint64_t *offset);
const char *gpu_error(enum gpu_maker m, int code);

#endif
