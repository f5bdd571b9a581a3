/*
 * GPUDirect Storage: a file is read into a GPU's memory by the image's cuFile, and the statistics
 * of nvidia-fs tell whether its bytes went there directly or through the host's memory, which
 * cuFile does without a word (compatibility mode).
 */
#ifndef RAILMATE_PROBE_GDS_H
#define RAILMATE_PROBE_GDS_H

struct report;
struct sysroot;

/* bdf: a GPU as told. path: absolute, of a regular file; at most its first 64 MiB are read, and
 * compared with what read() gives. 0, or a negative errno; all of it is in the report. */
int gds_check(const struct sysroot *root, const char *bdf, const char *path, struct report *r);

#endif
