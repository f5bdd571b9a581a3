/*
 * libcuda, libamdhip64 (with libhsa-runtime64) and libcufile in one, as far as cmd/railmate-probe
 * asks them: the real ones answer only on a node with a GPU. Its memory is a memfd's, which stands
 * in for a dmabuf, too. The errors to be given stand in FAKE_GPU, a call a word:
 *
 *   init=803  find=101  allocate=2  export=801  pcie=1  copy=719
 *   dmabuf=0  peer=0 (attributes)
 *   cufile=5001  read=5022  flip=1 (a byte)
 *
 * Each read by cuFile writes the statistics of nvidia-fs into the file FAKE_NVFS, if that is set.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long devptr;

int cuInit(unsigned flags);
int cuDeviceGetByPCIBusId(int *device, const char *bdf);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(devptr *memory, size_t size);
int cuMemFree_v2(devptr memory);
int cuMemcpyHtoD_v2(devptr to, const void *from, size_t n);
int cuMemcpyDtoH_v2(void *to, devptr from, size_t n);
int cuMemGetHandleForAddressRange(void *handle, devptr memory, size_t size, int type,
				  unsigned long long flags);
int cuGetErrorString(int code, const char **text);
int hipInit(unsigned flags);
int hipDeviceGetByPCIBusId(int *device, const char *bdf);
int hipSetDevice(int device);
int hipMalloc(void **memory, size_t size);
int hipFree(void *memory);
int hipMemcpy(void *to, const void *from, size_t n, int kind);
const char *hipGetErrorString(int code);
int hsa_amd_portable_export_dmabuf(const void *memory, size_t size, int *fd, uint64_t *offset);
int hsa_status_string(int code, const char **text);

struct cufile_error {
	int error, cuda;
};
struct cufile_file {
	int type;
	union {
		int fd;
		void *pointer;
	} handle;
	const void *operations;
};
struct cufile_error cuFileDriverOpen(void);
struct cufile_error cuFileDriverClose(void);
struct cufile_error cuFileHandleRegister(void **handle, struct cufile_file *file);
void cuFileHandleDeregister(void *handle);
ssize_t cuFileRead(void *handle, void *gpu, size_t n, off_t from, off_t to);

/* The number behind "name=" in FAKE_GPU. */
static int told(const char *name, int otherwise)
{
	const char *at = getenv("FAKE_GPU");
	size_t n = strlen(name);

	for (; at && *at; at += strcspn(at, " "), at += *at == ' ') {
		if (!strncmp(at, name, n) && at[n] == '=')
			return atoi(at + n + 1);
	}
	return otherwise;
}

static struct {
	void *at;
	size_t size;
	int fd;
} memory[64];
static void *current; /* a call without a context is an error, as in the real one */

static int find(const char *bdf, int *device)
{
	*device = 3;
	return strlen(bdf) == 12 ? told("find", 0) : 101;
}

static int allocate(void **ret, size_t size)
{
	int i = 0;

	if (!current || told("allocate", 0))
		return current ? told("allocate", 0) : 201;
	while (memory[i].at)
		i++;
	memory[i].fd = memfd_create("fakegpu", MFD_CLOEXEC);
	if (memory[i].fd < 0 || ftruncate(memory[i].fd, (off_t)size) < 0)
		abort();
	memory[i].size = size;
	*ret = memory[i].at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory[i].fd, 0);
	return 0;
}

static int release(void *at)
{
	for (int i = 0; i < 64; i++) {
		if (memory[i].at != at)
			continue;
		munmap(at, memory[i].size);
		close(memory[i].fd);
		memory[i].at = NULL;
		return 0;
	}
	abort();
}

static int copy(void *to, const void *from, size_t n)
{
	if (told("copy", 0))
		return told("copy", 0);
	memcpy(to, from, n);
	return 0;
}

static int export(const void *at, size_t size, int *fd)
{
	if (told("export", 0))
		return told("export", 0);
	for (int i = 0; i < 64; i++) {
		if (memory[i].at == at && memory[i].size == size) {
			*fd = dup(memory[i].fd);
			return 0;
		}
	}
	return 1;
}

