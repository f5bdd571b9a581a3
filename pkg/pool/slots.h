/*
 * Slots: the offer of a late pool to the kubelet. A slot stands for some VF of its class, which is
 * the VFs of one NUMA node (of the whole pool, where no node is known); which VF, is decided when
 * its container starts. Slots of a class are interchangeable. Their ids follow from the pool's name
 * and numbers alone, so they are the same after every scan and restart. Pure.
 */
#ifndef RAILMATE_POOL_SLOTS_H
#define RAILMATE_POOL_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "pool/node.h"

struct arena;

#define SLOT_ID_MAX	63
#define SLOT_NUMBER_MAX 65535
/* The class of VFs without a NUMA node, and of a pool that reports none (excludeTopology). */
#define SLOT_ANY -1

/* A slot that a container holds. */
struct slot_use {
	const char *slot;
	const char *vf; /* NULL: allocated, and nothing bound to it yet */
};

struct slot_view {
	const struct pool *pool;
	const struct slot_use *uses;
	size_t n_uses; /* of this pool; ids of others are ignored */
	const char *const *lost;
	size_t n_lost; /* VFs that no free slot can count on: those that are not free */
};

struct slot {
	const char *id;
	int numa; /* its class: a NUMA node, or SLOT_ANY */
	bool held;
	int dev; /* pool index of the VF bound to it; -1: none, or it is not in the pool any more */
	bool healthy;
};
struct slot_list {
	struct slot *v;
	size_t n;
};

/*
 * Every slot, by class and number: as many as the class has VFs, and those beyond that are held. A
 * held one is as healthy as its VF. Of the free ones as many are healthy, lowest numbers first, as
 * there are VFs fit to be bound.
 */
struct slot_list pool_slots(const struct slot_view *view, struct arena *a);
int pool_slot_class(const struct pool *pool, const struct pool_dev *dev);

/* "rdma_vf-n0-3"; numa SLOT_ANY: "rdma_vf-any-3" */
const char *pool_slot_id(const char *resource, int numa, unsigned number, struct arena *a);
/*
 * The id of a VF of a ResourceClaim (DRA): "rdma_vf-c<UID>-<number>". claim: the claim's UID, in
 * the API server's form (RFC 4122), 36 characters; NULL: no id, for the UID has another form.
 */
const char *pool_claim_slot(const char *resource, const char *claim, unsigned number,
			    struct arena *a);
/* The UID of the claim whose slot it is, in the arena; NULL: a slot that the kubelet gives. */
const char *pool_slot_claim(const char *id, struct arena *a);
/* Is it an id of a slot of this resource? That of a claim is of the class SLOT_ANY. */
bool pool_slot_parse(const char *resource, const char *id, int *ret_numa, unsigned *ret_number);
/* The pool whose slot this is, a late one or one that claims have VFs of; NULL: none. */
const struct pool *pool_of_slot(const struct node *node, const char *id);

#endif
