/*
 * The records beside the ledger, CDI specs and the map.json files of containers: read at the start,
 * before anything is given or removed, and again until all of them can be read; removed when holds
 * does not need them any more. On the rpc thread.
 */
#ifndef RAILMATE_GRANT_RECORDS_H
#define RAILMATE_GRANT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "render/render.h"

struct arena;
struct item;
struct records;
struct rpc;
struct tracker;

struct records_env {
	struct rpc *rpc;
	struct tracker *tracker;
	const char *rundir; /* NULL: no files */
	/* CDI specs, if a pool binds late; NULL: there are none. claim reports their claims to
	 * holds; false: some could not be read. tidy removes those that holds does not need. */
	bool (*claim)(void *specs);
	void (*tidy)(void *specs);
	void *specs;
	unsigned retry_ms; /* 0: 1 s; between readings of directories that cannot be read */
};

/* Reads them: tracker and specs know the node. */
struct records *grant_records_open(const struct records_env *env);
void grant_records_sweep(struct records *s); /* holds have changed */
void grant_records_close(struct records *s); /* NULL is fine */

/*
 * The claims of a container's records: its VFs, the decision that gave them, and the pod. A CDI
 * spec has them in variables (RAILMATE_BINDING and others), a map.json in its own keys. Others can
 * write into the CDI directory: any text is read, and parts that are not understood are left out.
 * Pure; strings are those of the document, or in the arena.
 */

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
