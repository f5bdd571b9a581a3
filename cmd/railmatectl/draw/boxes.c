/* From an inventory to the boxes of its picture: the tree of devices, the VFs of each NIC, and
 * their holders. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "draw/draw-internal.h"
#include "hw/inventory.h"
#include "topo/topo.h"

/* Levels of switches below a root port that are drawn: three. Deeper ones are drawn in the third.
 */
#define DEPTH_MAX 6
/* A longer chain of bridges is a loop. */
#define CHAIN_MAX 64

bool box_is_tile(const struct box *b)
{
	return b->kind == BOX_GPU || b->kind == BOX_NIC;
}

struct box *box_shown(struct box *b)
{
	bool alone = b->kind == BOX_HOST && !b->kids->next && !box_is_tile(b->kids);

	return alone ? b->kids : b;
}

static struct box *append(struct picture *p, struct box **list, enum box_kind kind, int id)
{
	struct box *b = arena_alloc(p->arena, sizeof(*b));

	while (*list)
		list = &(*list)->next;
	b->kind = kind;
	b->id = id;
	*list = b;
	return b;
}

static struct box *get(struct picture *p, struct box **list, enum box_kind kind, int id)
{
	for (struct box *b = *list; b; b = b->next) {
		if (b->kind == kind && b->id == id)
			return b;
	}
	return append(p, list, kind, id);
}

/* In the order of the turns and of the nodes, the unknown one last. */
static struct box *get_numa(struct picture *p, int turn, int id)
{
	struct box **at = &p->numa, *b;

	for (b = p->numa; b; b = b->next) {
		if (b->id == id)
			return b;
	}
	for (; (b = *at); at = &b->next) {
		if (b->turn > turn || (b->turn == turn && (unsigned)b->id > (unsigned)id))
			break;
	}
	b = arena_alloc(p->arena, sizeof(*b));
	*b = (struct box) { .kind = BOX_NUMA, .id = id, .turn = turn, .next = *at };
	*at = b;
	return b;
}

/*
 * The box of the devices below that bridge. Below a root port (depth 0) the upstream ports of
 * switches have odd depths, and the downstream ports even ones. A sub-switch that counts as one
 * with its switch is drawn as one.
 */
static struct box *below(struct picture *p, struct box *host, int bridge)
{
	const struct hw_inventory *inv = p->in->inv;
	struct box *outer;
	int up = bridge, depth = 0;

	while (up >= 0 && (up = inv->pci[up].parent) >= 0 && depth <= CHAIN_MAX)
		depth++;
	if (bridge < 0 || depth > CHAIN_MAX)
		return host;
	for (; depth > DEPTH_MAX; depth--)
		bridge = inv->pci[bridge].parent;
	if (depth == 0)
		return get(p, &host->kids, BOX_PORT, bridge);
	up = inv->pci[bridge].parent;
	if (depth % 2 == 0 || topo_is_fused(p->in->topo, bridge))
		return below(p, host, up);
	outer = depth == 1 ? host : below(p, host, inv->pci[up].parent);
	outer = get(p, &outer->kids, BOX_SWITCH, bridge);
	outer->port = depth == 1 ? up : -1;
	return outer;
}

static void hang(struct picture *p, int turn, enum box_kind kind, int pci, int number)
{
	struct box *numa = get_numa(p, turn, topo_numa(p->in->topo, pci)), *outer = numa->kids;
	const struct hw_pci *all = p->in->inv->pci, *f = &all[pci];
	int group = topo_group_of(p->in->topo, pci);

	if (group >= 0) {
		outer = get(p, &numa->kids, BOX_HIDDEN, group);
	} else {
		for (; outer; outer = outer->next) {
			const struct hw_pci *root = &all[outer->id];

			if (outer->kind == BOX_HOST && root->has_root == f->has_root &&
			    root->root_domain == f->root_domain && root->root_bus == f->root_bus)
				break;
		}
		if (!outer)
			outer = append(p, &numa->kids, BOX_HOST, pci);
		outer = below(p, outer, f->parent);
	}
	append(p, &outer->kids, kind, pci)->number = number;
}

