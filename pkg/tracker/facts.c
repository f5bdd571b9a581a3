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
#include "discover/sysroot.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "rpc/rpc.h"

/* A VF in the picture of the node. */
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

/* The driver that made its devices is still bound: what is out of sight is elsewhere, not gone. */
static bool has_same_driver(const struct view *v, const struct ledger_hold *hold)
{
	return v->fn->driver && (!hold->driver || str_eq(v->fn->driver, hold->driver));
}

static const char *why_away(const struct view *v, const struct ledger_hold *hold, struct arena *a)
{
	bool known = hold && has_same_driver(v, hold) && !v->fn->netdev;

	if (v->rdma_away || (known && hold->rdma && !v->rdma))
		return arena_printf(a, "its RDMA device %sis in a container's network namespace",
				    hold && hold->rdma ? arena_printf(a, "%s ", hold->rdma) : "");
	if (known && hold->netdev)
		return arena_printf(
			a, "its network interface %s is in a container's network namespace",
			hold->netdev);
	return NULL;
}

static bool is_held(const struct tracker *k, const struct hw_rdma *rdma)
{
	char bdf[BDF_STRLEN];

	return rdma->pci < 0 ||
	       ledger_find(tracker_ledger(k), bdf_format(k->node->inv->pci[rdma->pci].bdf, bdf));
}

static unsigned count_host_users(const struct tracker *k)
{
	unsigned least = UINT_MAX, users;

	for (size_t i = 0; least && i < k->node->inv->n_rdma; i++) {
		const struct hw_rdma *rdma = &k->node->inv->rdma[i];

		if (!is_held(k, rdma) && k->users(k->users_ctx, rdma->name, &users) == 0 &&
		    users < least)
			least = users;
	}
	return least;
}

/*
 * Daemons of the host (ibacm, a monitor) open every RDMA device there is, for good. So what the
 * devices without a hold have open, all of them, PFs' too, is not a container's. With every device
 * held, what it was before counts.
 */
static unsigned host_users(struct tracker *k)
{
	unsigned least;

	if (clock_mono_ms() >= k->host_users_until_ms) {
		least = count_host_users(k);
		k->host_users = least == UINT_MAX ? k->host_users : least;
		k->host_users_until_ms = clock_mono_ms() + k->pace.host_ms;
	}
	return k->host_users;
}

static unsigned container_users(struct tracker *k, const struct view *v)
{
	unsigned users = 0, hosts;

	if (!v->rdma || !k->users || k->users(k->users_ctx, v->rdma, &users) < 0 || !users)
		return 0;
	hosts = host_users(k);
	return users > hosts ? users - hosts : 0;
}

static const char *why_open(struct tracker *k, const struct view *v, struct arena *a)
{
	unsigned users = container_users(k, v);

	return users ? arena_printf(a, "its RDMA device %s is open (%u %s)", v->rdma, users,
				    users == 1 ? "context" : "contexts")
		     : NULL;
}

/* That a pod has no cgroup says something only where cgroups of pods have been found by their UIDs:
 * there may be another kubelet's. */
static enum holds_cgroup cgroup_of(struct tracker *k, const char *uid)
{
	int r;

	if (!k->runs)
		return HOLDS_CGROUP_OFF;
	r = *uid ? k->runs(k->runs_ctx, uid) : -EINVAL;
	k->cgroups_found |= r == 1;
	if (r == -ENODATA || (r == 0 && !k->cgroups_found))
		return HOLDS_CGROUP_OFF;
	return r < 0 ? HOLDS_CGROUP_UNKNOWN : r ? HOLDS_CGROUP_RUNS : HOLDS_CGROUP_EMPTY;
}

static int stop(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return 1;
}

/* The picture does not have it. Is that so, or could the bus not be read? */
static bool is_off_the_bus(const struct tracker *k, const char *vf)
{
	if (!k->root)
		return true;
	return sysroot_each(k->root, "sys/bus/pci/devices", stop, NULL) >= 0 &&
	       !sysroot_exists(k->root, "sys/bus/pci/devices/%s", vf);
}

