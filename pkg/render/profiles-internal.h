/*
 * The variables of libraries beside NCCL (docs/design/nccl.md §5.1, §5.2, §5.3), for the VFs of one
 * container. Pure. Of NCCL's own only the P_Key's value is from here.
 *
 * A variable names the VFs of those pools that have its profile. Choices that are the operator's
 * only (traffic class, transports, …) are policy (config/policy.h) and pass through the pool's
 * "env"; the two sets of names are disjoint.
 */
#ifndef RAILMATE_RENDER_PROFILES_INTERNAL_H
#define RAILMATE_RENDER_PROFILES_INTERNAL_H

#include <stdbool.h>

#include "render/render.h"

struct pool_config;

#define PROFILE_ENV_MAX 13 /* so many variables at most: room for them is made by the caller */

/*
 * Appended to ret->envs, unsorted. `grants` are all the RDMA pools of the container that are known
 * (one at Allocate), VFs with an RDMA device only are named, in rail order. gid_index: the RoCE GID
 * index that is right for every VF of them, -1 if none is or it is not known yet. mscclpp and ofi
 * take index 0, a link-local one, without it.
 */
void render_profile_env(const struct grant *grants, size_t n, int gid_index, struct arena *arena,
			struct edits *ret);

/*
 * Does a container of this pool get /dev/infiniband/rdma_cm? As sriov-network-device-plugin always
 * gives it, so does a pool that names no profiles, and "none". A pool that names them gives it when
 * one of them connects by it: ucx, ofi, oneccl.
 */
bool render_wants_rdma_cm(const struct pool_config *cfg);

#endif
