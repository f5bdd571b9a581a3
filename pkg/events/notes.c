/* What Events say. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "events/events.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/empty.h"
#include "pool/node.h"
#include "stats/stats.h"
#include "topo/topo.h"

#define PODS_NAMED 10

/* --- links --- */

/* 1 up, 0 down, -1 not known; as the health of its VFs is judged. */
static int is_up(const struct hw_inventory *inv, int pf)
{
	int rdma = hw_find_rdma(inv, pf);

	if (rdma >= 0 && inv->rdma[rdma].n_ports &&
	    str_eq(inv->rdma[rdma].ports[0].state, "ACTIVE"))
		return 1;
	return inv->pci[pf].carrier;
}

static size_t vfs_of(const struct node *node, const struct pool *pool, int pf,
		     const struct pool_dev **ret_first)
{
	size_t n = 0;

	for (size_t i = 0; i < pool->n_devs; i++) {
		if (hw_pf_of(node->inv, pool->devs[i].pci) != pf)
			continue;
		if (!n++)
			*ret_first = &pool->devs[i];
	}
	return n;
}

/* A PF of pools, and what is to be said of it. */
struct link_note {
	const struct node *node;
	const struct ledger *ledger;
	struct events *events;
	int pf;
	const char *about;	   /* of the Event */
	const char *reason, *what; /* "LinkDown", "is down" */
	bool normal;
};

static bool has_pf(const struct link_note *l, const struct ledger_hold *hold)
{
	struct bdf bdf;

	return bdf_parse(hold->vf, &bdf) == 0 &&
	       hw_pf_of(l->node->inv, hw_find_pci(l->node->inv, bdf)) == l->pf;
}

static bool is_first(const struct link_note *l, size_t at)
{
	const struct ledger_owner *o = &ledger_hold_at(l->ledger, at)->owner;

	for (size_t i = 0; i < at; i++) {
		const struct ledger_hold *hold = ledger_hold_at(l->ledger, i);

		if (has_pf(l, hold) && str_eq(hold->owner.ns, o->ns) &&
		    str_eq(hold->owner.pod, o->pod))
			return false;
	}
	return true;
}

static void put_pf(const struct link_note *l, struct strbuf *out)
{
	const struct hw_pci *pf = &l->node->inv->pci[l->pf];
	char address[BDF_STRLEN];

	strbuf_printf(out, "the link of PF %s", bdf_format(pf->bdf, address));
	if (pf->netdev)
		strbuf_printf(out, " (%s)", pf->netdev);
	strbuf_printf(out, " %s", l->what);
}

static void put_vfs(const struct link_note *l, struct strbuf *out)
{
	const char *separator = ": ";

	for (size_t i = 0; i < l->node->n_pools; i++) {
		const struct pool_dev *first;
		size_t n = vfs_of(l->node, &l->node->pools[i], l->pf, &first);

		if (!n)
			continue;
		strbuf_printf(out, "%s%zu VFs of %s", separator, n,
			      l->node->pools[i].cfg->resource);
		separator = ", ";
	}
}

static void put_pods(const struct link_note *l, struct strbuf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < ledger_holds(l->ledger); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l->ledger, i);

		if (!hold->owner.pod || !*hold->owner.pod || !has_pf(l, hold) || !is_first(l, i))
			continue;
		if (n < PODS_NAMED)
			strbuf_printf(out, "%s%s/%s",
				      n ? ", " : "; pods that have one: ", hold->owner.ns,
				      hold->owner.pod);
		n++;
	}
	if (n > PODS_NAMED)
		strbuf_printf(out, " and %zu more", n - PODS_NAMED);
	if (!n)
		strbuf_puts(out, "; no pod has one");
}

static void send_to_node(const struct link_note *l)
{
	_cleanup_strbuf_ struct strbuf note = STRBUF_INIT;
	struct event event = {
		.about = l->about, .action = "Watch", .reason = l->reason, .normal = l->normal
	};

	put_pf(l, &note);
	put_vfs(l, &note);
	put_pods(l, &note);
	event.note = strbuf_str(&note);
	events_send(l->events, &event);
}

static void send_to_pods(const struct link_note *l)
{
	for (size_t i = 0; i < ledger_holds(l->ledger); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l->ledger, i);
		_cleanup_free_ char *about = xasprintf("%s %s", l->about, hold->vf);
		_cleanup_strbuf_ struct strbuf note = STRBUF_INIT;
		struct event event = { .about = about,
				       .action = "Watch",
				       .reason = l->reason,
				       .normal = l->normal,
				       .ns = hold->owner.ns,
				       .pod = hold->owner.pod,
				       .uid = hold->owner.uid };

		if (!event.pod || !*event.pod || !has_pf(l, hold))
			continue;
		put_pf(l, &note);
		strbuf_printf(&note, "; the pod has its VF %s", hold->vf);
		event.note = strbuf_str(&note);
		events_send(l->events, &event);
	}
}

/* topic: of which the newest Event is what counts, "link" */
static void say_link(struct link_note *l, const char *topic, const char *reason, bool normal,
		     const char *what)
{
	char address[BDF_STRLEN];
	_cleanup_free_ char *about =
		xasprintf("%s %s", topic, bdf_format(l->node->inv->pci[l->pf].bdf, address));

	l->about = about;
	l->reason = reason;
	l->normal = normal;
	l->what = what;
	send_to_node(l);
	send_to_pods(l);
}

