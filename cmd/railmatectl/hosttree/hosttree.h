/*
 * host.tree: a machine as text, sorted, one entry a line.
 *   d PATH              directory (only empty ones need a line)
 *   f PATH = VALUE      regular file, text; \n \\ \xNN escapes
 *   x PATH = HEX        regular file, binary
 *   l PATH -> TARGET    symbolic link
 * Paths are relative to the root ("sys/bus/pci/devices/…"). A file line whose content ends in one
 * newline is written with that newline as \n: the text is exact.
 */
#ifndef RAILMATE_HOSTTREE_HOSTTREE_H
#define RAILMATE_HOSTTREE_HOSTTREE_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct strbuf;
struct sysroot;

/* Write the files that discovery may read below root into out. scrub replaces GUIDs, GIDs, MACs,
 * serials, GPU UUIDs and host names by stable made-up ones. */
int hosttree_capture(const struct sysroot *root, bool scrub, struct strbuf *out, struct err *err);
/* Materialise text below dir, which must exist and be empty. A line that names a path outside dir,
 * or cannot be parsed, is refused with its number before anything is written. */
int hosttree_unpack(const char *text, size_t len, const char *dir, struct err *err);

#endif
