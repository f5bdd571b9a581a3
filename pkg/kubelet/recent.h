/*
 * What the last preferred allocations were chosen by. Allocate follows within milliseconds and
 * names only ids: exactly the ids of an answer mean its container.
 */
#ifndef RAILMATE_KUBELET_RECENT_H
#define RAILMATE_KUBELET_RECENT_H

#include <stddef.h>
#include <stdint.h>

#include "kubelet/messages.h"
#include "ledger/ledger.h"

struct arena;
struct hw_inventory;
struct node;
struct recent;

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

struct choice *choice_copy(const struct choice *c);
void choice_free(struct choice *c); /* NULL is fine */
/* The GPUs as PCI indices of this inventory, in the arena; 0: they are not known for sure. c may be
 * NULL. */
size_t choice_known_gpus(const struct choice *c, const struct hw_inventory *inv, struct arena *a,
			 int **ret);

struct recent *recent_new(void);
void recent_free(struct recent *r); /* NULL is fine */
void recent_add(struct recent *r, int64_t now_ms, const struct ids *ids,
		const struct choice *c); /* c is copied */
/*
 * NULL: these ids were not an answer. An answer counts once, and not after ten seconds: later the
 * same ids may go to another container of which we know nothing. To be freed.
 */
struct choice *recent_take(struct recent *r, int64_t now_ms, const struct ids *ids);

#endif
