/* How near the chosen VFs are, beside the nearest ones that were free: for metrics and Events. */
#include "latebind/latebind-internal.h"

#include "align/choose.h"
#include "base/arena.h"
#include "base/list.h"
#include "choice/choice.h"
#include "config/config.h"
#include "holds/holds.h"
#include "pool/node.h"
#include "status/stats.h"
#include "tracker/tracker.h"

static void place(const struct request *r, const struct binding *c, const struct pool *pool,
		  struct stats_placement *ret)
{
	const struct holds *h = latebind_holds(r->b);
	int *devs = arena_array(r->arena, c->n_slots, sizeof(*devs));
	int *available = arena_array(r->arena, pool->n_devs, sizeof(*available));
	struct choose_in in = {
		.node = c->node, .pool = pool, .available = available, .gpus = c->gpus
	};

	for (size_t i = 0; i < c->n_slots; i++) {
		if (c->slots[i].pool == pool)
			devs[in.want++] = (int)(c->slots[i].dev - pool->devs);
	}
	*ret = (struct stats_placement) { .owner = &r->c.owner,
					  .resource = pool->cfg->resource,
					  .n_vfs = in.want,
					  .strict = pool->cfg->strict };
	if (!c->gpus.n)
		return;
	/* Whatever NUMA node the slots are of: that was the kubelet's choice, and may have been a
	 * bad one. */
	for (size_t i = 0; i < pool->n_devs; i++) {
		const struct pool_dev *dev = &pool->devs[i];

		if (list_has_int(devs, in.want, (int)i) ||
		    (dev->healthy && holds_could_give(h, dev->id)))
			available[in.n_available++] = (int)i;
	}
	stats_place(ret, &in, devs, tracker_ledger(r->b->env.tracker), r->arena);
}

void latebind_note_placed(struct request *r, const struct binding *c)
{
	r->n_placed = 0;
	if (!r->b->env.stats && !r->b->env.placed)
		return;
	r->placed = arena_array(r->arena, c->n_slots, sizeof(*r->placed));
	for (size_t i = 0; i < c->n_slots; i++) {
		bool first = true;

		for (size_t k = 0; k < i; k++)
			first &= c->slots[k].pool != c->slots[i].pool;
		if (first)
			place(r, c, c->slots[i].pool, &r->placed[r->n_placed++]);
	}
}

void latebind_count_placed(const struct request *r)
{
	const struct latebind_env *env = &r->b->env;

	for (size_t i = 0; i < r->n_placed; i++) {
		const struct stats_placement *p = &r->placed[i];

		if (env->placed)
			env->placed(env->placed_ctx, p);
		stats_count_pairs(stats_of(env->stats, p->resource), &p->got, &p->best);
	}
}
