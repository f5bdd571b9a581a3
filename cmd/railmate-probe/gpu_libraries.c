/*
 * libcuda and libamdhip64. Declarations are our own. Sources: NVIDIA's CUDA Driver API reference
 * (cuda.h: "Initialization", "Primary Context Management", "Memory Management"); AMD's HIP runtime
 * API reference (hip_runtime_api.h) and ROCR's hsa_ext_amd.h. dlsym() finds a version by its name:
 * cuda.h maps cuMemAlloc to cuMemAlloc_v2, and so on.
 */
#include <dlfcn.h>
#include <errno.h>

#include "base/mem.h"
#include "gpu-internal.h"

/* The functions of a library, each where its pointer lies. */
struct function {
	void *pointer;
	const char *name;
	bool optional;
};

static int load_functions(void *lib, const struct function *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *symbol = dlsym(lib, f[i].name);

		if (!symbol && !f[i].optional)
			return -ENOSYS;
		*(void **)f[i].pointer = symbol;
	}
	return 0;
}

/* --- CUDA --- */

/* enum CUdevice_attribute, CUpointer_attribute, CUmemRangeHandleType, CUmemRangeFlags of cuda.h;
 * the flag is of CUDA 12.8. */
enum {
	CUDA_GPU_DIRECT_RDMA_SUPPORTED = 116,
	CUDA_DMA_BUF_SUPPORTED = 124,
	CUDA_POINTER_SYNC_MEMOPS = 6,
	CUDA_HANDLE_DMA_BUF_FD = 1,
	CUDA_FLAG_PCIE = 1,
};

static struct {
	int (*init)(unsigned flags);
	int (*by_bus_id)(int *device, const char *bdf);
	int (*attribute)(int *value, int attribute, int device);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*set_current)(void *context);
	int (*allocate)(unsigned long long *memory, size_t size);
	int (*free)(unsigned long long memory);
	int (*to_gpu)(unsigned long long to, const void *from, size_t n);
	int (*from_gpu)(void *to, unsigned long long from, size_t n);
	int (*set_attribute)(const void *value, int attribute, unsigned long long memory);
	int (*export)(void *handle, unsigned long long memory, size_t size, int type,
		      unsigned long long flags); /* since 11.7 */
	int (*error)(int code, const char **text);
} cuda;

static int cuda_load(void *lib)
{
	const struct function functions[] = {
		{ &cuda.init, "cuInit", false },
		{ &cuda.by_bus_id, "cuDeviceGetByPCIBusId", false },
		{ &cuda.attribute, "cuDeviceGetAttribute", false },
		{ &cuda.retain, "cuDevicePrimaryCtxRetain", false },
		{ &cuda.release, "cuDevicePrimaryCtxRelease_v2", false },
		{ &cuda.set_current, "cuCtxSetCurrent", false },
		{ &cuda.allocate, "cuMemAlloc_v2", false },
		{ &cuda.free, "cuMemFree_v2", false },
		{ &cuda.to_gpu, "cuMemcpyHtoD_v2", false },
		{ &cuda.from_gpu, "cuMemcpyDtoH_v2", false },
		{ &cuda.set_attribute, "cuPointerSetAttribute", true },
		{ &cuda.export, "cuMemGetHandleForAddressRange", true },
		{ &cuda.error, "cuGetErrorString", true },
	};

	return load_functions(lib, functions, ARRAY_LEN(functions));
}

static int cuda_start(void)
{
	return cuda.init(0);
}

static int cuda_find(const char *bdf, int *device)
{
	return cuda.by_bus_id(device, bdf);
}

static int cuda_enter(int device, void **context)
{
	int r = *context ? 0 : cuda.retain(context, device);

	return r ? r : cuda.set_current(*context);
}

static void cuda_leave(int device)
{
	cuda.set_current(NULL);
	cuda.release(device);
}

static int cuda_allocate(size_t size, void **memory)
{
	const unsigned on = 1; /* a copy has ended before a NIC reads */
	unsigned long long p;
	int r = cuda.allocate(&p, size);

	if (r)
		return r;
	if (cuda.set_attribute)
		cuda.set_attribute(&on, CUDA_POINTER_SYNC_MEMOPS, p);
	*memory = (void *)(uintptr_t)p;
	return 0;
}

static void cuda_free(void *memory)
{
	cuda.free((uintptr_t)memory);
}

static int cuda_copy(void *to, const void *from, size_t n, bool to_gpu)
{
	return to_gpu ? cuda.to_gpu((uintptr_t)to, from, n) : cuda.from_gpu(to, (uintptr_t)from, n);
}

static bool cuda_has(int attribute, int device)
{
	int value = 0;

	return cuda.attribute(&value, attribute, device) == 0 && value;
}

static bool cuda_has_dmabuf(int device)
{
	return cuda.export && cuda_has(CUDA_DMA_BUF_SUPPORTED, device);
}

static bool cuda_has_peer(int device)
{
	return cuda_has(CUDA_GPU_DIRECT_RDMA_SUPPORTED, device);
}

