/* Ports of PFs and VFs: state, rate, MTU, firmware, quality of service, and what stands for VFs in a
 * switchdev PF. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

/* --- port --- */

static const struct doctor_advice port_pf_down = {
	"No VF of this port is ACTIVE either: NCCL uses none of them.",
	{ "Look at the cable, the transceiver and the switch port (ethtool PF, mlxlink -d ADDRESS); on "
	  "Ethernet ip link set PF "
	  "up; on InfiniBand INIT means that no subnet manager has seen it.",
	  NULL, NULL },
};
static const struct doctor_advice port_no_sm = {
	"NCCL skips a port that is not ACTIVE; INIT and ARMED end when the subnet manager has configured it.",
	{ "Enable virtualization in the subnet manager (opensm: virt_enabled 2; UFM: on by default) and look "
	  "whether it runs "
	  "(sminfo).",
	  NULL, NULL },
};
static const struct doctor_advice port_vf_down = {
	"NCCL skips a port that is not ACTIVE.",
	{ "On InfiniBand give the VF its GUIDs (check vf-identity) and policy Follow; on Ethernet look at "
	  "its link state (check "
	  "vf-admin) and at ip link show of its interface, which may be in a pod.",
	  NULL, NULL },
};
static const struct doctor_advice port_here_down = {
	"NCCL skips a port that is not ACTIVE, and a port of Ethernet is as long as its interface is "
	"switched on.",
	{ "With sriov-cni the interface is switched on when it moves into the pod: look at the pod's "
	  "networks "
	  "(k8s.v1.cni.cncf.io/networks); with hostNetwork: ip link set INTERFACE up.",
	  NULL, NULL },
};
static const struct doctor_advice port_idle = {
	"A port of Ethernet is ACTIVE when its interface is switched on, which sriov-cni does when it moves "
	"it into a pod; for "
	"pods with hostNetwork somebody has to (ip link set INTERFACE up).",
	{ NULL },
};
static const struct doctor_advice port_unknown = {
	"NCCL skips a port that is not ACTIVE.",
	{ "Look on the host: rdma link, ibstat.", NULL, NULL },
};
static const struct doctor_advice port_slow = {
	"NCCL splits its data evenly over the rails: the slowest one decides.",
	{ "Look at the cable, the transceiver and the speed that the switch port offers (ethtool PF, mlxlink "
	  "-d ADDRESS).",
	  NULL, NULL },
};
static const struct doctor_advice port_fine = { "NCCL can use them.", { NULL } };

enum { PORT_FINE, PORT_NO_SM, PORT_DOWN, PORT_HERE_DOWN, PORT_IDLE, PORT_HIDDEN, PORT_NONE };

static const struct net_kind port_kinds[] = {
	[PORT_FINE] = { DOCTOR_PASS, &port_fine, "has an ACTIVE port", "have ACTIVE ports" },
	[PORT_NO_SM] = { DOCTOR_FAIL, &port_no_sm, "has a port that the subnet manager has not made ACTIVE",
			 "have ports that the subnet manager has not made ACTIVE" },
	[PORT_DOWN] = { DOCTOR_FAIL, &port_vf_down, "has a port that is not ACTIVE",
			"have ports that are not ACTIVE" },
	[PORT_HERE_DOWN] = { DOCTOR_FAIL, &port_here_down,
			     "has a port that is not ACTIVE: its interface is switched off",
			     "have ports that are not ACTIVE: their interfaces are switched off" },
	[PORT_IDLE] = { DOCTOR_PASS, &port_idle,
			"is idle: its interface is switched off, so its port is down",
			"are idle: their interfaces are switched off, so their ports are down" },
	[PORT_HIDDEN] = { DOCTOR_UNKNOWN, &port_unknown, "does not show the state of its port",
			  "do not show the state of their ports" },
	[PORT_NONE] = { DOCTOR_FAIL, &port_vf_down, "has no port", "have no port" },
};

