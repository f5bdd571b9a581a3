/* The texts of Events. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "kubeapi/events.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "status/stats.h"
#include "topo/topo.h"

#define PODS_NAMED 10

/* --- links --- */

/* A PF of pools, and the report about it. */
struct link_note {
	const struct node *node;
	const struct ledger *ledger;
	struct events *events;
	const struct node_pf *pf;
	int port;		   /* the one of several; 0: of the PF */
	const char *about;	   /* of the Event */
	const char *reason, *what; /* "LinkDown", "is down" */
	bool of_link;		   /* rather than of the PF itself */
	bool normal;
};

static bool has_pf(const struct link_note *l, const struct ledger_hold *hold)
{
	const struct pool *pool = node_pool(l->node, hold->resource);
	const struct pool_dev *dev = pool ? pool_find(pool, hold->vf) : NULL;

	return dev && dev->pf == l->pf;
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
	if (l->of_link)
		strbuf_puts(out, "the link of ");
	if (l->of_link && l->port)
		strbuf_printf(out, "port %d of ", l->port);
	strbuf_printf(out, "PF %s", l->pf->address);
	if (l->pf->netdev)
		strbuf_printf(out, " (%s)", l->pf->netdev);
	strbuf_printf(out, " %s", l->what);
}

/* True: there are some, which containers may hold. */
static bool put_vfs(const struct link_note *l, struct strbuf *out)
{
	const char *separator = ": ";
	bool any = false;

	for (size_t i = 0; i < l->node->n_pools; i++) {
		const struct pool *pool = &l->node->pools[i];
		size_t n = 0;

		for (size_t k = 0; k < pool->n_devs; k++)
			n += pool->devs[k].pf == l->pf;
		if (!n)
			continue;
		strbuf_printf(out, "%s%zu VFs of %s", separator, n, pool->cfg->resource);
		separator = ", ";
		any = true;
	}
	for (size_t i = 0; i < l->pf->n_shared; i++) {
		strbuf_printf(out, "%sHCA of %s", separator, l->pf->shared[i]);
		separator = ", ";
	}
	return any;
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

static void send_about_link(const struct link_note *l, const struct event *event)
{
	if (l->reason)
		events_send(l->events, event);
	else
		events_forget(l->events, event);
}

static void send_to_node(const struct link_note *l)
{
	_cleanup_strbuf_ struct strbuf note = STRBUF_INIT;
	struct event event = {
		.about = l->about, .action = "Watch", .reason = l->reason, .normal = l->normal
	};

	put_pf(l, &note);
	if (put_vfs(l, &note))
		put_pods(l, &note);
	event.note = strbuf_str(&note);
	send_about_link(l, &event);
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
		send_about_link(l, &event);
	}
}

/* topic: of which the newest Event counts, "link". reason NULL: the state reported before is over.
 */
static void say_link(struct link_note *l, const char *topic, const char *reason, bool normal,
		     const char *what)
{
	_cleanup_free_ char *about = xasprintf("%s %s %d", topic, l->pf->address, l->port);

	l->about = about;
	l->reason = reason;
	l->normal = normal;
	l->what = what;
	l->of_link = strcmp(topic, "PF") != 0;
	send_to_node(l);
	send_to_pods(l);
}

static const char *degraded_of(const struct node *node, const struct node_pf *pf)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		const struct pool *pool = &node->pools[i];

		for (size_t k = 0; k < pool->n_devs; k++) {
			if (pool->devs[k].pf == pf && pool->devs[k].degraded)
				return pool->devs[k].degraded;
		}
	}
	return NULL;
}

static void say_lost(struct link_note *l)
{
	say_link(l, "PF", "PFLost", false, l->pf->missing);
	for (size_t i = 0; i < l->pf->n_ports; i++) {
		l->port = l->pf->n_ports > 1 ? l->pf->ports[i].number : 0;
		say_link(l, "link", NULL, false, "");
	}
	l->port = 0;
	say_link(l, "health", NULL, false, "");
}

/* A PF that comes back without the link that it had has lost it. */
static void compare_ports(struct link_note *l, const struct node_pf *before)
{
	for (size_t i = 0; i < l->pf->n_ports; i++) {
		const struct node_port *port = &l->pf->ports[i];
		int was = node_port_was_up(before, l->pf, port);

		l->port = l->pf->n_ports > 1 ? port->number : 0;
		if (was == 1 && port->up == 0)
			say_link(l, "link", "LinkDown", false, "is down");
		else if (was == 0 && port->up == 1 && !before->missing)
			say_link(l, "link", "LinkUp", true, "is up again");
	}
	l->port = 0;
}

