#include "hw/dcb.h"

#include <string.h>

#include "base/str.h"

struct hw_dcb hw_dcb_unknown(void)
{
	struct hw_dcb dcb = { .pfc = -1 };

	memset(dcb.priority_of_dscp, -1, sizeof(dcb.priority_of_dscp));
	return dcb;
}

/* Without a VLAN tag, or an entry for its DSCP, a packet has priority 0. */
int hw_dcb_priority(const struct hw_dcb *dcb, int tc)
{
	int priority;

	if (dcb->trust == HW_DCB_TRUST_UNKNOWN)
		return -1;
	if (dcb->trust == HW_DCB_TRUST_PCP)
		return 0;
	priority = dcb->priority_of_dscp[(tc >> 2) % HW_DCB_DSCPS];
	return priority < 0 ? 0 : priority;
}

void hw_dcb_put_priorities(int pfc, struct strbuf *out)
{
	const char *before = "";

	for (int i = 0; i < HW_DCB_PRIORITIES; i++) {
		if (!(pfc & 1 << i))
			continue;
		strbuf_printf(out, "%s%d", before, i);
		before = ", ";
	}
	if (!*before)
		strbuf_puts(out, "no priority");
}

static void put_pfc(const struct hw_dcb *dcb, struct strbuf *out)
{
	strbuf_puts(out,
		    dcb->pfc ? ", but PFC is enabled on priority " : ", but PFC is enabled on ");
	hw_dcb_put_priorities(dcb->pfc, out);
	if (dcb->pfc)
		strbuf_puts(out, " only");
}

static bool lossy(const struct hw_dcb *dcb, int priority)
{
	return dcb->pfc >= 0 && priority >= 0 && !(dcb->pfc & 1 << priority);
}

/* Traffic class 0 where nothing is lossless is the default, without any configuration of QoS. */
bool hw_dcb_class_contradicts(const struct hw_dcb *dcb, const char *name, int tc,
			      struct strbuf *out)
{
	int priority = hw_dcb_priority(dcb, tc);

	if (!lossy(dcb, priority) || (tc >> 2 == 0 && !dcb->pfc))
		return false;
	strbuf_printf(out, "%s %d is DSCP %d, ", name, tc, tc >> 2);
	if (dcb->trust == HW_DCB_TRUST_PCP)
		strbuf_puts(
			out,
			"which it does not look at (it trusts the VLAN priority), so untagged packets have priority 0");
	else
		strbuf_printf(out, "which it puts on priority %d", priority);
	put_pfc(dcb, out);
	return true;
}

/* On RoCE the service level becomes the priority in a VLAN tag. */
static bool level_contradicts(const struct hw_dcb *dcb, int sl, struct strbuf *out)
{
	int priority = sl % HW_DCB_PRIORITIES;

	if (dcb->trust == HW_DCB_TRUST_DSCP && sl > 0) {
		strbuf_printf(
			out,
			"NCCL_IB_SL %d is a VLAN priority, which it does not look at: it trusts DSCP, which NCCL_IB_TC sets",
			sl);
		return true;
	}
	if (dcb->trust != HW_DCB_TRUST_PCP || !lossy(dcb, priority) || (sl == 0 && !dcb->pfc))
		return false;
	strbuf_printf(out, "NCCL_IB_SL %d is priority %d of a VLAN tag", sl, priority);
	put_pfc(dcb, out);
	return true;
}

bool hw_dcb_contradicts(const struct hw_dcb *dcb, int tc, int sl, struct strbuf *out)
{
	/* Where both are set, the one that this port trusts counts. */
	if (tc >= 0 && sl >= 0 && dcb->trust == HW_DCB_TRUST_PCP)
		return level_contradicts(dcb, sl, out);
	if (tc >= 0)
		return hw_dcb_class_contradicts(dcb, "NCCL_IB_TC", tc, out);
	return sl >= 0 && level_contradicts(dcb, sl, out);
}
