/* VFs: their identity, their PF's administrator's settings, the node that opens them; state and
 * rate of ports. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

/* --- vf-identity --- */

enum {
	IDENTITY_FINE,
	IDENTITY_GUID,
	IDENTITY_PORT_GUID,
	IDENTITY_MAC,
	IDENTITY_NODE_GUID,
	IDENTITY_ONES,
	IDENTITY_TWICE_MAC,
	IDENTITY_TWICE_GUID,
	IDENTITY_UNKNOWN
};

static const struct net_kind identity_kinds[] = {
	[IDENTITY_FINE] = { DIAGNOSIS_PASS, NULL, "has a GUID or MAC address of its own",
			    "have GUIDs or MAC addresses of their own" },
	[IDENTITY_GUID] = { DIAGNOSIS_FAIL, &doctor_identity_guid,
			    "has no GUID (its node GUID is zero)",
			    "have no GUID (node GUID zero)" },
	[IDENTITY_PORT_GUID] = { DIAGNOSIS_FAIL, &doctor_identity_guid,
				 "has no port GUID (it is zero)", "have no port GUID (zero)" },
	[IDENTITY_MAC] = { DIAGNOSIS_FAIL, &doctor_identity_mac, "has no MAC address (it is zero)",
			   "have no MAC address (zero)" },
	[IDENTITY_NODE_GUID] = { DIAGNOSIS_WARN, &doctor_identity_node_guid,
				 "has the node GUID zero", "have the node GUID zero" },
	[IDENTITY_ONES] = { DIAGNOSIS_FAIL, &doctor_identity_ones,
			    "has a GUID or MAC address of all ones",
			    "have GUIDs or MAC addresses of all ones" },
	[IDENTITY_TWICE_MAC] = { DIAGNOSIS_FAIL, &doctor_identity_twice,
				 "has a MAC address that another VF has, too",
				 "have MAC addresses that other VFs have, too" },
	[IDENTITY_TWICE_GUID] = { DIAGNOSIS_FAIL, &doctor_identity_twice,
				  "has a node GUID that another VF has, too",
				  "have node GUIDs that other VFs have, too" },
	[IDENTITY_UNKNOWN] = { DIAGNOSIS_UNKNOWN, &doctor_identity_unknown,
			       "does not show its GUID or MAC address here",
			       "do not show their GUIDs or MAC addresses here" },
};

/* The settings of a PF's administrator for a VF; NULL: not known. */
static const struct hw_vf_admin *admin_of(const struct facts *f, int pci)
{
	const struct hw_pci *vf = &f->inv->pci[pci];
	const struct facts_netdev *pf = vf->physfn < 0 ? NULL : &f->net->netdev[vf->physfn];

	for (size_t i = 0; pf && i < pf->n_vfs; i++) {
		if (pf->vfs[i].index == vf->vf_index)
			return &pf->vfs[i];
	}
	return NULL;
}

static bool is_ones(const char *guid_or_mac)
{
	return guid_or_mac && *guid_or_mac && !guid_or_mac[strspn(guid_or_mac, "fF:")];
}

static bool has_guid(const struct facts *f, size_t rdma, const char *guid)
{
	return guid && str_eq(f->net->rdma[rdma].node_guid, guid);
}

static bool has_mac(const struct facts *f, size_t rdma, const char *mac)
{
	return mac && str_eq(f->net->netdev[f->inv->rdma[rdma].pci].mac, mac);
}

/* Does another VF have this one, of whatever PF? */
static bool is_twice(const struct facts *f, size_t rdma, const char *value,
		     bool (*has)(const struct facts *f, size_t rdma, const char *value))
{
	int pci = f->inv->rdma[rdma].pci;

	for (size_t i = 0; i < f->inv->n_rdma; i++) {
		int other = f->inv->rdma[i].pci;

		if (other >= 0 && other != pci && hw_is_nic_vf(f->inv, other) && has(f, i, value))
			return true;
	}
	return false;
}