static bool is_active(const struct hw_port *port)
{
	return port && str_eq(port->state, "ACTIVE");
}

static bool is_down(const struct doctor_facts *f, int rdma)
{
	const struct hw_port *port = rdma < 0 ? NULL : net_port(f, (size_t)rdma);

	return port && port->state && !is_active(port);
}

static int judge_port(const struct doctor_facts *f, size_t rdma)
{
	const struct hw_port *port = net_port(f, rdma);
	int pci = f->inv->rdma[rdma].pci, pf = f->inv->pci[pci].physfn;

	if (!port)
		return PORT_NONE;
	if (is_active(port))
		return PORT_FINE;
	if (pf >= 0 && is_down(f, hw_find_rdma(f->inv, pf)))
		return NET_NOT_ABOUT; /* said of the PF */
	if (!port->state)
		return PORT_HIDDEN;
	if (port->link == HW_LINK_IB)
		return str_eq(port->state, "DOWN") ? PORT_DOWN : PORT_NO_SM;
	if (f->net->netdev[pci].up != DOCTOR_NO)
		return PORT_DOWN;
	return f->container == DOCTOR_YES ? PORT_HERE_DOWN : PORT_IDLE;
}

static bool is_same_model(const struct hw_pci *a, const struct hw_pci *b)
{
	return a->vendor == b->vendor && a->device == b->device;
}

static int rate_of(const struct doctor_facts *f, int pci)
{
	int rdma = net_pf_rdma(f, pci);
	const struct hw_port *port = rdma < 0 ? NULL : net_port(f, (size_t)rdma);

	return is_active(port) ? port->rate_mbps : 0;
}

/* The rate that the fastest card of this model has. */
static int best_rate(const struct doctor_facts *f, int pci)
{
	int best = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		if (is_same_model(&f->inv->pci[f->nic[i]], &f->inv->pci[pci]) && rate_of(f, f->nic[i]) > best)
			best = rate_of(f, f->nic[i]);
	}
	return best;
}

static void judge_pf(const struct doctor_facts *f, struct doctor_report *r, int pci, int rdma)
{
	const struct hw_port *port = net_port(f, (size_t)rdma);
	int rate = rate_of(f, pci), best = best_rate(f, pci);

	if (is_down(f, rdma))
		doctor_find(r, DOCTOR_FAIL, &port_pf_down, doctor_address(f, pci),
			    "Port %d of %s is %s (%s).", port->number, net_name(f, pci), port->state,
			    port->phys_state ? port->phys_state : "physical state unknown");
	else if (rate && rate < best)
		doctor_find(r, DOCTOR_WARN, &port_slow, doctor_address(f, pci),
			    "Port %d of %s runs at %d Gb/s, others of its model at %d.", port->number,
			    net_name(f, pci), rate / 1000, best / 1000);
}

static void run_port(const struct doctor_facts *f, struct doctor_report *r)
{
	for (size_t i = 0; i < f->n_nic; i++) {
		int rdma = net_pf_rdma(f, f->nic[i]);

		if (rdma >= 0)
			judge_pf(f, r, f->nic[i], rdma);
	}
	net_judge_vfs(f, r, judge_port, port_kinds);
}

/* --- mtu --- */

