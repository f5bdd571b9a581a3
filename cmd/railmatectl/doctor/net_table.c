/* Firmware and boards of PFs, the representors of their VFs, GID and P_Key tables, and in which
 * network namespaces RDMA devices are seen. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

/* --- firmware: PFs of one model --- */

typedef const char *text_of(const struct facts_rdma *d);

static const char *firmware_of(const struct facts_rdma *d)
{
	return d->fw_ver;
}

static const char *board_of(const struct facts_rdma *d)
{
	return d->board_id;
}

/* Lists "28.39.1002 (0000:17:00.0), …" of a model, if there are different ones. */
static bool compare_model(const struct facts *f, struct diagnosis *r, const struct hw_pci *model,
			  text_of *text, const struct diagnosis_advice *advice, const char *what)
{
	_cleanup_strbuf_ struct strbuf list = STRBUF_INIT;
	const char *first = NULL;
	bool differ = false;

	for (size_t i = 0; i < f->n_nic; i++) {
		int pci = f->nic[i], rdma = net_pf_rdma(f, pci);
		const char *value = rdma < 0 ? NULL : text(&f->net->rdma[rdma]);

		if (!value || !net_same_model(&f->inv->pci[pci], model))
			continue;
		differ |= first && strcmp(first, value) != 0;
		first = first ? first : value;
		net_add(&list, value);
		strbuf_printf(&list, " (%s)", facts_address(f, pci));
	}
	if (differ)
		diagnosis_add(r, DIAGNOSIS_WARN, advice, "host",
			      "PFs %04x:%04x have different %s: %s.", model->vendor, model->device,
			      what, strbuf_str(&list));
	return differ;
}

static void run_firmware(const struct facts *f, struct diagnosis *r)
{
	bool differ = false;
	size_t known = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		const struct hw_pci *model = &f->inv->pci[f->nic[i]];
		int rdma = net_pf_rdma(f, f->nic[i]);
		size_t k = 0;

		known += rdma >= 0 && f->net->rdma[rdma].fw_ver;
		while (!net_same_model(&f->inv->pci[f->nic[k]], model))
			k++;
		if (k < i)
			continue; /* compared with the first of its model */
		differ |=
			compare_model(f, r, model, firmware_of, &doctor_firmware_mixed, "firmware");
		differ |= compare_model(f, r, model, board_of, &doctor_firmware_boards, "boards");
	}
	if (known > 1 && !differ)
		diagnosis_fine(r, "PFs of one model have the same firmware and board.");
}

/* --- switchdev: the representors of a PF's VFs --- */

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
		doctor_warn(r, switchdev_loose, who, "Representors of %s (switchdev): %s.", name,
			    strbuf_str(&loose));
	else if (unknown)
		doctor_unknown(
			r, switchdev_unknown, who,
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

/* --- gid --- */

enum { GID_FINE, GID_NONE_HERE, GID_NONE_YET, GID_V1, GID_HOLES, GID_SEVERAL, GID_UNKNOWN };

static const struct net_kind gid_kinds[] = {
	[GID_FINE] = { DIAGNOSIS_PASS, NULL, "has a routable RoCE v2 GID",
		       "have routable RoCE v2 GIDs" },
	[GID_NONE_HERE] = { DIAGNOSIS_FAIL, &doctor_gid_none_here, "has no routable RoCE v2 GID",
			    "have no routable RoCE v2 GID" },
	[GID_NONE_YET] = { DIAGNOSIS_UNKNOWN, &doctor_gid_none_yet,
			   "has no IP address yet, so no routable RoCE v2 GID",
			   "have no IP addresses yet, so no routable RoCE v2 GIDs" },
	[GID_V1] = { DIAGNOSIS_WARN, &doctor_gid_v1, "has GIDs of RoCE v1 only",
		     "have GIDs of RoCE v1 only" },
	[GID_HOLES] = { DIAGNOSIS_WARN, &doctor_gid_holes, "has holes in its GID table",
			"have holes in their GID tables" },
	[GID_SEVERAL] = { DIAGNOSIS_WARN, &doctor_gid_several,
			  "has several routable RoCE v2 GIDs of IPv4",
			  "have several routable RoCE v2 GIDs of IPv4" },
	[GID_UNKNOWN] = { DIAGNOSIS_UNKNOWN, &doctor_gid_unknown, "does not show its GID table",
			  "do not show their GID tables" },
};

struct gid_tally {
	size_t v2, routable, routable_v4;
	bool hole, types_known;
};

static struct gid_tally count_gids(const struct facts_rdma *d)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff }; /* of IPv4 */
	struct gid_tally t = { 0 };

	for (size_t i = 0; i < d->n_gids; i++) {
		const struct gid_entry *gid = &d->gids[i];
		const uint8_t *b = gid->gid;
		bool v2 = str_eq(gid->type, "RoCE v2"), v4 = !memcmp(b, mapped, sizeof(mapped));
		/* 169.254.0.0/16 and fe80::/10 stay on their link. */
		bool local =
			v4 ? b[12] == 169 && b[13] == 254 : b[0] == 0xfe && (b[1] & 0xc0) == 0x80;

		t.v2 += v2;
		t.routable += v2 && !local;
		t.routable_v4 += v2 && v4 && !local;
		t.hole |= gid->index != (int)i || !*gid->type;
		t.types_known |= *gid->type != '\0';
	}
	return t;
}

