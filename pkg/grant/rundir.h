/*
 * The directories that containers see as /run/railmate, on the host <run-dir>/vf-<lowest PCI
 * address of an allocation>: made, filled and removed. The run directory is other people's too (the
 * control socket, the node's topology files): only names of this form are ours. It is small and in
 * memory: files are written whole under another name and renamed, nothing is synced. A link in the
 * place of a directory or a file is never followed. On the rpc thread.
 */
#ifndef RAILMATE_GRANT_RUNDIR_H
#define RAILMATE_GRANT_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNDIR_DEFAULT "/run/railmate"

struct arena;
struct err;
struct rundir;

struct rundir_file {
	const char *name;
	const char *text; /* NULL: it is removed */
	const char *same; /* instead of text: a file of the run directory, by name, that becomes a
			     link to it or a copy */
};

/*
 * Does this path lie in the image of the container that we run in (an overlay, the same file system
 * as its root), so that no other container is ever shown it? root: "/", but in tests. The nearest
 * directory that exists tells.
 */
bool rundir_is_in_image(const char *root, const char *path);
/* path: absolute, the same on the host. Opens nothing yet: a run directory may come and go. */
struct rundir *rundir_new(const char *path);
void rundir_free(struct rundir *r); /* NULL is fine; the directories stay: containers use them */

/* The path on the host, for a mount. */
const char *rundir_path(const struct rundir *r, const char *vf, struct arena *a);
/* Is there such a file in the run directory itself? */
bool rundir_has(const struct rundir *r, const char *name);
/* The directory exists from now on. */
int rundir_make(struct rundir *r, const char *vf, struct err *err);
/* Replaces these files, making the directory if it is not there. On failure some may have been
 * replaced. */
int rundir_write(struct rundir *r, const char *vf, const struct rundir_file *files, size_t n,
		 struct err *err);
/* Removes the directories of VFs that are not needed. */
void rundir_sweep(struct rundir *r, bool (*needs)(void *ctx, const char *vf), void *ctx);
/* Every file of this name in the directories, its text until the return. False: some could not be
 * read, which may pass. */
bool rundir_each(struct rundir *r, const char *name,
		 void (*found)(void *ctx, const char *path, const char *text), void *ctx);

#endif
