/* railmatectl status: from railmated's answer, its ledger and the machine to numbers. */
#include <string.h>

#include "align/align.h"
#include "base/arena.h"
#include "base/str.h"
#include "document/document.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pools.h"
#include "railmatectl.h"
#include "status.h"
#include "topo/rails.h"
#include "topo/topo.h"

const char *const status_ranks[STATUS_RANKS] = { "PIX", "PXB", "PHB", "NODE", "SYS" };

static int find(const struct hw_inventory *inv, const char *address)
{
	struct bdf bdf;

	return bdf_parse(address, &bdf) < 0 ? -1 : hw_find_pci(inv, bdf);
}

/* --- pools --- */

void status_read_pools(struct status *s, const struct item *answer)
{
	const struct item *pools = pools_list(answer, "pools");

	s->shared = pools_list(answer, "shared");
	s->n_pools = pools->n_kids;
	s->n_all = pools->n_kids + s->shared->n_kids;
	s->pools = arena_array(s->arena, s->n_all, sizeof(*s->pools));
	s->conditions = pools_list(answer, "conditions");
	s->n_unknown_slots = pools_list(answer, "unknown_slots")->n_kids;
	for (size_t i = 0; i < s->n_all; i++) {
		const struct item *item =
			i < s->n_pools ? &pools->kids[i] : &s->shared->kids[i - s->n_pools];
		const struct item *vfs = pools_list(item, "vfs");
		struct pool_status *pool = &s->pools[i];

		pool->item = item;
		pool->resource = item_string(item, "resource");
		pool->binding = item_string(item, "binding");
		pool->vfs = vfs->n_kids;
		for (size_t k = 0; k < vfs->n_kids; k++) {
			const char *state = item_string(&vfs->kids[k], "state");

			if (!str_eq(state, holds_state_names[HOLDS_IS_UNHEALTHY]))
				continue;
			if (!pool->unhealthy++)
				pool->why = item_string(&vfs->kids[k], "why");
		}
	}
}

/* --- placement --- */

struct gpus {
	const char *const *v;
	size_t n;
};

/* The pairs as railmated counts them (align/align.h): each GPU and each VF has one at least. */
static void count_pairs(struct status *s, struct gpus gpus, const char *const *vfs, size_t n)
{
	const struct node *node = s->machine->node;
	struct align_vf *v = arena_array(s->arena, n, sizeof(*v));
	uint8_t *ranks = arena_array(s->arena, gpus.n * n, sizeof(*ranks));
	int *all = arena_array(s->arena, n, sizeof(*all));
	struct align_in in = {
		.vfs = v, .n_vfs = n, .n_places = n, .n_gpus = gpus.n, .gpu_rank = ranks, .want = n
	};
	struct align_out out;

	for (size_t i = 0; i < n; i++) {
		v[i] = (struct align_vf) { .place = (int)i, .index = -1 };
		all[i] = (int)i;
		for (size_t g = 0; g < gpus.n; g++) {
			int gpu = find(node->inv, gpus.v[g]), vf = find(node->inv, vfs[i]);

			ranks[g * n + i] = STATUS_RANKS - 1;
			if (gpu >= 0 && vf >= 0)
				ranks[g * n + i] =
					(uint8_t)topo_rank(topo_between(node->topo, gpu, vf).class);
		}
	}
	out = align_assign(&in, all, n, s->arena);
	for (size_t i = 0; i < out.n_pairs; i++)
		s->placement.pairs[out.pairs[i].rank]++;
}

void status_read_placement(struct status *s, const struct ledger *ledger)
{
	size_t paired = 0;

	s->placement.known = true;
	for (size_t i = 0; i < ledger_decisions(ledger); i++) {
		const struct ledger_decision *d = ledger_decision_at(ledger, i);
		const char **held = arena_array(s->arena, d->n_chosen, sizeof(*held));
		struct gpus gpus = { NULL, 0 };
		size_t n = 0;

		/* The GPUs that the container has. Late binding chooses when they are known. */
		if (d->checked)
			gpus = (struct gpus) { d->real_gpus, d->n_real_gpus };
		else if (d->late && d->known == LEDGER_GPUS_KNOWN)
			gpus = (struct gpus) { d->gpus, d->n_gpus };
		if (!gpus.n)
			continue;
		s->placement.checked++;
		s->placement.best += !d->checked || d->real_cost <= d->best_cost;
		for (size_t k = 0; k < d->n_chosen; k++) {
			const struct ledger_hold *h = ledger_find(ledger, d->chosen[k]);

			if (h && h->decision == d->number && !h->draining)
				held[n++] = d->chosen[k];
		}
		if (n)
			count_pairs(s, gpus, held, n);
		paired += n;
	}
	for (size_t i = 0; i < ledger_holds(ledger); i++)
		s->placement.unknown += !ledger_hold_at(ledger, i)->draining;
	s->placement.unknown -= paired < s->placement.unknown ? paired : s->placement.unknown;
}
