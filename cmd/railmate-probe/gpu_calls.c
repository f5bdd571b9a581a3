/*
 * libcuda and libamdhip64 with libhsa-runtime64. Declarations are our own. Sources: NVIDIA's CUDA
 * Driver API reference (cuda.h); AMD's HIP runtime API reference (hip_runtime_api.h) and ROCR's
 * hsa_ext_amd.h. Names are those of the library: cuda.h makes cuMemAlloc_v2 of cuMemAlloc.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/mem.h"
#include "gpu-internal.h"

/* enum CUdevice_attribute, CUpointer_attribute, CUmemRangeHandleType, CUmemRangeFlags (of 12.8) of
 * cuda.h; enum hipMemcpyKind of hip_runtime_api.h; hsa_status_t of hsa.h begins at 0x1000. */
enum {
	CUDA_GPU_DIRECT_RDMA_SUPPORTED = 116,
	CUDA_DMA_BUF_SUPPORTED = 124,
	CUDA_POINTER_SYNC_MEMOPS = 6,
	CUDA_HANDLE_DMA_BUF_FD = 1,
	CUDA_FLAG_PCIE = 1,
	HIP_HOST_TO_DEVICE = 1,
	HIP_DEVICE_TO_HOST = 2,
	HSA_STATUS_ERROR = 0x1000,
};

const struct gpu_maker_facts gpu_makers[] = {
	/* Beside the loader's own folders: where GKE's and older toolkits mount it. */
	[GPU_NVIDIA] = { (const char *const[]) { "libcuda.so.1",
						 "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
						 "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
						 "/usr/lib64/libcuda.so.1",
						 "/usr/local/nvidia/lib64/libcuda.so.1", NULL },
			 (const char *const[]) { "sys/module/nvidia_peermem",
						 "sys/kernel/mm/memory_peers/nv_mem", NULL },
			 "CUDA_VISIBLE_DEVICES" },
	[GPU_AMD] = { (const char *const[]) { "libamdhip64.so.7", "libamdhip64.so.6",
					      "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so",
					      NULL },
		      (const char *const[]) { "sys/kernel/mm/memory_peers/amdkfd",
					      "sys/memory_peers/amdkfd", NULL },
		      "HIP_VISIBLE_DEVICES" },
};

/* CUDA's addresses of GPU memory are numbers of 64 bits, HIP's are pointers. */
static_assert(sizeof(void *) == sizeof(unsigned long long), "an address is no CUdeviceptr");

static struct calls {
	int (*init)(unsigned flags);
	int (*by_bus_id)(int *device, const char *bdf);
	int (*allocate)(void **memory, size_t size);
	int (*free)(void *memory);
	/* CUDA's */
	int (*attribute)(int *value, int attribute, int device);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*set_context)(void *context);
	int (*to_gpu)(void *to, const void *from, size_t n);
	int (*from_gpu)(void *to, const void *from, size_t n);
	int (*set_attribute)(const void *value, int attribute, void *memory);
	int (*export)(void *handle, void *memory, size_t size, int type, unsigned long long flags);
	int (*cuda_error)(int code, const char **text);
	/* HIP's and ROCR's */
	int (*set_device)(int device);
	int (*copy)(void *to, const void *from, size_t n, int kind);
	const char *(*hip_error)(int code);
	int (*hsa_export)(const void *memory, size_t size, int *fd, uint64_t *offset);
	int (*hsa_error)(int code, const char **text);
} all_calls[2];

/* dlsym() looks into the libraries that libamdhip64 needs, too: libhsa-runtime64 is one. */
static const struct symbol {
	size_t offset;
	const char *names[2]; /* NULL: none there */
	bool optional;
} symbols[] = {
#define CALL(member) offsetof(struct calls, member)
	{ CALL(init), { "cuInit", "hipInit" }, false },
	{ CALL(by_bus_id), { "cuDeviceGetByPCIBusId", "hipDeviceGetByPCIBusId" }, false },
	{ CALL(allocate), { "cuMemAlloc_v2", "hipMalloc" }, false },
	{ CALL(free), { "cuMemFree_v2", "hipFree" }, false },
	{ CALL(attribute), { "cuDeviceGetAttribute", NULL }, false },
	{ CALL(retain), { "cuDevicePrimaryCtxRetain", NULL }, false },
	{ CALL(release), { "cuDevicePrimaryCtxRelease_v2", NULL }, false },
	{ CALL(set_context), { "cuCtxSetCurrent", NULL }, false },
	{ CALL(to_gpu), { "cuMemcpyHtoD_v2", NULL }, false },
	{ CALL(from_gpu), { "cuMemcpyDtoH_v2", NULL }, false },
	{ CALL(set_attribute), { "cuPointerSetAttribute", NULL }, true },
	{ CALL(export), { "cuMemGetHandleForAddressRange", NULL }, true }, /* since 11.7 */
	{ CALL(cuda_error), { "cuGetErrorString", NULL }, true },
	{ CALL(set_device), { NULL, "hipSetDevice" }, false },
	{ CALL(copy), { NULL, "hipMemcpy" }, false },
	{ CALL(hip_error), { NULL, "hipGetErrorString" }, false },
	{ CALL(hsa_export), { NULL, "hsa_amd_portable_export_dmabuf" }, true },
	{ CALL(hsa_error), { NULL, "hsa_status_string" }, true },
#undef CALL
};

