/*
 * Which devices of a pool a container should get, as functions of the node, the request and the
 * container's GPUs: the daemon, tests, benches and `railmatectl` call them alike. Pure.
 */
#ifndef RAILMATE_CHOICE_CHOICE_H
#define RAILMATE_CHOICE_CHOICE_H

#include <stddef.h>

#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "pods/identify.h"

struct arena;
struct hw_inventory;
struct node;
struct pool;

/* What was chosen from, and by what. */
struct choice {
	struct node *node;	   /* whose indices these are; a copy has a reference */
	struct ledger_owner owner; /* pod NULL: not known */
	enum ledger_gpus known;
	const char *source; /* of the GPUs, a phrase */
	const int *gpus;
	size_t n_gpus; /* PCI indices */
	const int *busy_gpus;
	size_t n_busy_gpus;
	const int *available;
	size_t n_available; /* pool indices */
	const int *must;
	size_t n_must;
	size_t want;
	struct arena *arena; /* of a copy */
};

/* What the kubelet is told of a pool. */
struct device_list choice_list(const struct pool *pool, struct arena *a);
/* who may be NULL, or without GPUs: no GPU knowledge. Unknown ids are ignored, fewer available than
 * asked gives what there is; never fails. */
struct ids choice_preferred(const struct node *node, const struct pool *pool,
			    const struct preferred_container *req, const struct identified *who,
			    struct arena *a);
/*
 * The same in full: by what it was chosen goes to ret (all but owner, known and source, in the
 * arena). VFs that the ledger (may be NULL) says are held are not taken while there are others.
 */
struct ids choice_decide(struct node *node, const struct pool *pool,
			 const struct preferred_container *req, const struct identified *who,
			 const struct ledger *ledger, struct arena *a, struct choice *ret);

struct choice *choice_copy(const struct choice *c);
void choice_free(struct choice *c); /* NULL is fine */
/* The GPUs as PCI indices of this inventory, in the arena; 0: they are not known for sure. c may be
 * NULL. */
size_t choice_known_gpus(const struct choice *c, const struct hw_inventory *inv, struct arena *a,
			 int **ret);

#endif
