/*
 * The directories that containers see as /run/railmate, on the host <run-dir>/vf-<lowest PCI
 * address of an allocation>: made, filled and removed. The run directory is other people's too (the
 * control socket, the node's topology files): only names of this form are ours. It is small and in
 * memory: files are written whole under another name and renamed, nothing is synced. A link in the
 * place of a directory or a file is never followed. On the rpc thread.
 *
 * rundir: its path, absolute, the same on the host. It may come and go: nothing is kept open.
 */
#ifndef RAILMATE_GRANT_RUNDIR_H
#define RAILMATE_GRANT_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNDIR_DEFAULT "/run/railmate"
/* In each of them: an empty directory, over which the probe's folder can be mounted, for a mount
 * cannot make it on what is read-only; and the name of that folder in the state directory. */
#define RUNDIR_PROBE  "probe"
#define PROBE_PROGRAM "railmate-probe"

struct rundir_file {
	const char *name;
	const char *text; /* NULL: it is removed */
	/* Instead of text: a file of the run directory, by name, that becomes a link to it or a
	 * copy */
	const char *same;
};

/* Is there such a file in the run directory itself? */
bool grant_rundir_has(const char *rundir, const char *name);

#endif