static const char *degraded_of(const struct node *node, int pf)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		const struct pool_dev *first = NULL;

		if (vfs_of(node, &node->pools[i], pf, &first) && first->degraded)
			return first->degraded;
	}
	return NULL;
}

static void compare_link(struct link_note *l, const struct node *before)
{
	int old = hw_find_pci(before->inv, l->node->inv->pci[l->pf].bdf);
	int was = old < 0 ? -1 : is_up(before->inv, old), now = is_up(l->node->inv, l->pf);
	const char *ailed = old < 0 ? NULL : degraded_of(before, old);
	const char *ails = degraded_of(l->node, l->pf);

	if (was == 1 && now == 0)
		say_link(l, "link", "LinkDown", false, "is down");
	else if (was == 0 && now == 1)
		say_link(l, "link", "LinkUp", true, "is up again");
	if (ails && !str_eq(ails, ailed))
		say_link(l, "health", "LinkDegraded", false, ails);
	else if (ailed && !ails)
		say_link(l, "health", "LinkRecovered", true, "is not degraded any more");
}

static bool has_vfs(const struct node *node, int pf)
{
	const struct pool_dev *first;

	for (size_t i = 0; i < node->n_pools; i++) {
		if (vfs_of(node, &node->pools[i], pf, &first))
			return true;
	}
	return false;
}

void events_of_links(struct events *e, const struct ledger *ledger, const struct node *before,
		     const struct node *now)
{
	struct link_note l = { .node = now, .ledger = ledger, .events = e };

	for (size_t i = 0; e && before && i < now->inv->n_pci; i++) {
		l.pf = (int)i;
		if (!now->inv->pci[i].is_vf && hw_is_nic(&now->inv->pci[i]) && has_vfs(now, l.pf))
			compare_link(&l, before);
	}
}

void events_condition_of_links(struct events *e, const struct node *node)
{
	_cleanup_strbuf_ struct strbuf message = STRBUF_INIT;
	size_t n = 0, bad = 0;

	for (size_t i = 0; e && i < node->inv->n_pci; i++) {
		struct link_note l = { .node = node, .pf = (int)i };

		if (node->inv->pci[i].is_vf || !hw_is_nic(&node->inv->pci[i]) ||
		    !has_vfs(node, l.pf))
			continue;
		n++;
		l.what = is_up(node->inv, l.pf) == 0 ? "is down" : degraded_of(node, l.pf);
		if (!l.what)
			continue;
		if (bad++)
			strbuf_puts(&message, "; ");
		put_pf(&l, &message);
	}
	if (!bad)
		strbuf_puts(&message, n ? "the link of every PF of a pool is up"
					: "no pool has a PF on this node");
	events_condition(e,
			 bad ? CONDITION_FALSE
			 : n ? CONDITION_TRUE
			     : CONDITION_UNKNOWN,
			 strbuf_str(&message));
}

/* --- pools --- */

static void send_empty(struct events *e, const struct node *node, const struct pool *pools,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_strbuf_ struct strbuf note = STRBUF_INIT;
		struct event event = { .action = "Discover", .reason = "PoolEmpty" };

		if (pools[i].n_devs)
			continue;
		pool_say_empty(node, &pools[i], &note);
		event.note = strbuf_str(&note);
		events_send(e, &event);
	}
}

void events_of_empty_pools(struct events *e, const struct node *node)
{
	if (!e || !pool_is_meant_for(node->inv))
		return;
	send_empty(e, node, node->pools, node->n_pools);
	send_empty(e, node, node->shared, node->n_shared);
}

/* --- containers --- */

static void put_classes(const struct stats_classes *classes, struct strbuf *out)
{
	const char *separator = "";

	for (size_t i = 0; i < TOPO_CLASS_MAX; i++) {
		if (!classes->n[i])
			continue;
		strbuf_printf(out, "%s%zu %s", separator, classes->n[i],
			      topo_class_name((enum topo_class)i));
		separator = ", ";
	}
}

static bool has_pairs(const struct stats_classes *classes)
{
	for (size_t i = 0; i < TOPO_CLASS_MAX; i++) {
		if (classes->n[i])
			return true;
	}
	return false;
}

void events_of_placement(struct events *e, const struct stats_placement *p)
{
	_cleanup_strbuf_ struct strbuf note = STRBUF_INIT;
	struct event event = { .action = "Bind",
			       .reason = p->strict && p->farther ? "VFsNotNearest" : "VFsBound",
			       .normal = !p->strict || !p->farther,
			       .ns = p->owner->ns,
			       .pod = p->owner->pod,
			       .uid = p->owner->uid };

	if (!event.pod || !*event.pod)
		return;
	strbuf_printf(&note, "container %s: %zu VFs of %s", p->owner->container, p->n_vfs,
		      p->resource);
	if (has_pairs(&p->got)) {
		strbuf_puts(&note, "; its GPU-VF pairs: ");
		put_classes(&p->got, &note);
	}
	if (p->farther) {
		strbuf_puts(&note, "; nearer VFs were free, which would have made ");
		put_classes(&p->best, &note);
	} else if (p->nearer_holders) {
		strbuf_printf(&note, "; nearer VFs are held by %s", p->nearer_holders);
	}
	event.note = strbuf_str(&note);
	events_send(e, &event);
}
