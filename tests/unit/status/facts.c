#include "facts.h"

#include "hw/bdf.h"
#include "support/nodes.h"
#include "support/synth.h"

int world_set_up(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	size_t n;

	w->cfg = config_default();
	w->node = node_new(synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2"), w->cfg, NULL);
	w->pool = &w->node->pools[0];
	w->ledger = ledger_new();
	w->stats = stats_new();
	w->arena = arena_new(4096);
	stats_of(w->stats, RESOURCE);
	w->pools[0] = (struct status_pool) {
		.resource = RESOURCE, .served = true, .registered = true, .registrations = 1
	};
	w->service = (struct status_service) { .pools = w->pools,
					       .n_pools = 1,
					       .gpus_known = true,
					       .settled = true,
					       .ledger_has_file = true,
					       .ledger_stored = true };
	w->service.stats = stats_copy(w->stats, w->arena, &n);
	w->service.n_stats = n;
	w->facts = (struct status_facts) { .node = w->node,
					   .ledger = w->ledger,
					   .service = &w->service,
					   .machine = { .scans = 7, .config_generation = 1 } };
	world_judge(w);
	*state = w;
	return 0;
}

int world_tear_down(void **state)
{
	struct world *w = *state;

	ledger_free(w->ledger);
	stats_free(w->stats);
	arena_free(w->arena);
	node_unref(w->node);
	config_free(w->cfg);
	free(w);
	return 0;
}

void world_judge(struct world *w)
{
	const struct holds_now now = { 1, 1 };
	struct holds *h = holds_new(ledger_copy(w->ledger), &holds_default_pace, now);
	const struct pool *pool = &w->facts.node->pools[0];
	struct holds_verdict *v = arena_array(w->arena, pool->n_devs, sizeof(*v));
	const struct holds_verdict **pools = arena_array(w->arena, 1, sizeof(*pools));

	holds_event(h, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = true }, now);
	for (size_t i = 0; i < pool->n_devs; i++) {
		const struct pool_dev *dev = &pool->devs[i];
		const struct holds_facts facts = {
			.uid = "", .away = dev->rdma_away ? "its RDMA device is away" : NULL
		};

		v[i] = holds_judge(h,
				   &(struct holds_view) { .vf = dev->id,
							  .resource = RESOURCE,
							  .leaving = dev->left_over,
							  .unhealthy = dev->reason,
							  .facts = &facts },
				   w->arena);
	}
	pools[0] = v;
	w->service.verdicts = pools;
	holds_free(h);
}

struct ledger_hold world_hold(struct world *w, size_t vf, const char *pod)
{
	struct ledger_hold hold = { .vf = w->pool->devs[vf].id,
				    .resource = RESOURCE,
				    .owner = { "default", pod, "uid", "main", NULL },
				    .rdma = w->pool->devs[vf].rdma_name };

	ledger_put(w->ledger, &hold);
	world_judge(w);
	return hold;
}

const char *world_gpu(struct world *w, size_t nth)
{
	char bdf[BDF_STRLEN];

	return arena_strdup(w->arena,
			    bdf_format(w->node->inv->pci[synth_gpu(w->node->inv, nth)].bdf, bdf));
}

char *world_metrics(struct world *w)
{
	struct strbuf out = STRBUF_INIT;

	if (w->facts.node)
		world_judge(w);
	status_write_metrics(&w->facts, &out);
	return strbuf_steal(&out);
}
