/*
 * Memory of a GPU, by the library of the container's image, loaded at run time: libcuda.so.1, or
 * libamdhip64 with libhsa-runtime64. Exported as dmabuf (with CUDA's PCIe-mapping flag where the
 * driver knows it), else an address that nvidia_peermem or the AMD driver registers. Findings name
 * the way that worked, and why the others did not.
 */
#ifndef RAILMATE_PROBE_GPU_H
#define RAILMATE_PROBE_GPU_H

#include <stddef.h>

struct report;
struct sysroot;
struct wire_device;
struct wire_memory;
struct gpu; /* one GPU that is open */

/* bdf: the GPU as told. root: for /sys. -ENOSYS: no GPU library in this image (finding gpu-library,
 * report.no_gpu_library); -ENODEV: the library does not see this GPU. */
int gpu_open(const struct sysroot *root, const char *bdf, struct report *r, struct gpu **ret);
void gpu_close(struct gpu *g); /* NULL is fine; frees its memory */
/* The best way first: data direct (where a VF of this GPU has it), dmabuf with the PCIe mapping,
 * dmabuf, peer memory. `way` 0 is the best one that the library offers; the caller comes again with
 * way + 1 where the registration failed. -ENOTSUP: no way is left; a finding where there was none
 * at all. The memory lives until gpu_close. */
int gpu_memory(struct gpu *g, size_t size, unsigned way, struct report *r, struct wire_memory *ret);
/* Memory without a way to a NIC, and what is in any. */
int gpu_buffer(struct gpu *g, size_t size, struct report *r, struct wire_memory *ret);
int gpu_read(const struct wire_memory *m, void *to);

/*
 * gpu_memory() by the first way that the device registers, too: gpu_direct.c. gpu: its address,
 * hca: the device's name, for findings, of which one tells the way, or that there is none
 * (-ENOTSUP). way: for more memory of that kind.
 */
int gpu_direct(struct gpu *g, const char *gpu, struct wire_device *d, const char *hca, size_t size,
	       unsigned *way, struct report *r, struct wire_memory *ret);

#endif