/* The worst judgement comes first. */
static int judge_gids(const struct facts *f, size_t rdma)
{
	const struct facts_rdma *d = &f->net->rdma[rdma];
	struct gid_tally t = count_gids(d);

	if (net_link(f, rdma) != HW_LINK_ETHERNET)
		return NET_NOT_ABOUT;
	if (!d->gids_known || (d->n_gids && !t.types_known))
		return GID_UNKNOWN;
	if (d->n_gids && !t.v2)
		return GID_V1;
	if (!t.routable)
		return f->container == FACTS_YES ? GID_NONE_HERE : GID_NONE_YET;
	if (t.routable_v4 > 1)
		return GID_SEVERAL;
	return t.hole ? GID_HOLES : GID_FINE;
}

static void run_gid(const struct facts *f, struct diagnosis *r)
{
	net_judge_vfs(f, r, judge_gids, gid_kinds);
}

/* --- pkey --- */

enum { PKEY_FINE, PKEY_LIMITED, PKEY_NONE, PKEY_INDEX, PKEY_UNKNOWN };

static const struct net_kind pkey_kinds[] = {
	[PKEY_FINE] = { DIAGNOSIS_PASS, NULL, "has the key of a full member at index 0",
			"have keys of full members at index 0" },
	[PKEY_LIMITED] = { DIAGNOSIS_FAIL, &doctor_pkey_limited,
			   "is a limited member of all its partitions",
			   "are limited members of all their partitions" },
	[PKEY_NONE] = { DIAGNOSIS_FAIL, &doctor_pkey_limited, "has no partition key",
			"have no partition keys" },
	[PKEY_INDEX] = { DIAGNOSIS_WARN, &doctor_pkey_index,
			 "has no key of a full member at index 0, but a later one",
			 "have no keys of full members at index 0, but later ones" },
	[PKEY_UNKNOWN] = { DIAGNOSIS_UNKNOWN, &doctor_pkey_unknown,
			   "does not show its partition keys", "do not show their partition keys" },
};

static int judge_pkeys(const struct facts *f, size_t rdma)
{
	const struct facts_rdma *d = &f->net->rdma[rdma];

	if (net_link(f, rdma) != HW_LINK_IB)
		return NET_NOT_ABOUT;
	if (d->n_pkeys < 0)
		return PKEY_UNKNOWN;
	if (!d->n_pkeys)
		return PKEY_NONE;
	if (!d->n_full)
		return PKEY_LIMITED;
	return d->pkey0 & 0x8000 ? PKEY_FINE : PKEY_INDEX;
}

static void run_pkey(const struct facts *f, struct diagnosis *r)
{
	net_judge_vfs(f, r, judge_pkeys, pkey_kinds);
}

/* --- rdma-netns --- */

static void run_netns(const struct facts *f, struct diagnosis *r)
{
	if (!f->inv->n_rdma)
		return;
	if (f->net->exclusive < 0)
		doctor_unknown(
			r, netns_unknown, "host",
			"Whether RDMA devices are shared by all network namespaces is not known.");
	else if (f->net->exclusive)
		diagnosis_add(r, f->container == FACTS_YES ? DIAGNOSIS_PASS : DIAGNOSIS_WARN,
			      &doctor_netns_exclusive, "host",
			      "RDMA devices are in one network namespace each (mode exclusive).");
	else
		diagnosis_fine(r, "RDMA devices are shared by all network namespaces.");
}

const struct diagnosis_check doctor_table_checks[] = {
	{ "firmware", "firmware and boards of PFs", .run = run_firmware },
	{ "switchdev", "representors of VFs", .run = run_switchdev },
	{ "gid", "GID tables of VFs on Ethernet", .run = run_gid },
	{ "pkey", "partition keys of VFs on InfiniBand", .run = run_pkey },
	{ "rdma-netns", "RDMA devices and network namespaces", .run = run_netns },
};
const size_t doctor_table_checks_n = ARRAY_LEN(doctor_table_checks);
