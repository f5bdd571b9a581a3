/*
 * The state of a VF: the one verdict that every view prints and every offer obeys. tracker_judge()
 * asks here for a device of the node's pools; no view computes it again.
 */
#include "holds/holds-internal.h"

const char *const holds_state_names[HOLDS_STATES] = {
	[HOLDS_IS_DRAINING] = "draining", [HOLDS_IS_RETIRED] = "retired",
	[HOLDS_IS_LEAVING] = "leaving",	  [HOLDS_IS_ALLOCATED] = "allocated",
	[HOLDS_IS_HELD] = "held",	  [HOLDS_IS_UNHEALTHY] = "unhealthy",
	[HOLDS_IS_IN_USE] = "in_use",	  [HOLDS_IS_FREE] = "free",
};

static enum holds_state state_of(const struct holds *h, const struct holds_view *v,
				 const struct ledger_hold *hold, bool used)
{
	if (hold && hold->draining && holds_is_settled(h))
		return HOLDS_IS_DRAINING;
	if (v->retired)
		return HOLDS_IS_RETIRED;
	if (v->leaving)
		return HOLDS_IS_LEAVING;
	if (hold)
		return hold->pending ? HOLDS_IS_ALLOCATED : HOLDS_IS_HELD;
	if (v->unhealthy)
		return HOLDS_IS_UNHEALTHY;
	return used ? HOLDS_IS_IN_USE : HOLDS_IS_FREE;
}

/* Its user may be a container of whose hold no record is left: the kubelet rejects its pod if it
 * starts itself and the device is not healthy then. */
static bool may_be_a_pods(const struct holds *h, const struct holds_view *v, enum holds_state state)
{
	return state == HOLDS_IS_IN_USE && (v->given || !holds_is_settled(h));
}

struct holds_verdict holds_judge(const struct holds *h, const struct holds_view *v, struct arena *a)
{
	const struct ledger_hold *hold = ledger_find(h->ledger, v->vf);
	const struct unknown *u = hold ? NULL : holds_unknown_of(h, v->resource);
	const char *used = holds_in_use(hold, v->facts, false);
	struct holds_verdict verdict = { .why = v->unhealthy };

	if (!used && u)
		used = holds_why_unknown(u, v->vf, a);
	verdict.state = state_of(h, v, hold, used);
	verdict.offered =
		!v->unhealthy &&
		(hold ? verdict.state != HOLDS_IS_DRAINING && !holds_is_claims(hold)
		      : verdict.state == HOLDS_IS_FREE || may_be_a_pods(h, v, verdict.state));
	if (!verdict.why)
		verdict.why = used;
	return verdict;
}

bool holds_is_spare(const struct holds_verdict *v)
{
	return v->offered && (v->state == HOLDS_IS_FREE || v->state == HOLDS_IS_IN_USE);
}