static const struct doctor_advice mtu_small = {
	"RoCE sends packets of the largest of 256, 512, 1024, 2048 and 4096 bytes that fit: smaller ones "
	"cost message rate, and at "
	"400 Gb/s bandwidth.",
	{ "Set 9000 (at least 4200) on the PF, on its VFs, and on every switch on the way: ip link set PF "
	  "mtu 9000, kept by netplan "
	  "or NetworkManager.",
	  "Set mtu: 9000 in the SriovNetworkNodePolicy.",
	  "Set mtu: 9000 for the interface in the machine's network configuration." },
};
static const struct doctor_advice mtu_mixed = {
	"Two ends agree on the smaller MTU; between rails whose switches differ, connections fail or packets "
	"are lost.",
	{ "Set the same MTU on all PFs: ip link set PF mtu 9000, kept by netplan or NetworkManager.",
	  "Set mtu: 9000 in every SriovNetworkNodePolicy.",
	  "Set mtu: 9000 for each of the interfaces in the machine's network configuration." },
};
static const struct doctor_advice mtu_vf = {
	"A VF's own MTU decides the size of its RoCE packets, whatever its PF has.",
	{ "ip link set INTERFACE mtu 9000 on the VF, or the tuning CNI plugin (mtu) in the pod's network.",
	  "Set mtu: 9000 in the SriovNetworkNodePolicy: the operator sets it on PF and VFs.", NULL },
};
static const struct doctor_advice mtu_unknown = {
	"A small MTU costs bandwidth.",
	{ "Look on the host: ip link show.", NULL, NULL },
};
static const struct doctor_advice mtu_fine = { "RoCE packets have the full size.", { NULL } };

#define ROCE_HEADERS 96 /* what the kernel takes off (iboe_get_mtu()) */
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
	[MTU_FINE] = { DOCTOR_PASS, &mtu_fine, "has an MTU for full RoCE packets, or its PF's",
		       "have an MTU for full RoCE packets, or their PF's" },
	[MTU_BELOW_PF] = { DOCTOR_WARN, &mtu_vf, "has a smaller MTU than its PF",
			   "have a smaller MTU than their PF" },
	[MTU_SMALL] = { DOCTOR_WARN, &mtu_small, "has an MTU too small for full RoCE packets",
			"have an MTU too small for full RoCE packets" },
};

static int judge_vf_mtu(const struct doctor_facts *f, size_t rdma)
{
	int pci = f->inv->rdma[rdma].pci, pf = f->inv->pci[pci].physfn, mtu = f->net->netdev[pci].mtu;
	int above = pf < 0 ? 0 : f->net->netdev[pf].mtu;

	if (net_link(f, rdma) != HW_LINK_ETHERNET || !mtu)
		return NET_NOT_ABOUT;
	if (above && path_mtu(mtu) < path_mtu(above))
		return MTU_BELOW_PF;
	return !above && path_mtu(mtu) < FULL_MTU ? MTU_SMALL : MTU_FINE;
}

static void judge_pf_mtu(const struct doctor_facts *f, struct doctor_report *r, int pci, int mtu)
{
	if (!mtu)
		doctor_find(r, DOCTOR_UNKNOWN, &mtu_unknown, doctor_address(f, pci),
			    "The MTU of %s is not known.", net_name(f, pci));
	else if (path_mtu(mtu) < FULL_MTU)
		doctor_find(r, DOCTOR_WARN, &mtu_small, doctor_address(f, pci),
			    "%s has the MTU %d, so RoCE packets carry %d bytes.", net_name(f, pci), mtu,
			    path_mtu(mtu));
	else
		doctor_find(r, DOCTOR_PASS, &mtu_fine, doctor_address(f, pci),
			    "%s has the MTU %d: RoCE packets carry %d bytes.", net_name(f, pci), mtu,
			    FULL_MTU);
}

/* Of those PFs whose MTU is known. */
static void compare_mtus(const struct doctor_facts *f, struct doctor_report *r, const int *pfs, size_t n)
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
		net_add(&list, doctor_address(f, pfs[i]));
		strbuf_printf(&list, " %d", mtu);
	}
	if (differ)
		doctor_find(r, DOCTOR_WARN, &mtu_mixed, "host", "PFs have different MTUs: %s.",
			    strbuf_str(&list));
}

/* The PFs of f->nic that speak RoCE. */
static size_t roce_pfs(const struct doctor_facts *f, int *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		int rdma = net_pf_rdma(f, f->nic[i]);

		if (rdma >= 0 && net_link(f, (size_t)rdma) == HW_LINK_ETHERNET)
			ret[n++] = f->nic[i];
	}
	return n;
}

