/* What a container gets of the devices of a pool, as they are now. */
#ifndef RAILMATE_GRANT_GRANT_H
#define RAILMATE_GRANT_GRANT_H

#include "kubemsg/messages.h"
#include "render/render.h"

struct arena;
struct err;
struct node;
struct pool;
struct pool_dev;
struct sysroot;

/*
 * One container_request: the grant of these ids, for render_grant(); its flags are the caller's.
 * root: where the functions are looked at again, now. gpus: those the preceding
 * GetPreferredAllocation learnt, n_gpus 0 when unknown. An id that is unknown, gone, or bound to a
 * driver without RDMA is an error that tells the operator what to do.
 */
int grant_of_ids(const struct node *node, const struct pool *pool, const struct ids *ids,
		 const struct sysroot *root, const int *gpus, size_t n_gpus, struct arena *a,
		 struct grant *ret, struct err *err);
/*
 * HCAs that containers share: ids are numbers, and every container gets all HCAs that work. No
 * share is held.
 */
struct device_list grant_share_list(const struct pool *pool, struct arena *a);
int grant_of_shares(const struct node *node, const struct pool *pool, const struct ids *ids,
		    const struct sysroot *root, struct arena *a, struct edits *ret,
		    struct err *err);
/* One VF as it is now, in the host's network namespace. */
int grant_look_at(const struct node *node, const struct pool *pool, const struct sysroot *root,
		  const struct pool_dev *dev, struct arena *a, struct grant_dev *ret,
		  struct err *err);
/* Its MAD nodes, if its pool says umad; dev->rdma is known. */
void grant_find_umads(const struct node *node, const struct pool *pool, const struct sysroot *root,
		      struct arena *a, struct grant_dev *dev);
/* Which of the GPUs goes with which VF of the grant; devs: its VFs by their index in the pool. */
void grant_find_pairs(struct grant *grant, const int *devs, const int *gpus, size_t n_gpus,
		      struct arena *a);

#endif
