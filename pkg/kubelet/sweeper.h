/*
 * When directories of containers (kubelet/rundir.h) go: as soon as nobody holds their VF. Those that are there when we start and that the
 * ledger does not know may be of containers that run, if the ledger was lost: they go when the kubelet has told who runs. On the rpc
 * thread.
 */
#ifndef RAILMATE_KUBELET_SWEEPER_H
#define RAILMATE_KUBELET_SWEEPER_H

struct keeper;
struct node;
struct podres;
struct rpc;
struct rundir;
struct sweeper;

struct sweeper_env {
	struct rpc *rpc;
	struct rundir *rundir;
	struct keeper *keeper;
	struct podres *podres; /* NULL: nobody tells, and what is not known stays */
	unsigned patience_ms;  /* 0: 10 s; before the kubelet is asked, if nobody else did and something is left */
};

struct sweeper *sweeper_new(const struct sweeper_env *env);
void sweeper_update(struct sweeper *s, struct node *node); /* a reference is taken; sweeps */
void sweeper_sweep(struct sweeper *s);			   /* holds have changed */
void sweeper_free(struct sweeper *s);			   /* NULL is fine */

#endif
