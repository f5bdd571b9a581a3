/*
 * Files below a root directory, so that a directory is a machine. Absolute links inside the tree
 * are resolved within it (openat2 RESOLVE_IN_ROOT, with a fallback for kernels and seccomp profiles
 * without openat2). Paths are relative ("sys/bus/pci/devices"), printf-style. Any thread.
 */
#ifndef RAILMATE_SYSROOT_SYSROOT_H
#define RAILMATE_SYSROOT_SYSROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct sysroot;

int sysroot_open(const char *path, struct sysroot **ret, struct err *err);
void sysroot_close(struct sysroot *root); /* NULL is fine */
const char *sysroot_path(const struct sysroot *root);
bool sysroot_is_live(
	const struct sysroot *root); /* really "/": netlink, /dev and system libraries make sense */

/* Whole file, NUL-terminated, trailing newline cut; length, or -errno (-EFBIG when it does not fit:
 * never cut short). */
int sysroot_read(const struct sysroot *root, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int sysroot_read_u64(const struct sysroot *root, int base, uint64_t *ret, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Last component of a link's target; 0 or -errno. */
int sysroot_link_name(const struct sysroot *root, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool sysroot_exists(const struct sysroot *root, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* fn for each entry but . and ..; stops at fn's first non-zero return and returns it. -errno if the
 * directory cannot be opened. */
int sysroot_each(const struct sysroot *root, const char *dir,
		 int (*fn)(void *arg, const char *name), void *arg);
/* A descriptor of the file that fmt names (O_CLOEXEC), or -errno. */
int sysroot_openat(const struct sysroot *root, int flags, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
