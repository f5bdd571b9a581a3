/* What the rpc thread knows, copied for those who look from outside (status/status.h). */
#ifndef RAILMATE_DAEMON_FACTS_H
#define RAILMATE_DAEMON_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "status/status.h"

struct ledger;
struct node;
struct plugin_env;
struct served;

struct daemon_facts {
	struct arena *arena;   /* this is in it, and what service points to */
	struct node *node;     /* a reference; NULL: none yet */
	struct ledger *ledger; /* a copy; NULL: there is none, or the reader has it already */
	uint64_t ledger_generation;
	const struct status_service *service; /* NULL: nothing is served yet */
};

/* served NULL: nothing yet. known: the generation of the ledger that the reader has; UINT64_MAX:
 * none. [rpc thread] */
struct daemon_facts *daemon_facts_new(const struct plugin_env *env, const struct served *served,
				      uint64_t known);
void daemon_facts_free(struct daemon_facts *f); /* NULL is fine; any thread */

#endif