static void compare_pf(struct link_note *l, const struct node *from, const struct node_pf *before)
{
	const char *ailed = degraded_of(from, before), *ails = degraded_of(l->node, l->pf);

	if (l->pf->missing) {
		if (!before->missing && l->pf->wanted)
			say_lost(l);
		return;
	}
	if (before->missing)
		say_link(l, "PF", "PFFound", true, "is there again");
	compare_ports(l, before);
	if (ails && !str_eq(ails, ailed))
		say_link(l, "health", "LinkDegraded", false, ails);
	else if (ailed && !ails)
		say_link(l, "health", "LinkRecovered", true, "is not degraded any more");
}

void events_of_links(struct events *e, const struct ledger *ledger, const struct node *before,
		     const struct node *now)
{
	struct link_note l = { .node = now, .ledger = ledger, .events = e };

	for (size_t i = 0; e && before && i < now->n_pfs; i++) {
		const struct node_pf *old = node_pf(before, now->pfs[i].address);

		l.pf = &now->pfs[i];
		if (old)
			compare_pf(&l, before, old);
	}
}

static void put_trouble(const struct link_note *l, struct strbuf *out)
{
	strbuf_puts(out, out->len ? "; " : "");
	put_pf(l, out);
}

/* All that is wrong with it. */
static void judge_pf(struct link_note *l, struct strbuf *out)
{
	bool down = false;

	l->of_link = !l->pf->missing;
	for (size_t i = 0; !l->pf->missing && i < l->pf->n_ports; i++) {
		if (l->pf->ports[i].up)
			continue;
		l->port = l->pf->n_ports > 1 ? l->pf->ports[i].number : 0;
		l->what = "is down";
		put_trouble(l, out);
		down = true;
	}
	l->port = 0;
	l->what = l->pf->missing ? l->pf->missing : degraded_of(l->node, l->pf);
	if (l->what && !down)
		put_trouble(l, out);
}

void events_condition_of_links(struct events *e, const struct node *node)
{
	_cleanup_strbuf_ struct strbuf message = STRBUF_INIT;
	enum condition_status status = CONDITION_FALSE;
	size_t n = 0;

	for (size_t i = 0; e && i < node->n_pfs; i++) {
		struct link_note l = { .node = node, .pf = &node->pfs[i] };

		if (l.pf->wanted)
			judge_pf(&l, &message);
		n += l.pf->wanted;
	}
	if (!message.len) {
		status = n ? CONDITION_TRUE : CONDITION_UNKNOWN;
		strbuf_puts(&message, n ? "the link of every PF of a pool is up"
					: "no pool has a PF on this node");
	}
	events_condition(e, status, strbuf_str(&message));
}

/* --- pools --- */

void events_of_drivers(struct events *e, const struct node *before, const struct node *now)
{
	for (size_t i = 0; e && before && i < now->n_pools; i++) {
		const char *resource = now->pools[i].cfg->resource;
		const struct pool *old = node_pool(before, resource);
		const struct pool_dev *other, *first = NULL;
		size_t n = old ? pool_lost_drivers(old, &now->pools[i], &first) : 0;
		_cleanup_free_ char *about = xasprintf("driver %s", resource);
		_cleanup_strbuf_ struct strbuf note = STRBUF_INIT;
		struct event event = { .about = about, .action = "Watch", .reason = "DriverLost" };

		if (old && pool_lost_drivers(&now->pools[i], old, &other)) /* have one again */
			events_forget(e, &event);
		if (!n)
			continue;
		strbuf_printf(&note, "%s: %zu VF%s cannot be given any more: %s", resource, n,
			      n > 1 ? "s" : "", first->reason);
		if (n > 1)
			strbuf_printf(&note, " (and %zu more)", n - 1);
		event.note = strbuf_str(&note);
		events_send(e, &event);
	}
}

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

void events_of_offer(struct events *e, const char *resource, const char *problem)
{
	_cleanup_free_ char *about = xasprintf("offer %s", resource);
	_cleanup_free_ char *note = xasprintf("%s: %s", resource, problem ? problem : "");
	const struct event event = {
		.about = about, .action = "Register", .reason = "OfferDiffers", .note = note
	};

	if (problem)
		events_send(e, &event);
	else
		events_forget(e, &event);
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
