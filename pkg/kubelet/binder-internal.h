/* What the files of the binder share. Everything runs on the rpc thread. */
#ifndef RAILMATE_KUBELET_BINDER_INTERNAL_H
#define RAILMATE_KUBELET_BINDER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "kubelet/binder.h"
#include "hw/bdf.h"
#include "ledger/ledger.h"

struct binding_slot;
struct pool_dev;
struct share;
struct vf_state;

/* A slot that was allocated since a VF was last bound to it. */
struct promise {
	char *slot;
	int64_t since_ms;
	bool held; /* as far as we know, a container has it */
};

/* The owner of this VF was in an answer of that kubelet (podres_epoch()). */
struct sighted {
	char *vf;
	uint64_t epoch;
	uint64_t since; /* the first time that he was, as binder.moment counts */
};

struct binder {
	struct binder_env env;
	struct node *node; /* NULL: none yet */
	struct promise *promises;
	size_t n_promises, cap_promises;
	struct sighted *sighted;
	size_t n_sighted, cap_sighted;
	struct spec_file *specs; /* what we wrote, by slot; binder_cdi.c */
	size_t n_specs, cap_specs;
	LIST_HEAD(, request) requests;
	uint64_t moment;	/* questions and sightings are numbered: an answer says nothing of who came after its question */
	int64_t doubted_ms;	/* when it was last told that not all is known of a VF; 0 never */
	bool doubles;		/* the last List showed a slot with two containers */
	int64_t began_ms;	/* Unix time */
	struct rpc_timer *tell; /* something changed: the kubelet will be told */
};

/* When a pod was created (Unix seconds), as its spec says. */
struct pod_age {
	const char *ns, *name;
	int64_t created;
};

/* Somebody who waits for a binding. Outlives the binder if that goes first. */
struct request {
	LIST_ENTRY(request) link;
	struct binder *b; /* NULL: gone, and done was called */
	struct arena *arena;
	struct ids slots;
	struct binder_pod pod; /* name NULL: not known */
	bool by_get;	       /* of that pod alone */
	struct binder_pod guess; /* a restart: the pod that has the slots by the ledger; name NULL: none */
	int64_t asked_ms, until_ms;
	uint64_t asked; /* the moment */
	uint64_t epoch; /* of the kubelet that was asked */
	bool knows_ages; /* asked for once, and only when there is a choice */
	struct pod_age *ages;
	size_t n_ages;
	binder_done_fn done;
	void *arg;
	struct rpc_timer *timer;
	unsigned n_under_way; /* callbacks that will come */
	/* what was decided */
	struct node *node;
	struct ledger_owner owner;
	int *gpus;
	size_t n_gpus;
	struct binding_slot *bindings;
	bool *fresh; /* this one was not bound before */
	size_t n_bindings;
	struct share *shares; /* all that the container has, also of early pools */
	size_t n_shares;
	/* the outcome */
	struct err err; /* code 0: none */
	struct bound *bound;
	size_t n_bound;
	bool replaced; /* a spec that was there changed */
};

