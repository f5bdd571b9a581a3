/*
 * Which devices for a request, and which VFs for the slots of a container. plugin and latebind ask.
 */
#include "choice/choice.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "pool/slots.h"

/* --- for a request --- */

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

/* --- for slots --- */

/*
 * Which VFs for the slots of one container: all its late pools at once, so that they see each
 * other. Within the NUMA nodes that the slots stand for, unless VFs of another node are closer to
 * its GPUs: then the kubelet's choice of slots was blind, and the GPUs count.
 */

#define ROUNDS_MAX 4 /* over the units, until none finds a better place */
/* Solutions dropped because one of their VFs is not idle; after these every VF is probed. */
#define TRIES_MAX 8

/* VFs that are chosen together: of a pool, or of one class of it. */
struct unit {
	const struct pool *pool;
	const char *place; /* NULL: anywhere */
	bool any_class;
	int numa;
	size_t want;
	int *picks; /* indices of VFs */
};

/* A VF that is bound already, or may be chosen. */
struct vf {
	const struct pool *pool;
	const struct pool_dev *dev;
	int numa;
	bool fixed, refused;
};

struct search {
	struct binding *c;
	struct arena *arena;
	struct vf *vfs; /* of all pools, in the order of addresses */
	size_t n_vfs;
	struct pool all; /* the same, as a pool */
};

struct solution {
	struct unit *units;
	size_t n_units;
	struct choose_out out; /* pairs and cost, of all VFs of the container */
};

static int by_address(const void *x, const void *y)
{
	const struct vf *a = x, *b = y;

	return a->dev->pci - b->dev->pci;
}

static bool is_first_of_pool(const struct binding *c, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (c->slots[i].pool == c->slots[at].pool)
			return false;
	}
	return true;
}

static struct search begin_search(struct binding *c, struct arena *a)
{
	struct search s = { .c = c, .arena = a };
	struct pool_dev *devs;
	size_t room = 0;

	for (size_t i = 0; i < c->n_slots; i++)
		room += is_first_of_pool(c, i) ? c->slots[i].pool->n_devs : 0;
	s.vfs = arena_array(a, room, sizeof(*s.vfs));
	for (size_t i = 0; i < c->n_slots; i++) {
		const struct pool *pool = c->slots[i].pool;

		for (size_t d = 0; is_first_of_pool(c, i) && d < pool->n_devs; d++) {
			const struct pool_dev *dev = &pool->devs[d];
			bool fixed = false;

			for (size_t k = 0; k < c->n_slots; k++)
				fixed |= c->slots[k].dev == dev;
			if (dev->pci >= 0 && (fixed || (dev->healthy && c->could(c->ctx, dev))))
				s.vfs[s.n_vfs++] =
					(struct vf) { pool, dev, pool_slot_class(pool, dev), fixed,
						      false };
		}
	}
	if (s.n_vfs)
		qsort(s.vfs, s.n_vfs, sizeof(*s.vfs), by_address);
	devs = arena_array(a, s.n_vfs, sizeof(*devs));
	for (size_t i = 0; i < s.n_vfs; i++)
		devs[i] = *s.vfs[i].dev;
	s.all = (struct pool) { c->slots[0].pool->cfg, devs, s.n_vfs };
	return s;
}

/* --- one solution --- */

static bool is_for(const struct unit *u, const struct binding_slot *slot)
{
	return u->pool == slot->pool && str_eq(u->place, slot->place) &&
	       (u->any_class || u->numa == slot->numa);
}

static void set_units(const struct search *s, bool any_class, struct solution *sol)
{
	const struct binding *c = s->c;

	sol->units = arena_array(s->arena, c->n_slots, sizeof(*sol->units));
	for (size_t i = 0; i < c->n_slots; i++) {
		const struct binding_slot *slot = &c->slots[i];
		size_t u = 0;

		if (slot->dev)
			continue;
		while (u < sol->n_units && !is_for(&sol->units[u], slot))
			u++;
		if (u == sol->n_units)
			sol->units[sol->n_units++] = (struct unit) { .pool = slot->pool,
								     .place = slot->place,
								     .any_class = any_class,
								     .numa = slot->numa };
		sol->units[u].want++;
	}
}

