/*
 * The room `holds` in the running daemon, on the rpc thread: one for all resources. It decides
 * nothing. It tells holds what happens (what the kubelet, its checkpoint, the machine and the disk
 * say, and when), does what holds asks for, and stores the ledger in the background: a reply of
 * Allocate never waits for the disk, PreStartContainer does, but no longer than holds allows.
 */
#ifndef RAILMATE_TRACKER_TRACKER_H
#define RAILMATE_TRACKER_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "holds/holds.h"

struct arena;
struct err;
struct tracker;
struct ledger_file;
struct node;
struct node_seed;
struct podres;
struct pods_said;
struct pool_dev;
struct rpc;
struct sysroot;

/* Does somebody still use this RDMA device (user contexts)? -errno: cannot be known here. */
typedef int (*tracker_users_fn)(void *ctx, const char *rdma, unsigned *ret_users);

/* holds and file are taken. file NULL: memory only. root NULL: a VF that the node does not show is
 * gone. [rpc thread, or before it runs] */
struct tracker *tracker_new(struct rpc *rpc, struct holds *holds, struct ledger_file *file,
			    const struct sysroot *root, tracker_users_fn users, void *users_ctx);
void tracker_free(struct tracker *k); /* stores what is not stored yet */
/* The state directory could not be opened: it is tried again every few seconds, by a thread of its
 * own. Borrowed. */
void tracker_reopen(struct tracker *k, const char *dir);

/* note: an event for the log (base/event.h), once for each thing that happens (bad: an operator
 * should look). changed: what the kubelet is told of VFs and slots is no longer true: the lists of
 * all resources have to be sent anew; not from within a function of the tracker that was called.
 * Either may be NULL. */
void tracker_listen(struct tracker *k, void (*note)(void *ctx, bool bad, const char *event),
		    void (*changed)(void *ctx), void *ctx);
/* An event for note. */
void tracker_say(struct tracker *k, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* unlisted: a container holds this VF, it is on the bus, and no pool lists it, because its RDMA
 * device was out of sight before we knew of it: the node has to be made anew with this seed, whose
 * strings live until the return. */
void tracker_listen_unlisted(struct tracker *k,
			     void (*unlisted)(void *ctx, const struct node_seed *seed), void *ctx);

struct holds *tracker_holds(struct tracker *k);
const struct ledger *tracker_ledger(const struct tracker *k);
const struct node *tracker_node(const struct tracker *k); /* NULL: none yet */
struct holds_now tracker_now(void);

/* A new picture of the node (a reference is taken). */
void tracker_update(struct tracker *k, struct node *node);
/* From now on look by itself, while something is held: Get of each pod every few seconds; a List
 * only where Get does not work or a pod's name is not known, seldom, and never soon after an
 * allocation (docs/design/kubelet.md §2.2). podres outlives the tracker. */
void tracker_watch(struct tracker *k, struct podres *podres);
/* Do containers of the pod whose cgroup has this UID run? 1, 0, -errno: cannot be known. */
typedef int (*tracker_runs_fn)(void *ctx, const char *uid);
/* checkpoint: the kubelet's file, borrowed; NULL: none. runs NULL: cgroups are not seen. */
void tracker_follow(struct tracker *k, const char *checkpoint, tracker_runs_fn runs, void *ctx);

/*
 * An event was told to holds: what follows from it is done, the ledger is stored soon. done (may be
 * NULL) runs on the rpc thread, never before the return, once an answer that waits for what the
 * ledger holds now may go out.
 */
void tracker_save(struct tracker *k, void (*done)(void *arg), void *arg);

/* The same without storing: what holds asks for now. */
void tracker_run_now(struct tracker *k);

/* What the machine shows of a VF now; the strings are in the arena. */
struct holds_facts tracker_facts(struct tracker *k, const char *vf, struct arena *a);
/* Has a process the VF's RDMA device open? */
bool tracker_is_open(struct tracker *k, const char *vf);
/* The kubelet's checkpoint as it is now, read again only when it changed; until the next call. */
size_t tracker_checkpoint(struct tracker *k, const struct holds_entry **ret);

/* For podres_subscribe(); tracker_watch() does. */
void tracker_hear(void *tracker, const struct pods_said *said);

#endif
