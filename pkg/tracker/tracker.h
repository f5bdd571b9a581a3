/*
 * The room `holds` in the running daemon, on the rpc thread: one for all resources. It decides
 * nothing. It reports events to holds (from the kubelet, its checkpoint, the machine and the disk,
 * each with its time), does the actions of holds, and stores the ledger in the background: a reply
 * of Allocate never waits for the disk, PreStartContainer does, but no longer than holds allows.
 */
#ifndef RAILMATE_TRACKER_TRACKER_H
#define RAILMATE_TRACKER_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "holds/holds.h"

struct arena;
struct tracker;
struct ledger_file;
struct node;
struct node_seed;
struct podres;
struct pool;
struct pool_dev;
struct rpc;
struct sysroot;

/* Counts the user contexts of this RDMA device; NULL: of each device. seen() is called before the
 * return. -errno: contexts cannot be counted here. */
typedef void (*tracker_user_fn)(void *arg, const char *rdma, unsigned users);
typedef int (*tracker_users_fn)(void *ctx, const char *rdma, tracker_user_fn seen, void *arg);

struct tracker_env {
	struct rpc *rpc;
	struct holds *holds;	  /* taken */
	struct ledger_file *file; /* taken; NULL: memory only */
	/* The state directory that could not be opened: a thread of its own tries again every few
	 * seconds. NULL: it is open, or there is none. */
	const char *away_dir;
	const struct sysroot *root; /* NULL: a VF that the node does not show is gone */
	tracker_users_fn users;	    /* NULL: open devices are not seen */
	void *users_ctx;
	/* An event for the log (base/event.h), once for each thing that happens; bad: an operator
	 * should look. NULL: none is written. */
	void (*note)(void *ctx, bool bad, const char *event);
	/* The list that the kubelet has of VFs and slots is no longer true: the lists of all
	 * resources have to be sent anew. Not from within a function of the tracker that was
	 * called. NULL: no list depends on it. */
	void (*changed)(void *ctx);
	/* A container holds this VF, it is on the bus, and no pool lists it, because its RDMA
	 * device was out of sight before the hold was known: the node has to be made anew with this
	 * seed, whose strings live until the return. NULL: nobody makes one. */
	void (*unlisted)(void *ctx, const struct node_seed *seed);
	void *ctx; /* of these three */
};

/* The strings are borrowed. [rpc thread, or before it runs] */
struct tracker *tracker_new(const struct tracker_env *env);
void tracker_free(struct tracker *k); /* stores the newest ledger */
/* An event for note. */
void tracker_say(struct tracker *k, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct holds *tracker_holds(struct tracker *k);
const struct ledger *tracker_ledger(const struct tracker *k);
const struct node *tracker_node(const struct tracker *k); /* NULL: none yet */
struct holds_now tracker_now(void);

/* A new node (a reference is taken). */
void tracker_update(struct tracker *k, struct node *node);
/* Do containers of the pod whose cgroup has this UID run? As tracker_pod_runs() (cgroup.h). */
typedef int (*tracker_runs_fn)(void *ctx, const char *uid);
/*
 * The tracker's own questions, while containers hold VFs. podres: Get of each pod every few
 * seconds; a List only where Get does not work or a pod's name is not known, seldom, and never soon
 * after an allocation (docs/design/kubelet.md §2.2); It outlives the tracker; NULL: the one of
 * before. checkpoint: the kubelet's file, borrowed; NULL: none. runs NULL: cgroups are not seen.
 */
void tracker_follow(struct tracker *k, struct podres *podres, const char *checkpoint,
		    tracker_runs_fn runs, void *ctx);

/*
 * A container's event was passed to holds: the actions that follow are done, the ledger is stored
 * soon, and the tracker's own questions wait for a pause. done (may be NULL) runs on the rpc
 * thread, never before the return, once an answer that waits for the present ledger may go out.
 */
void tracker_save(struct tracker *k, void (*done)(void *arg), void *arg);

/* Does the actions of holds that are due, and stores nothing. */
void tracker_run_now(struct tracker *k);

struct tracker_disk {
	bool has_file; /* the ledger is kept in one */
	bool stored;   /* the file has the present ledger */
	bool failing;  /* the file cannot be written, or its directory not be opened */
	bool late;     /* a write takes longer than 3 s: the disk hangs, or is very slow */
};
struct tracker_disk tracker_disk(const struct tracker *k);

/*
 * The state of a device of a pool of the node: holds_judge(), with the facts of the machine. A VF
 * without a hold counts as open when two looks a second apart or more have found it so: programs
 * that list devices open each for a moment. closely: `why` also names the user of a VF that is
 * held, which takes a look at the cgroup of its pod. Strings are in the arena, or of the node.
 */
struct holds_verdict tracker_judge(struct tracker *k, const struct pool *pool,
				   const struct pool_dev *dev, bool closely, struct arena *a);

/* The facts of a VF that the machine shows now; the strings are in the arena. */
/* The cgroup of the pod with this UID, now. */
enum holds_cgroup tracker_cgroup(struct tracker *k, const char *uid);
struct holds_facts tracker_facts(struct tracker *k, const char *vf, struct arena *a);
/* A sentence: running pods, or the kubelet's checkpoint, cannot be seen, though containers have
 * VFs. NULL: they are. In the arena. */
const char *tracker_unseen(struct tracker *k, struct arena *a);
/* The kubelet's checkpoint as it is now, read again only when it changed; until the next call. */
size_t tracker_checkpoint(struct tracker *k, const struct holds_entry **ret);

#endif