static int cuda_export(void *memory, size_t size, bool pcie, int *fd, uint64_t *offset)
{
	*offset = 0;
	return cuda.export(fd, (uintptr_t)memory, size, CUDA_HANDLE_DMA_BUF_FD,
			   pcie ? CUDA_FLAG_PCIE : 0);
}

static const char *cuda_error(int code)
{
	const char *text = NULL;

	return cuda.error && cuda.error(code, &text) == 0 && text ? text : "unknown error";
}

const struct gpu_library gpu_cuda = {
	/* Beside the loader's own folders: where GKE's and older toolkits mount it. */
	.names = (const char *const[]) { "libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
					 "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
					 "/usr/lib64/libcuda.so.1",
					 "/usr/local/nvidia/lib64/libcuda.so.1", NULL },
	.peer_modules = (const char *const[]) { "sys/module/nvidia_peermem",
						"sys/kernel/mm/memory_peers/nv_mem", NULL },
	.visible = "CUDA_VISIBLE_DEVICES",
	.has_pcie_mapping = true,
	.load = cuda_load,
	.start = cuda_start,
	.find = cuda_find,
	.enter = cuda_enter,
	.leave = cuda_leave,
	.allocate = cuda_allocate,
	.free = cuda_free,
	.copy = cuda_copy,
	.has_dmabuf = cuda_has_dmabuf,
	.has_peer = cuda_has_peer,
	.export = cuda_export,
	.error = cuda_error,
};

/* --- HIP --- */

/* enum hipMemcpyKind of hip_runtime_api.h. */
enum { HIP_HOST_TO_DEVICE = 1, HIP_DEVICE_TO_HOST = 2 };
#define HSA_ERROR 0x1000 /* hsa_status_t begins there (hsa.h), hipError_t ends before it */

static struct {
	int (*init)(unsigned flags);
	int (*by_bus_id)(int *device, const char *bdf);
	int (*set_device)(int device);
	int (*allocate)(void **memory, size_t size);
	int (*free)(void *memory);
	int (*copy)(void *to, const void *from, size_t n, int kind);
	const char *(*error)(int code);
	int (*export)(const void *memory, size_t size, int *fd, uint64_t *offset);
	int (*hsa_error)(int code, const char **text);
} hip;

/* dlsym() looks into the libraries that libamdhip64 needs, too: libhsa-runtime64 is one. */
static int hip_load(void *lib)
{
	const struct function functions[] = {
		{ &hip.init, "hipInit", false },
		{ &hip.by_bus_id, "hipDeviceGetByPCIBusId", false },
		{ &hip.set_device, "hipSetDevice", false },
		{ &hip.allocate, "hipMalloc", false },
		{ &hip.free, "hipFree", false },
		{ &hip.copy, "hipMemcpy", false },
		{ &hip.error, "hipGetErrorString", false },
		{ &hip.export, "hsa_amd_portable_export_dmabuf", true },
		{ &hip.hsa_error, "hsa_status_string", true },
	};

	return load_functions(lib, functions, ARRAY_LEN(functions));
}

static int hip_start(void)
{
	return hip.init(0);
}

static int hip_find(const char *bdf, int *device)
{
	return hip.by_bus_id(device, bdf);
}

static int hip_enter(int device, void **context)
{
	(void)context;
	return hip.set_device(device);
}

static void hip_leave(int device)
{
	(void)device;
}

static int hip_allocate(size_t size, void **memory)
{
	return hip.allocate(memory, size);
}

static void hip_free(void *memory)
{
	hip.free(memory);
}

static int hip_copy(void *to, const void *from, size_t n, bool to_gpu)
{
	return hip.copy(to, from, n, to_gpu ? HIP_HOST_TO_DEVICE : HIP_DEVICE_TO_HOST);
}

static bool hip_has_dmabuf(int device)
{
	(void)device;
	return hip.export != NULL;
}

static bool hip_has_peer(int device)
{
	(void)device;
	return true; /* the modules decide */
}

static int hip_export(void *memory, size_t size, bool pcie, int *fd, uint64_t *offset)
{
	(void)pcie;
	return hip.export(memory, size, fd, offset);
}

static const char *hip_error(int code)
{
	const char *text = NULL;

	if (code < HSA_ERROR)
		text = hip.error(code);
	else if (hip.hsa_error)
		hip.hsa_error(code, &text);
	return text ? text : "unknown error";
}

const struct gpu_library gpu_hip = {
	.names = (const char *const[]) { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
					 "/opt/rocm/lib/libamdhip64.so", NULL },
	.peer_modules = (const char *const[]) { "sys/kernel/mm/memory_peers/amdkfd",
						"sys/memory_peers/amdkfd", NULL },
	.visible = "HIP_VISIBLE_DEVICES",
	.load = hip_load,
	.start = hip_start,
	.find = hip_find,
	.enter = hip_enter,
	.leave = hip_leave,
	.allocate = hip_allocate,
	.free = hip_free,
	.copy = hip_copy,
	.has_dmabuf = hip_has_dmabuf,
	.has_peer = hip_has_peer,
	.export = hip_export,
	.error = hip_error,
};
