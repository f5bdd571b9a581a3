/* RoCE's needs of Ethernet: an MTU for full packets, a lossless priority that NCCL's DSCP leads to,
 * answers to ARP by the interface that is asked for, and congestion control. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"
#include "hw/driver.h"

/* --- mtu --- */

#define ROCE_HEADERS 96 /* bytes that the kernel takes off (iboe_get_mtu()) */
#define FULL_MTU     4096

static int path_mtu(int mtu)
{
	int size = FULL_MTU;

	while (size > 256 && size > mtu - ROCE_HEADERS)
		size /= 2;
	return size;
}

enum { MTU_FINE, MTU_BELOW_PF, MTU_SMALL };

static const struct net_kind mtu_kinds[] = {
	[MTU_FINE] = { DIAGNOSIS_PASS, NULL, "has an MTU for full RoCE packets, or its PF's",
		       "have an MTU for full RoCE packets, or their PF's" },
	[MTU_BELOW_PF] = { DIAGNOSIS_WARN, &doctor_mtu_vf, "has a smaller MTU than its PF",
			   "have a smaller MTU than their PF" },
	[MTU_SMALL] = { DIAGNOSIS_WARN, &doctor_mtu_small,
			"has an MTU too small for full RoCE packets",
			"have an MTU too small for full RoCE packets" },
};

static int judge_vf_mtu(const struct facts *f, size_t rdma)
{
	int pci = f->inv->rdma[rdma].pci, pf = f->inv->pci[pci].physfn,
	    mtu = f->net->netdev[pci].mtu;
	int above = pf < 0 ? 0 : f->net->netdev[pf].mtu;

	if (net_link(f, rdma) != HW_LINK_ETHERNET || !mtu)
		return NET_NOT_ABOUT;
	if (above && path_mtu(mtu) < path_mtu(above))
		return MTU_BELOW_PF;
	return !above && path_mtu(mtu) < FULL_MTU ? MTU_SMALL : MTU_FINE;
}

static void judge_pf_mtu(const struct facts *f, struct diagnosis *r, int pci, int mtu)
{
	if (!mtu)
		doctor_unknown(r, mtu_unknown, facts_address(f, pci), "The MTU of %s is not known.",
			       net_name(f, pci));
	else if (path_mtu(mtu) < FULL_MTU)
		doctor_warn(r, mtu_small, facts_address(f, pci),
			    "%s has the MTU %d, so RoCE packets carry %d bytes.", net_name(f, pci),
			    mtu, path_mtu(mtu));
	else
		diagnosis_add(r, DIAGNOSIS_PASS, NULL, facts_address(f, pci),
			      "%s has the MTU %d: RoCE packets carry %d bytes.", net_name(f, pci),
			      mtu, FULL_MTU);
}

/* Of those PFs whose MTU is known. */
static void compare_mtus(const struct facts *f, struct diagnosis *r, const int *pfs, size_t n)
{
	_cleanup_strbuf_ struct strbuf list = STRBUF_INIT;
	bool differ = false;
	int first = 0;

	for (size_t i = 0; i < n; i++) {
		int mtu = f->net->netdev[pfs[i]].mtu;

		if (!mtu)
			continue;
		differ |= first && mtu != first;
		first = first ? first : mtu;
		net_add(&list, facts_address(f, pfs[i]));
		strbuf_printf(&list, " %d", mtu);
	}
	if (differ)
		doctor_warn(r, mtu_mixed, "host", "PFs have different MTUs: %s.",
			    strbuf_str(&list));
}

/* The PFs of f->nic that speak RoCE. */
static size_t roce_pfs(const struct facts *f, int *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		int rdma = net_pf_rdma(f, f->nic[i]);

		if (rdma >= 0 && net_link(f, (size_t)rdma) == HW_LINK_ETHERNET)
			ret[n++] = f->nic[i];
	}
	return n;
}

static void run_mtu(const struct facts *f, struct diagnosis *r)
{
	_cleanup_free_ int *pfs = xcalloc(f->n_nic, sizeof(*pfs));
	size_t n = roce_pfs(f, pfs);

	for (size_t i = 0; i < n; i++)
		judge_pf_mtu(f, r, pfs[i], f->net->netdev[pfs[i]].mtu);
	compare_mtus(f, r, pfs, n);
	net_judge_vfs(f, r, judge_vf_mtu, mtu_kinds);
}

