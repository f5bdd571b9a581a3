#include "draw/draw.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "draw/draw-internal.h"
#include "hw/inventory.h"
#include "topo/hints.h"
#include "topo/topo.h"

#define FRAME_PAD  10
#define WIRE_UP	   7  /* the wires of a row above its boxes */
#define WIRE_RIGHT 14 /* where they meet a box */
#define PODS_MAX   48 /* pods that the list below the machine names */

/* --- the boxes around them --- */

static void count_tiles(const struct picture *p, const struct box *b, size_t n[3])
{
	for (const struct box *kid = b->kids; kid; kid = kid->next) {
		n[0] += kid->kind == BOX_GPU;
		n[1] += kid->kind == BOX_NIC;
		n[2] += kid->kind == BOX_NIC ? (size_t)p->n_vfs[kid->id] : 0;
		count_tiles(p, kid, n);
	}
}

static const char *counts(const struct picture *p, const size_t n[3])
{
	return arena_printf(p->arena, "%s, %s, %s", picture_plural(p, n[0], "GPU"),
			    picture_plural(p, n[1], "NIC"), picture_plural(p, n[2], "VF"));
}

/* What it is, and its picture_address where it has one. */
static const char *box_name(const struct picture *p, const struct box *b, const char **ret_address)
{
	const struct hw_pci *f = b->kind == BOX_HOST ? &p->in->inv->pci[b->id] : NULL;

	if (b->kind == BOX_PORT || b->kind == BOX_SWITCH)
		*ret_address = picture_address(p, b->id);
	else if (f && f->has_root)
		*ret_address = arena_printf(p->arena, "pci%04x:%02x", (unsigned)f->root_domain,
					    f->root_bus);
	switch (b->kind) {
	case BOX_NUMA:
		return b->id < 0 ? "NUMA node not known"
				 : arena_printf(p->arena, "NUMA node %d", b->id);
	case BOX_HOST:
		return f->has_root ? "Host bridge" : "Host bridge not known";
	case BOX_PORT:
		return "Root port";
	case BOX_SWITCH:
		return b->port >= 0 ? "PCIe switch" : "Switch";
	default:
		return "PCIe switch, hidden";
	}
}

static void put_frame(struct strbuf *out, const struct picture *p, const struct box *b)
{
	static const char *const classes[] = { [BOX_NUMA] = "numa",
					       [BOX_HOST] = "host",
					       [BOX_PORT] = "port",
					       [BOX_SWITCH] = "switch",
					       [BOX_HIDDEN] = "switch" };
	const char *more = NULL, *name = box_name(p, b, &more);
	size_t n[3] = { 0 };

	count_tiles(p, b, n);
	svg_rect(out, classes[b->kind], b->x, b->y, b->w, b->h, 6);
	draw_line(out, b, FRAME_PAD, name, b->kind == BOX_NUMA ? counts(p, n) : more);
	if (b->kind == BOX_SWITCH && b->port >= 0)
		svg_text(out, b->x + b->w - FRAME_PAD, b->y + 34, STYLE_SMALL, ANCHOR_END,
			 b->w - 2 * FRAME_PAD, NULL,
			 arena_printf(p->arena, "root port %s", picture_address(p, b->port)));
}

static void put_wires(struct strbuf *out, const struct box *b)
{
	int trunk = b->x + 8, top = b->y + head_height(b) - 3, end = top;

	for (const struct box *kid = b->kids; kid; kid = kid->next) {
		int y = kid->y - WIRE_UP;

		strbuf_printf(out, "<path d=\"M%d %dH%dV%d\" class=\"wire\"/>\n", trunk, y,
			      kid->x + WIRE_RIGHT, kid->y);
		end = y > end ? y : end;
	}
	strbuf_printf(out, "<path d=\"M%d %dV%d\" class=\"wire\"/>\n", trunk, top, end);
}

static void put_box(struct strbuf *out, const struct picture *p, struct box *box)
{
	const struct box *b = box_shown(box);

	strbuf_puts(out, "<g>\n");
	if (box_is_tile(b)) {
		draw_tile(out, p, b);
	} else {
		put_frame(out, p, b);
		put_wires(out, b);
		for (struct box *kid = b->kids; kid; kid = kid->next)
			put_box(out, p, kid);
	}
	strbuf_puts(out, "</g>\n");
}

/* --- above and below the machine --- */

/* The name of all GPUs, if they have the same one. */
static const char *common_name(const struct draw_in *in)
{
	const char *name = in->inv->n_gpu ? in->gpu_names[0] : NULL;

	for (size_t g = 1; name && g < in->inv->n_gpu; g++)
		name = str_eq(in->gpu_names[g], name) ? name : NULL;
	return name;
}

static const char *summary(const struct picture *p)
{
	const char *name = common_name(p->in), *text, *gpus;
	size_t n[3] = { 0 };

	for (const struct box *b = p->numa; b; b = b->next)
		count_tiles(p, b, n);
	gpus = picture_plural(p, n[0], "GPU");
	if (name)
		gpus = arena_printf(p->arena, "%s (%s)", gpus, name);
	text = arena_printf(p->arena, "%s, %s, %s", gpus, picture_plural(p, n[1], "NIC"),
			    picture_plural(p, n[2], "VF"));
	if (p->in->holds_known)
		text = arena_printf(p->arena, "%s, %zu held", text, p->in->n_holds);
	return text;
}

