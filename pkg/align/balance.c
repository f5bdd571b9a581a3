#include "align/balance-internal.h"

#include <stddef.h>

#include "align/flow-internal.h"

int64_t align_balance(const struct balance *b, struct arena *arena, int *ret_units)
{
	int max_arcs = b->n_rows * b->n_cols + 2 * (b->n_rows + b->n_cols), first = 0;
	struct flow *f = align_flow_new(arena, 2 + b->n_rows + b->n_cols, max_arcs);
	int64_t total = 0, top = 0, extra;

	for (int i = 0; i < b->n_rows * b->n_cols; i++) {
		int row = i / b->n_cols, col = i % b->n_cols;
		int arc = align_flow_arc(f, 2 + row, 2 + b->n_rows + col, b->total, b->cost[i]);

		first = i == 0 ? arc : first;
		top = b->cost[i] > top ? b->cost[i] : top;
	}
	/* More than any detour between bases can cost. */
	extra = (top + 1) * 2 * (b->n_rows + b->n_cols);
	for (int r = 0; r < b->n_rows; r++) {
		align_flow_arc(f, 0, 2 + r, b->row_base, 0);
		if (b->row_extra > 0)
			align_flow_arc(f, 0, 2 + r, b->row_extra, extra);
	}
	for (int c = 0; c < b->n_cols; c++) {
		align_flow_arc(f, 2 + b->n_rows + c, 1, b->col_base[c], 0);
		if (b->col_extra[c] > 0)
			align_flow_arc(f, 2 + b->n_rows + c, 1, b->col_extra[c], extra);
	}
	align_flow_send(f, b->total);
	for (int i = 0; i < b->n_rows * b->n_cols; i++) {
		int units = align_flow_on(f, first + 2 * i);

		total += units * b->cost[i];
		if (ret_units)
			ret_units[i] = units;
	}
	return total;
}
