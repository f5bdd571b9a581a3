/* The representors of a PF's VFs in switchdev mode. */
#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

static const struct diagnosis_advice switchdev_loose = {
	"In switchdev mode a VF reaches the wire through the netdev that stands for it: one that is missing, switched off or attached to nothing leaves the VF without a network.",
	{ "Add it to the bridge that the uplink is in (ovs-vsctl add-port, ip link set REPRESENTOR master BRIDGE) and switch it on; or use legacy mode: devlink dev eswitch set pci/ADDRESS mode legacy.",
	  "Set eSwitchMode: legacy in the SriovNetworkNodePolicy, or let OVS hardware offload manage the representors." },
};
static const struct diagnosis_advice switchdev_unknown = {
	"In switchdev mode a VF whose representor is attached to nothing has no network.",
	{ "Look on the host: ip -d link, ovs-vsctl show." },
};

/* The known reasons that keep VFs from the wire. */
static size_t list_loose(const struct facts *f, int pci, struct strbuf *list, bool *ret_unknown)
{
	const struct facts_netdev *d = &f->net->netdev[pci];
	size_t n = 0;

	for (int vf = 0; vf < f->inv->pci[pci].sriov_num; vf++) {
		const struct facts_representor *rep = d->reps, *end = d->reps + d->n_reps;
		const char *why;

		while (rep < end && rep->vf != vf)
			rep++;
		why = rep == end		  ? "is missing"
		      : rep->up == FACTS_NO	  ? "is switched off"
		      : rep->attached == FACTS_NO ? "is attached to nothing"
						  : NULL;
		*ret_unknown |=
			rep < end && (rep->up == FACTS_UNKNOWN || rep->attached == FACTS_UNKNOWN);
		if (why && n++ < NET_SHOWN)
			strbuf_printf(list, "%sthat of VF %d %s", list->len ? ", " : "", vf, why);
	}
	if (n > NET_SHOWN)
		strbuf_printf(list, " and %zu more", n - NET_SHOWN);
	return n;
}

static void judge_switchdev(const struct facts *f, struct diagnosis *r, int pci)
{
	const char *who = facts_address(f, pci), *name = net_name(f, pci);
	_cleanup_strbuf_ struct strbuf loose = STRBUF_INIT;
	bool unknown = false;

	if (list_loose(f, pci, &loose, &unknown))
		diagnosis_add(r, DIAGNOSIS_WARN, &switchdev_loose, who,
			      "Representors of %s (switchdev): %s.", name, strbuf_str(&loose));
	else if (unknown)
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &switchdev_unknown, who,
			"%s is in switchdev mode; what its representors are attached to is not known.",
			name);
	else
		diagnosis_add(
			r, DIAGNOSIS_PASS, NULL, who,
			"%s is in switchdev mode, and every VF has a representor that is attached.",
			name);
}

static void run_switchdev(const struct facts *f, struct diagnosis *r)
{
	for (size_t i = 0; i < f->n_nic; i++) {
		if (f->net->netdev[f->nic[i]].n_reps)
			judge_switchdev(f, r, f->nic[i]);
	}
}

const struct diagnosis_check doctor_switchdev_checks[] = {
	{ "switchdev", "representors of VFs",
	  "Where a PF is in switchdev mode (it has netdevs that stand for its VFs). WARN: a VF without one, or one that is switched off or attached to no bridge.",
	  .run = run_switchdev },
};
const size_t doctor_switchdev_checks_n = ARRAY_LEN(doctor_switchdev_checks);
