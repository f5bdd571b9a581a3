/* A GPU, and a NIC with its VFs. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "draw/draw-internal.h"
#include "hw/inventory.h"
#include "topo/topo.h"

#define NAMED_MAX  3 /* NICs that a GPU names */
#define OWNERS_MAX 3 /* pods that a GPU shows */

/* The same without the namespace where there is no room for it. */
static const char *short_name(const struct picture *p, size_t pod, int max)
{
	const char *name = picture_pod_name(p, pod), *slash = strchr(name, '/');

	return slash && svg_width(STYLE_TEXT, name) > max ? slash + 1 : name;
}

/* --- GPUs --- */

/* NICs that can be given: those with VFs, or all where there is none. */
static bool counts_as_near(const struct picture *p, int nic, bool any_vfs)
{
	return p->nic_number[nic] >= 0 && (!any_vfs || p->n_vfs[nic]);
}

static enum topo_class nearest(const struct picture *p, int gpu, int *ret, size_t max,
			       size_t *ret_n)
{
	enum topo_class best = TOPO_CLASS_MAX, class;
	size_t n_pci = p->in->inv->n_pci;
	bool any_vfs = false;

	for (size_t i = 0; i < n_pci; i++)
		any_vfs = any_vfs || p->n_vfs[i];
	for (size_t i = 0; i < n_pci; i++) {
		if (!counts_as_near(p, (int)i, any_vfs))
			continue;
		class = topo_between(p->in->topo, gpu, (int)i).class;
		if (class < best)
			*ret_n = 0;
		best = class < best ? class : best;
		if (class == best && (*ret_n)++ < max)
			ret[*ret_n - 1] = p->nic_number[i];
	}
	return best;
}

/* "PIX to NIC1, NIC2" */
static void put_nearest(struct strbuf *out, const struct picture *p, const struct box *b, int y,
			int right)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;
	int nics[NAMED_MAX], x = b->x + TILE_PAD;
	size_t n = 0;
	enum topo_class class = nearest(p, b->id, nics, NAMED_MAX, &n);
	const char *word;

	if (class == TOPO_CLASS_MAX)
		return;
	word = topo_class_name(class);
	svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, b->w, draw_path_class[class], word);
	x += svg_width(STYLE_HEAD, word);
	if (n > NAMED_MAX)
		strbuf_printf(&names, "to %zu NICs", n);
	for (size_t i = 0; i < n && n <= NAMED_MAX; i++)
		strbuf_printf(&names, "%sNIC%d", i ? ", " : "to ", nics[i]);
	svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, right - x, NULL, strbuf_str(&names));
}

/* The letters of the pods that have it; returns where they begin. */
static int put_owners(struct strbuf *out, const struct picture *p, const struct box *b)
{
	size_t pods[OWNERS_MAX], n = 0;
	int x = b->x + b->w - TILE_PAD;

	for (size_t k = 0; k < p->n_pods && n < OWNERS_MAX; k++) {
		if (p->pods[k].gpus[b->number])
			pods[n++] = k;
	}
	for (; n > 0; x -= CELL_STEP)
		draw_badge(out, p, pods[--n], x - CELL, b->y + b->h - TILE_PAD - CELL);
	return x;
}

static void put_gpu(struct strbuf *out, const struct picture *p, const struct box *b)
{
	svg_rect(out, "gpu", b->x, b->y, b->w, b->h, 4);
	draw_line(out, b, TILE_PAD, arena_printf(p->arena, "GPU%d", b->number),
		  picture_address(p, b->id));
	svg_text(out, b->x + TILE_PAD, b->y + 19 + LINE_HEIGHT, STYLE_TEXT, ANCHOR_START,
		 b->w - 2 * TILE_PAD, NULL, p->in->gpu_names[b->number]);
	put_nearest(out, p, b, b->y + 19 + 2 * LINE_HEIGHT, put_owners(out, p, b));
}

/* --- NICs and VFs --- */

/* "ibp24s0, mlx5_0" */
static const char *names_of(const struct picture *p, int nic)
{
	const char *netdev = p->in->inv->pci[nic].netdev;
	int rdma = hw_find_rdma(p->in->inv, nic);

	if (rdma < 0)
		return netdev ? netdev : "no interface";
	if (!netdev)
		return p->in->inv->rdma[rdma].name;
	return arena_printf(p->arena, "%s, %s", netdev, p->in->inv->rdma[rdma].name);
}