static void run_mtu(const struct doctor_facts *f, struct doctor_report *r)
{
	_cleanup_free_ int *pfs = xcalloc(f->n_nic, sizeof(*pfs));
	size_t n = roce_pfs(f, pfs);

	for (size_t i = 0; i < n; i++)
		judge_pf_mtu(f, r, pfs[i], f->net->netdev[pfs[i]].mtu);
	compare_mtus(f, r, pfs, n);
	net_judge_vfs(f, r, judge_vf_mtu, mtu_kinds);
}

/* --- qos --- */

static const struct doctor_advice qos_no_pfc = {
	"RoCE is fast where packets are not dropped: without PFC a full switch drops, and each drop costs a "
	"retransmission. Fine "
	"where the fabric is run lossy on purpose.",
	{ "Agree with the switches on one lossless priority: mlnx_qos -i PF --pfc 0,0,0,1,0,0,0,0 --trust "
	  "dscp, or dcb pfc set dev PF "
	  "prio-pfc 3:on; kept by a systemd unit. Then NCCL_IB_TC in the pool's env (106 is DSCP 26).",
	  "Set it with the vendor's network operator, or a MachineConfig with a systemd unit that runs "
	  "mlnx_qos or dcb.",
	  "Run a privileged DaemonSet that sets it (mlnx_qos or dcb) after each boot." },
};
static const struct doctor_advice qos_pcp = {
	"Pods send untagged packets, which have priority 0 on this port whatever NCCL_IB_TC says.",
	{ "mlnx_qos -i PF --trust dscp, or entries for DSCPs: dcb app add dev PF dscp-prio 26:3; kept by a "
	  "systemd unit.",
	  "Set it with the vendor's network operator, or a MachineConfig with a systemd unit that runs "
	  "mlnx_qos or dcb.",
	  "Run a privileged DaemonSet that sets it (mlnx_qos or dcb) after each boot." },
};
static const struct doctor_advice qos_contradiction = {
	"What every RDMA packet of this host is marked with goes where packets are dropped.",
	{ "Make /sys/class/infiniband/DEVICE/tc/1/traffic_class, the port's DSCP map and its PFC agree "
	  "(mlnx_qos -i PF shows the "
	  "last two).",
	  NULL, NULL },
};
static const struct doctor_advice qos_mixed = {
	"One rail drops packets where another waits: the slowest rail decides.",
	{ "Set the same on all PFs (mlnx_qos -i PF, dcb pfc show dev PF).", NULL, NULL },
};
static const struct doctor_advice qos_unknown = {
	"Whether NCCL's packets are lossless is not known; only the PF's own interface tells, in the host's "
	"network namespace.",
	{ "Run it on the host; or look: mlnx_qos -i PF, dcb pfc show dev PF, dcb app show dev PF.", NULL,
	  NULL },
};
static const struct doctor_advice qos_fine = {
	"With NCCL_IB_TC in this range (pool's env) NCCL's packets are lossless up to here; with its default "
	"0 they have "
	"priority 0.",
	{ NULL },
};