static int judge_infiniband(const struct facts *f, size_t rdma)
{
	static const uint8_t zero[8];
	const struct facts_rdma *d = &f->net->rdma[rdma];
	const struct hw_vf_admin *admin = admin_of(f, f->inv->rdma[rdma].pci);

	if (net_is_zero(d->node_guid))
		return IDENTITY_GUID;
	if (is_ones(d->node_guid))
		return IDENTITY_ONES;
	if (is_twice(f, rdma, d->node_guid, has_guid))
		return IDENTITY_TWICE_GUID;
	/* The lower half of the first GID of a port is its GUID. */
	if (d->n_gids && d->gids[0].index == 0 && !memcmp(d->gids[0].gid + 8, zero, sizeof(zero)))
		return IDENTITY_PORT_GUID;
	if (d->node_guid)
		return IDENTITY_FINE;
	if (!admin || !admin->has_guids)
		return IDENTITY_UNKNOWN;
	return !admin->node_guid   ? IDENTITY_GUID
	       : !admin->port_guid ? IDENTITY_PORT_GUID
				   : IDENTITY_FINE;
}

static int judge_identity(const struct facts *f, size_t rdma)
{
	const struct facts_rdma *d = &f->net->rdma[rdma];
	const char *mac = f->net->netdev[f->inv->rdma[rdma].pci].mac;

	if (net_link(f, rdma) == HW_LINK_IB)
		return judge_infiniband(f, rdma);
	if (net_is_zero(mac))
		return IDENTITY_MAC;
	if (is_ones(mac) || is_ones(d->node_guid))
		return IDENTITY_ONES;
	if (is_twice(f, rdma, mac, has_mac))
		return IDENTITY_TWICE_MAC;
	if (net_is_zero(d->node_guid))
		return IDENTITY_NODE_GUID;
	if (is_twice(f, rdma, d->node_guid, has_guid))
		return IDENTITY_TWICE_GUID;
	return mac || d->node_guid ? IDENTITY_FINE : IDENTITY_UNKNOWN;
}

static void run_identity(const struct facts *f, struct diagnosis *r)
{
	net_judge_vfs(f, r, judge_identity, identity_kinds);
}

/* --- vf-admin --- */

/* Limits may be known from files where the kernel was not asked. */
static void say_limits(const struct facts *f, struct diagnosis *r, int pf)
{
	int lowest = 0, highest = 0;
	size_t n = 0, of = 0;

	for (size_t i = 0; i < f->inv->n_pci; i++) {
		const struct hw_pci *vf = &f->inv->pci[i];

		if (vf->physfn != pf)
			continue;
		of++;
		if (!vf->rate_mbps)
			continue;
		lowest = !n++ || vf->rate_mbps < lowest ? vf->rate_mbps : lowest;
		highest = vf->rate_mbps > highest ? vf->rate_mbps : highest;
	}
	if (n && lowest == highest)
		doctor_pass(r, admin_limited, facts_address(f, pf),
			    "%zu of the %zu VFs of %s may send %d Mb/s at most.", n, of,
			    net_name(f, pf), lowest);
	else if (n)
		doctor_pass(r, admin_limited, facts_address(f, pf),
			    "%zu of the %zu VFs of %s may send %d to %d Mb/s at most.", n, of,
			    net_name(f, pf), lowest, highest);
}

static void judge_admin(const struct facts *f, struct diagnosis *r, int pf)
{
	const struct facts_netdev *n = &f->net->netdev[pf];
	_cleanup_strbuf_ struct strbuf list = STRBUF_INIT;
	size_t disabled = 0, trusted = 0, checked = 0, forced_up = 0;

	for (size_t i = 0; i < n->n_vfs; i++) {
		const struct hw_vf_admin *vf = &n->vfs[i];

		trusted += vf->trust == 1;
		checked += vf->spoofchk == 1;
		forced_up += vf->link == HW_VF_LINK_ENABLE;
		if (vf->link == HW_VF_LINK_DISABLE && disabled++ < NET_SHOWN)
			strbuf_printf(&list, "%s%d", list.len ? " " : "", vf->index);
	}
	if (n->why_no_vfs)
		doctor_unknown(r, admin_unknown, facts_address(f, pf),
			       "What the administrator set for the VFs of %s is not known: %s.",
			       net_name(f, pf), n->why_no_vfs);
	else if (disabled)
		doctor_fail(
			r, admin_disabled, facts_address(f, pf),
			"%zu of the %zu VFs of %s have their link state set to disable: VF %s%s.",
			disabled, n->n_vfs, net_name(f, pf), strbuf_str(&list),
			disabled > NET_SHOWN ? " and more" : "");
	else
		diagnosis_add(
			r, DIAGNOSIS_PASS, NULL, facts_address(f, pf),
			"No link of the %zu VFs of %s is disabled (%zu always up, the others follow the port); %zu are trusted, %zu have spoof checking.",
			n->n_vfs, net_name(f, pf), forced_up, trusted, checked);
}