struct holds_facts tracker_facts(struct tracker *k, const char *vf, struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(tracker_ledger(k), vf);
	struct holds_facts f = { .uid = arena_strdup(a, holds_uid_of(k->holds, vf)) };
	struct view v;

	if (!k->node) {
		f.unreadable = "the node has not been scanned yet";
		return f;
	}
	v = view_of(k->node, vf);
	f.cgroup = cgroup_of(k, f.uid);
	if (!v.fn) {
		f.unreadable = is_off_the_bus(k, vf) ? NULL : "the PCI bus could not be read";
		return f;
	}
	f.away = why_away(&v, hold, a);
	f.open = why_open(k, &v, a);
	return f;
}

bool tracker_is_open(struct tracker *k, const char *vf)
{
	struct view v;

	if (!k->node)
		return false;
	v = view_of(k->node, vf);
	return v.fn && container_users(k, &v) > 0;
}

/* --- VFs of which something is to be learnt --- */

static void look_at_all(void *arg)
{
	struct tracker *k = arg;
	const struct ledger *l = tracker_ledger(k);
	const struct ledger_owner *owner;
	const char *slot;

	k->drain = NULL;
	for (size_t i = ledger_holds(l); i-- > 0;) {
		_cleanup_arena_ struct arena *a = arena_new(512);
		struct holds_facts facts;

		if (!holds_wants_look(k->holds, i, tracker_now()))
			continue;
		facts = tracker_facts(k, ledger_hold_at(l, i)->vf, a);
		holds_looked(k->holds, arena_strdup(a, ledger_hold_at(l, i)->vf), &facts,
			     tracker_now());
	}
	for (size_t i = 0; (slot = holds_unknown(k->holds, i, &owner)); i++)
		holds_unknown_looked(k->holds, slot, cgroup_of(k, owner->uid));
	tracker_save(k, NULL, NULL);
}

static bool wants_some(struct tracker *k)
{
	struct holds_now now = tracker_now();

	for (size_t i = 0; i < ledger_holds(tracker_ledger(k)); i++) {
		if (holds_wants_look(k->holds, i, now))
			return true;
	}
	return holds_unknown(k->holds, 0, NULL) != NULL;
}

void tracker_drain_later(struct tracker *k)
{
	if (!k->drain && wants_some(k))
		k->drain = rpc_after(k->rpc, k->pace.drain_ms, look_at_all, k);
}

/* --- a picture of the node --- */

/* --- holds of VFs that no pool lists --- */

void tracker_listen_unlisted(struct tracker *k,
			     void (*unlisted)(void *ctx, const struct node_seed *seed), void *ctx)
{
	k->unlisted = unlisted;
	k->unlisted_ctx = ctx;
}

static bool is_told(struct tracker *k, const char *vf)
{
	for (size_t i = 0; i < k->n_told; i++) {
		if (!strcmp(k->told_unlisted[i], vf))
			return true;
	}
	k->told_unlisted =
		xgrow(k->told_unlisted, &k->cap_told, k->n_told + 1, sizeof(*k->told_unlisted));
	k->told_unlisted[k->n_told++] = xstrdup(vf);
	return false;
}

/* Its driver is bound, and it was in the pool once, for a container has it. */
static void tell_unlisted(struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);

	for (size_t i = 0; k->unlisted && i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);
		struct view v = view_of(k->node, hold->vf);

		if (!v.fn || !v.fn->driver || find_dev(k->node, hold->vf) ||
		    !node_pool(k->node, hold->resource) ||
		    !hw_is_nic_vf(k->node->inv, (int)(v.fn - k->node->inv->pci)) ||
		    is_told(k, hold->vf))
			continue;
		k->unlisted(k->unlisted_ctx, &(struct node_seed) { .resource = hold->resource,
								   .vf = hold->vf,
								   .rdma = hold->rdma,
								   .driver = v.fn->driver });
	}
}

/* --- a new picture of the node --- */

void tracker_complete(struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);

	if (!k->node || k->completed == ledger_generation(l))
		return;
	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);
		struct view v = view_of(k->node, hold->vf);

		if (v.fn)
			holds_devices(k->holds, hold->vf, v.rdma, v.fn->netdev, v.fn->driver);
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
		look_at_all(k);
	tracker_complete(k);
	tracker_save(k, NULL, NULL);
}
