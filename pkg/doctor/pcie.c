/* IOMMU, ACS, relaxed ordering, payload sizes: what becomes of a write from a NIC to a GPU on its way. */
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

#define MAX_NEAREST 64
#define FAST_NIC    200000 /* Mb/s */

static const char need_privilege[] =
	"Run it as root with CAP_SYS_ADMIN on the node itself, or in a privileged pod.";

/* --- iommu --- */

static const struct doctor_advice iommu_translated = {
	"Every transfer between NIC and GPU goes up to the IOMMU and back instead of straight through the "
	"switch: GPUDirect RDMA is slower, or does not work at all.",
	{ "Add iommu=pt to GRUB_CMDLINE_LINUX, update-grub (RHEL: grubby --update-kernel=ALL "
	  "--args=iommu=pt), reboot; containers' VFs stay with the host's driver and lose no isolation by "
	  "it.",
	  "Apply a MachineConfig with kernelArguments: [iommu=pt] (--fix-manifest openshift); the nodes "
	  "reboot one by one.",
	  "Add iommu=pt to machine.install.extraKernelArgs (--fix-manifest talos) and upgrade the node to "
	  "the same image." },
};
static const struct doctor_advice iommu_translated_despite = {
	"Every transfer between NIC and GPU goes up to the IOMMU and back instead of straight through the "
	"switch: GPUDirect RDMA is slower, or does not work at all.",
	{ "The command line asks for passthrough already: look for what overrules it (a type written to the "
	  "group in sysfs, a device that the firmware calls untrusted, an IOMMU of the hypervisor).",
	  NULL, NULL },
};
static const struct doctor_advice iommu_blocked = {
	"The device may not reach memory at all until a driver of user space has it.",
	{ "Bind it to the kernel's driver (driverctl unset-override ADDRESS).", NULL, NULL },
};
static const struct doctor_advice iommu_unknown = {
	"If the IOMMU translates, NIC and GPU do not talk straight through the switch.",
	{ "cat /sys/bus/pci/devices/ADDRESS/iommu_group/type on the host: identity is right; a container "
	  "that masks parts of /sys does not have it.",
	  NULL, NULL },
};
static const struct doctor_advice iommu_ats = {
	"Translated, but with ATS the devices ask once and then talk straight through the switch.",
	{ NULL },
};
static const struct doctor_advice iommu_fine = {
	"The IOMMU is not between NIC and GPU.",
	{ NULL },
};

static const char *iommu_name(enum doctor_iommu type)
{
	static const char *const names[] = {
		[DOCTOR_IOMMU_UNKNOWN] = "unknown",
		[DOCTOR_IOMMU_NONE] = "none",
		[DOCTOR_IOMMU_IDENTITY] = "identity",
		[DOCTOR_IOMMU_DMA] = "DMA (translated, strict)",
		[DOCTOR_IOMMU_DMA_FQ] = "DMA-FQ (translated, lazy)",
		[DOCTOR_IOMMU_BLOCKED] = "blocked",
		[DOCTOR_IOMMU_OTHER] = "neither identity nor DMA",
	};

	return names[type];
}

static bool ats_is_on(const struct doctor_pci *p)
{
	return p->has_ats && p->ats_ctrl & PCI_ATS_CTRL_ENABLE;
}

static const char *ats_words(const struct doctor_pci *p)
{
	if (p->has_ats)
		return ", without ATS";
	return p->config_ext == DOCTOR_CONFIG_READ ? ", and it has no ATS"
						   : "; whether with ATS is not visible";
}

/* Arm's kernels know the long name only; RCCL looks for the short one. */
static const char *passthrough_arg(const struct doctor_host *h)
{
	return str_eq(h->iommu_kind, "smmu") ? "iommu.passthrough=1" : "iommu=pt";
}

static bool asks_for_passthrough(const struct doctor_host *h)
{
	return doctor_boot_word(h, "iommu=pt") == DOCTOR_YES ||
	       doctor_boot_word(h, "iommu.passthrough=1") == DOCTOR_YES;
}

struct tally {
	size_t fine, ats; /* devices that need no line of their own */
};

static void judge_iommu(const struct doctor_facts *f, struct doctor_report *r, int pci, const char *name,
			struct tally *t)
{
	const struct doctor_pci *p = &f->pci[pci];
	const char *who = doctor_address(f, pci), *words = iommu_name(p->iommu);

