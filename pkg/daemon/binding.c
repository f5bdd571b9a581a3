#include "daemon/binding-internal.h"

#include <stddef.h>

#include "base/str.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "pool/slots.h"

/* One id that is not a slot is enough: an early pool does not know slots, but keeps their VFs. */
static enum binding_held held_with(enum binding_held before, bool slot)
{
	if (before == BINDING_HELD_EARLY || !slot)
		return BINDING_HELD_EARLY;
	return BINDING_HELD_LATE;
}

static enum binding_held by_ledger(const struct ledger *ledger, const char *resource)
{
	enum binding_held held = BINDING_HELD_NOTHING;

	for (size_t i = 0; i < ledger_holds(ledger); i++) {
		const struct ledger_hold *hold = ledger_hold_at(ledger, i);

		if (!hold->draining && str_eq(hold->resource, resource))
			held = held_with(held, hold->slot != NULL);
	}
	return held;
}

static enum binding_held by_container(const struct pod_container *c, const char *resource,
				      enum binding_held held)
{
	unsigned number;
	int numa;

	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *h = &c->held[i];

		for (size_t k = 0; k < h->ids.n && str_eq(h->resource, resource); k++)
			held = held_with(held,
					 pool_slot_parse(resource, h->ids.v[k], &numa, &number));
	}
	return held;
}

enum binding_held binding_held(const struct ledger *ledger, const struct pod_list *checkpoint,
			       const char *resource)
{
	enum binding_held held = ledger ? by_ledger(ledger, resource) : BINDING_HELD_NOTHING;

	for (size_t i = 0; i < checkpoint->n; i++) {
		for (size_t k = 0; k < checkpoint->v[i].n_containers; k++)
			held = by_container(&checkpoint->v[i].containers[k], resource, held);
	}
	return held;
}

static const char *obstacle(const struct binding_facts *f, enum pool_network network)
{
	if (f->cdi)
		return f->cdi;
	if (f->runtime)
		return f->runtime;
	if (f->kubelet)
		return f->kubelet;
	/* Pods with the host's network have no CNI plugin. */
	return network == NETWORK_HOST ? NULL : f->cni;
}

enum pool_binding binding_decide(const struct binding_facts *facts, enum binding_held held,
				 enum pool_network network, const char **ret_why)
{
	if (held == BINDING_HELD_EARLY) {
		*ret_why = "containers hold VFs of it by PCI address";
		return BINDING_EARLY;
	}
	if (held == BINDING_HELD_LATE) {
		*ret_why = "containers hold slots of it";
		return BINDING_LATE;
	}
	*ret_why = obstacle(facts, network);
	if (*ret_why)
		return BINDING_EARLY;
	*ret_why =
		network == NETWORK_HOST
			? "the kubelet and the container runtime do CDI"
			: "the kubelet and the container runtime do CDI, and no CNI plugin is handed a slot";
	return BINDING_LATE;
}