/* "24-31, 46": the DSCPs that end on a lossless priority. */
static void put_lossless_dscps(const struct hw_dcb *dcb, struct strbuf *out)
{
	int start = -1;

	for (int dscp = 0; dscp <= HW_DCB_DSCPS; dscp++) {
		bool lossless = dscp < HW_DCB_DSCPS && dcb->pfc & 1 << hw_dcb_priority(dcb, dscp << 2);

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

/* The DSCPs that a port knows and where they go, for a person who wants one of them. */
static void say_map(const struct doctor_facts *f, struct doctor_report *r, int pci, const struct hw_dcb *dcb)
{
	_cleanup_strbuf_ struct strbuf dscps = STRBUF_INIT, priorities = STRBUF_INIT;

	put_lossless_dscps(dcb, &dscps);
	hw_dcb_put_priorities(dcb->pfc, &priorities);
	if (!dscps.len)
		doctor_find(r, DOCTOR_WARN, &qos_pcp, doctor_address(f, pci),
			    "%s has PFC on priority %s, but %s.", net_name(f, pci), strbuf_str(&priorities),
			    dcb->trust == HW_DCB_TRUST_PCP ? "trusts the VLAN priority and looks at no DSCP"
							   : "its map leads no DSCP there");
	else
		doctor_find(
			r, DOCTOR_PASS, &qos_fine, doctor_address(f, pci),
			"%s has PFC on priority %s, which DSCP %s leads to (NCCL_IB_TC is the DSCP times 4).",
			net_name(f, pci), strbuf_str(&priorities), strbuf_str(&dscps));
}

/* False: nothing to hold against each other, or they agree. */
static bool host_contradicts(const struct doctor_facts *f, struct doctor_report *r, int pci, int tc)
{
	const struct hw_dcb *dcb = &f->net->netdev[pci].dcb;
	_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;

	if (tc < 0 || !hw_dcb_contradicts(dcb, tc, -1, &how))
		return false;
	doctor_find(r, DOCTOR_WARN, &qos_contradiction, doctor_address(f, pci),
		    "%s: the host marks all packets with the traffic class %d, whatever NCCL asks for; %s.",
		    net_name(f, pci), tc, strbuf_str(&how));
	return true;
}

static void judge_qos(const struct doctor_facts *f, struct doctor_report *r, int pci)
{
	const struct doctor_netdev *n = &f->net->netdev[pci];
	int tc = f->net->rdma[net_pf_rdma(f, pci)].traffic_class;

	if (n->why_no_dcb || n->dcb.pfc < 0 || n->dcb.trust == HW_DCB_TRUST_UNKNOWN)
		doctor_find(r, DOCTOR_UNKNOWN, &qos_unknown, doctor_address(f, pci),
			    "PFC and trust of %s are not known: %s.", net_name(f, pci),
			    n->why_no_dcb ? n->why_no_dcb : "its driver does not tell");
	else if (!n->dcb.pfc)
		doctor_find(r, DOCTOR_WARN, &qos_no_pfc, doctor_address(f, pci),
			    "%s has PFC on no priority: its port is lossy.", net_name(f, pci));
	else if (!host_contradicts(f, r, pci, tc))
		say_map(f, r, pci, &n->dcb);
}

static void compare_pfc(const struct doctor_facts *f, struct doctor_report *r, const int *pfs, size_t n)
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
		net_add(&list, doctor_address(f, pfs[i]));
		strbuf_puts(&list, " on ");
		hw_dcb_put_priorities(pfc, &list);
	}
	if (differ)
		doctor_find(r, DOCTOR_WARN, &qos_mixed, "host", "PFs have PFC on different priorities: %s.",
			    strbuf_str(&list));
}

static void run_qos(const struct doctor_facts *f, struct doctor_report *r)
{
	_cleanup_free_ int *pfs = xcalloc(f->n_nic, sizeof(*pfs));
	size_t n = roce_pfs(f, pfs);

	for (size_t i = 0; i < n; i++)
		judge_qos(f, r, pfs[i]);
	compare_pfc(f, r, pfs, n);
}

/* --- firmware --- */

static const struct doctor_advice firmware_mixed = {
	"Cards of one model with different firmware differ in GID tables, congestion control and limits: "
	"what works on one rail may "
	"not on another.",
	{ "Bring them to the same release (mlxfwmanager, mstflint, or the vendor's tool).", NULL, NULL },
};
static const struct doctor_advice firmware_boards = {
	"Cards of one model on different boards may differ in ports, speed and firmware settings.",
	{ "Nothing if it is meant; else use boards of one part number.", NULL, NULL },
};
static const struct doctor_advice firmware_fine = { "The rails behave alike.", { NULL } };