	switch (p->iommu) {
	case DOCTOR_IOMMU_NONE:
	case DOCTOR_IOMMU_IDENTITY:
		t->fine++;
		break;
	case DOCTOR_IOMMU_DMA:
	case DOCTOR_IOMMU_DMA_FQ:
		if (ats_is_on(p)) {
			t->ats++;
		} else if (asks_for_passthrough(&f->host)) {
			doctor_find(r, DOCTOR_WARN, &iommu_translated_despite, who,
				    "%s is in a group of type %s%s, although the command line asks for "
				    "passthrough.",
				    name, words, ats_words(p));
		} else {
			doctor_find(r, DOCTOR_WARN, &iommu_translated, who, "%s is in a group of type %s%s.",
				    name, words, ats_words(p))
				->kernel_arg = passthrough_arg(&f->host);
		}
		break;
	case DOCTOR_IOMMU_BLOCKED:
		doctor_find(r, DOCTOR_FAIL, &iommu_blocked, who, "%s is in a group of type blocked.", name);
		break;
	default:
		doctor_find(r, DOCTOR_UNKNOWN, &iommu_unknown, who,
			    "%s: the type of its IOMMU group is %s%s.", name, words,
			    asks_for_passthrough(&f->host)
				    ? "; the command line asks for passthrough, which is a hint only"
				    : "");
	}
}

/* VFs of a card in groups of one type, where that is not the card's own: one line. */
static void judge_iommu_vfs_of(const struct doctor_facts *f, struct doctor_report *r, int pf,
			       enum doctor_iommu type, struct tally *t)
{
	const struct hw_inventory *inv = f->inv;
	size_t n = 0;
	int first = -1;

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (inv->pci[i].physfn != pf || f->pci[i].iommu != type)
			continue;
		n++;
		if (first < 0 || !ats_is_on(&f->pci[i]))
			first = (int)i;
	}
	if (!n)
		return;
	if (type == f->pci[pf].iommu && ats_is_on(&f->pci[first]) == ats_is_on(&f->pci[pf]))
		t->fine += type == DOCTOR_IOMMU_NONE || type == DOCTOR_IOMMU_IDENTITY ? n : 0;
	else
		judge_iommu(f, r, first,
			    arena_printf(f->arena, "VF %s, one of %zu of %s,", doctor_address(f, first), n,
					 doctor_nic_name(f, pf)),
			    t);
}

static void judge_iommu_vfs(const struct doctor_facts *f, struct doctor_report *r, int pf, struct tally *t)
{
	for (int type = 0; type <= DOCTOR_IOMMU_OTHER; type++)
		judge_iommu_vfs_of(f, r, pf, (enum doctor_iommu)type, t);
}

static void run_iommu(const struct doctor_facts *f, struct doctor_report *r)
{
	struct tally t = { 0 };

	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_iommu(f, r, f->inv->gpu[i].pci, doctor_gpu_name(f, i), &t);
	for (size_t i = 0; i < f->n_nic; i++) {
		judge_iommu(f, r, f->nic[i], doctor_nic_name(f, f->nic[i]), &t);
		judge_iommu_vfs(f, r, f->nic[i], &t);
	}
	if (t.ats)
		doctor_find(r, DOCTOR_PASS, &iommu_ats, "host",
			    "GPUs and NICs that are translated, with ATS: %zu.", t.ats);
	if (t.fine && doctor_worst_so_far(r) == DOCTOR_PASS)
		doctor_find(r, DOCTOR_PASS, &iommu_fine, "host",
			    "%zu GPUs, NICs and VFs are in groups of type identity or in none.", t.fine);
}

/* --- acs --- */

#define ACS_BAD (PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

