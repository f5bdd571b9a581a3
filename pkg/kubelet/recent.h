/*
 * The GPUs that the last preferred allocations were chosen for. Allocate follows within milliseconds and names only ids:
 * exactly the ids of an answer mean its container.
 */
#ifndef RAILMATE_KUBELET_RECENT_H
#define RAILMATE_KUBELET_RECENT_H

#include <stddef.h>
#include <stdint.h>

#include "kubelet/messages.h"

struct arena;
struct hw_inventory;
struct recent;

struct recent *recent_new(void);
void recent_free(struct recent *r); /* NULL is fine */
void recent_add(struct recent *r, int64_t now_ms, const struct ids *ids, const int *gpus, size_t n_gpus,
		const struct hw_inventory *inv);
/*
 * The GPUs as PCI indices of this inventory, in the arena; n 0: not known. An answer counts once, and not after
 * ten seconds: later the same ids may go to another container of which we know nothing.
 */
size_t recent_take(struct recent *r, int64_t now_ms, const struct ids *ids, const struct hw_inventory *inv,
		   struct arena *a, int **ret_gpus);

#endif
