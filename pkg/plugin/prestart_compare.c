/* PreStartContainer: what came of the choice, now that the container's GPUs are known. */
#include "plugin/prestart_call-internal.h"

#include <stdbool.h>
#include <stdio.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "plugin/record-internal.h"
#include "pool/node.h"
#include "stats/stats.h"
#include "topo/topo.h"
#include "tracker/tracker.h"

static size_t devs_of(const struct prestart_call *s, int **ret)
{
	const struct pool *pool = plugin_pool(s->plugin);
	size_t n = 0;

	*ret = arena_array(s->arena, s->ids.n, sizeof(**ret));
	for (size_t i = 0; i < s->ids.n; i++) {
		const struct pool_dev *dev = plugin_start_dev(s, i);

		if (dev)
			(*ret)[n++] = (int)(dev - pool->devs);
	}
	return n;
}

/* How many VFs of this dev's place the choice could have had beside those that it took. */
static int *room_at(const struct plugin *p, const struct ledger_decision *d,
		    const struct pool_dev *dev, int *room)
{
	const struct hw_inventory *inv = p->node->inv;
	char text[BDF_STRLEN];

	if (dev->pci < 0)
		return NULL;
	bdf_format(inv->pci[topo_place(p->node->topo, dev->pci)].bdf, text);
	for (size_t i = 0; i < d->n_free; i++) {
		if (str_eq(d->free[i].pf, text))
			return &room[i];
	}
	return NULL;
}

/* As many VFs of each place as were free then: all of a place are equally far. Those that were
 * chosen first.
 */
static size_t free_then(const struct prestart_call *s, const struct ledger_decision *d,
			const int *devs, size_t n, int **ret)
{
	const struct pool *pool = plugin_pool(s->plugin);
	int *room = arena_array(s->arena, d->n_free, sizeof(*room)), *at;
	size_t total = n;

	for (size_t i = 0; i < d->n_free; i++)
		room[i] = d->free[i].free;
	*ret = arena_array(s->arena, n + pool->n_devs, sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		(*ret)[i] = devs[i];
		at = room_at(s->plugin, d, &pool->devs[devs[i]], room);
		if (at)
			--*at;
	}
	for (size_t i = 0; i < pool->n_devs; i++) {
		at = list_has_int(devs, n, (int)i) ? NULL
						   : room_at(s->plugin, d, &pool->devs[i], room);
		if (!at || *at <= 0)
			continue;
		--*at;
		(*ret)[total++] = (int)i;
	}
	return total;
}

static void compare(struct prestart_call *s, const struct starter *me, struct ledger_decision *d,
		    struct stats_placement *placement)
{
	struct plugin *p = s->plugin;
	void (*say)(const char *, const char *, ...);
	int *devs, *available;
	size_t n = devs_of(s, &devs);
	struct choose_in in = {
		.node = p->node, .pool = plugin_pool(p), .want = n, .gpus = me->c.gpus
	};

	in.n_available = free_then(s, d, devs, n, &available);
	in.available = available;
	stats_place(placement, &in, devs, plugin_ledger(p), s->arena);
	stats_count_pairs(p->counts, &placement->got, &placement->best);
	d->real_cost = placement->cost;
	d->best_cost = placement->best_cost;
	d->real_gpus = hw_gpu_addresses(p->node->inv, me->c.gpus, s->arena);
	d->n_real_gpus = me->c.gpus.n;
	if (!placement->farther)
		return;
	say = plugin_pool(p)->cfg->strict ? log_warn : log_info;
	say("kubelet",
	    "VFs are farther from the GPUs of the container than possible resource=%s pod=%s/%s container=%s distance=%d possible=%d",
	    p->resource, me->c.owner.ns, me->c.owner.pod, me->c.owner.container, d->real_cost,
	    d->best_cost);
}

/* The choice was made without GPUs: why, is known better now. */
static void note_dra(const struct prestart_call *s, const struct starter *me,
		     struct ledger_decision *d)
{
	if (!me->has_dra || (d->known == LEDGER_GPUS_KNOWN && d->n_gpus))
		return;
	if (!d->n_gpus)
		d->known = LEDGER_GPUS_UNKNOWN;
	d->source = arena_printf(
		s->arena,
		"%s gives them by DRA, after an early pool has chosen; \"binding\": \"late\" sees them",
		me->dra_driver);
}

void plugin_start_compare(struct prestart_call *s, const struct starter *me, uint64_t number)
{
	const struct ledger *l = plugin_ledger(s->plugin);
	const struct ledger_decision *d = ledger_decision(l, number);
	const struct plugin_env *env = s->plugin->env;
	const struct pool *pool = plugin_pool(s->plugin);
	struct stats_placement placement = { .owner = &me->c.owner,
					     .resource = s->plugin->resource,
					     .n_vfs = s->ids.n,
					     .strict = pool && pool->cfg->strict };
	struct ledger_decision now;

	if (!d || d->checked)
		return;
	now = *d;
	now.owner = me->c.owner;
	now.checked = true;
	note_dra(s, me, &now);
	if (me->c.gpus.n)
		compare(s, me, &now, &placement);
	if (env->placed)
		env->placed(env->placed_ctx, &placement);
	holds_event(
		tracker_holds(s->plugin->env->tracker),
		&(struct holds_event) { .kind = HOLDS_AMENDED, .number = number, .decision = &now },
		tracker_now());
}