static const struct doctor_advice acs_on = {
	"What the GPU and the NIC send each other is redirected up to the CPU instead of through the switch: "
	"GPUDirect RDMA at half the bandwidth, or none at all.",
	{ "Boot with pci=disable_acs_redir= of these bridges (--fix-manifest grub), or switch ACS off in the "
	  "BIOS; devices below them then share IOMMU groups. pcie_acs_override does not clear these bits.",
	  "Apply a MachineConfig with kernelArguments pci=disable_acs_redir= of these bridges "
	  "(--fix-manifest openshift).",
	  "Add pci=disable_acs_redir= of these bridges to machine.install.extraKernelArgs (--fix-manifest "
	  "talos)." },
};
static const struct doctor_advice acs_on_despite = {
	"What the GPU and the NIC send each other is redirected up to the CPU instead of through the switch: "
	"GPUDirect RDMA at half the bandwidth, or none at all.",
	{ "The command line names this bridge already: look into the kernel's log for 'disable_acs_redir', "
	  "or switch ACS off in the BIOS; config_acs= is for kernels from 6.11.",
	  NULL, NULL },
};
static const struct doctor_advice acs_on_guest = {
	"What the GPU and the NIC send each other is redirected up to the CPU instead of through the switch, "
	"for without ATS or direct translated P2P nothing takes the short way.",
	{ "In a virtual machine that is the host's affair: the switch needs DT (direct translated P2P), GPU "
	  "and NIC need ATS, which the host's administrator sets (nccl-tests issue 380).",
	  NULL, NULL },
};
static const struct doctor_advice acs_unknown = {
	"If a bridge on the way redirects, GPUDirect RDMA is slow, and nothing in NCCL's log says so.",
	{ need_privilege, NULL, NULL },
};
static const struct doctor_advice acs_hidden = {
	"The switches are the host's: if they redirect, GPUDirect RDMA is slow, and nothing in here can "
	"tell.",
	{ "Ask who runs the host: good is SV RR CR UF DT with ATS on GPU and NIC.", NULL, NULL },
};
static const struct doctor_advice acs_direct = {
	"Plain requests are redirected, but GPU and NIC have ATS, and what is translated goes straight "
	"through (DT).",
	{ NULL },
};
static const struct doctor_advice acs_far = {
	"The way goes over the host bridge anyway, where NCCL leaves GPUDirect RDMA off: it matters when its "
	"level is raised.",
	{ NULL },
};
static const struct doctor_advice acs_fine = {
	"Switches on these ways let GPU and NIC talk to each other.",
	{ NULL },
};

static const char *acs_words(const struct doctor_facts *f, int pci)
{
	static const char *const bits[] = { "SV", "TB", "RR", "CR", "UF", "EC", "DT" };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		if (f->pci[pci].acs_ctrl & 1U << i)
			strbuf_printf(&text, "%s%s", text.len ? " " : "", bits[i]);
	}
	return arena_strdup(f->arena, strbuf_str(&text));
}

/* Redirecting is what ports do where requests come in from below: those of switches, and root ports where the
 * way goes over the root complex. An unknown type counts. */
static bool is_ingress(const struct doctor_facts *f, int bridge)
{
	int type = f->pci[bridge].port_type;

	return type == PORT_DOWNSTREAM || type == PORT_ROOT || type < 0;
}

/* Is what this port redirects only what GPU and NIC do not send? */
static bool is_direct(const struct doctor_facts *f, int bridge, int gpu, int nic)
{
	uint16_t ctrl = f->pci[bridge].acs_ctrl;

	return ctrl & PCI_ACS_DT && !(ctrl & (PCI_ACS_TB | PCI_ACS_EC)) && ats_is_on(&f->pci[gpu]) &&
	       ats_is_on(&f->pci[nic]);
}

static bool names_bridge(const struct doctor_facts *f, int bridge)
{
	const char *value = doctor_boot_value(f, "pci=");

	return value && strstr(value, "disable_acs_redir=") && strstr(value, doctor_address(f, bridge));
}

static const struct doctor_advice *redirect_advice(const struct doctor_facts *f, int bridge,
						   enum topo_class class)
{
	if (class > TOPO_PHB)
		return &acs_far;
	if (f->inv->hypervisor)
		return &acs_on_guest;
	return names_bridge(f, bridge) ? &acs_on_despite : &acs_on;
}

static void say_redirects(const struct doctor_facts *f, struct doctor_report *r, int bridge, int gpu, int nic,
			  enum topo_class class)
{
	const struct doctor_advice *advice = redirect_advice(f, bridge, class);
	const char *who = doctor_address(f, bridge);
	struct doctor_finding *found = doctor_find(
		r, advice == &acs_far ? DOCTOR_PASS : DOCTOR_WARN, advice, who,
		"%s redirects (ACS %s) between GPU %s and NIC %s (%s).", who, acs_words(f, bridge),
		doctor_address(f, gpu), doctor_address(f, nic), topo_class_name(class));

	if (advice == &acs_on)
		found->kernel_arg = arena_printf(doctor_report_arena(r), "pci=disable_acs_redir=%s", who);
}

static const char *why_unread(enum doctor_config config)
{
	static const char *const words[] = {
		[DOCTOR_CONFIG_UNREAD] = "was not asked",
		[DOCTOR_CONFIG_NONE] = "cannot be read",
		[DOCTOR_CONFIG_SHORT] = "ends before it (without CAP_SYS_ADMIN the kernel shows 64 bytes)",
		[DOCTOR_CONFIG_BROKEN] = "makes no sense",
		[DOCTOR_CONFIG_READ] = "has none",
	};

	return words[config];
}

