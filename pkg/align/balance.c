#include "align/balance-internal.h"

#include <stddef.h>

#include "align/flow-internal.h"

/* Rows that have a first unit of its own cost are two nodes each: that unit, and the rest. */
static int row_nodes(const struct balance *b)
{
	return b->first ? 2 * b->n_rows : b->n_rows;
}

static int64_t unit_cost(const struct balance *b, int i)
{
	int n = b->n_rows * b->n_cols;

	if (b->first)
		return i < n ? b->first[i] : b->cost[i - n];
	return b->cost[i];
}

static void add_bases(const struct balance *b, struct flow *f, int64_t extra)
{
	int nodes = row_nodes(b);

	for (int r = 0; b->first && r < b->n_rows; r++)
		align_flow_arc(f, 0, 2 + r, 1, 0);
	for (int r = nodes - b->n_rows; r < nodes; r++) {
		align_flow_arc(f, 0, 2 + r, b->row_base - (b->first != NULL), 0);
		if (b->row_extra > 0)
			align_flow_arc(f, 0, 2 + r, b->row_extra, extra);
	}
	for (int c = 0; c < b->n_cols; c++) {
		align_flow_arc(f, 2 + nodes + c, 1, b->col_base[c], 0);
		if (b->col_extra[c] > 0)
			align_flow_arc(f, 2 + nodes + c, 1, b->col_extra[c], extra);
	}
}

int64_t align_balance(const struct balance *b, struct arena *arena, int *ret_units)
{
	int nodes = row_nodes(b), pairs = b->n_rows * b->n_cols, arcs = nodes * b->n_cols;
	struct flow *f =
		align_flow_new(arena, 2 + nodes + b->n_cols, arcs + 3 * nodes + 2 * b->n_cols);
	int64_t total = 0, top = 0;
	int first = 0;

	for (int i = 0; i < arcs; i++) {
		int row = i / b->n_cols, col = i % b->n_cols;
		int arc = align_flow_arc(f, 2 + row, 2 + nodes + col, b->total, unit_cost(b, i));

		first = i == 0 ? arc : first;
		top = unit_cost(b, i) > top ? unit_cost(b, i) : top;
	}
	/* More than any detour between bases can cost. */
	add_bases(b, f, (top + 1) * 2 * (nodes + b->n_cols));
	align_flow_send(f, b->total);
	for (int i = 0; i < arcs; i++) {
		int units = align_flow_on(f, first + 2 * i);

		total += units * unit_cost(b, i);
		if (ret_units)
			ret_units[i % pairs] = (i < pairs ? 0 : ret_units[i % pairs]) + units;
	}
	return total;
}
