/*
 * A capture in progress: paths below the root in, lines out. What is not there is left out.
 * capture.c has the machine and the classes, capture_pci.c the PCI functions,
 * capture_lldp.c the neighbours.
 */
#ifndef RAILMATE_HOSTTREE_CAPTURE_INTERNAL_H
#define RAILMATE_HOSTTREE_CAPTURE_INTERNAL_H

#include <limits.h>

#include "hosttree/hosttree-internal.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

#define CAPTURE_FILE_MAX 65536
#define CAPTURE_TEXT_MAX ((size_t)64 << 20)

struct capture {
	const struct sysroot *root;
	struct scrubber *scrubber; /* NULL: as it is */
	struct strbuf *out;
};

struct attribute {
	const char *name;
	enum scrub_kind scrub;
};

/* The first max bytes of a file, behind what *ret has; nothing is written down. */
int capture_bytes(const struct sysroot *root, const char *path, size_t max, struct strbuf *ret);
/* Files in the directory `dir`. */
void capture_files(struct capture *c, const char *dir, const struct attribute *files, size_t n);
/* False: it is not a link. */
bool capture_link(struct capture *c, const char *path, char target[PATH_MAX]);
/* The link or directory entry; its real path as a heap string, or NULL: it leads out. */
char *capture_entry(struct capture *c, const char *dir, const char *name);
/* What is in a directory, in order. */
void capture_names(const struct capture *c, const char *path, struct names *ret);

void capture_functions(struct capture *c);
void capture_neighbors(struct capture *c);
/* Of devices that are not a PCI function's, too. */
void capture_rdma(struct capture *c, const char *dir);
void capture_verbs(struct capture *c, const char *dir);

#endif