typedef const char *text_of(const struct doctor_rdma *d);

static const char *firmware_of(const struct doctor_rdma *d)
{
	return d->fw_ver;
}

static const char *board_of(const struct doctor_rdma *d)
{
	return d->board_id;
}

/* "28.39.1002 (0000:17:00.0), …" of a model; how many different ones. */
static size_t list_values(const struct doctor_facts *f, const struct hw_pci *model, text_of *text,
			  struct strbuf *out)
{
	const char *first = NULL;
	size_t different = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		int pci = f->nic[i], rdma = net_pf_rdma(f, pci);
		const char *value = rdma < 0 ? NULL : text(&f->net->rdma[rdma]);

		if (!value || !is_same_model(&f->inv->pci[pci], model))
			continue;
		different += !first || strcmp(first, value) != 0;
		first = first ? first : value;
		net_add(out, value);
		strbuf_printf(out, " (%s)", doctor_address(f, pci));
	}
	return different;
}

static bool compare_model(const struct doctor_facts *f, struct doctor_report *r, const struct hw_pci *model,
			  text_of *text, const struct doctor_advice *advice, const char *what)
{
	_cleanup_strbuf_ struct strbuf list = STRBUF_INIT;

	if (list_values(f, model, text, &list) < 2)
		return false;
	doctor_find(r, DOCTOR_WARN, advice, "host", "PFs %04x:%04x have different %s: %s.", model->vendor,
		    model->device, what, strbuf_str(&list));
	return true;
}

static bool was_compared(const struct doctor_facts *f, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (is_same_model(&f->inv->pci[f->nic[i]], &f->inv->pci[f->nic[at]]))
			return true;
	}
	return false;
}

static void run_firmware(const struct doctor_facts *f, struct doctor_report *r)
{
	bool differ = false;
	size_t known = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		const struct hw_pci *model = &f->inv->pci[f->nic[i]];
		int rdma = net_pf_rdma(f, f->nic[i]);

		known += rdma >= 0 && f->net->rdma[rdma].fw_ver;
		if (was_compared(f, i))
			continue;
		differ |= compare_model(f, r, model, firmware_of, &firmware_mixed, "firmware");
		differ |= compare_model(f, r, model, board_of, &firmware_boards, "boards");
	}
	if (known > 1 && !differ)
		doctor_find(r, DOCTOR_PASS, &firmware_fine, "host",
			    "PFs of one model have the same firmware and board.");
}

/* --- switchdev --- */

static const struct doctor_advice switchdev_loose = {
	"In switchdev mode a VF reaches the wire through the netdev that stands for it: one that is missing, "
	"switched off or attached "
	"to nothing leaves the VF without a network.",
	{ "Add it to the bridge that the uplink is in (ovs-vsctl add-port, ip link set REPRESENTOR master "
	  "BRIDGE) and switch it on; or "
	  "use legacy mode: devlink dev eswitch set pci/ADDRESS mode legacy.",
	  "Set eSwitchMode: legacy in the SriovNetworkNodePolicy, or let OVS hardware offload manage the "
	  "representors.",
	  NULL },
};
static const struct doctor_advice switchdev_unknown = {
	"In switchdev mode a VF whose representor is attached to nothing has no network.",
	{ "Look on the host: ip -d link, ovs-vsctl show.", NULL, NULL },
};
static const struct doctor_advice switchdev_fine = { "VFs reach the wire through them.", { NULL } };

static const struct doctor_representor *representor_of(const struct doctor_netdev *n, int vf)
{
	for (size_t i = 0; i < n->n_reps; i++) {
		if (n->reps[i].vf == vf)
			return &n->reps[i];
	}
	return NULL;
}

/* What keeps the VF from the wire; NULL: nothing, as far as is known. */
static const char *looseness(const struct doctor_representor *rep)
{
	if (!rep)
		return "is missing";
	if (rep->up == DOCTOR_NO)
		return "is switched off";
	return rep->attached == DOCTOR_NO ? "is attached to nothing" : NULL;
}

