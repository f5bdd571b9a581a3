/*
 * A machine as a picture, for eyes and for documents: SVG of the NUMA nodes, root ports and PCIe
 * switches with the GPUs, NICs and VFs below them, and the pods that hold VFs. Pure; equal input
 * gives equal bytes.
 *
 * The text is well-formed XML in ASCII, whatever the names are; it has no script and refers to
 * nothing outside of itself. At most 1000 wide, as high as the machine needs.
 */
#ifndef RAILMATE_DRAW_DRAW_H
#define RAILMATE_DRAW_DRAW_H

#include <stdbool.h>
#include <stddef.h>

struct hw_inventory;
struct strbuf;
struct topo;

/* A VF that a container holds. Pods are distinguished by ns, pod, uid and draining; NULL or "": not
 * known. */
struct draw_hold {
	const char *vf; /* PCI address */
	const char *ns, *pod, *uid;
	bool draining; /* its container does not need the VF any more, and something still uses it
			*/
	const char *const *gpus;
	size_t n_gpus; /* PCI addresses of the container's GPUs, as far as they are known */
};

struct draw_in {
	const struct hw_inventory *inv;
	const struct topo *topo;      /* with its hints */
	const char *const *gpu_names; /* one for each of inv->gpu */
	bool holds_known;	      /* false: holds could not be read, and no VF is called free */
	const struct draw_hold *holds;
	size_t n_holds;
};

void draw_svg(const struct draw_in *in, struct strbuf *out);

#endif
