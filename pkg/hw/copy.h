/* An inventory of the same machine, to be changed where the machine did. */
#ifndef RAILMATE_HW_COPY_H
#define RAILMATE_HW_COPY_H

struct hw_inventory;

/* Shares nothing with inv; the caller's (hw_inventory_free()). */
struct hw_inventory *hw_inventory_copy(const struct hw_inventory *inv);

#endif
