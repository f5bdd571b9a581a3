/*
 * The decisions of the DevicePlugin service as functions, so that tests, benches and `railmatectl plan` need no gRPC.
 */
#ifndef RAILMATE_KUBELET_ANSWER_H
#define RAILMATE_KUBELET_ANSWER_H

#include "kubelet/identify.h"
#include "kubelet/messages.h"
#include "render/render.h"

struct arena;
struct err;
struct node;
struct pool;
struct sysroot;

struct device_list answer_list(const struct pool *pool, struct arena *a);

/* who may be NULL or not found: no GPU knowledge. Unknown ids are ignored, fewer available than asked gives what there is; never fails. */
struct ids answer_preferred(const struct node *node, const struct pool *pool, const struct preferred_container *req,
			    const struct identified *who, struct arena *a);

/* One container_request. root: where the functions are looked at again, now. gpus: those the preceding GetPreferredAllocation
 * learnt, n_gpus 0 when unknown. An id that is unknown, gone, or bound to a driver without RDMA is an error that tells the operator what to do. */
int answer_allocate(const struct node *node, const struct pool *pool, const struct ids *ids, const struct sysroot *root,
		    const int *gpus, size_t n_gpus, struct arena *a, struct edits *ret, struct err *err);

#endif