/* --- qos --- */

/* "24-31, 46": the DSCPs that end on a lossless priority. */
static void put_lossless_dscps(const struct hw_dcb *dcb, struct strbuf *out)
{
	int start = -1;

	for (int dscp = 0; dscp <= HW_DCB_DSCPS; dscp++) {
		bool lossless =
			dscp < HW_DCB_DSCPS && dcb->pfc & 1 << hw_dcb_priority(dcb, dscp << 2);

		if (lossless && start < 0)
			start = dscp;
		if (lossless || start < 0)
			continue;
		if (out->len)
			strbuf_puts(out, ", ");
		strbuf_put_int(out, start);
		if (start < dscp - 1)
			strbuf_printf(out, "-%d", dscp - 1);
		start = -1;
	}
}

/* The DSCPs of a port and their priorities, for the remedy. */
static void say_map(const struct facts *f, struct diagnosis *r, int pci, const struct hw_dcb *dcb)
{
	_cleanup_strbuf_ struct strbuf dscps = STRBUF_INIT, priorities = STRBUF_INIT;

	put_lossless_dscps(dcb, &dscps);
	hw_dcb_put_priorities(dcb->pfc, &priorities);
	if (!dscps.len)
		doctor_warn(r, qos_pcp, facts_address(f, pci), "%s has PFC on priority %s, but %s.",
			    net_name(f, pci), strbuf_str(&priorities),
			    dcb->trust == HW_DCB_TRUST_PCP
				    ? "trusts the VLAN priority and looks at no DSCP"
				    : "its map leads no DSCP there");
	else
		doctor_pass(
			r, qos_fine, facts_address(f, pci),
			"%s has PFC on priority %s, which DSCP %s leads to (NCCL_IB_TC is the DSCP times 4).",
			net_name(f, pci), strbuf_str(&priorities), strbuf_str(&dscps));
}

static void judge_qos(const struct facts *f, struct diagnosis *r, int pci)
{
	_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
	const struct facts_netdev *n = &f->net->netdev[pci];
	int tc = f->net->rdma[net_pf_rdma(f, pci)].traffic_class;

	if (n->why_no_dcb || n->dcb.pfc < 0 || n->dcb.trust == HW_DCB_TRUST_UNKNOWN)
		doctor_unknown(r, qos_unknown, facts_address(f, pci),
			       "PFC and trust of %s are not known: %s.", net_name(f, pci),
			       n->why_no_dcb ? n->why_no_dcb : "not reported by the driver");
	else if (!n->dcb.pfc)
		doctor_warn(r, qos_no_pfc, facts_address(f, pci),
			    "%s has PFC on no priority: its port is lossy.", net_name(f, pci));
	else if (tc >= 0 && hw_dcb_contradicts(&n->dcb, tc, -1, &how))
		doctor_warn(
			r, qos_contradiction, facts_address(f, pci),
			"%s: the host marks all packets with the traffic class %d, whatever NCCL asks for; %s.",
			net_name(f, pci), tc, strbuf_str(&how));
	else
		say_map(f, r, pci, &n->dcb);
}

static void compare_pfc(const struct facts *f, struct diagnosis *r, const int *pfs, size_t n)
{
	_cleanup_strbuf_ struct strbuf list = STRBUF_INIT;
	bool differ = false;
	int first = -1;

	for (size_t i = 0; i < n; i++) {
		int pfc = f->net->netdev[pfs[i]].dcb.pfc;

		if (pfc < 0)
			continue;
		differ |= first >= 0 && pfc != first;
		first = first < 0 ? pfc : first;
		net_add(&list, facts_address(f, pfs[i]));
		strbuf_puts(&list, " on ");
		hw_dcb_put_priorities(pfc, &list);
	}
	if (differ)
		doctor_warn(r, qos_mixed, "host", "PFs have PFC on different priorities: %s.",
			    strbuf_str(&list));
}

static void run_qos(const struct facts *f, struct diagnosis *r)
{
	_cleanup_free_ int *pfs = xcalloc(f->n_nic, sizeof(*pfs));
	size_t n = roce_pfs(f, pfs);

	for (size_t i = 0; i < n; i++)
		judge_qos(f, r, pfs[i]);
	compare_pfc(f, r, pfs, n);
}

