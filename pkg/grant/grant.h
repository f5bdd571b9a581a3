/* The grant of a container: variables, device nodes and files, at Allocate (here) and when it
 * starts, and their records after a restart (records.h). Never decides who holds a VF.
 */
#ifndef RAILMATE_GRANT_GRANT_H
#define RAILMATE_GRANT_GRANT_H

#include <stdbool.h>
#include <stddef.h>

#include "grant/rundir.h"
#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "render/render.h"

struct arena;
struct err;
struct grant_dev;
struct node;
struct pod_container;
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

/*
 * The contents of a container at the moment it starts: the VFs that it has of all pools together,
 * as they are by then, → variables and the files of its directories. Looking is done on another
 * thread (grant/vfprobe.h); the rest is here, on the rpc thread.
 */

/* A container's VFs of one pool. */
struct pool_vfs {
	const struct pool *pool;
	struct ids vfs; /* PCI addresses, never none */
};

/* A container and its VFs. */
struct grant_container {
	struct ledger_owner owner; /* pod NULL: not known */
	struct gpu_set gpus;
	struct pool_vfs *pool_vfs;
	size_t n_pool_vfs; /* each pool once */
};

struct contents_in {
	const struct node *node;
	const struct sysroot *root;
	const struct ledger *ledger;
	const char *rundir; /* NULL: there are no files */
	const struct grant_container *container;
	const struct vf_state *states;
	size_t n_states; /* as grant_functions() asks; NULL: not known, and */
	const char *why; /* the sentence */
	const struct grant_dev *probed;
	size_t n_probed; /* looked at just now, so not again */
	/* The variables go into CDI specs: those that Allocate gave of early pools are left out */
	bool cdi;
};

struct contents {
	struct edits env;
	const struct rundir_file *files;
	size_t n_files;
	const char *doubt; /* a sentence: facts of it that are not known; NULL none */
};

/* The VFs of a container, by its answer of PodResources: late slots are the VFs that the ledger has
 * bound to them, if any. In the arena. */
size_t grant_held_vfs(const struct node *node, const struct ledger *ledger,
		      const struct pod_container *c, struct arena *a, struct pool_vfs **ret);

/* The functions to be probed: VFs of pools for RDMA. */
size_t grant_functions(const struct node *node, const struct grant_container *c, struct arena *a,
		       struct bdf **ret);

/* -errno: a VF of a late pool that cannot be used; GIDs that cannot be as the operator wants them
 * (EINVAL). Sentences for the pod. */
int grant_render(const struct contents_in *in, struct arena *a, struct contents *ret,
		 struct err *err);

/* The device nodes of one VF alone: those of its slot. */
int grant_nodes(const struct contents_in *in, const struct pool *pool, const char *vf,
		struct arena *a, struct edits *ret, struct err *err);

/*
 * The directory of a container: named by the lowest address of its VFs of all late pools together
 * or, where it has none of these, of its early pool. It exists from now on. ret: its mounts, below
 * RENDER_DIR; the second one is probe, a folder of the host with the probe's files (NULL: none), if
 * it has them and a pool wants it. How many; 0: the pools give no files. rundir NULL: nothing is
 * made or looked for, ret names it as it is by default.
 */
#define GRANT_MOUNTS 2
int grant_make_directory(const char *rundir, const char *probe, const struct grant_container *c,
			 struct arena *a, struct bindmount ret[GRANT_MOUNTS], struct err *err);
/* Writes the files into every directory of the container. The late pools have one together, each
 * early pool its own; whichever mount the kubelet takes carries everything. */
int grant_write(const char *rundir, const struct grant_container *c,
		const struct contents *contents, struct err *err);

#endif