static void run_admin(const struct facts *f, struct diagnosis *r)
{
	for (size_t i = 0; i < f->n_nic; i++) {
		if (hw_is_nic_vf(f->inv, f->nic[i]) || !f->inv->pci[f->nic[i]].sriov_num)
			continue;
		judge_admin(f, r, f->nic[i]);
		say_limits(f, r, f->nic[i]);
	}
}

/* --- uverbs --- */

enum { VERBS_FINE, VERBS_MISSING, VERBS_NO_NODE };

static const struct net_kind verbs_kinds[] = {
	[VERBS_FINE] = { DIAGNOSIS_PASS, NULL, "has its verbs device", "have their verbs devices" },
	[VERBS_MISSING] = { DIAGNOSIS_FAIL, &doctor_verbs_missing, "has no verbs device (uverbsN)",
			    "have no verbs device (uverbsN)" },
	[VERBS_NO_NODE] = { DIAGNOSIS_FAIL, &doctor_verbs_no_node,
			    "has a verbs device, but no node of it in /dev/infiniband",
			    "have verbs devices, but no nodes of them in /dev/infiniband" },
};

static int judge_verbs(const struct facts *f, size_t rdma)
{
	if (!f->inv->rdma[rdma].uverbs)
		return VERBS_MISSING;
	return f->net->rdma[rdma].node == FACTS_NO ? VERBS_NO_NODE : VERBS_FINE;
}

/* In a container a VF without a device node is another container's. */
static void run_verbs(const struct facts *f, struct diagnosis *r)
{
	size_t ours = 0, all = 0;

	for (size_t i = 0; i < f->inv->n_rdma; i++) {
		ours += net_is_our_vf(f, i);
		all += f->inv->rdma[i].pci >= 0 && hw_is_nic_vf(f->inv, f->inv->rdma[i].pci);
	}
	if (all && !ours)
		doctor_fail(
			r, verbs_none_here, "host",
			"This container has the node of none of the %zu VFs that it sees in /sys.",
			all);
	net_judge_vfs(f, r, judge_verbs, verbs_kinds);
}

/* --- port --- */

enum { PORT_FINE, PORT_NO_SM, PORT_DOWN, PORT_HERE_DOWN, PORT_IDLE, PORT_HIDDEN, PORT_NONE };

static const struct net_kind port_kinds[] = {
	[PORT_FINE] = { DIAGNOSIS_PASS, NULL, "has an ACTIVE port", "have ACTIVE ports" },
	[PORT_NO_SM] = { DIAGNOSIS_FAIL, &doctor_port_no_sm,
			 "has a port that the subnet manager has not made ACTIVE",
			 "have ports that the subnet manager has not made ACTIVE" },
	[PORT_DOWN] = { DIAGNOSIS_FAIL, &doctor_port_vf_down, "has a port that is not ACTIVE",
			"have ports that are not ACTIVE" },
	[PORT_HERE_DOWN] = { DIAGNOSIS_FAIL, &doctor_port_here_down,
			     "has a port that is not ACTIVE: its interface is switched off",
			     "have ports that are not ACTIVE: their interfaces are switched off" },
	[PORT_IDLE] = { DIAGNOSIS_PASS, &doctor_port_idle,
			"is idle: its interface is switched off, so its port is down",
			"are idle: their interfaces are switched off, so their ports are down" },
	[PORT_HIDDEN] = { DIAGNOSIS_UNKNOWN, &doctor_port_unknown,
			  "does not show the state of its port",
			  "do not show the state of their ports" },
	[PORT_NONE] = { DIAGNOSIS_FAIL, &doctor_port_vf_down, "has no port", "have no port" },
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
		doctor_fail(r, port_pf_down, facts_address(f, pci), "Port %d of %s is %s (%s).",
			    port->number, net_name(f, pci), port->state,
			    port->phys_state ? port->phys_state : "physical state unknown");
	else if (rate && rate < best)
		doctor_warn(r, port_slow, facts_address(f, pci),
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

const struct diagnosis_check doctor_vf_checks[] = {
	{ "vf-identity", "GUIDs and MAC addresses of VFs", .run = run_identity },
	{ "vf-admin", "what the PF's administrator set for VFs", .run = run_admin },
	{ "uverbs", "verbs devices of VFs", .run = run_verbs },
	{ "port", "state and rate of ports", .run = run_port },
};
const size_t doctor_vf_checks_n = ARRAY_LEN(doctor_vf_checks);