void binder_say(const struct binder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void binder_tell_changed(struct binder *b);
/* The container starts now, and its VFs can be looked at. A CNI plugin asks before it has moved them. */
bool binder_looks_first(const struct request *r);

/* The picture of the node says that it has no RDMA device, and may be of the moment in which a CNI plugin moved its devices, its netdev still
 * here: is it away, or back, in truth? */
bool binder_is_away_now(const struct binder *b, const struct pool_dev *dev, struct arena *a);

/* --- binder_pods.c --- */

struct promise *binder_promise(struct binder *b, const char *slot);
struct promise *binder_find_promise(const struct binder *b, const char *slot); /* NULL: none */
void binder_drop_promise(struct binder *b, struct promise *p); /* NULL is fine */
void binder_note_sighted(struct binder *b, const char *vf, bool anew); /* anew: another owner has it from now on */
/* Had this kubelet shown the VF's owner before that moment, when it was asked? Then its List without him says that he is gone. A kubelet that
 * has just started shows its pods one after the other, and an answer that took its time does not show who came meanwhile. */
bool binder_was_sighted(const struct binder *b, const char *vf, uint64_t asked);
/* Which slots containers have, and who was there, by a List that binder_sorted_pods() has sorted, and that was asked for then. */
void binder_note_pods(struct binder *b, const struct pod_list *pods, int64_t asked_ms);
struct pod_list binder_sorted_pods(const struct pod_list *pods, struct arena *a);
void binder_forget_all(struct binder *b);

const struct ledger_hold *binder_live_hold(const struct binder *b, const char *slot); /* NULL: nothing is bound to it */
bool binder_is_late(const struct binder *b, const char *resource);
const char *binder_rdma_of(const struct binder *b, const struct pool_dev *dev);

/* --- binder_bind.c --- */

/*
 * Binds the container that r is about, in the ledger; nothing is on disk yet. pods: sorted by identify_sort(). complete:
 * they are a List, and what is not in it is not there. -EINPROGRESS: the ages of pods would tell which container starts. What it leaves
 * behind is for the caller to tidy, also on failure.
 */
int binder_decide(struct request *r, const struct pod_list *pods, bool complete, struct err *err);
/* Nobody's any more: free at once if the VF is at rest, else when it comes to rest. */
void binder_release(struct binder *b, const struct ledger_hold *hold, struct arena *a);

/* --- which container? binder_who.c; pure --- */

struct target {
	struct ledger_owner owner; /* strings as in the list */
	struct ids slots;	   /* all of late pools that it has, sorted */
	int *gpus;		   /* PCI indices, ascending; its own, or those of its pod when it has none */
	size_t n_gpus;
	int *busy_gpus; /* of others */
	size_t n_busy_gpus;
	const struct pod_container *container; /* NULL: an init container that no list shows */
};

/* A container of a pod list that has the slots. */
struct candidate {
	const struct pod *pod;
	const struct pod_container *container; /* NULL: an init container, which no list shows */
};

/*
 * The containers that hold these slots. More than one: the kubelet has given them away twice (reference kubelet.md §0.4). None: only
 * regular init containers hold them, or the list is older than they are.
 */
size_t who_holds(const struct node *node, const struct pod_list *pods, const struct ids *slots, const struct binder_pod *pod,
		 struct arena *a, struct candidate **ret);
struct target who_target(const struct node *node, const struct pod_list *pods, const struct candidate *c, const struct ids *slots,
			 struct arena *a);
/* Its GPUs, also those that DRA drivers gave (binder_gpus.c). */
size_t who_gpus(const struct node *node, const struct pod_container *c, struct arena *a, int **ret);
/* Does it have one that cannot be told apart (a MIG device)? A sentence, or NULL. */
const char *who_unknown_gpu(const struct node *node, const struct pod_container *c, struct arena *a);
int gpu_of_dynamic(const struct hw_inventory *inv, const struct dynamic *d);

/* --- which VFs? binder_choose.c; pure but for the question whether a VF is free --- */

struct binding_slot {
	const char *id;
	const struct pool *pool;
	int numa;	/* its class */
	const struct pool_dev *dev; /* set: bound already, and stays */
};

struct binding {
	const struct node *node;
	struct binding_slot *slots; /* of one container; dev is filled in */
	size_t n_slots;
	const int *gpus, *busy_gpus;
	size_t n_gpus, n_busy_gpus;
	const struct pod_container *container; /* what else it has; NULL: not known */
	/* May the container have it? ret_why: a sentence if not. Asked of what is about to be chosen only; `could` of everything. */
	bool (*could)(void *ctx, const struct pool_dev *dev);
	bool (*may)(void *ctx, const struct pool_dev *dev, const char **ret_why);
	void *ctx;
};

struct chosen {
	struct ledger_pair *pairs;
	size_t n_pairs;
	int cost;
	struct ledger_place *free; /* what there was to choose from */
	size_t n_free;
	const char **alternative;
	size_t n_alternative;
	int alternative_cost;
};

/* -EBUSY with a sentence: there are too few VFs. */
int choose_bound(struct binding *c, struct arena *a, struct chosen *ret, struct err *err);

/* --- specs: binder_cdi.c --- */

struct spec_file {
	char *slot;
	uint64_t hash; /* of what we wrote, or found at the start */
};

/* What a spec of ours says. */
struct spec_facts {
	const char *slot, *vf;
	struct ledger_owner owner;
};

/* Writes it unless it is there already; ret_replaced: another text was there. */
int spec_write(struct binder *b, const char *slot, const char *text, bool *ret_replaced, struct err *err);
bool spec_exists(const struct binder *b, const char *slot);
void spec_remove(struct binder *b, const char *slot);
/* Every spec of ours in the directory; what cannot be read is told and left out. */
void spec_scan(struct binder *b, void (*found)(struct binder *b, const struct spec_facts *facts));
void specs_done(struct binder *b);
/* The variables that make a spec tell its story. */
struct edits spec_story(const struct ledger_owner *owner, const struct binding_slot *slots, size_t n, struct arena *a);

/* --- what the container gets: binder_grant.c --- */

/*
 * What was decided → files and specs. states: its VFs as they are now, NULL: not known, and why (NULL: nobody was asked). On failure
 * nothing is left of what was not bound before, and the kubelet may try again.
 */
int grant_bound(struct request *r, const struct vf_state *states, size_t n, const char *why, struct err *err);
/* The functions to be looked at first. */
size_t grant_functions(const struct request *r, struct bdf **ret);
/* What the container has beside its slots, before the list that says so ends. */
void grant_note(struct request *r, const struct target *t);

#endif
