#include "choice/choice.h"

#include <stdbool.h>

#include "align/choose.h"
#include "base/arena.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"

struct device_list choice_list(const struct pool *pool, struct arena *a)
{
	size_t shares = pool->cfg->shares, n = shares ? shares : pool->n_devs;
	struct device_list list = { arena_array(a, n, sizeof(*list.v)), n };
	int64_t *nodes = arena_array(a, pool->n_devs, sizeof(*nodes));
	bool healthy = false;

	for (size_t i = 0; i < pool->n_devs; i++)
		healthy |= pool->devs[i].healthy;
	/* Of HCAs that containers share: as many numbers as there are shares. */
	for (size_t i = 0; i < shares; i++)
		list.v[i] = (struct device) { .id = arena_printf(a, "%zu", i), .healthy = healthy };
	for (size_t i = 0; !shares && i < pool->n_devs; i++) {
		const struct pool_dev *dev = &pool->devs[i];

		list.v[i] = (struct device) { .id = dev->id, .healthy = dev->healthy };
		if (dev->numa < 0 || pool->cfg->exclude_topology)
			continue;
		nodes[i] = dev->numa;
		list.v[i].nodes = &nodes[i];
		list.v[i].n_nodes = 1;
	}
	return list;
}

/* Pool indices, each once. The kubelet sends ids in the order of a Go map: sorting makes the answer
 * a function of the set. */
struct picks {
	bool *has; /* by pool index */
	int *v;
	size_t n;
};

static struct picks picks_new(const struct pool *pool, struct arena *a)
{
	return (struct picks) { arena_array(a, pool->n_devs, sizeof(bool)),
				arena_array(a, pool->n_devs, sizeof(int)), 0 };
}

static void picks_add(struct picks *picks, const struct pool *pool, const struct pool_dev *dev)
{
	picks->has[dev - pool->devs] = true;
}

static void picks_list(struct picks *picks, const struct pool *pool)
{
	for (size_t i = 0; i < pool->n_devs; i++) {
		if (picks->has[i])
			picks->v[picks->n++] = (int)i;
	}
}

static void pick_offered(const struct pool *pool, const struct preferred_container *req,
			 struct picks *available, struct picks *must)
{
	const struct pool_dev *dev;

	for (size_t i = 0; i < req->available.n; i++) {
		dev = pool_find(pool, req->available.v[i]);
		if (dev && dev->healthy)
			picks_add(available, pool, dev);
	}
	for (size_t i = 0; i < req->must.n; i++) {
		dev = pool_find(pool, req->must.v[i]);
		if (!dev)
			continue;
		picks_add(available, pool, dev);
		picks_add(must, pool, dev);
	}
}

static size_t count(const bool *has, size_t n)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += has[i];
	return total;
}

/* Those on offer that are not free: the kubelet may think one free before its last user let go. Are
 * there enough without them? If not, all that are free have to be taken. */
static void leave_taken(const struct pool *pool, const bool *free, size_t want,
			struct picks *available, struct picks *must, struct arena *a)
{
	size_t n = pool->n_devs;
	bool *taken = arena_array(a, n, sizeof(*taken)), enough;

	for (size_t i = 0; i < n; i++)
		taken[i] = available->has[i] && !must->has[i] && !free[i];
	enough = count(available->has, n) - count(taken, n) >= want;
	for (size_t i = 0; i < n; i++) {
		if (taken[i] && enough)
			available->has[i] = false;
		else if (available->has[i] && !taken[i] && !enough)
			must->has[i] = true;
	}
}

struct ids choice_decide(const struct node *node, const struct pool *pool,
			 const struct preferred_container *req, const struct identified *who,
			 const bool *free, struct arena *a, struct choice *ret)
{
	struct picks available = picks_new(pool, a), must = picks_new(pool, a);
	struct choose_in in = { .node = node, .pool = pool };
	size_t n_available, n_must;
	struct choose_out out;
	struct ids ids;

	pick_offered(pool, req, &available, &must);
	n_available = count(available.has, pool->n_devs);
	n_must = count(must.has, pool->n_devs);
	in.want = req->size < 0 ? 0 : (size_t)req->size;
	if (in.want > n_available)
		in.want = n_available;
	if (in.want < n_must)
		in.want = n_must;
	if (free)
		leave_taken(pool, free, in.want, &available, &must, a);
	picks_list(&available, pool);
	picks_list(&must, pool);
	in.available = available.v;
	in.n_available = available.n;
	in.must = must.v;
	in.n_must = must.n;
	if (who) {
		in.gpus = who->gpus;
		in.busy_gpus = who->busy_gpus;
		in.drawn = who->n_drawn;
	}
	out = align_choose(&in, false, a);
	if (ret)
		*ret = (struct choice) { .in = in };
	ids = (struct ids) { arena_array(a, out.n_chosen, sizeof(*ids.v)), out.n_chosen };
	for (size_t i = 0; i < ids.n; i++)
		ids.v[i] = pool->devs[out.chosen[i]].id;
	return ids;
}

