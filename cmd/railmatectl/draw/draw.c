/* The boxes of a picture in SVG: GPUs, NICs with their VFs, frames around them, and the lists below
 * the machine. */
#include "draw/draw.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "draw/draw-internal.h"
#include "hw/inventory.h"
#include "topo/topo.h"

/* --- the little of SVG that a picture takes: a style sheet, and text that keeps to its place ---
 */

enum style { STYLE_TITLE, STYLE_HEAD, STYLE_TEXT, STYLE_SMALL, STYLE_CELL, STYLE_CELL_2 };
enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

static const struct {
	const char *class;
	int size;
	bool bold;
} styles[] = {
	[STYLE_TITLE] = { "title", 19, true }, [STYLE_HEAD] = { "head", 13, true },
	[STYLE_TEXT] = { "text", 12, false },  [STYLE_SMALL] = { "small", 11, false },
	[STYLE_CELL] = { "cell", 10, true },   [STYLE_CELL_2] = { "cell2", 8, true },
};

static const char sheet[] =
	"text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1f2933}"
	".title{font-size:19px;font-weight:bold}.head{font-size:13px;font-weight:bold}"
	".text{font-size:12px}.small{font-size:11px;fill:#52606d}"
	".cell,.cell2{font-size:10px;font-weight:bold;fill:#fff}.cell2{font-size:8px}"
	".numa{fill:#f3f5f8;stroke:#cbd2d9}.host{fill:none;stroke:#9aa5b1;stroke-dasharray:4 3}"
	".port{fill:#fff;stroke:#cbd2d9}.switch{fill:#fff;stroke:#7b8794;stroke-width:1.5}"
	".gpu{fill:#e3f4e1;stroke:#4c9a2a}.nic{fill:#e6effb;stroke:#3b73b9}"
	".idle{fill:#f5f7fa;stroke:#9aa5b1}"
	".free{fill:#fff;stroke:#3b73b9}.none{fill:#e4e7eb;stroke:#9aa5b1}"
	".wire{fill:none;stroke:#7b8794;stroke-width:1.5}"
	".pix{fill:#2b7a0b;font-weight:bold}.pxb,.phb{fill:#8a5a00;font-weight:bold}"
	".node,.sys,.bad{fill:#b42318;font-weight:bold}"
	".p0{fill:#b33a00}.p1{fill:#1f5fb0}.p2{fill:#7b3fa0}.p3{fill:#00695c}"
	".p4{fill:#a31554}.p5{fill:#5f5a00}.p6{fill:#37474f}.p7{fill:#7a4419}";

/* Names are ASCII by custom: the font decides the width of others. */
static bool is_plain(char c)
{
	return c >= ' ' && c <= '~';
}

/* Of the font's size, as in DejaVu Sans: Helvetica and its like are narrower. */
static int hundredths(enum style style, const char *text, size_t len)
{
	int sum = 0;

	for (size_t i = 0; i < len; i++) {
		char c = is_plain(text[i]) ? text[i] : '?';

		if (strchr("ijlI.,:;'|!()[]/ -tfr", c))
			sum += 42;
		else if (strchr("mMW@%", c))
			sum += 100;
		else if ((c >= 'a' && c <= 'z' && c != 'w') || (c >= '0' && c <= '9') || c == '_')
			sum += 64;
		else
			sum += 84;
	}
	return sum * styles[style].size * (styles[style].bold ? 110 : 100) / 100;
}

static int width_of(enum style style, const char *text)
{
	return hundredths(style, text, strlen(text)) / 100 + 1;
}

static void escape(struct strbuf *out, const char *text, size_t len)
{
	static const struct {
		char c;
		const char *entity;
	} entities[] = {
		{ '<', "&lt;" },   { '>', "&gt;" },   { '&', "&amp;" },
		{ '"', "&quot;" }, { '\'', "&#39;" },
	};

	for (size_t i = 0; i < len; i++) {
		const char *entity = NULL;

		for (size_t k = 0; k < ARRAY_LEN(entities); k++)
			entity = text[i] == entities[k].c ? entities[k].entity : entity;
		if (entity)
			strbuf_puts(out, entity);
		else
			strbuf_putc(out, is_plain(text[i]) ? text[i] : '?');
	}
}

