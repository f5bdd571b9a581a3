#include "choice/choice.h"

#include <stdbool.h>

#include "align/choose.h"
#include "base/arena.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"

struct device_list choice_list(const struct pool *pool, struct arena *a)
{
	struct device_list list = { arena_array(a, pool->n_devs, sizeof(*list.v)), pool->n_devs };
	int64_t *nodes = arena_array(a, pool->n_devs, sizeof(*nodes));

	for (size_t i = 0; i < pool->n_devs; i++) {
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

static struct ids ids_of(const struct pool *pool, const int *devs, size_t n, struct arena *a)
{
	struct ids ids = { arena_array(a, n, sizeof(*ids.v)), n };

	for (size_t i = 0; i < n; i++)
		ids.v[i] = pool->devs[devs[i]].id;
	return ids;
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

/* Those on offer that the ledger says are held: the kubelet may think one free before its last user
 * let go.
 */
static bool *held_on_offer(const struct pool *pool, const struct ledger *ledger,
			   const struct picks *available, const struct picks *must, struct arena *a)
{
	bool *held = arena_array(a, pool->n_devs, sizeof(*held));

	for (size_t i = 0; i < ledger_holds(ledger); i++) {
		const struct pool_dev *dev = pool_find(pool, ledger_hold_at(ledger, i)->vf);
		size_t at = dev ? (size_t)(dev - pool->devs) : 0;

		if (dev && available->has[at] && !must->has[at])
			held[at] = true;
	}
	return held;
}

/* Are there enough without them? If not, all that are free have to be taken. */
static void leave_held(const struct pool *pool, const struct ledger *ledger, size_t want,
		       struct picks *available, struct picks *must, struct arena *a)
{
	const bool *held = held_on_offer(pool, ledger, available, must, a);
	size_t n = pool->n_devs;
	bool enough = count(available->has, n) - count(held, n) >= want;

	for (size_t i = 0; i < n; i++) {
		if (held[i] && enough)
			available->has[i] = false;
		else if (available->has[i] && !held[i] && !enough)
			must->has[i] = true;
	}
}

static size_t clamp(int size, size_t available, size_t must)
{
	size_t want = size < 0 ? 0 : (size_t)size;

	if (want > available)
		want = available;
	return want < must ? must : want;
}

struct ids choice_decide(struct node *node, const struct pool *pool,
			 const struct preferred_container *req, const struct identified *who,
			 const struct ledger *ledger, struct arena *a, struct choice *ret)
{
	struct picks available = picks_new(pool, a), must = picks_new(pool, a);
	struct choose_in in = { .node = node, .pool = pool };
	struct choose_out out;

	pick_offered(pool, req, &available, &must);
	in.want =
		clamp(req->size, count(available.has, pool->n_devs), count(must.has, pool->n_devs));
	if (ledger && ledger_holds(ledger))
		leave_held(pool, ledger, in.want, &available, &must, a);
	picks_list(&available, pool);
	picks_list(&must, pool);
	in.available = available.v;
	in.n_available = available.n;
	in.must = must.v;
	in.n_must = must.n;
	if (who) {
		in.gpus = who->gpus;
		in.n_gpus = who->n_gpus;
		in.busy_gpus = who->busy_gpus;
		in.n_busy_gpus = who->n_busy_gpus;
		in.drawn = who->n_drawn;
	}
	out = choose_vfs(&in, false, a);
	*ret = (struct choice) { .node = node,
				 .gpus = in.gpus,
				 .n_gpus = in.n_gpus,
				 .busy_gpus = in.busy_gpus,
				 .n_busy_gpus = in.n_busy_gpus,
				 .available = in.available,
				 .n_available = in.n_available,
				 .must = in.must,
				 .n_must = in.n_must,
				 .want = in.want };
	return ids_of(pool, out.chosen, out.n_chosen, a);
}

struct ids choice_preferred(const struct node *node, const struct pool *pool,
			    const struct preferred_container *req, const struct identified *who,
			    struct arena *a)
{
	struct choice choice;

	return choice_decide((struct node *)node, pool, req, who, NULL, a, &choice);
}

/* --- a choice that is kept --- */

static const char *copy_text(const char *s, struct arena *a)
{
	return s ? arena_strdup(a, s) : NULL;
}

static const int *copy_ints(const int *v, size_t n, struct arena *a)
{
	return n ? arena_copy(a, v, n * sizeof(*v)) : NULL;
}

struct choice *choice_copy(const struct choice *from)
{
	struct arena *a = arena_new(1024);
	struct choice *c = arena_copy(a, from, sizeof(*from));

	c->arena = a;
	c->node = node_ref(from->node);
	c->owner =
		(struct ledger_owner) { copy_text(from->owner.ns, a), copy_text(from->owner.pod, a),
					copy_text(from->owner.uid, a),
					copy_text(from->owner.container, a) };
	c->source = copy_text(from->source, a);
	c->gpus = copy_ints(from->gpus, from->n_gpus, a);
	c->busy_gpus = copy_ints(from->busy_gpus, from->n_busy_gpus, a);
	c->available = copy_ints(from->available, from->n_available, a);
	c->must = copy_ints(from->must, from->n_must, a);
	return c;
}

void choice_free(struct choice *c)
{
	if (!c)
		return;
	node_unref(c->node);
	arena_free(c->arena);
}

/* PCI indices belong to one inventory, addresses to the machine. */
size_t choice_known_gpus(const struct choice *c, const struct hw_inventory *inv, struct arena *a,
			 int **ret)
{
	size_t n = 0;

	*ret = NULL;
	if (!c || c->known != LEDGER_GPUS_KNOWN)
		return 0;
	*ret = arena_array(a, c->n_gpus, sizeof(**ret));
	for (size_t i = 0; i < c->n_gpus; i++) {
		int pci = hw_find_pci(inv, c->node->inv->pci[c->gpus[i]].bdf);

		if (pci >= 0)
			(*ret)[n++] = pci;
	}
	return n;
}
