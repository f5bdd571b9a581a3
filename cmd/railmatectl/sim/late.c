#include "sim/late-internal.h"

#include "base/arena.h"
#include "base/err.h"
#include "choice/choice.h"
#include "config/config.h"
#include "pool/node.h"
#include "pool/slots.h"

static bool could_have(void *ctx, const struct pool_dev *dev)
{
	const struct late_in *in = ctx;

	return in->is_free[dev - in->pool->devs];
}

/* Nothing here is slow to leave a pod. */
static bool may_have(void *ctx, const struct pool_dev *dev, const char **ret_why)
{
	(void)ctx;
	(void)dev;
	(void)ret_why;
	return true;
}

int *sim_late_bind(const struct late_in *in, struct arena *arena)
{
	struct late_in ctx = *in;
	struct binding b = { .node = in->node,
			     .slots = arena_array(arena, in->slots->n, sizeof(*b.slots)),
			     .n_slots = in->slots->n,
			     .gpus = in->gpus,
			     .busy_gpus = in->busy_gpus,
			     .could = could_have,
			     .may = may_have,
			     .ctx = &ctx };
	int *devs = arena_array(arena, in->slots->n, sizeof(*devs));
	struct err err = { 0 };
	struct ledger_decision decision; /* not reported */
	unsigned number;

	for (size_t i = 0; i < b.n_slots; i++) {
		b.slots[i] = (struct binding_slot) { .id = in->slots->v[i], .pool = in->pool };
		pool_slot_parse(in->pool->cfg->resource, b.slots[i].id, &b.slots[i].numa, &number);
	}
	if (choice_for_slots(&b, arena, &decision, &err) < 0)
		return NULL;
	for (size_t i = 0; i < b.n_slots; i++)
		devs[i] = (int)(b.slots[i].dev - in->pool->devs);
	return devs;
}
