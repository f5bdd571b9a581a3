#include "draw/draw.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "draw/draw-internal.h"
#include "hw/inventory.h"
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

/* Its kind, its address or its contents, and the wires to its kids. */
static void put_frame(struct strbuf *out, const struct picture *p, const struct box *b)
{
	static const struct {
		const char *class, *name;
	} kinds[] = {
		[BOX_NUMA] = { "numa", "NUMA node not known" },
		[BOX_HOST] = { "host", "Host bridge not known" },
		[BOX_PORT] = { "port", "Root port" },
		[BOX_SWITCH] = { "switch", "Switch" },
		[BOX_HIDDEN] = { "switch", "PCIe switch, hidden" },
	};
	int trunk = b->x + 8, top = b->y + head_height(b) - 3, end = top;
	const struct hw_pci *f = b->kind == BOX_HOST ? &p->in->inv->pci[b->id] : NULL;
	const char *more = NULL, *name = kinds[b->kind].name;
	size_t n[3] = { 0 };

	if (b->kind == BOX_NUMA) {
		if (b->id >= 0)
			name = arena_printf(p->arena, "NUMA node %d", b->id);
		count_tiles(p, b, n);
		more = arena_printf(p->arena, "%s, %s, %s", picture_plural(p, n[0], "GPU"),
				    picture_plural(p, n[1], "NIC"), picture_plural(p, n[2], "VF"));
	} else if (b->kind == BOX_PORT || b->kind == BOX_SWITCH) {
		more = picture_address(p, b->id);
		if (b->kind == BOX_SWITCH && b->port >= 0)
			name = "PCIe switch";
	} else if (f && f->has_root) {
		name = "Host bridge";
		more = arena_printf(p->arena, "pci%04x:%02x", (unsigned)f->root_domain,
				    f->root_bus);
	}
	svg_rect(out, kinds[b->kind].class, b->x, b->y, b->w, b->h, 6);
	draw_line(out, b, FRAME_PAD, name, more);
	if (b->kind == BOX_SWITCH && b->port >= 0)
		svg_text(out, b->x + b->w - FRAME_PAD, b->y + 34, STYLE_SMALL, ANCHOR_END,
			 b->w - 2 * FRAME_PAD, NULL,
			 arena_printf(p->arena, "root port %s", picture_address(p, b->port)));
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
		for (struct box *kid = b->kids; kid; kid = kid->next)
			put_box(out, p, kid);
	}
	strbuf_puts(out, "</g>\n");
}

/* --- above and below the machine --- */

struct key {
	const char *class, *text;
};

static int put_key(struct strbuf *out, const struct picture *p, int y)
{
	const struct key keys[] = {
		{ "gpu", "GPU" },
		{ "nic", "NIC with VFs" },
		{ "idle", "NIC without VFs" },
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
	static const char *const meaning[TOPO_CLASS_MAX + 1] = {
		[TOPO_PIX] = "one PCIe switch",	     [TOPO_PXB] = "several switches",
		[TOPO_PHB] = "the same host bridge", [TOPO_NODE] = "the same NUMA node",
		[TOPO_SYS] = "another NUMA node",    [TOPO_CLASS_MAX] = "by data direct",
	};
	bool direct = false;
	int x = PAGE_MARGIN;

	for (size_t i = 0; i < p->in->inv->n_card; i++)
		direct = direct || p->in->inv->card[i].direct >= 0;
	/* One more where a GPU's tile has the mark. */
	for (int c = TOPO_PIX; c < TOPO_CLASS_MAX + direct; c++) {
		const char *word = c < TOPO_CLASS_MAX ? topo_class_name((enum topo_class)c) : "*";
		int w = svg_width(STYLE_TEXT, word) + 6,
		    w2 = svg_width(STYLE_SMALL, meaning[c]) + 12;

		if (x + w + w2 > p->width - PAGE_MARGIN) {
			x = PAGE_MARGIN;
			y += LINE_HEIGHT;
		}
		svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, w,
			 c < TOPO_CLASS_MAX ? draw_path_class[c] : NULL, word);
		svg_text(out, x + w, y, STYLE_SMALL, ANCHOR_START, w2, NULL, meaning[c]);
		x += w + w2;
	}
	return y + 14;
}

