/*
 * The probe on the host (grant/rundir.h): the program, its loader and its libraries, in
 * <state_dir>/probe, which containers are shown. Not in the run directory, whose file system often
 * forbids to execute.
 */
#ifndef RAILMATE_DAEMON_PROBEFILES_INTERNAL_H
#define RAILMATE_DAEMON_PROBEFILES_INTERNAL_H

/*
 * Copies the files of the folder from, where they differ: each is whole at any moment. The folder
 * that containers can be shown, malloc'ed; NULL: there is none. Changes and troubles are logged.
 * from NULL: nothing. state_dir NULL: there is no place for it.
 */
char *probefiles_keep(const char *from, const char *state_dir);

#endif
