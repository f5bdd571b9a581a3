/*
 * A capture in progress: paths below the root in, lines out. What is not there is left out.
 * capture.c has what is taken as it is, capture_pci.c what is taken of a PCI function in part,
 * capture_lldp.c the neighbours.
 */
#ifndef RAILMATE_HOSTTREE_CAPTURE_INTERNAL_H
#define RAILMATE_HOSTTREE_CAPTURE_INTERNAL_H

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

/* The first max bytes of a file, behind what *ret has; nothing is written down. */
int capture_bytes(const struct sysroot *root, const char *path, size_t max, struct strbuf *ret);
void capture_file(struct capture *c, const char *path, enum scrub_kind scrub);
/* What is in a directory, in order. */
void capture_names(const struct capture *c, const char *path, struct names *ret);

void capture_function(struct capture *c, const char *dir);
void capture_neighbors(struct capture *c);

#endif
