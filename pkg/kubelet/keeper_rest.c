/* Is a VF at rest, and what drains until it is. */
#include "kubelet/keeper-internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "kubelet/keeper.h"
#include "pool/node.h"
#include "rpc/rpc.h"

/* A VF as the machine shows it. */
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

static struct view look_at(const struct node *node, const char *vf)
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
		return arena_printf(a, "its network interface %s is in a container's network namespace",
				    hold->netdev);
	return NULL;
}

static bool is_held(const struct keeper *k, const struct hw_rdma *rdma)
{
	char bdf[BDF_STRLEN];

	return rdma->pci < 0 || ledger_find(k->ledger, bdf_format(k->node->inv->pci[rdma->pci].bdf, bdf));
}

static unsigned count_host_users(const struct keeper *k)
{
	unsigned least = UINT_MAX, users;

	for (size_t i = 0; least && i < k->node->inv->n_rdma; i++) {
		const struct hw_rdma *rdma = &k->node->inv->rdma[i];

		if (!is_held(k, rdma) && k->users(k->users_ctx, rdma->name, &users) == 0 && users < least)
			least = users;
	}
	return least;
}

/*
 * Daemons of the host (ibacm, a monitor) open every RDMA device there is, for good. So what the devices that
 * nobody holds have open, all of them, PFs' too, is not a container's. With every device held, what it was
 * before counts.
 */
static unsigned host_users(struct keeper *k)
{
	unsigned least;

	if (k->node && clock_mono_ms() >= k->host_users_until_ms) {
		least = count_host_users(k);
		k->host_users = least == UINT_MAX ? k->host_users : least;
		k->host_users_until_ms = clock_mono_ms() + k->pace.host_ms;
	}
	return k->host_users;
}

static const char *why_open(struct keeper *k, const struct view *v, struct arena *a)
{
	unsigned users = 0, hosts;

	if (!v->rdma || !k->users || k->users(k->users_ctx, v->rdma, &users) < 0 || !users)
		return NULL;
	hosts = host_users(k);
	if (users <= hosts)
		return NULL;
	users -= hosts;
	return arena_printf(a, "its RDMA device %s is open (%u %s)", v->rdma, users,
			    users == 1 ? "context" : "contexts");
}

/* A VF that is gone from the bus is used by nobody. */
bool keeper_at_rest(struct keeper *k, const struct node *node, const char *vf, const struct ledger_hold *hold,
		    struct arena *a, const char **ret_why)
{
	struct view v = look_at(node, vf);
	const char *why = v.fn ? why_away(&v, hold, a) : NULL;

	if (v.fn && !why)
		why = why_open(k, &v, a);
	if (v.fn && !why && hold && keeper_pod_runs(k, hold))
		why = "containers of its pod still run";
	if (why)
		*ret_why = why;
	return !why;
}

/* What is there now, so that it is known again when it is out of sight. */
void keeper_complete(struct keeper *k, const struct ledger_hold *hold)
{
	struct ledger_hold full = *hold;
	struct view v;

	if (!k->node || hold->draining)
		return;
	v = look_at(k->node, hold->vf);
	if (!v.fn)
		return;
	full.rdma = hold->rdma ? hold->rdma : v.rdma;
	full.netdev = hold->netdev ? hold->netdev : v.fn->netdev;
	if (!hold->driver && (full.rdma || full.netdev))
		full.driver = v.fn->driver;
	ledger_put(k->ledger, &full);
}

/* --- free? --- */

static bool is_own(const struct ledger_hold *hold, const struct ledger_owner *me)
{
	const struct ledger_owner *o = &hold->owner;

	if (!me || !me->pod || !*me->pod || !str_eq(o->pod, me->pod) || !str_eq(o->ns, me->ns ? me->ns : ""))
		return false;
	return !me->uid || !*me->uid || !*o->uid || str_eq(o->uid, me->uid);
}

static const char *owner_text(const struct ledger_owner *o, struct arena *a)
{
	if (!*o->pod)
		return "a container whose pod is not known yet";
	if (!*o->container)
		return arena_printf(a, "pod %s/%s", o->ns, o->pod);
	return arena_printf(a, "container %s of pod %s/%s", o->container, o->ns, o->pod);
}

static bool is_blind(const struct keeper *k)
{
	return clock_mono_ms() - k->looked_ms > k->pace.blind_ms;
}

