/* What the machine shows of a VF: is it away, open, and do the containers of its pod run? */
#include "tracker/tracker-internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
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

static struct view view_of(const struct node *node, const char *vf)
{
	const struct pool_dev *dev = find_dev(node, vf);
	struct view v = { .rdma_away = dev && dev->rdma_away };
	struct bdf bdf;
	int pci, rdma;

	if (bdf_parse(vf, &bdf) < 0)
		return v;
	pci = hw_find_pci(node->inv, bdf);
	rdma = pci >= 0 ? hw_find_rdma(node->inv, pci) : -1;
	v.fn = pci >= 0 ? &node->inv->pci[pci] : NULL;
	v.rdma = rdma >= 0 ? node->inv->rdma[rdma].name : NULL;
	return v;
}

static const char *why_away(const struct view *v, const struct ledger_hold *hold, struct arena *a)
{
	const char *driver = v->fn->driver;
	/* The driver that made its devices is still bound: what is out of sight is elsewhere. */
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

/*
 * Daemons of the host (ibacm, a monitor) open every RDMA device there is, for good. So what the
 * devices without a hold have open, all of them, PFs' too, is not a container's. With every device
 * held, what it was before counts.
 */
static unsigned host_users(struct tracker *k)
{
	unsigned least = UINT_MAX, users;
	char bdf[BDF_STRLEN];

	if (clock_mono_ms() < k->host_users_until_ms)
		return k->host_users;
	for (size_t i = 0; least && i < k->node->inv->n_rdma; i++) {
		const struct hw_rdma *rdma = &k->node->inv->rdma[i];
		bool held = rdma->pci < 0 ||
			    ledger_find(tracker_ledger(k),
					bdf_format(k->node->inv->pci[rdma->pci].bdf, bdf));

		if (!held && k->env.users(k->env.users_ctx, rdma->name, &users) == 0 &&
		    users < least)
			least = users;
	}
	k->host_users = least == UINT_MAX ? k->host_users : least;
	k->host_users_until_ms = clock_mono_ms() + k->pace.host_ms;
	return k->host_users;
}

static const char *why_open(struct tracker *k, const struct view *v, struct arena *a)
{
	unsigned users = 0, hosts;

	if (!v->rdma || !k->env.users || k->env.users(k->env.users_ctx, v->rdma, &users) < 0 ||
	    !users)
		return NULL;
	hosts = host_users(k);
	if (users <= hosts)
		return NULL;
	users -= hosts;
	return arena_printf(a, "its RDMA device %s is open (%u %s)", v->rdma, users,
			    users == 1 ? "context" : "contexts");
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

/* That a pod has no cgroup says something only where cgroups of pods have been found by their UIDs:
 * there may be another kubelet's. */
static enum holds_cgroup cgroup_of(struct tracker *k, const char *uid)
{
	int r;

	if (!k->runs)
		return HOLDS_CGROUP_OFF;
	r = pod_runs(k, uid);
	k->cgroups_found |= r > 0;
	if (r == -ENODATA || (r == 0 && !k->cgroups_found))
		return HOLDS_CGROUP_OFF;
	if (r == TRACKER_POD_IS_SANDBOX)
		return HOLDS_CGROUP_SANDBOX;
	return r < 0 ? HOLDS_CGROUP_UNKNOWN : r ? HOLDS_CGROUP_RUNS : HOLDS_CGROUP_EMPTY;
}

static int stop(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return 1;
}

struct holds_facts tracker_facts(struct tracker *k, const char *vf, struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(tracker_ledger(k), vf);
	struct holds_facts f = { .uid = arena_strdup(a, hold ? hold->owner.uid : "") };
	struct view v;

	if (!k->node) {
		f.unreadable = "the node has not been scanned yet";
		return f;
	}
	v = view_of(k->node, vf);
	f.cgroup = cgroup_of(k, f.uid);
	if (f.cgroup == HOLDS_CGROUP_SANDBOX)
		f.cgroup = HOLDS_CGROUP_RUNS;
	if (!v.fn) { /* Is it off the bus, or could that not be read? */
		if (k->env.root &&
		    (sysroot_each(k->env.root, "sys/bus/pci/devices", stop, NULL) < 0 ||
		     sysroot_exists(k->env.root, "sys/bus/pci/devices/%s", vf)))
			f.unreadable = "the PCI bus could not be read";
		return f;
	}
	f.away = why_away(&v, hold, a);
	f.open = why_open(k, &v, a);
	return f;
}

const char *tracker_withholds(struct tracker *k, const char *vf, struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(tracker_ledger(k), vf);
	struct view v;

	if (hold)
		return holds_withholds(k->holds, vf) ? "it drains" : NULL;
	if (!k->node)
		return NULL;
	v = view_of(k->node, vf);
	return v.fn ? why_away(&v, NULL, a) : NULL;
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

		if (slot) /* a slot of the same pod may have taken it along */
			holds_event(k->holds,
				    &(struct holds_event) {
					    .kind = HOLDS_SLOT_PROBED,
					    .slot = arena_strdup(a, slot),
					    .cgroup = cgroup_of(k, arena_strdup(a, owner->uid)) },
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
}
