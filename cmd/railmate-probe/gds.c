/*
 * One file by cuFile. Declarations are our own; source: NVIDIA's cuFile API reference (cufile.h),
 * and for /proc/driver/nvidia-fs/stats its GPUDirect Storage troubleshooting guide.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "gds.h"
#include "gpu.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "wire.h"

#define READ_MAX ((size_t)64 << 20)
#define BLOCK	 ((size_t)4096) /* of O_DIRECT */

struct cufile_error {
	int error, cuda; /* 0: none; cuFile's own begin at 5001 */
};
struct cufile_file {
	int type; /* CU_FILE_HANDLE_TYPE_OPAQUE_FD */
	union {
		int fd;
		void *pointer;
	} handle;
	const void *operations;
};
enum { CUFILE_OPAQUE_FD = 1 };

struct cufile {
	struct cufile_error (*open)(void);
	struct cufile_error (*close)(void);
	struct cufile_error (*take)(void **handle, struct cufile_file *file);
	void (*drop)(void *handle);
	ssize_t (*read)(void *handle, void *gpu, size_t n, off_t from, off_t to);
};

static int load(const char *path, struct report *r, struct cufile *ret)
{
	void *lib = dlopen("libcufile.so.0", RTLD_NOW);
	const char *why = lib ? NULL : arena_strdup(r->arena, dlerror());

	if (!lib)
		lib = dlopen("/usr/local/cuda/lib64/libcufile.so.0", RTLD_NOW);
	if (lib) {
		*(void **)&ret->open = dlsym(lib, "cuFileDriverOpen");
		*(void **)&ret->close = dlsym(lib, "cuFileDriverClose");
		*(void **)&ret->take = dlsym(lib, "cuFileHandleRegister");
		*(void **)&ret->drop = dlsym(lib, "cuFileHandleDeregister");
		*(void **)&ret->read = dlsym(lib, "cuFileRead");
		if (ret->open && ret->close && ret->take && ret->drop && ret->read)
			return 0;
	}
	report_finding(r, OUTCOME_NOT_MEASURED, "gds-library", path,
		       "It cannot be read by cuFile: %s", why ? why : "functions are missing");
	return -ENOSYS;
}

/* --- nvidia-fs --- */

enum { NO_DRIVER = -1, NO_STATISTICS = -2 };

/* Reads that it has done: "Reads : n=12 ok=12 err=0 readMiB=768 …"; without n and ok where its
 * statistics are off. */
static int64_t direct_reads(const struct sysroot *root, struct arena *a)
{
	char *text = arena_alloc(a, 1 << 16), *ok;
	int n = sysroot_read(root, text, 1 << 16, "proc/driver/nvidia-fs/stats");
	const char *at = text;

	if (n < 0)
		return NO_DRIVER;
	while (at && !str_starts(at, "Reads"))
		at = str_next_line(at);
	ok = at ? strstr(at, " ok=") : NULL;
	return ok && ok < at + strcspn(at, "\n") ? (int64_t)strtoull(ok + 4, NULL, 10)
						 : NO_STATISTICS;
}

static void judge(const char *path, int64_t before, int64_t after, double gbps, struct report *r)
{
	if (before == NO_DRIVER || after == NO_DRIVER)
		report_finding(
			r, OUTCOME_NOT_MEASURED, "gds-driver", path,
			"Read at %.2f GB/s; nvidia-fs is not loaded, so who copied the bytes is not known",
			gbps);
	else if (before == NO_STATISTICS || after == NO_STATISTICS)
		report_finding(r, OUTCOME_NOT_MEASURED, "gds-statistics", path,
			       "Read at %.2f GB/s; the statistics of nvidia-fs are off", gbps);
	else if (after > before)
		report_finding(
			r, OUTCOME_GOOD, "gds-direct", path,
			"Read at %.2f GB/s directly into the GPU, in %lld reads of nvidia-fs, which counts all of its node",
			gbps, (long long)(after - before));
	else
		report_finding(r, OUTCOME_SLOW, "gds-compatible", path,
			       "Read at %.2f GB/s through the host's memory: nvidia-fs did no read",
			       gbps);
}

/* --- the file --- */