static void put_port(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	const struct hw_inventory *inv = p->in->inv;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	int rdma = hw_find_rdma(inv, b->id), carrier = inv->pci[b->id].carrier;
	const struct hw_port *port =
		rdma >= 0 && inv->rdma[rdma].n_ports ? &inv->rdma[rdma].ports[0] : NULL;
	bool bad = port ? !str_eq(port->state, "ACTIVE") : carrier == 0;

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
	svg_text(out, b->x + TILE_PAD, y, STYLE_TEXT, ANCHOR_START, b->w - 2 * TILE_PAD,
		 bad ? "bad" : NULL, strbuf_str(&text));
}

static size_t count_held(const struct picture *p, int nic)
{
	size_t n = 0;

	for (int vf = p->first_vf[nic]; vf >= 0; vf = p->next_vf[vf])
		n += p->pod_of[vf] >= 0;
	return n;
}

static void put_count(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	const char *text = picture_plural(p, (size_t)p->n_vfs[b->id], "VF");

	if (!hw_is_pf(&p->in->inv->pci[b->id]))
		text = "is a VF";
	if (p->in->holds_known)
		text = arena_printf(p->arena, "%s, %zu held", text, count_held(p, b->id));
	svg_text(out, b->x + TILE_PAD, y, STYLE_TEXT, ANCHOR_START, b->w - 2 * TILE_PAD, NULL,
		 text);
}

/* What a pointer over a cell is told. */
static void put_tip(struct strbuf *out, const struct picture *p, int vf)
{
	int rdma = hw_find_rdma(p->in->inv, vf);

	strbuf_printf(out, "<title>%s", picture_address(p, vf));
	if (rdma >= 0) {
		strbuf_putc(out, ' ');
		svg_escape(out, p->in->inv->rdma[rdma].name);
	}
	if (p->pod_of[vf] >= 0) {
		strbuf_puts(out, ": ");
		svg_escape(out, picture_pod_name(p, (size_t)p->pod_of[vf]));
	}
	strbuf_puts(out, "</title>\n");
}

static void put_cells(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	int per_row = cells_per_row(b->w), i = 0;

	for (int vf = p->first_vf[b->id]; vf >= 0; vf = p->next_vf[vf], i++) {
		int cx = b->x + TILE_PAD + i % per_row * CELL_STEP,
		    cy = y + i / per_row * CELL_STEP;

		strbuf_puts(out, "<g>");
		put_tip(out, p, vf);
		if (p->pod_of[vf] >= 0)
			draw_badge(out, p, (size_t)p->pod_of[vf], cx, cy);
		else
			svg_rect(out, hw_find_rdma(p->in->inv, vf) < 0 ? "none" : "free", cx, cy,
				 CELL, CELL, 3);
		strbuf_puts(out, "</g>\n");
	}
}

static void put_holders(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	size_t pods[HOLDERS_MAX], n = holders_of(p, b->id, pods, HOLDERS_MAX);
	int x = b->x + TILE_PAD, max = b->w - 2 * TILE_PAD;

	for (size_t i = 0; i < n && i < HOLDERS_MAX; i++, y += LINE_HEIGHT) {
		draw_badge(out, p, pods[i], x, y - 12);
		svg_text(out, x + CELL_STEP + 2, y, STYLE_TEXT, ANCHOR_START, max - CELL_STEP - 2,
			 NULL, short_name(p, pods[i], max - CELL_STEP - 2));
	}
	if (n > HOLDERS_MAX)
		svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, max, NULL,
			 arena_printf(p->arena, "and %s",
				      picture_plural(p, n - HOLDERS_MAX, "other pod")));
}

static void put_nic(struct strbuf *out, const struct picture *p, const struct box *b)
{
	int vfs = p->n_vfs[b->id], y = b->y + 19, per_row = cells_per_row(b->w);

	svg_rect(out, vfs ? "nic" : "idle", b->x, b->y, b->w, b->h, 4);
	draw_line(out, b, TILE_PAD, arena_printf(p->arena, "NIC%d", b->number),
		  picture_address(p, b->id));
	svg_text(out, b->x + TILE_PAD, y += LINE_HEIGHT, STYLE_TEXT, ANCHOR_START,
		 b->w - 2 * TILE_PAD, NULL, names_of(p, b->id));
	put_port(out, p, b, y += LINE_HEIGHT);
	if (!vfs)
		return;
	put_count(out, p, b, y += LINE_HEIGHT);
	put_cells(out, p, b, y + 7);
	y += (vfs + per_row - 1) / per_row * CELL_STEP + 6;
	put_holders(out, p, b, y + LINE_HEIGHT);
}

void draw_tile(struct strbuf *out, const struct picture *p, const struct box *b)
{
	if (b->kind == BOX_GPU)
		put_gpu(out, p, b);
	else
		put_nic(out, p, b);
}