static bool is_candidate(const struct unit *u, const struct vf *vf)
{
	bool fits = u->place ? str_eq(u->place, pool_dev_place(vf->dev))
			     : u->any_class || u->numa == vf->numa;

	return !vf->fixed && !vf->refused && u->pool == vf->pool && fits;
}

static size_t count_candidates(const struct search *s, const struct unit *u)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_vfs; i++)
		n += is_candidate(u, &s->vfs[i]);
	return n;
}

/* Bound VFs, and those that the other units have picked so far. */
static size_t list_musts(const struct search *s, const struct solution *sol,
			 const struct unit *except, int *musts)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_vfs; i++) {
		if (s->vfs[i].fixed)
			musts[n++] = (int)i;
	}
	for (size_t u = 0; u < sol->n_units; u++) {
		const struct unit *unit = &sol->units[u];

		for (size_t i = 0; unit != except && unit->picks && i < unit->want; i++)
			musts[n++] = unit->picks[i];
	}
	return n;
}

static struct choose_in question(const struct search *s)
{
	return (struct choose_in) { .node = s->c->node,
				    .pool = &s->all,
				    .gpus = s->c->gpus,
				    .busy_gpus = s->c->busy_gpus };
}

static struct choose_in question_of(const struct search *s, const struct solution *sol,
				    const struct unit *u)
{
	int *available = arena_array(s->arena, s->n_vfs, sizeof(*available));
	struct choose_in in = question(s);

	in.n_must = list_musts(s, sol, u, available);
	in.must = arena_copy(s->arena, available, in.n_must * sizeof(*available));
	in.available = available;
	in.n_available = in.n_must;
	for (size_t i = 0; i < s->n_vfs; i++) {
		if (is_candidate(u, &s->vfs[i]))
			available[in.n_available++] = (int)i;
	}
	in.want = in.n_must + u->want;
	return in;
}

/* Returns whether that changed anything. */
static bool pick(const struct search *s, struct solution *sol, struct unit *u)
{
	struct choose_in in = question_of(s, sol, u);
	struct choose_out out = align_choose(&in, false, s->arena);
	int *picks = arena_array(s->arena, u->want, sizeof(*picks));
	bool changed;
	size_t n = 0;

	for (size_t i = 0; i < out.n_chosen && n < u->want; i++) {
		bool is_must = false;

		for (size_t m = 0; m < in.n_must; m++)
			is_must |= in.must[m] == out.chosen[i];
		if (!is_must)
			picks[n++] = out.chosen[i];
	}
	changed = !u->picks || memcmp(u->picks, picks, u->want * sizeof(*picks)) != 0;
	u->picks = picks;
	return changed;
}

static bool solve(const struct search *s, bool any_class, struct solution *ret)
{
	int *chosen = arena_array(s->arena, s->n_vfs, sizeof(*chosen));
	struct choose_in in = question(s);
	bool changed = true;
	size_t n;

	*ret = (struct solution) { 0 };
	set_units(s, any_class, ret);
	for (size_t u = 0; u < ret->n_units; u++) {
		if (count_candidates(s, &ret->units[u]) < ret->units[u].want)
			return false;
	}
	for (int round = 0; changed && round < ROUNDS_MAX; round++) {
		changed = false;
		for (size_t u = 0; u < ret->n_units; u++)
			changed |= pick(s, ret, &ret->units[u]);
		changed &= ret->n_units > 1;
	}
	n = list_musts(s, ret, NULL, chosen);
	ret->out = align_pairs(&in, chosen, n, s->arena);
	return true;
}

static bool solve_best(const struct search *s, struct solution *ret)
{
	struct solution strict;
	bool is_strict = solve(s, false, &strict), is_any = false;

	if (!is_strict || (s->c->gpus.n && strict.out.cost > 0))
		is_any = solve(s, true, ret);
	if (!is_any || (is_strict && strict.out.cost <= ret->out.cost))
		*ret = strict;
	return is_strict || is_any;
}

/* --- VFs that are not idle --- */