static void put_escaped(struct strbuf *out, const char *text)
{
	escape(out, text, strlen(text));
}

static void put_text(struct strbuf *out, int x, int y, enum style style, enum anchor anchor,
		     int max, const char *classes, const char *text)
{
	static const char *const anchors[] = { "", " text-anchor=\"middle\"",
					       " text-anchor=\"end\"" };
	size_t n = strlen(text);
	bool fits = width_of(style, text) <= max;

	/* Else as many bytes as leave room for the dots. */
	while (!fits && n > 0 &&
	       hundredths(style, text, n) + hundredths(style, "...", 3) > max * 100)
		n--;
	strbuf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"%s%s%s\"%s>", x, y, styles[style].class,
		      classes ? " " : "", classes ? classes : "", anchors[anchor]);
	escape(out, text, n);
	strbuf_puts(out, fits ? "</text>\n" : "...</text>\n");
}

static void put_rect(struct strbuf *out, const char *class, int x, int y, int w, int h, int round)
{
	strbuf_printf(
		out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" class=\"%s\"/>\n", x,
		y, w, h, round, class);
}

static void begin_svg(struct strbuf *out, int width, int height, const char *label)
{
	strbuf_printf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
		width, height, width, height);
	put_escaped(out, label);
	strbuf_printf(
		out,
		"</title>\n<style>%s</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		sheet, width, height);
}

#define PALETTE 8

static const char *const path_class[TOPO_CLASS_MAX] = {
	[TOPO_SELF] = "pix", [TOPO_PIX] = "pix",   [TOPO_PXB] = "pxb",
	[TOPO_PHB] = "phb",  [TOPO_NODE] = "node", [TOPO_SYS] = "sys",
};

static const char *address(const struct picture *p, int pci)
{
	return hw_pci_address(p->in->inv, pci, p->arena);
}