int cuInit(unsigned flags)
{
	return flags ? 1 : told("init", 0);
}

int cuDeviceGetByPCIBusId(int *device, const char *bdf)
{
	return find(bdf, device);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = attribute == 124 ? told("dmabuf", 1) : attribute == 116 ? told("peer", 1) : 0;
	return device == 3 ? 0 : 101;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &current;
	return device == 3 ? 0 : 101;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	return device == 3 ? 0 : 101;
}

int cuCtxSetCurrent(void *context)
{
	current = context;
	return 0;
}

int cuMemAlloc_v2(devptr *ret, size_t size)
{
	void *at = NULL;
	int r = allocate(&at, size);

	*ret = (uintptr_t)at;
	return r;
}

int cuMemFree_v2(devptr at)
{
	return release((void *)(uintptr_t)at);
}

int cuMemcpyHtoD_v2(devptr to, const void *from, size_t n)
{
	return copy((void *)(uintptr_t)to, from, n);
}

int cuMemcpyDtoH_v2(void *to, devptr from, size_t n)
{
	return copy(to, (void *)(uintptr_t)from, n);
}

int cuMemGetHandleForAddressRange(void *handle, devptr at, size_t size, int type,
				  unsigned long long flags)
{
	if (type != 1 || size % 65536)
		return 1;
	return flags && told("pcie", 0) ? told("pcie", 0)
					: export((void *)(uintptr_t)at, size, handle);
}

int cuGetErrorString(int code, const char **text)
{
	*text = code == 2 ? "out of memory" : "an error of the fake";
	return 0;
}

int hipInit(unsigned flags)
{
	return flags ? 1 : told("init", 0);
}

int hipDeviceGetByPCIBusId(int *device, const char *bdf)
{
	return find(bdf, device);
}

int hipSetDevice(int device)
{
	current = &current;
	return device == 3 ? 0 : 101;
}

int hipMalloc(void **ret, size_t size)
{
	return allocate(ret, size);
}

int hipFree(void *at)
{
	return release(at);
}

int hipMemcpy(void *to, const void *from, size_t n, int kind)
{
	return kind == 1 || kind == 2 ? copy(to, from, n) : 21;
}

const char *hipGetErrorString(int code)
{
	return code == 2 ? "out of memory" : "an error of the fake";
}

int hsa_amd_portable_export_dmabuf(const void *at, size_t size, int *fd, uint64_t *offset)
{
	*offset = 0;
	return export(at, size, fd);
}

int hsa_status_string(int code, const char **text)
{
	*text = code == 0x1000 ? "HSA_STATUS_ERROR" : "?";
	return 0;
}

struct cufile_error cuFileDriverOpen(void)
{
	return (struct cufile_error) { told("cufile", 0), 0 };
}

struct cufile_error cuFileDriverClose(void)
{
	return (struct cufile_error) { 0, 0 };
}

struct cufile_error cuFileHandleRegister(void **handle, struct cufile_file *file)
{
	*handle = (void *)(intptr_t)(file->handle.fd + 1);
	return (struct cufile_error) { file->type == 1 ? 0 : 5022, 0 };
}

void cuFileHandleDeregister(void *handle)
{
	if (!handle)
		abort();
}

ssize_t cuFileRead(void *handle, void *gpu, size_t n, off_t from, off_t to)
{
	const char *stats = getenv("FAKE_NVFS");
	FILE *f = stats ? fopen(stats, "w") : NULL;

	if (f && fputs("IO stats: Enabled\nReads : n=8 ok=8 err=0 readMiB=1\n", f) >= 0)
		fclose(f);
	if (told("read", 0))
		return -told("read", 0);
	n = (size_t)pread((int)(intptr_t)handle - 1, (char *)gpu + to, n, from);
	*(char *)gpu ^= (char)told("flip", 0);
	return (ssize_t)n;
}
