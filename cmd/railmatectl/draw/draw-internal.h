/* Shared by the files of this room. */
#ifndef RAILMATE_DRAW_DRAW_INTERNAL_H
#define RAILMATE_DRAW_DRAW_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "draw/draw.h"

struct arena;

/*
 * The tree that is drawn. NUMA nodes hold host bridges; these hold root ports, switches, and
 * functions on the root bus; a switch below a root port names it. Functions hang below the
 * innermost box of theirs.
 */
enum box_kind { BOX_NUMA, BOX_HOST, BOX_PORT, BOX_SWITCH, BOX_HIDDEN, BOX_GPU, BOX_NIC };

struct box {
	enum box_kind kind;
	/* NUMA: node, -1 unknown; HOST, GPU, NIC: a function; PORT, SWITCH: the bridge; HIDDEN:
	 * group of the hints */
	int id;
	/* GPU, NIC: as `railmatectl topo` counts them; NIC: with its VFs, if it is a PF */
	int number;
	int turn; /* NUMA: 0 it has GPUs, 1 VFs and no GPU, 2 neither */
	struct box *kids, *next;
	int port; /* SWITCH: the root port that it is below, -1: another switch is between */
	int cols; /* columns that it wants */
	int x, y, w, h;
};

struct pod {
	const struct draw_hold *first; /* of its VFs */
	size_t n_vfs;
	bool *gpus;    /* by index of inv->gpu */
	char label[4]; /* a letter or two */
};

struct picture {
	const struct draw_in *in;
	struct arena *arena;
	struct box *numa; /* the first one */
	int grid;	  /* columns of the page */
	int width;
	int *nic_number; /* by PCI index; -1: no NIC of its own */
	/* VFs of a PF, by PCI index; -1 ends. A NIC that is a VF is its own only one */
	int *first_vf, *next_vf;
	int *n_vfs; /* of a NIC */
	struct pod *pods;
	size_t n_pods;
	int *pod_of; /* index of the pod that holds a function; -1 */
};

/* boxes.c: everything of the picture but places. */
void picture_fill(struct picture *p);
bool box_is_tile(const struct box *b);
/* Kids with a frame of their own: a host bridge that holds one box and nothing else is left out. */
struct box *box_shown(struct box *b);

/* boxes.c: places and sizes; returns the height at which the last box ends. */
int picture_layout(struct picture *p, int top);
#define PAGE_MARGIN  20
#define COLUMN_WIDTH 234
#define CELL	     15 /* a VF */
#define CELL_STEP    18
#define LINE_HEIGHT  16
#define TILE_PAD     9
#define GPU_LINES    3
#define NIC_LINES    3
int head_height(const struct box *b);
int cells_per_row(int tile_width);

#endif
