#include "report/facts.h"

#include "base/arena.h"
#include "ledger/ledger.h"
#include "pool/node.h"

void report_facts_free(struct report_facts *f)
{
	if (!f)
		return;
	node_unref(f->node);
	ledger_free(f->ledger);
	arena_free(f->arena);
}
