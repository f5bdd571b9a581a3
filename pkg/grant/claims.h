/*
 * What the records of a container say: which VFs it was given, by which decision, and to which pod.
 * A CDI spec says so in variables (RAILMATE_BINDING and others), a map.json in its own keys. Others
 * can write into the CDI directory: any text is read, and what is not understood is left out. Pure;
 * strings are those of the document, or in the arena.
 */
#ifndef RAILMATE_GRANT_CLAIMS_H
#define RAILMATE_GRANT_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "render/render.h"

struct arena;
struct item;

/* number: of the decision; 0: it does not say. resource: map.json only. slot: NULL
 * with early binding. */
struct claimed_vf {
	const char *vf, *resource, *slot;
	uint64_t number;
};
struct claims {
	struct ledger_owner owner; /* no string is NULL */
	struct claimed_vf *v;
	size_t n;
};

/* False: it does not say whose it is. */
bool grant_claims_of_spec(const struct item *spec, struct claims *ret, struct arena *arena);
/* The variables of a spec that say it. */
struct edits grant_claims_to_spec(const struct claims *claims, struct arena *arena);

#endif