static int put_head(struct strbuf *out, const struct picture *p)
{
	const struct topo_hints *hints = topo_hints_used(p->in->topo);
	int y = PAGE_MARGIN + 16, max = p->width - 2 * PAGE_MARGIN;

	svg_text(out, PAGE_MARGIN, y, STYLE_TITLE, ANCHOR_START, max, NULL, summary(p));
	if (!topo_flattened_vm(p->in->topo))
		return y + 14;
	svg_text(
		out, PAGE_MARGIN, y += 20, STYLE_TEXT, ANCHOR_START, max, NULL,
		hints ? arena_printf(
				p->arena,
				"This virtual machine hides its PCIe switches; they are known from %s.",
				hints->source)
		      : "This virtual machine hides its PCIe switches: the real distances are not known.");
	return y + 14;
}

struct key {
	const char *class, *text;
};

static int put_key(struct strbuf *out, const struct picture *p, int y)
{
	const struct key keys[] = {
		{ "gpu", "GPU" },
		{ "nic", "NIC with VFs" },
		{ "idle", "NIC without" },
		{ "free", p->in->holds_known ? "free VF" : "VF" },
		{ "none", "VF without RDMA device" },
		{ p->n_pods ? "p0" : NULL, "VF that a pod holds, and GPU of that pod" },
	};
	int x = PAGE_MARGIN;

	for (size_t i = 0; i < ARRAY_LEN(keys) && keys[i].class; i++) {
		int w = CELL_STEP + svg_width(STYLE_SMALL, keys[i].text) + 14;

		if (x + w > p->width - PAGE_MARGIN + 14) {
			x = PAGE_MARGIN;
			y += CELL_STEP + 1;
		}
		svg_rect(out, keys[i].class, x, y - 12, CELL, CELL, 3);
		svg_text(out, x + CELL_STEP + 2, y, STYLE_SMALL, ANCHOR_START, w, NULL,
			 keys[i].text);
		x += w;
	}
	return y + 20;
}

static int put_classes(struct strbuf *out, const struct picture *p, int y)
{
	static const char *const meaning[TOPO_CLASS_MAX] = {
		[TOPO_PIX] = "one PCIe switch",	     [TOPO_PXB] = "several switches",
		[TOPO_PHB] = "the same host bridge", [TOPO_NODE] = "the same NUMA node",
		[TOPO_SYS] = "another NUMA node",
	};
	int x = PAGE_MARGIN;

	for (int c = TOPO_PIX; c < TOPO_CLASS_MAX; c++) {
		const char *word = topo_class_name((enum topo_class)c);
		int w = svg_width(STYLE_TEXT, word) + 6,
		    w2 = svg_width(STYLE_SMALL, meaning[c]) + 12;

		if (x + w + w2 > p->width - PAGE_MARGIN) {
			x = PAGE_MARGIN;
			y += LINE_HEIGHT;
		}
		svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, w, draw_path_class[c], word);
		svg_text(out, x + w, y, STYLE_SMALL, ANCHOR_START, w2, NULL, meaning[c]);
		x += w + w2;
	}
	return y + 14;
}

static const char *gpus_of(const struct picture *p, const struct pod *pod)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	for (size_t g = 0; g < p->in->inv->n_gpu; g++) {
		if (pod->gpus[g])
			strbuf_printf(&text, "%s%zu", text.len ? ", " : "; GPU ", g);
	}
	return arena_strdup(p->arena, strbuf_str(&text));
}

static int widest_name(const struct picture *p, size_t n, int max)
{
	int widest = 0;

	for (size_t i = 0; i < n; i++) {
		int w = svg_width(STYLE_TEXT, picture_pod_name(p, i));

		widest = w > widest ? w : widest;
	}
	return widest < max ? widest : max;
}

/* One line a pod: who, how many VFs, which GPUs. */
static int put_pods(struct strbuf *out, const struct picture *p, int y)
{
	size_t n = p->n_pods < PODS_MAX ? p->n_pods : PODS_MAX;
	int x = PAGE_MARGIN + CELL_STEP + 2, right = p->width - PAGE_MARGIN;
	int w = widest_name(p, n, (right - x) * 2 / 3);

	for (size_t i = 0; i < n; i++, y += CELL_STEP + 1) {
		const struct pod *pod = &p->pods[i];

		draw_badge(out, p, i, PAGE_MARGIN, y - 12);
		svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, w, NULL, picture_pod_name(p, i));
		svg_text(out, x + w + 12, y, STYLE_SMALL, ANCHOR_START, right - x - w - 12, NULL,
			 arena_printf(p->arena, "%s%s%s", picture_plural(p, pod->n_vfs, "VF"),
				      gpus_of(p, pod),
				      pod->first->draining ? "; draining: the pod is gone" : ""));
	}
	if (p->n_pods > n) {
		svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, right - x, NULL,
			 arena_printf(p->arena, "and %s",
				      picture_plural(p, p->n_pods - n, "other pod")));
		y += CELL_STEP + 1;
	}
	return y - 8;
}

void draw_svg(const struct draw_in *in, struct strbuf *out)
{
	_cleanup_arena_ struct arena *arena = arena_new(64 * 1024);
	_cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
	struct picture p = { .in = in, .arena = arena };
	int y;

	picture_fill(&p);
	y = picture_layout(&p, PAGE_MARGIN + 30 + (topo_flattened_vm(in->topo) ? 20 : 0));
	put_head(&body, &p);
	for (struct box *b = p.numa; b; b = b->next)
		put_box(&body, &p, b);
	y = put_key(&body, &p, y + 26);
	y = put_classes(&body, &p, y);
	if (p.n_pods)
		y = put_pods(&body, &p, y + 14);
	svg_begin(out, p.width, y + PAGE_MARGIN - 10, summary(&p));
	strbuf_add(out, strbuf_str(&body), body.len);
	svg_end(out);
}
