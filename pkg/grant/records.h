/*
 * The records beside the ledger, CDI specs and the map.json files of containers: read at the start,
 * before anything is given or removed, and again until all of them can be read; removed when holds
 * does not need them any more. On the rpc thread.
 */
#ifndef RAILMATE_GRANT_RECORDS_H
#define RAILMATE_GRANT_RECORDS_H

#include <stdbool.h>

struct tracker;
struct rpc;
struct records;

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

#endif
