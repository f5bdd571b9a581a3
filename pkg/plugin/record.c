/* What Allocate gave, into the ledger: who holds which VF, and why. After the reply: the kubelet
 * does not wait for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "choice/choice.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "plugin/record.h"
#include "pool/node.h"
#include "render/render.h"
#include "tracker/tracker.h"

#define VERBS_NODE "/dev/infiniband/"

/* --- a choice as the ledger keeps it --- */

static const char *address_of(const struct hw_inventory *inv, int pci, struct arena *a)
{
	char text[BDF_STRLEN];

	return arena_strdup(a, bdf_format(inv->pci[pci].bdf, text));
}

const char *const *plugin_record_gpus(const struct hw_inventory *inv, const int *gpus, size_t n,
				      struct arena *a)
{
	const char **v = arena_array(a, n, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = address_of(inv, gpus[i], a);
	return v;
}

static const char *const *vfs_of(const struct pool *pool, const int *devs, size_t n,
				 struct arena *a)
{
	const char **v = arena_array(a, n, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = pool->devs[devs[i]].id;
	return v;
}

static const struct ledger_pair *pairs_of(const struct node *node, const struct pool *pool,
					  const struct choose_out *out, struct arena *a)
{
	struct ledger_pair *v = arena_array(a, out->n_pairs, sizeof(*v));

	for (size_t i = 0; i < out->n_pairs; i++) {
		const struct choose_pair *pair = &out->pairs[i];

		v[i] = (struct ledger_pair) { address_of(node->inv, pair->gpu, a),
					      pool->devs[pair->dev].id,
					      topo_class_name(pair->path.class) };
	}
	return v;
}

/* Its PF; itself where that is not visible, or it is gone. */
static const char *place_of(const struct node *node, const struct pool_dev *dev, struct arena *a)
{
	return dev->pci < 0 ? dev->id : address_of(node->inv, topo_place(node->topo, dev->pci), a);
}

static size_t places_of(const struct node *node, const struct pool *pool, const int *devs, size_t n,
			struct arena *a, struct ledger_place **ret)
{
	struct ledger_place *v = arena_array(a, n, sizeof(*v));
	size_t n_places = 0;

	for (size_t i = 0; i < n; i++) {
		const char *pf = place_of(node, &pool->devs[devs[i]], a);
		size_t at = 0;

		while (at < n_places && !str_eq(v[at].pf, pf))
			at++;
		if (at == n_places)
			v[n_places++] = (struct ledger_place) { pf, 0 };
		v[at].free++;
	}
	*ret = v;
	return n_places;
}

static void explain(const struct choice *c, const struct pool *pool, struct ledger_decision *d,
		    struct arena *a)
{
	const struct choose_in in = { .node = c->node,
				      .pool = pool,
				      .available = c->available,
				      .n_available = c->n_available,
				      .must = c->must,
				      .n_must = c->n_must,
				      .want = c->want,
				      .gpus = c->gpus,
				      .n_gpus = c->n_gpus,
				      .busy_gpus = c->busy_gpus,
				      .n_busy_gpus = c->n_busy_gpus };
	struct choose_out out = choose_vfs(&in, true, a);
	struct ledger_place *places;

	d->owner = c->owner;
	d->known = c->known;
	d->source = c->source;
	d->gpus = plugin_record_gpus(c->node->inv, c->gpus, c->n_gpus, a);
	d->n_gpus = c->n_gpus;
	d->n_free = places_of(c->node, pool, c->available, c->n_available, a, &places);
	d->free = places;
	d->pairs = pairs_of(c->node, pool, &out, a);
	d->n_pairs = out.n_pairs;
	d->cost = out.cost;
	d->alternative = vfs_of(pool, out.runner_up, out.n_runner_up, a);
	d->n_alternative = out.n_runner_up;
	d->alternative_cost = out.runner_up_cost;
}

static uint64_t decide(struct plugin *p, const struct record *r, struct arena *a)
{
	const struct choice *c = r->choice;
	const struct pool *pool = c ? node_pool(c->node, p->resource) : NULL;
	struct ledger_decision d = { .at_ms = clock_wall_ms(),
				     .resource = p->resource,
				     .asked = (int)r->n_devs,
				     .source = "the kubelet chose without asking",
				     .n_chosen = r->n_devs };
	const char **chosen = arena_array(a, r->n_devs, sizeof(*chosen));

	for (size_t i = 0; i < r->n_devs; i++)
		chosen[i] = r->devs[i]->id;
	d.chosen = chosen;
	d.nodes = r->nodes;
	d.n_nodes = r->nodes ? r->n_devs : 0;
	if (pool)
		explain(c, pool, &d, a);
	return holds_decide(tracker_holds(p->env->tracker), &d);
}

/* --- holds --- */

bool plugin_record_same_pod(const struct ledger_owner *a, const struct ledger_owner *b)
{
	if (!a->pod || !*a->pod || !str_eq(a->pod, b->pod) || !str_eq(a->ns, b->ns))
		return false;
	return !a->uid || !*a->uid || !b->uid || !*b->uid || str_eq(a->uid, b->uid);
}

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

/* The answer has them in the order of the devices, one each. */
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
	static const struct ledger_owner nobody;
	const struct ledger_owner *owner = r->choice ? &r->choice->owner : &nobody;

	plugin_note_admission(p);
	if (!p->env->tracker)
		return;
	r->decision = decide(p, r, a);
	holds_allocated(tracker_holds(p->env->tracker),
			plugin_record_facts(p, r->devs, r->n_devs, a), r->n_devs, owner,
			r->decision, tracker_now());
	tracker_save(p->env->tracker, NULL, NULL);
}

void plugin_record_end(struct record *r)
{
	choice_free(r->choice);
	node_unref(r->node);
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
	for (size_t i = 0; i < grants->n; i++)
		plugin_record_end(&grants->v[i].record);
	arena_free(grants->arena);
}