/* --- arp: interfaces in one IPv4 subnet; whose MAC address do the peers learn for whose IP
 * address? --- */

/* The interface of an RDMA device that speaks RoCE and has an IPv4 subnet; NULL: none. */
static const struct facts_netdev *roce_netdev(const struct facts *f, size_t rdma)
{
	int pci = f->inv->rdma[rdma].pci;
	const struct facts_netdev *n = pci < 0 ? NULL : &f->net->netdev[pci];

	if (rdma && f->inv->rdma[rdma - 1].pci == pci)
		return NULL; /* had with the device before it, of the same function */
	return n && n->subnet_mask && net_link(f, rdma) == HW_LINK_ETHERNET ? n : NULL;
}

static void judge_subnet(const struct facts *f, struct diagnosis *r, size_t first)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;
	const struct facts_netdev *of = roce_netdev(f, first);
	int ignore = of->arp_ignore, announce = of->arp_announce, filter = of->rp_filter;
	struct in_addr subnet = { of->subnet };
	char text[INET_ADDRSTRLEN] = "";
	size_t n = 0;

	for (size_t i = 0; i < f->inv->n_rdma; i++) {
		const struct facts_netdev *one = roce_netdev(f, i);

		if (!one || one->subnet != of->subnet || one->subnet_mask != of->subnet_mask)
			continue;
		if (i < first)
			return; /* reported already */
		if (n++ < NET_SHOWN)
			net_add(&names, f->inv->pci[f->inv->rdma[i].pci].netdev);
		ignore = one->arp_ignore < ignore ? one->arp_ignore : ignore;
		announce = one->arp_announce < announce ? one->arp_announce : announce;
		filter = one->rp_filter == 1 ? 1 : filter;
	}
	if (n < 2)
		return;
	if (n > NET_SHOWN)
		strbuf_printf(&names, " and %zu more", n - NET_SHOWN);
	strbuf_printf(&names, " are in one subnet, %s/%d",
		      inet_ntop(AF_INET, &subnet, text, sizeof(text)),
		      __builtin_popcount(of->subnet_mask));
	if (ignore < 0 || announce < 0)
		doctor_unknown(r, arp_unknown, "host",
			       "%s, and how they answer ARP is not visible.", strbuf_str(&names));
	else if (!ignore || ignore > 2 || announce < 2)
		doctor_warn(r, arp_flux, "host", "%s, with arp_ignore=%d and arp_announce=%d.",
			    strbuf_str(&names), ignore, announce);
	else if (filter == 1)
		doctor_warn(r, arp_filter, "host", "%s, with rp_filter=1.", strbuf_str(&names));
	else
		diagnosis_add(r, DIAGNOSIS_PASS, NULL, "host",
			      "%s, with arp_ignore=%d and arp_announce=%d.", strbuf_str(&names),
			      ignore, announce);
}

static void run_arp(const struct facts *f, struct diagnosis *r)
{
	for (size_t i = 0; i < f->inv->n_rdma; i++) {
		if (roce_netdev(f, i))
			judge_subnet(f, r, i);
	}
}

/* --- ecn: RoCE's congestion control (DCQCN) beside PFC; does a PF report ECN marks, and does it
 * slow down? --- */

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
		doctor_unknown(r, ecn_unknown, facts_address(f, pci),
			       "ECN of %s is not known: its driver does not report it.",
			       net_name(f, pci));
	} else if (!is_on(n->ecn_notify, n->dcb.pfc) || !is_on(n->ecn_react, n->dcb.pfc)) {
		doctor_warn(r, ecn_off, facts_address(f, pci), "%s %s on %s.", net_name(f, pci),
			    !is_on(n->ecn_notify, n->dcb.pfc) ? "does not report ECN marks"
							      : "does not slow down for ECN marks",
			    n->dcb.pfc > 0 ? "the priority that PFC makes lossless"
					   : "any priority");
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

const struct diagnosis_check doctor_roce_checks[] = {
	{ "mtu", "MTU of RoCE ports", .run = run_mtu },
	{ "qos", "PFC and DSCP of PFs", .run = run_qos },
	{ "arp", "ARP of RoCE interfaces in one subnet", .run = run_arp },
	{ "ecn", "ECN (DCQCN) beside PFC", .run = run_ecn },
};
const size_t doctor_roce_checks_n = ARRAY_LEN(doctor_roce_checks);
