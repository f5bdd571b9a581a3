#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "pool/node.h"
#include "status/stats.h"

#define HOLDERS_NAMED 3

static struct stats_classes classes_of(const struct choose_out *out)
{
	struct stats_classes c = { 0 };

	for (size_t i = 0; i < out->n_pairs; i++)
		c.n[out->pairs[i].path.class]++;
	return c;
}

static const char *nearer_holders(const struct ledger *l, const struct ledger_owner *me,
				  const struct choose_in *in, const struct choose_out *got,
				  struct arena *a)
{
	const char *pods[HOLDERS_NAMED], *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < got->n_pairs; i++) {
		for (size_t k = 0; k < in->pool->n_devs && n < HOLDERS_NAMED; k++) {
			const struct choose_pair *pair = &got->pairs[i];
			const struct pool_dev *d = &in->pool->devs[k];
			const struct ledger_hold *hold = ledger_find(l, d->id);
			const char *pod;

			if (!hold || !hold->owner.pod || !*hold->owner.pod || d->pci < 0 ||
			    (str_eq(hold->owner.pod, me->pod) && str_eq(hold->owner.ns, me->ns)) ||
			    pool_between(in->pool, in->node->topo, pair->gpu, d->pci).class >=
				    pair->path.class)
				continue;
			pod = arena_printf(a, "%s/%s", hold->owner.ns, hold->owner.pod);
			if (list_has(pods, n, pod))
				continue;
			pods[n++] = pod;
			text = text ? arena_printf(a, "%s, %s", text, pod) : pod;
		}
	}
	return text;
}

void stats_place(struct stats_placement *p, const struct choose_in *in, const int *devs,
		 const struct ledger *l, struct arena *a)
{
	struct choose_out got = align_pairs(in, devs, in->want, a);
	struct choose_out best = align_choose(in, false, a);

	p->got = classes_of(&got);
	p->best = classes_of(&best);
	p->cost = got.cost;
	p->best_cost = best.cost;
	p->farther = got.cost > best.cost;
	p->nearer_holders = nearer_holders(l, p->owner, in, &got, a);
}
