/*
 * The choice of devices for a container, as functions of the node, the request and the container's
 * GPUs: the daemon, tests, benches and `railmatectl` call them alike. Pure.
 */
#ifndef RAILMATE_CHOICE_CHOICE_H
#define RAILMATE_CHOICE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "align/choose.h"
#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "pods/identify.h"

struct arena;
struct err;
struct hw_inventory;
struct node;
struct pool;
struct pool_dev;
struct recent_answers;

/* The candidates of a choice, and its grounds. */
struct choice {
	struct choose_in in;	   /* a copy has a reference of its node */
	struct ledger_owner owner; /* pod NULL: not known */
	enum ledger_gpus known;
	const char *source;  /* of the GPUs, a phrase */
	struct arena *arena; /* of a copy */
};

/* The list of a pool for the kubelet. */
struct device_list choice_list(const struct pool *pool, struct arena *a);
/*
 * who may be NULL, or without GPUs: no GPU knowledge. Unknown ids are ignored, fewer available than
 * asked for: all of these; never fails. free, by index in the pool (NULL: all are): others are not
 * taken while there are enough of these. ret (may be NULL): the grounds of the choice, all but
 * owner, known and source; in the arena.
 */
struct ids choice_decide(const struct node *node, const struct pool *pool,
			 const struct preferred_container *req, const struct identified *who,
			 const bool *free, struct arena *a, struct choice *ret);
/* The choice, as the ledger records it: the GPUs, the free VFs, pairs, costs and the runner-up. In
 * the arena, or of the pool. */
void choice_explain(const struct choose_in *in, const struct choose_out *out, struct arena *a,
		    struct ledger_decision *ret);

struct choice *choice_copy(const struct choice *c);
void choice_free(struct choice *c); /* NULL is fine */
/* The GPUs in this inventory, in the arena; none: they are not known for sure. c may be NULL. */
struct gpu_set choice_known_gpus(const struct choice *c, const struct hw_inventory *inv,
				 struct arena *a);

/*
 * The grounds of the last preferred allocations. Allocate follows within milliseconds and names
 * only ids: exactly the ids of an answer mean its container.
 */

struct recent_answers *choice_recent_new(void);
void choice_recent_free(struct recent_answers *r); /* NULL is fine */
void choice_recent_add(struct recent_answers *r, int64_t now_ms, const struct ids *ids,
		       const struct choice *c); /* c is copied */
/*
 * NULL: these ids were not an answer. An answer counts once, and not after ten seconds: later the
 * same ids may go to another container of which we know nothing. To be freed.
 */
struct choice *choice_recent_take(struct recent_answers *r, int64_t now_ms, const struct ids *ids);

/* The choice of VFs for the slots of a container. Pure but for the question whether a VF is free.
 */

struct binding_slot {
	const char *id;
	const struct pool *pool;
	int numa;		    /* its class */
	const char *place;	    /* only VFs of this PF (pool_dev_place()); NULL: of any */
	const struct pool_dev *dev; /* set: bound already, and stays */
};

struct binding {
	const struct node *node;
	struct binding_slot *slots; /* of one container; dev is filled in */
	size_t n_slots;
	struct gpu_set gpus, busy_gpus;
	/* May the container have it? ret_why: a sentence if not. Asked of VFs that are about to be
	 * chosen only; `could` of all. */
	bool (*could)(void *ctx, const struct pool_dev *dev);
	bool (*may)(void *ctx, const struct pool_dev *dev, const char **ret_why);
	void *ctx;
};

/* ret: the ledger's record of it, as choice_explain(), with the VFs. -EAGAIN with a sentence: there
 * are too few VFs. */
int choice_for_slots(struct binding *c, struct arena *a, struct ledger_decision *ret,
		     struct err *err);

#endif