/* Each bridge is judged for the first pair that it is between. */
struct acs_walk {
	bool *seen;
	size_t judged, direct, pairs;
	enum topo_class class; /* of the pair */
};

static void judge_acs_bridge(const struct doctor_facts *f, struct doctor_report *r, struct acs_walk *w,
			     int bridge, int gpu, int nic)
{
	const struct doctor_pci *p = &f->pci[bridge];
	const char *who = doctor_address(f, bridge);
	bool known = p->has_acs || p->config_ext == DOCTOR_CONFIG_READ;

	if (!known && w->class > TOPO_PHB)
		return; /* where it does not matter, nobody has to look */
	w->judged++;
	if (!known)
		doctor_find(r, DOCTOR_UNKNOWN, &acs_unknown, who,
			    "%s, between GPU %s and NIC %s: its configuration space %s.", who,
			    doctor_address(f, gpu), doctor_address(f, nic), why_unread(p->config_ext));
	else if (!p->has_acs || !(p->acs_ctrl & ACS_BAD))
		return;
	else if (is_direct(f, bridge, gpu, nic))
		w->direct++;
	else
		say_redirects(f, r, bridge, gpu, nic, w->class);
}

static void judge_acs_pair(const struct doctor_facts *f, struct doctor_report *r, struct acs_walk *w, int gpu,
			   int nic)
{
	int way[WAY_MAX], common;
	size_t n = doctor_way(f->inv, gpu, nic, way, &common);

	w->pairs++;
	for (size_t i = 0; i < n; i++) {
		if (w->seen[way[i]] || (int)i == common || !is_ingress(f, way[i]))
			continue;
		w->seen[way[i]] = true;
		judge_acs_bridge(f, r, w, way[i], gpu, nic);
	}
}

/* The nearest pairs first: a bridge that is on two ways counts for the shorter one. */
static void judge_acs_class(const struct doctor_facts *f, struct doctor_report *r, struct acs_walk *w,
			    enum topo_class class)
{
	int nearest[MAX_NEAREST];

	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		size_t n = doctor_nearest(f, f->inv->gpu[i].pci, nearest, MAX_NEAREST, &w->class);

		for (size_t k = 0; k < n && w->class == class; k++)
			judge_acs_pair(f, r, w, f->inv->gpu[i].pci, nearest[k]);
	}
}

static void run_acs(const struct doctor_facts *f, struct doctor_report *r)
{
	_cleanup_free_ bool *seen = xcalloc(f->inv->n_pci + 1, sizeof(*seen));
	struct acs_walk w = { .seen = seen };

	if (topo_flattened_vm(f->topo)) {
		doctor_find(r, DOCTOR_UNKNOWN, &acs_hidden, "host",
			    "This virtual machine does not show the switches between GPUs and NICs.");
		return;
	}
	for (enum topo_class c = TOPO_PIX; c < TOPO_CLASS_MAX; c++)
		judge_acs_class(f, r, &w, c);
	if (w.direct)
		doctor_find(r, DOCTOR_PASS, &acs_direct, "host",
			    "Bridges that redirect, with DT and ATS: %zu.", w.direct);
	if (w.judged && r->n == r->first && f->inv->hypervisor)
		doctor_find(r, DOCTOR_UNKNOWN, &acs_hidden, "host",
			    "The %zu bridges that this virtual machine sees redirect nothing; the host's are "
			    "hidden.",
			    w.judged);
	else if (w.judged && r->n == r->first)
		doctor_find(
			r, DOCTOR_PASS, &acs_fine, "host",
			"Nothing is redirected by the ports between GPUs and NICs (pairs: %zu, ports: %zu).",
			w.pairs, w.judged);
}

/* --- relaxed-ordering --- */

static const struct doctor_advice ordering_off = {
	"Writes of this device wait for one another: NCCL's bandwidth can halve, above all on AMD hosts.",
	{ "Enable PCIe relaxed ordering in the BIOS; for a ConnectX card mlxconfig -d ADDRESS set "
	  "PCI_WR_ORDERING=1 and a power cycle.",
	  NULL, NULL },
};
static const struct doctor_advice ordering_unknown = {
	"Without relaxed ordering the writes of a device wait for one another.",
	{ need_privilege, NULL, NULL },
};
static const struct doctor_advice ordering_of_pf = {
	"A VF's relaxed ordering is its PF's, which only the host sees.",
	{ "Ask who runs the host: lspci -vv of the PF shows RlxdOrd+ in DevCtl.", NULL, NULL },
};
static const struct doctor_advice ordering_fine = {
	"The devices may let writes pass one another; NCCL asks for it (NCCL_IB_PCI_RELAXED_ORDERING=2).",
	{ NULL },
};