/* Asking costs a look at the machine: only VFs about to be chosen are asked about. */
static bool solve_with_idle(struct search *s, struct solution *ret, const char **ret_why)
{
	for (int try = 0; try < TRIES_MAX; try++) {
		bool may = true;

		if (!solve_best(s, ret))
			return false;
		for (size_t u = 0; u < ret->n_units; u++) {
			for (size_t i = 0; i < ret->units[u].want; i++) {
				struct vf *vf = &s->vfs[ret->units[u].picks[i]];

				vf->refused = !s->c->may(s->c->ctx, vf->dev, ret_why);
				may &= !vf->refused;
			}
		}
		if (may)
			return true;
	}
	for (size_t i = 0; i < s->n_vfs; i++) {
		struct vf *vf = &s->vfs[i];

		vf->refused = !vf->fixed && !s->c->may(s->c->ctx, vf->dev, ret_why);
	}
	return solve_best(s, ret);
}

static int refuse(const struct search *s, const char *why, struct err *err)
{
	struct solution sol = { 0 };

	set_units(s, true, &sol);
	for (size_t u = 0; u < sol.n_units; u++) {
		const struct unit *unit = &sol.units[u];
		size_t n = count_candidates(s, unit);

		if (n < unit->want)
			return err_set(err, EAGAIN,
				       "%s: %zu more VFs are needed and %zu are free%s%s",
				       unit->pool->cfg->resource, unit->want, n, why ? "; " : "",
				       why ? why : "");
	}
	return err_set(err, EAGAIN, "there are too few VFs");
}

/* --- the result --- */

/* A slot takes a VF of its own class as long as there is one. */
static void give_slot(struct search *s, const struct unit *u, struct binding_slot *slot,
		      bool own_class)
{
	for (size_t i = 0; !slot->dev && i < u->want; i++) {
		struct vf *vf = &s->vfs[u->picks[i]];

		if (vf->fixed || (own_class && vf->numa != slot->numa))
			continue;
		vf->fixed = true;
		slot->dev = vf->dev;
	}
}

static void give_slots(struct search *s, const struct solution *sol)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < s->c->n_slots; i++) {
			struct binding_slot *slot = &s->c->slots[i];

			for (size_t u = 0; u < sol->n_units; u++) {
				if (is_for(&sol->units[u], slot))
					give_slot(s, &sol->units[u], slot, pass == 0);
			}
		}
	}
}

/* All that could have been had. The runner-up is known for a choice from one pool only; that of
 * several is made step by step. */
static void explain(const struct search *s, const struct solution *sol, struct ledger_decision *ret)
{
	int *available = arena_array(s->arena, s->n_vfs, sizeof(*available));
	struct choose_in in = question(s);
	struct choose_out out = sol->out;

	in.available = available;
	for (size_t i = 0; i < s->n_vfs; i++) {
		if (!s->vfs[i].fixed && !s->vfs[i].refused)
			available[in.n_available++] = (int)i;
	}
	if (sol->n_units == 1 && s->c->gpus.n) {
		struct choose_in one = question_of(s, sol, &sol->units[0]);
		struct choose_out best = align_choose(&one, true, s->arena);

		out.runner_up = best.runner_up;
		out.n_runner_up = best.n_runner_up;
		out.runner_up_cost = best.runner_up_cost;
	}
	choice_explain(&in, &out, s->arena, ret);
}

int choice_for_slots(struct binding *c, struct arena *a, struct ledger_decision *ret,
		     struct err *err)
{
	const char *why = NULL, **vfs = arena_array(a, c->n_slots, sizeof(*vfs));
	struct search s = begin_search(c, a);
	struct solution sol;

	if (!solve_with_idle(&s, &sol, &why))
		return refuse(&s, why, err);
	*ret = (struct ledger_decision) {
		.late = true, .asked = (int)c->n_slots, .chosen = vfs, .n_chosen = c->n_slots
	};
	explain(&s, &sol, ret);
	give_slots(&s, &sol);
	for (size_t i = 0; i < c->n_slots; i++)
		vfs[i] = c->slots[i].dev->id;
	return 0;
}
