/* A VF as the machine shows it: is it away, open, and do the containers of its pod run? */
#include "tracker/tracker-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "rpc/rpc.h"
#include "sysroot/sysroot.h"
#include "tracker/cgroup.h"

/* A VF of the node. */
struct view {
	const struct hw_pci *fn; /* NULL: it is not on the bus */
	const char *rdma;	 /* NULL: none here */
	bool rdma_away;
};

static const struct pool_dev *find_dev(const struct node *node, const char *vf)
{
	const struct pool_dev *dev = NULL;

	for (size_t i = 0; !dev && i < node->n_pools; i++)
		dev = pool_find(&node->pools[i], vf);
	return dev;
}

static struct view view_at(const struct node *node, int pci, bool rdma_away)
{
	int rdma = pci >= 0 ? hw_find_rdma(node->inv, pci) : -1;

	return (struct view) { .fn = pci >= 0 ? &node->inv->pci[pci] : NULL,
			       .rdma = rdma >= 0 ? node->inv->rdma[rdma].name : NULL,
			       .rdma_away = rdma_away };
}

static struct view view_of(const struct node *node, const char *vf)
{
	const struct pool_dev *dev = find_dev(node, vf);
	struct bdf bdf;
	int pci = bdf_parse(vf, &bdf) < 0 ? -1 : hw_find_pci(node->inv, bdf);

	return view_at(node, pci, dev && dev->rdma_away);
}

static struct view view_of_dev(const struct node *node, const struct pool_dev *dev)
{
	return view_at(node, dev->pci, dev->rdma_away);
}

static const char *why_away(const struct view *v, const struct ledger_hold *hold, struct arena *a)
{
	const char *driver = v->fn->driver;
	/* The driver that made its devices is still bound: one out of sight is elsewhere. */
	bool known =
		hold && driver && (!hold->driver || str_eq(driver, hold->driver)) && !v->fn->netdev;

	if (v->rdma_away || (known && hold->rdma && !v->rdma))
		return arena_printf(a, "its RDMA device %sis in a container's network namespace",
				    hold && hold->rdma ? arena_printf(a, "%s ", hold->rdma) : "");
	if (known && hold->netdev)
		return arena_printf(
			a, "its network interface %s is in a container's network namespace",
			hold->netdev);
	return NULL;
}

/* Finding a pod takes a walk through the cgroup tree: in one round, one for all VFs of a pod. */
static int pod_runs(struct tracker *k, const char *uid)
{
	int r;

	if (!*uid)
		return -EINVAL;
	for (size_t i = 0; i < k->n_round; i++) {
		if (!strcmp(k->round[i].uid, uid))
			return k->round[i].result;
	}
	r = k->runs(k->runs_ctx, uid);
	if (k->round)
		k->round[k->n_round++] = (struct pod_runs) { uid, r };
	return r;
}

/* A missing cgroup of a pod counts only where cgroups of pods have been found by their UIDs: there
 * may be another kubelet's. */
static enum holds_cgroup cgroup_of(struct tracker *k, const char *uid, bool *ret_there)
{
	int r;

	*ret_there = false;
	if (!k->runs)
		return HOLDS_CGROUP_OFF;
	r = pod_runs(k, uid);
	*ret_there = r > 0;
	k->cgroups_found |= r > 0;
	if (r == -ENODATA || (r == 0 && !k->cgroups_found))
		return HOLDS_CGROUP_OFF;
	if (r == TRACKER_POD_IS_SANDBOX)
		return HOLDS_CGROUP_SANDBOX;
	if (r == TRACKER_POD_IS_EMPTY)
		return HOLDS_CGROUP_EMPTY;
	return r < 0 ? HOLDS_CGROUP_UNKNOWN : r ? HOLDS_CGROUP_RUNS : HOLDS_CGROUP_EMPTY;
}

enum holds_cgroup tracker_cgroup(struct tracker *k, const char *uid)
{
	bool there;

	return cgroup_of(k, uid, &there);
}

static int stop(void *arg, const char *name)
{
	return 1;
}

/* open: how it is found out whether its RDMA device is. */
static struct holds_facts
facts_of(struct tracker *k, const char *vf, const struct view *v,
	 const char *(*open)(struct tracker *k, const char *rdma, struct arena *a), struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(tracker_ledger(k), vf);
	struct holds_facts f = { .uid = arena_strdup(a, hold ? hold->owner.uid : "") };

	f.cgroup = cgroup_of(k, f.uid, &f.cgroup_is_there);
	if (f.cgroup == HOLDS_CGROUP_SANDBOX)
		f.cgroup = HOLDS_CGROUP_RUNS;
	if (!v->fn) { /* Is it off the bus, or could that not be read? */
		if (k->env.root &&
		    (sysroot_each(k->env.root, "sys/bus/pci/devices", stop, NULL) < 0 ||
		     sysroot_exists(k->env.root, "sys/bus/pci/devices/%s", vf)))
			f.unreadable = "the PCI bus could not be read";
		return f;
	}
	f.away = why_away(v, hold, a);
	f.open = v->rdma ? open(k, v->rdma, a) : NULL;
	return f;
}

struct holds_facts tracker_facts(struct tracker *k, const char *vf, struct arena *a)
{
	struct view v;

	if (!k->node)
		return (struct holds_facts) { .unreadable = "the node has not been scanned yet",
					      .uid = "" };
	v = view_of(k->node, vf);
	return facts_of(k, vf, &v, tracker_open_now, a);
}

/* May a pod have it, by the checkpoint? One that cannot be read says no of nobody; before the first
 * pod of a node there is none. Ids of late pools are slots. */
