/* Shared by the files of the room. */
#ifndef RAILMATE_GRANT_GRANT_INTERNAL_H
#define RAILMATE_GRANT_GRANT_INTERNAL_H

#include "grant/records.h"
#include "grant/grant.h"
#include "grant/rundir.h"

/* False: its container is not known yet, or nothing in it is a VF of ours. */
bool grant_claims_of_map(const struct item *map, struct claims *ret, struct arena *arena);

/* --- rundir.c --- */

/* The path on the host, for a mount; rundir NULL: as it is by default. */
const char *grant_rundir_path(const char *rundir, const char *vf, struct arena *a);
/* The directory exists from now on. */
int grant_rundir_make(const char *rundir, const char *vf, struct err *err);
/* Replaces these files, making the directory if it is not there. On failure some may have been
 * replaced. */
int grant_rundir_write(const char *rundir, const char *vf, const struct rundir_file *files,
		       size_t n, struct err *err);
/* Removes the directories of VFs that are not needed. */
void grant_rundir_sweep(const char *rundir, bool (*needs)(void *ctx, const char *vf), void *ctx);
/* Every file of this name in the directories, its text until the return. False: some could not be
 * read, which may pass. */
bool grant_rundir_each(const char *rundir, const char *name,
		       void (*found)(void *ctx, const char *path, const char *text), void *ctx);

#endif