/* A function that its machine sees without its PF: the bits are not its own. */
static bool is_lone_vf(const struct doctor_facts *f, int pci)
{
	const struct hw_pci *p = &f->inv->pci[pci];

	return f->inv->hypervisor && hw_is_nic_vf(f->inv, pci) && p->physfn < 0;
}

static void judge_ordering(const struct doctor_facts *f, struct doctor_report *r, int pci, const char *name,
			   size_t *on)
{
	const struct doctor_pci *p = &f->pci[pci];
	const char *who = doctor_address(f, pci);

	if (is_lone_vf(f, pci))
		doctor_find(r, DOCTOR_UNKNOWN, &ordering_of_pf, who, "%s is a VF whose PF is not here.",
			    name);
	else if (p->devctl < 0)
		doctor_find(r, DOCTOR_UNKNOWN, &ordering_unknown, who,
			    "%s: relaxed ordering is unknown, for its configuration space %s.", name,
			    p->config == DOCTOR_CONFIG_READ ? "has no PCIe capability"
							    : why_unread(p->config));
	else if (!(p->devctl & PCI_EXP_DEVCTL_RELAX_EN))
		doctor_find(r, DOCTOR_WARN, &ordering_off, who, "%s has relaxed ordering off.", name);
	else
		*on += 1;
}

static void run_ordering(const struct doctor_facts *f, struct doctor_report *r)
{
	size_t on = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_ordering(f, r, f->inv->gpu[i].pci, doctor_gpu_name(f, i), &on);
	for (size_t i = 0; i < f->n_nic; i++)
		judge_ordering(f, r, f->nic[i], doctor_nic_name(f, f->nic[i]), &on);
	if (on && doctor_worst_so_far(r) == DOCTOR_PASS)
		doctor_find(r, DOCTOR_PASS, &ordering_fine, "host",
			    "GPUs and NICs with relaxed ordering on: %zu.", on);
}

/* --- payload --- */

static const struct doctor_advice payload_unequal = {
	"A packet larger than the next port takes is an error, so all use the smallest: small packets cost "
	"bandwidth, and a real mismatch breaks transfers.",
	{ "Set the maximum payload size to auto or the largest in the BIOS; where the firmware leaves them "
	  "unequal, try the kernel argument pci=pcie_bus_safe on one node first.",
	  NULL, NULL },
};
static const struct doctor_advice requests_small = {
	"A NIC of 200 Gb/s and more does not reach its rate with small read requests: NCCL's sends from GPU "
	"memory are reads.",
	{ "setpci -s ADDRESS CAP_EXP+8.w=5000:7000 by a systemd unit at boot (4096 bytes), or the BIOS's "
	  "MaxReadReq.",
	  "The same setpci in a systemd unit of a MachineConfig.",
	  "The BIOS's MaxReadReq, or the same setpci from a privileged DaemonSet: Talos has no setpci of its "
	  "own." },
};
static const struct doctor_advice payload_unknown = {
	"Unequal payload sizes on a way, or small read requests, cost bandwidth.",
	{ need_privilege, NULL, NULL },
};
static const struct doctor_advice payload_fine = {
	"Packets are of one size all the way between GPU and NIC.",
	{ NULL },
};

static int nic_rate(const struct doctor_facts *f, int pci)
{
	int rdma = hw_find_rdma(f->inv, pci);

	return rdma >= 0 && f->inv->rdma[rdma].n_ports ? f->inv->rdma[rdma].ports[0].rate_mbps : 0;
}

/* GPU, bridges, NIC; a lone VF's bits are not its own. Returns how many of them could not be read. */
static size_t payload_of_way(const struct doctor_facts *f, int gpu, int nic, int *ret_min, int *ret_max,
			     int *ret_at)
{
	int way[WAY_MAX + 2], common;
	size_t n = doctor_way(f->inv, gpu, nic, way, &common), unread = 0;

	way[n++] = gpu;
	way[n++] = nic;
	*ret_min = *ret_max = 0;
	for (size_t i = 0; i < n; i++) {
		int devctl = is_lone_vf(f, way[i]) ? -1 : f->pci[way[i]].devctl;
		int size = devctl < 0 ? 0 : doctor_mps(devctl);

		unread += devctl < 0;
		if (size && (!*ret_min || size < *ret_min)) {
			*ret_min = size;
			*ret_at = way[i];
		}
		if (size > *ret_max)
			*ret_max = size;
	}
	return unread;
}

