/* RoCE's congestion control (DCQCN) beside PFC: does a PF report ECN marks, and does it slow down?
 */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"
#include "hw/driver.h"

static const struct diagnosis_advice ecn_off = {
	"PFC alone stops whole ports when many send to one, and the stop spreads through the fabric; ECN makes senders slow down before that.",
	{ "echo 1 > /sys/class/net/PF/ecn/roce_np/enable/PRIORITY and .../roce_rp/enable/PRIORITY on every node, kept by a systemd unit, and ECN marking on the switches; fine where the fabric has another congestion control.",
	  "Set it with the vendor's network operator, or a MachineConfig with a systemd unit.",
	  "Run a privileged DaemonSet that sets it after each boot." },
};
static const struct diagnosis_advice ecn_unknown = {
	"Whether senders slow down before PFC stops them is not known.",
	{ "With MLNX_OFED or DOCA: /sys/class/net/PF/ecn; else ask mlxconfig (ROCE_CC_PRIO_MASK_P1)." },
};

/* Of the priorities that have to be covered: those with PFC, else any. */
static bool is_on(int mask, int pfc)
{
	return pfc > 0 ? (mask & pfc) == pfc : mask != 0;
}

static void judge_ecn(const struct facts *f, struct diagnosis *r, int pci)
{
	const struct facts_netdev *n = &f->net->netdev[pci];
	_cleanup_strbuf_ struct strbuf on = STRBUF_INIT;

	if (n->ecn_notify < 0 || n->ecn_react < 0) {
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &ecn_unknown, facts_address(f, pci),
			      "ECN of %s is not known: its driver does not report it.",
			      net_name(f, pci));
	} else if (!is_on(n->ecn_notify, n->dcb.pfc) || !is_on(n->ecn_react, n->dcb.pfc)) {
		diagnosis_add(
			r, DIAGNOSIS_WARN, &ecn_off, facts_address(f, pci), "%s %s on %s.",
			net_name(f, pci),
			!is_on(n->ecn_notify, n->dcb.pfc) ? "does not report ECN marks"
							  : "does not slow down for ECN marks",
			n->dcb.pfc > 0 ? "the priority that PFC makes lossless" : "any priority");
	} else {
		hw_dcb_put_priorities(n->ecn_react & n->ecn_notify, &on);
		diagnosis_add(r, DIAGNOSIS_PASS, NULL, facts_address(f, pci),
			      "%s has ECN on priority %s.", net_name(f, pci), strbuf_str(&on));
	}
}

/* Only of cards whose driver has such files somewhere. */
static void run_ecn(const struct facts *f, struct diagnosis *r)
{
	for (size_t i = 0; i < f->n_nic; i++) {
		const struct hw_driver *d = hw_driver_find(f->inv->pci[f->nic[i]].driver);
		int rdma = net_pf_rdma(f, f->nic[i]);

		if (rdma >= 0 && net_link(f, (size_t)rdma) == HW_LINK_ETHERNET && d &&
		    d->quirks & HW_QUIRK_ECN_IN_SYSFS)
			judge_ecn(f, r, f->nic[i]);
	}
}

const struct diagnosis_check doctor_ecn_checks[] = {
	{ "ecn", "ECN (DCQCN) beside PFC",
	  "For RoCE PFs of mlx5_core: reads which priorities report ECN marks to senders and which slow down for them. PASS: both, on those with PFC. WARN: one of them is off there. UNKNOWN: the kernel's own driver does not report it. The switches are not asked.",
	  .run = run_ecn },
};
const size_t doctor_ecn_checks_n = ARRAY_LEN(doctor_ecn_checks);
