/* What the files of PreStartContainer share: a pool that binds early. Everything runs on the rpc
 * thread. */
#ifndef RAILMATE_PLUGIN_PRESTART_CALL_INTERNAL_H
#define RAILMATE_PLUGIN_PRESTART_CALL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "hw/inventory.h"
#include "base/err.h"
#include "grant/contents.h"
#include "ledger/ledger.h"

/* One PreStartContainer under way. */
struct prestart_call {
	LIST_ENTRY(prestart_call) link;
	struct plugin *plugin;
	struct rpc_call *call;
	struct arena *arena; /* of the call */
	struct ids ids;	     /* sorted; one at least */
	struct node *node;   /* as of the decision; NULL before */
	struct starter *who; /* of that node */
	struct pending *pods_asked, *probing, *saving;
	struct err err; /* code 0: it may start */
};

/* The container that starts. pod NULL: not known. */
struct starter {
	struct grant_container c; /* what it has of all pools */
	const char *dra_driver;	  /* gives GPUs to its pod; NULL: none does */
	bool has_dra;		  /* to itself */
};

/* The newest decision that gave exactly these; NULL none. */
const struct ledger_decision *plugin_start_decision(const struct prestart_call *s,
						    const struct ledger *l);
const struct pool_dev *plugin_start_dev(const struct prestart_call *s,
					size_t i); /* NULL: not in the pool */

/* Why it may not start with them, a sentence: a verbs node that Allocate gave is another VF's by
 * now. NULL: it may. */
const char *plugin_start_node_refusal(struct prestart_call *s, const struct starter *me);
/* What came of the decision, counted and logged. Once for each: a container that starts again has
 * what it had. */
void plugin_start_compare(struct prestart_call *s, const struct starter *me, uint64_t number);

#endif
