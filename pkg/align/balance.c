#include "align/balance.h"

#include <stddef.h>

#include "align/flow.h"
#include "base/arena.h"

/* More than any detour between bases can cost. */
static int64_t price_of_extra(const struct balance *b)
{
	int64_t top = 0;

	for (int i = 0; i < b->n_rows * b->n_cols; i++)
		top = b->cost[i] > top ? b->cost[i] : top;
	return (top + 1) * 2 * (b->n_rows + b->n_cols);
}

static void add_ends(struct flow *f, const struct balance *b, int64_t extra)
{
	for (int r = 0; r < b->n_rows; r++) {
		flow_arc(f, 0, 2 + r, b->row_base, 0);
		if (b->row_extra > 0)
			flow_arc(f, 0, 2 + r, b->row_extra, extra);
	}
	for (int c = 0; c < b->n_cols; c++) {
		flow_arc(f, 2 + b->n_rows + c, 1, b->col_base[c], 0);
		if (b->col_extra[c] > 0)
			flow_arc(f, 2 + b->n_rows + c, 1, b->col_extra[c], extra);
	}
}

int64_t balance_solve(const struct balance *b, struct arena *arena, int *ret_units)
{
	int max_arcs = b->n_rows * b->n_cols + 2 * (b->n_rows + b->n_cols), first = 0;
	struct flow *f = flow_new(arena, 2 + b->n_rows + b->n_cols, max_arcs);
	int64_t total = 0;

	for (int i = 0; i < b->n_rows * b->n_cols; i++) {
		int row = i / b->n_cols, col = i % b->n_cols;
		int arc = flow_arc(f, 2 + row, 2 + b->n_rows + col, b->total, b->cost[i]);

		first = i == 0 ? arc : first;
	}
	add_ends(f, b, price_of_extra(b));
	flow_send(f, b->total);
	for (int i = 0; i < b->n_rows * b->n_cols; i++) {
		int units = flow_on(f, first + 2 * i);

		total += units * b->cost[i];
		if (ret_units)
			ret_units[i] = units;
	}
	return total;
}
