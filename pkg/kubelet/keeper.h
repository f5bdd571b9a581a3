/*
 * The ledger of the running daemon, on the rpc thread: one for all resources. Changes are told to the disk in the background
 * (a reply of Allocate never waits), or are waited for (PreStartContainer answers when its binding is durable).
 */
#ifndef RAILMATE_KUBELET_KEEPER_H
#define RAILMATE_KUBELET_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct keeper;
struct ledger;
struct ledger_file;
struct ledger_hold;
struct node;
struct node_seed;
struct pod_list;
struct podres;
struct pool;
struct pool_dev;
struct rpc;

/* Does somebody still use this RDMA device (user contexts)? -errno: cannot be known here. */
typedef int (*keeper_users_fn)(void *ctx, const char *rdma, unsigned *ret_users);

/* file may be NULL: memory only (no --state-dir). ledger and file are taken. [rpc thread, or before it runs] */
struct keeper *keeper_new(struct rpc *rpc, struct ledger *ledger, struct ledger_file *file, keeper_users_fn users, void *users_ctx);
/* note: a sentence for the log, once for each thing that happens (bad: somebody should look). changed: by what the keeper
 * saw, VFs drain, drain no more, are free, or lost their slot: the lists of all resources have to be sent anew; not from within a function of the
 * keeper that was called. Either may be NULL. */
void keeper_listen(struct keeper *k, void (*note)(void *ctx, bool bad, const char *sentence), void (*changed)(void *ctx), void *ctx);
/* unlisted: a container holds this VF, it is on the bus, and no pool lists it, because its RDMA device was out of sight before we knew of
 * it: the node has to be made anew with this seed, whose strings live until the return. */
void keeper_listen_unlisted(struct keeper *k, void (*unlisted)(void *ctx, const struct node_seed *seed), void *ctx);
/* A hold that the ledger does not know, with its resource. False: the node has no such VF. */
bool keeper_adopt(struct keeper *k, const struct node *node, const struct ledger_hold *hold);
/* A new picture of the node (a reference is taken): what is at rest is judged by it. */
void keeper_update(struct keeper *k, struct node *node);
/* From now on look by itself, while something is held: Get of each pod every few seconds; a List only where Get does not work or a pod's
 * name is not known, seldom, and never soon after an allocation (reference kubelet.md §0.4). podres outlives the keeper. */
void keeper_watch(struct keeper *k, struct podres *podres);
/* Do containers of the pod whose cgroup has this UID still run? */
typedef bool (*keeper_runs_fn)(void *ctx, const char *cgroup_uid);
/* From now on a VF whose pod's containers run is not at rest, whatever the kubelet says. checkpoint: the kubelet's file, which outlives the
 * keeper. */
void keeper_follow(struct keeper *k, const char *checkpoint, keeper_runs_fn runs, void *ctx);
void keeper_free(struct keeper *k); /* stores what is not stored yet */
struct ledger *keeper_ledger(struct keeper *k);
/* The ledger was changed: store it soon. done (may be NULL) runs on the rpc thread once what the ledger holds now is on disk, or
 * with the error; never before the return. */
void keeper_save(struct keeper *k, void (*done)(void *arg, const struct err *err), void *arg);

/*
 * Is this VF free to be given to another container? Not if the ledger has a hold on it by somebody else, or if it is not at rest: its
 * netdev or RDMA device is away in a network namespace, a process has it open, or containers of the pod that held it still run. ret_why: a sentence in the arena for the pod's
 * status. me: the owner who asks (NULL nobody); what his pod holds (its init container, he himself before a restart) is his own.
 * Where nobody has told for a minute which pods live (PodResources is off, or too old), holds say nothing, and rest alone decides.
 */
struct ledger_owner;
struct arena;
bool keeper_is_free(struct keeper *k, const struct node *node, const struct pool_dev *dev, const struct ledger_owner *me,
		    struct arena *a, const char **ret_why);

/* Is it left alone, by the machine, whoever holds it? moves: its netdev and RDMA device may be away (a CNI plugin moved them into the pod's
 * network before the container starts). */
bool keeper_is_at_rest(struct keeper *k, const struct node *node, const struct pool_dev *dev, bool moves, struct arena *a,
		       const char **ret_why);

/* Was its owner only inferred at Allocate, and no container has started with it since? By who had GPUs and no VFs yet, a pod that never
 * asked for VFs can be taken for the one that does. A VF that was given away again since is none of these: its owner had it first. */
struct ledger_hold;
bool keeper_is_guess(const struct keeper *k, const struct ledger_hold *hold);

/* Does its pod still run, as far as its cgroup tells? */
bool keeper_pod_runs(const struct keeper *k, const struct ledger_hold *hold);

/*
 * What the kubelet says now (a List), against the ledger: holds of pods that are gone become draining and, once at rest, are dropped;
 * ids that a container holds and the ledger does not know are entered (a lost ledger is rebuilt); owners that were not known are.
 * listed_ms: when the List was asked for (monotonic); holds younger than that are left alone, and missing ones younger than a second,
 * and those of a container that PodResources does not show (an ordinary init container) while its pod is there.
 * A slot, and anything that is missing because there are no pods, or not this one (so says a kubelet that has just started), is gone
 * when it is missed twice, two seconds apart. Returns true if draining VFs or slots with a VF changed (lists have to be sent anew).
 */
bool keeper_reconcile(struct keeper *k, const struct node *node, const struct pod_list *pods, int64_t listed_ms);
/* The same for the answer to Get about one pod: pod NULL: there is no such pod. */
struct pod;
bool keeper_reconcile_pod(struct keeper *k, const struct node *node, const char *ns, const char *name, const struct pod *pod,
			  int64_t asked_ms);
/* The VF is draining: not offered (ListAndWatch says Unhealthy) until it is at rest. */
bool keeper_is_draining(const struct keeper *k, const char *vf);

#endif
