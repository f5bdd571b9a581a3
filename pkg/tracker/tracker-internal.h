/* Shared by the files of the tracker. Everything runs on the rpc thread. */
#ifndef RAILMATE_TRACKER_TRACKER_INTERNAL_H
#define RAILMATE_TRACKER_TRACKER_INTERNAL_H

#include "tracker/tracker.h"

#include <stddef.h>
#include <time.h>

#include "base/err.h"
#include "ledger/ledger.h"

struct ledger_writer;
struct pending;
struct pod_list;
struct pods_said;
struct rpc_work;
struct rpc_timer;
struct store;
struct waiter;

/* How long things take; tests are quicker. */
struct tracker_pace {
	unsigned settle_ms; /* changes that no reply waits for go to the disk together */
	/* A store that failed is tried again, and a state directory that could not be opened */
	unsigned retry_ms;
	unsigned late_ms;  /* a store under way for so long is reported as one that fails */
	unsigned drain_ms; /* VFs of which holds wants to know are probed again */
	unsigned round_ms; /* each pod is asked for once in this time */
	unsigned apart_ms; /* the same while a pod is missed */
	unsigned list_ms;  /* between our own Lists */
	/* From a hold to the search for its pod's UID, when no other hold follows */
	unsigned uids_ms;
	unsigned uids_latest_ms; /* the same when other holds follow */
	unsigned host_ms;	 /* how long the users of devices are not counted again */
	unsigned look_ms;	 /* between two looks at devices that no container has */
	unsigned doubt_ms;	 /* the same after a device was found open for the first time */
	unsigned quiet_ms;	 /* no List so soon after an allocation */
};

/* The answer of `runs` about a pod. Borrowed. */
struct pod_runs {
	const char *uid;
	int result;
};

/* A device that no container has and something has open. */
struct opened {
	char *rdma;
	unsigned users;	  /* beside those that every device has */
	int64_t since_ms; /* monotonic: each look since then has found it so */
	bool is_long;	  /* for long enough to be no program that lists devices */
	bool is_free;	  /* open.c, while it looks */
};

struct tracker {
	struct tracker_env env;
	struct holds *holds;
	struct node *node; /* NULL: none yet */
	struct tracker_pace pace;
	bool running; /* tracker_run_now() is at work: its actions do not begin it again */
	/* open.c */
	unsigned host_users;   /* contexts that every RDMA device has, held or not */
	struct opened *opened; /* in the order of the names */
	struct arena *opened_arena;
	size_t n_opened;
	int64_t looked_ms; /* monotonic; 0: not yet */
	struct rpc_timer *look;
	char **reported_unlisted; /* VFs */
	size_t n_reported, cap_reported;
	uint64_t completed; /* the generation whose holds know their devices */

	/* checkpoint.c */
	const char *checkpoint;
	struct arena *entries_arena;
	struct holds_entry *entries;
	size_t n_entries;
	struct timespec entries_mtime;
	uint64_t entries_ino;
	struct err entries_err; /* code 0: they were read */
	bool told_checkpoint;	/* the log has that the checkpoint cannot be read */
	tracker_runs_fn runs;	/* NULL: cgroups are not seen */
	void *runs_ctx;
	bool cgroups_found;	/* of some pod, by its UID, now or by the ledger */
	struct pod_runs *round; /* the answers of one round of probes; NULL: none is under way */
	size_t n_round;
	struct rpc_timer *uids;
	int64_t uids_since_ms;
	uint64_t uids_filled; /* the generation that has all that the checkpoint knew */

	/* the disk */
	struct ledger_file *file; /* NULL: memory only */
	struct ledger_writer *writer;
	struct store *store; /* under way */
	int64_t store_since_ms;
	bool failing;
	struct waiter *waiters, **last_waiter;
	struct rpc_timer *soon, *retry, *patience;
	bool hurried;		 /* soon is at once: a reply waits */
	struct rpc_work *reopen; /* under way */
	struct rpc_timer *reopen_timer;

	int64_t busy_ms; /* when a container last came, or began to start: tracker_save() */
	struct rpc_timer *drain, *tell;

	/* watch.c */
	struct podres *podres;
	struct rpc_timer *tick;
	struct pending *asked;
	char *cursor; /* "NAMESPACE\0NAME" that was asked for last; NULL */
	int64_t listed_ms;
	size_t n_pods; /* pods with holds, in this generation of the ledger */
	uint64_t counted;
};

/* A change that was heard or seen: tracker_save() without a container that comes */
void tracker_note_change(struct tracker *k);
void tracker_uids_later(struct tracker *k);  /* if a hold lacks the UID of its pod */
void tracker_probe_slots(struct tracker *k); /* slots whose VF is not known */
void tracker_drain_later(struct tracker *k); /* if holds wants to know of a VF */
/* Fills in facts that holds lack of their VFs, as far as the node shows them */
void tracker_complete(struct tracker *k);

void tracker_tell_changed(struct tracker *k); /* env.changed, soon */
void tracker_open_begin(struct tracker *k);   /* there is a new node */
void tracker_open_done(struct tracker *k);
/* A sentence, or NULL. long: of a device that no container has, by several looks; now: by one. */
const char *tracker_open_long(struct tracker *k, const char *rdma, struct arena *a);
const char *tracker_open_now(struct tracker *k, const char *rdma, struct arena *a);

size_t tracker_count_ids(const struct pod_list *pods); /* ids of all containers */

/* For kubeclient_podres_subscribe(). */
void tracker_hear(void *tracker, const struct pods_said *said);

void tracker_reopen_later(struct tracker *k); /* env.away_dir */

void tracker_watch(struct tracker *k, struct podres *podres);
void tracker_watch_wake(struct tracker *k); /* something is held */
void tracker_watch_done(struct tracker *k);
void tracker_checkpoint_done(struct tracker *k);

#endif
