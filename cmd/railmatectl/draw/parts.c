/* Shared by tiles, frames and the lists below them. */
#include <stdio.h>

#include "base/arena.h"
#include "base/str.h"
#include "draw/draw-internal.h"
#include "hw/inventory.h"
#include "topo/topo.h"

#define PALETTE 8

const char *const draw_path_class[TOPO_CLASS_MAX] = {
	[TOPO_SELF] = "pix", [TOPO_PIX] = "pix",   [TOPO_PXB] = "pxb",
	[TOPO_PHB] = "phb",  [TOPO_NODE] = "node", [TOPO_SYS] = "sys",
};

const char *picture_address(const struct picture *p, int pci)
{
	return hw_pci_address(p->in->inv, pci, p->arena);
}

const char *picture_plural(const struct picture *p, size_t n, const char *what)
{
	return arena_printf(p->arena, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

/* A cell with the letters of a pod. */
void draw_badge(struct strbuf *out, const struct picture *p, size_t pod, int x, int y)
{
	const char *text = p->pods[pod].label;
	char class[8];

	snprintf(class, sizeof(class), "p%zu", pod % PALETTE);
	svg_rect(out, class, x, y, CELL, CELL, 3);
	svg_text(out, x + CELL / 2, y + CELL - 4, text[1] ? STYLE_CELL_2 : STYLE_CELL,
		 ANCHOR_MIDDLE, 2 * CELL, NULL, text);
}

/* A name on the left, and its details on the right as far as there is room. */
void draw_line(struct strbuf *out, const struct box *b, int pad, const char *name, const char *more)
{
	int w = svg_width(STYLE_HEAD, name), max = b->w - 2 * pad;

	svg_text(out, b->x + pad, b->y + 19, STYLE_HEAD, ANCHOR_START, max, NULL, name);
	if (more)
		svg_text(out, b->x + b->w - pad, b->y + 19, STYLE_SMALL, ANCHOR_END, max - w - 4,
			 NULL, more);
}

const char *picture_pod_name(const struct picture *p, size_t pod)
{
	const struct draw_hold *h = p->pods[pod].first;

	if (!h->pod || !*h->pod)
		return "a pod that is not known yet";
	return h->ns && *h->ns ? arena_printf(p->arena, "%s/%s", h->ns, h->pod) : h->pod;
}