int gpu_load(enum gpu_maker m, struct arena *a, const char **why)
{
	const char *const *names = gpu_makers[m].libraries;
	void *lib = dlopen(names[0], RTLD_NOW);

	if (!lib)
		*why = arena_strdup(a, dlerror());
	for (size_t i = 1; !lib && names[i]; i++)
		lib = dlopen(names[i], RTLD_NOW);
	for (size_t i = 0; lib && i < ARRAY_LEN(symbols); i++) {
		const char *name = symbols[i].names[m];
		void *symbol = name ? dlsym(lib, name) : NULL;

		*(void **)((char *)&all_calls[m] + symbols[i].offset) = symbol;
		if (name && !symbol && !symbols[i].optional) {
			*why = arena_printf(a, "%s has no %s", names[0], name);
			return -ENOSYS;
		}
	}
	return lib ? 0 : -ENOSYS;
}

int gpu_find(enum gpu_maker m, const char *bdf, int *device)
{
	int r = all_calls[m].init(0);

	return r ? r : all_calls[m].by_bus_id(device, bdf);
}

int gpu_enter(enum gpu_maker m, int device, void **context)
{
	const struct calls *c = &all_calls[m];
	int r;

	if (m == GPU_AMD)
		return c->set_device(device);
	r = *context ? 0 : c->retain(context, device);
	return r ? r : c->set_context(*context);
}

void gpu_leave(enum gpu_maker m, int device)
{
	if (m == GPU_AMD)
		return;
	all_calls[m].set_context(NULL);
	all_calls[m].release(device);
}

int gpu_allocate(enum gpu_maker m, size_t size, void **memory)
{
	const unsigned on = 1; /* a copy has ended before a NIC reads */
	int r = all_calls[m].allocate(memory, size);

	if (r == 0 && all_calls[m].set_attribute)
		all_calls[m].set_attribute(&on, CUDA_POINTER_SYNC_MEMOPS, *memory);
	return r;
}

void gpu_free(enum gpu_maker m, void *memory)
{
	all_calls[m].free(memory);
}

int gpu_copy(enum gpu_maker m, void *to, const void *from, size_t n, bool to_gpu)
{
	const struct calls *c = &all_calls[m];

	if (m == GPU_AMD)
		return c->copy(to, from, n, to_gpu ? HIP_HOST_TO_DEVICE : HIP_DEVICE_TO_HOST);
	return to_gpu ? c->to_gpu(to, from, n) : c->from_gpu(to, from, n);
}

static bool has(enum gpu_maker m, int attribute, int device)
{
	int value = 0;

	return all_calls[m].attribute(&value, attribute, device) == 0 && value;
}

bool gpu_has_dmabuf(enum gpu_maker m, int device, bool pcie)
{
	if (m == GPU_AMD)
		return all_calls[m].hsa_export && !pcie;
	return all_calls[m].export && has(m, CUDA_DMA_BUF_SUPPORTED, device);
}

bool gpu_has_peer(enum gpu_maker m, int device)
{
	return m == GPU_AMD || has(m, CUDA_GPU_DIRECT_RDMA_SUPPORTED, device);
}

int gpu_export(enum gpu_maker m, void *memory, size_t size, bool pcie, int *fd, uint64_t *offset)
{
	*offset = 0;
	if (m == GPU_AMD)
		return all_calls[m].hsa_export(memory, size, fd, offset);
	return all_calls[m].export(fd, memory, size, CUDA_HANDLE_DMA_BUF_FD,
				   pcie ? CUDA_FLAG_PCIE : 0);
}

const char *gpu_error(enum gpu_maker m, int code)
{
	const struct calls *c = &all_calls[m];
	const char *text = NULL;

	if (m == GPU_AMD && code < HSA_STATUS_ERROR)
		text = c->hip_error(code);
	else if (m == GPU_AMD && c->hsa_error)
		c->hsa_error(code, &text);
	else if (c->cuda_error)
		c->cuda_error(code, &text);
	return text ? text : "unknown error";
}
