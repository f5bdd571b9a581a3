/* Facts of the rpc thread, a copy for the texts that are made of them (status/status.h). */
#ifndef RAILMATE_REPORT_FACTS_H
#define RAILMATE_REPORT_FACTS_H

#include <stdint.h>

struct arena;
struct ledger;
struct node;
struct status_service;

struct report_facts {
	struct arena *arena;   /* holds this struct, and all that service points to */
	struct node *node;     /* a reference; NULL: none yet */
	struct ledger *ledger; /* a copy; NULL: there is none, or the reader has it already */
	uint64_t ledger_generation;
	const struct status_service *service; /* NULL: nothing is served yet */
};

void report_facts_free(struct report_facts *f); /* NULL is fine; any thread */

#endif
