/* The capacity-balanced assignment of rows (GPUs) to columns (places or groups of them). */
#ifndef RAILMATE_ALIGN_BALANCE_INTERNAL_H
#define RAILMATE_ALIGN_BALANCE_INTERNAL_H

#include <stdint.h>

struct arena;

struct balance {
	int n_rows, n_cols;
	const int64_t *cost;	 /* n_rows × n_cols */
	const int64_t *first;	 /* likewise, of each row's first unit; NULL: as the others */
	int row_base, row_extra; /* each row: base units, then up to extra more */
	const int *col_base, *col_extra;
	int total;
};

/* Bases are filled before extras are used. ret_units (n_rows × n_cols) may be NULL. Returns the
 * total cost. */
int64_t align_balance(const struct balance *b, struct arena *arena, int *ret_units);

#endif
