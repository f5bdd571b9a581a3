/* The grants of Allocate → the ledger: who holds which VF, and why. After the reply: the kubelet
 * does not wait for this. */
#include <stdlib.h>
#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/str.h"
#include "choice/choice.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "plugin/record-internal.h"
#include "pool/node.h"
#include "render/render.h"
#include "status/stats.h"
#include "tracker/tracker.h"

#define VERBS_NODE "/dev/infiniband/"

/* When the kubelet set VFs aside for an earlier container of the pod, the GPUs of this container
 * were not known. */
static enum ledger_gpus known_in_time(const struct choice *c)
{
	return c && !c->in.n_must ? c->known : LEDGER_GPUS_UNKNOWN;
}

static uint64_t decide(struct plugin *p, const struct record *r, struct arena *a)
{
	const struct choice *c = r->choice;
	struct ledger_decision d = { .at_ms = clock_wall_ms(),
				     .resource = p->resource,
				     .asked = (int)r->n_devs,
				     .source = "the kubelet chose without asking",
				     .n_chosen = r->n_devs };
	const char **chosen = arena_array(a, r->n_devs, sizeof(*chosen));

	for (size_t i = 0; i < r->n_devs; i++)
		chosen[i] = r->devs[i]->id;
	stats_count_choice(p->counts, known_in_time(c));
	d.chosen = chosen;
	d.nodes = r->nodes;
	d.n_nodes = r->nodes ? r->n_devs : 0;
	if (c) {
		struct choose_out out = align_choose(&c->in, true, a);

		d.owner = c->owner;
		d.known = c->known;
		d.source = c->source;
		choice_explain(&c->in, &out, a, &d);
	}
	return holds_decide(tracker_holds(p->env->tracker), &d);
}

/* --- holds --- */

struct holds_vf *plugin_record_facts(struct plugin *p, const struct pool_dev *const *devs, size_t n,
				     struct arena *a)
{
	struct holds_vf *v = arena_array(a, n, sizeof(*v));
	struct holds_facts *facts = arena_array(a, n, sizeof(*facts));

	for (size_t i = 0; i < n; i++) {
		const struct pool_dev *dev = devs[i];

		facts[i] = tracker_facts(p->env->tracker, dev->id, a);
		v[i] = (struct holds_vf) { .vf = dev->id,
					   .resource = p->resource,
					   .rdma = dev->rdma >= 0
							   ? p->node->inv->rdma[dev->rdma].name
							   : NULL,
					   .facts = &facts[i] };
	}
	return v;
}

/* --- Allocate --- */

static int by_address(const void *x, const void *y)
{
	const struct pool_dev *const *a = x, *const *b = y;

	return (*a > *b) - (*a < *b);
}

void plugin_record_begin(struct record *r, struct plugin *p, struct choice *choice,
			 const struct ids *ids, struct arena *a)
{
	const struct pool *pool = plugin_pool(p);

	*r = (struct record) { .node = node_ref(p->node), .choice = choice };
	r->devs = arena_array(a, ids->n, sizeof(*r->devs));
	for (size_t i = 0; i < ids->n; i++) {
		const struct pool_dev *dev = pool_find(pool, ids->v[i]);

		if (dev)
			r->devs[r->n_devs++] = dev;
	}
	if (r->n_devs)
		qsort(r->devs, r->n_devs, sizeof(*r->devs), by_address);
}

/* The answer has one verbs node a device, in the same order. */
void plugin_record_answer(struct record *r, const struct edits *edits, struct arena *a)
{
	const char **nodes = arena_array(a, edits->n_devs, sizeof(*nodes));
	size_t n = 0;

	for (size_t i = 0; i < edits->n_devs; i++) {
		if (str_starts(edits->devs[i].host, VERBS_NODE "uverbs"))
			nodes[n++] = arena_strdup(a, edits->devs[i].host + strlen(VERBS_NODE));
	}
	if (n == r->n_devs)
		r->nodes = nodes;
}

void plugin_record_commit(struct record *r, struct plugin *p)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	static const struct ledger_owner unknown;
	const struct ledger_owner *owner = r->choice ? &r->choice->owner : &unknown;

	plugin_note_admission(p);
	if (!p->env->tracker)
		return;
	r->decision = decide(p, r, a);
	holds_event(tracker_holds(p->env->tracker),
		    &(struct holds_event) { .kind = HOLDS_ALLOCATED,
					    .given = plugin_record_facts(p, r->devs, r->n_devs, a),
					    .n = r->n_devs,
					    .owner = owner,
					    .number = r->decision },
		    tracker_now());
	tracker_save(p->env->tracker, NULL, NULL);
}

struct ids plugin_sorted(const struct ids *ids, struct arena *a)
{
	struct ids out = { arena_copy(a, ids->v, ids->n * sizeof(*ids->v)), ids->n };

	if (out.n)
		qsort(out.v, out.n, sizeof(*out.v), list_by_string);
	return out;
}

struct grants *plugin_grants_new(void)
{
	struct arena *a = arena_new(512);
	struct grants *grants = arena_alloc(a, sizeof(*grants));

	grants->arena = a;
	return grants;
}

void plugin_grants_free(struct grants *grants)
{
	for (size_t i = 0; i < grants->n; i++) {
		choice_free(grants->v[i].record.choice);
		node_unref(grants->v[i].record.node);
	}
	arena_free(grants->arena);
}