/* Some file systems refuse O_DIRECT; cuFile then reads by its compatibility mode. */
static int open_file(const struct sysroot *root, const char *path, struct report *r, size_t *size)
{
	int fd = sysroot_openat(root, O_RDONLY | O_DIRECT, "%s", path);
	struct stat st;

	if (fd == -EINVAL)
		fd = sysroot_openat(root, O_RDONLY, "%s", path);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)BLOCK) {
		report_finding(r, OUTCOME_NOT_MEASURED, "gds-file", path, "It cannot be read: %s",
			       fd < 0 ? strerror(-fd) : "no regular file of 4 KiB or more");
		if (fd >= 0)
			close(fd);
		return fd < 0 ? fd : -EINVAL;
	}
	*size = (uint64_t)st.st_size < READ_MAX ? (size_t)st.st_size / BLOCK * BLOCK : READ_MAX;
	return fd;
}

/* The bytes that came against those that read() gives. */
static int compare(const struct sysroot *root, const char *path, const struct wire_memory *m,
		   struct report *r)
{
	_cleanup_free_ char *expected = xcalloc(1, m->size), *seen = xcalloc(1, m->size);
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY, "%s", path);
	size_t done = 0;
	ssize_t n = 1;

	while (fd >= 0 && done < m->size && n > 0) {
		n = read(fd, expected + done, m->size - done);
		done += n > 0 ? (size_t)n : 0;
	}
	if (done < m->size || gpu_read(m, seen) < 0) {
		report_finding(r, OUTCOME_NOT_MEASURED, done < m->size ? "gds-file" : "memory-copy",
			       path, "Its bytes cannot be compared with those in the GPU's memory");
		return -EIO;
	}
	if (memcmp(expected, seen, done) == 0)
		return 0;
	report_finding(r, OUTCOME_BROKEN, "gds-bytes", path,
		       "The bytes in the GPU's memory are not those of the file");
	return -EILSEQ;
}

static int fail(const char *path, const char *call, struct cufile_error e, struct report *r)
{
	report_finding(r, OUTCOME_NOT_MEASURED, "gds-cufile", path,
		       "%s fails: cuFile error %d, CUDA error %d", call, e.error, e.cuda);
	return -EIO;
}

/* The driver is open: one read. */
static int read_file(const struct cufile *c, const struct sysroot *root, const char *path, int fd,
		     const struct wire_memory *m, struct report *r)
{
	struct cufile_file file = { .type = CUFILE_OPAQUE_FD, .handle = { .fd = fd } };
	int64_t before = direct_reads(root, r->arena), after;
	struct timespec from, to;
	struct cufile_error e;
	void *handle = NULL;
	ssize_t n;
	int error;

	e = c->take(&handle, &file);
	if (e.error)
		return fail(path, "cuFileHandleRegister", e, r);
	clock_gettime(CLOCK_MONOTONIC, &from);
	n = c->read(handle, m->address, m->size, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	c->drop(handle);
	if (n != (ssize_t)m->size) /* -1: errno, else its own error, negative */
		return fail(path, "cuFileRead",
			    (struct cufile_error) { n == -1 ? errno : (int)-n, 0 }, r);
	after = direct_reads(root, r->arena);
	error = compare(root, path, m, r);
	if (error < 0)
		return error;
	judge(path, before, after,
	      (double)n / ((double)(to.tv_sec - from.tv_sec) * 1e9 +
			   (double)(to.tv_nsec - from.tv_nsec) + 1),
	      r);
	return 0;
}

int gds_check(const struct sysroot *root, const char *bdf, const char *path, struct report *r)
{
	struct gpu *g = NULL;
	struct wire_memory m;
	struct cufile_error e;
	struct cufile c;
	size_t size;
	int fd = open_file(root, path, r, &size), error = fd;

	if (fd < 0)
		return error;
	error = gpu_open(root, bdf, r, &g);
	if (!error)
		error = gpu_buffer(g, size, r, &m);
	if (!error)
		error = load(path, r, &c);
	if (!error) {
		e = c.open();
		error = e.error ? fail(path, "cuFileDriverOpen", e, r)
				: read_file(&c, root, path, fd, &m, r);
		if (!e.error)
			c.close();
	}
	gpu_close(g);
	close(fd);
	return error;
}
