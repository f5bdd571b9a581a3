/* The choice of VFs for the slots of a container. Pure but for the question whether a VF is free.
 */
#ifndef RAILMATE_CHOICE_SLOTS_H
#define RAILMATE_CHOICE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/inventory.h"
#include "ledger/ledger.h"

struct arena;
struct err;
struct node;
struct pool;
struct pool_dev;

struct binding_slot {
	const char *id;
	const struct pool *pool;
	int numa;		    /* its class */
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
