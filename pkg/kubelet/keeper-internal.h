/* What the files of the keeper share. Everything runs on the rpc thread. */
#ifndef RAILMATE_KUBELET_KEEPER_INTERNAL_H
#define RAILMATE_KUBELET_KEEPER_INTERNAL_H

#include "kubelet/keeper.h"

#include <stddef.h>

#include "ledger/ledger.h"

struct keeper_look;
struct ledger_writer;
struct rpc_timer;
struct store;
struct waiter;

/* How long things take; tests are quicker. */
struct keeper_pace {
	unsigned settle_ms;	/* what nobody waits for goes to the disk together */
	unsigned retry_ms;	/* a store that failed is tried again */
	unsigned drain_ms;	/* what drains is looked at again */
	unsigned young_ms;	/* the kubelet may not have noted a hold that is younger */
	unsigned apart_ms;	/* two sightings that count as two */
	unsigned blind_ms;	/* nobody told us anything for so long: holds say nothing */
	unsigned look_ms;	/* each pod is asked for once in this time */
	unsigned list_ms;	/* between our own Lists */
	unsigned uids_ms;	/* from a hold to the look for its pod's UID, when no other hold follows */
	unsigned uids_latest_ms; /* when they do */
	unsigned host_ms;	/* how long the host's own users are not counted again */
	unsigned quiet_ms;	/* no List so soon after an allocation */
};

/* What is known of a hold beyond the ledger. Sorted by VF, as the holds are. */
struct keeper_sight {
	char *vf;
	int64_t since_ms;   /* these two tell one hold of the VF from the next */
	uint64_t decision;
	int64_t noted_ms;   /* monotonic: when it was made, or we started */
	int64_t missed_ms;  /* monotonic: when it was first missed; 0: it is not missed */
	bool doubly_told;   /* that the kubelet has given it away twice */
};

struct keeper {
	struct rpc *rpc;
	struct ledger *ledger;
	struct node *node; /* NULL: none yet */
	struct keeper_pace pace;
	keeper_users_fn users;
	void *users_ctx;
	unsigned host_users;	     /* contexts that every RDMA device has, whoever holds it */
	int64_t host_users_until_ms; /* monotonic: then they are counted again */
	void (*note)(void *ctx, bool bad, const char *sentence);
	void (*changed)(void *ctx);
	void *listener;
	void (*unlisted)(void *ctx, const struct node_seed *seed);
	void *unlisted_ctx;

	/* keeper_pods.c */
	const char *checkpoint;
	keeper_runs_fn runs; /* NULL: cgroups are not seen */
	void *runs_ctx;
	struct rpc_timer *uids;
	int64_t uids_since_ms;

	/* the disk */
	struct ledger_file *file;     /* NULL: memory only */
	struct ledger_writer *writer;
	struct store *store;	      /* under way */
	uint64_t stored;	      /* generation on disk */
	bool failing;
	struct waiter *waiters, **last_waiter;
	struct rpc_timer *soon, *retry;
	bool hurried; /* soon is at once: somebody waits */

	/* who still lives: keeper_reconcile.c */
	struct keeper_sight *sights;
	size_t n_sights;
	int64_t looked_ms; /* when PodResources last told us something */
	int64_t busy_ms;   /* when a hold was last made */
	struct rpc_timer *drain, *tell;

	/* keeper_watch.c */
	struct podres *podres;
	struct rpc_timer *tick;
	struct keeper_look *look; /* under way */
	char *cursor;		  /* "NAMESPACE\0NAME" that was asked for last; NULL */
	int64_t listed_ms;
};

/* Brings the sights in step with the holds. */
void keeper_sync(struct keeper *k);
/* Fills in what the hold does not know of its VF, as far as the node shows it. */
void keeper_complete(struct keeper *k, const struct ledger_hold *hold);
/* Is it left alone, by the machine? hold may be NULL. ret_why as in keeper_is_free(). */
bool keeper_at_rest(struct keeper *k, const struct node *node, const char *vf, const struct ledger_hold *hold, struct arena *a,
		    const char **ret_why);
void keeper_uids_later(struct keeper *k);  /* if a hold lacks the UID of its pod */
void keeper_drain_later(struct keeper *k); /* if something drains */
void keeper_tell_changed(struct keeper *k);
void keeper_say(struct keeper *k, bool bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void keeper_watch_wake(struct keeper *k); /* something is held */
void keeper_watch_done(struct keeper *k);

#endif
