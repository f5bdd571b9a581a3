/* Writing host.tree text: escapes, sorting, and the made-up values of a scrubbed capture. */
#ifndef RAILMATE_HOSTTREE_HOSTTREE_INTERNAL_H
#define RAILMATE_HOSTTREE_HOSTTREE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pci_conf;
struct strbuf;

/* Which made-up value takes the place of a file's text. */
enum scrub_kind {
	SCRUB_NOTHING,
	SCRUB_MAC,     /* 02:00:00:00:00:01 */
	SCRUB_GUID,    /* 0200:0000:0000:0001 */
	SCRUB_GID,     /* the subnet prefix stays, unless it is an address of its own */
	SCRUB_TEXT,    /* "scrubbed": free text, host names in it */
	SCRUB_NVIDIA,  /* the UUID lines of an information file */
	SCRUB_ROUTE,   /* gateways and networks of proc/net/route: default routes stay, without
			  gateway */
	SCRUB_CMDLINE, /* the kernel's: only words about PCI, IOMMU and memory stay */
	SCRUB_PARAMS,  /* of NVIDIA's driver: the lines with a number stay */
	SCRUB_CONFIG,  /* the Device Serial Number capability of a configuration space */

	/* Of these files only some lines are taken, scrubbed or not. */
	KEEP_KFD,    /* of AMD's GPUs: how they reach each other; other lines name the GPU */
	KEEP_CPU,    /* what the processor is, and whether there is a hypervisor */
	KEEP_TCLASS, /* what MLNX_OFED marks packets with; the lines below it name hosts */
};

/* Remembers what it replaced: equal originals get equal replacements within one capture. */
struct scrubber;
struct scrubber *scrubber_new(const char *host_name);
void scrubber_free(struct scrubber *s);
void scrubber_apply(struct scrubber *s, enum scrub_kind kind, struct strbuf *value);

/* One entry as a line, with its newline. A file that is not text is written as bytes. */
void line_file(struct strbuf *out, const char *path, const char *value, size_t len);
void line_bytes(struct strbuf *out, const char *path, const char *bytes, size_t len);
void line_link(struct strbuf *out, const char *path, const char *target);
void line_dir(struct strbuf *out, const char *path);
/* Sorted, once each, without directories that the paths below them make. */
void lines_sort(struct strbuf *text);

/* The parts of a configuration space that railmate reads, for a snapshot; empty when there are
 * none. */
void conf_excerpt(const struct pci_conf *conf, uint16_t vendor, uint16_t device,
		  struct strbuf *out);

#endif
