/* A GPU, and a NIC with its VFs. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "draw/draw-internal.h"
#include "hw/inventory.h"
#include "topo/topo.h"

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
	svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, b->w, draw_path_class[best], word);
	x += svg_width(STYLE_HEAD, word);
	if (n > NAMED_MAX)
		strbuf_printf(&names, "to %zu NICs", n);
	for (size_t i = 0; i < n && n <= NAMED_MAX; i++)
		strbuf_printf(&names, "%sNIC%d", i ? ", " : "to ", nics[i]);
	svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, right - x, NULL, strbuf_str(&names));
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
	svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, max, NULL, names);
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
	svg_text(out, x, y + LINE_HEIGHT, STYLE_TEXT, ANCHOR_START, max, bad ? "bad" : NULL,
		 strbuf_str(&text));
}

/* How many VFs there are, and below it a cell for each, whose tip names it and its pod. */
static void put_vfs(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	const struct hw_inventory *inv = p->in->inv;
	const char *text = picture_plural(p, (size_t)p->n_vfs[b->id], "VF");
	int per_row = cells_per_row(b->w), x = b->x + TILE_PAD, i = 0;
	size_t held = 0;

	for (int vf = p->first_vf[b->id]; vf >= 0; vf = p->next_vf[vf])
		held += p->pod_of[vf] >= 0;
	if (!hw_is_pf(&inv->pci[b->id]))
		text = "is a VF";
	if (p->in->holds_known)
		text = arena_printf(p->arena, "%s, %zu held", text, held);
	svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, b->w - 2 * TILE_PAD, NULL, text);
	for (int vf = p->first_vf[b->id]; vf >= 0; vf = p->next_vf[vf], i++) {
		int cx = x + i % per_row * CELL_STEP, cy = y + 7 + i / per_row * CELL_STEP;
		int pod = p->pod_of[vf], rdma = hw_find_rdma(inv, vf);

		strbuf_printf(out, "<g><title>%s", picture_address(p, vf));
		if (rdma >= 0) {
			strbuf_putc(out, ' ');
			svg_escape(out, inv->rdma[rdma].name);
		}
		if (pod >= 0) {
			strbuf_puts(out, ": ");
			svg_escape(out, picture_pod_name(p, (size_t)pod));
		}
		strbuf_puts(out, "</title>\n");
		if (pod >= 0)
			draw_badge(out, p, (size_t)pod, cx, cy);
		else
			svg_rect(out, rdma < 0 ? "none" : "free", cx, cy, CELL, CELL, 3);
		strbuf_puts(out, "</g>\n");
	}
}

/* A name goes without its namespace where there is no room for it. */
static void put_holders(struct strbuf *out, const struct picture *p, const struct box *b, int y)
{
	size_t pods[HOLDERS_MAX], n = holders_of(p, b->id, pods, HOLDERS_MAX);
	int x = b->x + TILE_PAD, max = b->w - 2 * TILE_PAD, room = max - CELL_STEP - 2;

	for (size_t i = 0; i < n && i < HOLDERS_MAX; i++, y += LINE_HEIGHT) {
		const char *name = picture_pod_name(p, pods[i]), *slash = strchr(name, '/');

		if (slash && svg_width(STYLE_TEXT, name) > room)
			name = slash + 1;
		draw_badge(out, p, pods[i], x, y - 12);
		svg_text(out, x + CELL_STEP + 2, y, STYLE_TEXT, ANCHOR_START, room, NULL, name);
	}
	if (n > HOLDERS_MAX)
		svg_text(out, x, y, STYLE_TEXT, ANCHOR_START, max, NULL,
			 arena_printf(p->arena, "and %s",
				      picture_plural(p, n - HOLDERS_MAX, "other pod")));
}

void draw_tile(struct strbuf *out, const struct picture *p, const struct box *b)
{
	bool gpu = b->kind == BOX_GPU;
	int vfs = p->n_vfs[b->id], y = b->y + 19, per_row = cells_per_row(b->w);
	int right = b->x + b->w - TILE_PAD;
	size_t pods[OWNERS_MAX], n = 0;

	svg_rect(out, gpu ? "gpu" : vfs ? "nic" : "idle", b->x, b->y, b->w, b->h, 4);
	draw_line(out, b, TILE_PAD, arena_printf(p->arena, "%s%d", gpu ? "GPU" : "NIC", b->number),
		  picture_address(p, b->id));
	if (!gpu) {
		put_port(out, p, b, y + LINE_HEIGHT);
		if (vfs) {
			put_vfs(out, p, b, y += 3 * LINE_HEIGHT);
			y += (vfs + per_row - 1) / per_row * CELL_STEP + 6;
			put_holders(out, p, b, y + LINE_HEIGHT);
		}
		return;
	}
	svg_text(out, b->x + TILE_PAD, y + LINE_HEIGHT, STYLE_TEXT, ANCHOR_START,
		 b->w - 2 * TILE_PAD, NULL, p->in->gpu_names[b->number]);
	/* The letters of the pods that have it stand on the right. */
	for (size_t k = 0; k < p->n_pods && n < OWNERS_MAX; k++) {
		if (p->pods[k].gpus[b->number])
			pods[n++] = k;
	}
	for (; n > 0; right -= CELL_STEP)
		draw_badge(out, p, pods[--n], right - CELL, b->y + b->h - TILE_PAD - CELL);
	put_nearest(out, p, b, y + 2 * LINE_HEIGHT, right);
}
