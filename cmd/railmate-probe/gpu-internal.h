/* The libraries of GPUs' makers, behind one table of functions. Errors are the library's own
 * numbers, 0: none. */
#ifndef RAILMATE_PROBE_GPU_INTERNAL_H
#define RAILMATE_PROBE_GPU_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_library {
	const char *const *names;	 /* for dlopen(), NULL at the end */
	const char *const *peer_modules; /* below /, any of them there: peer memory */
	const char *visible;		 /* the variable that hides GPUs */
	bool has_pcie_mapping;
	int (*load)(void *lib); /* 0, or -ENOSYS: it lacks functions */
	int (*start)(void);
	int (*find)(const char *bdf, int *device);
	int (*enter)(int device, void **context); /* from here on its calls mean this device */
	void (*leave)(int device);
	int (*allocate)(size_t size, void **memory);
	void (*free)(void *memory);
	int (*copy)(void *to, const void *from, size_t n, bool to_gpu);
	/* Does the driver say that it exports dmabufs, and that peers may reach its memory? */
	bool (*has_dmabuf)(int device);
	bool (*has_peer)(int device);
	int (*export)(void *memory, size_t size, bool pcie, int *fd, uint64_t *offset);
	const char *(*error)(int code);
};
extern const struct gpu_library gpu_cuda, gpu_hip;

#endif
