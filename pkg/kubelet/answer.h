/*
 * The decisions of the DevicePlugin service as functions, so that tests, benches and `railmatectl
 * plan` need no gRPC.
 */
#ifndef RAILMATE_KUBELET_ANSWER_H
#define RAILMATE_KUBELET_ANSWER_H

#include "kubelet/identify.h"
#include "kubelet/messages.h"
#include "render/render.h"

struct arena;
struct choice;
struct err;
struct holds;
struct ledger;
struct node;
struct pool;
struct pool_dev;
struct sysroot;

struct device_list answer_list(const struct pool *pool, struct arena *a);
/* Devices that drain are unhealthy: nobody gets them until they are at rest. */
void answer_list_draining(struct device_list *list, const struct holds *holds);

/* who may be NULL, or without GPUs: no GPU knowledge. Unknown ids are ignored, fewer available than
 * asked gives what there is; never fails. */
struct ids answer_preferred(const struct node *node, const struct pool *pool,
			    const struct preferred_container *req, const struct identified *who,
			    struct arena *a);
/*
 * The same in full: by what it was chosen goes to ret (all but owner, known and source, in the
 * arena). VFs that the ledger (may be NULL) says are held are not taken while there are others.
 */
struct ids answer_choice(struct node *node, const struct pool *pool,
			 const struct preferred_container *req, const struct identified *who,
			 const struct ledger *ledger, struct arena *a, struct choice *ret);

/*
 * One container_request: the grant of these ids, for render_grant(); its flags are the caller's.
 * root: where the functions are looked at again, now. gpus: those the preceding
 * GetPreferredAllocation learnt, n_gpus 0 when unknown. An id that is unknown, gone, or bound to a
 * driver without RDMA is an error that tells the operator what to do.
 */
int answer_grant(const struct node *node, const struct pool *pool, const struct ids *ids,
		 const struct sysroot *root, const int *gpus, size_t n_gpus, struct arena *a,
		 struct grant *ret, struct err *err);
/*
 * HCAs that containers share: ids are numbers, and every container gets all HCAs that work. No
 * share is held.
 */
struct device_list answer_shared_list(const struct pool *pool, struct arena *a);
int answer_shared(const struct node *node, const struct pool *pool, const struct ids *ids,
		  const struct sysroot *root, struct arena *a, struct edits *ret, struct err *err);
/* One VF as it is now, in the host's network namespace. */
int answer_dev(const struct node *node, const struct pool *pool, const struct sysroot *root,
	       const struct pool_dev *dev, struct arena *a, struct grant_dev *ret, struct err *err);
/* Its MAD nodes, if its pool says umad; dev->rdma is known. */
void answer_umads(const struct node *node, const struct pool *pool, const struct sysroot *root,
		  struct arena *a, struct grant_dev *dev);
/* Which of the GPUs goes with which VF of the grant; devs: its VFs by their index in the pool. */
void answer_pairs(struct grant *grant, const int *devs, const int *gpus, size_t n_gpus,
		  struct arena *a);

#endif