static size_t list_loose(const struct doctor_facts *f, int pci, struct strbuf *list, bool *ret_unknown)
{
	size_t n = 0;

	for (int vf = 0; vf < f->inv->pci[pci].sriov_num; vf++) {
		const struct doctor_representor *rep = representor_of(&f->net->netdev[pci], vf);
		const char *why = looseness(rep);

		*ret_unknown |= rep && (rep->up == DOCTOR_DONT_KNOW || rep->attached == DOCTOR_DONT_KNOW);
		if (why && n++ < NET_SHOWN)
			strbuf_printf(list, "%sthat of VF %d %s", list->len ? ", " : "", vf, why);
	}
	if (n > NET_SHOWN)
		strbuf_printf(list, " and %zu more", n - NET_SHOWN);
	return n;
}

static void judge_switchdev(const struct doctor_facts *f, struct doctor_report *r, int pci)
{
	const char *who = doctor_address(f, pci), *name = net_name(f, pci);
	_cleanup_strbuf_ struct strbuf loose = STRBUF_INIT;
	bool unknown = false;

	if (list_loose(f, pci, &loose, &unknown))
		doctor_find(r, DOCTOR_WARN, &switchdev_loose, who, "Representors of %s (switchdev): %s.",
			    name, strbuf_str(&loose));
	else if (unknown)
		doctor_find(r, DOCTOR_UNKNOWN, &switchdev_unknown, who,
			    "%s is in switchdev mode; what its representors are attached to is not known.",
			    name);
	else
		doctor_find(r, DOCTOR_PASS, &switchdev_fine, who,
			    "%s is in switchdev mode, and every VF has a representor that is attached.",
			    name);
}

static void run_switchdev(const struct doctor_facts *f, struct doctor_report *r)
{
	for (size_t i = 0; i < f->n_nic; i++) {
		if (f->net->netdev[f->nic[i]].n_reps)
			judge_switchdev(f, r, f->nic[i]);
	}
}

const struct doctor_check doctor_port_checks[] = {
	{ "port", "ports of PFs and VFs are ACTIVE",
	  "FAIL: a port of a PF or VF is not ACTIVE. A VF on Ethernet whose interface is on the host and "
	  "switched off is idle: its port "
	  "comes up with the interface, in the pod. WARN: a PF runs slower than others of its model. What a "
	  "VF says of rate and "
	  "physical state is its PF's.",
	  run_port },
	{ "mtu", "MTU for full RoCE packets",
	  "From the MTU of PFs and, where they are on the host, of VFs: RoCE packets carry the largest of "
	  "256 to 4096 bytes that is 96 "
	  "smaller. WARN: less than 4096 (1500 gives 1024), a VF below its PF, PFs that differ. InfiniBand "
	  "has an MTU of its own.",
	  run_mtu },
	{ "qos", "PFC and DSCP of PFs",
	  "Asks the PF's interface for PFC, the map from DSCP to priority and what it trusts (DCB), and "
	  "reads what MLNX_OFED marks all "
	  "packets with. WARN: no lossless priority, none that a DSCP leads to, a mark that goes elsewhere, "
	  "PFs that differ. UNKNOWN: "
	  "not the running machine, a driver without DCB, or another network namespace. The switches are not "
	  "asked.",
	  run_qos },
	{ "firmware", "firmware and boards of PFs",
	  "WARN: PFs of one model with different firmware, or boards of different part numbers.",
	  run_firmware },
	{ "switchdev", "representors of VFs",
	  "Where a PF is in switchdev mode (it has netdevs that stand for its VFs). WARN: a VF without one, "
	  "or one that is switched off "
	  "or attached to no bridge.",
	  run_switchdev },
};
const size_t doctor_port_checks_n = ARRAY_LEN(doctor_port_checks);
