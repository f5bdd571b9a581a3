/* A node of two NUMA nodes with two switches each: a GPU and a PF with two VFs below each, and the
 * built-in pool. Facts of it, all at rest. */
#ifndef RAILMATE_TESTS_UNIT_STATUS_FACTS_H
#define RAILMATE_TESTS_UNIT_STATUS_FACTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "status/stats.h"
#include "status/status.h"

#define RESOURCE "rdma/vf"

struct world {
	struct config *cfg;
	struct node *node;
	const struct pool *pool;
	struct ledger *ledger;
	struct stats *stats;
	struct arena *arena;
	struct status_pool pools[1];
	struct status_service service;
	struct status_facts facts;
};

int world_set_up(void **state);
int world_tear_down(void **state);
/* The nth VF of the pool is held by this container of default/POD; returns the hold. */
struct ledger_hold world_hold(struct world *w, size_t vf, const char *pod);
const char *world_gpu(struct world *w, size_t nth); /* its PCI address */
char *world_metrics(struct world *w);		    /* heap */
/* What the VFs are, by the ledger as it is now. */
void world_judge(struct world *w);

#endif
