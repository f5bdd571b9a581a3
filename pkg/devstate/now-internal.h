/* Reads of now.c that vfstate.c does as well, in another network namespace. */
#ifndef RAILMATE_DEVSTATE_NOW_INTERNAL_H
#define RAILMATE_DEVSTATE_NOW_INTERNAL_H

#include "devstate/devstate.h"

/* Both tables of a port, now: GIDs without empty slots, P_Keys index by index. Empty where there is
 * no such port. */
#define PKEY_TABLE_MAX 1024
struct port_tables {
	struct gid_entry *gids;
	size_t n_gids;
	int gid_table_len; /* slots */
	uint16_t *pkeys;
	size_t n_pkeys;
};
void rdma_read_tables(const struct sysroot *root, const char *rdma, int port, struct arena *arena,
		      struct port_tables *ret);
/* The verbs device that serves ret->rdma, by the class of all of them. */
void find_class_uverbs(const struct sysroot *root, struct function_now *ret);

#endif
