/* Ports of PFs and VFs: state and rate. */
#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

static const struct diagnosis_advice port_pf_down = {
	"No VF of this port is ACTIVE either: NCCL uses none of them.",
	{ "Look at the cable, the transceiver and the switch port (ethtool PF, mlxlink -d ADDRESS); on Ethernet ip link set PF up; on InfiniBand INIT means that no subnet manager has seen it." },
};
static const struct diagnosis_advice port_no_sm = {
	"NCCL skips a port that is not ACTIVE; INIT and ARMED end when the subnet manager has configured it.",
	{ "Enable virtualization in the subnet manager (opensm: virt_enabled 2; UFM: on by default) and look whether it runs (sminfo)." },
};
static const struct diagnosis_advice port_vf_down = {
	"NCCL skips a port that is not ACTIVE.",
	{ "On InfiniBand give the VF its GUIDs (check vf-identity) and policy Follow; on Ethernet look at its link state (check vf-admin) and at ip link show of its interface, which may be in a pod." },
};
static const struct diagnosis_advice port_here_down = {
	"NCCL skips a port that is not ACTIVE, and a port of Ethernet is as long as its interface is switched on.",
	{ "With sriov-cni the interface is switched on when it moves into the pod: look at the pod's networks (k8s.v1.cni.cncf.io/networks); with hostNetwork: ip link set INTERFACE up." },
};
static const struct diagnosis_advice port_idle = {
	"A port of Ethernet is ACTIVE when its interface is switched on, which sriov-cni does when it moves it into a pod; for pods with hostNetwork it has to be done by hand (ip link set INTERFACE up).",
	{ NULL },
};
static const struct diagnosis_advice port_unknown = {
	"NCCL skips a port that is not ACTIVE.",
	{ "Look on the host: rdma link, ibstat." },
};
static const struct diagnosis_advice port_slow = {
	"NCCL splits its data evenly over the rails: the slowest one decides.",
	{ "Look at the cable, the transceiver and the speed that the switch port offers (ethtool PF, mlxlink -d ADDRESS)." },
};

enum { PORT_FINE, PORT_NO_SM, PORT_DOWN, PORT_HERE_DOWN, PORT_IDLE, PORT_HIDDEN, PORT_NONE };

static const struct net_kind port_kinds[] = {
	[PORT_FINE] = { DIAGNOSIS_PASS, NULL, "has an ACTIVE port", "have ACTIVE ports" },
	[PORT_NO_SM] = { DIAGNOSIS_FAIL, &port_no_sm,
			 "has a port that the subnet manager has not made ACTIVE",
			 "have ports that the subnet manager has not made ACTIVE" },
	[PORT_DOWN] = { DIAGNOSIS_FAIL, &port_vf_down, "has a port that is not ACTIVE",
			"have ports that are not ACTIVE" },
	[PORT_HERE_DOWN] = { DIAGNOSIS_FAIL, &port_here_down,
			     "has a port that is not ACTIVE: its interface is switched off",
			     "have ports that are not ACTIVE: their interfaces are switched off" },
	[PORT_IDLE] = { DIAGNOSIS_PASS, &port_idle,
			"is idle: its interface is switched off, so its port is down",
			"are idle: their interfaces are switched off, so their ports are down" },
	[PORT_HIDDEN] = { DIAGNOSIS_UNKNOWN, &port_unknown, "does not show the state of its port",
			  "do not show the state of their ports" },
	[PORT_NONE] = { DIAGNOSIS_FAIL, &port_vf_down, "has no port", "have no port" },
};

static bool is_active(const struct hw_port *port)
{
	return port && str_eq(port->state, "ACTIVE");
}

static bool is_down(const struct facts *f, int rdma)
{
	const struct hw_port *port = rdma < 0 ? NULL : net_port(f, (size_t)rdma);

	return port && port->state && !is_active(port);
}

static int judge_port(const struct facts *f, size_t rdma)
{
	const struct hw_port *port = net_port(f, rdma);
	int pci = f->inv->rdma[rdma].pci, pf = f->inv->pci[pci].physfn;

	if (!port)
		return PORT_NONE;
	if (is_active(port))
		return PORT_FINE;
	if (pf >= 0 && is_down(f, hw_find_rdma(f->inv, pf)))
		return NET_NOT_ABOUT; /* reported of the PF */
	if (!port->state)
		return PORT_HIDDEN;
	if (port->link == HW_LINK_IB)
		return str_eq(port->state, "DOWN") ? PORT_DOWN : PORT_NO_SM;
	if (f->net->netdev[pci].up != FACTS_NO)
		return PORT_DOWN;
	return f->container == FACTS_YES ? PORT_HERE_DOWN : PORT_IDLE;
}

static int rate_of(const struct facts *f, int pci)
{
	int rdma = net_pf_rdma(f, pci);
	const struct hw_port *port = rdma < 0 ? NULL : net_port(f, (size_t)rdma);

	return is_active(port) ? port->rate_mbps : 0;
}

static void judge_pf(const struct facts *f, struct diagnosis *r, int pci, int rdma)
{
	const struct hw_port *port = net_port(f, (size_t)rdma);
	int rate = rate_of(f, pci), best = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		if (net_same_model(&f->inv->pci[f->nic[i]], &f->inv->pci[pci]) &&
		    rate_of(f, f->nic[i]) > best)
			best = rate_of(f, f->nic[i]);
	}
	if (is_down(f, rdma))
		diagnosis_add(r, DIAGNOSIS_FAIL, &port_pf_down, facts_address(f, pci),
			      "Port %d of %s is %s (%s).", port->number, net_name(f, pci),
			      port->state,
			      port->phys_state ? port->phys_state : "physical state unknown");
	else if (rate && rate < best)
		diagnosis_add(r, DIAGNOSIS_WARN, &port_slow, facts_address(f, pci),
			      "Port %d of %s runs at %d Gb/s, others of its model at %d.",
			      port->number, net_name(f, pci), rate / 1000, best / 1000);
}

static void run_port(const struct facts *f, struct diagnosis *r)
{
	for (size_t i = 0; i < f->n_nic; i++) {
		int rdma = net_pf_rdma(f, f->nic[i]);

		if (rdma >= 0)
			judge_pf(f, r, f->nic[i], rdma);
	}
	net_judge_vfs(f, r, judge_port, port_kinds);
}

const struct diagnosis_check doctor_port_checks[] = {
	{ "port", "state and rate of ports",
	  "FAIL: a port of a PF or VF is not ACTIVE. A VF on Ethernet whose interface is on the host and switched off is idle: its port comes up with the interface, in the pod. WARN: a PF runs slower than others of its model. What a VF says of rate and physical state is its PF's.",
	  .run = run_port },
};
const size_t doctor_port_checks_n = ARRAY_LEN(doctor_port_checks);