static const char *plural(const struct picture *p, size_t n, const char *what)
{
	return arena_printf(p->arena, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

/* A cell with the letters of a pod. */
static void put_badge(struct strbuf *out, const struct picture *p, size_t pod, int x, int y)
{
	const char *text = p->pods[pod].label;
	char class[8];

	snprintf(class, sizeof(class), "p%zu", pod % PALETTE);
	put_rect(out, class, x, y, CELL, CELL, 3);
	put_text(out, x + CELL / 2, y + CELL - 4, text[1] ? STYLE_CELL_2 : STYLE_CELL,
		 ANCHOR_MIDDLE, 2 * CELL, NULL, text);
}

/* A name on the left, and its details on the right as far as there is room. */
static void put_line(struct strbuf *out, const struct box *b, int pad, const char *name,
		     const char *more)
{
	int w = width_of(STYLE_HEAD, name), max = b->w - 2 * pad;

	put_text(out, b->x + pad, b->y + 19, STYLE_HEAD, ANCHOR_START, max, NULL, name);
	if (more)
		put_text(out, b->x + b->w - pad, b->y + 19, STYLE_SMALL, ANCHOR_END, max - w - 4,
			 NULL, more);
}

static const char *pod_name(const struct picture *p, size_t pod)
{
	const struct draw_hold *h = p->pods[pod].first;

	if (!h->pod || !*h->pod)
		return "a pod that is not known yet";
	return h->ns && *h->ns ? arena_printf(p->arena, "%s/%s", h->ns, h->pod) : h->pod;
}

/* --- a GPU, and a NIC with its VFs --- */

#define NAMED_MAX  3 /* NICs that a GPU names */
#define OWNERS_MAX 3 /* pods that a GPU shows */

/* "PIX to NIC1, NIC2", "PXB* to NIC1" by data direct: of the NICs that can be given, those with
 * VFs, or all where there is none. */
static void put_nearest(struct strbuf *out, const struct picture *p, const struct box *b, int y,
			int right)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;
	int nics[NAMED_MAX], x = b->x + TILE_PAD;
	enum topo_class best = TOPO_CLASS_MAX;
	size_t n = 0, n_pci = p->in->inv->n_pci;
	bool any_vfs = false, direct = false;
	struct topo_path path;
	const char *word;

	for (size_t i = 0; i < n_pci; i++)
		any_vfs = any_vfs || p->n_vfs[i];
	for (size_t i = 0; i < n_pci; i++) {
		if (p->nic_number[i] < 0 || (any_vfs && !p->n_vfs[i]))
			continue;
		path = topo_between(p->in->topo, b->id, (int)i);
		if (path.class < best)
			n = direct = 0;
		best = path.class < best ? path.class : best;
		if (path.class != best)
			continue;
		direct = direct || path.direct;
		if (n++ < NAMED_MAX)
			nics[n - 1] = p->nic_number[i];
	}
	if (best == TOPO_CLASS_MAX)
		return;
	word = direct ? arena_printf(p->arena, "%s*", topo_class_name(best))
		      : topo_class_name(best);
	put_text(out, x, y, STYLE_TEXT, ANCHOR_START, b->w, path_class[best], word);
	x += width_of(STYLE_HEAD, word);
	if (n > NAMED_MAX)
		strbuf_printf(&names, "to %zu NICs", n);
	for (size_t i = 0; i < n && n <= NAMED_MAX; i++)
		strbuf_printf(&names, "%sNIC%d", i ? ", " : "to ", nics[i]);
	put_text(out, x, y, STYLE_TEXT, ANCHOR_START, right - x, NULL, strbuf_str(&names));
}

/* "ibp24s0, mlx5_0", and below it the port */
static void put_port(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	const struct hw_inventory *inv = p->in->inv;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	int rdma = hw_find_rdma(inv, b->id), carrier = inv->pci[b->id].carrier;
	const struct hw_port *port =
		rdma >= 0 && inv->rdma[rdma].n_ports ? &inv->rdma[rdma].ports[0] : NULL;
	bool bad = port ? !str_eq(port->state, "ACTIVE") : carrier == 0;
	const char *netdev = inv->pci[b->id].netdev, *names = netdev ? netdev : "no interface";
	int x = b->x + TILE_PAD, max = b->w - 2 * TILE_PAD;

	if (rdma >= 0)
		names = netdev ? arena_printf(p->arena, "%s, %s", netdev, inv->rdma[rdma].name)
			       : inv->rdma[rdma].name;
	put_text(out, x, y, STYLE_TEXT, ANCHOR_START, max, NULL, names);
	if (port) {
		strbuf_puts(&text, port->link == HW_LINK_IB	    ? "InfiniBand"
				   : port->link == HW_LINK_ETHERNET ? "Ethernet"
								    : "port");
		if (port->rate_mbps) {
			strbuf_putc(&text, ' ');
			hw_put_rate(port->rate_mbps, &text);
		}
		if (bad)
			strbuf_printf(&text, ", %s", port->state ? port->state : "state not known");
	} else {
		strbuf_printf(&text, "no RDMA device%s",
			      carrier < 0 ? ""
			      : carrier	  ? ", link up"
					  : ", link down");
	}
	put_text(out, x, y + LINE_HEIGHT, STYLE_TEXT, ANCHOR_START, max, bad ? "bad" : NULL,
		 strbuf_str(&text));
}

/* How many VFs there are, and below it a cell for each, whose tip names it and its pod. */
static void put_vfs(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	const struct hw_inventory *inv = p->in->inv;
	const char *text = plural(p, (size_t)p->n_vfs[b->id], "VF");
	int per_row = cells_per_row(b->w), x = b->x + TILE_PAD, i = 0;
	size_t held = 0;

	for (int vf = p->first_vf[b->id]; vf >= 0; vf = p->next_vf[vf])
		held += p->pod_of[vf] >= 0;
	if (!hw_is_pf(&inv->pci[b->id]))
		text = "is a VF";
	if (p->in->holds_known)
		text = arena_printf(p->arena, "%s, %zu held", text, held);
	put_text(out, x, y, STYLE_TEXT, ANCHOR_START, b->w - 2 * TILE_PAD, NULL, text);
	for (int vf = p->first_vf[b->id]; vf >= 0; vf = p->next_vf[vf], i++) {
		int cx = x + i % per_row * CELL_STEP, cy = y + 7 + i / per_row * CELL_STEP;
		int pod = p->pod_of[vf], rdma = hw_find_rdma(inv, vf);

		strbuf_printf(out, "<g><title>%s", address(p, vf));
		if (rdma >= 0) {
			strbuf_putc(out, ' ');
			put_escaped(out, inv->rdma[rdma].name);
		}
		if (pod >= 0) {
			strbuf_puts(out, ": ");
			put_escaped(out, pod_name(p, (size_t)pod));
		}
		strbuf_puts(out, "</title>\n");
		if (pod >= 0)
			put_badge(out, p, (size_t)pod, cx, cy);
		else
			put_rect(out, rdma < 0 ? "none" : "free", cx, cy, CELL, CELL, 3);
		strbuf_puts(out, "</g>\n");
	}
}

static void put_tile(struct strbuf *out, const struct picture *p, const struct box *b)
{
	bool gpu = b->kind == BOX_GPU;
	int vfs = p->n_vfs[b->id], y = b->y + 19;
	int right = b->x + b->w - TILE_PAD;
	size_t pods[OWNERS_MAX], n = 0;

	put_rect(out, gpu ? "gpu" : vfs ? "nic" : "idle", b->x, b->y, b->w, b->h, 4);
	put_line(out, b, TILE_PAD, arena_printf(p->arena, "%s%d", gpu ? "GPU" : "NIC", b->number),
		 address(p, b->id));
	if (!gpu) {
		put_port(out, p, b, y + LINE_HEIGHT);
		if (vfs)
			put_vfs(out, p, b, y + 3 * LINE_HEIGHT);
		return;
	}
	put_text(out, b->x + TILE_PAD, y + LINE_HEIGHT, STYLE_TEXT, ANCHOR_START,
		 b->w - 2 * TILE_PAD, NULL, p->in->gpu_names[b->number]);
	/* The letters of the pods that have it stand on the right. */
	for (size_t k = 0; k < p->n_pods && n < OWNERS_MAX; k++) {
		if (p->pods[k].gpus[b->number])
			pods[n++] = k;
	}
	for (; n > 0; right -= CELL_STEP)
		put_badge(out, p, pods[--n], right - CELL, b->y + b->h - TILE_PAD - CELL);
	put_nearest(out, p, b, y + 2 * LINE_HEIGHT, right);
}

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
		more = arena_printf(p->arena, "%s, %s, %s", plural(p, n[0], "GPU"),
				    plural(p, n[1], "NIC"), plural(p, n[2], "VF"));
	} else if (b->kind == BOX_PORT || b->kind == BOX_SWITCH) {
		more = address(p, b->id);
		if (b->kind == BOX_SWITCH && b->port >= 0)
			name = "PCIe switch";
	} else if (f && f->has_root) {
		name = "Host bridge";
		more = arena_printf(p->arena, "pci%04x:%02x", (unsigned)f->root_domain,
				    f->root_bus);
	}
	put_rect(out, kinds[b->kind].class, b->x, b->y, b->w, b->h, 6);
	put_line(out, b, FRAME_PAD, name, more);
	if (b->kind == BOX_SWITCH && b->port >= 0)
		put_text(out, b->x + b->w - FRAME_PAD, b->y + 34, STYLE_SMALL, ANCHOR_END,
			 b->w - 2 * FRAME_PAD, NULL,
			 arena_printf(p->arena, "root port %s", address(p, b->port)));
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
		put_tile(out, p, b);
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
		int w = CELL_STEP + width_of(STYLE_SMALL, keys[i].text) + 14;

		if (x + w > p->width - PAGE_MARGIN + 14) {
			x = PAGE_MARGIN;
			y += CELL_STEP + 1;
		}
		put_rect(out, keys[i].class, x, y - 12, CELL, CELL, 3);
		put_text(out, x + CELL_STEP + 2, y, STYLE_SMALL, ANCHOR_START, w, NULL,
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
		int w = width_of(STYLE_TEXT, word) + 6, w2 = width_of(STYLE_SMALL, meaning[c]) + 12;

		if (x + w + w2 > p->width - PAGE_MARGIN) {
			x = PAGE_MARGIN;
			y += LINE_HEIGHT;
		}
		put_text(out, x, y, STYLE_TEXT, ANCHOR_START, w,
			 c < TOPO_CLASS_MAX ? path_class[c] : NULL, word);
		put_text(out, x + w, y, STYLE_SMALL, ANCHOR_START, w2, NULL, meaning[c]);
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
		int name = width_of(STYLE_TEXT, pod_name(p, i));

		w = name > w ? name : w;
	}
	w = w < w_max ? w : w_max;
	for (size_t i = 0; i < n; i++, y += CELL_STEP + 1) {
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
		const struct pod *pod = &p->pods[i];
		const char *separator = "; GPU ";

		strbuf_puts(&text, plural(p, pod->n_vfs, "VF"));
		for (size_t g = 0; g < p->in->inv->n_gpu; g++) {
			if (pod->gpus[g]) {
				strbuf_printf(&text, "%s%zu", separator, g);
				separator = ", ";
			}
		}
		strbuf_puts(&text, pod->first->draining ? "; draining" : "");
		put_badge(out, p, i, PAGE_MARGIN, y - 12);
		put_text(out, x, y, STYLE_TEXT, ANCHOR_START, w, NULL, pod_name(p, i));
		put_text(out, x + w + 12, y, STYLE_SMALL, ANCHOR_START, right - x - w - 12, NULL,
			 strbuf_str(&text));
	}
	if (p->n_pods > n) {
		put_text(out, x, y, STYLE_TEXT, ANCHOR_START, right - x, NULL,
			 arena_printf(p->arena, "and %s", plural(p, p->n_pods - n, "other pod")));
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
	title = plural(&p, n[0], "GPU");
	if (name)
		title = arena_printf(arena, "%s (%s)", title, name);
	title = arena_printf(arena, "%s, %s, %s", title, plural(&p, n[1], "NIC"),
			     plural(&p, n[2], "VF"));
	if (in->holds_known)
		title = arena_printf(arena, "%s, %zu held", title, in->n_holds);
	put_text(&body, PAGE_MARGIN, PAGE_MARGIN + 16, STYLE_TITLE, ANCHOR_START, max, NULL, title);
	if (hints)
		note = arena_printf(
			arena,
			"This virtual machine hides its PCIe switches; they are known from %s.",
			hints->source);
	if (flat)
		put_text(&body, PAGE_MARGIN, PAGE_MARGIN + 36, STYLE_TEXT, ANCHOR_START, max, NULL,
			 note);
	for (struct box *b = p.numa; b; b = b->next)
		put_box(&body, &p, b);
	y = put_key(&body, &p, y + 26);
	y = put_classes(&body, &p, y);
	if (p.n_pods)
		y = put_pods(&body, &p, y + 14);
	begin_svg(out, p.width, y + PAGE_MARGIN - 10, title);
	strbuf_add(out, strbuf_str(&body), body.len);
	strbuf_puts(out, "</svg>\n");
}
