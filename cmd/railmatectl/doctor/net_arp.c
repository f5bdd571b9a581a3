/* RoCE interfaces in one IPv4 subnet: whose MAC address do the peers learn for whose IP address? */
#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

static const struct diagnosis_advice arp_flux = {
	"Linux answers ARP for an address by any interface: peers learn the MAC of another rail, whose VF drops what arrives there. Connections hang, or end with status 12, now and then and not from the start.",
	{ "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 net.ipv4.conf.all.rp_filter=2, kept by a file in /etc/sysctl.d; in pods by the CNI plugin tuning. Better: a subnet for each rail.",
	  "Set them with a Tuned profile (NodeTuningOperator), in pods with the CNI plugin tuning. Better: a subnet for each rail.",
	  "Set them in machine.sysctls, in pods with the CNI plugin tuning. Better: a subnet for each rail." },
};
static const struct diagnosis_advice arp_filter = {
	"The kernel drops what arrives by another interface than it would answer by, which in one subnet is the first: ARP and connections by rdma_cm of the other rails fail.",
	{ "sysctl -w net.ipv4.conf.all.rp_filter=2 and the same for these interfaces, kept by a file in /etc/sysctl.d; in pods by the CNI plugin tuning. Better: a subnet for each rail.",
	  "Set them with a Tuned profile (NodeTuningOperator), in pods with the CNI plugin tuning. Better: a subnet for each rail.",
	  "Set them in machine.sysctls, in pods with the CNI plugin tuning. Better: a subnet for each rail." },
};
static const struct diagnosis_advice arp_unknown = {
	"With the kernel's defaults peers learn the MAC of another rail.",
	{ "sysctl net.ipv4.conf.all.arp_ignore (1 is right), arp_announce (2), rp_filter (0 or 2)." },
};

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
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &arp_unknown, "host",
			      "%s, and how they answer ARP is not visible.", strbuf_str(&names));
	else if (!ignore || ignore > 2 || announce < 2)
		diagnosis_add(r, DIAGNOSIS_WARN, &arp_flux, "host",
			      "%s, with arp_ignore=%d and arp_announce=%d.", strbuf_str(&names),
			      ignore, announce);
	else if (filter == 1)
		diagnosis_add(r, DIAGNOSIS_WARN, &arp_filter, "host", "%s, with rp_filter=1.",
			      strbuf_str(&names));
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

const struct diagnosis_check doctor_arp_checks[] = {
	{ "arp", "ARP of RoCE interfaces in one subnet",
	  "For RoCE interfaces of this network namespace whose routes (/proc/net/route) are to one IPv4 subnet, as of several rails. WARN: arp_ignore other than 1 and 2, or arp_announce below 2 (0 are the defaults), with which interfaces answer and ask with the others' addresses, or a strict rp_filter=1; the higher of the value of all and of the interface counts. PASS: neither. A subnet for each rail: not applicable. The namespaces of pods have settings of their own: run it there.",
	  .run = run_arp },
};
const size_t doctor_arp_checks_n = ARRAY_LEN(doctor_arp_checks);
