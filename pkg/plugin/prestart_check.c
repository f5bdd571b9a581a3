/* PreStartContainer: may the container have its VFs, and are they what Allocate gave? */
#include "plugin/prestart_call-internal.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "plugin/record-internal.h"
#include "pool/node.h"
#include "sysroot/sysroot.h"
#include "tracker/tracker.h"

/* --- is its node still the one that was given? --- */

/* "uverbs5"; NULL: not known. */
static const char *given_node(const struct ledger_decision *d, const char *vf)
{
	for (size_t i = 0; d && i < d->n_chosen && i < d->n_nodes; i++) {
		if (str_eq(d->chosen[i], vf))
			return d->nodes[i];
	}
	return NULL;
}

/* What this container was given: by its own hold, else by the newest decision for the same VFs. */
static const char *node_of(const struct prestart_call *s, const struct pool_dev *dev,
			   const struct starter *me)
{
	const struct ledger *l = plugin_ledger(s->plugin);
	const struct ledger_hold *hold = ledger_find(l, dev->id);

	if (hold && hold->decision && holds_same_pod(&me->c.owner, &hold->owner) &&
	    ledger_decision(l, hold->decision))
		return given_node(ledger_decision(l, hold->decision), dev->id);
	return given_node(plugin_start_decision(s, l), dev->id);
}

/* Its number is handed out anew when an RDMA device is made again or moves: the runtime would make
 * the node of another VF. What Allocate gave cannot be changed, so only a new pod gets the right
 * one. */
static bool keeps_node(struct prestart_call *s, const struct pool_dev *dev,
		       const struct starter *me, const char **why)
{
	const struct plugin *p = s->plugin;
	const struct ledger_hold *hold = ledger_find(plugin_ledger(p), dev->id);
	const char *given = node_of(s, dev, me);
	struct function_now now = { .uverbs = "" };
	char owner[64]; /* the RDMA device of the node, the same in every network namespace */

	if (!given)
		return true;
	if (dev->pci >= 0)
		devstate_function(p->env->root, p->node->inv->pci[dev->pci].bdf, &now, NULL);
	if (sysroot_read(p->env->root, owner, sizeof(owner), "sys/class/infiniband_verbs/%s/ibdev",
			 given) < 0)
		*owner = '\0'; /* there is no such node */
	if (str_eq(now.uverbs, given) ||
	    (!now.rdma[0] && *owner && hold && str_eq(owner, hold->rdma)))
		return true;
	*why = arena_printf(
		s->arena,
		"%s has %s%s now, and the container was given /dev/infiniband/%s, which %s%s: delete the pod, a new one is given the right node",
		dev->id, now.uverbs[0] ? "/dev/infiniband/" : "no verbs node", now.uverbs, given,
		*owner ? "is that of " : "is gone", owner);
	return false;
}

const char *plugin_start_node_refusal(struct prestart_call *s, const struct starter *me)
{
	const char *why = NULL;

	for (size_t i = 0; i < s->ids.n; i++) {
		const struct pool_dev *dev = plugin_start_dev(s, i);

		if (dev && !keeps_node(s, dev, me, &why))
			return why;
	}
	return NULL;
}
