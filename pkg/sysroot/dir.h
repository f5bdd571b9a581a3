/*
 * Directories held open. A scan of two thousand functions is a hundred thousand system calls, so
 * each directory is resolved once and its files are opened by their short name beside it. Names
 * below a held directory are opened without following links (O_NOFOLLOW), which keeps them inside
 * the root at no cost; only where that finds a link does the path go through the root again.
 */
#ifndef RAILMATE_SYSROOT_DIR_H
#define RAILMATE_SYSROOT_DIR_H

#include <stdbool.h>
#include <stddef.h>

struct sysroot;

struct dir {
	const struct sysroot *root;
	const struct dir *up; /* NULL: name is a path below the root */
	const char *name;     /* borrowed */
	int fd;
};
#define DIR_CLOSED                                                                                 \
	{                                                                                          \
		NULL, NULL, NULL, -1                                                               \
	}

/* The path as a sentence names it: no leading slash. Cut short if it does not fit. */
void dir_path(const struct dir *d, char *buf, size_t size);

int dir_open_path(const struct sysroot *root, const char *path, struct dir *ret);
int dir_open(const struct dir *up, const char *name,
	     struct dir *ret); /* up and name must outlive ret */
void dir_close(const struct dir *d);
#define _cleanup_dir_ __attribute__((cleanup(dir_close)))

int dir_openat(const struct dir *d, const char *name, int flags);
/* As sysroot_read(), for a small attribute: one read(). */
int dir_read(const struct dir *d, const char *name, char *buf, size_t size);
/* The text of a link, whole; its length or -errno (-EINVAL: not a link). */
int dir_link(const struct dir *d, const char *name, char *buf, size_t size);
int dir_link_name(const struct dir *d, const char *name, char *buf, size_t size);
/* Once: another listing of the same open directory would go on where this one ended. */
int dir_each(const struct dir *d, int (*fn)(void *arg, const char *name), void *arg);

/* One path component, not . or .. */
bool dir_is_name(const char *name);

/* Entries of a directory in name order. */
struct names {
	char **v;
	size_t n, cap;
};
#define NAMES_EMPTY                                                                                \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

void names_done(struct names *names);
#define _cleanup_names_ __attribute__((cleanup(names_done)))
void names_add(struct names *names, const char *name);
void names_sort(struct names *names);
int names_of(const struct dir *d, struct names *ret);
int names_below(const struct dir *up, const char *sub, struct names *ret);

#endif