/* One line a pod: who, how many VFs, which GPUs. */
static int put_pods(struct strbuf *out, const struct picture *p, int y)
{
	size_t n = p->n_pods < PODS_MAX ? p->n_pods : PODS_MAX;
	int x = PAGE_MARGIN + CELL_STEP + 2, right = p->width - PAGE_MARGIN;
	int w = 0, w_max = (right - x) * 2 / 3;

	for (size_t i = 0; i < n && w < w_max; i++) {
		int name = svg_width(STYLE_TEXT, picture_pod_name(p, i));

		w = name > w ? name : w;
	}
	w = w < w_max ? w : w_max;
	for (size_t i = 0; i < n; i++, y += CELL_STEP + 1) {
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
		const struct pod *pod = &p->pods[i];
		const char *separator = "; GPU ";

		strbuf_puts(&text, picture_plural(p, pod->n_vfs, "VF"));
		for (size_t g = 0; g < p->in->inv->n_gpu; g++) {
			if (pod->gpus[g]) {
				strbuf_printf(&text, "%s%zu", separator, g);
				separator = ", ";
			}
		}
		strbuf_puts(&text, pod->first->draining ? "; draining" : "");
		draw_badge(out, p, i, PAGE_MARGIN, y - 12);
		svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, w, NULL, picture_pod_name(p, i));
		svg_text(out, x + w + 12, y, STYLE_SMALL, ANCHOR_START, right - x - w - 12, NULL,
			 strbuf_str(&text));
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
	const struct topo_hints *hints = topo_hints_used(in->topo);
	const char *note =
		"This virtual machine hides its PCIe switches: the real distances are not known.";
	const char *name = in->inv->n_gpu ? in->gpu_names[0] : NULL, *title;
	bool flat = topo_flattened_vm(in->topo);
	size_t n[3] = { 0 };
	int y, max;

	picture_fill(&p);
	y = picture_layout(&p, PAGE_MARGIN + 30 + (flat ? 20 : 0));
	max = p.width - 2 * PAGE_MARGIN;
	/* With the name of all GPUs, if they have the same one. */
	for (size_t g = 1; name && g < in->inv->n_gpu; g++)
		name = str_eq(in->gpu_names[g], name) ? name : NULL;
	for (const struct box *b = p.numa; b; b = b->next)
		count_tiles(&p, b, n);
	title = picture_plural(&p, n[0], "GPU");
	if (name)
		title = arena_printf(arena, "%s (%s)", title, name);
	title = arena_printf(arena, "%s, %s, %s", title, picture_plural(&p, n[1], "NIC"),
			     picture_plural(&p, n[2], "VF"));
	if (in->holds_known)
		title = arena_printf(arena, "%s, %zu held", title, in->n_holds);
	svg_text(&body, PAGE_MARGIN, PAGE_MARGIN + 16, STYLE_TITLE, ANCHOR_START, max, NULL, title);
	if (hints)
		note = arena_printf(
			arena,
			"This virtual machine hides its PCIe switches; they are known from %s.",
			hints->source);
	if (flat)
		svg_text(&body, PAGE_MARGIN, PAGE_MARGIN + 36, STYLE_TEXT, ANCHOR_START, max, NULL,
			 note);
	for (struct box *b = p.numa; b; b = b->next)
		put_box(&body, &p, b);
	y = put_key(&body, &p, y + 26);
	y = put_classes(&body, &p, y);
	if (p.n_pods)
		y = put_pods(&body, &p, y + 14);
	svg_begin(out, p.width, y + PAGE_MARGIN - 10, title);
	strbuf_add(out, strbuf_str(&body), body.len);
	svg_end(out);
}