static bool is_given(struct tracker *k, const struct pool *pool, const char *vf)
{
	const struct holds_entry *entries;
	size_t n;

	if (pool->cfg->binding == BINDING_LATE)
		return false;
	n = tracker_checkpoint(k, &entries);
	if (k->entries_err.code && k->entries_err.code != ENOENT)
		return true;
	while (n && (!str_eq(entries[n - 1].id, vf) ||
		     !str_eq(entries[n - 1].resource, pool->cfg->resource)))
		n--;
	return n;
}

struct holds_verdict tracker_judge(struct tracker *k, const struct pool *pool,
				   const struct pool_dev *dev, bool closely, struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(tracker_ledger(k), dev->id);
	struct holds_facts facts = { .uid = "" };
	struct holds_view view = { .vf = dev->id,
				   .resource = pool->cfg->resource,
				   .retired = pool->cfg->retired,
				   .leaving = dev->left_over || dev->pci < 0,
				   .unhealthy = dev->reason,
				   .facts = &facts };
	struct view v;

	if (!pool->cfg->shares && (!hold || closely)) { /* a shared device is used by many */
		v = view_of_dev(k->node, dev);
		facts = facts_of(k, dev->id, &v, hold ? tracker_open_now : tracker_open_long, a);
		view.given = !hold && (facts.away || facts.open) && is_given(k, pool, dev->id);
	}
	return holds_judge(k->holds, &view, a);
}

/* --- VFs of which something is to be learnt --- */

/* From the end: one that is known by now leaves the list, and the others keep their places. */
void tracker_probe_slots(struct tracker *k)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	size_t n = 0;

	while (holds_unknown(k->holds, n, NULL))
		n++;
	while (n-- > 0) {
		const struct ledger_owner *owner;
		const char *slot = holds_unknown(k->holds, n, &owner);
		bool there;

		if (slot) /* a slot of the same pod may have taken it along */
			holds_event(k->holds,
				    &(struct holds_event) {
					    .kind = HOLDS_SLOT_PROBED,
					    .slot = arena_strdup(a, slot),
					    .cgroup = cgroup_of(k, arena_strdup(a, owner->uid),
								&there) },
				    tracker_now());
	}
}

static void probe_all(void *arg)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct tracker *k = arg;
	const struct ledger *l = tracker_ledger(k);
	size_t n_unknown = 0;

	k->drain = NULL;
	while (holds_unknown(k->holds, n_unknown, NULL))
		n_unknown++;
	k->round = arena_array(a, ledger_holds(l) + n_unknown, sizeof(*k->round));
	for (size_t i = ledger_holds(l); i-- > 0;) {
		struct holds_facts facts;

		if (!holds_wants_probe(k->holds, i, tracker_now()))
			continue;
		facts = tracker_facts(k, ledger_hold_at(l, i)->vf, a);
		holds_event(k->holds,
			    &(struct holds_event) { .kind = HOLDS_PROBED,
						    .vf = arena_strdup(a, ledger_hold_at(l, i)->vf),
						    .facts = &facts },
			    tracker_now());
	}
	tracker_probe_slots(k);
	k->round = NULL;
	k->n_round = 0;
	tracker_note_change(k);
}

static bool wants_some(struct tracker *k)
{
	struct holds_now now = tracker_now();

	for (size_t i = 0; i < ledger_holds(tracker_ledger(k)); i++) {
		if (holds_wants_probe(k->holds, i, now))
			return true;
	}
	return holds_unknown(k->holds, 0, NULL) != NULL;
}

void tracker_drain_later(struct tracker *k)
{
	if (!k->drain && wants_some(k))
		k->drain = rpc_after(k->env.rpc, k->pace.drain_ms, probe_all, k);
}

/* --- holds of VFs that no pool lists --- */

static bool is_told(struct tracker *k, const char *vf)
{
	for (size_t i = 0; i < k->n_reported; i++) {
		if (!strcmp(k->reported_unlisted[i], vf))
			return true;
	}
	k->reported_unlisted = xgrow(k->reported_unlisted, &k->cap_reported, k->n_reported + 1,
				     sizeof(*k->reported_unlisted));
	k->reported_unlisted[k->n_reported++] = xstrdup(vf);
	return false;
}

/* Its driver is bound, and it was in the pool once, for a container has it. */
static void tell_unlisted(struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);

	for (size_t i = 0; k->env.unlisted && i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);
		struct view v = view_of(k->node, hold->vf);

		if (!v.fn || !v.fn->driver || find_dev(k->node, hold->vf) ||
		    !node_pool(k->node, hold->resource) ||
		    !hw_is_nic_vf(k->node->inv, (int)(v.fn - k->node->inv->pci)) ||
		    is_told(k, hold->vf))
			continue;
		k->env.unlisted(k->env.ctx, &(struct node_seed) { .resource = hold->resource,
								  .vf = hold->vf,
								  .rdma = hold->rdma,
								  .driver = v.fn->driver });
	}
}

/* --- a new node --- */

void tracker_complete(struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);

	if (!k->node || k->completed == ledger_generation(l))
		return;
	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);
		struct view v = view_of(k->node, hold->vf);

		if (v.fn)
			holds_event(k->holds,
				    &(struct holds_event) { .kind = HOLDS_DEVICES,
							    .vf = hold->vf,
							    .rdma = v.rdma,
							    .netdev = v.fn->netdev,
							    .driver = v.fn->driver },
				    tracker_now());
	}
	tell_unlisted(k);
	k->completed = ledger_generation(l);
}

void tracker_update(struct tracker *k, struct node *node)
{
	struct node *before = k->node;

	k->node = node_ref(node);
	node_unref(before);
	k->completed = UINT64_MAX;
	rpc_timer_cancel(STEAL(k->drain));
	if (wants_some(k))
		probe_all(k);
	tracker_complete(k);
	tracker_note_change(k);
	tracker_open_begin(k);
}
