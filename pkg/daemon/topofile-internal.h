/*
 * The topology files below the run directory, which containers are shown (render/topofile.h):
 * there while some pool of the node wants them, whole at any moment.
 */
#ifndef RAILMATE_DAEMON_TOPOFILE_INTERNAL_H
#define RAILMATE_DAEMON_TOPOFILE_INTERNAL_H

struct node;

/* Brings the files to the node's state: written if they differ, removed if no pool needs them.
 * Changes are logged. dir NULL: nothing. */
void topofile_keep(const char *dir, const struct node *node);

#endif