/* --- for the ledger --- */

static void note_free(const struct choose_in *in, struct arena *a, struct ledger_decision *ret)
{
	size_t *place_at = arena_array(a, in->node->inv->n_pci, sizeof(*place_at)); /* from 1 */
	struct ledger_place *v = arena_array(a, in->n_available, sizeof(*v));

	ret->free = v;
	for (size_t i = 0; i < in->n_available; i++) {
		const struct pool_dev *dev = &in->pool->devs[in->available[i]];
		int place = dev->pci < 0 ? -1 : topo_place(in->node->topo, dev->pci);

		if (place < 0) { /* it is gone: of a place of its own */
			v[ret->n_free++] = (struct ledger_place) { dev->id, 1 };
			continue;
		}
		if (!place_at[place]) {
			v[ret->n_free].pf = hw_pci_address(in->node->inv, place, a);
			place_at[place] = ++ret->n_free;
		}
		v[place_at[place] - 1].free++;
	}
}

void choice_explain(const struct choose_in *in, const struct choose_out *out, struct arena *a,
		    struct ledger_decision *ret)
{
	struct ledger_pair *pairs = arena_array(a, out->n_pairs, sizeof(*pairs));
	const char **alternative = arena_array(a, out->n_runner_up, sizeof(*alternative));

	for (size_t i = 0; i < out->n_pairs; i++) {
		const struct choose_pair *pair = &out->pairs[i];

		pairs[i] = (struct ledger_pair) { hw_pci_address(in->node->inv, pair->gpu, a),
						  in->pool->devs[pair->dev].id,
						  topo_class_name(pair->path.class) };
	}
	for (size_t i = 0; i < out->n_runner_up; i++)
		alternative[i] = in->pool->devs[out->runner_up[i]].id;
	ret->gpus = hw_gpu_addresses(in->node->inv, in->gpus, a);
	ret->n_gpus = in->gpus.n;
	note_free(in, a, ret);
	ret->pairs = pairs;
	ret->n_pairs = out->n_pairs;
	ret->cost = out->cost;
	ret->alternative = alternative;
	ret->n_alternative = out->n_runner_up;
	ret->alternative_cost = out->runner_up_cost;
}

/* --- a choice that is kept --- */

static const int *copy_ints(const int *v, size_t n, struct arena *a)
{
	return n ? arena_copy(a, v, n * sizeof(*v)) : NULL;
}

struct choice *choice_copy(const struct choice *from)
{
	struct arena *a = arena_new(1024);
	struct choice *c = arena_copy(a, from, sizeof(*from));

	c->arena = a;
	node_ref((struct node *)from->in.node); /* counts, and changes nothing else */
	c->owner = ledger_copy_owner(&from->owner, a);
	c->source = arena_strdup(a, from->source);
	c->in.gpus.v = copy_ints(from->in.gpus.v, from->in.gpus.n, a);
	c->in.busy_gpus.v = copy_ints(from->in.busy_gpus.v, from->in.busy_gpus.n, a);
	c->in.available = copy_ints(from->in.available, from->in.n_available, a);
	c->in.must = copy_ints(from->in.must, from->in.n_must, a);
	return c;
}

void choice_free(struct choice *c)
{
	if (!c)
		return;
	node_unref((struct node *)c->in.node);
	arena_free(c->arena);
}

/* PCI indices belong to one inventory, addresses to the machine. */
struct gpu_set choice_known_gpus(const struct choice *c, const struct hw_inventory *inv,
				 struct arena *a)
{
	size_t n = 0;
	int *v;

	if (!c || c->known != LEDGER_GPUS_KNOWN)
		return (struct gpu_set) { 0 };
	v = arena_array(a, c->in.gpus.n, sizeof(*v));
	for (size_t i = 0; i < c->in.gpus.n; i++) {
		int pci = hw_find_pci(inv, c->in.node->inv->pci[c->in.gpus.v[i]].bdf);

		if (pci >= 0)
			v[n++] = pci;
	}
	return (struct gpu_set) { v, n, c->in.gpus.n_unknown };
}
