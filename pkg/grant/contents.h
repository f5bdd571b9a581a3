/*
 * What a container gets at the moment it starts: the VFs that it has of all pools together, as they
 * are by then, → variables and the files of its directories. Looking is done on another thread
 * (grant/vfprobe.h); the rest is here, on the rpc thread.
 */
#ifndef RAILMATE_GRANT_CONTENTS_H
#define RAILMATE_GRANT_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "grant/rundir.h"
#include "grant/vfprobe.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"

struct grant_dev;
struct node;
struct pod_container;
struct pool;
struct sysroot;

/* What it has of one pool. */
struct share {
	const struct pool *pool;
	struct ids vfs; /* PCI addresses, never none */
};

struct contents_in {
	const struct node *node;
	const struct sysroot *root;
	const struct ledger *ledger;
	const struct rundir *rundir; /* NULL: there are no files */
	struct ledger_owner owner;   /* pod NULL: not known */
	const int *gpus;
	size_t n_gpus; /* PCI indices */
	const struct share *shares;
	size_t n_shares; /* each pool once */
	const struct vf_state *states;
	size_t n_states; /* as contents_functions() asks; NULL: not known, and */
	const char *why; /* the sentence */
	const struct grant_dev *looked;
	size_t n_looked; /* looked at just now, so not again */
	bool cdi; /* the variables go into CDI specs: what Allocate gave of early pools is left out
		   */
};

struct contents {
	struct edits env;
	const struct rundir_file *files;
	size_t n_files;
	const char *doubt; /* a sentence: what is not known of it; NULL nothing */
};

/* What a container has, by its answer of PodResources: late slots are the VFs that the ledger has
 * bound to them, if any. In the arena. */
size_t contents_shares(const struct node *node, const struct ledger *ledger,
		       const struct pod_container *c, struct arena *a, struct share **ret);
/* The functions to be looked at: VFs of pools for RDMA. */
size_t contents_functions(const struct node *node, const struct share *shares, size_t n,
			  struct arena *a, struct bdf **ret);

/* -errno: a VF of a late pool that cannot be used; GIDs that cannot be as the operator wants them
 * (EINVAL). Sentences for the pod. */
int contents_render(const struct contents_in *in, struct arena *a, struct contents *ret,
		    struct err *err);

/* The device nodes of one VF alone: those of its slot. */
int contents_nodes(const struct contents_in *in, const struct pool *pool, const char *vf,
		   struct arena *a, struct edits *ret, struct err *err);

/* Does a pool give its containers a directory? */
bool contents_has_files(const struct pool *pool);
/* By what the directory is named: the lowest address of these VFs; that of all late pools together,
 * NULL: they give none. */
const char *contents_lowest(const struct ids *vfs);
const char *contents_lowest_late(const struct share *shares, size_t n);
struct bindmount contents_mount(const struct rundir *r, const char *vf, struct arena *a);
/* Into every directory of the container. The late pools have one together, each early pool its own;
 * whichever mount the kubelet takes carries everything. */
int contents_write(struct rundir *r, const struct share *shares, size_t n, const struct contents *c,
		   struct err *err);

#endif