static int *table(struct picture *p, int value)
{
	size_t n = p->in->inv->n_pci;
	int *t = arena_array(p->arena, n + 1, sizeof(*t));

	for (size_t i = 0; i < n; i++)
		t[i] = value;
	return t;
}

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

/*
 * Labels are "A", "B" … "Z", "AA" … "ZZ", "+" for all others: so many letters as a cell has room
 * for, without those that are wide or look like digits.
 */
static struct pod *get_pod(struct picture *p, const struct draw_hold *hold)
{
	static const char letters[] = "ABCDEFGHJKLNPRSTUVXYZ";
	size_t base = sizeof(letters) - 1, n = p->n_pods;
	struct pod *pod;

	for (pod = p->pods; pod < p->pods + n; pod++) {
		const struct draw_hold *first = pod->first;

		if (same_text(first->ns, hold->ns) && same_text(first->pod, hold->pod) &&
		    same_text(first->uid, hold->uid) && first->draining == hold->draining)
			return pod;
	}
	*pod = (struct pod) { .first = hold, .label = "+" };
	pod->gpus = arena_array(p->arena, p->in->inv->n_gpu + 1, sizeof(bool));
	if (n < base)
		snprintf(pod->label, sizeof(pod->label), "%c", letters[n]);
	else if (n < base + base * base)
		snprintf(pod->label, sizeof(pod->label), "%c%c", letters[n / base - 1],
			 letters[n % base]);
	p->n_pods++;
	return pod;
}

static int find(const struct hw_inventory *inv, const char *address)
{
	struct bdf bdf;

	return bdf_parse(address, &bdf) < 0 ? -1 : hw_find_pci(inv, bdf);
}

static void find_pods(struct picture *p)
{
	const struct draw_in *in = p->in;

	p->pods = arena_array(p->arena, in->n_holds + 1, sizeof(*p->pods));
	p->pod_of = table(p, -1);
	for (size_t i = 0; i < in->n_holds; i++) {
		const struct draw_hold *hold = &in->holds[i];
		struct pod *pod = get_pod(p, hold);
		int vf = find(in->inv, hold->vf);

		pod->n_vfs++;
		if (vf >= 0)
			p->pod_of[vf] = (int)(pod - p->pods);
		for (size_t g = 0; g < hold->n_gpus; g++) {
			int gpu = hw_find_gpu(in->inv, find(in->inv, hold->gpus[g]));

			if (gpu >= 0)
				pod->gpus[gpu] = true;
		}
	}
}

/*
 * GPUs come first, then NICs with VFs, then the others: important ones stand above and on the left.
 */
void picture_fill(struct picture *p)
{
	const struct hw_inventory *inv = p->in->inv;
	int n = 0;

	p->nic_number = table(p, -1);
	p->first_vf = table(p, -1);
	p->next_vf = table(p, -1);
	p->n_vfs = table(p, 0);
	for (size_t i = 0; i < inv->n_pci; i++) {
		if (hw_is_own_nic(inv, (int)i))
			p->nic_number[i] = n++;
	}
	for (int i = (int)inv->n_pci - 1; i >= 0; i--) {
		int nic = hw_is_nic_vf(inv, i) ? topo_place(p->in->topo, i) : -1;

		if (nic < 0)
			continue;
		p->next_vf[i] = p->first_vf[nic];
		p->first_vf[nic] = i;
		p->n_vfs[nic]++;
	}
	find_pods(p);
	for (size_t g = 0; g < inv->n_gpu; g++)
		hang(p, 0, BOX_GPU, inv->gpu[g].pci, (int)g);
	for (int turn = 1; turn <= 2; turn++) {
		for (size_t i = 0; i < inv->n_pci; i++) {
			if (p->nic_number[i] >= 0 && (p->n_vfs[i] > 0) == (turn == 1))
				hang(p, turn, BOX_NIC, (int)i, p->nic_number[i]);
		}
	}
}

/* --- places and sizes: rows of columns within each box, from the outside in; heights come back ---
 */

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
		lines++;
		cells = (p->n_vfs[b->id] + per_row - 1) / per_row * CELL_STEP + 2;
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