static void judge_payload(const struct doctor_facts *f, struct doctor_report *r, size_t gpu, size_t *fine)
{
	int nearest[MAX_NEAREST], pci = f->inv->gpu[gpu].pci, min, max, at = -1;
	enum topo_class class;
	size_t n = doctor_nearest(f, pci, nearest, MAX_NEAREST, &class), unread = 0;

	for (size_t i = 0; i < n && class <= TOPO_PHB; i++) {
		unread += payload_of_way(f, pci, nearest[i], &min, &max, &at);
		if (min != max) {
			doctor_find(r, DOCTOR_WARN, &payload_unequal, doctor_address(f, at),
				    "Between %s and %s packets of %d bytes are let in, but %s takes %d.",
				    doctor_gpu_name(f, gpu), doctor_nic_name(f, nearest[i]), max,
				    doctor_address(f, at), min);
			return;
		}
	}
	if (unread)
		doctor_find(r, DOCTOR_UNKNOWN, &payload_unknown, doctor_address(f, pci),
			    "Between %s and its NICs %zu functions do not show their payload size.",
			    doctor_gpu_name(f, gpu), unread);
	else if (n && class <= TOPO_PHB)
		*fine += 1;
}

static void judge_requests(const struct doctor_facts *f, struct doctor_report *r, int nic)
{
	int devctl = f->pci[nic].devctl, rate = nic_rate(f, nic);

	if (devctl >= 0 && !is_lone_vf(f, nic) && rate >= FAST_NIC && doctor_mrrs(devctl) < 512)
		doctor_find(r, DOCTOR_WARN, &requests_small, doctor_address(f, nic),
			    "%s of %d Gb/s reads at most %d bytes at a time.", doctor_nic_name(f, nic),
			    rate / 1000, doctor_mrrs(devctl));
}

static void run_payload(const struct doctor_facts *f, struct doctor_report *r)
{
	size_t fine = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_payload(f, r, i, &fine);
	for (size_t i = 0; i < f->n_nic; i++)
		judge_requests(f, r, f->nic[i]);
	if (fine && doctor_worst_so_far(r) == DOCTOR_PASS)
		doctor_find(r, DOCTOR_PASS, &payload_fine, "host",
			    "One payload size from end to end, for GPUs: %zu.", fine);
}

const struct doctor_check doctor_pcie_checks[] = {
	{ "iommu", "IOMMU leaves GPUs and NICs alone",
	  "Reads the type of each device's IOMMU group, which is the truth; the command line is a hint only. "
	  "PASS: identity (passthrough), no IOMMU, or translated with ATS on. WARN: DMA or DMA-FQ, that is "
	  "translated, without ATS. FAIL: blocked. UNKNOWN: the type cannot be read. Sharing a group is no "
	  "condition of peer-to-peer: groups describe isolation.",
	  run_iommu },
	{ "acs", "ACS does not redirect between GPUs and NICs",
	  "Decodes the ACS control word of every port that requests between a GPU and its nearest NICs come "
	  "in by: downstream ports of switches, and root ports where the way goes over the host bridge. "
	  "WARN: RR (request redirect), CR (completion redirect) or EC (egress control). SV and UF alone are "
	  "harmless. PASS in spite of RR and CR: DT is set and GPU and NIC have ATS on, as virtual machines "
	  "should have it. UNKNOWN: the word cannot be read, which takes CAP_SYS_ADMIN; or a virtual machine "
	  "hides the switches.",
	  run_acs },
	{ "relaxed-ordering", "relaxed ordering of GPUs and NICs",
	  "Reads DevCtl bit 4 of GPUs and NICs. WARN: off. UNKNOWN: the configuration space is not readable, "
	  "or the device is a VF whose PF another machine has.",
	  run_ordering },
	{ "payload", "PCIe payload and read request sizes",
	  "Reads DevCtl of GPU, bridges and NIC. WARN: the maximum payload sizes of a way differ, or a NIC "
	  "of 200 Gb/s and more has a maximum read request below 512 bytes. UNKNOWN: not readable without "
	  "CAP_SYS_ADMIN.",
	  run_payload },
};
const size_t doctor_pcie_checks_n = ARRAY_LEN(doctor_pcie_checks);
