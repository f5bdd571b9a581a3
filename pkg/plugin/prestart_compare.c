/* PreStartContainer: what came of the choice, now that the container's GPUs are known. */
#include "plugin/prestart_call.h"

#include <stdbool.h>
#include <stdio.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "plugin/record.h"
#include "pool/node.h"
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

static bool is_chosen(const int *devs, size_t n, int dev)
{
	for (size_t i = 0; i < n; i++) {
		if (devs[i] == dev)
			return true;
	}
	return false;
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
		at = is_chosen(devs, n, (int)i) ? NULL
						: room_at(s->plugin, d, &pool->devs[i], room);
		if (!at || *at <= 0)
			continue;
		--*at;
		(*ret)[total++] = (int)i;
	}
	return total;
}

static void tell_misaligned(const struct plugin *p, const struct starter *me,
			    const struct ledger_decision *d)
{
	void (*say)(const char *, const char *, ...) =
		plugin_pool(p)->cfg->strict ? log_warn : log_info;

	say("kubelet",
	    "VFs are farther from the GPUs of the container than possible"
	    " resource=%s pod=%s/%s container=%s distance=%d possible=%d",
	    p->resource, me->owner.ns, me->owner.pod, me->owner.container, d->real_cost,
	    d->best_cost);
}

static void compare(struct prestart_call *s, const struct starter *me, struct ledger_decision *d)
{
	struct plugin *p = s->plugin;
	int *devs, *available;
	size_t n = devs_of(s, &devs);
	struct choose_in in = { .node = p->node,
				.pool = plugin_pool(p),
				.want = n,
				.gpus = me->gpus,
				.n_gpus = me->n_gpus };

	in.n_available = free_then(s, d, devs, n, &available);
	in.available = available;
	d->best_cost = choose_vfs(&in, false, s->arena).cost;
	d->real_cost = choose_pairs(&in, devs, n, s->arena).cost;
	d->real_gpus = plugin_record_gpus(p->node->inv, me->gpus, me->n_gpus, s->arena);
	d->n_real_gpus = me->n_gpus;
	if (d->real_cost <= d->best_cost) {
		p->stats.aligned++;
		return;
	}
	p->stats.misaligned++;
	tell_misaligned(p, me, d);
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
		"%s gives them by DRA, after an early pool has chosen; \"binding\": \"late\" "
		"sees them",
		me->dra_driver);
}

void plugin_start_compare(struct prestart_call *s, const struct starter *me, uint64_t number)
{
	const struct ledger *l = plugin_ledger(s->plugin);
	const struct ledger_decision *d = ledger_decision(l, number);
	struct ledger_decision now;

	if (!d || d->checked)
		return;
	now = *d;
	now.owner = me->owner;
	now.checked = true;
	note_dra(s, me, &now);
	if (me->n_gpus)
		compare(s, me, &now);
	holds_amend(tracker_holds(s->plugin->env->tracker), number, &now);
}