static bool drop_if_at_rest(struct keeper *k, const struct node *node, const char *vf, struct arena *a,
			    const char **ret_why)
{
	if (!keeper_at_rest(k, node, vf, ledger_find(k->ledger, vf), a, ret_why))
		return false;
	ledger_drop(k->ledger, vf);
	keeper_save(k, NULL, NULL);
	keeper_tell_changed(k);
	return true;
}

bool keeper_is_free(struct keeper *k, const struct node *node, const struct pool_dev *dev,
		    const struct ledger_owner *me, struct arena *a, const char **ret_why)
{
	const struct ledger_hold *hold = ledger_find(k->ledger, dev->id);
	const char *why, *who;

	if (hold && is_own(hold, me))
		return true;
	if (!hold || (!hold->draining && is_blind(k))) {
		if (keeper_at_rest(k, node, dev->id, hold, a, &why))
			return true;
		*ret_why = arena_printf(a, "%s is not at rest: %s", dev->id, why);
		return false;
	}
	who = owner_text(&hold->owner, a);
	if (!hold->draining) {
		*ret_why = arena_printf(a, "%s is held by %s", dev->id, who);
		return false;
	}
	if (drop_if_at_rest(k, node, dev->id, a, &why))
		return true;
	*ret_why = arena_printf(a, "%s was held by %s, which is gone, and is not at rest: %s", dev->id, who,
				why);
	return false;
}

bool keeper_is_at_rest(struct keeper *k, const struct node *node, const struct pool_dev *dev, bool moves,
		       struct arena *a, const char **ret_why)
{
	struct view v = look_at(node, dev->id);
	const char *why = NULL;

	if (!v.fn)
		return true;
	if (!moves)
		why = why_away(&v, ledger_find(k->ledger, dev->id), a);
	if (!why)
		why = why_open(k, &v, a);
	if (why)
		*ret_why = arena_printf(a, "%s is not at rest: %s", dev->id, why);
	return !why;
}

bool keeper_is_draining(const struct keeper *k, const char *vf)
{
	const struct ledger_hold *hold = ledger_find(k->ledger, vf);

	return hold && hold->draining;
}

/* --- draining --- */

static bool settle(struct keeper *k, bool tell)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	bool dropped = false;
	const char *why;

	for (size_t i = ledger_holds(k->ledger); i-- > 0;) {
		const struct ledger_hold *hold = ledger_hold_at(k->ledger, i);

		if (!hold->draining || !keeper_at_rest(k, k->node, hold->vf, hold, a, &why))
			continue;
		if (tell)
			keeper_say(k, false, "%s: is at rest, and free again", hold->vf);
		ledger_drop(k->ledger, hold->vf);
		dropped = true;
	}
	return dropped;
}

static void settle_and_tell(struct keeper *k)
{
	if (k->node && settle(k, true)) {
		keeper_save(k, NULL, NULL);
		keeper_tell_changed(k);
	}
	keeper_drain_later(k);
}

static void drain_tick(void *arg)
{
	struct keeper *k = arg;

	k->drain = NULL;
	settle_and_tell(k);
}

static bool something_drains(const struct keeper *k)
{
	for (size_t i = 0; i < ledger_holds(k->ledger); i++) {
		if (ledger_hold_at(k->ledger, i)->draining)
			return true;
	}
	return false;
}

void keeper_drain_later(struct keeper *k)
{
	if (!k->drain && something_drains(k))
		k->drain = rpc_after(k->rpc, k->pace.drain_ms, drain_tick, k);
}

void keeper_update(struct keeper *k, struct node *node)
{
	struct node *before = k->node;

	k->node = node_ref(node);
	node_unref(before);
	settle_and_tell(k);
	for (size_t i = 0; i < ledger_holds(k->ledger); i++)
		keeper_complete(k, ledger_hold_at(k->ledger, i));
	if (ledger_generation(k->ledger) != k->stored)
		keeper_save(k, NULL, NULL);
}

static void tell_now(void *arg)
{
	struct keeper *k = arg;

	k->tell = NULL;
	k->changed(k->listener);
}

void keeper_tell_changed(struct keeper *k)
{
	if (k->changed && !k->tell)
		k->tell = rpc_after(k->rpc, 0, tell_now, k);
}
