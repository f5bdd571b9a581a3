/* The grant of a container: variables, device nodes and files, at Allocate (here) and when it
 * starts (contents.h), and their records after a restart (records.h). Never decides who holds a VF.
 */
#ifndef RAILMATE_GRANT_GRANT_H
#define RAILMATE_GRANT_GRANT_H

#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "render/render.h"

struct arena;
struct err;
struct node;
struct pool;
struct sysroot;

/*
 * One container_request: the grant of these ids, for render_grant(); its flags are the caller's.
 * root: where the functions are looked at again, now. gpus: those the preceding
 * GetPreferredAllocation learnt, none when unknown. An id that is unknown, gone, or bound to a
 * driver without RDMA is an error, whose sentence has the remedy. HCAs that containers share: the
 * ids are numbers, and every container gets all HCAs that work.
 */
int grant_of_ids(const struct node *node, const struct pool *pool, const struct ids *ids,
		 const struct sysroot *root, struct gpu_set gpus, struct arena *a,
		 struct grant *ret, struct err *err);

#endif
