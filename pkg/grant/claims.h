/*
 * The claims of a container's records: its VFs, the decision that gave them, and the pod. A CDI
 * spec has them in variables (RAILMATE_BINDING and others), a map.json in its own keys. Others can
 * write into the CDI directory: any text is read, and parts that are not understood are left out.
 * Pure; strings are those of the document, or in the arena.
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

/* number: of the decision; 0: none in the record. resource: map.json only. slot: NULL with early
 * binding. */
struct claimed_vf {
	const char *vf, *resource, *slot;
	uint64_t number;
};
struct claims {
	struct ledger_owner owner; /* no string is NULL */
	struct claimed_vf *v;
	size_t n;
};

/* False: it names no pod. */
bool grant_claims_of_spec(const struct item *spec, struct claims *ret, struct arena *arena);
/* The variables of a spec that hold the claim. */
struct edits grant_claims_to_spec(const struct claims *claims, struct arena *arena);

#endif
