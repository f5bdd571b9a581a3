/* Places and sizes: rows of columns within each box, from the outside in; heights come back. */
#include "draw/draw-internal.h"

#define GAP	 10 /* between boxes of a row */
#define ROW_GAP	 14 /* between rows: the wires go there */
#define PAD_LEFT 16 /* the trunk of the wires goes there */
#define PAD	 8
#define GRID_MAX 4
#define MANY_VFS 64 /* more take a tile of two columns */

enum group { GROUP_GPUS, GROUP_NICS, GROUP_BOXES, GROUP_MAX };

static enum group group_of(const struct box *b)
{
	return b->kind == BOX_GPU ? GROUP_GPUS : b->kind == BOX_NIC ? GROUP_NICS : GROUP_BOXES;
}

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

int cells_per_row(int tile_width)
{
	return max_int(1, (tile_width - 2 * TILE_PAD + CELL_STEP - CELL) / CELL_STEP);
}

/* --- columns, from the inside out --- */

static void want_columns(const struct picture *p, struct box *b)
{
	int sums[GROUP_MAX] = { 0 };

	if (box_is_tile(b)) {
		b->cols = b->kind == BOX_NIC && p->n_vfs[b->id] > MANY_VFS ? 2 : 1;
		return;
	}
	for (struct box *kid = b->kids; kid; kid = kid->next) {
		want_columns(p, kid);
		sums[group_of(kid)] += kid->cols;
	}
	for (int g = 0; g < GROUP_MAX; g++)
		b->cols = max_int(b->cols, min_int(GRID_MAX, sums[g]));
}

/* --- places --- */

static int place(const struct picture *p, struct box *b, int x, int y, int w);

static struct box *next_of(struct box *b, enum group g)
{
	while (b && group_of(b) != g)
		b = b->next;
	return b;
}

/* Tiles that need one row fill it. Boxes keep to the columns, so that those of all rows are alike.
 */
static int place_kids(const struct picture *p, struct box *kids, int limit, int x, int y, int w)
{
	for (int g = 0; g < GROUP_MAX; g++) {
		struct box *first = next_of(kids, g), *b = first, *rest;

		for (; b; b = rest) {
			int cols = b->cols, at = 0, high = 0;

			/* As many as fit, at least one. */
			for (rest = next_of(b->next, g); rest && cols + rest->cols <= limit;
			     rest = next_of(rest->next, g))
				cols += rest->cols;
			if (cols < limit && (g == GROUP_BOXES || b != first || rest))
				cols = limit;
			for (struct box *kid = b; kid != rest; kid = next_of(kid->next, g)) {
				int left = at * (w + GAP) / cols, right;

				at += kid->cols;
				right = at * (w + GAP) / cols - GAP;
				high = max_int(high, place(p, kid, x + left, y, right - left));
			}
			for (struct box *kid = b; kid != rest; kid = next_of(kid->next, g))
				kid->h = box_shown(kid)->h = high;
			y += high + ROW_GAP;
		}
	}
	return y - ROW_GAP;
}

int head_height(const struct box *b)
{
	return b->kind == BOX_SWITCH && b->port >= 0 ? 42 : 27;
}

static int place(const struct picture *p, struct box *b, int x, int y, int w)
{
	int lines = b->kind == BOX_GPU ? GPU_LINES : NIC_LINES, cells = 0,
	    per_row = cells_per_row(w);
	size_t holders[HOLDERS_MAX], n;

	b->x = x;
	b->y = y;
	b->w = w;
	if (!box_is_tile(b)) {
		if (box_shown(b) != b)
			b->h = place(p, b->kids, x, y, w);
		else
			b->h = place_kids(p, b->kids, b->cols, x + PAD_LEFT,
					  y + head_height(b) + 10, w - PAD_LEFT - PAD) +
			       PAD - y;
		return b->h;
	}
	if (b->kind == BOX_NIC && p->n_vfs[b->id]) {
		n = holders_of(p, b->id, holders, HOLDERS_MAX);
		lines += 1 + min_int((int)n, HOLDERS_MAX) + (n > HOLDERS_MAX);
		cells = (p->n_vfs[b->id] + per_row - 1) / per_row * CELL_STEP + (n ? 6 : 2);
	}
	b->h = 2 * TILE_PAD + lines * LINE_HEIGHT - 4 + cells;
	return b->h;
}

/*
 * NUMA nodes: as many a row as there is room for. They fill the row if not much is left of it; else
 * only the frame of the last one does, so that columns are alike.
 */
int picture_layout(struct picture *p, int top)
{
	int cols = 0, y = top, inner;

	for (struct box *b = p->numa; b; b = b->next) {
		want_columns(p, b);
		cols += b->cols;
	}
	p->grid = max_int(2, min_int(GRID_MAX, cols));
	p->width = p->grid == GRID_MAX ? 1000 : p->grid * COLUMN_WIDTH + 64;
	inner = p->width - 2 * PAGE_MARGIN;
	for (struct box *first = p->numa, *rest; first; first = rest) {
		int at = 0, high = 0;

		cols = 0;
		for (rest = first; rest && cols + rest->cols <= p->grid; rest = rest->next)
			cols += rest->cols;
		if (cols < p->grid - 1)
			cols = p->grid;
		for (struct box *b = first; b != rest; b = b->next) {
			int left = at * (inner + GAP) / cols, right;

			at += b->cols;
			right = at * (inner + GAP) / cols - GAP;
			high = max_int(high, place(p, b, PAGE_MARGIN + left, y, right - left));
			if (b->next == rest)
				b->w = inner - left;
		}
		for (struct box *b = first; b != rest; b = b->next)
			b->h = high;
		y += high + ROW_GAP;
	}
	return y - ROW_GAP;
}
