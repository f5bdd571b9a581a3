/*
 * Files that are written whole: under a temporary name beside their own, then renamed. A reader
 * sees the old text or the new one, never a part of it, and on failure the old one stays and
 * nothing is left beside it.
 */
#ifndef RAILMATE_BASE_FILE_H
#define RAILMATE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

struct file_new {
	int dir; /* an open directory that the names are relative to; AT_FDCWD: they are paths */
	const char *dir_name; /* the directory's name in sentences; NULL: files' names do */
	const char *name;     /* a link in its place is replaced, never followed */
	/* In the same directory; a killed process's file is replaced, a directory is an error */
	const char *temporary;
	mode_t mode;   /* exactly this, by any umask */
	bool synced;   /* on the disk before it has its name */
	bool only_new; /* -EEXIST where the name is taken: of two writers at once, one gets it */
};

/*
 * Writes the file, and is one sentence with the file's name where it cannot (a full disk, no such
 * directory). The directory itself is not synced: for a name that has to outlive a power cut call
 * file_sync_dir().
 */
int file_write(const struct file_new *f, const void *data, size_t len, struct err *err);
/* Files made, renamed or removed in the directory are on the disk. name: for the sentence. */
int file_sync_dir(int dir, const char *name, struct err *err);
/* Makes the directory and those above it; mode: of the directory itself. */
int file_make_dirs(const char *path, mode_t mode, struct err *err);
/*
 * Does this path lie in the image of the container that we run in (an overlay, the same file system
 * as its root), so that no other container is ever shown it? Decided by the nearest directory that
 * exists. root: "/", but in tests.
 */
bool file_is_in_image(const char *root, const char *path);

#endif
